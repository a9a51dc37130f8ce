//! The analyses that a check can run, by name.

use selvedge_analyses::Analysis;
use selvedge_analyses::aerodrome::AeroDrome;
use selvedge_analyses::atomizer::Atomizer;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_analyses::hybrid::Hybrid;
use selvedge_analyses::lockset::Lockset;
use selvedge_analyses::views::Views;
use selvedge_analyses::{singletrack, velodrome};

type Make = fn() -> Box<dyn Analysis>;

/// What an execution must contain for an analysis to have anything to say. Executions without it are
/// not shown to the analysis, which changes no finding and makes most checks several times as fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Needs {
    /// A plain access to a tracked cell: a race has at least one.
    Accesses,
    /// A plain access while a lock is held: views are of these.
    LockedAccesses,
    /// A lock acquired while another is held: without one there is no cycle of locks.
    NestedLocks,
    /// A region that claims to be atomic.
    AtomicRegions,
    /// A region that claims to be deterministic.
    DeterministicRegions,
}

/// The one whose findings [`ownership`](crate::exec) looks at again.
pub(crate) const RACES: &str = "races";

/// All analyses. `atomicity` has a slower engine that names the region to blame.
const ALL: &[(&str, Needs, Make)] = &[
    (RACES, Needs::Accesses, || Box::new(FastTrack::new())),
    ("deadlocks", Needs::NestedLocks, || Box::<Goodlock>::default()),
    ("atomicity", Needs::AtomicRegions, || Box::new(AeroDrome::new())),
    ("velodrome", Needs::AtomicRegions, || Box::new(velodrome::Velodrome::new())),
    ("determinism", Needs::DeterministicRegions, || Box::<singletrack::Filtered>::default()),
    ("hybrid", Needs::Accesses, || Box::<Hybrid>::default()),
    ("lockset", Needs::Accesses, || Box::<Lockset>::default()),
    ("views", Needs::LockedAccesses, || Box::new(Views::new())),
    ("reduction", Needs::AtomicRegions, || Box::new(Atomizer::new())),
];

/// What an execution contains.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Contents {
    pub(crate) accesses: bool,
    pub(crate) locked_accesses: bool,
    pub(crate) nested_locks: bool,
    pub(crate) atomic_regions: bool,
    pub(crate) deterministic_regions: bool,
}

impl Contents {
    /// What either contains.
    pub(crate) fn union(self, other: Contents) -> Contents {
        Contents {
            accesses: self.accesses || other.accesses,
            locked_accesses: self.locked_accesses || other.locked_accesses,
            nested_locks: self.nested_locks || other.nested_locks,
            atomic_regions: self.atomic_regions || other.atomic_regions,
            deterministic_regions: self.deterministic_regions || other.deterministic_regions,
        }
    }

    /// Everything, as far as is known.
    pub(crate) const UNKNOWN: Contents = Contents {
        accesses: true,
        locked_accesses: true,
        nested_locks: true,
        atomic_regions: true,
        deterministic_regions: true,
    };
}

/// What runs if nothing is said: what needs no annotation and predicts nothing that lock-free code would
/// have to explain, and what checks the annotations that are there.
pub(crate) const DEFAULT: &[&str] = &["races", "deadlocks", "atomicity"];

/// The analyses of an execution, kept for the next one.
#[derive(Default)]
pub(crate) struct Analyses {
    /// Those that see this execution.
    pub(crate) running: Vec<Running>,
    /// Those that have seen an earlier one.
    idle: Vec<Running>,
}

/// An analysis by its name.
pub(crate) struct Running {
    pub(crate) name: &'static str,
    pub(crate) analysis: Box<dyn Analysis>,
}

impl Analyses {
    /// The execution is over and forgotten.
    pub(crate) fn rest(&mut self) {
        self.idle.append(&mut self.running);
    }

    /// Makes those run that are selected, except those to which the contents say nothing.
    pub(crate) fn start(&mut self, selected: &[String], contents: Contents) {
        for &(name, _, make) in entries(selected, contents) {
            let known = self.idle.iter().position(|r| r.name == name);
            self.running.push(match known.map(|i| self.idle.swap_remove(i)) {
                Some(mut known) => {
                    known.analysis.restart();
                    known
                }
                None => Running { name, analysis: make() },
            });
        }
    }
}

/// The names of these.
pub(crate) fn relevant_names(selected: &[String], contents: Contents) -> Vec<&'static str> {
    entries(selected, contents).map(|(name, ..)| *name).collect()
}

fn entries(
    selected: &[String],
    contents: Contents,
) -> impl Iterator<Item = &'static (&'static str, Needs, Make)> {
    let needed = move |needs: Needs| match needs {
        Needs::Accesses => contents.accesses,
        Needs::LockedAccesses => contents.locked_accesses,
        Needs::NestedLocks => contents.nested_locks,
        Needs::AtomicRegions => contents.atomic_regions,
        Needs::DeterministicRegions => contents.deterministic_regions,
    };
    ALL.iter().filter(move |(name, needs, _)| needed(*needs) && selected.iter().any(|s| s == name))
}

/// All that say different things.
pub(crate) fn all() -> String {
    let names: Vec<_> = names().into_iter().filter(|n| *n != "velodrome").collect();
    names.join(",")
}

/// All names.
pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().map(|(name, ..)| *name).collect()
}
