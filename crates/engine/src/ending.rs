//! How an execution ended, in terms that outlive it.

use std::sync::{Arc, LazyLock};

use selvedge_model::{Failure, Finding, FindingId, Kind, Status, Subject, Symbols};

use crate::executor::{Execution, Executor, Outcome};

/// How an execution ended, with the names that it takes to tell.
#[derive(Clone, Debug)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// The names of what a failure mentions; nothing where it did not fail.
    pub symbols: Arc<Symbols>,
    /// By which it is recognised.
    pub key: Key,
}

/// What two executions that ended in the same way have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Key {
    /// The exit code.
    Exited(i32),
    /// The identity of the failure.
    Failed(FindingId),
}

impl Ending {
    /// Of the execution that an executor has just run.
    pub fn of<X: Executor>(executor: &mut X, execution: &Execution) -> Ending {
        match &execution.outcome {
            Outcome::Exited(code) => Ending::exited(*code),
            Outcome::Failed(finding) => {
                Ending::failed((**finding).clone(), Arc::new(executor.named(execution)))
            }
        }
    }

    /// By itself.
    pub fn exited(code: i32) -> Ending {
        static NOTHING: LazyLock<Arc<Symbols>> = LazyLock::new(Arc::default);
        let symbols = Arc::clone(&NOTHING);
        Ending { outcome: Outcome::Exited(code), symbols, key: Key::Exited(code) }
    }

    /// With a failure.
    pub fn failed(finding: Finding, symbols: Arc<Symbols>) -> Ending {
        let key = Key::Failed(finding.id(&symbols));
        Ending { outcome: Outcome::Failed(Box::new(finding)), symbols, key }
    }

    /// An exit code that only some schedules lead to.
    pub fn odd_exit(code: i32, usual: i32) -> Ending {
        let finding = Finding {
            kind: Kind::Assertion,
            status: Status::Observed,
            verdict: None,
            analyses: vec!["schedules"],
            subject: Subject::Program(Failure::Exit { code, usual }),
            places: Vec::new(),
            target: None,
            occurrences: 1,
        };
        Ending::failed(finding, Arc::default())
    }

    /// The failure, if it is one.
    pub fn finding(&self) -> Option<&Finding> {
        match &self.outcome {
            Outcome::Exited(_) => None,
            Outcome::Failed(finding) => Some(finding),
        }
    }

    /// Whether the execution was cut off rather than seen to end.
    pub fn is_limit(&self) -> bool {
        let failure = self.finding().map(|f| &f.subject);
        matches!(failure, Some(Subject::Program(failure)) if failure.is_limit())
    }

    /// Whether it is the failure of that identity. An exit code is one where another is usual.
    pub fn is(&self, id: FindingId, usual: Option<i32>) -> bool {
        match self.key {
            Key::Failed(key) => key == id,
            Key::Exited(code) => {
                usual.is_some_and(|u| u != code)
                    && Ending::odd_exit(code, usual.unwrap_or(0)).key == Key::Failed(id)
            }
        }
    }
}
