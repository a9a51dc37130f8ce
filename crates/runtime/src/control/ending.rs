//! What an execution of a process leaves behind becomes an [`Outcome`](engine::Outcome).
//!
//! A failure is recognised by a signal, the line that a failed `assert` or a Rust panic writes, threads
//! that all wait, or a fair execution in which nothing changes any more. One that was cut off is undecided.

use selvedge_engine::{self as engine, Limit};
use selvedge_model::{Blocked, Ended, Failure, Finding, Kind, Role, ThreadId};

use super::{Controlled, Execution, Outcome};
use crate::crash;
use crate::last_words::{message, rust_panic};

impl Controlled {
    /// How the execution that ran last ended.
    pub(super) fn outcome(&mut self, execution: &Execution) -> engine::Outcome {
        let errors = String::from_utf8_lossy(&execution.stderr);
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
        let circle = circle(&blocked);
        // That a thread joins one that waits is not why that one waits, and a library waits for all of
        // its threads.
        let matters = |b: &Blocked| {
            !matches!(b.wants, Role::Join(_))
                && !self.resolver.is_library(&self.symbols.site(b.site))
        };
        let part: Vec<ThreadId> = match circle.as_slice() {
            [] if blocked.iter().any(matters) => {
                blocked.iter().filter(|b| matters(b)).map(|b| b.thread).collect()
            }
            [] => blocked.iter().map(|b| b.thread).collect(),
            circle => circle.to_vec(),
        };
        let of = |&thread: &ThreadId| blocked.iter().find(|b| b.thread == thread).cloned();
        let others = blocked.iter().filter(|b| !part.contains(&b.thread)).cloned().collect();
        let part: Vec<Blocked> = part.iter().filter_map(of).collect();
        let places = part.iter().map(Blocked::place).collect();
        Finding::failure(Kind::Deadlock, Failure::Stuck { part, others }, places)
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

/// Threads each of which waits for a lock that the next one holds, if there are any.
fn circle(blocked: &[Blocked]) -> Vec<ThreadId> {
    let of = |thread: ThreadId| blocked.iter().find(|b| b.thread == thread);
    for start in blocked.iter().filter(|b| b.lock().is_some()) {
        let mut members = vec![start.thread];
        let mut at = start;
        while let Some(next) = at.waits_for.and_then(of).filter(|b| b.lock().is_some()) {
            if next.thread == start.thread {
                return members;
            }
            if members.contains(&next.thread) {
                break;
            }
            members.push(next.thread);
            at = next;
        }
    }
    Vec::new()
}
