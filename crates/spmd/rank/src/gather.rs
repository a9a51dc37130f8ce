//! What one rank knows of its own accesses: the *gathering* of communication-avoiding dynamic analysis (section 7.1
//! of the thesis).
//!
//! An access is put into the [`Store`] of the rank that owns the memory. Accesses that are alike (same call and place,
//! same segments) share one [`Attributes`] entry, and an access that another one makes redundant (definition 7.1)
//! is not kept. Two accesses of one thread conflict only if the earlier one is still in flight when the later one
//! begins: such pairs are found here, at once. All other pairs are found by the owner ([`owner`](crate::owner)).

mod compact;
pub mod epochs;
mod sync;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::figures::Figures;
use crate::hash::{Map, Set};
use crate::order::{Event, Key};
use crate::rules::{self, Act, Basic, Bytes, CALLS, Completion, Reach, Side};
use crate::segments::{Now, Segments};
use crate::store::Store;
use compact::Compacted;
use epochs::Epochs;

/// At most this many accesses are remembered in a phase; more are counted and dropped.
const MOST: usize = 1 << 20;

/// So many accesses that are alike keep entries of their own, with their exact times.
const EXACT: usize = 4;

/// At most this many atomic accesses are logged in a phase, so that a phase of atomic accesses stays small.
const ATOMICS: usize = 4096;

/// A lock of a window at a target, or at all targets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub struct Lock {
    pub window: u64,
    pub target: Option<u32>,
    pub exclusive: bool,
    /// Which acquisition it is.
    pub acquired: u32,
}

impl Lock {
    /// Whether two ranks cannot hold the two at the same time.
    pub fn excludes(&self, other: &Lock) -> bool {
        self.window == other.window
            && (self.exclusive || other.exclusive)
            && (self.target.is_none() || other.target.is_none() || self.target == other.target)
    }
}

/// When an access ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// It is in flight.
    Open,
    /// In this segment.
    At(u32),
    /// When the target has waited for the k-th access epoch of this rank.
    Waits(u32),
}

/// What accesses have in common that are alike.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Attributes {
    pub call: u8,
    pub side: Side,
    pub act: Act,
    /// Where an element begins, for atomic accesses.
    pub from: u64,
    pub pc: u64,
    pub begin: u32,
    pub end: End,
    pub locks: Arc<[Lock]>,
    pub window: u64,
    pub target: u32,
    /// When the first of them began and ended, among everything that this rank did,
    pub began: u64,
    pub ended: u64,
    /// and when the last of them began, as far as they had entries of their own.
    pub last: u64,
    /// It was completed at the origin, and only there.
    pub local_only: bool,
    /// The call of the first barrier that was entered while it was in flight; 0 if there was none.
    pub barrier: u64,
    /// The segment of the first `shmem_fence` after it, if it was in flight then.
    pub fenced: Option<u32>,
    call_number: u64,
}

impl Attributes {
    fn phase(&self) -> u64 {
        rules::phase(self.act, self.from)
    }
}

/// Whose memory, and in which terms: an offset in a window, or an address of this rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub struct Space {
    pub owner: u32,
    pub window: Option<u64>,
}

/// A window as this rank sees it.
#[derive(Clone, Debug)]
pub struct Window {
    /// The address of this rank's part; 0 for dynamic windows, whose offsets are addresses.
    pub base: u64,
    /// The number of bytes of this rank's part.
    pub len: u64,
    /// Its name, if the program gave it one.
    pub name: String,
}

/// One of this rank's calls, about to begin.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Made {
    pub call: u8,
    pub pc: u64,
    pub window: u64,
    pub target: u32,
    /// The request that completes it locally; 0 if it has none.
    pub request: u64,
    pub no_op: bool,
}

/// Two accesses of one thread of which the first was in flight when the second began.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct SelfPair {
    pub space: Space,
    pub bytes: Bytes,
    pub first: Attributes,
    pub second: Attributes,
}

#[derive(PartialEq, Eq, Hash, Debug)]
struct Alike {
    call: u8,
    side: Side,
    act: Act,
    phase: u64,
    pc: u64,
    begin: u32,
    space: Space,
    window: u64,
}

/// What a request of the program stands for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    accesses: Vec<u32>,
    receive: Option<Receive>,
    takes: Vec<Key>,
    barrier: Option<u32>,
}

/// A posted receive; sources and tags that are not known yet come with the status.
#[derive(Clone, Copy, Debug)]
struct Receive {
    comm: u64,
    k: Option<(u32, i32, u32)>,
}

/// The state of one rank.
#[derive(Debug, Default)]
pub struct Gather {
    /// This rank's number among all.
    pub rank: u32,
    /// The threads and their segments.
    pub segments: Segments,
    /// Entries of accesses that are not distributed yet, or in flight.
    pub attributes: Vec<Attributes>,
    /// Where they are.
    pub stores: BTreeMap<Space, Store>,
    alike: Map<Alike, u32>,
    in_flight: Map<(u64, u32), Vec<u32>>,
    requests: Map<u64, Request>,
    /// The buffers of calls that are in flight, by entry: first byte, and first byte after them.
    buffers: Map<u32, (u64, u64)>,
    held: Arc<[Lock]>,
    // invariant: the number of attributes that are open.
    open: usize,
    /// Access epochs that are not locks.
    pub epochs: Epochs,
    acquisitions: u32,
    /// The windows, by number.
    pub windows: BTreeMap<u64, Window>,
    /// Memory that belongs to windows, by address: its end, its owner, its window, the offset of its first byte.
    mapped: BTreeMap<u64, (u64, u32, u64, u64)>,
    /// The synchronization of this phase.
    pub log: Vec<Event>,
    atomics: Set<(u32, Key)>,
    /// The rank synchronized in a way that the log does not have: what looks unordered may be ordered.
    pub unfollowed: bool,
    counts: Map<Key, u32>,
    /// The segments in which this rank waited for access epochs: by window, origin and number.
    pub waited: Map<(u64, u32, u32), u32>,
    /// Pairs of one thread that were found, and the program counters of all that ever were: once is enough.
    pub pairs: Vec<SelfPair>,
    found: Set<(u64, u64)>,
    /// Accesses that others make redundant are kept as well, for a test.
    pub keeps_all: bool,
    /// How many accesses that are alike keep entries of their own.
    pub exact: usize,
    compacted: Compacted,
    /// The number of accesses that were dropped.
    pub dropped: u64,
    /// What was counted.
    pub figures: Figures,
    serial: u64,
}

impl Gather {
    /// Of a rank that has done nothing.
    pub fn new(rank: u32) -> Gather {
        Gather { rank, exact: EXACT, ..Gather::default() }
    }

    /// A window exists from now on; `parts` are address, length, owner and offset of memory of other ranks that
    /// this rank can load and store.
    pub fn open_window(&mut self, number: u64, window: Window, parts: &[(u64, u64, u32, u64)]) {
        for &(start, len, owner, offset) in parts {
            self.map(number, start, len, owner, offset);
        }
        self.map(number, window.base, window.len, self.rank, 0);
        self.windows.insert(number, window);
    }

    /// Memory becomes part of a window.
    pub fn map(&mut self, window: u64, start: u64, len: u64, owner: u32, offset: u64) {
        if len > 0 {
            self.mapped.insert(start, (start + len, owner, window, offset));
        }
    }

    /// The window is freed, and so is what is in flight in it.
    pub fn close_window(&mut self, now: Now<'_>, number: u64) {
        self.complete(now, Completion::Free, number, None);
        self.mapped.retain(|_, part| part.2 != number);
        self.release(|lock| lock.window == number);
        self.epochs.close(number);
    }

    /// Ranges of memory that loads and stores are wanted of.
    pub fn watched(&self) -> Vec<[u64; 2]> {
        let mut ranges = Vec::with_capacity(self.mapped.len() + self.buffers.len());
        ranges.extend(self.mapped.iter().map(|(&start, part)| [start, part.0]));
        ranges.extend(self.buffers.values().map(|&(start, end)| [start, end]));
        ranges.sort_unstable();
        ranges
    }

    fn is_open(&self, id: u32) -> bool {
        self.attributes[id as usize].end == End::Open
    }

    /// The locks that this rank holds.
    pub fn locks(&self) -> &[Lock] {
        &self.held
    }

    fn release(&mut self, given_back: impl Fn(&Lock) -> bool) {
        self.held = self.held.iter().filter(|lock| !given_back(lock)).copied().collect();
    }

    /// The part of a window that contains an address: its first byte, and the rest as in `mapped`.
    fn part(&self, address: u64) -> Option<(u64, (u64, u32, u64, u64))> {
        let part = self.mapped.range(..=address).next_back();
        part.filter(|(_, p)| address < p.0).map(|(&start, &p)| (start, p))
    }

    /// The window of this rank that contains an address, and the offset in it.
    pub fn offset(&self, address: u64) -> Option<(u64, u64)> {
        let (start, (_, owner, window, offset)) = self.part(address)?;
        (owner == self.rank).then(|| (window, address - start + offset))
    }

    /// Whose memory is at an address, and the same bytes in its terms.
    pub fn owned(&self, bytes: Bytes) -> (Space, Bytes) {
        self.owned_by(self.part(bytes.start), bytes)
    }

    fn owned_by(&self, part: Option<(u64, (u64, u32, u64, u64))>, bytes: Bytes) -> (Space, Bytes) {
        match part {
            Some((start, (_, owner, window, offset))) if owner != self.rank => {
                let bytes = Bytes { start: bytes.start - start + offset, ..bytes };
                (Space { owner, window: Some(window) }, bytes)
            }
            _ => (Space { owner: self.rank, window: None }, bytes),
        }
    }

    /// A load or a store of the program, whose hook returns to `pc`.
    pub fn local(&mut self, now: Now<'_>, pc: u64, writes: bool, bytes: Bytes) {
        let part = self.part(bytes.start);
        let call = if writes { rules::STORE } else { rules::LOAD };
        let made = Made {
            call,
            pc,
            window: part.map_or(0, |(_, p)| p.2),
            target: self.rank,
            request: 0,
            no_op: false,
        };
        let (space, bytes) = self.owned_by(part, bytes);
        if part.is_some() {
            return self.access(now, made, Side::Origin, space, [(bytes, 0)]);
        }
        // Private memory matters only while a call uses it.
        if self.open == 0 {
            return;
        }
        self.serial += 1;
        let attributes = self.describe(now, made, Side::Origin, bytes.start, NO_TYPE);
        self.find_pairs(space, bytes, &attributes);
    }

    /// Pieces of one of the memories of a call, each with the number and size of its basic type.
    pub fn access(
        &mut self,
        now: Now<'_>,
        made: Made,
        side: Side,
        space: Space,
        pieces: impl IntoIterator<Item = (Bytes, u32)>,
    ) {
        self.serial += 1;
        let call = self.serial;
        for (bytes, basic) in pieces {
            let basic = Basic { number: (basic >> 16) as u8, size: (basic & 0xffff) as u16 };
            let Some(act) = CALLS[made.call as usize].act(side, basic, made.no_op) else {
                continue;
            };
            if bytes.len == 0 {
                continue;
            }
            self.figures.accesses += 1;
            if side == Side::Target && space.owner != self.rank {
                let (calls, all) = self.figures.calls.entry(space.owner).or_default();
                (*calls, *all) = (*calls + 1, *all + bytes.len);
            }
            let begin = self.segments.current(now);
            if self.open > 0 {
                let mut attributes = self.describe(now, made, side, bytes.start, basic);
                attributes.call_number = call;
                self.find_pairs(space, bytes, &attributes);
            }
            let Made { call: name, pc, window, .. } = made;
            let phase = rules::phase(act, bytes.start);
            let alike = Alike { call: name, side, act, phase, pc, begin, space, window };
            let known = self.alike_entry(&alike, made);
            let Some(id) = known.or_else(|| {
                let attributes = self.describe(now, made, side, bytes.start, basic);
                self.entry(alike, made.request, attributes)
            }) else {
                continue;
            };
            self.attributes[id as usize].call_number = call;
            if side != Side::Target && self.is_open(id) {
                let hull = self.buffers.entry(id).or_insert((bytes.start, bytes.end()));
                *hull = (hull.0.min(bytes.start), hull.1.max(bytes.end()));
            }
            let all = &self.attributes;
            let keeps_all = self.keeps_all;
            let covers =
                |old: u32, new: u32| !keeps_all && covers(&all[old as usize], &all[new as usize]);
            let most = self.stores.entry(space).or_default().insert(bytes, id, covers);
            self.compact_if_worth_while(most);
        }
    }

    fn describe(
        &mut self,
        now: Now<'_>,
        made: Made,
        side: Side,
        from: u64,
        basic: Basic,
    ) -> Attributes {
        let call = &CALLS[made.call as usize];
        let begin = self.segments.current(now);
        let at_once = made.request == 0 && call.ends_at_once(side);
        Attributes {
            call: made.call,
            side,
            act: call.act(side, basic, made.no_op).unwrap_or(Act::Read),
            from,
            pc: made.pc,
            begin,
            end: if at_once { End::At(begin) } else { End::Open },
            locks: self.held.clone(),
            window: made.window,
            target: made.target,
            began: self.serial,
            ended: self.serial,
            last: self.serial,
            local_only: false,
            barrier: 0,
            fenced: None,
            call_number: self.serial,
        }
    }

    /// The entry that an access like others shares with them.
    fn alike_entry(&self, alike: &Alike, made: Made) -> Option<u32> {
        let id = *self.alike.get(alike).filter(|_| made.request == 0)?;
        let entry = &self.attributes[id as usize];
        let at_once = CALLS[made.call as usize].ends_at_once(alike.side);
        (entry.fenced.is_none() && (entry.end == End::Open || at_once)).then_some(id)
    }

    /// A new entry.
    fn entry(&mut self, alike: Alike, request: u64, attributes: Attributes) -> Option<u32> {
        if self.attributes.len() >= MOST {
            self.compact_if_paid();
        }
        if self.attributes.len() >= MOST {
            self.dropped += 1;
            return None;
        }
        let id = self.attributes.len() as u32;
        let is_open = attributes.end == End::Open;
        self.open += usize::from(is_open);
        if is_open && CALLS[attributes.call as usize].is_remote() {
            self.in_flight.entry((attributes.window, attributes.target)).or_default().push(id);
        }
        if request == 0 {
            self.alike.insert(alike, id);
        } else {
            self.requests.entry(request).or_default().accesses.push(id);
        }
        self.attributes.push(attributes);
        Some(id)
    }

    /// Looks for accesses of this thread that are in flight and conflict with a new one.
    fn find_pairs(&mut self, space: Space, bytes: Bytes, new: &Attributes) {
        let Some(store) = self.stores.get(&space) else { return };
        let slot = self.segments.slot(new.begin);
        for (common, ids) in store.touching(bytes) {
            for &id in ids {
                let old = &self.attributes[id as usize];
                let atomic = |act| matches!(act, Act::AtomicRead(_) | Act::AtomicWrite(_));
                // A fence orders what one rank puts to another one.
                let fenced = old.fenced.is_some() && new.side == Side::Target && new.act.writes();
                if old.end == End::Open
                    && !fenced
                    && old.call_number != new.call_number
                    && self.segments.slot(old.begin) == slot
                    && !(atomic(old.act) && atomic(new.act))
                    && rules::conflict(old.act, old.from, new.act, new.from)
                    && !self.may_have_been_waited_for(old)
                    && self.found.insert((old.pc, new.pc))
                {
                    let (first, second) = (old.clone(), new.clone());
                    self.pairs.push(SelfPair { space, bytes: common, first, second });
                }
            }
        }
    }

    /// Whether an access put a value into a flag, and this rank has since then learnt something of another one: that
    /// may have waited for the value. Then a later access of this rank comes after it, as in a ring of flags.
    fn may_have_been_waited_for(&self, access: &Attributes) -> bool {
        let first = self.log.partition_point(|event| event.segment < access.begin);
        let raises = |key: &Key| matches!(key, Key::Flag { target, at, .. } if (*target, *at) == (access.target, access.from));
        let mut later = self.log[first..].iter();
        later.any(|event| event.gives.iter().any(raises))
            && later.any(|event| !event.takes.is_empty())
    }

    /// A call completes accesses in a window, at one target or at all.
    pub fn complete(&mut self, now: Now<'_>, what: Completion, window: u64, target: Option<u32>) {
        let here = self.segments.current(now);
        self.serial += 1;
        if let Some(target) = target {
            return self.end_all((window, target), what, here, 0);
        }
        let keys: Vec<(u64, u32)> =
            self.in_flight.keys().copied().filter(|k| k.0 == window).collect();
        keys.into_iter().for_each(|key| self.end_all(key, what, here, 0));
    }

    fn end_all(&mut self, key: (u64, u32), what: Completion, here: u32, k: u32) {
        let Some(mut ids) = self.in_flight.remove(&key) else { return };
        ids.retain(|&id| !self.end(id, what, here, k));
        if !ids.is_empty() {
            self.in_flight.insert(key, ids);
        }
    }

    /// Whether a completion ends an access for this rank.
    fn end(&mut self, id: u32, what: Completion, here: u32, k: u32) -> bool {
        let access = &mut self.attributes[id as usize];
        if access.end != End::Open {
            return true;
        }
        match rules::completes(what, &CALLS[access.call as usize], access.side) {
            Reach::Open => {
                access.local_only = true;
                return false;
            }
            Reach::Ended => access.end = End::At(here),
            Reach::WhenTargetWaits => access.end = End::Waits(k),
        }
        access.ended = self.serial;
        self.open -= 1;
        self.buffers.remove(&id);
        if !access.locks.iter().all(|lock| self.held.contains(lock)) {
            let still = access.locks.iter().filter(|lock| self.held.contains(lock));
            access.locks = still.copied().collect();
        }
        true
    }

    /// Everything is with its owner now: forgets all that cannot race with what follows.
    pub fn distributed(&mut self) {
        let mut open = Vec::new();
        let mut renamed: Map<u32, u32> = Map::default();
        for (id, access) in (0..).zip(std::mem::take(&mut self.attributes)) {
            let entered = self.segments.spans(access.begin, end_of(&access));
            let is_done = entered.iter().any(|s| s.entered != crate::phases::NEVER);
            if access.end == End::Open || matches!(access.end, End::At(_)) && !is_done {
                renamed.insert(id, open.len() as u32);
                open.push(access);
            }
        }
        self.alike.clear();
        self.rename(|id| renamed.get(&id).copied());
        self.compacted = Compacted::default();
        let oldest = open.iter().map(|a| a.begin).min().unwrap_or(u32::MAX);
        self.open = open.iter().filter(|a| a.end == End::Open).count();
        self.attributes = open;
        self.log.clear();
        self.atomics.clear();
        self.unfollowed = false;
        self.waited.clear();
        self.segments.forget_before(oldest);
    }

    /// A barrier is entered at `pc`: the accesses in flight pass it.
    pub fn passes(&mut self, pc: u64) {
        for access in self.attributes.iter_mut().filter(|a| a.end == End::Open && a.barrier == 0) {
            access.barrier = pc;
        }
    }
}

/// The segment in which an access ended.
pub fn end_of(access: &Attributes) -> Option<u32> {
    match access.end {
        End::At(segment) => Some(segment),
        End::Open | End::Waits(_) => None,
    }
}

const NO_TYPE: Basic = Basic { number: 0, size: 1 };

/// Whether all that races with `new` races with `old`, too: definition 7.1. The two are of one thread and lie in
/// the same segments, so they are ordered alike and hold the same locks.
fn covers(old: &Attributes, new: &Attributes) -> bool {
    let together = match (old.end, new.end) {
        (End::Open, End::Open) => false,
        (a, b) => a == b,
    };
    let alike = old.act == Act::Write || old.phase() == new.phase();
    let together = together && old.fenced == new.fenced;
    together && alike && old.begin == new.begin && old.locks == new.locks && old.act.covers(new.act)
}
