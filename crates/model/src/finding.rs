//! Findings: what analyses report, how two reports are recognised as the same finding, and what a
//! controlled execution needs in order to make one happen.
//!
//! A finding speaks in ids; [`Symbols`] turns them into words, and only the command line does so for
//! people. Its *identity* is its kind and the places in the source that take part, nothing else: it is
//! the same across runs, threads and addresses, so runs can be compared and findings suppressed.

use std::fmt;
use std::str::FromStr;

use rustc_hash::FxHashMap;

use crate::{
    BarrierId, CondId, Failure, Keep, LockId, Misuse, Mode, Part, Range, RegionId, SemaphoreId,
    SiteId, Symbols, Target, ThreadId, merge,
};

/// What kind of bug a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Kind {
    DataRace,
    Deadlock,
    AtomicityViolation,
    HighLevelRace,
    DeterminismViolation,
    DisciplineViolation,
    LinearizabilityViolation,
    ParallelismViolation,
    /// Of a synchronization object, a descriptor, memory, a signal handler or a thread.
    Misuse,
    Crash,
    Assertion,
    Hang,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 12] = [
        Kind::DataRace,
        Kind::Deadlock,
        Kind::AtomicityViolation,
        Kind::HighLevelRace,
        Kind::DeterminismViolation,
        Kind::DisciplineViolation,
        Kind::LinearizabilityViolation,
        Kind::ParallelismViolation,
        Kind::Misuse,
        Kind::Crash,
        Kind::Assertion,
        Kind::Hang,
    ];
    const _ALL_ARE_LISTED: () = assert!(Kind::ALL.len() == Kind::Hang as usize + 1);

    /// The name in reports and in identities.
    pub fn name(self) -> &'static str {
        match self {
            Kind::DataRace => "data-race",
            Kind::Deadlock => "deadlock",
            Kind::AtomicityViolation => "atomicity-violation",
            Kind::HighLevelRace => "high-level-race",
            Kind::DeterminismViolation => "determinism-violation",
            Kind::DisciplineViolation => "discipline-violation",
            Kind::LinearizabilityViolation => "linearizability-violation",
            Kind::ParallelismViolation => "parallelism-violation",
            Kind::Misuse => "misuse",
            Kind::Crash => "crash",
            Kind::Assertion => "assertion",
            Kind::Hang => "hang",
        }
    }
}

/// How sure a finding is, weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Status {
    /// Controlled executions tried to make it happen and did not.
    Unconfirmed,
    /// An analysis concludes that another schedule may show it.
    Predicted,
    /// It happened in the execution that was analysed.
    Observed,
    /// A controlled execution made it happen, and its schedule replays it.
    Confirmed,
}

impl Status {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Unconfirmed => "unconfirmed",
            Status::Predicted => "predicted",
            Status::Observed => "observed",
            Status::Confirmed => "confirmed",
        }
    }
}

/// The harm of an order. The greatest of several says most of a finding: one order that is known to do nothing shows
/// that it can be harmless, whatever is not known of others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Harm {
    /// Not known: it was not compared with the other order, or both fail and undisturbed executions do not.
    Unknown,
    /// It ended like an undisturbed execution.
    Nothing,
    /// The output differs.
    Output,
    /// A value that a block ensures differs.
    State,
    /// The exit code differs.
    Exit,
    /// It failed.
    Failure,
}

impl Harm {
    /// What that says of the finding whose order led to it.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Harm::Unknown => None,
            Harm::Nothing => Some(Verdict::Benign),
            Harm::Output | Harm::State | Harm::Exit | Harm::Failure => Some(Verdict::Harmful),
        }
    }
}

/// What a specification says of a confirmed finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Verdict {
    /// It changed the result in a way the specification forbids.
    Harmful,
    /// Every order led to a result that the specification allows.
    Benign,
}

impl Verdict {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Harmful => "harmful",
            Verdict::Benign => "benign",
        }
    }
}

/// What a thread was doing at a place of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Role {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
    Free,
    /// Acquiring the lock while holding the ones in [`Place::held`].
    Acquire(LockId),
    Release(LockId),
    Fork(ThreadId),
    Join(ThreadId),
    Arrive(BarrierId),
    Leave(BarrierId),
    Post(SemaphoreId),
    Wait(SemaphoreId),
    /// Entering a region that the finding violates.
    Enter(RegionId),
    /// Waiting for a notification.
    Await(CondId),
    /// Waiting for another thread to wake it, by means that have no name.
    Sleep,
    /// Failing: an assertion, a panic, a signal.
    Fail,
    /// Ensuring that a value is the same in every execution.
    Ensure,
    /// Observing a value that must be that of some serial execution.
    Observe,
    /// Taking part in a misuse.
    Part(Part),
}

/// A lock that a thread holds, and where it acquired it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Held<S = SiteId> {
    pub lock: LockId,
    pub mode: Mode,
    pub site: S,
}

/// One thread's part in a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Place {
    /// The thread.
    pub thread: ThreadId,
    /// The place in the source.
    pub site: SiteId,
    /// What the thread was doing there.
    pub role: Role,
    /// The locks held then, outermost first.
    pub held: Vec<Held>,
}

/// What a finding is about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Subject {
    /// Memory.
    Memory(Range),
    /// Locks, each held by one thread and wanted by the next.
    Locks(Vec<LockId>),
    /// A region.
    Region(RegionId),
    /// A value that a deterministic block ensures.
    Value {
        /// The name of the block.
        block: Box<str>,
        /// The name of the value.
        name: Box<str>,
    },
    /// Values that are observed, by name.
    Observed(Vec<Box<str>>),
    /// Something that was misused, and where it lies in memory.
    Misused(Misuse, Range),
    /// The program: how an execution of it failed.
    Program(Failure),
}

/// The first race on some bytes, from a front end that does not pass on accesses to other memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstRace {
    /// What both touched.
    pub bytes: Range,
    /// The access that came first, which was not passed on.
    pub earlier: Party,
    /// How many events had been passed on before it.
    pub passed: u64,
    /// The access that met it. Its event comes next.
    pub later: Party,
}

/// One side of a [`FirstRace`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Party {
    pub thread: ThreadId,
    pub site: SiteId,
    pub role: Role,
}

/// A bug, or what may be one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// How sure.
    pub status: Status,
    /// Whether it matters, where a specification could tell.
    pub verdict: Option<Verdict>,
    /// Names of the analyses that found it, first finder first.
    // invariant: not empty.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::stored::names"))]
    pub analyses: Vec<&'static str>,
    /// What it is about.
    pub subject: Subject,
    /// The threads that took part and where, in the order in which it happened.
    pub places: Vec<Place>,
    /// What to aim at to confirm it.
    pub target: Option<Target>,
    /// How often it was reported.
    pub occurrences: u64,
}

impl Finding {
    /// Whether it is a deadlock in which a thread would have to wait where it only tries to take the lock, or waits
    /// for a limited time: that cannot happen.
    pub fn is_avoided(&self, symbols: &Symbols) -> bool {
        let tries = |place: &Place| symbols.tries.contains(&place.site);
        self.kind == Kind::Deadlock
            && self.status < Status::Observed
            && self.places.iter().any(tries)
    }

    /// That an execution failed, which happened and so is at least observed.
    pub fn failure(kind: Kind, failure: Failure, places: Vec<Place>) -> Finding {
        Finding {
            kind,
            status: Status::Observed,
            verdict: None,
            analyses: vec!["schedules"],
            subject: Subject::Program(failure),
            places,
            target: None,
            occurrences: 1,
        }
    }

    /// The identity, in terms that outlive the execution: the kind and the places, or how the program
    /// failed if there are none.
    pub fn id(&self, symbols: &Symbols) -> FindingId {
        match &self.subject {
            Subject::Program(failure) if self.places.is_empty() => failure.id(self.kind),
            _ => {
                let places = self.places.iter().map(|p| symbols.site(p.site).to_string());
                FindingId::new(self.kind, places)
            }
        }
    }
}

/// The identity of a finding: equal for equal kinds and places of source, in every run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
pub struct FindingId {
    kind: Kind,
    // invariant: less than 2^40, as many bits as users see.
    hash: u64,
}

impl FindingId {
    /// Of a finding of the given kind at places that are given as text, in any order.
    pub fn new(kind: Kind, places: impl IntoIterator<Item = String>) -> FindingId {
        let mut places: Vec<String> = places.into_iter().collect();
        places.sort_unstable();
        let mut hash = Fnv1a::new();
        hash.text(kind.name());
        places.iter().for_each(|p| hash.text(p));
        FindingId { kind, hash: hash.finish() >> 24 }
    }
}

/// As users see and type it: `data-race-1f3a9c2b04`.
impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:010x}", self.kind.name(), self.hash)
    }
}

impl FromStr for FindingId {
    type Err = NotAnId;
    fn from_str(text: &str) -> Result<FindingId, NotAnId> {
        let wrong = || NotAnId(text.to_owned());
        let (name, digits) = text.rsplit_once('-').ok_or_else(wrong)?;
        let kind = Kind::ALL.into_iter().find(|k| k.name() == name).ok_or_else(wrong)?;
        let hash = u64::from_str_radix(digits, 16).map_err(|_| wrong())?;
        let id = FindingId { kind, hash };
        if id.to_string() == text && digits.len() == 10 { Ok(id) } else { Err(wrong()) }
    }
}

impl From<FindingId> for String {
    fn from(id: FindingId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for FindingId {
    type Error = NotAnId;
    fn try_from(text: String) -> Result<FindingId, NotAnId> {
        text.parse()
    }
}

/// A text that is not the identity of a finding.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not the id of a finding; an id is a kind and ten digits, as in data-race-1f3a9c2b04"
)]
pub struct NotAnId(String);

/// 64-bit FNV-1a: small, and the same in every version and on every machine, which the standard
/// library's hashers do not promise.
struct Fnv1a(u64);

impl Fnv1a {
    fn new() -> Fnv1a {
        Fnv1a(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a text and a terminator, so that `["ab", "c"]` and `["a", "bc"]` differ.
    fn text(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn finish(self) -> u64 {
        self.0
    }
}

/// Where analyses put their findings. Reports of the same kind at the same sites become one finding,
/// whichever analysis they come from; the surest status wins.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    by_sites: FxHashMap<(Kind, Vec<SiteId>), usize>,
}

impl Findings {
    /// Counts one more occurrence of a finding that `analysis` has already reported between the two
    /// sites. False if there is none: then it must be [reported](Findings::report). This keeps a race
    /// in a hot loop cheap.
    pub fn again(&mut self, analysis: &'static str, kind: Kind, a: SiteId, b: SiteId) -> bool {
        let Some(&i) = self.by_sites.get(&(kind, vec![a.min(b), a.max(b)])) else {
            return false;
        };
        let known = self.list[i].analyses.contains(&analysis);
        if known {
            self.list[i].occurrences += 1;
        }
        known
    }

    /// Adds a finding, or folds it into the one of the same kind at the same sites.
    pub fn report(&mut self, finding: Finding) {
        let mut sites: Vec<SiteId> = finding.places.iter().map(|p| p.site).collect();
        sites.sort_unstable();
        match self.by_sites.entry((finding.kind, sites)) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(self.list.len());
                self.list.push(finding);
            }
            std::collections::hash_map::Entry::Occupied(entry) => {
                merge(&mut self.list[*entry.get()], finding, Keep::Surer);
            }
        }
    }

    /// All findings, in the order of their first report.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Finding;
    type IntoIter = std::slice::Iter<'a, Finding>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Findings {
    type Item = Finding;
    type IntoIter = std::vec::IntoIter<Finding>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Site;

    fn race(analysis: &'static str, status: Status, a: u32, b: u32) -> Finding {
        let place = |site| Place {
            thread: ThreadId(0),
            site: SiteId(site),
            role: Role::Write,
            held: Vec::new(),
        };
        Finding {
            kind: Kind::DataRace,
            status,
            verdict: None,
            analyses: vec![analysis],
            subject: Subject::Memory(Range { start: 8, len: 8 }),
            places: vec![place(a), place(b)],
            target: None,
            occurrences: 1,
        }
    }

    #[test]
    fn reports_at_the_same_sites_are_one_finding_and_the_surest_status_wins() {
        let mut f = Findings::default();
        f.report(race("lockset", Status::Predicted, 1, 2));
        f.report(race("races", Status::Observed, 2, 1));
        f.report(race("races", Status::Observed, 1, 2));
        f.report(race("races", Status::Observed, 1, 1));
        assert!(f.again("races", Kind::DataRace, SiteId(2), SiteId(1)));
        assert!(!f.again("hybrid", Kind::DataRace, SiteId(2), SiteId(1)));
        let list: Vec<_> =
            f.iter().map(|f| (f.status, f.analyses.clone(), f.occurrences)).collect();
        assert_eq!(
            list,
            [(Status::Observed, vec!["races", "lockset"], 3), (Status::Observed, vec!["races"], 1),]
        );
    }

    #[test]
    fn identity_is_kind_and_places_not_ids_or_their_order() {
        let mut one = Symbols::default();
        let mut two = Symbols::default();
        for s in ["a.c:1", "a.c:2"] {
            one.sites.intern(Site::parse(s));
        }
        for s in ["x", "a.c:2", "a.c:1"] {
            two.sites.intern(Site::parse(s));
        }
        let id = race("races", Status::Observed, 0, 1).id(&one);
        assert_eq!(id, race("lockset", Status::Predicted, 1, 2).id(&two));
        assert_ne!(id, race("races", Status::Observed, 0, 0).id(&one));
        assert_eq!(id.to_string(), "data-race-21cf993aeb");
    }

    #[test]
    fn identities_are_read_as_they_are_written() {
        for kind in Kind::ALL {
            let id = FindingId::new(kind, ["a.c:1".to_owned()]);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for wrong in
            ["", "data-race", "data-race-21cf993ae", "data-race-21CF993AEB", "race-21cf993aeb"]
        {
            assert!(wrong.parse::<FindingId>().is_err(), "{wrong}");
        }
    }
}
