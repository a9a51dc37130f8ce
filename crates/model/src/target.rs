//! Targets: the state that a directed strategy steers an execution into to make a finding happen.
//!
//! A target speaks of places in the source. Within one process they are [`SiteId`]s; in the store they
//! are [`Site`](crate::Site)s, which outlive it. [`Target::map`] turns one into the other.

use crate::{Held, LockId, Range, RegionId, SiteId, ThreadId};

/// A thread of a deadlock: it holds some locks and wants one more.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Waiter<S = SiteId> {
    /// The thread that waits.
    pub thread: ThreadId,
    /// What it holds, outermost first, each with the site of its acquisition.
    pub holds: Vec<Held<S>>,
    /// What it wants, in which mode, and where.
    pub wants: Held<S>,
}

impl<S: Copy> Waiter<S> {
    /// The acquisition context: where it acquired what it holds, outermost first, and where it waits.
    pub fn context(&self) -> impl Iterator<Item = S> + '_ {
        self.holds.iter().map(|h| h.site).chain([self.wants.site])
    }
}

/// The state that a directed strategy steers an execution into to make a finding happen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Target<S = SiteId> {
    /// Two threads are each about to execute one of the sites, touching overlapping memory, and at
    /// least one writes.
    Race {
        /// One of the sites.
        first: S,
        /// The other; the same site if two threads race in the same statement.
        second: S,
    },
    /// Two threads are each about to execute one of the sites, acquiring one lock, or using one atomic
    /// that at least one of them writes.
    Contention {
        /// One of the sites.
        first: S,
        /// The other.
        second: S,
    },
    /// Each thread holds what its predecessor wants: a cycle.
    Deadlock(Vec<Waiter<S>>),
    /// A thread has executed `first` and is about to execute `second`, and another thread uses the
    /// same object in between.
    Split {
        /// The region that both belong to; nothing if they belong to two lock regions that are
        /// suspected to belong together.
        region: Option<RegionId>,
        /// The earlier use of the object.
        first: S,
        /// The later use of it, by the same thread.
        second: S,
        /// Where another thread uses it; nothing if any use will do.
        between: Option<S>,
        /// What they use.
        object: Object,
    },
}

impl<S> Target<S> {
    /// The same state, with its places in other terms.
    pub fn map<T>(&self, mut place: impl FnMut(&S) -> T) -> Target<T> {
        match self {
            Target::Race { first, second } => {
                Target::Race { first: place(first), second: place(second) }
            }
            Target::Contention { first, second } => {
                Target::Contention { first: place(first), second: place(second) }
            }
            Target::Deadlock(cycle) => {
                let mut held =
                    |h: &Held<S>| Held { lock: h.lock, mode: h.mode, site: place(&h.site) };
                let waiter = |w: &Waiter<S>| Waiter {
                    thread: w.thread,
                    holds: w.holds.iter().map(&mut held).collect(),
                    wants: held(&w.wants),
                };
                Target::Deadlock(cycle.iter().map(waiter).collect())
            }
            Target::Split { region, first, second, between, object } => Target::Split {
                region: *region,
                first: place(first),
                second: place(second),
                between: between.as_ref().map(place),
                object: *object,
            },
        }
    }

    /// The places of the accesses before which threads have to be stopped.
    pub fn accesses(&self) -> Vec<&S> {
        match self {
            Target::Race { first, second } | Target::Contention { first, second } => {
                vec![first, second]
            }
            Target::Split { first, second, between, .. } => {
                [Some(first), between.as_ref(), Some(second)].into_iter().flatten().collect()
            }
            Target::Deadlock(_) => Vec::new(),
        }
    }
}

/// What threads contend for: to use it is to acquire the lock, or to access the memory where one
/// access of two is a write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Object {
    Lock(LockId),
    Memory(Range),
}
