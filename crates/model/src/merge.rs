//! When two reports are of the same finding, and what becomes of them.
//!
//! Reports with equal identities ([`FindingId`](crate::FindingId)) are the same finding; within one execution
//! it is enough that kind and sites are equal. They become one by [`merge`], whether they are findings in ids or
//! cases with names.

use crate::{Finding, Status};

/// Which of two reports keeps its description: subject, places and target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// The surer one; if both are equally sure, the first.
    Surer,
    /// The first.
    First,
    /// The second, with its count: it says more.
    Second,
}

/// A report of a finding that can be merged with another.
pub trait Reported {
    /// The name of an analysis.
    type Analysis: PartialEq;

    /// How sure it is, which analyses have found it, and how often.
    fn merged(&mut self) -> (&mut Status, &mut Vec<Self::Analysis>, &mut u64);
}

impl Reported for Finding {
    type Analysis = &'static str;

    fn merged(&mut self) -> (&mut Status, &mut Vec<&'static str>, &mut u64) {
        (&mut self.status, &mut self.analyses, &mut self.occurrences)
    }
}

/// Takes a second report of the same finding into the first. The surer status wins, and all analyses are
/// named, those of the kept report first. Counts of different analyses do not add up: they saw the same
/// occurrences.
pub fn merge<R: Reported>(first: &mut R, mut second: R, keep: Keep) {
    let (status, analyses, count) = first.merged();
    let (other_status, other_analyses, other_count) = second.merged();
    let is_second = match keep {
        Keep::Surer => other_status > status,
        Keep::First => false,
        Keep::Second => true,
    };
    let surest = (*status).max(*other_status);
    let is_known = other_analyses.iter().all(|a| analyses.contains(a));
    let occurrences = match keep {
        Keep::Second => *other_count,
        Keep::Surer | Keep::First if is_known => *count + *other_count,
        Keep::Surer | Keep::First => (*count).max(*other_count),
    };
    let (mut names, mut others) = (std::mem::take(analyses), std::mem::take(other_analyses));
    if is_second {
        std::mem::swap(first, &mut second);
        std::mem::swap(&mut names, &mut others);
    }
    for name in others {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let (status, analyses, count) = first.merged();
    (*status, *analyses, *count) = (surest, names, occurrences);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, Kind};

    #[test]
    fn the_kept_report_describes_the_finding_and_every_analysis_is_named() {
        let report = |code, status, analysis, occurrences| {
            let failure = Failure::Exit { code, usual: 0 };
            let finding = Finding::failure(Kind::Assertion, failure, Vec::new());
            Finding { status, analyses: vec![analysis], occurrences, ..finding }
        };
        for (keep, code, analyses, occurrences) in [
            (Keep::Surer, 2, ["b", "a"], 3),
            (Keep::First, 1, ["a", "b"], 3),
            (Keep::Second, 2, ["b", "a"], 2),
        ] {
            let mut first = report(1, Status::Predicted, "a", 3);
            merge(&mut first, report(2, Status::Observed, "b", 2), keep);
            let mut expected = report(code, Status::Observed, "a", occurrences);
            expected.analyses = analyses.to_vec();
            assert_eq!(first, expected, "{keep:?}");
            merge(&mut first, report(3, Status::Predicted, "a", 1), Keep::Surer);
            expected.occurrences += 1;
            assert_eq!(first, expected, "counts of one analysis add up");
        }
    }
}
