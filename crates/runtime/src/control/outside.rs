//! What is outside the host's control, by name, and whether an execution can be repeated.
//!
//! If two executions of one schedule differ, something that Selvedge does not control caused it. The first
//! event that differs says where. The cause is concluded from what the program is known to have asked for,
//! and by an experiment: if only processes that were loaded elsewhere differ, addresses are the cause.
//!
//! Guarantee: a difference is one that happened. Its cause is the most probable one, not a proof. May miss
//! what happens to be the same in the few executions compared.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use selvedge_model::{Cause, Descriptor, Uncontrolled};

use super::Controlled;
use super::wire::source;

/// Why two executions differ, given what one of them waited for outside, which sources they asked for,
/// and whether they differ only when the program is started anew.
pub(super) fn cause(waited: Option<&Uncontrolled>, sources: u32, anew: bool) -> Cause {
    match waited {
        Some(what) => Cause::Waited(what.clone()),
        None if sources & source::PROCESS != 0 => Cause::Process,
        None if sources & source::PROC != 0 => Cause::Proc,
        None if anew => Cause::Addresses,
        None => Cause::Unknown,
    }
}

impl Controlled {
    pub(super) fn sources(&self) -> u32 {
        self.memory.control().sources.load(Ordering::Relaxed)
    }
}

/// Whether the first argument of a call is a descriptor.
fn takes_descriptor(number: u32) -> bool {
    matches!(number, 0 | 1 | 19 | 20 | 42..=47 | 72..=74 | 232 | 281 | 288 | 299)
}

/// The call that a thread is in, and what on.
pub(super) fn system_call(process: u32, thread: u32) -> (Option<u32>, Option<Descriptor>) {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall"));
    let text = text.unwrap_or_default();
    let mut words = text.split_whitespace();
    let number: Option<u32> = words.next().and_then(|w| w.parse().ok());
    let first = words.next().and_then(|w| w.strip_prefix("0x"));
    let descriptor = first.and_then(|w| u64::from_str_radix(w, 16).ok());
    let on = match (number, descriptor) {
        (Some(number), Some(fd)) if takes_descriptor(number) => {
            let link = std::fs::read_link(format!("/proc/{process}/fd/{fd}")).ok();
            link.map(|link| kind(&link.to_string_lossy()))
        }
        _ => None,
    };
    (number, on)
}

fn kind(link: &str) -> Descriptor {
    match link.split_once(":[") {
        Some(("pipe", _)) => Descriptor::Pipe,
        Some(("socket", _)) => Descriptor::Socket,
        _ => match link.strip_prefix("anon_inode:") {
            Some(what) => Descriptor::Kernel(what.trim_matches(['[', ']']).to_owned()),
            None => Descriptor::File(link.to_owned()),
        },
    }
}
/// A thread that waits in one of these calls is about to end: `exit` and `exit_group`.
const ENDS: [u32; 2] = [60, 231];

/// What was not under control, each once.
pub(super) fn uncontrolled(waited: &[Uncontrolled]) -> Vec<Uncontrolled> {
    let ends = |u: &&Uncontrolled| {
        let Uncontrolled::SystemCall { number, .. } = u;
        number.is_some_and(|n| ENDS.contains(&n))
    };
    let list: BTreeSet<_> = waited.iter().filter(|u| !ends(u)).collect();
    list.into_iter().cloned().collect()
}
