//! Stores findings and shows progress while a campaign runs, and stops it in time.

use selvedge_engine::{Attempted, Found, Host, Violation};
use selvedge_runtime::control::WatchList;

use super::cases::{Predicted, failure};
use super::determinism;
use crate::deadline::Deadline;
use crate::program::suppress::Suppressions;
use crate::progress::Schedules;
use crate::store::Journal;

/// The command line's [`Host`]: stores each finding when it is made, and updates the progress line.
pub(crate) struct Watcher<'a> {
    pub(crate) deadline: &'a Deadline,
    pub(crate) journal: &'a mut Journal,
    pub(crate) progress: Schedules,
    pub(crate) predicted: &'a [Predicted],
    pub(crate) suppressions: &'a Suppressions,
    /// The name of the analysis in the cases of undirected failures.
    pub(crate) by: &'static str,
}

impl Host<WatchList> for Watcher<'_> {
    fn is_over(&self) -> bool {
        self.deadline.ends_exploring()
    }

    fn attempted(&mut self, index: usize, attempted: &Attempted) {
        if attempted.confirmed.is_some() {
            let case = self.predicted[index].after(attempted);
            if case.is_finding() {
                self.journal.add(&case);
            }
        }
    }

    fn found(&mut self, found: &Found<WatchList>) {
        let case = failure(found, self.by);
        if !self.suppressions.suppress(&case) {
            self.journal.add(&case);
        }
    }

    fn violated(&mut self, violation: &Violation<WatchList>) {
        let case = determinism::case(violation, None);
        if !self.suppressions.suppress(&case) {
            self.journal.add(&case);
        }
    }

    fn progress(&mut self, executions: u64, found: usize) {
        self.progress.advance(executions, found, self.deadline);
    }
}
