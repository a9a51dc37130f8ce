//! All cases of a command, and what was analysed.

use crate::Case;

/// Everything that a command found.
#[derive(Clone, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Report {
    pub cases: Vec<Case>,
    pub stats: Stats,
}

/// What was analysed.
#[derive(Clone, PartialEq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[allow(missing_docs)]
pub struct Stats {
    pub traces: usize,
    pub events: u64,
    pub threads: usize,
    pub analyses: Vec<String>,
    /// Limits that were reached.
    pub bounds: Vec<Bound>,
    /// What controlled executions cost, if there were any.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub control: Option<Effort>,
}

/// A limit that was reached, because of which findings may be missing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Bound {
    /// An analysis keeps at most `limit` of something.
    Analysis { trace: Option<String>, analysis: String, what: String, limit: u64, exceeded: u64 },
    /// This many events could not be recorded.
    Events(u64),
    /// This many functions were not tracked as regions.
    Functions(u64),
    /// `seen` pairs of places raced, and `kept` of them are reported.
    Races { seen: u64, kept: u64 },
    /// An option names functions by a pattern that matched nothing.
    Unmatched(String),
    /// Only this many events of an observed execution were analysed.
    Beginning(u64),
    /// The sentence that an earlier version stored.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Told(String),
}

impl Bound {
    /// The limit as a sentence.
    pub fn words(&self) -> String {
        match self {
            Bound::Analysis { trace, analysis, what, limit, exceeded } => {
                let of = trace.as_ref().map_or(String::new(), |trace| format!("{trace}: "));
                format!(
                    "{of}{analysis}: at most {limit} {what}; the limit was exceeded {exceeded} times, so findings may be missing"
                )
            }
            Bound::Events(lost) => {
                format!("{lost} events could not be recorded, so findings may be missing")
            }
            Bound::Functions(lost) => {
                format!("{lost} functions were not tracked as regions: the table is full")
            }
            Bound::Races { seen, kept } => {
                format!("races: {seen} pairs of places raced, but only {kept} are reported")
            }
            Bound::Unmatched(option) => {
                format!("`{option}` matches no function or region that was seen")
            }
            Bound::Beginning(events) => {
                format!("only the first {events} events of an observed execution were analysed")
            }
            Bound::Told(text) => text.clone(),
        }
    }
}

/// What controlled executions cost.
#[derive(Clone, PartialEq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[allow(missing_docs)]
pub struct Effort {
    /// Controlled executions of the whole command.
    pub schedules: u64,
    pub seconds: f64,
    pub seed: u64,
    /// Whether every schedule was seen.
    pub complete: bool,
    /// Remarks, as sentences.
    pub remarks: Vec<String>,
}

impl Report {
    /// Adds a case, or counts it as another occurrence of the same.
    pub fn add(&mut self, case: Case) {
        match self.cases.iter_mut().find(|c| c.id == case.id) {
            None => self.cases.push(case),
            Some(known) => {
                let new = case.analyses.iter().filter(|a| !known.analyses.contains(a));
                let newcomers: Vec<String> = new.cloned().collect();
                // Counts of different analyses do not add up: they saw the same occurrences.
                let occurrences = match newcomers.is_empty() {
                    true => known.occurrences + case.occurrences,
                    false => known.occurrences.max(case.occurrences),
                };
                let mut analyses = std::mem::take(&mut known.analyses);
                if case.status > known.status {
                    *known = case;
                    analyses.splice(0..0, newcomers);
                } else {
                    analyses.extend(newcomers);
                }
                (known.analyses, known.occurrences) = (analyses, occurrences);
            }
        }
    }

    /// The cases, surest first, and otherwise in the order they were found.
    pub fn sorted(&self) -> Vec<&Case> {
        let mut sorted: Vec<_> = self.cases.iter().collect();
        sorted.sort_by_key(|c| std::cmp::Reverse(c.status));
        sorted
    }
}

#[cfg(test)]
mod tests {
    use selvedge_model::{Finding, Kind, Range, Status, Subject, Symbols};

    use super::*;

    fn case(analysis: &'static str, status: Status, occurrences: u64) -> Case {
        let finding = Finding {
            kind: Kind::DataRace,
            status,
            verdict: None,
            analyses: vec![analysis],
            subject: Subject::Memory(Range { start: 8, len: 8 }),
            places: Vec::new(),
            target: None,
            occurrences,
        };
        Case::new(&finding, &Symbols::default())
    }

    #[test]
    fn a_case_of_several_analyses_names_them_all_and_counts_occurrences_once() {
        let mut report = Report::default();
        report.add(case("lockset", Status::Predicted, 3));
        report.add(case("races", Status::Observed, 2));
        report.add(case("races", Status::Observed, 4));
        let told = report.cases.iter().map(|c| (c.status, c.analyses.clone(), c.occurrences));
        let analyses = vec!["races".to_owned(), "lockset".to_owned()];
        assert_eq!(told.collect::<Vec<_>>(), [(Status::Observed, analyses, 7)]);
    }
}
