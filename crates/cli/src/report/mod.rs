//! Findings as people and programs get them: names instead of ids, across traces and runs.

pub(crate) mod advice;
pub(crate) mod interleaving;
pub(crate) mod json;
pub(crate) mod sources;
pub(crate) mod text;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::control::stage::Watched;

use selvedge_model::{
    Finding, Frame, Held, Kind, Mode, Role, Site, Status, Subject, Symbols, Verdict,
};

/// Everything that a command found.
#[derive(Default, Debug)]
pub(crate) struct Report {
    pub(crate) findings: Vec<ReportedFinding>,
    pub(crate) stats: Stats,
}

/// What was looked at.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Stats {
    pub(crate) traces: usize,
    pub(crate) events: u64,
    pub(crate) threads: usize,
    pub(crate) analyses: Vec<String>,
    /// Bounds that kept an analysis from finding all that it promises, in words.
    pub(crate) bounds: Vec<String>,
    /// What controlled executions cost, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<Effort>,
}

/// What controlled executions cost.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Effort {
    /// Controlled executions of the whole command.
    pub(crate) schedules: u64,
    pub(crate) seconds: f64,
    pub(crate) seed: u64,
    /// Whether every schedule was seen.
    pub(crate) complete: bool,
    /// What else is worth saying, in words.
    pub(crate) remarks: Vec<String>,
}

impl Report {
    /// Adds a finding, or counts it as another occurrence of the same.
    pub(crate) fn add(&mut self, finding: ReportedFinding) {
        match self.findings.iter_mut().find(|f| f.id == finding.id) {
            None => self.findings.push(finding),
            Some(known) => {
                let occurrences = known.occurrences + finding.occurrences;
                if finding.status > known.status {
                    *known = finding;
                }
                known.occurrences = occurrences;
            }
        }
    }

    /// The findings, surest first, and otherwise in the order they were found.
    pub(crate) fn sorted(&self) -> Vec<&ReportedFinding> {
        let mut sorted: Vec<_> = self.findings.iter().collect();
        sorted.sort_by_key(|f| std::cmp::Reverse(f.status));
        sorted
    }
}

/// A finding that has left its execution behind.
///
/// This is also the form in which the store keeps it: a field that is added needs a default, so that
/// findings of earlier versions stay readable.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct ReportedFinding {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) status: Status,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) analyses: Vec<String>,
    /// What it is about, by name: a variable, or locks.
    pub(crate) subject: Vec<String>,
    /// What else is known of the subject, such as where its memory was allocated.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    pub(crate) places: Vec<ReportedPlace>,
    pub(crate) occurrences: u64,
    /// What controlled executions made of it, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<Control>,
}

/// What controlled executions made of a finding.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Control {
    /// What replay needs, if it happened.
    pub(crate) schedule: Option<String>,
    /// Directed executions spent on it until it was confirmed or given up.
    pub(crate) attempts: u64,
    /// Controlled executions of the command when it was first seen or confirmed.
    pub(crate) after: Option<u64>,
    /// Of how many undirected executions it was seen in some.
    pub(crate) of: Option<u64>,
    /// Accesses that were scheduling points.
    pub(crate) watched: Vec<Watched>,
    /// What a directed execution aimed at; nothing for a failure, which shows by itself.
    pub(crate) aim: Option<Aim>,
    /// What each order of what happened led to, in words.
    pub(crate) orders: Vec<Order>,
    /// How it happens, for people, with colours.
    pub(crate) interleaving: String,
}

/// A target that has left its execution behind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Aim {
    Race { first: Site, second: Site },
    Split { first: Site, second: Site, between: Option<Site> },
}

/// One order of the parts of a confirmed finding, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Which, in words.
    pub(crate) order: String,
    /// How the program ended then.
    pub(crate) outcome: String,
    /// The schedule that shows it.
    pub(crate) schedule: String,
}

/// One thread's part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct ReportedPlace {
    pub(crate) thread: String,
    pub(crate) site: Site,
    pub(crate) role: ReportedRole,
    pub(crate) held: Vec<ReportedLock>,
    /// Which locks were held is not known, so that `held` being empty says nothing.
    #[serde(default)]
    pub(crate) held_unknown: bool,
    /// The calls that led to the site, innermost first, as far as they are known.
    #[serde(default)]
    pub(crate) stack: Vec<Site>,
    /// These calls led there, though perhaps not when the access was made.
    #[serde(default)]
    pub(crate) stack_likely: bool,
    /// The site is the likeliest of several.
    #[serde(default)]
    pub(crate) approximate: bool,
}

/// What the thread was doing: a verb, and what it was done to where that is not the subject.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ReportedRole {
    /// The name in JSON.
    pub(crate) name: Cow<'static, str>,
    pub(crate) object: Option<String>,
}

/// A lock that a thread holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ReportedLock {
    pub(crate) name: String,
    pub(crate) mode: Mode,
    pub(crate) site: Site,
}

impl ReportedPlace {
    /// Of which nothing else is known, nor which locks are held.
    pub(crate) fn new(thread: String, site: Site, role: ReportedRole) -> ReportedPlace {
        ReportedPlace {
            thread,
            site,
            role,
            held: Vec::new(),
            held_unknown: true,
            stack: Vec::new(),
            stack_likely: false,
            approximate: false,
        }
    }

    /// With the locks that are held.
    pub(crate) fn holding(self, held: &[Held], symbols: &Symbols) -> ReportedPlace {
        let lock = |h: &Held| ReportedLock {
            name: symbols.lock(h.lock),
            mode: h.mode,
            site: symbols.site(h.site),
        };
        ReportedPlace { held: held.iter().map(lock).collect(), held_unknown: false, ..self }
    }
}

impl ReportedFinding {
    /// Resolves the ids of a finding.
    pub(crate) fn new(finding: &Finding, symbols: &Symbols) -> ReportedFinding {
        let subject = match &finding.subject {
            Subject::Memory(range) => vec![symbols.variable(*range)],
            Subject::Locks(locks) => locks.iter().map(|&l| symbols.lock(l)).collect(),
            Subject::Region(region) => vec![region_name(*region, symbols)],
            Subject::Program(failure) => vec![failure.signature()],
        };
        let places = finding.places.iter().map(|p| {
            let role = ReportedRole::new(p.role, symbols);
            let place = ReportedPlace::new(symbols.thread(p.thread), symbols.site(p.site), role);
            place.holding(&p.held, symbols)
        });
        ReportedFinding {
            id: finding.id(symbols).to_string(),
            kind: finding.kind,
            status: finding.status,
            verdict: finding.verdict,
            analyses: finding.analyses.iter().map(ToString::to_string).collect(),
            subject,
            notes: Vec::new(),
            places: places.collect(),
            occurrences: finding.occurrences,
            control: None,
        }
    }

    /// One line that says what it is.
    pub(crate) fn summary(&self) -> String {
        let what = match self.kind {
            Kind::DataRace => "data race",
            Kind::Deadlock => "deadlock",
            Kind::AtomicityViolation => "atomicity violation",
            Kind::HighLevelRace => "high-level race",
            Kind::DeterminismViolation => "determinism violation",
            Kind::DisciplineViolation => "discipline violation",
            Kind::LinearizabilityViolation => "linearizability violation",
            Kind::ParallelismViolation => "parallelism violation",
            Kind::Crash => "crash",
            Kind::Assertion => "failed assertion",
            Kind::Hang => "hang",
        };
        match self.kind {
            Kind::Assertion if self.subject.iter().any(|s| s.starts_with("exit code ")) => {
                return format!("failure: {}", self.subject.join(", "));
            }
            Kind::Crash | Kind::Assertion | Kind::Hang => {
                return format!("{what}: {}", self.subject.join(", "));
            }
            _ => {}
        }
        let preposition = match self.kind {
            Kind::Deadlock => "between",
            Kind::DataRace | Kind::HighLevelRace => "on",
            _ => "in",
        };
        if self.subject.is_empty() {
            return what.to_owned();
        }
        format!("{what} {preposition} {}", list(&self.subject))
    }
}

impl ReportedRole {
    fn new(role: Role, symbols: &Symbols) -> ReportedRole {
        let (name, object) = match role {
            Role::Read => ("read", None),
            Role::Write => ("write", None),
            Role::AtomicRead => ("atomic-read", None),
            Role::AtomicWrite => ("atomic-write", None),
            Role::Free => ("free", None),
            Role::Acquire(lock) => ("acquire", Some(symbols.lock(lock))),
            Role::Release(lock) => ("release", Some(symbols.lock(lock))),
            Role::Fork(thread) => ("fork", Some(symbols.thread(thread))),
            Role::Join(thread) => ("join", Some(symbols.thread(thread))),
            Role::Arrive(barrier) => ("arrive", Some(symbols.barrier(barrier))),
            Role::Leave(barrier) => ("leave", Some(symbols.barrier(barrier))),
            Role::Post(semaphore) => ("post", Some(symbols.semaphore(semaphore))),
            Role::Wait(semaphore) => ("wait", Some(symbols.semaphore(semaphore))),
            Role::Enter(region) => ("enter", Some(region_name(region, symbols))),
            Role::Await(cond) => ("await", Some(symbols.cond(cond))),
            Role::Sleep => ("sleep", None),
            Role::Fail => ("fail", None),
        };
        ReportedRole { name: name.into(), object }
    }

    /// The verb in sentences. A stored name that this version does not know is its own verb.
    pub(crate) fn verb(&self) -> &str {
        match &*self.name {
            "read" => "reads",
            "write" => "writes",
            "atomic-read" => "reads atomically",
            "atomic-write" => "writes atomically",
            "free" => "frees",
            "acquire" => "acquires",
            "release" => "releases",
            "fork" => "starts",
            "join" => "joins",
            "arrive" => "arrives at",
            "leave" => "leaves",
            "post" => "posts",
            "wait" => "waits for",
            "enter" => "enters",
            "crash" => "crashes",
            "fail" => "fails",
            "await" => "waits for a notification on",
            "sleep" => "waits to be woken",
            other => other,
        }
    }

    /// Whether the role changes memory.
    pub(crate) fn writes(&self) -> bool {
        matches!(&*self.name, "write" | "atomic-write" | "free")
    }

    /// Whether the role is an atomic access.
    pub(crate) fn is_atomic(&self) -> bool {
        matches!(&*self.name, "atomic-read" | "atomic-write")
    }
}

fn region_name(region: selvedge_model::RegionId, symbols: &Symbols) -> String {
    if let Some(site) = region.acquisition() {
        return format!("code locked at {}", symbols.site(site));
    }
    symbols.region(region).map_or_else(|| format!("{region:?}"), |r| r.name.to_string())
}

impl ReportedPlace {
    /// The frames from the site outwards, with those that the compiler inlined.
    pub(crate) fn frames(&self) -> Vec<&Frame> {
        std::iter::once(&self.site)
            .chain(&self.stack)
            .flat_map(|site| match site {
                Site::Label(_) => Vec::new(),
                Site::Source(frame, callers) => std::iter::once(frame).chain(callers).collect(),
            })
            .collect()
    }
}

/// `a`, `a` and `b`, or `a`, `b` and `c`.
pub(crate) fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
