//! Records become events.
//!
//! Addresses become ids that are never reused: when an object is destroyed, or its memory freed, the
//! next object at the same place gets another id.
//!
//! Locks of Rust are atomics. Which ones, the resolver knows from the functions around them; these become
//! acquisitions and releases beside the atomics that they are. A lock that cannot be had at once is waited
//! for in code of the lock's own: it counts as acquired when the thread does something else.
//!
//! What has no operation of its own in the model (one-time initialisation, futexes, annotations) is a
//! release or an acquisition of an atomic location, which means the same.

use std::collections::BTreeMap;

use selvedge_model::{
    Access, AtomicOp, BarrierId, CondId, Event, FirstRace, LoadOrder, LockId, Mode, Op, Party,
    Range, Region, RegionId, RegionKind, SemaphoreId, SiteId, StoreOrder, Symbols, ThreadId,
    UpdateOrder, Wakes,
};

use crate::epoch::{Epoch, Past};
use crate::modules::{LockStep, Modules, Resolve};
use crate::races::role;
use crate::rust_locks::RustLocks;
use crate::wire::{self, CALLERS, Does, Record, RecordKind, SHARED, order};

/// Ids of objects of one kind, by address.
#[derive(Debug, Default)]
struct Ids {
    live: BTreeMap<u64, u32>,
    next: u32,
}

impl Ids {
    fn id(&mut self, addr: u64) -> u32 {
        *self.live.entry(addr).or_insert_with(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn forget(&mut self, range: Range) {
        let gone: Vec<u64> = self.live.range(range.start..range.end()).map(|(&a, _)| a).collect();
        for addr in gone {
            self.live.remove(&addr);
        }
    }
}

/// Turns records into events.
#[derive(Debug, Default)]
pub struct Translate {
    locks: Ids,
    barriers: Ids,
    semaphores: Ids,
    conds: Ids,
    sites: BTreeMap<(u64, Callers), SiteId>,
    /// The callers of the function that makes a thread's next record.
    callers: BTreeMap<u32, (usize, Callers)>,
    /// What is known of atomics that may be of a lock.
    steps: BTreeMap<(u64, Callers), Option<(LockStep, SiteId)>>,
    /// The lock that a thread waits for out of sight: address, mode and where.
    awaited: BTreeMap<u32, (u64, Mode, SiteId)>,
    rust_locks: RustLocks,
    regions: BTreeMap<u32, Regions>,
    /// The functions that are regions, by a place in them.
    functions: BTreeMap<(u64, RegionKind), RegionId>,
    /// Events so far.
    passed: u64,
    /// The last epoch that is known of each thread.
    epochs: BTreeMap<u32, Epoch>,
    lock_change: Option<Epoch>,
    /// The earlier access of the race that a thread's next record tells.
    earlier: BTreeMap<u32, Record>,
    first_race: Option<FirstRace>,
    names: BTreeMap<u32, String>,
    /// Records that mean nothing: the program overwrote the shared memory.
    pub nonsense: u64,
}

/// Return addresses of callers, innermost first, 0 where there is none.
type Callers = [u64; CALLERS];

/// The regions of one thread.
#[derive(Debug, Default)]
struct Regions {
    /// Those it is in, outermost first.
    open: Vec<RegionId>,
    /// How many events there were when it last entered or left some.
    borders: Past<u64>,
}

impl Regions {
    /// What comes after entering or leaving is in a later epoch.
    fn border(&mut self, record: &Record, passed: u64) {
        self.borders.change(Epoch::from_record(record.b >> 32).next(), passed);
    }

    /// How many events came before what the thread did in an epoch, as far as regions go.
    fn passed_before(&self, epoch: Epoch) -> u64 {
        self.borders.at(epoch, 0).unwrap_or(0)
    }
}

/// Finds a name that the program has left.
pub type ReadText<'a> = &'a dyn Fn(u64, usize) -> Option<String>;

/// What gives addresses their names.
pub struct Names<'a> {
    /// Takes the names.
    pub symbols: &'a mut Symbols,
    /// What was mapped where.
    pub modules: &'a Modules,
    /// Knows places in code.
    pub resolver: &'a mut dyn Resolve,
    /// Knows what the program itself calls its regions.
    pub text: ReadText<'a>,
}

impl Names<'_> {
    fn object(&mut self, addr: u64) -> Option<String> {
        self.resolver.object(addr, self.modules)
    }
}

impl Translate {
    /// The events that a record stands for, in their order.
    pub fn events(
        &mut self,
        thread: u32,
        record: &Record,
        names: &mut Names<'_>,
        out: &mut Vec<Event>,
    ) {
        let before = out.len();
        self.push_events(thread, record, names, out);
        let locks = |e: &Event| matches!(e.op, Op::Acquire(..) | Op::Release(..));
        let epoch = self.epochs.get(&thread);
        self.lock_change = out[before..]
            .iter()
            .any(locks)
            .then(|| epoch.map(|&epoch| if ends_epoch(record) { epoch.next() } else { epoch }))
            .flatten();
    }

    /// The epoch from which on the thread of the last record holds what it holds now, if that has changed.
    pub fn lock_change(&mut self) -> Option<Epoch> {
        self.lock_change.take()
    }

    fn push_events(
        &mut self,
        thread: u32,
        record: &Record,
        names: &mut Names<'_>,
        out: &mut Vec<Event>,
    ) {
        let Some(kind) = record.kind() else {
            self.nonsense += 1;
            return;
        };
        if kind == RecordKind::Callers {
            let (filled, callers) = self.callers.entry(thread).or_default();
            let three = [record.pc(), record.a, record.b];
            for (place, caller) in callers.iter_mut().skip(*filled).zip(three) {
                *place = caller;
            }
            *filled += 3;
            return;
        }
        if tells_epoch(kind) && record.b >> 32 != 0 {
            self.epochs.insert(thread, Epoch::from_record(record.b >> 32));
        }
        let (_, callers) = self.callers.remove(&thread).unwrap_or_default();
        let id = ThreadId(thread);
        let step = self.step(kind, record, callers, names);
        let has_it = matches!(kind, RecordKind::Acquire | RecordKind::Update)
            && self.awaited.get(&thread).is_some_and(|&(addr, ..)| addr == record.a)
            && !matches!(step, Some((LockStep::Inside, _)));
        if has_it {
            self.awaited.remove(&thread);
        }
        if step.is_none()
            && tells_more(kind)
            && let Some((addr, mode, site)) = self.awaited.remove(&thread)
        {
            let lock = self.lock(addr, site, names);
            self.take(id, site, (addr, lock), mode, out);
        }
        if record.is_of_std() && !self.is_seen(thread, kind, record, has_it) {
            return;
        }
        if kind == RecordKind::Earlier {
            self.earlier.insert(thread, *record);
            return;
        }
        let site = *self.sites.entry((record.pc(), callers)).or_insert_with(|| {
            let site = names.resolver.site_within(record.pc(), &callers, names.modules);
            SiteId(names.symbols.sites.intern(site))
        });
        let op = match kind {
            RecordKind::Raced => {
                self.first_race = self.raced(thread, record, site, names);
                None
            }
            RecordKind::RegionEnter => Some(self.enter(thread, record, names)),
            _ => self.op(thread, kind, record, site, names),
        };
        if let Some(op) = op {
            self.push(Event { thread: id, site, op }, out);
        }
        if let Some((step, site)) = step {
            let wrote = kind == RecordKind::Update;
            match step {
                LockStep::Take(mode) | LockStep::Try(mode) if wrote => {
                    let lock = self.lock(record.a, site, names);
                    self.take(id, site, (record.a, lock), mode, out);
                }
                LockStep::Give(mode) if self.rust_locks.give(thread, record.a) => {
                    let op = Op::Release(self.lock(record.a, site, names), mode);
                    self.push(Event { thread: id, site, op }, out);
                }
                LockStep::Take(mode) => {
                    self.awaited.insert(thread, (record.a, mode, site));
                }
                LockStep::Give(_) | LockStep::Try(_) | LockStep::Inside => {}
            }
        }
    }

    /// A thread has a lock of Rust, which has an address and an id.
    fn take(
        &mut self,
        thread: ThreadId,
        site: SiteId,
        (addr, lock): (u64, LockId),
        mode: Mode,
        out: &mut Vec<Event>,
    ) {
        if !self.rust_locks.take(thread.0, addr, mode) {
            self.push(Event { thread, site, op: Op::Release(lock, mode) }, out);
        }
        self.push(Event { thread, site, op: Op::Acquire(lock, mode) }, out);
    }

    /// Whether what a stub around the standard library says of a lock is about a lock whose other ways in
    /// and out are seen, and not about one that the library uses within itself.
    fn is_seen(&mut self, thread: u32, kind: RecordKind, record: &Record, has_it: bool) -> bool {
        let mode = mode(record.flags());
        match kind {
            RecordKind::Acquire if has_it || self.rust_locks.wakes(thread, record.a) => {
                self.rust_locks.take(thread, record.a, mode)
            }
            RecordKind::Release => self.rust_locks.give_up(thread, record.a),
            _ => false,
        }
    }

    fn push(&mut self, event: Event, out: &mut Vec<Event>) {
        self.passed += 1;
        out.push(event);
    }

    /// What an atomic with known callers does to a lock, if it is part of one.
    fn step(
        &mut self,
        kind: RecordKind,
        record: &Record,
        callers: Callers,
        names: &mut Names<'_>,
    ) -> Option<(LockStep, SiteId)> {
        let possible = matches!(kind, RecordKind::Update | RecordKind::Load);
        if !possible || callers[0] == 0 {
            return None;
        }
        *self.steps.entry((record.pc(), callers)).or_insert_with(|| {
            let (step, site) = names.resolver.lock_step(record.pc(), &callers, names.modules)?;
            Some((step, SiteId(names.symbols.sites.intern(site))))
        })
    }

    /// The lock at an address. Names are in the order of ids, and every id passes here first.
    fn lock(&mut self, addr: u64, site: SiteId, names: &mut Names<'_>) -> LockId {
        let id = self.locks.id(addr);
        if id as usize == names.symbols.locks.entries().len() {
            let name = names.object(addr);
            let unnamed = || format!("lock {id} ({})", names.symbols.site(site));
            let name = name.unwrap_or_else(unnamed).into();
            names.symbols.locks.push(name);
        }
        LockId(id)
    }

    /// The race that the last record told of, if it did.
    pub fn first_race(&mut self) -> Option<FirstRace> {
        self.first_race.take()
    }

    fn raced(
        &mut self,
        thread: u32,
        record: &Record,
        site: SiteId,
        names: &mut Names<'_>,
    ) -> Option<FirstRace> {
        let earlier = self.earlier.remove(&thread)?;
        let does = Does::from_number(u32::from(earlier.flags()))?;
        let low = earlier.b & 0xffff_ffff;
        let pc = names.resolver.earlier(low, does, record.pc(), names.modules);
        let earlier_site = names.resolver.site(pc.unwrap_or(0), names.modules);
        let by = earlier.a as u32;
        let regions = self.regions.get(&by);
        let bytes = Range { start: record.a, len: record.b };
        if let Some(name) = names.object(bytes.start) {
            names.symbols.variables.define(&name, bytes);
        }
        let later = Does::from_number(u32::from(record.flags()))?;
        Some(FirstRace {
            bytes,
            earlier: Party {
                thread: ThreadId(by),
                site: SiteId(names.symbols.sites.intern(earlier_site)),
                role: role(does),
            },
            passed: regions.map_or(0, |r| r.passed_before(Epoch::from_record(earlier.b >> 32))),
            later: Party { thread: ThreadId(thread), site, role: role(later) },
        })
    }

    fn enter(&mut self, thread: u32, record: &Record, names: &mut Names<'_>) -> Op {
        let kind = match record.flags() & wire::DETERMINISTIC {
            0 => RegionKind::Atomic,
            _ => RegionKind::Deterministic,
        };
        let at = record.a;
        let mut define = |name: Option<String>| {
            let name = name.unwrap_or_else(|| format!("region@{at:#x}")).into();
            RegionId(names.symbols.regions.intern(Region { kind, name }))
        };
        let id = if record.flags() & wire::FUNCTION == 0 {
            define((names.text)(at, (record.b & 0xffff_ffff) as usize))
        } else {
            let mut function = || names.resolver.function(at, names.modules);
            *self.functions.entry((at, kind)).or_insert_with(|| define(function()))
        };
        let regions = self.regions.entry(thread).or_default();
        regions.open.push(id);
        regions.border(record, self.passed + 1);
        Op::RegionEnter(id, kind)
    }

    /// What threads call themselves, by number.
    pub fn thread_names(&self) -> &BTreeMap<u32, String> {
        &self.names
    }

    fn op(
        &mut self,
        thread: u32,
        kind: RecordKind,
        record: &Record,
        site: SiteId,
        names: &mut Names<'_>,
    ) -> Option<Op> {
        let (a, b, flags) = (record.a, record.b, record.flags());
        let access = Access { addr: a, len: b as u32 };
        let range = Range { start: a, len: b };
        let mode = mode(flags);
        Some(match kind {
            RecordKind::Read => Op::Read(access),
            RecordKind::Write => Op::Write(access),
            RecordKind::Load => Op::Atomic(access, AtomicOp::Load(load_order(flags))),
            RecordKind::Store => Op::Atomic(access, AtomicOp::Store(store_order(flags))),
            RecordKind::Update => Op::Atomic(access, AtomicOp::Update(update_order(flags))),
            RecordKind::Fence => Op::Fence(update_order(flags)),
            RecordKind::Acquire => Op::Acquire(self.lock(a, site, names), mode),
            RecordKind::Release => Op::Release(self.lock(a, site, names), mode),
            RecordKind::Fork => Op::Fork(ThreadId(a as u32)),
            RecordKind::Join => Op::Join(ThreadId(a as u32)),
            RecordKind::Begin => Op::Begin,
            RecordKind::End => Op::End,
            RecordKind::Arrive => Op::Arrive(BarrierId(self.barriers.id(a)), b as u32),
            RecordKind::Leave => Op::Leave(BarrierId(self.barriers.id(a)), b as u32),
            RecordKind::Post => Op::Post(SemaphoreId(self.semaphores.id(a))),
            RecordKind::Wait => Op::Wait(SemaphoreId(self.semaphores.id(a))),
            RecordKind::Notify => {
                let wakes = if flags == 1 { Wakes::All } else { Wakes::One };
                Op::Notify(CondId(self.conds.id(a)), wakes)
            }
            RecordKind::Wake => Op::Wake(CondId(self.conds.id(a))),
            RecordKind::Alloc => Op::Alloc(range),
            RecordKind::Free => {
                self.forget(range);
                Op::Free(range)
            }
            RecordKind::Destroy => {
                self.forget(Range { start: a, len: 1 });
                return None;
            }
            RecordKind::Name => {
                self.names.insert(thread, name_of(a, b));
                return None;
            }
            RecordKind::RegionExit => {
                let regions = self.regions.get_mut(&thread)?;
                regions.border(record, self.passed + 1);
                Op::RegionExit(regions.open.pop()?)
            }
            RecordKind::HappensBefore => {
                Op::Atomic(Access { addr: a, len: 1 }, AtomicOp::Update(UpdateOrder::Release))
            }
            RecordKind::HappensAfter => {
                Op::Atomic(Access { addr: a, len: 1 }, AtomicOp::Load(LoadOrder::Acquire))
            }
            RecordKind::Callers
            | RecordKind::Earlier
            | RecordKind::Raced
            | RecordKind::RegionEnter => return None,
        })
    }

    fn forget(&mut self, range: Range) {
        for ids in [&mut self.locks, &mut self.barriers, &mut self.semaphores, &mut self.conds] {
            ids.forget(range);
        }
        self.rust_locks.forget(range);
    }
}

/// The mode of an acquisition or release.
fn mode(flags: u8) -> Mode {
    if flags & SHARED != 0 { Mode::Shared } else { Mode::Exclusive }
}

/// Whether a record says that a thread goes on, and does not wait any more: loads, stores, wake-ups and
/// order without a name are what waiting for a lock is made of.
fn tells_more(kind: RecordKind) -> bool {
    !matches!(
        kind,
        RecordKind::Load
            | RecordKind::Store
            | RecordKind::Fence
            | RecordKind::HappensBefore
            | RecordKind::HappensAfter
            | RecordKind::Alloc
            | RecordKind::Free
    )
}

/// Whether a record may say in which epoch its thread is.
fn tells_epoch(kind: RecordKind) -> bool {
    use RecordKind::{Acquire, Load, Release, Update};
    matches!(kind, Acquire | Release | Update | Load)
}

/// Whether what a record changes is true from the next epoch on: releasing ends one.
fn ends_epoch(record: &Record) -> bool {
    let releases = matches!(record.flags(), order::RELEASE | order::ACQ_REL | order::SEQ_CST);
    match record.kind() {
        Some(RecordKind::Release) => true,
        Some(RecordKind::Update) => releases,
        _ => false,
    }
}

fn name_of(a: u64, b: u64) -> String {
    let bytes: Vec<u8> =
        a.to_le_bytes().into_iter().chain(b.to_le_bytes()).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn load_order(flags: u8) -> LoadOrder {
    match flags {
        order::ACQUIRE | order::CONSUME | order::ACQ_REL => LoadOrder::Acquire,
        order::SEQ_CST => LoadOrder::SeqCst,
        _ => LoadOrder::Relaxed,
    }
}

pub(crate) fn store_order(flags: u8) -> StoreOrder {
    match flags {
        order::RELEASE | order::ACQ_REL => StoreOrder::Release,
        order::SEQ_CST => StoreOrder::SeqCst,
        _ => StoreOrder::Relaxed,
    }
}

pub(crate) fn update_order(flags: u8) -> UpdateOrder {
    match flags {
        order::ACQUIRE | order::CONSUME => UpdateOrder::Acquire,
        order::RELEASE => UpdateOrder::Release,
        order::ACQ_REL => UpdateOrder::AcqRel,
        order::SEQ_CST => UpdateOrder::SeqCst,
        _ => UpdateOrder::Relaxed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::ByModule;

    #[test]
    fn a_lock_in_reused_memory_is_another_lock() {
        let (mut translate, mut symbols) = (Translate::default(), Symbols::default());
        let modules = Modules::default();
        let mut event = |kind, a, b| {
            let record = Record::new(1, kind, 0, 7, a, b);
            let mut names = Names {
                symbols: &mut symbols,
                modules: &modules,
                resolver: &mut ByModule,
                text: &|_, _| None,
            };
            let mut out = Vec::new();
            translate.events(0, &record, &mut names, &mut out);
            out.first().map(|e: &Event| e.op)
        };
        let acquire = |id| Some(Op::Acquire(LockId(id), Mode::Exclusive));
        assert_eq!(event(RecordKind::Acquire, 64, 0), acquire(0));
        assert_eq!(event(RecordKind::Acquire, 64, 0), acquire(0));
        event(RecordKind::Free, 32, 64);
        assert_eq!(event(RecordKind::Acquire, 64, 0), acquire(1));
        assert_eq!(event(RecordKind::Destroy, 64, 0), None);
        assert_eq!(event(RecordKind::Acquire, 64, 0), acquire(2));
    }

    #[test]
    fn names_are_sixteen_bytes() {
        let half = |s: &[u8; 8]| u64::from_le_bytes(*s);
        assert_eq!(name_of(half(b"worker-1"), half(b"23\0\0\0\0\0\0")), "worker-123");
    }
}
