//! Random executions: random programs under a random scheduler.
//!
//! A program is a list of steps for each thread; a step that makes no sense where it stands, such as
//! releasing when nothing is held, is passed over. The scheduler knows when a thread must wait. An
//! execution that deadlocks ends there, as a recorded one would.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;
use selvedge_model::trace::text::show;
use selvedge_model::wellformed::Checker;
use selvedge_model::{
    Access, AtomicOp, BarrierId, CondId, Event, LockId, Mode, Op, Range, SemaphoreId, SiteId,
    Symbols, ThreadId, UpdateOrder, Wakes,
};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Acquire(u32, Mode),
    /// The n-th last of the locks held, so that locks are released in any order.
    Release(usize),
    Fork(u32),
    Join(u32),
    Read(u64, u32),
    Write(u64, u32),
    Update(u64, u32),
    Alloc(u64, u64),
    Free(u64, u64),
    Notify,
    Wake,
    Post,
    Wait,
    /// Two threads make a round.
    Barrier,
}

/// What programs are made of.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) threads: usize,
    pub(crate) steps: usize,
    pub(crate) locks: u32,
    pub(crate) memory: bool,
    pub(crate) signals: bool,
    /// How often threads are forked and joined, other synchronization being 13.
    pub(crate) forks: u32,
    pub(crate) sites: Sites,
}

/// What events have the same site.
#[derive(Clone, Copy)]
pub(crate) enum Sites {
    /// No two.
    Own,
    /// There are only so many.
    Few(u32),
    /// Acquisitions of the same lock by the same thread.
    Same,
}

/// Events, which show as a text trace.
#[derive(Clone)]
pub(crate) struct Execution(pub(crate) Vec<Event>);

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbols = Symbols::default();
        for Event { thread, site, op } in &self.0 {
            write!(f, "\n{thread:?}|{}|{site:?}", show(op, &symbols))?;
        }
        Ok(())
    }
}

/// Executions of random programs of a shape.
pub(crate) fn executions(shape: Shape) -> impl Strategy<Value = Execution> {
    let threads =
        vec(vec((step(shape), any::<u32>()), shape.steps / 3..shape.steps), shape.threads);
    // Threads that are running at the outset, besides the first, and how the scheduler decides.
    let start = (any::<u8>(), any::<u8>()).prop_map(|(a, b)| a | b);
    (threads, start, vec(any::<u8>(), 64)).prop_map(move |(threads, started, choices)| {
        let events = Machine::new(threads, started, shape).run(&choices);
        let mut checker = Checker::default();
        for event in &events {
            assert_eq!(checker.check(event), Ok(()), "the generator makes executions");
        }
        Execution(events)
    })
}

fn step(shape: Shape) -> BoxedStrategy<Step> {
    let threads = shape.threads as u32;
    let mode = prop_oneof![3 => Just(Mode::Exclusive), 1 => Just(Mode::Shared)];
    let acquire = (0..shape.locks, mode).prop_map(|(l, m)| Step::Acquire(l, m));
    let release = (0usize..3).prop_map(|n| Step::Release(n / 2));
    let synchronization = prop_oneof![
        8 => acquire,
        5 => release,
        shape.forks => (1..threads).prop_map(Step::Fork),
        shape.forks.div_ceil(2) => (0..threads).prop_map(Step::Join),
    ];
    let place = || (0u64..12, prop_oneof![Just(1u32), Just(2), Just(4), Just(8)]);
    let memory = prop_oneof![
        6 => place().prop_map(|(a, n)| Step::Read(a, n)),
        6 => place().prop_map(|(a, n)| Step::Write(a, n)),
        1 => place().prop_map(|(a, n)| Step::Update(a, n)),
        1 => (0u64..12, 1u64..12).prop_map(|(a, n)| Step::Alloc(a, n)),
        1 => (0u64..12, 1u64..12).prop_map(|(a, n)| Step::Free(a, n)),
    ];
    let signals = prop_oneof![
        Just(Step::Notify),
        Just(Step::Wake),
        Just(Step::Post),
        Just(Step::Wait),
        Just(Step::Barrier)
    ];
    prop_oneof![
        4 => synchronization,
        if shape.memory { 4 } else { 0 } => memory,
        if shape.signals { 2 } else { 0 } => signals,
    ]
    .boxed()
}

#[derive(Default)]
struct Worker {
    steps: Vec<(Step, u32)>,
    next: usize,
    started: bool,
    ended: bool,
    joined: bool,
    held: Vec<(LockId, Mode)>,
    /// The barrier round that it waits to leave.
    inside: Option<u32>,
}

struct Machine {
    workers: Vec<Worker>,
    events: Vec<Event>,
    posts: u32,
    arrived: u32,
    sites: Sites,
}

const THE_BARRIER: BarrierId = BarrierId(0);
const ROUND: u32 = 2;

impl Machine {
    fn new(threads: Vec<Vec<(Step, u32)>>, started: u8, shape: Shape) -> Machine {
        let worker = |steps| Worker { steps, ..Worker::default() };
        let mut machine = Machine {
            workers: threads.into_iter().map(worker).collect(),
            events: Vec::new(),
            posts: 0,
            arrived: 0,
            sites: shape.sites,
        };
        for t in 0..machine.workers.len() {
            if t == 0 || started >> t & 1 == 1 {
                machine.workers[t].started = true;
                machine.emit(t, 0, Op::Begin);
            }
        }
        machine
    }

    fn run(mut self, choices: &[u8]) -> Vec<Event> {
        let mut running = 0;
        for &choice in choices.iter().cycle() {
            let able: Vec<usize> = (0..self.workers.len()).filter(|&t| self.able(t)).collect();
            if able.is_empty() {
                break;
            }
            // Mostly the same thread goes on, so that executions get past their deadlocks.
            if choice < 64 || !able.contains(&running) {
                running = able[usize::from(choice) % able.len()];
            }
            self.step(running);
        }
        self.events
    }

    fn emit(&mut self, t: usize, site: u32, op: Op) {
        let site = match self.sites {
            Sites::Few(n) => SiteId(site % n),
            Sites::Own => SiteId(self.events.len() as u32),
            Sites::Same => match op {
                Op::Acquire(lock, _) => SiteId(t as u32 * 100 + lock.0),
                _ => SiteId(0),
            },
        };
        self.events.push(Event { thread: ThreadId(t as u32), site, op });
    }

    fn able(&self, t: usize) -> bool {
        let me = &self.workers[t];
        if !me.started || me.ended {
            return false;
        }
        if let Some(round) = me.inside {
            return self.arrived >= (round + 1) * ROUND;
        }
        match me.steps.get(me.next) {
            Some(&(Step::Acquire(l, mode), _)) => self.free_for(t, LockId(l), mode),
            Some(&(Step::Join(k), _)) => {
                let child = &self.workers[k as usize];
                child.ended || child.joined || !child.started || k as usize == t
            }
            Some((Step::Wait, _)) => self.posts > 0,
            _ => true,
        }
    }

    fn free_for(&self, t: usize, lock: LockId, mode: Mode) -> bool {
        let others = self.workers.iter().enumerate().filter(|&(u, _)| u != t);
        !others.flat_map(|(_, w)| &w.held).any(|&(l, m)| l == lock && m.excludes(mode))
    }

    fn step(&mut self, t: usize) {
        if let Some(round) = self.workers[t].inside.take() {
            self.emit(t, 0, Op::Leave(THE_BARRIER, round));
            return;
        }
        let Some(&(step, site)) = self.workers[t].steps.get(self.workers[t].next) else {
            match self.workers[t].held.pop() {
                Some((lock, mode)) => self.emit(t, 0, Op::Release(lock, mode)),
                None => {
                    self.workers[t].ended = true;
                    self.emit(t, 0, Op::End);
                }
            }
            return;
        };
        self.workers[t].next += 1;
        if let Some(op) = self.operation(t, step) {
            self.emit(t, site, op);
        }
    }

    fn operation(&mut self, t: usize, step: Step) -> Option<Op> {
        let me = &mut self.workers[t];
        Some(match step {
            Step::Acquire(l, mode) => {
                let lock = LockId(l);
                if me.held.iter().any(|&(l, m)| l == lock && m != mode) {
                    return None;
                }
                me.held.push((lock, mode));
                Op::Acquire(lock, mode)
            }
            Step::Release(n) => {
                let i = me.held.len().checked_sub(n + 1)?;
                let (lock, mode) = me.held.remove(i);
                Op::Release(lock, mode)
            }
            Step::Fork(k) => {
                let child = &mut self.workers[k as usize];
                if child.started {
                    return None;
                }
                child.started = true;
                Op::Fork(ThreadId(k))
            }
            Step::Join(k) => {
                let child = &mut self.workers[k as usize];
                if !child.ended || child.joined || k as usize == t {
                    return None;
                }
                child.joined = true;
                Op::Join(ThreadId(k))
            }
            Step::Read(addr, len) => Op::Read(Access { addr, len }),
            Step::Write(addr, len) => Op::Write(Access { addr, len }),
            Step::Update(addr, len) => {
                Op::Atomic(Access { addr, len }, AtomicOp::Update(UpdateOrder::AcqRel))
            }
            Step::Alloc(start, len) => Op::Alloc(Range { start, len }),
            Step::Free(start, len) => Op::Free(Range { start, len }),
            Step::Notify => Op::Notify(CondId(0), Wakes::All),
            Step::Wake => Op::Wake(CondId(0)),
            Step::Post => {
                self.posts += 1;
                Op::Post(SemaphoreId(0))
            }
            Step::Wait => {
                self.posts -= 1;
                Op::Wait(SemaphoreId(0))
            }
            Step::Barrier => {
                let round = self.arrived / ROUND;
                self.arrived += 1;
                me.inside = Some(round);
                Op::Arrive(THE_BARRIER, round)
            }
        })
    }
}
