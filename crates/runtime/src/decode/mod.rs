//! Records become events, and under control steps that are about to be taken.
//!
//! Addresses of objects become ids that are never reused: when an object is destroyed, or its memory freed,
//! the next object at the same place gets another id.
//!
//! Rust's locks are atomics. The resolver recognises them by the functions around them; they become
//! acquisitions and releases. If a lock is not free, the thread waits inside the lock's own code: the lock
//! counts as acquired when the thread does something else. A lock all of whose parts are seen has no other
//! events; where only some are seen, the atomic events remain beside those of the lock, because they order
//! threads.
//!
//! What has no operation of its own in the model (one-time initialisation, futexes, annotations) is a
//! release or an acquisition of an atomic location, which means the same.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use selvedge_model::{
    Access, AtomicOp, BarrierId, CondId, Event, FirstRace, HeldBack, LoadOrder, LockId, Mode, Op,
    Party, Range, RegionId, RegionKind, SemaphoreId, SiteId, ThreadId, UpdateOrder, Wakes,
};

use crate::earlier;
use crate::epoch::{Epoch, Past};
use crate::misuse::role;
use crate::modules::{LockPart, LockStep};
use crate::numbering::Numbering;
use crate::places::{Callers, Code, Names};
use crate::rust_locks::RustLocks;
use crate::wire::{
    self, ALL, CALLERS, FUTEX, HELD_WRITE, JOIN, MAY_LOCK, ORDER, OUT_OF_SIGHT, Raced, Record,
    RecordKind, SHADOW_PC_BITS, SHARED, TRY, order,
};

mod orders;
mod pending;

use orders::{load_order, store_order, update_order};

/// Ids of objects of one kind, by address.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    live: BTreeMap<u64, u32>,
    /// Where the object of each id lies or lay, and where it was first used.
    all: Vec<(u64, SiteId)>,
}

impl Ids {
    fn id(&mut self, addr: u64, site: SiteId) -> u32 {
        *self.live.entry(addr).or_insert_with(|| {
            self.all.push((addr, site));
            self.all.len() as u32 - 1
        })
    }

    fn forget(&mut self, range: Range) {
        let gone: Vec<u64> = self.live.range(range.start..range.end()).map(|(&a, _)| a).collect();
        for addr in gone {
            self.live.remove(&addr);
        }
    }

    /// Where the object of each id lies or lay, and where it was first used.
    pub(crate) fn all(&self) -> &[(u64, SiteId)] {
        &self.all
    }
}

/// Turns records into events.
#[derive(Debug, Default)]
pub struct Decoder {
    pub(crate) locks: Ids,
    pub(crate) barriers: Ids,
    pub(crate) semaphores: Ids,
    pub(crate) conds: Ids,
    /// Under control memory is numbered.
    numbering: Option<Numbering>,
    /// The callers of the function that makes a thread's next record, and how many are known.
    callers: FxHashMap<u32, (usize, Callers)>,
    last_callers: Callers,
    /// The lock that a thread waits for out of sight: address, mode and where.
    awaited: FxHashMap<u32, (u64, Mode, SiteId)>,
    rust_locks: RustLocks,
    /// Locks all of whose parts are seen, by address.
    complete: BTreeSet<u64>,
    /// The lock that a thread gave back in its last record.
    given: FxHashMap<u32, u64>,
    regions: FxHashMap<u32, Regions>,
    /// Events so far.
    passed: u64,
    /// The last epoch that is known of each thread.
    epochs: FxHashMap<u32, Epoch>,
    lock_change: Option<Epoch>,
    first_race: Option<FirstRace>,
    wait: Option<Wait>,
    held_back: Option<HeldBack>,
    names: BTreeMap<u32, String>,
    /// The sites of plain accesses, by what shadow words keep of their addresses.
    access_sites: FxHashMap<u64, SiteId>,
    /// Records that mean nothing: the program overwrote the shared memory.
    pub nonsense: u64,
}

/// A thread begins to wait, for as long as it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The thread.
    pub thread: ThreadId,
    /// Where.
    pub site: SiteId,
    /// For what.
    pub what: Awaited,
}

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// A lock that another thread holds.
    Lock(LockId, Mode),
    /// The end of a thread.
    Thread(ThreadId),
}

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

/// A record on its way to becoming events.
#[derive(Clone, Copy)]
struct Line<'a> {
    thread: u32,
    kind: RecordKind,
    record: &'a Record,
    site: SiteId,
    /// Which part of a lock of Rust it is.
    part: Option<LockPart<SiteId>>,
}

impl Decoder {
    /// Of a controlled execution: memory is numbered.
    pub(crate) fn numbering() -> Decoder {
        Decoder { numbering: Some(Numbering::default()), ..Decoder::default() }
    }

    /// The events that the next record of a thread's ring stands for, in their order.
    pub fn record(
        &mut self,
        thread: u32,
        record: &Record,
        names: &mut Names<'_>,
        out: &mut Vec<Event>,
    ) {
        if record.kind() == Some(RecordKind::Callers) {
            let (known, callers) = self.callers.entry(thread).or_default();
            let three = [record.pc(), record.a, record.b];
            for (place, caller) in callers.iter_mut().skip(*known).zip(three) {
                *place = caller;
            }
            *known += 3;
            return;
        }
        let (_, callers) = self.callers.remove(&thread).unwrap_or_default();
        self.last_callers = callers;
        self.event(thread, record, callers, names, out);
    }

    /// The callers of the function that made the last record.
    pub(crate) fn last_callers(&self) -> Callers {
        self.last_callers
    }

    /// The events that a record stands for, in their order.
    pub fn event(
        &mut self,
        thread: u32,
        record: &Record,
        callers: Callers,
        names: &mut Names<'_>,
        out: &mut Vec<Event>,
    ) {
        let Some(kind) = record.kind() else {
            self.nonsense += 1;
            return;
        };
        if tells_epoch(kind) && record.b >> 32 != 0 {
            self.epochs.insert(thread, Epoch::from_record(record.b >> 32));
        }
        let before = out.len();
        if self.held_back(record) {
            return;
        }
        let mut line = line(thread, kind, record, callers, names);
        if matches!(kind, RecordKind::Read | RecordKind::Write) {
            self.access_sites.insert(record.pc() & earlier::LOW, line.site);
        }
        let awaited = self.end_waiting(&line, out);
        if kind == RecordKind::Acquire {
            line.site = awaited.unwrap_or(line.site);
        }
        match line.part {
            Some(LockPart { step: LockStep::Try(_), site, .. }) => {
                names.symbols.tries.insert(site);
            }
            None if kind == RecordKind::Acquire && record.flags() & TRY != 0 => {
                names.symbols.tries.insert(line.site);
            }
            _ => {}
        }
        if line.part.is_some_and(|p| p.complete) {
            self.complete.insert(record.a);
        }
        if record.is_of_std() && !self.is_seen(&line, awaited.is_some()) {
            self.push_std_order(&line, out);
        } else if !self.is_part(&line) {
            self.push_operation(&line, names, out);
        }
        self.push_lock_step(&line, out);
        let locks = |e: &Event| matches!(e.op, Op::Acquire(..) | Op::Release(..));
        self.lock_change = out[before..]
            .iter()
            .any(locks)
            .then(|| self.epochs.get(&thread))
            .flatten()
            .map(|&epoch| if ends_epoch(record) { epoch.next() } else { epoch });
    }

    /// The epoch from which on the thread of the last record holds what it holds now, if that has changed.
    pub fn lock_change(&mut self) -> Option<Epoch> {
        self.lock_change.take()
    }

    /// The first race on some bytes that the last record reported, if it reported one.
    pub fn first_race(&mut self) -> Option<FirstRace> {
        self.first_race.take()
    }

    /// What the thread of the last record begins to wait for, if it does.
    pub fn wait(&mut self) -> Option<Wait> {
        self.wait.take()
    }

    /// Whether a record is about accesses that were held back.
    fn held_back(&mut self, record: &Record) -> bool {
        if record.kind() != Some(RecordKind::HeldBack) {
            return false;
        }
        let code = record.pc();
        let len = u64::from(record.flags() & !HELD_WRITE);
        self.held_back = Some(HeldBack {
            thread: ThreadId((code >> SHADOW_PC_BITS) as u32),
            bytes: Range { start: record.a, len },
            write: record.flags() & HELD_WRITE != 0,
            moment: record.b,
            site: self.access_sites.get(&(code & earlier::LOW)).copied(),
        });
        true
    }

    /// The accesses that were held back and that the last record tells about, if it does.
    pub fn take_held_back(&mut self) -> Option<HeldBack> {
        self.held_back.take()
    }

    /// What threads call themselves, by number.
    pub fn thread_names(&self) -> &BTreeMap<u32, String> {
        &self.names
    }

    /// Where the memory that events call so lies.
    pub(crate) fn address(&self, addr: u64) -> Option<u64> {
        self.numbering.as_ref().map_or(Some(addr), |n| n.address(addr))
    }

    /// Where the thread began to wait for a lock that it has now, by the record itself. If it does something
    /// else it has the lock as well, which comes first.
    fn end_waiting(&mut self, line: &Line<'_>, out: &mut Vec<Event>) -> Option<SiteId> {
        let &Line { thread, kind, record, part, .. } = line;
        let &(addr, mode, site) = self.awaited.get(&thread)?;
        let takes = matches!(kind, RecordKind::Acquire | RecordKind::Update);
        let inside = part.is_some_and(|p| p.step == LockStep::Inside);
        if takes && addr == record.a && !inside {
            self.awaited.remove(&thread);
            return Some(site);
        }
        if part.is_none() && tells_more(record, kind) {
            self.awaited.remove(&thread);
            self.take(thread, site, addr, mode, out);
        }
        None
    }

    /// Whether what a stub around the standard library says of a lock is about a lock whose other ways in
    /// and out are seen, and not about one that the library uses within itself.
    fn is_seen(&mut self, line: &Line<'_>, has_it: bool) -> bool {
        let &Line { thread, record, .. } = line;
        match line.kind {
            RecordKind::Acquire if has_it || self.rust_locks.wakes(thread, record.a) => {
                self.rust_locks.take(thread, record.a, mode(record.flags()))
            }
            RecordKind::Release => self.rust_locks.give_up(thread, record.a),
            _ => false,
        }
    }

    /// Whether a record is nothing but a part of a lock, whose own events say the same: an atomic of its
    /// code, or the order of threads that wait for it and wake each other.
    fn is_part(&mut self, line: &Line<'_>) -> bool {
        let &Line { thread, kind, record, part, .. } = line;
        let is_same = |addr: u64| addr == record.a;
        let given = self.given.get(&thread).copied();
        if kind != RecordKind::Notify {
            self.given.remove(&thread);
        }
        match kind {
            RecordKind::HappensBefore => given.is_some_and(is_same),
            RecordKind::HappensAfter => self.awaited.get(&thread).is_some_and(|a| is_same(a.0)),
            _ => part.is_some_and(|p| p.complete && p.step != LockStep::Inside),
        }
    }

    /// What a stub around the standard library says of a lock orders threads even if the lock is not seen:
    /// the library's own atomics at the same place are not recorded.
    fn push_std_order(&mut self, line: &Line<'_>, out: &mut Vec<Event>) {
        const LEN: u64 = 4;
        if self.complete.contains(&line.record.a) {
            return self.push_turn(line, mode(line.record.flags()), out);
        }
        let op = match line.kind {
            RecordKind::Acquire => AtomicOp::Load(LoadOrder::Acquire),
            _ => AtomicOp::Update(UpdateOrder::Release),
        };
        let access = self.access(&Record { b: LEN, ..*line.record });
        self.push(line, Op::Atomic(access, op), out);
    }

    /// The thread takes a lock or gives it back, and the other half is out of sight. It orders threads, but
    /// the lock is not known to be held before or after it.
    fn push_turn(&mut self, line: &Line<'_>, mode: Mode, out: &mut Vec<Event>) {
        let lock = self.lock(line.record.a, line.site);
        self.push(line, Op::Acquire(lock, mode), out);
        self.push(line, Op::Release(lock, mode), out);
    }

    fn push_operation(&mut self, line: &Line<'_>, names: &mut Names<'_>, out: &mut Vec<Event>) {
        let &Line { thread, kind, record, site, .. } = line;
        match kind {
            RecordKind::Raced => self.first_race = self.raced(line, names),
            RecordKind::Destroy => self.forget(Range { start: record.a, len: 1 }),
            RecordKind::Block => {
                let what = match record.flags() & JOIN {
                    0 => Awaited::Lock(self.lock(record.a, site), mode(record.flags())),
                    _ => Awaited::Thread(ThreadId(record.a as u32)),
                };
                self.wait = Some(Wait { thread: ThreadId(thread), site, what });
            }
            RecordKind::Made => {
                self.forget(Range { start: record.a, len: 1 });
                self.lock(record.a, site);
            }
            RecordKind::Name => {
                self.names.insert(thread, name_of(record.a, record.b));
            }
            RecordKind::RegionEnter => {
                let op = self.enter(line, names);
                self.push(line, op, out);
            }
            RecordKind::Free => {
                let range = Range { start: record.a, len: record.b };
                self.forget(range);
                let freed = match &mut self.numbering {
                    None => vec![range],
                    // Where it lies there will be other memory; what cannot be judged is not an event.
                    Some(numbering) => {
                        let mut freed = numbering.freed(range);
                        freed.retain(|_| record.flags() & OUT_OF_SIGHT == 0);
                        freed
                    }
                };
                for range in freed {
                    self.push(line, Op::Free(range), out);
                }
            }
            _ => {
                if let Some(op) = self.op(line) {
                    self.push(line, op, out);
                }
            }
        }
    }

    fn push_lock_step(&mut self, line: &Line<'_>, out: &mut Vec<Event>) {
        let &Line { thread, record, .. } = line;
        let Some(LockPart { step, site, complete }) = line.part else { return };
        let wrote = line.kind == RecordKind::Update;
        match step {
            LockStep::Take(mode) | LockStep::Try(mode) if wrote => {
                self.take(thread, site, record.a, mode, out);
            }
            LockStep::Give(mode) if self.rust_locks.give(thread, record.a) => {
                let op = Op::Release(self.lock(record.a, site), mode);
                self.push(&Line { site, ..*line }, op, out);
                if complete {
                    self.given.insert(thread, record.a);
                }
            }
            LockStep::Give(mode) if complete => {
                self.push_turn(&Line { site, ..*line }, mode, out);
            }
            LockStep::Take(mode) => {
                self.awaited.insert(thread, (record.a, mode, site));
                let what = Awaited::Lock(self.lock(record.a, site), mode);
                self.wait = Some(Wait { thread: ThreadId(thread), site, what });
            }
            LockStep::Give(_) | LockStep::Try(_) | LockStep::Inside => {}
        }
    }

    /// A thread has a lock of Rust.
    fn take(&mut self, thread: u32, site: SiteId, addr: u64, mode: Mode, out: &mut Vec<Event>) {
        let lock = self.lock(addr, site);
        let had_it = !self.rust_locks.take(thread, addr, mode);
        let release = had_it.then_some(Op::Release(lock, mode));
        for op in release.into_iter().chain([Op::Acquire(lock, mode)]) {
            self.passed += 1;
            out.push(Event { thread: ThreadId(thread), site, op });
        }
    }

    fn push(&mut self, line: &Line<'_>, op: Op, out: &mut Vec<Event>) {
        self.passed += 1;
        out.push(Event { thread: ThreadId(line.thread), site: line.site, op });
    }

    fn lock(&mut self, addr: u64, site: SiteId) -> LockId {
        LockId(self.locks.id(addr, site))
    }

    fn access(&mut self, record: &Record) -> Access {
        let access = Access { addr: record.a, len: record.b as u32 };
        self.numbering.as_mut().map_or(access, |n| n.access(access))
    }

    /// Memory by number, in pieces that are numbered one after the other.
    pub(crate) fn pieces(&mut self, range: Range) -> Vec<Access> {
        let (mut at, end) = (range.start, range.end());
        let mut pieces = Vec::with_capacity(1);
        while at < end {
            let len = u32::try_from(end - at).unwrap_or(u32::MAX);
            let access = Access { addr: at, len };
            let piece = self.numbering.as_mut().map_or(access, |n| n.access(access));
            pieces.push(piece);
            at += u64::from(piece.len.max(1));
        }
        pieces
    }

    fn raced(&mut self, line: &Line<'_>, names: &mut Names<'_>) -> Option<FirstRace> {
        let raced = Raced::read(line.record)?;
        let regions = self.regions.get(&raced.thread);
        let bytes = Range { start: raced.addr, len: raced.len };
        if let Some(name) = names.object(bytes.start) {
            names.symbols.variables.define(&name, bytes);
        }
        let thread = ThreadId(raced.thread);
        let site = names.earlier(raced.number?, (thread, raced.earlier), line.record.pc())?;
        Some(FirstRace {
            bytes,
            earlier: Party { thread, site, role: role(raced.earlier) },
            passed: regions.map_or(0, |r| r.passed_before(Epoch::from_record(raced.epoch))),
            later: Party {
                thread: ThreadId(line.thread),
                site: line.site,
                role: role(raced.later),
            },
        })
    }

    fn enter(&mut self, line: &Line<'_>, names: &mut Names<'_>) -> Op {
        let record = line.record;
        let kind = match record.flags() & wire::MARKED {
            0 => RegionKind::Atomic,
            wire::TASK => RegionKind::Task,
            wire::COMMUTES => RegionKind::Commutes,
            wire::LAZY => RegionKind::Lazy,
            _ => RegionKind::Deterministic,
        };
        let id = match record.flags() & wire::FUNCTION {
            0 => names.marked(record.a, (record.b & 0xffff_ffff) as usize, kind),
            _ => names.function(record.a, kind),
        };
        let regions = self.regions.entry(line.thread).or_default();
        regions.open.push(id);
        regions.border(record, self.passed + 1);
        Op::RegionEnter(id, kind)
    }

    /// The operation of a record, of those that are operations by themselves.
    fn op(&mut self, line: &Line<'_>) -> Option<Op> {
        let &Line { record, site, .. } = line;
        let (a, b, flags) = (record.a, record.b, record.flags());
        Some(match line.kind {
            RecordKind::Read => Op::Read(self.access(record)),
            RecordKind::Write => Op::Write(self.access(record)),
            RecordKind::Load
            | RecordKind::Store
            | RecordKind::Update
            | RecordKind::HappensBefore
            | RecordKind::HappensAfter => return self.atomic(line),
            RecordKind::Fence => Op::Fence(update_order(flags)),
            RecordKind::Acquire => Op::Acquire(self.lock(a, site), mode(flags)),
            RecordKind::Release => Op::Release(self.lock(a, site), mode(flags)),
            RecordKind::Fork => Op::Fork(ThreadId(a as u32)),
            RecordKind::Join => Op::Join(ThreadId(a as u32)),
            RecordKind::Begin => Op::Begin,
            RecordKind::End => Op::End,
            RecordKind::Arrive => Op::Arrive(BarrierId(self.barriers.id(a, site)), b as u32),
            RecordKind::Leave => Op::Leave(BarrierId(self.barriers.id(a, site)), b as u32),
            RecordKind::Post => Op::Post(SemaphoreId(self.semaphores.id(a, site))),
            RecordKind::Wait => Op::Wait(SemaphoreId(self.semaphores.id(a, site))),
            RecordKind::Notify => {
                let wakes = if flags & ALL != 0 { Wakes::All } else { Wakes::One };
                Op::Notify(CondId(self.conds.id(a, site)), wakes)
            }
            RecordKind::Wake => Op::Wake(CondId(self.conds.id(a, site))),
            RecordKind::Alloc => {
                let range = Range { start: a, len: b };
                Op::Alloc(self.numbering.as_mut().map_or(range, |n| n.allocated(range)))
            }
            RecordKind::RegionExit => {
                let regions = self.regions.get_mut(&line.thread)?;
                regions.border(record, self.passed + 1);
                Op::RegionExit(regions.open.pop()?)
            }
            RecordKind::Abandoned
            | RecordKind::Block
            | RecordKind::BlockJoin
            | RecordKind::BlockToken
            | RecordKind::Callers
            | RecordKind::Destroy
            | RecordKind::Enroll
            | RecordKind::Flow
            | RecordKind::Focus
            | RecordKind::Free
            | RecordKind::FutexWait
            | RecordKind::HeldBack
            | RecordKind::Judge
            | RecordKind::Made
            | RecordKind::Name
            | RecordKind::Raced
            | RecordKind::RegionEnter
            | RecordKind::StrayExit
            | RecordKind::Value
            | RecordKind::Yield => return None,
        })
    }

    fn atomic(&mut self, line: &Line<'_>) -> Option<Op> {
        let flags = line.record.flags();
        let op = match line.kind {
            RecordKind::Load => AtomicOp::Load(load_order(flags)),
            RecordKind::Store => AtomicOp::Store(store_order(flags)),
            RecordKind::Update => AtomicOp::Update(update_order(flags)),
            RecordKind::HappensBefore => AtomicOp::Update(UpdateOrder::Release),
            RecordKind::HappensAfter => AtomicOp::Load(LoadOrder::Acquire),
            _ => return None,
        };
        let by_name = matches!(line.kind, RecordKind::HappensBefore | RecordKind::HappensAfter);
        let len = if by_name { 1 } else { line.record.b };
        Some(Op::Atomic(self.access(&Record { b: len, ..*line.record }), op))
    }

    fn forget(&mut self, range: Range) {
        for ids in [&mut self.locks, &mut self.barriers, &mut self.semaphores, &mut self.conds] {
            ids.forget(range);
        }
        self.rust_locks.forget(range);
        self.complete.retain(|&lock| !(range.start..range.end()).contains(&lock));
    }
}

/// The code of a record. A thread begins with a function's first byte, not behind a call. A plain access is where it is
/// made, also in a library's code: of a race's earlier access nothing else is known. What synchronizes is where the
/// program calls it.
fn code(kind: RecordKind, record: &Record, callers: Callers) -> Code {
    let pc = record.pc();
    match kind {
        RecordKind::Read | RecordKind::Write => (pc, [0; CALLERS]),
        RecordKind::Begin if pc != 0 => (pc + 1, callers),
        _ => (pc, callers),
    }
}

fn line<'a>(
    thread: u32,
    kind: RecordKind,
    record: &'a Record,
    callers: Callers,
    names: &mut Names<'_>,
) -> Line<'a> {
    let code = code(kind, record, callers);
    let may_lock = matches!(kind, RecordKind::Update | RecordKind::Load)
        && record.flags() & MAY_LOCK != 0
        && callers[0] != 0;
    let part = if may_lock { names.lock_step(code) } else { None };
    Line { thread, kind, record, site: names.site(code).0, part }
}

/// The mode of an acquisition or release.
fn mode(flags: u8) -> Mode {
    if flags & SHARED != 0 { Mode::Shared } else { Mode::Exclusive }
}

/// Whether a record says that a thread goes on, and does not wait any more: loads, stores, wake-ups and
/// order without a name are what waiting for a lock is made of.
fn tells_more(record: &Record, kind: RecordKind) -> bool {
    use RecordKind::{Alloc, Fence, Free, HappensAfter, HappensBefore, Load, Notify, Store, Wake};
    match kind {
        Notify | Wake => record.flags() & FUTEX == 0,
        Load | Store | Fence | HappensBefore | HappensAfter | Alloc | Free => false,
        _ => true,
    }
}

/// Whether a record may say in which epoch its thread is.
fn tells_epoch(kind: RecordKind) -> bool {
    use RecordKind::{Acquire, Load, Release, Update};
    matches!(kind, Acquire | Release | Update | Load)
}

/// Whether what a record changes is true from the next epoch on: releasing ends one.
fn ends_epoch(record: &Record) -> bool {
    let order = record.flags() & ORDER;
    let releases = matches!(order, order::RELEASE | order::ACQ_REL | order::SEQ_CST);
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

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_model::Symbols;

    use crate::modules::{ByModule, Modules};
    use crate::places::Places;

    #[test]
    fn a_lock_in_reused_memory_is_another_lock() {
        let (mut decoder, mut symbols) = (Decoder::default(), Symbols::default());
        let mut places = Places::default();
        let modules = Modules::default();
        let mut event = |kind, a, b| {
            let record = Record::new(1, kind, 0, 7, a, b);
            let mut names = Names {
                symbols: &mut symbols,
                modules: &modules,
                resolver: &mut ByModule,
                text: &|_, _| None,
                race: &|_| None,
                places: &mut places,
            };
            let mut out = Vec::new();
            decoder.record(0, &record, &mut names, &mut out);
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
