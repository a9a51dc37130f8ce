//! Writes one run into the store.

use std::path::Path;

use selvedge_report::{Case, Stats};

use super::{RunId, Setup, Store, StoreError};
use crate::messages::warning_label;

/// Opens the store. If that fails, a warning is printed and the program runs without it.
pub(crate) fn open(directory: &Path) -> Option<Store> {
    Store::create(directory)
        .map_err(|error| {
            anstream::eprintln!("{}: findings will not be stored: {error}", warning_label());
        })
        .ok()
}

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
