//! The history that a controlled program writes becomes steps and events.
//!
//! Objects are numbered by the program in order of first use and never by address; addresses of
//! accesses are replaced by numbers as well, 16 bytes at a time, because that is how finely the kernel
//! places stacks. So the same schedule gives the same events wherever the program was loaded.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use selvedge_explore::{Abstraction, Pending, Step, Strategy};
use selvedge_model::{
    Access, AtomicOp, BarrierId, CondId, Event, Held, LoadOrder, LockId, Mode, Op, SemaphoreId,
    SiteId, ThreadId, UpdateOrder, Wakes,
};

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

/// Names of threads and locks that are the same in every execution: who made or first used it, where,
/// and how many like it came before. For the directed strategies.
#[derive(Clone, Debug, Default)]
pub struct Names(Rc<RefCell<NameTable>>);

/// The [`Names`] of an execution that has ended, which can be given to another thread.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    threads: Vec<u64>,
    locks: Vec<u64>,
    counts: HashMap<u64, u64>,
}

impl NameTable {
    fn name(&mut self, maker: ThreadId, site: SiteId, what: u64) -> u64 {
        let maker = self.threads.get(maker.index()).copied().unwrap_or(0);
        let class = mix(mix(maker, u64::from(site.0)), what);
        let count = self.counts.entry(class).or_insert(0);
        *count += 1;
        mix(class, *count)
    }
}

fn mix(a: u64, b: u64) -> u64 {
    (a.rotate_left(23) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Names {
    /// The names of the execution that ended last, which do not change with the next one.
    pub fn snapshot(&self) -> NameTable {
        self.0.borrow().clone()
    }
}

impl Abstraction for NameTable {
    fn thread(&self, thread: ThreadId) -> u64 {
        self.threads.get(thread.index()).copied().unwrap_or(0)
    }
    fn lock(&self, lock: LockId) -> u64 {
        self.locks.get(lock.index()).copied().unwrap_or(0)
    }
}

impl Abstraction for Names {
    fn thread(&self, thread: ThreadId) -> u64 {
        self.0.borrow().thread(thread)
    }
    fn lock(&self, lock: LockId) -> u64 {
        self.0.borrow().lock(lock)
    }
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
        let table = NameTable { threads: vec![1], ..NameTable::default() };
        names.0.replace(table);
        History { names: names.clone(), ..History::default() }
    }

    /// Takes what is new and tells the strategy if it wants to know.
    pub fn read(&mut self, c: &Control, sites: Sites<'_>, strategy: &mut dyn Strategy) {
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
                self.line(&line, sites, strategy, follows);
            }
        }
    }

    fn line(&mut self, line: &Line, sites: Sites<'_>, strategy: &mut dyn Strategy, follows: bool) {
        if line.class == class::STEP {
            if follows {
                strategy.step(line.thread, &self.pending);
            }
            return;
        }
        // A thread begins with a function's first byte, not behind a call.
        let (pc, callers) = line.code;
        let pc = if line.kind == Kind::Begin && pc != 0 { pc + 1 } else { pc };
        let (site, landmark) = sites((pc, callers));
        let at = line.thread.index();
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
                let step = self.step(line, site);
                self.pending[at] = Pending { site, landmark, step };
            }
            class::EVENT => {
                let Some(op) = self.op(line, site) else { return };
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
            Op::Fork(child) => {
                let mut table = self.names.0.borrow_mut();
                let name = table.name(event.thread, event.site, 0);
                table.threads.resize(child.index() + 1, 0);
                table.threads[child.index()] = name;
            }
            Op::End => self.pending[at].step = Step::Ended,
            _ => {}
        }
    }

    fn lock(&mut self, line: &Line, object: u64, site: SiteId) -> LockId {
        let id = self.objects.locks.id(object);
        let mut table = self.names.0.borrow_mut();
        if table.locks.len() == id as usize {
            self.objects.lock_sites.push(site);
            if object == line.object {
                self.objects.addresses.insert(object, line.a);
            }
            let name = table.name(line.thread, site, 1);
            table.locks.push(name);
        }
        LockId(id)
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

    fn op(&mut self, line: &Line, site: SiteId) -> Option<Op> {
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
            Kind::Lock => Op::Acquire(self.lock(line, object, site), Mode::Exclusive),
            Kind::LockShared => Op::Acquire(self.lock(line, object, site), Mode::Shared),
            Kind::Unlock => Op::Release(self.lock(line, object, site), Mode::Exclusive),
            Kind::UnlockShared => Op::Release(self.lock(line, object, site), Mode::Shared),
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
            Kind::TryLock | Kind::TryShared | Kind::Enroll | Kind::Yield => return None,
        })
    }

    fn step(&mut self, line: &Line, site: SiteId) -> Step {
        match line.kind {
            Kind::TryLock => Step::TryAcquire(self.lock(line, line.object, site), Mode::Exclusive),
            Kind::TryShared => Step::TryAcquire(self.lock(line, line.object, site), Mode::Shared),
            Kind::Enroll => {
                let cond = CondId(self.objects.id(|o| &mut o.conds, line));
                Step::Enroll(cond, self.lock(line, line.b, site))
            }
            _ => self.op(line, site).map_or(Step::Yield, Step::Do),
        }
    }

    /// The id of the lock that is object `number`, if it has been used as one.
    pub fn known_lock(&self, number: u64) -> Option<LockId> {
        self.objects.locks.0.get(&number).copied().map(LockId)
    }
}
