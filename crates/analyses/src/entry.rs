//! What the registry knows of an analysis, said by the analysis itself.

use crate::Analysis;

/// An analysis that a user can choose.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What the user writes.
    pub name: &'static str,
    /// What it finds, as part of a sentence.
    pub about: &'static str,
    /// The accesses of a native program that it needs.
    pub accesses: Accesses,
    /// Whether it looks at atomic operations and fences.
    pub atomics: bool,
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
    /// Data flow: a specification of parallelism cannot be checked without.
    DataFlow = 32,
    /// Nothing in particular: it is shown every execution.
    Nothing = 128,
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
        (self.0 | Needs::Nothing as u8) & what as u8 != 0
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
    /// An analysis that needs all accesses, that is shown every execution, and that no command runs by
    /// default.
    pub const fn of(name: &'static str, about: &'static str, new: Make) -> Entry {
        Entry {
            name,
            about,
            accesses: Accesses::All,
            atomics: true,
            needs: Needs::Nothing,
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
