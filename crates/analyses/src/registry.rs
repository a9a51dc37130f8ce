//! The analyses by name.
//!
//! What users read about analyses (`--help`, error messages), how they choose some, and what each command
//! runs by default follows from [`ANALYSES`]. To add an analysis, write one file that ends with its
//! [`Entry`], and add a line here.

use std::fmt;

use crate::{
    Analysis, aerodrome, atomizer, fasttrack, goodlock, hybrid, lockset, singletrack, velodrome,
    views,
};

/// All analyses.
pub const ANALYSES: &[Entry] = &[
    fasttrack::ENTRY,
    hybrid::ENTRY,
    lockset::ENTRY,
    goodlock::ENTRY,
    aerodrome::ENTRY,
    velodrome::ENTRY,
    atomizer::ENTRY,
    singletrack::ENTRY,
    views::ENTRY,
];

/// An analysis that a user can choose.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What the user writes.
    pub name: &'static str,
    /// What it finds, as part of a sentence.
    pub about: &'static str,
    /// The accesses of a native program that it needs.
    pub accesses: Accesses,
    /// What an execution must contain for it to have anything to say.
    pub needs: Needs,
    /// The commands that run it unless the user chooses.
    pub default_in: &'static [Purpose],
    /// The injected runtime looks for the same inside the program, so that a native run records nothing
    /// for it.
    pub in_program: bool,
    /// The analysis of which this is another engine; `all` leaves it out.
    pub engine_of: Option<&'static str>,
    /// Makes one.
    pub new: Make,
    /// Makes one to which code that holds a lock is atomic, if it looks at atomic regions.
    pub locked: Option<Make>,
    /// Makes one for a front end that keeps accesses without races back by itself, if it otherwise
    /// does so itself.
    pub unfiltered: Option<Make>,
}

/// Makes an analysis.
pub type Make = fn() -> Box<dyn Analysis>;

/// The accesses that an analysis needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Accesses {
    /// None.
    None,
    /// Those to memory that is used with races: the others are ordered by synchronization, which
    /// says as much.
    Racy,
    /// The first of each thread after it synchronized.
    All,
}

/// What an execution must contain for an analysis to have anything to say. An executor that knows what
/// is in an execution need not show it to the others, which changes no finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Needs {
    /// A plain access: a race has at least one.
    Accesses = 1,
    /// A plain access while a lock is held: views are of these.
    LockedAccesses = 2,
    /// A lock acquired while another is held: without one there is no cycle of locks.
    NestedLocks = 4,
    /// A region that claims to be atomic.
    AtomicRegions = 8,
    /// A region that claims to be deterministic.
    DeterministicRegions = 16,
}

/// What an execution contains, as a set of [`Needs`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contents(u8);

impl Contents {
    /// Everything, as far as is known.
    pub const UNKNOWN: Contents = Contents(u8::MAX);

    /// The execution contains this.
    #[inline]
    pub fn add(&mut self, what: Needs) {
        self.0 |= what as u8;
    }

    /// Whether the execution contains this.
    #[inline]
    pub fn has(self, what: Needs) -> bool {
        self.0 & what as u8 != 0
    }

    /// Those that have something to say about such an execution.
    pub fn relevant(self, entries: &[&'static Entry]) -> impl Iterator<Item = &'static Entry> {
        entries.iter().copied().filter(move |e| self.has(e.needs))
    }

    /// What either contains.
    pub fn union(self, other: Contents) -> Contents {
        Contents(self.0 | other.0)
    }
}

/// What analyses are run for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// `selvedge check`, on recorded traces.
    Check,
    /// `selvedge run`, beside a native program, where recording accesses costs much.
    Run,
    /// `selvedge test`, on executions under control, for what directed executions then confirm.
    Test,
    /// `selvedge explore`, to know which accesses may race and so are scheduling points.
    Explore,
    /// The `selvedge` crate, on every execution of a Rust test.
    Crate,
}

/// How analyses are to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// Code that holds a lock is atomic.
    pub lock_regions: bool,
    /// The front end keeps accesses to memory without races back.
    pub filtered: bool,
}

impl Entry {
    /// An analysis that needs all accesses and that no command runs by default.
    pub const fn of(name: &'static str, about: &'static str, new: Make) -> Entry {
        Entry {
            name,
            about,
            accesses: Accesses::All,
            needs: Needs::Accesses,
            default_in: &[],
            in_program: false,
            engine_of: None,
            new,
            locked: None,
            unfiltered: None,
        }
    }

    /// Makes the analysis.
    pub fn make(&self, settings: Settings) -> Box<dyn Analysis> {
        let locked = self.locked.filter(|_| settings.lock_regions);
        let unfiltered = self.unfiltered.filter(|_| settings.filtered);
        locked.or(unfiltered).unwrap_or(self.new)()
    }
}

/// A name that is not that of an analysis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownAnalysis(String);

impl fmt::Display for UnknownAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = ANALYSES.iter().map(|e| e.name).collect();
        write!(f, "there is no analysis {:?}; there are {}", self.0, all.join(", "))
    }
}

impl std::error::Error for UnknownAnalysis {}

/// The analyses of these names, each once, in the order of the registry. `all` is every one except other
/// engines of the same.
pub fn select<S: AsRef<str>>(names: &[S]) -> Result<Vec<&'static Entry>, UnknownAnalysis> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let known = |name: &&str| *name == "all" || ANALYSES.iter().any(|e| e.name == *name);
    if let Some(unknown) = names.iter().find(|n| !known(n)) {
        return Err(UnknownAnalysis((*unknown).to_owned()));
    }
    let all = names.contains(&"all");
    let wanted = |e: &&Entry| names.contains(&e.name) || all && e.engine_of.is_none();
    Ok(ANALYSES.iter().filter(wanted).collect())
}

/// The analyses that a command runs unless the user chooses.
pub fn defaults(purpose: Purpose) -> Vec<&'static Entry> {
    ANALYSES.iter().filter(|e| e.default_in.contains(&purpose)).collect()
}

/// What each analysis finds, one line each, for `--help`. Those that `purpose` runs by default are marked.
pub fn help(purpose: Purpose) -> String {
    let line = |entry: &Entry| {
        let mark = if entry.default_in.contains(&purpose) { "*" } else { " " };
        format!("{mark} {:<12} {}\n", entry.name, entry.about)
    };
    let lines: String = ANALYSES.iter().map(line).collect();
    format!("Analyses:\n{lines}* runs by default")
}
