//! What an execution of a process leaves behind becomes an [`Outcome`](engine::Outcome).
//!
//! A failure is recognised by a signal, the line that a failed `assert` or a Rust panic writes, threads
//! that all wait, or a fair execution in which nothing changes any more. One that was cut off is undecided. One that
//! ends by itself and used memory after it was freed is a failure as well.

use selvedge_engine::{self as engine, Limit};
use selvedge_model::{Blocked, Ended, Failure, Finding, Kind, Role};

use super::{Controlled, Execution, Outcome};
use crate::crash;
use crate::last_words::{message, rust_panic};

impl Controlled {
    /// How the execution that ran last ended.
    pub(super) fn outcome(&mut self, execution: &Execution) -> engine::Outcome {
        let errors = String::from_utf8_lossy(&execution.stderr);
        if let (Outcome::Exited(_), Some(misuse)) = (&execution.outcome, &execution.misuse) {
            return engine::Outcome::Failed(Box::new(misuse.clone()));
        }
        let finding = match &execution.outcome {
            Outcome::Exited(0) => return engine::Outcome::Exited(0),
            // Rust's test harness holds back what a test says, and shows it on standard output.
            Outcome::Exited(code) => match message(&errors)
                .or_else(|| rust_panic(&String::from_utf8_lossy(&execution.stdout)))
            {
                Some(message) => {
                    message.finding(Ended::Code(*code), execution.last, &mut self.symbols)
                }
                None => return engine::Outcome::Exited(*code),
            },
            Outcome::Signaled(signal) => {
                let crash = execution.crash.as_ref();
                crash::finding(*signal, crash, &errors, execution.last, &mut self.symbols)
            }
            Outcome::Deadlock(blocked) => self.stuck(blocked),
            Outcome::NoProgress => {
                Finding::failure(Kind::Hang, Failure::Steps(execution.steps), Vec::new())
            }
            Outcome::StepLimit => {
                return engine::Outcome::Undecided(Limit::Steps(execution.steps));
            }
            Outcome::TimeLimit => {
                return engine::Outcome::Undecided(Limit::Time(self.settings.time));
            }
        };
        engine::Outcome::Failed(Box::new(finding))
    }

    fn stuck(&mut self, blocked: &[super::Blocked]) -> Finding {
        let blocked: Vec<Blocked> = blocked.iter().map(|b| self.waiting(b)).collect();
        Finding::stuck(&blocked, |site| self.resolver.is_library(&self.symbols.site(site)))
    }

    fn waiting(&mut self, b: &super::Blocked) -> Blocked {
        let (wants, mode) = match b.pending.step.awaited() {
            // Without a name it may as well be the inside of a lock.
            (Role::Await(cond), mode) if !self.is_named(cond) => (Role::Sleep, mode),
            awaited => awaited,
        };
        Blocked {
            thread: b.thread,
            site: b.pending.site,
            wants,
            mode,
            holds: b.holds.clone(),
            waits_for: b.waits_for,
        }
    }
}
