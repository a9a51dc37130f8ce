//! One run's way into the store.

use std::path::Path;

use selvedge_report::{Case, Stats};

use super::{RunId, Store, StoreError};
use crate::control::program::Setup;
use crate::exit::warning_label;

/// Opens the store. If it cannot be written, the user is told and the program runs all the same.
pub(crate) fn open(directory: &Path) -> Option<Store> {
    Store::create(directory)
        .map_err(|error| {
            anstream::eprintln!("{}: findings are not stored: {error}", warning_label());
        })
        .ok()
}

/// A run as the store sees it. A store that fails once is not asked again.
#[derive(Default)]
pub(crate) struct Journal(Option<(Store, RunId)>);

impl Journal {
    /// Begins a run; findings of one without a store are shown only.
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

    /// Keeps what running the program again needs.
    pub(crate) fn remember(&mut self, setup: &Setup) {
        if let Some((store, run)) = &mut self.0
            && let Err(error) = store.remember(*run, setup)
        {
            warn_unstored(&error);
            self.0 = None;
        }
    }

    /// Stores a finding, in place of what was stored of it before.
    pub(crate) fn add(&mut self, case: &Case) {
        if let Some((store, run)) = &mut self.0
            && let Err(error) = store.add(*run, case)
        {
            warn_unstored(&error);
            self.0 = None;
        }
    }

    /// The run has ended.
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
    anstream::eprintln!("{label}: what is found from here on is shown but not stored: {error}");
}
