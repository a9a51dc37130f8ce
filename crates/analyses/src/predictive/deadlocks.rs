//! Sync-preserving deadlocks: threads that wait for each other in another order of the same events.
//!
//! Tunç, Mathur, Pavlogiannis and Viswanathan, "Sound Dynamic Deadlock Prediction in Linear Time" (PLDI 2023),
//! SPDOffline. A *deadlock pattern* is a circle of acquisitions by different threads, each of a lock that is held at
//! the next one, and no lock is held at two of them. Acquisitions of one thread at one place that hold the same are one
//! node of an *abstract* pattern. A pattern is a deadlock if a reordering that preserves synchronization makes all of
//! its acquisitions next: that is so if none of them is in the ideal of what precedes them. Ideals only grow, so an
//! acquisition that is in one is never of use again, and for each abstract pattern every acquisition is looked at once.
//!
//! Deviations: a lock that is held at one place and again at another is two nodes, as for `deadlocks`, whose search for
//! circles ([`cycles`]) this uses. Readers do not wait for readers. A circle in which a thread also waits for another
//! one of it is left out: a smaller circle is there, too.
//!
//! Guarantee: reports exactly the abstract patterns of which one is a sync-preserving deadlock, each with a [`Witness`],
//! unless there are more than [`MAX_STEPS`] steps in the search or more than [`MAX_PAST`] acquisitions of a node;
//! [`Deadlocks::bound`] says so. A deadlock that a thread would have avoided by `trylock` is not known to be one.
//!
//! Cost: O(threads) for each nested acquisition, O(acquisitions) for each abstract pattern.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use selvedge_model::{Finding, Held, ThreadId};

use super::{Ideal, MAX_PAST, NAME, Thread};
use crate::Bound;
use crate::common::cycles::{self, Dependency, Moment};
use crate::common::held::{HeldLocks, LockSet};
use crate::common::witness::{Beginning, Witness, of};

/// How many steps the search for circles may take.
const MAX_STEPS: u64 = 10_000_000;

/// The acquisitions of one node.
#[derive(Debug)]
struct Acquisitions {
    thread: ThreadId,
    /// What the event before each comes after, with that event; in the order of the thread.
    list: Vec<Rc<Beginning>>,
}

/// Whatever two threads do may come at the same time, as far as a pattern is concerned.
impl Moment for Acquisitions {
    fn concurrent(&self, other: &Acquisitions) -> bool {
        self.thread != other.thread
    }
}

/// The nested acquisitions of an execution.
#[derive(Debug, Default)]
pub(super) struct Deadlocks {
    dependencies: Vec<Dependency<Acquisitions>>,
    numbers: FxHashMap<(ThreadId, LockSet, Held), usize>,
    forgotten: u64,
    cut_short: bool,
}

impl Deadlocks {
    /// A thread acquires a lock, after what `past` says.
    pub(super) fn acquire(
        &mut self,
        thread: ThreadId,
        wants: Held,
        held: &HeldLocks,
        past: &Beginning,
    ) {
        let holds = held.set(thread);
        if holds == LockSet::EMPTY || held.holds(thread, wants.lock) {
            return;
        }
        let number = *self.numbers.entry((thread, holds, wants)).or_insert_with(|| {
            let moments = vec![Acquisitions { thread, list: Vec::new() }];
            self.dependencies.push(Dependency { thread, holds, wants, moments });
            self.dependencies.len() - 1
        });
        let list = &mut self.dependencies[number].moments[0].list;
        if list.len() < MAX_PAST {
            list.push(Rc::new(past.clone()));
        } else {
            self.forgotten += 1;
        }
    }

    /// Reports the deadlocks, and forgets the acquisitions.
    pub(super) fn report(
        &mut self,
        held: &HeldLocks,
        threads: &[Thread],
        mut found: impl FnMut(Finding, Witness),
    ) {
        let dependencies = std::mem::take(&mut self.dependencies);
        let complete = cycles::search(&dependencies, held, MAX_STEPS, |cycle| {
            if let Some(before) = shown(cycle, threads) {
                let witness = Witness {
                    sites: cycle.iter().map(|d| d.wants.site).collect(),
                    threads: cycle.iter().map(|d| d.thread).collect(),
                    before,
                };
                found(cycles::finding(NAME, cycle, held), witness);
            }
        });
        self.cut_short |= !complete;
        self.numbers.clear();
    }

    /// The bound that was reached, if one was.
    pub(super) fn bound(&self) -> Option<Bound> {
        if self.cut_short {
            return Some(Bound {
                what: "pairs of acquisitions are compared in one search for circles",
                limit: MAX_STEPS,
                exceeded: 1,
            });
        }
        (self.forgotten > 0).then_some(Bound {
            what: "acquisitions of one thread at one place are remembered",
            limit: MAX_PAST as u64,
            exceeded: self.forgotten,
        })
    }
}

/// What comes before the deadlock of an abstract pattern, if one of its patterns is a deadlock.
fn shown(cycle: &[&Dependency<Acquisitions>], threads: &[Thread]) -> Option<Beginning> {
    let lists: Vec<&[Rc<Beginning>]> = cycle.iter().map(|d| &d.moments[0].list[..]).collect();
    let mut at = vec![0; cycle.len()];
    let mut ideal = Ideal::default();
    loop {
        for (list, &at) in lists.iter().zip(&at) {
            ideal.add(list.get(at)?, threads);
        }
        let mut inside = false;
        for ((dependency, list), at) in cycle.iter().zip(&lists).zip(&mut at) {
            // An acquisition is in the ideal if more of its thread is than what comes before it.
            let thread = dependency.thread;
            while ideal.broken || of(&ideal.events, thread) > of(list.get(*at)?, thread) {
                *at += 1;
                inside = true;
            }
        }
        if !inside {
            return Some(ideal.events);
        }
    }
}
