//! Events as columns of bytes.
//!
//! Programs repeat themselves, so both sides run the same small predictor: the next event is by the
//! same thread; at the site that followed this thread's last site the last time; at an address as far
//! from the last one of this site and thread as that was from the one before. Each guess that is right
//! costs one bit of the tag byte, each wrong one a number in a column of its own. What is left is
//! regular enough for zstd.
//!
//! The predictor's tables have a fixed size and are addressed by hashes; a collision costs a wrong
//! guess, nothing else. They start empty with the trace and are never reset.

use super::varint::{Bytes, put, put_signed};
use crate::{
    Access, AtomicOp, BarrierId, CondId, Event, Flow, LoadOrder, LocalId, LockId, Mode, Op,
    Operator, Range, RegionId, RegionKind, SemaphoreId, SiteId, StoreOrder, Symbols, ThreadId,
    UpdateOrder, Wakes,
};

const SAME_THREAD: u8 = 0x80;
const SITE_FORESEEN: u8 = 0x40;
const ADDRESS_FORESEEN: u8 = 0x20;
const CODE: u8 = 0x1f;

/// What the low five bits of a tag say.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Code {
    Read1,
    Read2,
    Read4,
    Read8,
    ReadN,
    Write1,
    Write2,
    Write4,
    Write8,
    WriteN,
    Atomic,
    Fence,
    AcquireExclusive,
    AcquireShared,
    ReleaseExclusive,
    ReleaseShared,
    Fork,
    Join,
    Begin,
    End,
    Arrive,
    Leave,
    Post,
    Wait,
    NotifyOne,
    NotifyAll,
    Wake,
    EnterAtomic,
    EnterDeterministic,
    RegionExit,
    Alloc,
    Free,
}

const CODES: [Code; 32] = [
    Code::Read1,
    Code::Read2,
    Code::Read4,
    Code::Read8,
    Code::ReadN,
    Code::Write1,
    Code::Write2,
    Code::Write4,
    Code::Write8,
    Code::WriteN,
    Code::Atomic,
    Code::Fence,
    Code::AcquireExclusive,
    Code::AcquireShared,
    Code::ReleaseExclusive,
    Code::ReleaseShared,
    Code::Fork,
    Code::Join,
    Code::Begin,
    Code::End,
    Code::Arrive,
    Code::Leave,
    Code::Post,
    Code::Wait,
    Code::NotifyOne,
    Code::NotifyAll,
    Code::Wake,
    Code::EnterAtomic,
    Code::EnterDeterministic,
    Code::RegionExit,
    Code::Alloc,
    Code::Free,
];

const UPDATE_ORDERS: [UpdateOrder; 5] = [
    UpdateOrder::Relaxed,
    UpdateOrder::Acquire,
    UpdateOrder::Release,
    UpdateOrder::AcqRel,
    UpdateOrder::SeqCst,
];

/// All tags are taken. What came with version 2 has the tag of a fence, and first of all a number that is no
/// order of a fence: these, and above them the kinds of regions that have no tag of their own.
mod further {
    pub(super) const USE: u32 = 5;
    pub(super) const DEFINE: u32 = 6;
    pub(super) const BRANCH: u32 = 7;
    pub(super) const FOCUS: u32 = 8;
    pub(super) const TAKE: u32 = 9;
    pub(super) const ENTER: u32 = 16;
    /// The operators, since version 3.
    pub(super) const UPDATES: u32 = 64;
}

const ATOMIC_OPS: [AtomicOp; 11] = [
    AtomicOp::Load(LoadOrder::Relaxed),
    AtomicOp::Load(LoadOrder::Acquire),
    AtomicOp::Load(LoadOrder::SeqCst),
    AtomicOp::Store(StoreOrder::Relaxed),
    AtomicOp::Store(StoreOrder::Release),
    AtomicOp::Store(StoreOrder::SeqCst),
    AtomicOp::Update(UpdateOrder::Relaxed),
    AtomicOp::Update(UpdateOrder::Acquire),
    AtomicOp::Update(UpdateOrder::Release),
    AtomicOp::Update(UpdateOrder::AcqRel),
    AtomicOp::Update(UpdateOrder::SeqCst),
];

/// How many entries a table of the predictor has.
const TABLE: usize = 1 << 13;

#[derive(Clone, Copy, Default)]
struct Walk {
    addr: u64,
    stride: u64,
}

/// Guesses the next event from the ones before.
struct Predictor {
    thread: u32,
    /// By thread, hashed: the site of its last event.
    last_site: Box<[u32]>,
    /// By site, hashed: the site that followed it.
    next_site: Box<[u32]>,
    /// By site and thread, hashed: the last address and how far it was from the one before.
    walks: Box<[Walk]>,
}

impl Predictor {
    fn new() -> Predictor {
        Predictor {
            thread: 0,
            last_site: vec![0; TABLE].into(),
            next_site: vec![0; TABLE].into(),
            walks: vec![Walk::default(); TABLE].into(),
        }
    }

    #[inline]
    fn last_site(&mut self, thread: u32) -> &mut u32 {
        &mut self.last_site[thread as usize % TABLE]
    }

    #[inline]
    fn next_site(&mut self, site: u32) -> &mut u32 {
        &mut self.next_site[site as usize % TABLE]
    }

    #[inline]
    fn walk(&mut self, site: u32, thread: u32) -> &mut Walk {
        &mut self.walks[site.wrapping_add(thread.wrapping_mul(0x9e3)) as usize % TABLE]
    }
}

impl Walk {
    #[inline]
    fn go(&mut self, addr: u64) {
        *self = Walk { addr, stride: addr.wrapping_sub(self.addr) };
    }
}

/// The columns of one block.
#[derive(Default)]
struct Columns {
    tags: Vec<u8>,
    threads: Vec<u8>,
    sites: Vec<u8>,
    addresses: Vec<u8>,
    operands: Vec<u8>,
}

/// Turns events into columns.
pub(super) struct Encoder {
    predictor: Predictor,
    columns: Columns,
    highest: Highest,
}

/// One more than the highest id of each kind that events have named.
#[derive(Clone, Copy, Default)]
pub(super) struct Highest {
    pub(super) threads: u32,
    pub(super) locks: u32,
    pub(super) barriers: u32,
    pub(super) semaphores: u32,
    pub(super) conds: u32,
    pub(super) locals: u32,
    pub(super) regions: u32,
    pub(super) sites: u32,
}

fn acquire(mode: Mode) -> Code {
    match mode {
        Mode::Exclusive => Code::AcquireExclusive,
        Mode::Shared => Code::AcquireShared,
    }
}

fn release(mode: Mode) -> Code {
    match mode {
        Mode::Exclusive => Code::ReleaseExclusive,
        Mode::Shared => Code::ReleaseShared,
    }
}

/// The further code of a step of data flow, and its local.
fn further(flow: Flow) -> (u32, Option<LocalId>) {
    match flow {
        Flow::Use(local) => (further::USE, Some(local)),
        Flow::Define(local) => (further::DEFINE, Some(local)),
        Flow::Take(local) => (further::TAKE, Some(local)),
        Flow::Branch => (further::BRANCH, None),
        Flow::Updates(operator) => (further::UPDATES + operator as u32, None),
    }
}

impl Encoder {
    pub(super) fn new() -> Encoder {
        Encoder {
            predictor: Predictor::new(),
            columns: Columns::default(),
            highest: Highest::default(),
        }
    }

    pub(super) fn events(&self) -> usize {
        self.columns.tags.len()
    }

    pub(super) fn highest(&self) -> Highest {
        self.highest
    }

    pub(super) fn push(&mut self, event: &Event) {
        let mut tag = 0;
        let thread = event.thread.0;
        if thread == self.predictor.thread {
            tag |= SAME_THREAD;
        } else {
            put(&mut self.columns.threads, u64::from(thread));
            self.predictor.thread = thread;
        }
        let site = event.site.0;
        let last = std::mem::replace(self.predictor.last_site(thread), site);
        if std::mem::replace(self.predictor.next_site(last), site) == site {
            tag |= SITE_FORESEEN;
        } else {
            put_signed(&mut self.columns.sites, i64::from(site) - i64::from(last));
        }
        let h = &mut self.highest;
        h.threads = h.threads.max(thread + 1);
        h.sites = h.sites.max(site + 1);
        self.push_op(event, tag);
    }

    fn push_op(&mut self, event: &Event, tag: u8) {
        let h = &mut self.highest;
        let operands = &mut self.columns.operands;
        let mut code = |code: Code, operand: u32| {
            put(operands, u64::from(operand));
            code
        };
        let note = |highest: &mut u32, id: u32| {
            *highest = (*highest).max(id + 1);
            id
        };
        let (memory, code) = match event.op {
            Op::Read(a) => return self.push_access(event, tag, a, Code::Read1),
            Op::Write(a) => return self.push_access(event, tag, a, Code::Write1),
            Op::Atomic(a, op) => {
                let op = ATOMIC_OPS.iter().position(|&o| o == op).expect("all are listed");
                let done = code(Code::Atomic, op as u32);
                put(&mut self.columns.operands, u64::from(a.len));
                (Some(a.addr), done)
            }
            Op::Fence(order) => {
                let order = UPDATE_ORDERS.iter().position(|&o| o == order).expect("all are listed");
                (None, code(Code::Fence, order as u32))
            }
            Op::Acquire(l, mode) => (None, code(acquire(mode), note(&mut h.locks, l.0))),
            Op::Release(l, mode) => (None, code(release(mode), note(&mut h.locks, l.0))),
            Op::Fork(t) => (None, code(Code::Fork, note(&mut h.threads, t.0))),
            Op::Join(t) => (None, code(Code::Join, note(&mut h.threads, t.0))),
            Op::Begin => (None, Code::Begin),
            Op::End => (None, Code::End),
            Op::Arrive(b, round) | Op::Leave(b, round) => {
                let arrives = matches!(event.op, Op::Arrive(..));
                let which = if arrives { Code::Arrive } else { Code::Leave };
                let done = code(which, note(&mut h.barriers, b.0));
                put(&mut self.columns.operands, u64::from(round));
                (None, done)
            }
            Op::Post(s) => (None, code(Code::Post, note(&mut h.semaphores, s.0))),
            Op::Wait(s) => (None, code(Code::Wait, note(&mut h.semaphores, s.0))),
            Op::Notify(c, Wakes::One) => (None, code(Code::NotifyOne, note(&mut h.conds, c.0))),
            Op::Notify(c, Wakes::All) => (None, code(Code::NotifyAll, note(&mut h.conds, c.0))),
            Op::Wake(c) => (None, code(Code::Wake, note(&mut h.conds, c.0))),
            Op::RegionEnter(r, kind) => {
                let id = note(&mut h.regions, r.0);
                let enter = match kind {
                    RegionKind::Atomic => code(Code::EnterAtomic, id),
                    RegionKind::Deterministic => code(Code::EnterDeterministic, id),
                    kind => {
                        code(Code::Fence, further::ENTER + kind as u32);
                        code(Code::Fence, id)
                    }
                };
                (None, enter)
            }
            Op::RegionExit(r) => (None, code(Code::RegionExit, note(&mut h.regions, r.0))),
            Op::Alloc(range) | Op::Free(range) => {
                put(&mut self.columns.operands, range.len);
                let comes = matches!(event.op, Op::Alloc(_));
                (Some(range.start), if comes { Code::Alloc } else { Code::Free })
            }
            Op::Flow(flow) => {
                let (what, local) = further(flow);
                let done = code(Code::Fence, what);
                (None, local.map_or(done, |l| code(Code::Fence, note(&mut h.locals, l.0))))
            }
            Op::Focus(range) => {
                let done = code(Code::Fence, further::FOCUS);
                put(&mut self.columns.operands, range.start);
                put(&mut self.columns.operands, range.len);
                (None, done)
            }
        };
        let foreseen = memory.map_or(0, |addr| self.push_address(event, addr));
        self.columns.tags.push(tag | foreseen | code as u8);
    }

    fn push_access(&mut self, event: &Event, tag: u8, access: Access, first: Code) {
        let width = match access.len {
            1 => 0,
            2 => 1,
            4 => 2,
            8 => 3,
            n => {
                put(&mut self.columns.operands, u64::from(n));
                4
            }
        };
        let foreseen = self.push_address(event, access.addr);
        self.columns.tags.push(tag | foreseen | (first as u8 + width));
    }

    fn push_address(&mut self, event: &Event, addr: u64) -> u8 {
        let walk = self.predictor.walk(event.site.0, event.thread.0);
        let foreseen = walk.addr.wrapping_add(walk.stride) == addr;
        if !foreseen {
            put_signed(&mut self.columns.addresses, addr.wrapping_sub(walk.addr) as i64);
        }
        walk.go(addr);
        if foreseen { ADDRESS_FORESEEN } else { 0 }
    }

    /// Appends the columns to `out` and starts the next block.
    pub(super) fn finish_block(&mut self, out: &mut Vec<u8>) {
        let c = &mut self.columns;
        for column in [&mut c.tags, &mut c.threads, &mut c.sites, &mut c.addresses, &mut c.operands]
        {
            put(out, column.len() as u64);
            out.extend_from_slice(column);
            column.clear();
        }
    }
}

/// Turns columns into events again.
pub(super) struct Decoder {
    predictor: Predictor,
}

/// How many ids of each kind are defined: an event that names another is damaged.
struct Defined {
    threads: u32,
    locks: u32,
    barriers: u32,
    semaphores: u32,
    conds: u32,
    locals: u32,
    regions: u32,
    sites: u32,
}

impl Defined {
    fn of(symbols: &Symbols) -> Defined {
        let n = |n: usize| n as u32;
        Defined {
            threads: n(symbols.threads.entries().len()),
            locks: n(symbols.locks.entries().len()),
            barriers: n(symbols.barriers.entries().len()),
            semaphores: n(symbols.semaphores.entries().len()),
            conds: n(symbols.conds.entries().len()),
            locals: n(symbols.locals.entries().len()),
            regions: n(symbols.regions.entries().len()),
            sites: n(symbols.sites.entries().len()),
        }
    }
}

impl Decoder {
    pub(super) fn new() -> Decoder {
        Decoder { predictor: Predictor::new() }
    }

    /// Appends the `count` events of a block to `out`; nothing if the columns make no sense.
    pub(super) fn read_block(
        &mut self,
        payload: &mut Bytes<'_>,
        count: usize,
        symbols: &Symbols,
        out: &mut Vec<Event>,
    ) -> Option<()> {
        let mut column = || {
            let n = usize::try_from(payload.number()?).ok()?;
            payload.take(n)
        };
        let tags = column()?;
        let mut threads = Bytes(column()?);
        let mut sites = Bytes(column()?);
        let mut rest = Rest { addresses: Bytes(column()?), operands: Bytes(column()?) };
        if tags.len() != count {
            return None;
        }
        let defined = Defined::of(symbols);
        out.reserve(count);
        for &tag in tags {
            if tag & SAME_THREAD == 0 {
                self.predictor.thread = threads.number_u32()?;
            }
            let thread = self.predictor.thread;
            let last = *self.predictor.last_site(thread);
            let site = if tag & SITE_FORESEEN != 0 {
                *self.predictor.next_site(last)
            } else {
                let site = u32::try_from(i64::from(last).checked_add(sites.signed()?)?).ok()?;
                *self.predictor.next_site(last) = site;
                site
            };
            *self.predictor.last_site(thread) = site;
            if thread >= defined.threads || site >= defined.sites {
                return None;
            }
            let op = self.op(tag, thread, site, &mut rest, &defined)?;
            out.push(Event { thread: ThreadId(thread), site: SiteId(site), op });
        }
        let spent = [threads, sites, rest.addresses, rest.operands].iter().all(|c| c.0.is_empty());
        spent.then_some(())
    }

    #[inline]
    fn op(
        &mut self,
        tag: u8,
        thread: u32,
        site: u32,
        rest: &mut Rest<'_>,
        defined: &Defined,
    ) -> Option<Op> {
        let code = *CODES.get(usize::from(tag & CODE))?;
        let mut address = |rest: &mut Rest<'_>| {
            let walk = self.predictor.walk(site, thread);
            let addr = if tag & ADDRESS_FORESEEN != 0 {
                walk.addr.wrapping_add(walk.stride)
            } else {
                walk.addr.wrapping_add(rest.addresses.signed()? as u64)
            };
            walk.go(addr);
            Some(addr)
        };
        let mut access = |rest: &mut Rest<'_>, len: u32| {
            let addr = address(rest)?;
            addr.checked_add(u64::from(len))?;
            Some(Access { addr, len })
        };
        Some(match code {
            Code::Read1 => Op::Read(access(rest, 1)?),
            Code::Read2 => Op::Read(access(rest, 2)?),
            Code::Read4 => Op::Read(access(rest, 4)?),
            Code::Read8 => Op::Read(access(rest, 8)?),
            Code::ReadN => {
                let len = rest.operands.number_u32()?;
                Op::Read(access(rest, len)?)
            }
            Code::Write1 => Op::Write(access(rest, 1)?),
            Code::Write2 => Op::Write(access(rest, 2)?),
            Code::Write4 => Op::Write(access(rest, 4)?),
            Code::Write8 => Op::Write(access(rest, 8)?),
            Code::WriteN => {
                let len = rest.operands.number_u32()?;
                Op::Write(access(rest, len)?)
            }
            Code::Atomic => {
                let op = *ATOMIC_OPS.get(usize::try_from(rest.operands.number()?).ok()?)?;
                let len = rest.operands.number_u32()?;
                Op::Atomic(access(rest, len)?, op)
            }
            Code::Alloc | Code::Free => {
                let len = rest.operands.number()?;
                let start = address(rest)?;
                start.checked_add(len)?;
                let range = Range { start, len };
                if code == Code::Alloc { Op::Alloc(range) } else { Op::Free(range) }
            }
            _ => return other_op(code, &mut rest.operands, defined),
        })
    }
}

/// The columns that depend on the operation.
struct Rest<'a> {
    addresses: Bytes<'a>,
    operands: Bytes<'a>,
}

/// The operations that touch no memory.
fn other_op(code: Code, operands: &mut Bytes<'_>, defined: &Defined) -> Option<Op> {
    let mut id = |defined: u32| operands.number_u32().filter(|&id| id < defined);
    Some(match code {
        Code::Fence => return fence_or_further(operands, defined),
        Code::AcquireExclusive => Op::Acquire(LockId(id(defined.locks)?), Mode::Exclusive),
        Code::AcquireShared => Op::Acquire(LockId(id(defined.locks)?), Mode::Shared),
        Code::ReleaseExclusive => Op::Release(LockId(id(defined.locks)?), Mode::Exclusive),
        Code::ReleaseShared => Op::Release(LockId(id(defined.locks)?), Mode::Shared),
        Code::Fork => Op::Fork(ThreadId(id(defined.threads)?)),
        Code::Join => Op::Join(ThreadId(id(defined.threads)?)),
        Code::Begin => Op::Begin,
        Code::End => Op::End,
        Code::Arrive => {
            let barrier = BarrierId(id(defined.barriers)?);
            Op::Arrive(barrier, operands.number_u32()?)
        }
        Code::Leave => {
            let barrier = BarrierId(id(defined.barriers)?);
            Op::Leave(barrier, operands.number_u32()?)
        }
        Code::Post => Op::Post(SemaphoreId(id(defined.semaphores)?)),
        Code::Wait => Op::Wait(SemaphoreId(id(defined.semaphores)?)),
        Code::NotifyOne => Op::Notify(CondId(id(defined.conds)?), Wakes::One),
        Code::NotifyAll => Op::Notify(CondId(id(defined.conds)?), Wakes::All),
        Code::Wake => Op::Wake(CondId(id(defined.conds)?)),
        Code::EnterAtomic => Op::RegionEnter(RegionId(id(defined.regions)?), RegionKind::Atomic),
        Code::EnterDeterministic => {
            Op::RegionEnter(RegionId(id(defined.regions)?), RegionKind::Deterministic)
        }
        Code::RegionExit => Op::RegionExit(RegionId(id(defined.regions)?)),
        Code::Read1
        | Code::Read2
        | Code::Read4
        | Code::Read8
        | Code::ReadN
        | Code::Write1
        | Code::Write2
        | Code::Write4
        | Code::Write8
        | Code::WriteN
        | Code::Atomic
        | Code::Alloc
        | Code::Free => return None,
    })
}

fn fence_or_further(operands: &mut Bytes<'_>, defined: &Defined) -> Option<Op> {
    let number = operands.number_u32()?;
    let mut local = || operands.number_u32().filter(|&id| id < defined.locals).map(LocalId);
    Some(match number {
        further::USE => Op::Flow(Flow::Use(local()?)),
        further::DEFINE => Op::Flow(Flow::Define(local()?)),
        further::TAKE => Op::Flow(Flow::Take(local()?)),
        further::BRANCH => Op::Flow(Flow::Branch),
        further::FOCUS => {
            let range = Range { start: operands.number()?, len: operands.number()? };
            range.start.checked_add(range.len)?;
            Op::Focus(range)
        }
        further::UPDATES.. => {
            let (operator, _) = *Operator::ALL.get((number - further::UPDATES) as usize)?;
            Op::Flow(Flow::Updates(operator))
        }
        further::ENTER.. => {
            let (kind, _) = *RegionKind::LABELS.get((number - further::ENTER) as usize)?;
            let region = operands.number_u32().filter(|&id| id < defined.regions)?;
            Op::RegionEnter(RegionId(region), kind)
        }
        order => Op::Fence(*UPDATE_ORDERS.get(order as usize)?),
    })
}
