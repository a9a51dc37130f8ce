//! What a failed check reports.

use std::fmt;

use selvedge_model::{Finding, Kind, Schedule, Status, Symbols};
use selvedge_report::{Case, Note, told};

use crate::report;

/// The analysis whose races [`ownership`](crate::exec) may make predictions of.
const RACES: &str = selvedge_analyses::fasttrack::ENTRY.name;

/// A failed check.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What went wrong, where, and in which threads.
    pub case: Case,
    /// In which execution, counted from 1.
    pub execution: u64,
    /// The schedule that fails, with few preemptions.
    pub schedule: Schedule,
    /// The schedules that show it: two, if two executions came to different results.
    pub schedules: Vec<Schedule>,
    /// The failure in words: what happened, the interleaving, and how to replay it.
    pub(crate) text: String,
}

impl Failure {
    /// What kind of bug it is.
    pub fn kind(&self) -> Kind {
        self.case.kind
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// A finding in words: what, where, why and what helps.
pub(crate) fn in_words(finding: &Finding, symbols: &Symbols) -> String {
    let mut case = report::case(finding, symbols);
    // `races` predicts nothing by itself: see `exec::ownership`.
    if finding.analyses == [RACES] && finding.status < Status::Observed {
        case.notes.push(Note::LastOwner);
    }
    told::finding(finding, &case, symbols)
}
