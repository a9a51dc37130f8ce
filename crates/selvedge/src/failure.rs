//! What can go wrong in an execution, and what is known about it.

use std::fmt;

use selvedge_explore::Step;
use selvedge_model::{Finding, Kind, Mode, Op, Schedule, Site, SiteId, Status, Symbols, ThreadId};
use selvedge_report::{Act, Case, advice, words};

use crate::analyses::RACES;
use crate::report;

/// A panic of a controlled thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Panicked {
    /// The message.
    pub message: String,
    /// `file:line:column`.
    pub location: String,
}

impl Panicked {
    pub(crate) fn unknown() -> Panicked {
        Panicked { message: "panicked without a message".into(), location: String::new() }
    }
}

/// A thread that waits for something that never comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocked {
    /// Which thread.
    pub thread: ThreadId,
    /// Its name.
    pub name: String,
    /// What it cannot do.
    pub step: Step,
    /// Where.
    pub site: Site,
    /// Who holds what it waits for, or is waited for itself.
    pub holder: Option<(ThreadId, String)>,
}

/// Why an execution failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The test body panicked, or a thread that was not joined did.
    Panic {
        /// Name of the thread.
        thread: String,
        /// The panic.
        panicked: Panicked,
    },
    /// Every thread waits for another, or these do.
    Deadlock(Vec<Blocked>),
    /// The test body returned and these threads wait for ever.
    Leak(Vec<Blocked>),
    /// The execution took more steps than allowed.
    Livelock {
        /// How many were allowed.
        steps: usize,
    },
    /// An analysis found a bug that happened in the execution, or that a directed schedule confirmed.
    Finding(Box<Finding>),
    /// A destructor had to wait for another thread while its thread was unwinding.
    BlockedInUnwinding {
        /// Name of the thread.
        name: String,
        /// Where it had to wait: `file:line:column`.
        at: String,
        /// What it was unwinding from.
        panicked: Option<Panicked>,
    },
    /// The same schedule did not lead to the same steps.
    Nondeterminism {
        /// After how many steps.
        step: usize,
        /// What was done there the first time.
        expected: String,
        /// What was done there the second time.
        found: String,
    },
    /// The test body did not come to a scheduling point for a long time.
    Stall {
        /// For how many seconds.
        seconds: u64,
    },
    /// No memory for the stack of a thread.
    NoStack {
        /// How many threads there were.
        threads: usize,
        /// What the system said.
        error: String,
    },
    /// An object is used by two executions at a time.
    SharedBetweenExecutions {
        /// Where it was made.
        made: String,
    },
}

impl Cause {
    /// A name for the kind of failure.
    pub fn kind(&self) -> Kind {
        match self {
            Cause::Panic { .. } | Cause::BlockedInUnwinding { .. } => Kind::Assertion,
            Cause::Deadlock(_) => Kind::Deadlock,
            Cause::Leak(_) | Cause::Livelock { .. } | Cause::Stall { .. } => Kind::Hang,
            Cause::Finding(finding) => finding.kind,
            Cause::Nondeterminism { .. } => Kind::DeterminismViolation,
            Cause::NoStack { .. } | Cause::SharedBetweenExecutions { .. } => Kind::Crash,
        }
    }

    /// Whether two executions failed in the same way.
    pub(crate) fn same(&self, other: &Cause) -> bool {
        fn places(list: &[Blocked]) -> Vec<String> {
            let mut places: Vec<String> = list.iter().map(|b| b.site.to_string()).collect();
            places.sort_unstable();
            places
        }
        match (self, other) {
            (Cause::Panic { panicked: a, .. }, Cause::Panic { panicked: b, .. }) => {
                a.location == b.location
            }
            (Cause::Deadlock(a), Cause::Deadlock(b)) | (Cause::Leak(a), Cause::Leak(b)) => {
                places(a) == places(b)
            }
            (Cause::Livelock { .. }, Cause::Livelock { .. }) => true,
            (Cause::Finding(a), Cause::Finding(b)) => {
                let sites = |f: &Finding| {
                    let mut sites: Vec<SiteId> = f.places.iter().map(|p| p.site).collect();
                    sites.sort_unstable();
                    sites
                };
                a.kind == b.kind && sites(a) == sites(b)
            }
            (Cause::BlockedInUnwinding { at: a, .. }, Cause::BlockedInUnwinding { at: b, .. }) => {
                a == b
            }
            _ => false,
        }
    }

    /// Whether replaying a shorter schedule can make the failure clearer.
    pub(crate) fn can_be_minimised(&self) -> bool {
        !matches!(
            self,
            Cause::Nondeterminism { .. }
                | Cause::Stall { .. }
                | Cause::NoStack { .. }
                | Cause::SharedBetweenExecutions { .. }
        )
    }
}

/// A failed check.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Why.
    pub cause: Cause,
    /// In which execution, counted from 1.
    pub execution: u64,
    /// The schedule that fails, with few preemptions.
    pub schedule: Schedule,
    /// The failure in words: what happened, the interleaving, and how to replay it.
    pub(crate) text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// Whether a thread waits to read because another one waits to write.
fn waits_behind(reader: &Blocked, list: &[Blocked]) -> bool {
    let Some((whom, _)) = &reader.holder else { return false };
    let writer = list.iter().find(|b| b.thread == *whom).map(|b| b.step);
    match (reader.step, writer) {
        (
            Step::Do(Op::Acquire(read, Mode::Shared)),
            Some(Step::Do(Op::Acquire(written, Mode::Exclusive))),
        ) => read == written,
        _ => false,
    }
}

/// The cause in words.
pub(crate) fn cause_in_words(cause: &Cause, symbols: &Symbols) -> String {
    let blocked = |list: &[Blocked]| -> String {
        list.iter()
            .map(|b| {
                let holder = match &b.holder {
                    Some((_, name)) if waits_behind(b, list) => {
                        format!(", behind {name}, which waits to write")
                    }
                    Some((t, _)) if *t == b.thread => ", which it holds itself".to_owned(),
                    Some((_, name)) if matches!(b.step, Step::Do(Op::Join(_))) => {
                        format!(", which is {name}")
                    }
                    Some((_, name)) => format!(", held by {name}"),
                    None => String::new(),
                };
                let waits = Act::of_step(b.step, symbols).waiting();
                format!("\n  {} {waits} at {}{holder}", b.name, b.site)
            })
            .collect()
    };
    match cause {
        Cause::Panic { thread, panicked } => {
            format!("{thread} panicked at {}:\n  {}", panicked.location, panicked.message)
        }
        Cause::Deadlock(list) if list.iter().any(|b| waits_behind(b, list)) => {
            format!("deadlock: threads wait in a circle, readers behind writers{}", blocked(list))
        }
        Cause::Deadlock(list) => {
            let advice = advised(&report::stuck(list, symbols));
            format!("deadlock: no thread can go on{}{advice}", blocked(list))
        }
        Cause::Leak(list) => {
            format!(
                "threads leaked: the test body returned, and these wait for ever{}",
                blocked(list)
            )
        }
        Cause::Livelock { steps } => format!(
            "livelock: more than {steps} steps; if the test is just long, raise it with \
             `Explore::max_steps`"
        ),
        Cause::Finding(finding) => finding_in_words(finding, symbols),
        Cause::BlockedInUnwinding { name, at, panicked } => {
            let after = match panicked {
                Some(p) => format!("{name} panicked at {}:\n  {}\nand then", p.location, p.message),
                None => format!("{name} was unwinding and"),
            };
            format!(
                "{after} a destructor had to wait for another thread at {at}; that cannot be \
                 followed further"
            )
        }
        Cause::Nondeterminism { step, expected, found } => format!(
            "uncontrolled nondeterminism: with the same schedule, step {step} was\n  {expected}\nand \
             then\n  {found}\nLook for time, random numbers, the order of a HashMap, addresses, \
             statics that keep state, or types of std::sync and std::thread used inside the check."
        ),
        Cause::Stall { seconds } => format!(
            "stalled: no scheduling point for {seconds} s. The test body loops without one, or it \
             blocks on something that is not controlled, such as a lock of std::sync"
        ),
        Cause::NoStack { threads, error } => {
            format!("no stack for thread {threads}: {error}; lower `Explore::stack_size`")
        }
        Cause::SharedBetweenExecutions { made } => format!(
            "the object made at {made} is used by two executions at a time. A static is shared by \
             the executions that run on several cores: use `Explore::jobs(1)`"
        ),
    }
}

/// A finding in words: what, where, why and what helps.
pub(crate) fn finding_in_words(finding: &Finding, symbols: &Symbols) -> String {
    let case = report::case(finding, symbols);
    let places: String = case
        .places
        .iter()
        .map(|p| format!("\n  {}: {}", p.site, words::sentence(case.kind, p)))
        .collect();
    // `races` predicts nothing by itself: see `exec::ownership`.
    let perhaps = match finding.analyses[..] {
        [RACES] if finding.status < Status::Observed => {
            "\n  unless the later access is made by the owner of the last `Arc`, which orders it"
        }
        _ => "",
    };
    format!(
        "{}: {} ({}), found by {}{places}{perhaps}{}",
        case.id,
        words::summary(&case),
        case.status.name(),
        case.analyses.join(", "),
        advised(&case)
    )
}

/// Why it is a bug, and what helps.
fn advised(case: &Case) -> String {
    let why = advice::why(case).map(|why| format!("\n  why: {why}"));
    let help = advice::missing(case).map(|help| format!("\n  help: {help}"));
    [why, help].into_iter().flatten().collect()
}
