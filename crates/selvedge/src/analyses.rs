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
    /// A plain access to a tracked cell: a race has at least one, and views are of plain accesses.
    Accesses,
    /// A lock acquired while another is held: without one there is no cycle of locks.
    NestedLocks,
    /// A region that claims something.
    Regions,
}

/// The one whose findings [`ownership`](crate::exec) looks at again.
pub(crate) const RACES: &str = "races";

/// All analyses. `atomicity` has a slower engine that names the region to blame.
const ALL: &[(&str, Needs, Make)] = &[
    (RACES, Needs::Accesses, || Box::new(FastTrack::new())),
    ("deadlocks", Needs::NestedLocks, || Box::<Goodlock>::default()),
    ("atomicity", Needs::Regions, || Box::new(AeroDrome::new())),
    ("velodrome", Needs::Regions, || Box::new(velodrome::Velodrome::new())),
    ("determinism", Needs::Regions, || Box::<singletrack::Filtered>::default()),
    ("hybrid", Needs::Accesses, || Box::<Hybrid>::default()),
    ("lockset", Needs::Accesses, || Box::<Lockset>::default()),
    ("views", Needs::Accesses, || Box::new(Views::new())),
    ("reduction", Needs::Regions, || Box::new(Atomizer::new())),
];

/// What an execution contains.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Contents {
    pub(crate) accesses: bool,
    pub(crate) nested_locks: bool,
    pub(crate) regions: bool,
}

impl Contents {
    /// What either contains.
    pub(crate) fn union(self, other: Contents) -> Contents {
        Contents {
            accesses: self.accesses || other.accesses,
            nested_locks: self.nested_locks || other.nested_locks,
            regions: self.regions || other.regions,
        }
    }

    /// Everything, as far as is known.
    pub(crate) const UNKNOWN: Contents =
        Contents { accesses: true, nested_locks: true, regions: true };
}

/// What runs if nothing is said: what needs no annotation and predicts nothing that lock-free code would
/// have to explain, and what checks the annotations that are there.
pub(crate) const DEFAULT: &[&str] = &["races", "deadlocks", "atomicity"];

/// New instances of the analyses selected, except those to which the contents say nothing.
pub(crate) fn relevant(selected: &[String], contents: Contents) -> Vec<Box<dyn Analysis>> {
    entries(selected, contents).map(|(_, _, make)| make()).collect()
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
        Needs::NestedLocks => contents.nested_locks,
        Needs::Regions => contents.regions,
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
