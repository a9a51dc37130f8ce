//! Sentences about what is not controlled, and about a command's controlled executions.

use selvedge_model::{Cause, Descriptor, Divergence, Reason, Uncontrolled};

use super::{count, failure, outcome, signal};
use crate::case::Diverged;
use crate::summary::{CutOff, Parallelism, Remark, Stopped};

/// Some interleavings of all. Earlier versions did not store how many there were.
fn part(interleavings: u64, of: u64) -> String {
    match (interleavings, of) {
        (some, all) if some < all => format!("{some} of {all} interleavings"),
        (1, _) => "the only interleaving".to_owned(),
        (all, _) => format!("any of {all} interleavings"),
    }
}

/// How executions were judged that must be as if sequential.
fn as_if_sequential(p: &Parallelism) -> String {
    format!(
        "of {} tasks, {} executions are as if sequential by their data flow, and {} more because a sequential execution \
             shows the same ({} were run{}){}",
        p.tasks,
        p.serializable,
        p.twins,
        p.sequential,
        if p.all { ", which are all" } else { "" },
        match p.outside {
            0 => String::new(),
            outside => format!("; {outside} of {} steps belong to no task", p.nodes),
        }
    )
}

/// A remark on controlled executions, as a sentence.
pub fn remark(of: &Remark) -> String {
    match of {
        Remark::Points { all, most } => {
            format!("{all} accesses may race; only the first {most} of them are scheduling points")
        }
        Remark::Unclosed { block, site } => format!(
            "the deterministic block {block:?}, begun at {site}, was never left: its results were not compared"
        ),
        Remark::NothingOverlapped => "something is observed, but no two threads were in atomic blocks at the same time: nothing was checked".to_owned(),
        Remark::Unforced { interleavings, of } => format!(
            "no serial order of atomic blocks could be executed for {}: whether they are atomic is not known",
            part(*interleavings, *of)
        ),
        Remark::TooManyOrders { interleavings, of } => format!(
            "atomic blocks overlapped so much in {} that not all serial orders were tried; use `--strategy interrupt`",
            part(*interleavings, *of)
        ),
        Remark::ObservedOnly => "what atomic blocks show was not checked, and neither were their conflicts: `selvedge test` looks for serial executions".to_owned(),
        Remark::AsIfSequential(judged) => as_if_sequential(judged),
        Remark::Believed(names) => {
            format!("believed to commute, because the program says so: {}", names.join(", "))
        }
        Remark::NotFollowed(calls) => {
            let calls: Vec<String> =
                calls.iter().map(|(name, times)| format!("{name} ({times} times)")).collect();
            format!(
                "this code was not followed, and may have done anything: {}",
                calls.join(", ")
            )
        }
        Remark::OwnError { execution } => format!(
            "execution {execution} is as if sequential by its data flow, but no sequential execution shows the same: this is \
             an error of Selvedge, or code that was not followed; please report it"
        ),
        Remark::Incomparable { block, executions: 1 } => format!(
            "the deterministic block {block:?} was executed once: there was nothing to compare it with"
        ),
        Remark::Incomparable { block, executions } => format!(
            "no two of the {executions} executions of the deterministic block {block:?} could be compared: \
             each assumed something else"
        ),
        Remark::GoesOn { schedules } => {
            format!("went on after {schedules} schedules of earlier tests (`--fresh` starts again)")
        }
        Remark::Met(times) => format!("the threads met in {times} executions"),
        Remark::Uncontrolled(what) => {
            format!("not everything was controlled: {}", uncontrolled(what))
        }
        Remark::Unrepeatable(of) => failure(of),
        Remark::AlwaysFails { schedules, outcome: same } => format!(
            "the program fails in the same way under all {schedules} schedules, so this is not a concurrency bug: {}",
            outcome(same)
        ),
        Remark::AlwaysExits(code) => format!(
            "the program exits with {code} under every schedule in which nothing else goes wrong"
        ),
        Remark::OneThread => {
            "only one thread ran, so there is one schedule and nothing to search for".to_owned()
        }
        Remark::CutOff { executions, at } => {
            let were = if *executions == 1 { "was" } else { "were" };
            let after = match at {
                CutOff::Steps(steps) => format!("{steps} steps"),
                CutOff::Time(seconds) => format!("{seconds} s (--patience)"),
            };
            format!("{} {were} cut off after {after}", count(*executions, "execution"))
        }
        Remark::Stopped(why) => stopped(*why),
        Remark::Told(text) => text.clone(),
    }
}

/// Why a command stopped early.
pub fn stopped(why: Stopped) -> String {
    match why {
        Stopped::Signal(number) => format!("stopped by {}", signal(number)),
        Stopped::Time(seconds) => format!("stopped after {seconds} s (--time)"),
    }
}

/// Where a replay diverged: `at choice 3, …`.
pub fn divergence(of: &Divergence) -> String {
    let Divergence { step, segment, thread, reason } = *of;
    let why = match reason {
        Reason::NotEnabled => "should run but cannot".to_owned(),
        Reason::OtherStep { expected, found } => {
            format!("should stop before step {expected} but is at step {found}")
        }
    };
    format!("at choice {step}, segment {} of the schedule: thread {} {why}", segment + 1, thread.0)
}

pub(super) fn diverged(of: &Diverged) -> String {
    match of {
        Diverged::At(at) => divergence(at),
        Diverged::Told(text) => text.clone(),
    }
}

/// What to do if executions that run at the same time use one object.
pub(crate) const SHARED_STATIC: &str = "executions that run on several cores share a static: make the object in the test body, or use `Explore::jobs(1)`";

/// Why two executions of one schedule differ.
pub(super) fn cause(of: &Cause) -> String {
    match of {
        Cause::Waited(what) => uncontrolled(what),
        Cause::Process => "the program asked for the number of its process".to_owned(),
        Cause::Proc => "the program read a file in /proc".to_owned(),
        Cause::Addresses => {
            "the program depends on an address: executions differ only when it is loaded elsewhere".to_owned()
        }
        Cause::Unknown => {
            "something that is not seen here: other processes, files that change, the processor's own clock \
             or random numbers, or code that synchronizes without the C library"
                .to_owned()
        }
        Cause::Test => {
            "look for time, random numbers, the order of a HashMap, addresses, statics that keep state, or \
             types of std::sync and std::thread used inside the check"
                .to_owned()
        }
        Cause::SharedStatic => SHARED_STATIC.to_owned(),
        Cause::Told(text) => text.clone(),
    }
}

fn uncontrolled(what: &Uncontrolled) -> String {
    let Uncontrolled::SystemCall { thread, number, on } = what;
    let name = match number.map(|n| call(n).ok_or(n)) {
        Some(Ok(name)) => format!("{name}(2)"),
        Some(Err(number)) => format!("system call {number}"),
        None => "a system call".to_owned(),
    };
    let on = match on {
        None => String::new(),
        Some(Descriptor::Pipe) => " on a pipe".to_owned(),
        Some(Descriptor::Socket) => " on a socket".to_owned(),
        Some(Descriptor::Kernel(kind)) => format!(" on an {kind}"),
        Some(Descriptor::File(path)) => format!(" on {path}"),
    };
    format!("thread {} was in {name}{on} while others went on", thread.0)
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
