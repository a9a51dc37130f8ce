//! What has changed since an earlier report: findings that are new, still there, or gone, by their identity.

use std::collections::BTreeSet;

use selvedge_model::{FindingId, Kind, Status};

use crate::{Case, Report, words};

/// An earlier report, as far as a comparison needs it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Baseline {
    /// Everything that it has.
    pub findings: Vec<Known>,
}

/// A finding of an earlier report.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Known {
    /// Its identity.
    pub id: FindingId,
    /// What it is.
    pub kind: Kind,
    /// One line that says what it is.
    pub summary: String,
}

/// How a finding compares with an earlier report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Since {
    /// The earlier report does not have it.
    New,
    /// The earlier report has it, too.
    Still,
}

impl Since {
    /// As SARIF calls it.
    pub fn name(self) -> &'static str {
        match self {
            Since::New => "new",
            Since::Still => "unchanged",
        }
    }
}

impl Baseline {
    /// The findings of a report. Predictions that could not be confirmed are no findings to compare with.
    pub fn of(report: &Report) -> Baseline {
        let counts = |c: &&Case| c.status != Status::Unconfirmed;
        let known = |c: &Case| Known { id: c.id, kind: c.kind, summary: words::summary(c) };
        Baseline { findings: report.cases.iter().filter(counts).map(known).collect() }
    }

    /// Whether a finding is new.
    pub fn since(&self, id: FindingId) -> Since {
        match self.findings.iter().any(|known| known.id == id) {
            true => Since::Still,
            false => Since::New,
        }
    }

    /// The findings that a report does not have any more, each once.
    pub fn gone(&self, report: &Report) -> Vec<&Known> {
        let mut now: BTreeSet<String> = Baseline::of(report).ids().collect();
        self.findings.iter().filter(|known| now.insert(known.id.to_string())).collect()
    }

    fn ids(&self) -> impl Iterator<Item = String> + '_ {
        self.findings.iter().map(|known| known.id.to_string())
    }
}

impl Report {
    /// How a finding compares with the earlier report, if there is one.
    pub fn since(&self, case: &Case) -> Option<Since> {
        self.baseline.as_ref().map(|baseline| baseline.since(case.id))
    }

    /// The findings that are gone since the earlier report.
    pub fn gone(&self) -> Vec<&Known> {
        self.baseline.as_ref().map(|baseline| baseline.gone(self)).unwrap_or_default()
    }

    /// The comparison with the earlier report in lines of text: the counts, and what is new or gone.
    pub fn changes(&self) -> Vec<String> {
        let Some(baseline) = &self.baseline else { return Vec::new() };
        let now = Baseline::of(self).findings;
        let (new, still): (Vec<&Known>, Vec<&Known>) =
            now.iter().partition(|known| baseline.since(known.id) == Since::New);
        let gone = self.gone();
        let counts = format!("{} new, {} still there, {} gone", new.len(), still.len(), gone.len());
        let line = |word: &str, known: &Known| format!("{word}: {} ({})", known.summary, known.id);
        std::iter::once(counts)
            .chain(new.iter().map(|known| line("new", known)))
            .chain(gone.iter().map(|known| line("gone", known)))
            .collect()
    }
}
