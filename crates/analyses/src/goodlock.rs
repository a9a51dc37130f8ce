//! Deadlock prediction: a circle of threads, each of which may hold a lock that another wants.
//!
//! iGoodlock, from Park, "Active Testing: Predicting and Confirming Concurrency Bugs" (2014), §4.2:
//! Algorithm 4.3 computes the lock dependency relation (Definition 4.3) while the program runs, and
//! Algorithm 4.4 closes it to cycles (Definitions 4.4 and 4.5). A *dependency* says that a thread
//! acquired a lock while it held others, with the sites of all these acquisitions, its *context*. A
//! cycle is a sequence of dependencies of distinct threads in which each wants a lock that the next
//! holds and the last one wants a lock that the first holds; no lock is held by two of them, because
//! such a *guard* keeps them from waiting at the same time. Re-acquiring a held lock is not one.
//! A cycle is reported in one rotation, the one that starts with the least thread.
//!
//! Deviations, the first two towards fewer false alarms:
//! - *Lifetimes.* Threads of a cycle wait at the same time, each just before the acquisition of the
//!   lock it wants and after everything that precedes it. Such a moment exists, as far as fork and join
//!   are concerned, exactly if no two of these acquisitions are ordered by fork and join. So we ask for
//!   that: the paper's false alarms in Jigsaw (§6.2), where a thread would have to wait before it is
//!   started, go away. Only the acquisitions of the wanted locks count; holds may overlap or not.
//! - *Reader-writer locks.* A lock is in the way of a waiter, and a guard guards, only if the two modes
//!   exclude each other. Since readers share, a lock may have several holders in a cycle; a cycle of
//!   which fewer threads already make a cycle is not reported.
//! - The closure goes depth first, by growing length of the cycles, and not breadth first: it needs no
//!   memory for the chains, and lengths that no cycle has are skipped.
//! - When a join leaves only one thread alive, everything before is ordered before everything after:
//!   the cycles so far are reported and the relation starts empty. A thread whose fork was not
//!   recorded and that shows up later counts as started then.
//!
//! Guarantee: reports exactly the cycles of these definitions, unless a search reaches
//! [`MAX_STEPS`], which [`Analysis::bound`] then reports; shorter cycles come first. Every deadlock of
//! locks that another order of the same events can reach is such a cycle: none is missed among the
//! acquisitions seen. A reported cycle need not be reachable: what lies before it may depend on data,
//! on signals, on atomics, or on critical sections that had to be passed in a certain order; and a
//! try-lock never waits. Missed are circles through joins, condition variables, semaphores or barriers,
//! through readers that wait behind a waiting writer, and through a reader that becomes a writer of the
//! lock it reads.
//!
//! Cost: one hash look-up for each acquisition of a lock under another. Memory: the distinct
//! dependencies since there was last one thread alone, and for each of them those stretches between
//! forks and joins of its thread that may matter; not the length of the trace.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use selvedge_model::{
    Epoch, Event, Findings, Held, LockId, Mode, Op, SiteId, ThreadId, VectorClock,
};

use crate::common::cycles::{self, Dependency};
use crate::common::held::{HeldLocks, LockSet};
use crate::common::order::{Edges, Order};
use crate::entry::{Accesses, Entry, Needs, Purpose};
use crate::{Analysis, Bound};

/// How many pairs of dependencies one search for cycles compares: a second or two of work.
pub const MAX_STEPS: u64 = 50_000_000;

const NAME: &str = "deadlocks";

/// The analysis.
#[derive(Debug)]
pub struct Goodlock {
    held: HeldLocks,
    order: Order,
    lives: Lives,
    /// The current moment of each thread, once a dependency has asked for it.
    moments: Vec<Option<Arc<Moment>>>,
    dependencies: Vec<Dependency<Arc<Moment>>>,
    numbers: FxHashMap<(ThreadId, LockSet, LockId, Mode, SiteId), usize>,
    max_steps: u64,
    cut_short: u64,
}

/// A stretch of a thread's life between its forks and joins.
#[derive(Debug)]
struct Moment {
    epoch: Epoch,
    knows: VectorClock,
}

impl cycles::Moment for Arc<Moment> {
    /// Whether neither is ordered before the other by fork and join. A thread is ordered with itself.
    fn concurrent(&self, other: &Arc<Moment>) -> bool {
        !other.knows.contains(self.epoch) && !self.knows.contains(other.epoch)
    }
}

impl Moment {
    /// Whether what is concurrent with `earlier`, of the same thread, is concurrent with `self`: only
    /// forks lie between the two, so nothing more is ordered before.
    fn covers(&self, earlier: &Moment) -> bool {
        let own = self.epoch.slot();
        self.knows.iter().all(|(slot, clock)| slot == own || clock <= earlier.knows.get(slot))
    }

    /// Whether what is concurrent with `later`, of the same thread, is concurrent with `self`: only
    /// joins lie between the two, so nothing less is ordered after.
    fn covers_later(&self, later: &Moment) -> bool {
        self.epoch == later.epoch
    }
}

impl Default for Goodlock {
    fn default() -> Goodlock {
        Goodlock::with_max_steps(MAX_STEPS)
    }
}

impl Goodlock {
    /// The analysis with another bound than [`MAX_STEPS`].
    pub fn with_max_steps(max_steps: u64) -> Goodlock {
        Goodlock {
            held: HeldLocks::default(),
            order: Order::new(Edges::LIFETIMES),
            lives: Lives::default(),
            moments: Vec::new(),
            dependencies: Vec::new(),
            numbers: FxHashMap::default(),
            max_steps,
            cut_short: 0,
        }
    }

    fn depend(&mut self, event: &Event, lock: LockId, mode: Mode) {
        let thread = event.thread;
        let holds = self.held.set(thread);
        if holds == LockSet::EMPTY || self.held.holds(thread, lock) {
            return;
        }
        let now = self.moment(thread);
        let key = (thread, holds, lock, mode, event.site);
        let Some(&number) = self.numbers.get(&key) else {
            self.numbers.insert(key, self.dependencies.len());
            let wants = Held { lock, mode, site: event.site };
            self.dependencies.push(Dependency { thread, holds, wants, moments: vec![now] });
            return;
        };
        let moments = &mut self.dependencies[number].moments;
        let last = moments.last_mut().expect("a dependency has occurred");
        if last.covers_later(&now) {
            return;
        }
        if now.covers(last) {
            *last = now;
        } else {
            moments.push(now);
        }
    }

    fn moment(&mut self, thread: ThreadId) -> Arc<Moment> {
        if thread.index() >= self.moments.len() {
            self.moments.resize_with(thread.index() + 1, || None);
        }
        let order = &mut self.order;
        let moment = self.moments[thread.index()].get_or_insert_with(|| {
            let now = order.thread(thread);
            Arc::new(Moment { epoch: now.epoch(), knows: now.clock().clone() })
        });
        Arc::clone(moment)
    }

    /// Reports the cycles of the relation and empties it.
    fn report_cycles(&mut self, out: &mut Findings) {
        let complete = cycles::search(&self.dependencies, &self.held, self.max_steps, |cycle| {
            out.report(cycles::finding(NAME, cycle, &self.held));
        });
        self.cut_short += u64::from(!complete);
        self.dependencies.clear();
        self.numbers.clear();
    }
}

impl Analysis for Goodlock {
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        self.lives.start(event.thread);
        match event.op {
            Op::Acquire(lock, mode) => {
                self.depend(event, lock, mode);
                self.held.on_event(event);
            }
            Op::Release(..) => self.held.on_event(event),
            threads!() => {
                self.order.acquire(event);
                self.order.release(event);
                if let Some(moment) = self.moments.get_mut(event.thread.index()) {
                    *moment = None;
                }
                if let Op::Fork(child) = event.op {
                    self.lives.start(child);
                }
                if let Op::Join(child) = event.op
                    && self.lives.join(child) == 1
                {
                    self.report_cycles(out);
                }
            }
            accesses!()
            | Op::Fence(_)
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => {}
        }
    }

    fn finish(&mut self, out: &mut Findings) {
        self.report_cycles(out);
    }

    fn restart(&mut self) {
        self.held.clear();
        self.order.clear();
        self.lives = Lives::default();
        self.moments.clear();
        self.dependencies.clear();
        self.numbers.clear();
        self.cut_short = 0;
    }

    fn bound(&self) -> Option<Bound> {
        (self.cut_short > 0).then_some(Bound {
            what: "pairs of dependencies are compared in one search for cycles",
            limit: self.max_steps,
            exceeded: self.cut_short,
        })
    }
}

/// Which threads have been started, and how many of them have not been joined.
#[derive(Debug, Default)]
struct Lives {
    started: Vec<bool>,
    alive: usize,
}

impl Lives {
    #[inline]
    fn start(&mut self, thread: ThreadId) {
        if !self.started.get(thread.index()).is_some_and(|&s| s) {
            if thread.index() >= self.started.len() {
                self.started.resize(thread.index() + 1, false);
            }
            self.started[thread.index()] = true;
            self.alive += 1;
        }
    }

    /// How many are left.
    fn join(&mut self, thread: ThreadId) -> usize {
        self.start(thread);
        self.alive = self.alive.saturating_sub(1);
        self.alive
    }
}

/// iGoodlock.
pub const ENTRY: Entry = Entry {
    default_in: &[Purpose::Check, Purpose::Run, Purpose::Test, Purpose::Crate],
    accesses: Accesses::None,
    atomics: false,
    needs: Needs::NestedLocks,
    ..Entry::of(NAME, "locks that threads may wait for in a circle (iGoodlock)", || {
        Box::<Goodlock>::default()
    })
};

#[cfg(test)]
mod tests {
    use super::*;

    fn event(thread: u32, op: Op) -> Event {
        Event { thread: ThreadId(thread), site: SiteId(thread), op }
    }

    fn nested(g: &mut Goodlock, thread: u32, outer: u32, inner: u32, out: &mut Findings) {
        for op in [
            Op::Acquire(LockId(outer), Mode::Exclusive),
            Op::Acquire(LockId(inner), Mode::Exclusive),
            Op::Release(LockId(inner), Mode::Exclusive),
            Op::Release(LockId(outer), Mode::Exclusive),
        ] {
            g.on_event(&event(thread, op), out);
        }
    }

    #[test]
    fn memory_does_not_grow_with_the_trace() {
        let (mut g, mut out) = (Goodlock::default(), Findings::default());
        for round in 1..2000 {
            g.on_event(&event(0, Op::Fork(ThreadId(round))), &mut out);
            nested(&mut g, 0, 0, 1, &mut out);
            nested(&mut g, round, 0, 1, &mut out);
            nested(&mut g, round, 0, 1, &mut out);
            assert!(g.dependencies.len() <= 2 && g.dependencies[0].moments.len() == 1);
            g.on_event(&event(0, Op::Join(ThreadId(round))), &mut out);
            assert!(g.dependencies.is_empty() && g.numbers.is_empty());
        }
    }

    #[test]
    fn forks_alone_do_not_add_moments() {
        let (mut g, mut out) = (Goodlock::default(), Findings::default());
        for child in 1..100 {
            g.on_event(&event(0, Op::Fork(ThreadId(child))), &mut out);
            nested(&mut g, 0, 0, 1, &mut out);
        }
        assert_eq!(g.dependencies[0].moments.len(), 1);
        nested(&mut g, 1, 1, 0, &mut out);
        g.finish(&mut out);
        assert_eq!(out.len(), 1, "the latest moment stands for the earlier ones");
    }

    #[test]
    fn joins_alone_do_not_add_moments() {
        let (mut g, mut out) = (Goodlock::default(), Findings::default());
        for child in 1..100 {
            g.on_event(&event(0, Op::Fork(ThreadId(child))), &mut out);
        }
        nested(&mut g, 1, 1, 0, &mut out);
        for child in 1..99 {
            nested(&mut g, 0, 0, 1, &mut out);
            g.on_event(&event(0, Op::Join(ThreadId(child))), &mut out);
        }
        assert_eq!(g.dependencies[1].moments.len(), 1);
        g.finish(&mut out);
        assert_eq!(out.len(), 1, "the first moment stands for the later ones");
    }
}
