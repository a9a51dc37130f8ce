//! The history that a controlled program writes becomes steps and events.
//!
//! Objects are numbered by the program in order of first use and never by address; addresses of
//! accesses are replaced by numbers as well, 16 bytes at a time, because that is how finely the kernel
//! places stacks. So the same schedule gives the same events wherever the program was loaded.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

use selvedge_explore::{Pending, Step, Strategy};
use selvedge_model::{
    Access, AtomicOp, BarrierId, CondId, Event, Held, LoadOrder, LockId, Mode, Op, RegionId,
    RegionKind, SemaphoreId, SiteId, ThreadId, UpdateOrder, Wakes,
};

use super::names::{FRAMES, Names, Origin};
use super::wire::{self, Control, Kind, class};
use crate::translate::{load_order, store_order, update_order};

/// A return address, and those of the functions around it, innermost first, 0 where none is known.
pub type Code = (u64, [u64; wire::CALLERS]);

/// Finds the site of a return address, and its landmark.
pub type Sites<'a> = &'a mut dyn FnMut(Code) -> (SiteId, u16);

/// Ids of one kind in order of first use.
#[derive(Debug, Default)]
pub(super) struct Ids(HashMap<u64, u32>);

impl Objects {
    /// The id of the object of a line.
    fn id(&mut self, kind: fn(&mut Objects) -> &mut Ids, line: &Line) -> u32 {
        let ids = kind(self);
        let (before, id) = (ids.0.len(), ids.id(line.object));
        if ids.0.len() > before {
            self.addresses.insert(line.object, line.a);
        }
        id
    }
}

impl Ids {
    fn id(&mut self, key: u64) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(key).or_insert(next)
    }

    /// What the ids stand for, in their order.
    pub(super) fn keys(&self) -> Vec<u64> {
        let mut keys = vec![0; self.0.len()];
        self.0.iter().for_each(|(&key, &id)| keys[id as usize] = key);
        keys
    }
}

/// What tells where records belong.
pub struct Lookup<'a> {
    /// Sites of code.
    pub sites: Sites<'a>,
    /// Regions by where their names are in memory, how long these are, and kind.
    pub regions: &'a mut dyn FnMut(u64, usize, RegionKind) -> RegionId,
    /// A number for a place in static memory that is the same wherever it is loaded; none for others.
    pub statics: &'a dyn Fn(u64) -> Option<u64>,
}

/// What the ids of one execution stand for: numbers of objects and pieces of memory.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) locks: Ids,
    /// Where each lock was first used.
    pub(super) lock_sites: Vec<SiteId>,
    pub(super) conds: Ids,
    pub(super) semaphores: Ids,
    pub(super) barriers: Ids,
    /// Where objects lie, by their numbers.
    pub(super) addresses: HashMap<u64, u64>,
    /// Numbers of pieces of memory by address, both divided by [`GRANULE`].
    pub(super) granules: HashMap<u64, u64>,
    /// The first line of each thread's function.
    pub(super) begins: Vec<SiteId>,
}

/// How finely memory is numbered.
pub(super) const GRANULE: u64 = 16;

/// One execution so far.
#[derive(Debug, Default)]
pub struct History {
    read: usize,
    pub(super) objects: Objects,
    /// The next step of every thread.
    pub pending: Vec<Pending>,
    /// What has happened.
    pub events: Vec<Event>,
    /// The locks that each thread holds, outermost first.
    pub held: Vec<Vec<Held>>,
    names: Names,
    /// The regions that each thread is in, innermost last.
    regions: HashMap<ThreadId, Vec<RegionId>>,
}

struct Line {
    class: u8,
    kind: Kind,
    thread: ThreadId,
    object: u64,
    code: Code,
    a: u64,
    b: u64,
}

impl History {
    /// Of a new execution, whose names are known by `names`.
    pub fn new(names: &Names) -> History {
        names.begin();
        History { names: names.clone(), ..History::default() }
    }

    /// Takes what is new and tells the strategy if it wants to know.
    pub fn read(&mut self, c: &Control, lookup: &mut Lookup<'_>, strategy: &mut dyn Strategy) {
        let follows = strategy.follows_steps();
        let len = (c.log_len.load(Relaxed) as usize).min(wire::LOG);
        while self.read < len {
            let record = &c.log[self.read];
            self.read += 1;
            let what = record.what.load(Relaxed);
            let Some(kind) = Kind::from_number((what >> 48) as u8) else { continue };
            let line = Line {
                class: (what >> 56) as u8,
                kind,
                thread: ThreadId((what >> 32) as u32 & 0xffff),
                object: what & 0xffff_ffff,
                code: (
                    record.pc.load(Relaxed),
                    std::array::from_fn(|i| record.callers[i].load(Relaxed)),
                ),
                a: record.a.load(Relaxed),
                b: record.b.load(Relaxed),
            };
            if line.thread.index() < wire::THREADS {
                self.line(&line, lookup, strategy, follows);
            }
        }
    }

    fn line(
        &mut self,
        line: &Line,
        lookup: &mut Lookup<'_>,
        strategy: &mut dyn Strategy,
        follows: bool,
    ) {
        let at = line.thread.index();
        if line.class == class::STEP {
            if follows {
                strategy.step(line.thread, &self.pending);
            }
            // What comes next is not known before the thread says so.
            if let Some(pending) = self.pending.get_mut(at) {
                pending.step = Step::Busy;
            }
            return;
        }
        self.learn_name(line, lookup);
        // A thread begins with a function's first byte, not behind a call.
        let (pc, callers) = line.code;
        let pc = if line.kind == Kind::Begin && pc != 0 { pc + 1 } else { pc };
        let (site, landmark) = (lookup.sites)((pc, callers));
        if self.pending.len() <= at {
            let idle = Pending { site, landmark, step: Step::Ended };
            self.pending.resize(at + 1, idle);
            self.held.resize_with(at + 1, Vec::new);
        }
        match line.class {
            class::PENDING => {
                if line.kind == Kind::Begin {
                    self.objects.begins.resize(at + 1, site);
                    self.objects.begins[at] = site;
                }
                let step = self.step(line);
                self.pending[at] = Pending { site, landmark, step };
            }
            class::EVENT => {
                let Some(op) = self.op(line, lookup) else { return };
                let event = Event { thread: line.thread, site, op };
                self.note(&event);
                if follows && !event.is_plain_access() {
                    strategy.observe(&event);
                }
                self.events.push(event);
            }
            _ => {}
        }
    }

    fn note(&mut self, event: &Event) {
        let at = event.thread.index();
        match event.op {
            Op::Acquire(lock, mode) => self.held[at].push(Held { lock, mode, site: event.site }),
            Op::Release(lock, _) => {
                if let Some(i) = self.held[at].iter().rposition(|h| h.lock == lock) {
                    self.held[at].remove(i);
                }
            }
            Op::End => self.pending[at].step = Step::Ended,
            _ => {}
        }
    }

    /// A thread or a lock that is new gets its name from where it comes from.
    fn learn_name(&mut self, line: &Line, lookup: &mut Lookup<'_>) {
        let is_lock = matches!(
            line.kind,
            Kind::Lock
                | Kind::LockShared
                | Kind::TryLock
                | Kind::TryShared
                | Kind::Unlock
                | Kind::UnlockShared
                | Kind::Init
        );
        let lock = is_lock && !self.objects.locks.0.contains_key(&line.object);
        let fork = line.kind == Kind::Fork && line.class == class::EVENT;
        if !lock && !fork {
            return;
        }
        let (pc, callers) = line.code;
        let mut origin: Origin = [0; FRAMES];
        let mut at = pc;
        for (i, number) in origin.iter_mut().enumerate() {
            let outer = std::array::from_fn(|j| callers.get(i + j).copied().unwrap_or(0));
            *number = if at == 0 { 0 } else { 1 + u64::from((lookup.sites)((at, outer)).0.0) };
            at = callers.get(i).copied().unwrap_or(0);
        }
        if fork {
            self.names.thread_made(ThreadId(line.b as u32), line.thread, &origin);
        } else {
            self.objects.locks.id(line.object);
            self.objects.addresses.insert(line.object, line.a);
            let site = (lookup.sites)(line.code).0;
            self.objects.lock_sites.push(site);
            self.names.lock_made(line.thread, &origin, (lookup.statics)(line.a));
        }
    }

    fn lock(&mut self, object: u64) -> LockId {
        LockId(self.objects.locks.id(object))
    }

    fn access(&mut self, line: &Line) -> Access {
        let len = (line.b & 0xffff_ffff) as u32;
        let mut number = |granule: u64| {
            let next = self.objects.granules.len() as u64 + 1;
            *self.objects.granules.entry(granule).or_insert(next)
        };
        let (first, last) = (line.a / GRANULE, (line.a + u64::from(len.max(1)) - 1) / GRANULE);
        let start = number(first);
        // An access over several granules is whole if their numbers follow each other, as they do
        // when it is the first of them all; else only its beginning is told.
        let whole = (first + 1..=last).all(|g| number(g) == start + (g - first));
        let offset = line.a % GRANULE;
        let len = if whole { len } else { len.min((GRANULE - offset) as u32) };
        Access { addr: start * GRANULE + offset, len }
    }

    fn op(&mut self, line: &Line, lookup: &mut Lookup<'_>) -> Option<Op> {
        Some(match line.kind {
            Kind::RegionEnter => {
                let kind = match line.b as u8 {
                    1 => RegionKind::Deterministic,
                    _ => RegionKind::Atomic,
                };
                let region = (lookup.regions)(line.a, (line.b >> 8) as usize, kind);
                self.regions.entry(line.thread).or_default().push(region);
                Op::RegionEnter(region, kind)
            }
            Kind::RegionExit => Op::RegionExit(self.regions.get_mut(&line.thread)?.pop()?),
            _ => return self.plain_op(line),
        })
    }

    fn plain_op(&mut self, line: &Line) -> Option<Op> {
        let order = (line.b >> 32) as u8;
        let (object, b) = (line.object, line.b as u32);
        Some(match line.kind {
            Kind::Begin => Op::Begin,
            Kind::End => Op::End,
            Kind::Fork => Op::Fork(ThreadId(b)),
            Kind::Join => Op::Join(ThreadId(b)),
            Kind::Read => Op::Read(self.access(line)),
            Kind::Write => Op::Write(self.access(line)),
            Kind::Load => Op::Atomic(self.access(line), AtomicOp::Load(load_order(order))),
            Kind::Store => Op::Atomic(self.access(line), AtomicOp::Store(store_order(order))),
            Kind::Update => Op::Atomic(self.access(line), AtomicOp::Update(update_order(order))),
            Kind::Fence => Op::Fence(UpdateOrder::SeqCst),
            Kind::Lock => Op::Acquire(self.lock(object), Mode::Exclusive),
            Kind::LockShared => Op::Acquire(self.lock(object), Mode::Shared),
            Kind::Unlock => Op::Release(self.lock(object), Mode::Exclusive),
            Kind::UnlockShared => Op::Release(self.lock(object), Mode::Shared),
            Kind::Wake => Op::Wake(CondId(self.objects.id(|o| &mut o.conds, line))),
            Kind::NotifyOne => {
                Op::Notify(CondId(self.objects.id(|o| &mut o.conds, line)), Wakes::One)
            }
            Kind::NotifyAll => {
                Op::Notify(CondId(self.objects.id(|o| &mut o.conds, line)), Wakes::All)
            }
            Kind::FutexWake => {
                let wakes = if b == 1 { Wakes::One } else { Wakes::All };
                Op::Notify(CondId(self.objects.id(|o| &mut o.conds, line)), wakes)
            }
            Kind::Arrive => Op::Arrive(BarrierId(self.objects.id(|o| &mut o.barriers, line)), b),
            Kind::Leave => Op::Leave(BarrierId(self.objects.id(|o| &mut o.barriers, line)), b),
            Kind::Post => Op::Post(SemaphoreId(self.objects.id(|o| &mut o.semaphores, line))),
            Kind::Wait | Kind::TryWait => {
                Op::Wait(SemaphoreId(self.objects.id(|o| &mut o.semaphores, line)))
            }
            Kind::FutexWait => Op::Atomic(self.access(line), AtomicOp::Load(LoadOrder::SeqCst)),
            Kind::TryLock
            | Kind::TryShared
            | Kind::Enroll
            | Kind::Yield
            | Kind::Init
            | Kind::RegionEnter
            | Kind::RegionExit => return None,
        })
    }

    fn step(&mut self, line: &Line) -> Step {
        match line.kind {
            // Who waits for a limited time only is never in a deadlock.
            Kind::Lock if line.b != 0 => Step::TryAcquire(self.lock(line.object), Mode::Exclusive),
            Kind::LockShared if line.b != 0 => {
                Step::TryAcquire(self.lock(line.object), Mode::Shared)
            }
            Kind::TryLock => Step::TryAcquire(self.lock(line.object), Mode::Exclusive),
            Kind::TryShared => Step::TryAcquire(self.lock(line.object), Mode::Shared),
            Kind::Enroll => {
                let cond = CondId(self.objects.id(|o| &mut o.conds, line));
                Step::Enroll(cond, self.lock(line.b))
            }
            _ => self.plain_op(line).map_or(Step::Yield, Step::Do),
        }
    }

    /// The id of the lock that is object `number`, if it has been used as one.
    pub fn known_lock(&self, number: u64) -> Option<LockId> {
        self.objects.locks.0.get(&number).copied().map(LockId)
    }
}
