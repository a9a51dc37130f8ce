//! Which earlier operations an operation conflicts with, for analyses of serializability.
//!
//! Two operations conflict if exchanging them may change what the program does. In the terms of
//! SingleTrack §2 (Sadowski, Freund and Flanagan, ESOP 2009), extended from Java to our operations:
//!
//! | operations of different threads | conflict |
//! | --- | --- |
//! | plain and atomic accesses that share a byte | if one of them writes; memory orders are irrelevant |
//! | acquisitions and releases of one lock | unless all are in shared mode, where readers commute |
//! | arriving at and leaving a round of a barrier | the arrival comes first; arrivals commute, so do departures |
//! | posting and waiting for a semaphore | a wait comes after every earlier post; posts commute, so do waits |
//! | starting and joining a thread | with everything the thread does; kept by the analyses themselves |
//!
//! Fences and condition variables conflict with nothing: what a fence orders is ordered through the
//! accesses around it, and a waiter's lock is released and acquired by events of its own. Freeing
//! memory ends its history and conflicts with nothing; use after free is a race detector's business.
//!
//! Only as much is kept as is needed to find, for each operation, conflicting operations through which
//! all others come before it: the last write of each byte and the last reads since of each thread, the
//! last release of each lock and so on. What is kept is a [`Mark`], chosen by the analysis.
//!
//! Cost: O(1) for an access that changes nothing; at most O(threads) otherwise.

use rustc_hash::FxHashMap;
use selvedge_model::{BarrierId, Event, LockId, Mode, Op, Role, ThreadId};

use crate::common::shadow::Shadow;

/// An operation as an analysis remembers it. The default stands for none.
pub trait Mark: Clone + Default + PartialEq {
    /// Whether there is nothing to remember.
    fn is_none(&self) -> bool;

    /// Who did it.
    fn thread(&self) -> ThreadId;

    /// Whether `newer`, by the same thread, need not be remembered once this one is: everything that
    /// comes after one of them comes after the other, and they have the same to come after.
    fn covers(&self, newer: &Self) -> bool;
}

/// The operations so far, as far as later ones can conflict with them.
#[derive(Debug)]
pub struct Conflicts<M> {
    memory: Shadow<Cell<M>>,
    locks: Vec<Lock<M>>,
    semaphores: Vec<Vec<M>>,
    rounds: FxHashMap<(BarrierId, u32), Round<M>>,
}

#[derive(Clone, Default, PartialEq, Debug)]
struct Cell<M> {
    write: M,
    /// A read since the last write.
    read: M,
    /// Reads since the last write by further threads.
    // invariant: empty if `read` is none; no thread appears twice among `read` and these.
    #[allow(clippy::box_collection)] // Rare, and one word in a cell instead of three.
    more: Option<Box<Vec<M>>>,
}

#[derive(Debug)]
struct Lock<M> {
    exclusive: M,
    // Releases in shared mode since `exclusive`, the last one of each thread.
    shared: Vec<M>,
}

impl<M: Default> Default for Lock<M> {
    fn default() -> Lock<M> {
        Lock { exclusive: M::default(), shared: Vec::new() }
    }
}

#[derive(Debug)]
struct Round<M> {
    arrivals: Vec<M>,
    inside: usize,
}

impl<M: Mark> Default for Conflicts<M> {
    fn default() -> Conflicts<M> {
        Conflicts {
            memory: Shadow::default(),
            locks: Vec::new(),
            semaphores: Vec::new(),
            rounds: FxHashMap::default(),
        }
    }
}

impl<M: Mark> Conflicts<M> {
    /// Calls `source` with operations of other threads that `event` comes after, and with what they
    /// did; those that conflict with it and are not passed come before one that is, or before
    /// something of the same thread.
    pub fn sources(&mut self, event: &Event, mut source: impl FnMut(&M, Role)) {
        let me = event.thread;
        let mut other = |mark: &M, role| {
            if !mark.is_none() && mark.thread() != me {
                source(mark, role);
            }
        };
        match event.op {
            Op::Read(access) => self.memory.visit(access.range(), |_, cell| {
                other(&cell.write, Role::Write);
            }),
            Op::Write(access) => {
                self.memory.visit(access.range(), |_, cell| cell.all(&mut other));
            }
            Op::Atomic(access, op) => self.memory.visit(access.range(), |_, cell| {
                if op.writes() {
                    cell.all(&mut other);
                } else {
                    other(&cell.write, Role::Write);
                }
            }),
            Op::Acquire(id, mode) => {
                if let Some(lock) = self.locks.get(id.index()) {
                    other(&lock.exclusive, Role::Release(id));
                    if mode == Mode::Exclusive {
                        lock.shared.iter().for_each(|m| other(m, Role::Release(id)));
                    }
                }
            }
            Op::Leave(barrier, round) => {
                if let Some(round) = self.rounds.get(&(barrier, round)) {
                    round.arrivals.iter().for_each(|m| other(m, Role::Arrive(barrier)));
                }
            }
            Op::Wait(semaphore) => {
                let posts = self.semaphores.get(semaphore.index()).into_iter().flatten();
                posts.for_each(|m| other(m, Role::Post(semaphore)));
            }
            Op::Fence(_)
            | Op::Release(..)
            | threads!()
            | Op::Arrive(..)
            | Op::Post(_)
            | conditions!()
            | regions!()
            | allocation!() => {}
        }
    }

    /// Remembers `event` as `mark`.
    pub fn record(&mut self, event: &Event, mark: &M) {
        match event.op {
            Op::Read(access) => {
                self.memory.visit(access.range(), |_, cell| cell.on_read(mark, event.thread));
            }
            Op::Write(access) => self.memory.visit(access.range(), |_, cell| cell.on_write(mark)),
            Op::Atomic(access, op) => self.memory.visit(access.range(), |_, cell| {
                if op.writes() {
                    cell.on_write(mark);
                } else {
                    cell.on_read(mark, event.thread);
                }
            }),
            Op::Release(id, mode) => self.release(id, mode, mark, event.thread),
            Op::Arrive(barrier, round) => {
                if !self.rounds.contains_key(&(barrier, round)) {
                    // As in `Order`: older rounds are kept only for threads that are slow to leave.
                    self.rounds
                        .retain(|&(b, old), r| b != barrier || old + 2 > round || r.inside > 0);
                }
                let round = self
                    .rounds
                    .entry((barrier, round))
                    .or_insert_with(|| Round { arrivals: Vec::new(), inside: 0 });
                put(&mut round.arrivals, mark, event.thread);
                round.inside += 1;
            }
            Op::Leave(barrier, round) => {
                if let Some(round) = self.rounds.get_mut(&(barrier, round)) {
                    round.inside = round.inside.saturating_sub(1);
                }
            }
            Op::Post(semaphore) => {
                if semaphore.index() >= self.semaphores.len() {
                    self.semaphores.resize_with(semaphore.index() + 1, Vec::new);
                }
                put(&mut self.semaphores[semaphore.index()], mark, event.thread);
            }
            Op::Alloc(range) | Op::Free(range) => self.memory.forget(range, |_, _| {}),
            Op::Fence(_)
            | Op::Acquire(..)
            | threads!()
            | Op::Wait(_)
            | conditions!()
            | regions!() => {}
        }
    }

    /// [`Conflicts::sources`] and [`Conflicts::record`] in one for a plain access, where `mark` does
    /// not depend on the sources.
    #[inline]
    pub fn access(&mut self, event: &Event, mark: &M, mut source: impl FnMut(&M, Role)) {
        let me = event.thread;
        let mut other = |mark: &M, role| {
            if !mark.is_none() && mark.thread() != me {
                source(mark, role);
            }
        };
        match event.op {
            Op::Read(access) => self.memory.visit(access.range(), |_, cell| {
                if !cell.read.covers(mark) && !cell.write.covers(mark) {
                    other(&cell.write, Role::Write);
                    cell.on_read(mark, me);
                }
            }),
            Op::Write(access) => self.memory.visit(access.range(), |_, cell| {
                if !cell.write.covers(mark) || !cell.read.is_none() {
                    cell.all(&mut other);
                    cell.on_write(mark);
                }
            }),
            Op::Atomic(..)
            | Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => debug_assert!(false, "not a plain access"),
        }
    }

    /// Shows every mark to `change`, which may alter it.
    pub fn each_mark(&mut self, mut change: impl FnMut(&mut M)) {
        self.memory.each(|cell| cell.each_mark(&mut change));
        for lock in &mut self.locks {
            change(&mut lock.exclusive);
            change_all(&mut lock.shared, &mut change);
        }
        for posts in &mut self.semaphores {
            change_all(posts, &mut change);
        }
        for round in self.rounds.values_mut() {
            change_all(&mut round.arrivals, &mut change);
        }
    }

    /// Forgets every operation.
    pub fn clear(&mut self) {
        self.memory.clear();
        for lock in &mut self.locks {
            lock.exclusive = M::default();
            lock.shared.clear();
        }
        self.semaphores.iter_mut().for_each(Vec::clear);
        self.rounds.clear();
    }

    /// How many pages of memory are remembered, a measure of the memory that this takes.
    pub fn shadow_pages(&self) -> usize {
        self.memory.pages()
    }

    fn release(&mut self, id: LockId, mode: Mode, mark: &M, me: ThreadId) {
        if id.index() >= self.locks.len() {
            if mark.is_none() {
                return;
            }
            self.locks.resize_with(id.index() + 1, Lock::default);
        }
        let lock = &mut self.locks[id.index()];
        match mode {
            Mode::Exclusive => {
                lock.exclusive = mark.clone();
                lock.shared.clear();
            }
            Mode::Shared => put(&mut lock.shared, mark, me),
        }
    }
}

/// Makes `mark` the only one of thread `me`.
fn put<M: Mark>(marks: &mut Vec<M>, mark: &M, me: ThreadId) {
    match marks.iter().position(|m| m.thread() == me) {
        Some(i) if mark.is_none() => {
            marks.swap_remove(i);
        }
        Some(i) => marks[i] = mark.clone(),
        None if mark.is_none() => {}
        None => marks.push(mark.clone()),
    }
}

fn change_all<M: Mark>(marks: &mut Vec<M>, change: &mut impl FnMut(&mut M)) {
    marks.iter_mut().for_each(change);
    marks.retain(|m| !m.is_none());
}

impl<M: Mark> Cell<M> {
    #[inline]
    fn all(&self, other: &mut impl FnMut(&M, Role)) {
        other(&self.write, Role::Write);
        other(&self.read, Role::Read);
        if let Some(more) = &self.more {
            more.iter().for_each(|m| other(m, Role::Read));
        }
    }

    #[inline]
    fn on_write(&mut self, mark: &M) {
        self.write = mark.clone();
        self.read = M::default();
        self.more = None;
    }

    #[inline]
    fn on_read(&mut self, mark: &M, me: ThreadId) {
        if self.read.is_none() || (self.more.is_none() && self.read.thread() == me) {
            self.read = mark.clone();
        } else {
            self.on_shared_read(mark, me);
        }
    }

    #[cold]
    fn on_shared_read(&mut self, mark: &M, me: ThreadId) {
        let mut reads = self.more.take().unwrap_or_default();
        reads.push(std::mem::take(&mut self.read));
        put(&mut reads, mark, me);
        self.keep(reads);
    }

    fn each_mark(&mut self, change: &mut impl FnMut(&mut M)) {
        change(&mut self.write);
        change(&mut self.read);
        if let Some(mut reads) = self.more.take() {
            reads.push(std::mem::take(&mut self.read));
            change_all(&mut reads, change);
            self.keep(reads);
        }
    }

    #[allow(clippy::box_collection)] // It comes out of the cell and goes back into it.
    fn keep(&mut self, mut reads: Box<Vec<M>>) {
        self.read = reads.pop().unwrap_or_default();
        self.more = (!reads.is_empty()).then_some(reads);
    }
}
