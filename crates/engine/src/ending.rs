//! How an execution ended, in a form that can be compared with other executions.

use std::sync::{Arc, LazyLock};

use selvedge_model::{Failure, Finding, FindingId, Kind, Subject, Symbols};

use crate::executor::{Execution, Executor, Limit, Outcome};

/// How an execution ended, with the names that describe it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Ending {
    /// The exit code or the failure.
    pub outcome: Outcome,
    /// The names of everything that a failure mentions; empty if the execution did not fail.
    pub symbols: Arc<Symbols>,
    /// Equal for executions that ended in the same way.
    pub key: Key,
}

/// Identifies an ending: executions with the same key ended in the same way.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub enum Key {
    /// The exit code.
    Exited(i32),
    /// The identity of the failure.
    Failed(FindingId),
    /// The execution was cut off.
    Undecided,
}

impl Ending {
    /// The ending of the execution that an executor has just run.
    pub fn of<X: Executor>(executor: &mut X, execution: &Execution) -> Ending {
        match &execution.outcome {
            Outcome::Exited(code) => Ending::exited(*code),
            Outcome::Undecided(limit) => Ending::undecided(*limit),
            Outcome::Failed(finding) => {
                Ending::failed((**finding).clone(), executor.named(execution))
            }
        }
    }

    /// The ending of an execution that exited with `code`.
    pub fn exited(code: i32) -> Ending {
        Ending::without_names(Outcome::Exited(code), Key::Exited(code))
    }

    /// The ending of an execution that was cut off.
    pub fn undecided(limit: Limit) -> Ending {
        Ending::without_names(Outcome::Undecided(limit), Key::Undecided)
    }

    fn without_names(outcome: Outcome, key: Key) -> Ending {
        static NOTHING: LazyLock<Arc<Symbols>> = LazyLock::new(Arc::default);
        Ending { outcome, symbols: Arc::clone(&NOTHING), key }
    }

    /// The ending of an execution that failed.
    pub fn failed(finding: Finding, symbols: Arc<Symbols>) -> Ending {
        let key = Key::Failed(finding.id(&symbols));
        Ending { outcome: Outcome::Failed(Box::new(finding)), symbols, key }
    }

    /// The failure that consists in an unusual exit code.
    pub fn odd_exit(code: i32, usual: i32) -> Ending {
        let failure = Failure::Exit { code, usual };
        let finding = Finding::failure(Kind::Assertion, failure, Vec::new());
        Ending::failed(finding, Arc::default())
    }

    /// The failure, if it is one.
    pub fn finding(&self) -> Option<&Finding> {
        match &self.outcome {
            Outcome::Exited(_) | Outcome::Undecided(_) => None,
            Outcome::Failed(finding) => Some(finding),
        }
    }

    /// Whether the execution did not end: it was cut off, or is stuck in a loop.
    pub fn is_endless(&self) -> bool {
        let failure = self.finding().map(|f| &f.subject);
        self.key == Key::Undecided
            || matches!(failure, Some(Subject::Program(failure)) if failure.is_endless())
    }

    /// Whether it is the failure `id`. An exit code is a failure if another code is usual.
    pub fn is(&self, id: FindingId, usual: Option<i32>) -> bool {
        match self.key {
            Key::Failed(key) => key == id,
            Key::Exited(code) => {
                usual.is_some_and(|u| u != code)
                    && Ending::odd_exit(code, usual.unwrap_or(0)).key == Key::Failed(id)
            }
            Key::Undecided => false,
        }
    }
}
