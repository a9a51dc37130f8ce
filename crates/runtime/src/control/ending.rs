//! What an execution of a process leaves behind becomes an [`Outcome`](engine::Outcome).
//!
//! A failure is recognised by a signal, the line that a failed `assert` or a Rust panic writes, threads
//! that all wait, or a fair execution in which nothing changes any more. One that was cut off is undecided. One that
//! ends by itself and used memory after it was freed is a failure as well.

use selvedge_engine::{Limit, Outcome};
use selvedge_model::{Blocked, Ended, Failure, Finding, Kind, Role, ThreadId};

use super::Controlled;
use crate::crash::{self, Crash};
use crate::last_words::{message, rust_panic};

/// How the process ended, or why it was ended.
pub(super) enum End {
    /// With an exit code.
    Exited(i32),
    /// By a signal.
    Signaled(i32),
    /// No thread can go on.
    Stuck(Vec<Blocked>),
    /// It is stuck in loops: every thread that could run has run, and nothing changed.
    NoProgress,
    /// It was too long.
    Steps,
    /// It had more events than are kept, so many.
    Events(usize),
    /// It took too long.
    Time,
}

impl End {
    /// The execution was cut off, so later events are missing.
    pub(super) fn is_cut_off(&self) -> bool {
        matches!(self, End::NoProgress | End::Steps | End::Events(_) | End::Time)
    }
}

/// What else an execution leaves behind.
pub(super) struct LeftBehind<'a> {
    pub(super) output: &'a [u8],
    pub(super) errors: &'a [u8],
    pub(super) steps: u64,
    /// The thread that ran last.
    pub(super) last: ThreadId,
    /// Where it was when a signal ended it, if that is known.
    pub(super) crash: Option<&'a Crash>,
}

impl Controlled {
    /// How the execution that ran last ended.
    pub(super) fn outcome(&mut self, end: End, left: &LeftBehind<'_>) -> Outcome {
        let errors = String::from_utf8_lossy(left.errors);
        let last = left.last;
        let finding = match end {
            End::Exited(code) => {
                // Rust's test harness holds back what a test says, and shows it on standard output.
                let said = || rust_panic(&String::from_utf8_lossy(left.output));
                let said = || message(&errors).or_else(said).filter(|_| code != 0);
                match (self.misused_memory(), said()) {
                    (Some(misuse), _) => misuse,
                    (None, Some(message)) => {
                        message.finding(Ended::Code(code), last, &mut self.symbols)
                    }
                    (None, None) => return Outcome::Exited(code),
                }
            }
            End::Signaled(signal) => {
                crash::finding(signal, left.crash, &errors, last, &mut self.symbols)
            }
            End::Stuck(blocked) => self.stuck(blocked),
            End::NoProgress => Finding::failure(Kind::Hang, Failure::Steps(left.steps), Vec::new()),
            End::Steps => return Outcome::Undecided(Limit::Steps(left.steps)),
            End::Events(most) => return Outcome::Undecided(Limit::Steps(most as u64)),
            End::Time => return Outcome::Undecided(Limit::Time(self.settings.time)),
        };
        Outcome::Failed(Box::new(finding))
    }

    fn stuck(&mut self, mut blocked: Vec<Blocked>) -> Finding {
        for thread in &mut blocked {
            // Without a name it may as well be the inside of a lock.
            if matches!(thread.wants, Role::Await(cond) if !self.is_named(cond)) {
                thread.wants = Role::Sleep;
            }
        }
        Finding::stuck(&blocked, |site| self.resolver.is_library(&self.symbols.site(site)))
    }
}
