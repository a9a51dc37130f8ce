//! Writes one run into the store.

use std::path::Path;

use selvedge_engine::{Differing, Origin};
use selvedge_model::Site;
use selvedge_report::{Case, Stats};
use selvedge_specs::states::{Checked, Obstacle};
use selvedge_specs::{BlockExecution, Judge, Trouble};

use super::states::About;
use super::{Learnt, RunId, Setup, Store, StoreError};
use crate::messages::warning_label;

/// Opens the store. If that fails, a warning is printed and the program runs without it.
pub(crate) fn open(directory: &Path) -> Option<Store> {
    Store::create(directory)
        .map_err(|error| {
            anstream::eprintln!("{}: findings will not be stored: {error}", warning_label());
        })
        .ok()
}

/// How an execution of a block compares, and the build of the execution that it differs from.
pub(crate) type Compared = (Checked<Site>, Option<String>);

/// A run in the store. After the first error nothing more is written.
#[derive(Default)]
pub(crate) struct Journal(Option<(Store, RunId)>);

impl Journal {
    /// Begins a run. Without a store, findings are only shown.
    pub(crate) fn begin(
        store: Option<Store>,
        command: &[String],
        mode: &str,
        sight: &str,
    ) -> Journal {
        let mut journal = Journal(None);
        if let Some(mut store) = store {
            match store.begin(command, mode, sight) {
                Ok(run) => journal.0 = Some((store, run)),
                Err(error) => warn_unstored(&error),
            }
        }
        journal
    }

    /// Stores what is needed to run the program again.
    pub(crate) fn remember(&mut self, setup: &Setup) {
        if let Some((store, run)) = &mut self.0
            && let Err(error) = store.remember(*run, setup)
        {
            warn_unstored(&error);
            self.0 = None;
        }
    }

    /// Stores a finding, or replaces it.
    pub(crate) fn add(&mut self, case: &Case) {
        if let Some((store, run)) = &mut self.0
            && let Err(error) = store.add(*run, case)
        {
            warn_unstored(&error);
            self.0 = None;
        }
    }

    /// Compares an execution of a block with the stored ones and stores it; nothing without a store.
    pub(crate) fn check_block(
        &mut self,
        execution: &BlockExecution<Site>,
        about: &About,
        judge: &mut dyn Judge,
    ) -> Option<Result<Compared, Box<Trouble<Site>>>> {
        let (store, run) = self.0.as_mut()?;
        let about = About { run: Some(*run), ..about.clone() };
        match store.check_block(execution, &about, judge) {
            Ok((_, checked)) => {
                let earlier = checked.violation.as_ref().map(|v| v.earlier);
                let stored = earlier.and_then(|id| store.block_execution(id).ok().flatten());
                Some(Ok((checked, stored.map(|s| s.build))))
            }
            Err(obstacle) => match *obstacle {
                Obstacle::Trouble(trouble) => Some(Err(Box::new(trouble))),
                Obstacle::Storage(error) => {
                    warn_unstored(&error);
                    self.0 = None;
                    None
                }
            },
        }
    }

    /// Compares an execution in what was inferred of its block: what differs, if anything does.
    pub(crate) fn check_promise(
        &mut self,
        execution: &BlockExecution<Site>,
        about: &About,
    ) -> Option<(Differing, Origin)> {
        let (store, run) = self.0.as_mut()?;
        let about = About { run: Some(*run), ..about.clone() };
        match store.check_promise(execution, &about) {
            Ok(differing) => differing.map(|(differing, id)| {
                let stored = store.block_execution(id).ok().flatten();
                let build = stored.map(|s| s.build).filter(|build| *build != about.build);
                (differing, Origin { schedule: None, build })
            }),
            Err(error) => {
                warn_unstored(&error);
                self.0 = None;
                None
            }
        }
    }

    /// What earlier tests of this build have taught, and what failed before in any build; nothing without a store.
    pub(crate) fn past(&self, setup: &Setup) -> (Learnt, Vec<Case>) {
        let Some((store, _)) = &self.0 else { return Default::default() };
        // What cannot be read is learnt again.
        let learnt = store.learnt(setup).unwrap_or_default();
        (learnt, store.failed_before(setup).unwrap_or_default())
    }

    /// Stores what tests of this build have taught.
    pub(crate) fn learn(&mut self, setup: &Setup, learnt: &Learnt) {
        if let Some((store, _)) = &mut self.0
            && let Err(error) = store.learn(setup, learnt)
        {
            warn_unstored(&error);
            self.0 = None;
        }
    }

    /// Stores how the run ended.
    pub(crate) fn finish(&mut self, ending: &str, stats: &Stats) {
        if let Some((store, run)) = &mut self.0
            && let Err(error) = store.finish(*run, ending, stats)
        {
            warn_unstored(&error);
            self.0 = None;
        }
    }
}

fn warn_unstored(error: &StoreError) {
    let label = warning_label();
    anstream::eprintln!("{label}: findings from here on are shown but not stored: {error}");
}
