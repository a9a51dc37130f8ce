//! Stores findings and shows progress while a campaign runs, and stops it in time.

use std::time::{Duration, Instant};

use selvedge_engine::{Attempted, Found, Host, SoFar, Violation};
use selvedge_runtime::control::WatchList;

use super::cases::{Predicted, failure};
use super::determinism;
use crate::deadline::Deadline;
use crate::program::suppress::Suppressions;
use crate::progress::Schedules;
use crate::store::Journal;

/// How often what was learnt is stored: a test that is killed loses no more than this.
const STORED: Duration = Duration::from_secs(1);

/// Stores what a later test has to know.
pub(crate) struct Keeper<'a> {
    store: &'a dyn Fn(&SoFar<'_>, &mut Journal),
    last: Instant,
}

impl<'a> Keeper<'a> {
    /// Stores by `store`.
    pub(crate) fn new(store: &'a dyn Fn(&SoFar<'_>, &mut Journal)) -> Keeper<'a> {
        Keeper { store, last: Instant::now() }
    }
}

/// The command line's [`Host`]: stores each finding when it is made, and updates the progress line.
pub(crate) struct Watcher<'a> {
    pub(crate) deadline: &'a Deadline,
    pub(crate) journal: &'a mut Journal,
    pub(crate) progress: Schedules,
    pub(crate) predicted: &'a [Predicted],
    pub(crate) suppressions: &'a Suppressions,
    /// The name of the analysis in the cases of undirected failures.
    pub(crate) by: &'static str,
    /// Keeps what was learnt, if a later command can use it.
    pub(crate) keeper: Option<Keeper<'a>>,
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

    fn learnt(&mut self, so_far: &SoFar<'_>) {
        if let Some(keeper) = self.keeper.as_mut().filter(|k| k.last.elapsed() >= STORED) {
            (keeper.store)(so_far, self.journal);
            keeper.last = Instant::now();
        }
    }
}
