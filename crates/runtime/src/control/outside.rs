//! What is outside the host's control, by name, and whether an execution can be repeated.
//!
//! If two executions of one schedule differ, something that Selvedge does not control caused it. The first
//! event that differs says where. The cause is concluded from what the program is known to have asked for,
//! and by an experiment: if only processes that were loaded elsewhere differ, addresses are the cause.
//!
//! Guarantee: a difference is one that happened. Its cause is the most probable one, not a proof. May miss
//! what happens to be the same in the few executions compared.

use std::fmt;
use std::sync::atomic::Ordering;

use super::wire::source;
use super::{Controlled, Uncontrolled};

/// Why two executions of one schedule differ.
#[derive(Clone, PartialEq, Eq, Debug)]
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
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Waited(what) => write!(f, "{what}"),
            Cause::Process => f.write_str("the program asked for the number of its process"),
            Cause::Proc => f.write_str("the program read a file in /proc"),
            Cause::Addresses => f.write_str(
                "the program depends on an address: executions differ only when it is loaded elsewhere",
            ),
            Cause::Unknown => f.write_str(
                "something that is not seen here: other processes, files that change, the processor's \
                 own clock or random numbers, or code that synchronizes without the C library",
            ),
        }
    }
}

impl Cause {
    /// Why two executions differ, given what one of them waited for outside, which sources they asked for,
    /// and whether they differ only when the program is started anew.
    pub(super) fn of(waited: Option<&Uncontrolled>, sources: u32, anew: bool) -> Cause {
        match waited {
            Some(what) => Cause::Waited(what.clone()),
            None if sources & source::PROCESS != 0 => Cause::Process,
            None if sources & source::PROC != 0 => Cause::Proc,
            None if anew => Cause::Addresses,
            None => Cause::Unknown,
        }
    }
}

impl Controlled {
    pub(super) fn sources(&self) -> u32 {
        self.memory.control().sources.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Uncontrolled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Uncontrolled::SystemCall { thread, number, on } = self;
        match number.map(call) {
            Some(Some(name)) => write!(f, "thread {} was in {name}(2)", thread.0)?,
            Some(None) => {
                write!(f, "thread {} was in system call {}", thread.0, number.unwrap_or(0))?;
            }
            None => write!(f, "thread {} was in a system call", thread.0)?,
        }
        if let Some(on) = on {
            write!(f, " on {on}")?;
        }
        f.write_str(" while others went on")
    }
}

/// The names of calls that wait.
fn call(number: u32) -> Option<&'static str> {
    Some(match number {
        0 => "read",
        1 => "write",
        7 => "poll",
        19 => "readv",
        20 => "writev",
        23 => "select",
        34 => "pause",
        35 => "nanosleep",
        42 => "connect",
        43 => "accept",
        44 => "sendto",
        45 => "recvfrom",
        46 => "sendmsg",
        47 => "recvmsg",
        61 => "wait4",
        72 => "fcntl",
        73 => "flock",
        74 => "fsync",
        128 => "rt_sigtimedwait",
        130 => "rt_sigsuspend",
        202 => "futex",
        230 => "clock_nanosleep",
        232 => "epoll_wait",
        247 => "waitid",
        270 => "pselect6",
        271 => "ppoll",
        281 => "epoll_pwait",
        288 => "accept4",
        299 => "recvmmsg",
        _ => return None,
    })
}

/// Whether the first argument of a call is a descriptor.
fn takes_descriptor(number: u32) -> bool {
    matches!(number, 0 | 1 | 19 | 20 | 42..=47 | 72..=74 | 232 | 281 | 288 | 299)
}

/// The call that a thread is in, and what on.
pub(super) fn system_call(process: u32, thread: u32) -> (Option<u32>, Option<String>) {
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

/// What a descriptor leads to, in terms that are the same each time.
fn kind(link: &str) -> String {
    match link.split_once(":[") {
        Some(("pipe", _)) => "a pipe".to_owned(),
        Some(("socket", _)) => "a socket".to_owned(),
        _ => match link.strip_prefix("anon_inode:") {
            Some(what) => format!("an {}", what.trim_matches(['[', ']'])),
            None => link.to_owned(),
        },
    }
}
