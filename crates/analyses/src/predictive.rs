//! Sync-preserving races and deadlocks: those that another order of the same events shows, each with that order.
//!
//! Mathur, Pavlogiannis and Viswanathan, "Optimal Prediction of Synchronization-Preserving Races" (POPL 2021). A
//! *reordering* of an execution has a beginning of each thread; every read in it sees the write that it saw in
//! the execution, and locks exclude. It *preserves synchronization* if acquisitions of one lock come in it in the
//! order of the execution. Two conflicting accesses race if after such a reordering both of them are next. By
//! theorem 1 of the paper the reordering that matters is the execution itself, left out what is not in the
//! *ideal* of the two: the least set of events with what precedes them in their threads that contains, with a
//! read, the write that it saw and, with two acquisitions of one lock, the release of the earlier one. The two
//! race if neither is in their ideal.
//!
//! How: as algorithm 1 of the paper. For each pair of threads and kinds of accesses to a byte, ideals only grow,
//! so an access that is in one ideal need not be looked at again.
//!
//! Deadlocks are in `deadlocks`.
//!
//! Deviations. Starting a thread precedes the thread, and its end precedes joining it. What is not a lock or
//! memory keeps its order: each use of a semaphore or condition variable comes after those before it, and leaving
//! a barrier after every arrival. Two readers of a reader-writer lock do not exclude each other. Atomic accesses
//! are read and written like memory, and race with nothing. Allocating or freeing memory forgets its past.
//!
//! Guarantee: every race and every deadlock that is reported has a [`Witness`], an order of events of this execution that a program
//! which decides by what its reads see can show. Of each later access and each thread and kind of earlier ones,
//! exactly those with a sync-preserving race are reported, with the earliest access that makes one, unless one
//! byte has more than [`MAX_PAST`] accesses of a thread and kind, or the execution more than [`MAX_ACCESSES`] to remember;
//! [`Analysis::bound`] says so. A program that decides
//! by what is not in the trace, such as a lock that it could not get at once, may do something else.
//!
//! Cost: O(threads) per event, O(acquisitions) for each pair of threads that share a byte, and for each circle of locks.

mod deadlocks;

use std::rc::Rc;

use rustc_hash::FxHashMap;
use selvedge_model::{
    Access, BarrierId, CondId, Event, Findings, Held, LockId, Mode, Op, SemaphoreId, SiteId,
    ThreadId,
};

use crate::common::held::{HeldLocks, LockSet};
use crate::common::past::{self, Past};
use crate::common::shadow::Shadow;
use crate::common::witness::{Beginning, Witness, of};
use crate::entry::{Entry, Needs, Purpose};
use crate::{Analysis, Bound};

/// How many accesses to a byte by one thread are remembered, reads and writes each.
pub const MAX_PAST: usize = 1024;

/// How many accesses are remembered altogether.
pub const MAX_ACCESSES: u64 = 1 << 20;

use deadlocks::Deadlocks;

const NAME: &str = "predictive";

fn join(into: &mut Beginning, other: &[u32]) {
    if into.len() < other.len() {
        into.resize(other.len(), 0);
    }
    into.iter_mut().zip(other).for_each(|(mine, &theirs)| *mine = theirs.max(*mine));
}

/// An acquisition, while a thread holds a lock.
#[derive(Clone, Debug)]
struct Section {
    lock: LockId,
    mode: Mode,
    /// Which event of the execution.
    at: u64,
    /// Which event of its thread, from 1.
    count: u32,
    /// What the release comes after, with the release itself; none until then.
    release: Option<Rc<Beginning>>,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    /// What its next event comes after.
    past: Beginning,
    sections: Vec<Section>,
}

/// A plain access of the past.
#[derive(Clone, PartialEq, Debug)]
struct Remembered {
    access: Past,
    /// Which event of its thread, from 1.
    count: u32,
    /// What the event before it in its thread comes after, with that event.
    past: Rc<Beginning>,
}

/// The least set of events that contains what it must.
#[derive(Clone, PartialEq, Debug, Default)]
struct Ideal {
    events: Beginning,
    /// How many critical sections of each thread were looked at.
    looked: Vec<usize>,
    /// The last section of each thread for each lock: the thread and the number of the section.
    latest: FxHashMap<LockId, Vec<(usize, usize)>>,
    /// The release of a section that must be in it is missing.
    broken: bool,
}

impl Ideal {
    /// Adds events, and what they bring with them.
    fn add(&mut self, events: &[u32], threads: &[Thread]) {
        join(&mut self.events, events);
        self.looked.resize(threads.len().max(self.looked.len()), 0);
        let mut grown = true;
        while grown {
            grown = false;
            for (t, thread) in threads.iter().enumerate() {
                while let Some(section) = thread.sections.get(self.looked[t])
                    && section.count <= self.events.get(t).copied().unwrap_or(0)
                {
                    grown = true;
                    self.enter(t, self.looked[t], threads);
                    self.looked[t] += 1;
                }
            }
        }
    }

    fn enter(&mut self, t: usize, number: usize, threads: &[Thread]) {
        let section = &threads[t].sections[number];
        let latest = self.latest.entry(section.lock).or_default();
        latest.retain(|&(thread, _)| thread != t);
        let mut needed = Vec::new();
        for &(thread, other) in latest.iter() {
            let other = &threads[thread].sections[other];
            if section.mode.excludes(other.mode) {
                needed.push(if other.at < section.at { other } else { section });
            }
        }
        latest.push((t, number));
        for section in needed {
            match &section.release {
                Some(release) => join(&mut self.events, release),
                None => self.broken = true,
            }
        }
    }

    fn contains(&self, access: &Remembered) -> bool {
        self.broken || of(&self.events, access.access.thread) >= access.count
    }
}

/// The accesses of one kind by one thread.
#[derive(Clone, PartialEq, Debug)]
struct Line {
    thread: ThreadId,
    write: bool,
    list: Vec<Remembered>,
}

/// What is known of a byte.
#[derive(Clone, PartialEq, Debug, Default)]
struct Variable {
    lines: Vec<Line>,
    /// The ideal of a line and the later accesses of a thread and kind, and how many accesses of the line are in it.
    ideals: Vec<((usize, ThreadId, bool), usize, Ideal)>,
    /// What a read of it comes after.
    written: Option<Rc<Beginning>>,
}

/// The analysis.
#[derive(Debug, Default)]
pub struct Predictive {
    held: HeldLocks,
    threads: Vec<Thread>,
    memory: Shadow<Variable>,
    semaphores: FxHashMap<SemaphoreId, Beginning>,
    barriers: FxHashMap<(BarrierId, u32), Beginning>,
    conditions: FxHashMap<CondId, Beginning>,
    events: u64,
    witnesses: Vec<Witness>,
    deadlocks: Deadlocks,
    remembered: u64,
    forgotten: u64,
}

impl Analysis for Predictive {
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        let thread = event.thread;
        self.know(thread);
        self.events += 1;
        let past = &mut self.threads[thread.index()].past;
        match event.op {
            Op::Read(access) | Op::Write(access) => {
                let before = Rc::new(past.clone());
                past[thread.index()] += 1;
                self.access(event, access, before, out);
            }
            Op::Atomic(access, op) => {
                past[thread.index()] += 1;
                if op.reads() {
                    self.reads(thread, access);
                }
                if op.writes() {
                    self.writes(thread, access);
                }
            }
            locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | allocation!()
            | regions!()
            | Op::Fence(_) => {
                if let Op::Acquire(lock, mode) = event.op {
                    let wants = Held { lock, mode, site: event.site };
                    self.deadlocks.acquire(thread, wants, &self.held, past);
                }
                past[thread.index()] += 1;
                self.synchronizes(event);
            }
        }
        self.held.on_event(event);
    }

    fn finish(&mut self, out: &mut Findings) {
        let Predictive { deadlocks, held, threads, witnesses, .. } = self;
        deadlocks.report(held, threads, |finding, witness| {
            witnesses.push(witness);
            out.report(finding);
        });
    }

    fn restart(&mut self) {
        *self = Predictive::default();
    }

    fn witnesses(&self) -> &[Witness] {
        &self.witnesses
    }

    fn bound(&self) -> Option<Bound> {
        let (what, limit) = match self.remembered < MAX_ACCESSES {
            true => ("past accesses of one thread to one byte are remembered", MAX_PAST as u64),
            false => ("past accesses are remembered", MAX_ACCESSES),
        };
        let exceeded = self.forgotten;
        let accesses = (exceeded > 0).then_some(Bound { what, limit, exceeded });
        accesses.or_else(|| self.deadlocks.bound())
    }
}

impl Predictive {
    fn know(&mut self, thread: ThreadId) {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Thread::default);
        }
        let past = &mut self.threads[thread.index()].past;
        past.resize(past.len().max(thread.index() + 1), 0);
    }

    fn synchronizes(&mut self, event: &Event) {
        let thread = event.thread;
        match event.op {
            Op::Acquire(lock, mode) if self.held.depth(thread, lock) == 0 => {
                let Thread { past, sections } = &mut self.threads[thread.index()];
                let (at, count) = (self.events, past[thread.index()]);
                sections.push(Section { lock, mode, at, count, release: None });
            }
            Op::Release(lock, _) if self.held.depth(thread, lock) == 1 => {
                let Thread { past, sections } = &mut self.threads[thread.index()];
                if let Some(section) = sections.iter_mut().rfind(|s| s.lock == lock) {
                    section.release = Some(Rc::new(past.clone()));
                }
            }
            Op::Fork(child) => {
                self.know(child);
                let past = self.threads[thread.index()].past.clone();
                join(&mut self.threads[child.index()].past, &past);
            }
            Op::Join(child) => {
                self.know(child);
                let past = self.threads[child.index()].past.clone();
                join(&mut self.threads[thread.index()].past, &past);
            }
            Op::Post(semaphore) | Op::Wait(semaphore) => {
                let past = &mut self.threads[thread.index()].past;
                let uses = self.semaphores.entry(semaphore).or_default();
                join(past, uses);
                uses.clone_from(past);
            }
            Op::Notify(cond, _) | Op::Wake(cond) => {
                let past = &mut self.threads[thread.index()].past;
                let uses = self.conditions.entry(cond).or_default();
                join(past, uses);
                uses.clone_from(past);
            }
            Op::Arrive(barrier, round) => {
                let past = &self.threads[thread.index()].past;
                join(self.barriers.entry((barrier, round)).or_default(), past);
            }
            Op::Leave(barrier, round) => {
                if let Some(arrived) = self.barriers.get(&(barrier, round)) {
                    join(&mut self.threads[thread.index()].past, arrived);
                }
            }
            Op::Alloc(range) | Op::Free(range) => self.memory.forget(range, |_, _| {}),
            accesses!() | locks!() | Op::Begin | Op::End | Op::Fence(_) | regions!() => {}
        }
    }

    fn reads(&mut self, thread: ThreadId, access: Access) {
        let Predictive { memory, threads, .. } = self;
        let past = &mut threads[thread.index()].past;
        memory.visit(access.range(), |_, variable| {
            if let Some(written) = &variable.written {
                join(past, written);
            }
        });
    }

    fn writes(&mut self, thread: ThreadId, access: Access) {
        let Predictive { memory, threads, .. } = self;
        let past = Rc::new(threads[thread.index()].past.clone());
        memory.visit(access.range(), |_, variable| variable.written = Some(Rc::clone(&past)));
    }

    fn access(&mut self, event: &Event, access: Access, before: Rc<Beginning>, out: &mut Findings) {
        let (thread, write) = (event.thread, matches!(event.op, Op::Write(_)));
        let count = self.threads[thread.index()].past[thread.index()];
        let held: LockSet = self.held.set(thread);
        let now = Remembered {
            access: Past { thread, site: event.site, held, write },
            count,
            past: before,
        };
        let Predictive { held, threads, memory, witnesses, remembered, forgotten, .. } = self;
        let mut reported: Vec<SiteId> = Vec::new();
        memory.visit(access.range(), |bytes, variable| {
            for (earlier, before) in variable.races(&now, threads) {
                if reported.contains(&earlier.site) {
                    continue;
                }
                reported.push(earlier.site);
                let sites = vec![earlier.site, now.access.site];
                if witnesses.iter().all(|w| w.sites != sites) {
                    let threads = vec![earlier.thread, now.access.thread];
                    witnesses.push(Witness { sites, before, threads });
                }
                past::report(NAME, bytes, [earlier, now.access], held, out);
            }
            if *remembered < MAX_ACCESSES && variable.remember(&now) {
                *remembered += 1;
            } else {
                *forgotten += 1;
            }
        });
        if write {
            self.writes(thread, access);
        } else {
            self.reads(thread, access);
        }
    }
}

impl Variable {
    /// Of each line the earliest access that races with `now`, and the ideal of the two.
    fn races(&mut self, now: &Remembered, threads: &[Thread]) -> Vec<(Past, Beginning)> {
        let Past { thread, write, .. } = now.access;
        let mut races = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            if line.thread == thread || !(line.write || write) {
                continue;
            }
            let key = (number, thread, write);
            let at = self.ideals.iter().position(|(k, ..)| *k == key).unwrap_or_else(|| {
                self.ideals.push((key, 0, Ideal::default()));
                self.ideals.len() - 1
            });
            let (_, inside, ideal) = &mut self.ideals[at];
            ideal.add(&now.past, threads);
            while let Some(earlier) = line.list.get(*inside) {
                ideal.add(&earlier.past, threads);
                if !ideal.contains(earlier) {
                    races.push((earlier.access, ideal.events.clone()));
                    break;
                }
                *inside += 1;
            }
        }
        races
    }

    /// False if there are too many of its kind.
    fn remember(&mut self, now: &Remembered) -> bool {
        let Past { thread, write, .. } = now.access;
        let is_same = |l: &&mut Line| (l.thread, l.write) == (thread, write);
        match self.lines.iter_mut().find(is_same) {
            Some(line) if line.list.len() >= MAX_PAST => return false,
            Some(line) => line.list.push(now.clone()),
            None => self.lines.push(Line { thread, write, list: vec![now.clone()] }),
        }
        true
    }
}

/// Sync-preserving races.
pub const ENTRY: Entry = Entry {
    needs: Needs::Accesses,
    atomics: true,
    default_in: &[Purpose::Test],
    ..Entry::of(
        NAME,
        "races and deadlocks that another order of the same events is known to show",
        || Box::<Predictive>::default(),
    )
};
