//! What an executor does not control, and how executions of one schedule come to differ.

use crate::{Fingerprint, ThreadId};

/// Something that an executor could not control, so that the execution may not be repeatable.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Uncontrolled {
    /// A thread waited in a system call that is not modelled, and others went on meanwhile.
    SystemCall {
        /// The thread.
        thread: ThreadId,
        /// The call's number, if the kernel says.
        number: Option<u32>,
        /// What it waited for, if it is a descriptor.
        on: Option<Descriptor>,
    },
}

/// What a descriptor leads to, in terms that are the same each time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Descriptor {
    Pipe,
    Socket,
    /// Something that only the kernel has a name for, such as `eventfd`.
    Kernel(String),
    /// A file, by its path.
    File(String),
}

/// Why two executions of one schedule differ.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Cause {
    /// A thread waited in the kernel while others went on.
    Waited(Uncontrolled),
    /// The program asked for the number of its process, which differs each time.
    Process,
    /// The program read below `/proc`.
    Proc,
    /// Where the program and its memory are loaded.
    Addresses,
    /// Nothing is known that would explain it.
    Unknown,
    /// A Rust test does something that the crate does not control.
    Test,
    /// Executions of a Rust test that ran at the same time used the same object.
    SharedStatic,
    /// What the store of an earlier version says.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Told(String),
}

/// Where a replay could not do what was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Divergence {
    /// At which choice of the execution.
    pub step: usize,
    /// In which segment of the schedule, from 0.
    pub segment: usize,
    /// Whose segment.
    pub thread: ThreadId,
    /// Why the schedule could not be followed there.
    pub reason: Reason,
}

/// Why a replay diverged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Reason {
    /// The thread should run but cannot, or does not exist.
    NotEnabled,
    /// The thread was to be preempted before one step, and there was another.
    OtherStep {
        /// The step that was recorded.
        expected: Fingerprint,
        /// The step that is there now.
        found: Fingerprint,
    },
}
