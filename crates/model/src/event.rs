//! Events: what one step of one thread did.
//!
//! Ids are dense and given out by the front end in order of first appearance, so that analyses can
//! index vectors with them; what they are called and where they stand in the source is in
//! [`Symbols`](crate::Symbols). An id is never reused within an execution: memory of a destroyed
//! lock that becomes another lock is another id.

use std::fmt;

use crate::RegionKind;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into a table of its kind.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", stringify!($name).trim_end_matches("Id"), self.0)
            }
        }
    )*};
}

ids! {
    /// A thread of the program, numbered from its first event or its fork.
    ThreadId;
    /// A mutex, reader-writer lock, spinlock, or anything else that is acquired and released.
    LockId;
    /// A place in the source; see [`Site`](crate::Site).
    SiteId;
    /// A barrier object. One crossing of it by its threads is a *round*.
    BarrierId;
    /// A counting semaphore.
    SemaphoreId;
    /// A condition variable.
    CondId;
    /// A marked stretch of one thread's execution: atomic, deterministic, …
    RegionId;
    /// A local variable or temporary. The same id in two threads is two locals.
    LocalId;
}

impl RegionId {
    const LOCKED: u32 = 1 << 31;

    /// The region that locks make, without a mark in the source: from an acquisition at `site`, by a
    /// thread that holds no lock, until it holds none again.
    pub fn locked_at(site: SiteId) -> RegionId {
        RegionId(RegionId::LOCKED | site.0)
    }

    /// The acquisition that such a region begins with.
    pub fn acquisition(self) -> Option<SiteId> {
        (self.0 & RegionId::LOCKED != 0).then_some(SiteId(self.0 & !RegionId::LOCKED))
    }
}

/// A contiguous piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// Number of bytes; the range ends before the end of the address space.
    pub len: u64,
}

impl Range {
    /// The first byte after the range.
    #[inline]
    pub fn end(self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// Whether the two ranges share a byte.
    #[inline]
    pub fn overlaps(self, other: Range) -> bool {
        self.start < other.end() && other.start < self.end()
    }
}

/// The memory that one access touches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Access {
    /// First byte touched.
    pub addr: u64,
    /// Number of bytes touched.
    pub len: u32,
}

impl Access {
    /// The touched bytes as a range.
    #[inline]
    pub fn range(self) -> Range {
        Range { start: self.addr, len: u64::from(self.len) }
    }
}

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Mode {
    /// By one thread alone: a mutex, or the writer of a reader-writer lock.
    Exclusive,
    /// Together with other readers.
    Shared,
}

impl Mode {
    /// Whether a thread that holds in this mode keeps out one that wants in `other`.
    #[inline]
    pub fn excludes(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }
}

/// Memory orders a load can have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum LoadOrder {
    Relaxed,
    /// Also stands for C's `consume`, as every compiler implements it.
    Acquire,
    SeqCst,
}

/// Memory orders a store can have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum StoreOrder {
    Relaxed,
    Release,
    SeqCst,
}

/// Memory orders a read-modify-write or a fence can have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum UpdateOrder {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl LoadOrder {
    /// Whether a load of this order acquires.
    #[inline]
    pub fn acquires(self) -> bool {
        self != LoadOrder::Relaxed
    }
}

impl StoreOrder {
    /// Whether a store of this order releases.
    #[inline]
    pub fn releases(self) -> bool {
        self != StoreOrder::Relaxed
    }
}

impl UpdateOrder {
    /// Whether the reading half acquires.
    #[inline]
    pub fn acquires(self) -> bool {
        matches!(self, UpdateOrder::Acquire | UpdateOrder::AcqRel | UpdateOrder::SeqCst)
    }

    /// Whether the writing half releases.
    #[inline]
    pub fn releases(self) -> bool {
        matches!(self, UpdateOrder::Release | UpdateOrder::AcqRel | UpdateOrder::SeqCst)
    }
}

/// What an atomic access does, with only the memory orders the languages allow for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AtomicOp {
    /// A load, or a compare-exchange that failed.
    Load(LoadOrder),
    /// A store.
    Store(StoreOrder),
    /// A read-modify-write: exchange, fetch-and-op, or a compare-exchange that succeeded.
    Update(UpdateOrder),
}

impl AtomicOp {
    /// Whether the operation changes memory.
    #[inline]
    pub fn writes(self) -> bool {
        !matches!(self, AtomicOp::Load(_))
    }

    /// Whether the operation reads memory.
    #[inline]
    pub fn reads(self) -> bool {
        !matches!(self, AtomicOp::Store(_))
    }
}

/// What an event did. Consumers match exhaustively: a new operation must be thought about everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Op {
    /// A plain read of memory.
    Read(Access),
    /// A plain write to memory.
    Write(Access),
    /// An atomic access.
    Atomic(Access, AtomicOp),
    /// A memory fence between threads.
    Fence(UpdateOrder),
    /// The lock has been acquired. Re-acquiring a lock already held (a recursive mutex) is an event
    /// of its own, matched by its own release.
    Acquire(LockId, Mode),
    /// The lock is about to be released.
    Release(LockId, Mode),
    /// A thread is about to be started.
    Fork(ThreadId),
    /// A thread that has ended has been joined.
    Join(ThreadId),
    /// First event of a thread; optional, a thread also begins with any other event.
    Begin,
    /// Last event of a thread; optional, a join implies it.
    End,
    /// The thread arrives at a barrier, in the given round of it.
    Arrive(BarrierId, u32),
    /// The thread goes on after that round is complete.
    Leave(BarrierId, u32),
    /// A semaphore is about to be incremented.
    Post(SemaphoreId),
    /// A semaphore has been decremented.
    Wait(SemaphoreId),
    /// Waiters of a condition variable are about to be woken: all of them, or one.
    Notify(CondId, Wakes),
    /// The thread has woken up from waiting on a condition variable, for any reason. The lock
    /// that it gave up meanwhile is released and acquired by events of their own around this one.
    Wake(CondId),
    /// The thread enters a region, which claims something. The claim is the same whenever the same
    /// region is entered; it is carried here so that an analysis knows without names being resolved.
    RegionEnter(RegionId, RegionKind),
    /// The thread leaves the region that it entered last.
    RegionExit(RegionId),
    /// Memory becomes valid, with no history.
    Alloc(Range),
    /// Memory is about to become invalid.
    Free(Range),
    /// Where the values of a thread come from and go to. It concerns no other thread.
    Flow(Flow),
    /// What the memory holds now is part of the result of the program.
    Focus(Range),
}

/// One step of the flow of data inside a thread. It belongs to the operation that comes next or last in
/// the same thread: uses come before the write, definition or branch that they flow into.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Flow {
    /// The next write, definition or branch uses the local.
    Use(LocalId),
    /// The local takes what the uses before make; a constant if there are none.
    Define(LocalId),
    /// The local takes what the access right before has read.
    Take(LocalId),
    /// The thread decides by what the uses before make which way to go.
    Branch,
    /// The write right before combines what was there with something else.
    Updates(Operator),
}

/// How an update combines what is there with something else: `x = x + e`. Updates by the same operator commute; of
/// floating point numbers up to rounding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Operator {
    Add,
    Multiply,
    And,
    Or,
    Xor,
    Min,
    Max,
    UnsignedMin,
    UnsignedMax,
    FloatAdd,
    FloatMultiply,
}

impl Operator {
    /// All of them, with what they are called in traces.
    pub const ALL: [(Operator, &'static str); 11] = [
        (Operator::Add, "+"),
        (Operator::Multiply, "*"),
        (Operator::And, "&"),
        (Operator::Or, "or"),
        (Operator::Xor, "^"),
        (Operator::Min, "min"),
        (Operator::Max, "max"),
        (Operator::UnsignedMin, "umin"),
        (Operator::UnsignedMax, "umax"),
        (Operator::FloatAdd, "f+"),
        (Operator::FloatMultiply, "f*"),
    ];

    /// What it is called in traces.
    pub fn name(self) -> &'static str {
        Operator::ALL[self as usize].1
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Operator> {
        Operator::ALL.iter().find(|(_, known)| *known == name).map(|(operator, _)| *operator)
    }

    /// Whether the result depends on the order by rounding.
    pub fn rounds(self) -> bool {
        matches!(self, Operator::FloatAdd | Operator::FloatMultiply)
    }
}

/// What an operation is about: the memory or the object whose state it reads or changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum About {
    /// Memory, and whether the operation may change it.
    Memory(Range, bool),
    /// A lock that is acquired or released.
    Lock(LockId, Mode),
    /// A barrier.
    Barrier(BarrierId),
    /// A semaphore.
    Semaphore(SemaphoreId),
    /// A condition variable.
    Cond(CondId),
    /// Another thread, which is started or joined.
    Thread(ThreadId),
    /// A region.
    Region(RegionId),
    /// Nothing but the thread that does it.
    Itself,
}

impl Op {
    /// What the operation is about.
    pub fn about(self) -> About {
        match self {
            Op::Read(access) => About::Memory(access.range(), false),
            Op::Write(access) => About::Memory(access.range(), true),
            Op::Atomic(access, op) => About::Memory(access.range(), op.writes()),
            Op::Alloc(range) | Op::Free(range) => About::Memory(range, true),
            Op::Acquire(lock, mode) | Op::Release(lock, mode) => About::Lock(lock, mode),
            Op::Arrive(barrier, _) | Op::Leave(barrier, _) => About::Barrier(barrier),
            Op::Post(semaphore) | Op::Wait(semaphore) => About::Semaphore(semaphore),
            Op::Notify(cond, _) | Op::Wake(cond) => About::Cond(cond),
            Op::Fork(thread) | Op::Join(thread) => About::Thread(thread),
            Op::RegionEnter(region, _) | Op::RegionExit(region) => About::Region(region),
            Op::Focus(range) => About::Memory(range, false),
            Op::Fence(_) | Op::Begin | Op::End | Op::Flow(_) => About::Itself,
        }
    }

    /// The access to memory that it is, plain or atomic, and whether it may write.
    pub fn access(self) -> Option<(Access, bool)> {
        match self {
            Op::Read(access) => Some((access, false)),
            Op::Write(access) => Some((access, true)),
            Op::Atomic(access, op) => Some((access, op.writes())),
            Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => None,
        }
    }
}

/// How many waiters a notification wakes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Wakes {
    One,
    All,
}

/// One step of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Event {
    /// The thread that took the step.
    pub thread: ThreadId,
    /// Where in the source it did.
    pub site: SiteId,
    /// What it did.
    pub op: Op,
}

impl Event {
    /// Whether the event is a plain access to memory, which is what nearly all events are.
    #[inline]
    pub fn is_plain_access(&self) -> bool {
        matches!(self.op, Op::Read(_) | Op::Write(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_stay_small() {
        assert_eq!(size_of::<Event>(), 32);
    }

    #[test]
    fn ranges_overlap_by_bytes() {
        let r = |start, len| Range { start, len };
        assert!(r(0, 8).overlaps(r(7, 1)));
        assert!(!r(0, 8).overlaps(r(8, 8)));
        assert!(!r(4, 0).overlaps(r(4, 1)));
        assert!(r(u64::MAX - 1, 5).overlaps(r(u64::MAX - 1, 1)), "ends saturate");
    }
}
