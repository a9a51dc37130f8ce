//! All cases of a command, and what was analysed.

use selvedge_model::{Keep, Site, Uncontrolled};
use selvedge_specs::atomic::Interleavings;

use crate::{Baseline, Case, Failure, Outcome, Variable};

/// Everything that a command found.
#[derive(Clone, Default, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Report {
    pub cases: Vec<Case>,
    pub stats: Stats,
    /// What was inferred about variables, if that was asked.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub variables: Option<Vec<Variable>>,
    /// An earlier report to compare with.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub baseline: Option<Baseline>,
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
    /// What was found, but is not to be reported.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Vec::is_empty"))]
    pub suppressed: Vec<Suppressed>,
    /// Conflicts that `determinism` saw in blocks that ensure something, and atomic blocks that are not
    /// conflict-serializable where something is observed: what is ensured or observed says whether they matter.
    pub conflicts: u64,
    /// How interleavings of atomic blocks were judged, where something is observed.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub interleavings: Option<Interleavings>,
    /// How executions were judged that must be as if sequential.
    #[cfg_attr(feature = "serde", serde(default))]
    pub parallelism: Option<Parallelism>,
    /// What controlled executions cost, if there were any.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub control: Option<Effort>,
}

/// A finding that is not to be reported.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Suppressed {
    /// The finding.
    pub case: Case,
    /// The rule that says so, as users wrote it.
    pub rule: String,
}

impl Stats {
    /// Keeps a finding that is not to be reported.
    pub fn suppress(&mut self, suppressed: Suppressed) {
        if !self.suppressed.iter().any(|s| s.case.id == suppressed.case.id) {
            self.suppressed.push(suppressed);
        }
    }
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
    /// A rank ended before `MPI_Finalize`: accesses after the last barrier were not analysed.
    LastPhase,
    /// A rank could not remember this many accesses.
    Accesses(u64),
    /// Loads and stores of the program were not seen, only its calls of MPI.
    CallsOnly,
    /// Loads and stores of some ranks were not seen.
    SomeCallsOnly,
    /// A rank was built by another version.
    OtherVersion,
    /// A job has started ranks of another one.
    Spawned,
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
            Bound::LastPhase => {
                "a rank ended before MPI_Finalize: what ranks did after the last barrier was not analysed".to_owned()
            }
            Bound::Accesses(lost) => {
                format!("a rank could not remember {lost} accesses, so findings may be missing")
            }
            Bound::CallsOnly => {
                "the program is not instrumented: its calls of MPI were seen, and its loads and stores were not".to_owned()
            }
            Bound::SomeCallsOnly => {
                "some ranks are not instrumented: their calls of MPI were seen, and their loads and stores were not".to_owned()
            }
            Bound::OtherVersion => {
                "a rank was built by another version of Selvedge, so its loads and stores were not seen: build the program again".to_owned()
            }
            Bound::Spawned => {
                "the job has started another job (MPI_Comm_spawn): each was analysed for itself, and what they do to each other was not".to_owned()
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
    pub remarks: Vec<Remark>,
}

/// How executions were judged that must be as if sequential: by their data flow, and by sequential executions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Parallelism {
    /// The most tasks of one execution.
    pub tasks: u64,
    /// Executions that conform by their data flow.
    pub serializable: u64,
    /// Others that conform because a sequential execution shows the same.
    pub twins: u64,
    /// Sequential executions that were run.
    pub sequential: u64,
    /// Whether these are all.
    pub all: bool,
    /// Reads, writes, computations and branches of the largest execution.
    pub nodes: u64,
    /// How many of these do not matter for the result.
    pub irrelevant: u64,
    /// How many of these belong to no task.
    pub outside: u64,
    /// Circles of conflicts at different places, if everything mattered: strict conflict serializability.
    pub strict: u64,
    /// Circles of conflicts that matter, at different places, of executions without a sequential twin.
    pub circles: u64,
}

/// Something that users should know about controlled executions.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Remark {
    /// Of all accesses that may race, only the most that are possible are scheduling points.
    Points {
        all: usize,
        most: usize,
    },
    /// In this many executions the threads met.
    Met(u64),
    /// Earlier tests of the same build ran so many schedules, and this one went on from there.
    GoesOn {
        schedules: u64,
    },
    Uncontrolled(Uncontrolled),
    /// Two executions of one schedule differed.
    Unrepeatable(Box<Failure>),
    /// All schedules lead to the same failure.
    AlwaysFails {
        schedules: u64,
        outcome: Box<Outcome>,
    },
    /// A deterministic block was never left.
    Unclosed {
        block: String,
        site: Site,
    },
    /// Something is observed, and no two threads were in atomic blocks at the same time.
    NothingOverlapped,
    /// Something is observed, and no serial order of atomic blocks could be executed for so many interleavings of all.
    Unforced {
        interleavings: u64,
        #[cfg_attr(feature = "serde", serde(default))]
        of: u64,
    },
    /// Something is observed, and so many interleavings of all had more serial orders than are tried.
    TooManyOrders {
        interleavings: u64,
        #[cfg_attr(feature = "serde", serde(default))]
        of: u64,
    },
    /// A program that runs freely observes something: no serial execution was looked for.
    ObservedOnly,
    /// How executions were judged that must be as if sequential.
    AsIfSequential(Parallelism),
    /// Code that was not followed, by what was called, and how often.
    NotFollowed(Vec<(String, u64)>),
    /// Code that the program says commutes, by name.
    Believed(Vec<String>),
    /// The data flow of an execution says that it has a sequential twin, and none of the sequential executions shows
    /// the same.
    OwnError {
        execution: u64,
    },
    /// No two executions of a deterministic block could be compared.
    Incomparable {
        block: String,
        executions: u64,
    },
    /// All schedules in which nothing else goes wrong lead to this exit code.
    AlwaysExits(i32),
    /// Only one thread ran, so there is one schedule.
    OneThread,
    /// So many executions were cut off, and say nothing.
    CutOff {
        executions: u64,
        at: CutOff,
    },
    Stopped(Stopped),
    /// The sentence that an earlier version stored.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Told(String),
}

/// The limit at which an execution was cut off.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum CutOff {
    /// A number of steps.
    Steps(u64),
    /// The time limit of one execution, in seconds.
    Time(f64),
}

/// Why a command stopped early.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Stopped {
    /// By a signal.
    Signal(i32),
    /// At its time limit, in seconds.
    Time(f64),
}

impl Report {
    /// Adds a case, or counts it as another occurrence of the same.
    pub fn add(&mut self, case: Case) {
        self.merge(case, Keep::Surer);
    }

    /// Adds a case. If it is known, the two become one.
    pub fn merge(&mut self, case: Case, keep: Keep) -> &Case {
        let at = self.cases.iter().position(|c| c.id == case.id).unwrap_or(self.cases.len());
        match self.cases.get_mut(at) {
            None => self.cases.push(case),
            Some(known) => known.merge(case, keep),
        }
        &self.cases[at]
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
