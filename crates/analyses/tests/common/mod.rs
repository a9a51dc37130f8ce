//! Random executions for property tests.
//!
//! A trace is grown step by step from random choices: each step picks a thread and an operation that
//! is possible in the present state, so the result is always an execution. Every event has a site of
//! its own, equal to its index.

use proptest::prelude::*;
use selvedge_model::{
    Access, AtomicOp, BarrierId, CondId, Event, LoadOrder, LockId, Mode, Op, Range, SemaphoreId,
    SiteId, StoreOrder, ThreadId, UpdateOrder, Wakes,
};

/// What a random execution may contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) steps: usize,
    pub(crate) threads: u32,
    pub(crate) locks: u32,
    pub(crate) rwlocks: bool,
    pub(crate) variables: u64,
    pub(crate) mixed_sizes: bool,
    pub(crate) atomics: bool,
    pub(crate) rendezvous: bool,
    pub(crate) conditions: bool,
    pub(crate) allocation: bool,
}

/// Executions of the given shape.
pub(crate) fn executions(shape: Shape) -> impl Strategy<Value = Vec<Event>> {
    proptest::collection::vec(any::<(u8, u8, u8)>(), 0..shape.steps)
        .prop_map(move |choices| Grower::new(shape).grow(&choices))
}

/// Where the memory of variable `n` starts.
pub(crate) fn address(n: u64) -> u64 {
    0x100 + n * 8
}

#[derive(Clone, Copy, PartialEq)]
enum Life {
    Unborn,
    Running,
    /// Inside a round of a barrier.
    Waiting(BarrierId, u32),
    Ended,
    Joined,
}

struct Grower {
    shape: Shape,
    lives: Vec<Life>,
    holds: Vec<(ThreadId, LockId, Mode)>,
    semaphore: u32,
    /// Arrivals in the current round of the one barrier; two make it complete.
    round: u32,
    arrived: u32,
    events: Vec<Event>,
}

const PARTIES: u32 = 2;

impl Grower {
    fn new(shape: Shape) -> Grower {
        let mut lives = vec![Life::Unborn; shape.threads as usize];
        // Two threads are there from the start, the others must be forked.
        lives.iter_mut().take(2).for_each(|l| *l = Life::Running);
        Grower { shape, lives, holds: vec![], semaphore: 0, round: 0, arrived: 0, events: vec![] }
    }

    fn grow(mut self, choices: &[(u8, u8, u8)]) -> Vec<Event> {
        for &(who, what, which) in choices {
            let thread = ThreadId(u32::from(who) % self.shape.threads);
            match self.lives[thread.index()] {
                Life::Running => self.step(thread, what, which),
                Life::Waiting(barrier, round) if round < self.round => {
                    self.lives[thread.index()] = Life::Running;
                    self.emit(thread, Op::Leave(barrier, round));
                }
                _ => {}
            }
        }
        self.events
    }

    fn emit(&mut self, thread: ThreadId, op: Op) {
        let site = SiteId(self.events.len() as u32);
        self.events.push(Event { thread, site, op });
    }

    fn step(&mut self, thread: ThreadId, what: u8, which: u8) {
        match what % 16 {
            0..4 => {
                let access = self.access(which);
                let op = if what & 64 == 0 { Op::Read(access) } else { Op::Write(access) };
                self.emit(thread, op);
            }
            4..6 => self.acquire(thread, which),
            6..8 => self.release(thread, which),
            8 => self.fork(thread, which),
            9 => self.join_or_end(thread, which),
            10 | 11 if self.shape.atomics => self.atomic(thread, what / 16, which),
            12 if self.shape.rendezvous => self.rendezvous(thread, which),
            13 if self.shape.conditions => {
                let cond = CondId(0);
                let op = if which.is_multiple_of(2) {
                    Op::Notify(cond, Wakes::One)
                } else {
                    Op::Wake(cond)
                };
                self.emit(thread, op);
            }
            14 if self.shape.allocation => {
                let start = address(u64::from(which) % self.shape.variables);
                let range = Range { start, len: 8 };
                self.emit(thread, if what & 64 == 0 { Op::Free(range) } else { Op::Alloc(range) });
            }
            _ => {}
        }
    }

    fn access(&self, which: u8) -> Access {
        let addr = address(u64::from(which) % self.shape.variables);
        if !self.shape.mixed_sizes {
            return Access { addr, len: 8 };
        }
        match which / 16 % 5 {
            0 => Access { addr, len: 8 },
            1 => Access { addr, len: 4 },
            2 => Access { addr: addr + 4, len: 4 },
            3 => Access { addr: addr + 6, len: 5 },
            _ => Access { addr: addr + 3, len: 1 },
        }
    }

    fn acquire(&mut self, thread: ThreadId, which: u8) {
        let lock = LockId(u32::from(which) % self.shape.locks);
        let shared = self.shape.rwlocks && which & 128 != 0;
        let mode = if shared { Mode::Shared } else { Mode::Exclusive };
        let taken = self.holds.iter().any(|&(t, l, m)| {
            l == lock && ((t != thread && m.excludes(mode)) || (t == thread && m != mode))
        });
        if !taken {
            self.holds.push((thread, lock, mode));
            self.emit(thread, Op::Acquire(lock, mode));
        }
    }

    fn release(&mut self, thread: ThreadId, which: u8) {
        let mine: Vec<usize> =
            (0..self.holds.len()).filter(|&i| self.holds[i].0 == thread).collect();
        if let Some(&i) = mine.get(usize::from(which) % mine.len().max(1)) {
            let (_, lock, mode) = self.holds.remove(i);
            self.emit(thread, Op::Release(lock, mode));
        }
    }

    fn fork(&mut self, thread: ThreadId, which: u8) {
        let child = ThreadId(u32::from(which) % self.shape.threads);
        if self.lives[child.index()] == Life::Unborn {
            self.lives[child.index()] = Life::Running;
            self.emit(thread, Op::Fork(child));
        }
    }

    fn join_or_end(&mut self, thread: ThreadId, which: u8) {
        let child = ThreadId(u32::from(which) % self.shape.threads);
        match self.lives[child.index()] {
            Life::Ended if child != thread => {
                self.lives[child.index()] = Life::Joined;
                self.emit(thread, Op::Join(child));
            }
            Life::Running if child == thread && self.holds.iter().all(|h| h.0 != thread) => {
                self.lives[child.index()] = Life::Ended;
                self.emit(thread, Op::End);
            }
            _ => {}
        }
    }

    fn atomic(&mut self, thread: ThreadId, how: u8, which: u8) {
        let access = Access { addr: address(u64::from(which) % self.shape.variables), len: 8 };
        let op = match how % 13 {
            0 => AtomicOp::Load(LoadOrder::Relaxed),
            1 | 2 => AtomicOp::Load(LoadOrder::Acquire),
            3 => AtomicOp::Load(LoadOrder::SeqCst),
            4 => AtomicOp::Store(StoreOrder::Relaxed),
            5 | 6 => AtomicOp::Store(StoreOrder::Release),
            7 => AtomicOp::Update(UpdateOrder::Relaxed),
            8 => AtomicOp::Update(UpdateOrder::Acquire),
            9 => AtomicOp::Update(UpdateOrder::Release),
            10 => AtomicOp::Update(UpdateOrder::AcqRel),
            11 => return self.emit(thread, Op::Fence(UpdateOrder::Release)),
            _ => return self.emit(thread, Op::Fence(UpdateOrder::Acquire)),
        };
        self.emit(thread, Op::Atomic(access, op));
    }

    fn rendezvous(&mut self, thread: ThreadId, which: u8) {
        match which % 4 {
            0 | 1 => {
                self.emit(thread, Op::Arrive(BarrierId(0), self.round));
                self.lives[thread.index()] = Life::Waiting(BarrierId(0), self.round);
                self.arrived += 1;
                if self.arrived == PARTIES {
                    self.arrived = 0;
                    self.round += 1;
                }
            }
            2 => {
                self.semaphore += 1;
                self.emit(thread, Op::Post(SemaphoreId(0)));
            }
            _ if self.semaphore > 0 => {
                self.semaphore -= 1;
                self.emit(thread, Op::Wait(SemaphoreId(0)));
            }
            _ => {}
        }
    }
}
