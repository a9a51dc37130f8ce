//! Synchronization disciplines: how a program keeps a shared variable free of races.
//!
//! Source: Grits (*Hominy Grits*, chapter 3 and appendix A). A discipline is a sequence of steps, or several
//! of them if instances of the variable do different things. Three steps are *phases*, which say how
//! accesses are kept apart:
//!
//! | phase | what all its accesses have in common |
//! | --- | --- |
//! | `thread-local` | one thread |
//! | `read-shared` | they read |
//! | `guarded-by L` | L is held: exclusively at a write, in any mode at a read |
//!
//! The others are *transitions*, which say what orders the first access after them that must follow accesses of
//! other threads (a read: the last write; a write: the last write and every read since) behind those: `fork`,
//! `join`, and `via KIND NAME`. Transitions in a row count together. `( … )+` repeats.
//!
//! Deviations from Grits. `guarded-by` demands that the lock is held; what a lock merely orders, as a locked
//! queue does, is `via lock`. Barriers and semaphores have words of their own. After a transition without a
//! phase, one thread has the variable: `thread-local; fork; join` stands for
//! `thread-local; fork; thread-local; join; thread-local`. A transition may happen several times in a row,
//! each time followed by accesses of one thread.
//!
//! | module | what |
//! | --- | --- |
//! | `parse` | the text of a specification, and what is wrong with it |
//! | `print` | disciplines as text |
//! | [`canon`] | the canonical form of a sequence of steps |
//! | [`satisfy`] | whether accesses follow a discipline |
//! | [`merge`] | the disciplines of several instances as one |
//!
//! *Guarantee*: `parse` after `print` gives the same discipline.

pub mod canon;
pub mod merge;
mod parse;
mod print;
pub mod satisfy;

pub use parse::{Error, Problem, parse};

/// What orders two accesses in a transition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum DeviceKind {
    Lock,
    Atomic,
    Barrier,
    Semaphore,
}

impl DeviceKind {
    /// All of them, as they are written.
    pub const WORDS: [(&'static str, DeviceKind); 4] = [
        ("lock", DeviceKind::Lock),
        ("atomic", DeviceKind::Atomic),
        ("barrier", DeviceKind::Barrier),
        ("semaphore", DeviceKind::Semaphore),
    ];

    /// How it is written.
    pub fn word(self) -> &'static str {
        DeviceKind::WORDS.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }
}

/// One step of a discipline, with names of type `N`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step<N = String> {
    /// One thread has the variable.
    ThreadLocal,
    /// Threads only read.
    ReadShared,
    /// The lock is held.
    GuardedBy(N),
    /// Starting a thread orders.
    Fork,
    /// Joining threads orders.
    Join,
    /// A device orders.
    Via(DeviceKind, N),
    /// The steps happen once or more often.
    // invariant: not empty.
    Repeat(Vec<Step<N>>),
}

impl<N> Step<N> {
    /// Whether the step says what orders accesses, and not how they are kept apart.
    pub fn is_transition(&self) -> bool {
        matches!(self, Step::Fork | Step::Join | Step::Via(..))
    }

    /// The same step with other names.
    pub fn map<M>(&self, name: &mut impl FnMut(&N) -> M) -> Step<M> {
        match self {
            Step::ThreadLocal => Step::ThreadLocal,
            Step::ReadShared => Step::ReadShared,
            Step::GuardedBy(lock) => Step::GuardedBy(name(lock)),
            Step::Fork => Step::Fork,
            Step::Join => Step::Join,
            Step::Via(kind, device) => Step::Via(*kind, name(device)),
            Step::Repeat(steps) => Step::Repeat(steps.iter().map(|s| s.map(name)).collect()),
        }
    }
}

/// Steps in the order in which they happen.
pub type Sequence<N = String> = Vec<Step<N>>;

/// How a variable is kept free of races: in one of these ways.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Discipline<N = String> {
    /// Each instance, in each run, follows one of them.
    // invariant: neither it nor one of its sequences is empty.
    pub alternatives: Vec<Sequence<N>>,
}

impl<N> From<Sequence<N>> for Discipline<N> {
    fn from(sequence: Sequence<N>) -> Discipline<N> {
        Discipline { alternatives: vec![sequence] }
    }
}

/// The discipline of one variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rule {
    /// The variable.
    pub variable: String,
    /// How it is kept free of races.
    pub discipline: Discipline,
}

/// The disciplines of variables, in the order of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Specification {
    /// Each variable once.
    pub rules: Vec<Rule>,
}

impl Specification {
    /// The discipline of a variable.
    pub fn of(&self, variable: &str) -> Option<&Discipline> {
        self.rules.iter().find(|r| r.variable == variable).map(|r| &r.discipline)
    }
}
