//! The memory that the program under test shares with the `selvedge` process: one file, both sides.
//!
//! The host creates it (a memfd), sets the parameters and passes its descriptor in the environment variable [`ENV_FD`]; the
//! runtime maps it before anything else happens. It holds, in this order: the [`Header`], one [`Lane`] per thread alive at a
//! time, the [`Race`] records, the text of the program's memory map, one ring of [`Record`]s per lane, and the values that
//! the program hands over. What was written stays readable when the program crashes or is killed, because the memory
//! belongs to the host as well.
//!
//! Processes that the program starts find the memory by the same variable, or, if they were started without the
//! descriptor, by [`ENV_HOST`]. They write only races and maps.
//!
//! Changing anything here: raise [`VERSION`]; both sides refuse a version that is not theirs.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// First eight bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"selvedge");
/// Layout of everything in this file.
pub const VERSION: u32 = 17;
/// Environment variable with the number of the descriptor.
pub const ENV_FD: &str = "SELVEDGE_SHM_FD";
/// Environment variable with the host's process, which has the memory under the same number.
pub const ENV_HOST: &str = "SELVEDGE_SHM_HOST";

/// Threads that can record at a time; more than that run unrecorded.
pub const LANES: usize = 4096;
/// Records in one ring.
pub const RING: usize = 2048;
/// Different races that are kept.
pub const RACES: usize = 4096;
/// Frames of a stack that are kept.
pub const FRAMES: usize = 24;
/// Entries of an earlier thread's call stack that are kept, from the outermost on.
pub const PAST: usize = 48;
/// Callers that are recorded with an event whose own place says little.
pub const CALLERS: usize = 6;
/// Words of the stack that are kept of a crash.
pub const STACK: usize = 512;
/// Registers that are kept of a crash.
pub const REGISTERS: usize = 17;
/// Bytes of the last words that are kept of a crash.
pub const SAID: usize = 512;
/// Bytes for the text of the memory map.
pub const MAPS: usize = 1 << 24;
/// Other processes that may take part.
pub const PROCESSES: usize = 1 << 11;
/// Bits of a thread's number that tell it from others of its process; the rest is the process, 0 for the first one.
pub const THREAD_BITS: u32 = 20;
/// Bytes for the names of marked regions.
pub const TEXTS: usize = 1 << 20;
/// Bytes for the values that an execution hands over. They take memory only where they are written.
pub const VALUES: usize = 1 << 36;
/// Instead of a place in [`Shared::values`]: there was no room.
pub const NO_ROOM: usize = usize::MAX;
/// Functions of the program that may be predicates.
pub const JUDGES: usize = 64;
/// The descriptor of a judge by which it is asked: the lengths of two values as 64-bit numbers, then their bytes.
pub const JUDGE_ASK: u32 = 4;
/// The descriptor of a judge by which it answers: a byte, 1 if the values are the same.
pub const JUDGE_ANSWER: u32 = 5;

/// Locations that are states of every block.
pub const GLOBALS: usize = 1 << 12;
/// Bytes for their names, each ended by a zero.
pub const GLOBAL_NAMES: usize = 1 << 20;
/// Pointers on the way to a location, and one more.
pub const GLOBAL_PATH: usize = 16;

/// Flag of [`Header::flags`]: synchronization and atomics are recorded.
pub const RECORD_SYNC: u32 = 1;
/// Flag of [`Header::flags`]: accesses that survive the filter are recorded, too.
pub const RECORD_ACCESSES: u32 = 2;
/// Flag of [`Header::flags`]: races are not looked for, except as far as [`RECORD_RACY`] needs them.
pub const NO_RACES: u32 = 4;
/// Flag of [`Header::flags`]: accesses to memory on which a race has happened are recorded, too.
pub const RECORD_RACY: u32 = 8;
/// Flag of [`Header::flags`]: functions are regions, and the program waits until it knows which.
pub const FUNCTION_REGIONS: u32 = 16;
/// Flag of [`Header::flags`]: atomic operations and fences are recorded, also those that cannot be part of a lock.
pub const RECORD_ATOMICS: u32 = 32;
/// Flag of [`Header::flags`], beside [`RECORD_ACCESSES`]: of the accesses that one thread makes to memory under the same
/// locks, some are recorded, and of the others when the last one was made ([`RecordKind::HeldBack`]).
pub const HOLD_BACK: u32 = 64;

/// Flag of a [`RecordKind::HeldBack`], beside the number of bytes: they are writes.
pub const HELD_WRITE: u8 = 128;

/// Flag of a record of a lock: in shared mode.
pub const SHARED: u8 = 1;
/// Flag of a record of a lock: a stub around Rust's standard library says so.
pub const OF_STD: u8 = 2;
/// Flag of a pending [`RecordKind::Acquire`] or [`RecordKind::Wait`]: the thread does not wait. Of one that has
/// happened: it did not wait, or would not have waited for ever.
pub const TRY: u8 = 4;
/// Flag of a pending [`RecordKind::Acquire`]: the thread waits for a limited time.
pub const TIMED: u8 = 8;

/// Flag of a [`RecordKind::Block`]: `a` is a thread.
pub const JOIN: u8 = 16;
/// Flag of a [`RecordKind::Free`]: by code that is not instrumented, so that what orders it may be out of sight.
pub const OUT_OF_SIGHT: u8 = 1;
/// Flag of a [`RecordKind::Notify`]: all waiters are woken, not one.
pub const ALL: u8 = 1;
/// Flag of a [`RecordKind::Notify`] or [`RecordKind::Wake`]: a futex, not a condition variable.
pub const FUTEX: u8 = 2;

/// The bits of an atomic operation's flags that are its memory order.
pub const ORDER: u8 = 7;
/// Flag of a read-modify-write, beside its order: it may be part of a lock of Rust. The record names its
/// callers, by which the host recognises such locks.
pub const MAY_LOCK: u8 = 8;

/// Pieces of code whose functions are regions, in one of the two tables.
pub const FUNCTIONS: usize = 1 << 16;
/// Flag of a [`RecordKind::RegionEnter`]: the region claims to be deterministic, and not atomic.
pub const DETERMINISTIC: u8 = 1;
/// Flag of a [`RecordKind::RegionEnter`]: the region is a function.
pub const FUNCTION: u8 = 2;
/// Flags of a [`RecordKind::RegionEnter`]: the region is a task, commutes with its like, or is a lazy initialisation;
/// it claims nothing.
pub const TASK: u8 = 4;
/// See [`TASK`].
pub const COMMUTES: u8 = 8;
/// See [`TASK`].
pub const LAZY: u8 = 16;
/// What a program may say of a region that it marks.
pub const MARKED: u8 = DETERMINISTIC | TASK | COMMUTES | LAZY;

/// Start of the shared memory.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// What to record; fixed before the program starts.
    pub flags: u32,
    /// Size of the whole memory in bytes.
    pub size: u64,
    /// Process that drains the rings.
    pub host: u32,
    /// Set by the host when it stops draining: threads no longer wait for room.
    pub host_gone: AtomicU32,
    /// Process that attached, 0 before.
    pub program: AtomicU32,
    /// 1 once an instrumented access or function was seen, so that "nothing instrumented" is known.
    pub instrumented: AtomicU32,
    /// How many races were found, including those beyond [`RACES`].
    pub races: AtomicU32,
    /// Records that could not be written.
    pub lost: AtomicU64,
    /// Threads started so far; the main thread is 0.
    pub threads: AtomicU32,
    /// Bytes of [`Shared::maps`] that are given out; grows only, and may be more than there are.
    pub maps_len: AtomicU32,
    /// See [`Failure`]; 0 if there is none.
    pub failure: AtomicU32,
    /// Bytes of [`Shared::texts`] that are given out; may be more than there are.
    pub texts_len: AtomicU32,
    /// The [`Header::maps_len`] for which the host shall say which functions are regions.
    pub functions_wanted: AtomicU32,
    /// That for which it has said so.
    pub functions_ready: AtomicU32,
    /// Valid entries of the table in use, and in the top bit which of the two that is.
    pub functions: AtomicU32,
    /// How many other processes take part, see [`Shared::processes`].
    pub processes: AtomicU32,
    /// How many of those are programs that use MPI.
    pub ranks: AtomicU32,
    /// How many pieces of [`Shared::maps`] have been written since they were given out.
    pub maps_written: AtomicU32,
    /// Valid entries of [`Shared::globals`]; fixed before `main`.
    pub globals: AtomicU32,
    /// How long the end of the program waits for threads that still do something, in milliseconds.
    pub linger: AtomicU32,
    /// Where in [`Shared::texts`] the program's default options are (upper half) and how long they are; 0 if there
    /// are none.
    pub options: AtomicU64,
    /// The same for its default suppressions.
    pub suppressions: AtomicU64,
    /// Bytes of [`Shared::values`] that are given out.
    pub values_len: AtomicU64,
    /// The last stamp given out.
    pub stamp: Padded,
}

/// A counter with a cache line of its own.
#[repr(C, align(64))]
pub struct Padded(pub AtomicU64);

/// Why the program cannot be observed, or not be controlled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Failure {
    /// The address space for the shadow memory could not be reserved (`ulimit -v`?).
    NoAddressSpace = 1,
    /// The shared memory has another version.
    Version = 2,
    /// OpenMP starts threads in a controlled execution.
    Team = 3,
    /// The program uses gcc's OpenMP as gcc before 4.9 did.
    OldOpenMp = 4,
}

/// State of a [`Lane`].
pub mod lane {
    /// No thread owns it, and it is drained.
    pub const FREE: u32 = 0;
    /// A thread writes to it.
    pub const USED: u32 = 1;
    /// Its thread has ended; the host frees it when it has read everything.
    pub const ENDED: u32 = 2;
}

/// The indices of one ring.
#[repr(C, align(64))]
pub struct Lane {
    /// Records written so far, by the program.
    pub head: AtomicU64,
    /// Records read so far, by the host.
    pub tail: AtomicU64,
    /// See [`lane`].
    pub state: AtomicU32,
    /// Whose records these are.
    pub thread: AtomicU32,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)*) => {
        /// What a [`Record`] says: what happened, or under control also what a thread is about to do.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum RecordKind { $($(#[$doc])* $name = $value,)* }

        impl RecordKind {
            /// The kind of a number, if it is one.
            pub fn from_number(number: u8) -> Option<RecordKind> {
                match number { $($value => Some(RecordKind::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// Plain read: `a` address, `b` bytes.
    Read = 1,
    /// Plain write: `a` address, `b` bytes.
    Write = 2,
    /// Atomic load: `a` address, `b` bytes, `flags` order, perhaps [`MAY_LOCK`]: a read-modify-write that
    /// wrote nothing, or under control any load.
    Load = 3,
    /// Atomic store: `a` address, `b` bytes, `flags` order.
    Store = 4,
    /// Atomic read-modify-write: `a` address, `flags` order and perhaps [`MAY_LOCK`]; the lower half of `b`
    /// is how many bytes, the upper half the thread's epoch: from it on it has what this acquires.
    Update = 5,
    /// Fence: `flags` order.
    Fence = 6,
    /// Lock `a` acquired; `flags` [`SHARED`], [`OF_STD`] and [`TRY`], and while pending [`TIMED`]. The
    /// upper half of `b` is the epoch from which on the thread has it.
    Acquire = 7,
    /// Lock `a` released; `flags` as for [`RecordKind::Acquire`]. The upper half of `b` is the last epoch
    /// in which the thread has it.
    Release = 8,
    /// Thread number `a` is about to start.
    Fork = 9,
    /// Thread number `a` was joined.
    Join = 10,
    /// The thread begins.
    Begin = 11,
    /// The thread ends.
    End = 12,
    /// Arrived at barrier `a` in round `b`.
    Arrive = 13,
    /// Left barrier `a` after round `b`.
    Leave = 14,
    /// Semaphore `a` incremented.
    Post = 15,
    /// Semaphore `a` decremented; while pending `flags` may be [`TRY`].
    Wait = 16,
    /// Condition or futex `a` notified; `flags` [`ALL`] and [`FUTEX`].
    Notify = 17,
    /// Woken from condition or futex `a`; `flags` [`FUTEX`].
    Wake = 18,
    /// Memory `a`, `b` bytes, allocated.
    Alloc = 19,
    /// Memory `a`, `b` bytes, freed; `flags` [`OUT_OF_SIGHT`].
    Free = 20,
    /// The synchronization object at `a` is no more.
    Destroy = 21,
    /// The thread's name: the 16 bytes of `a` and `b`.
    Name = 22,
    /// A region is entered: [`DETERMINISTIC`] or not. The lower half of `b` is the length of its name,
    /// which is at `a` in [`Shared::texts`], or with [`FUNCTION`] `a` is a place in the function. The
    /// upper half is the thread's epoch: all that it does in a later one comes after.
    RegionEnter = 23,
    /// The region entered last is left. The upper half of `b` is the thread's epoch: all that it does in
    /// a later one comes after.
    RegionExit = 24,
    /// A thread that acquires from `a` later is ordered after this (annotation, futex, once, signal).
    HappensBefore = 25,
    /// Ordered after every earlier [`RecordKind::HappensBefore`] of `a`.
    HappensAfter = 26,
    /// The callers of the function that makes the next record: return addresses in `pc`, `a` and `b`,
    /// innermost first, 0 where there is none. A second one goes on where the first ended. A lock's own
    /// place is often inside a library.
    Callers = 27,
    /// The first race on a granule: see [`Raced`]. The access itself is the next record, or for an atomic
    /// access next to this.
    Raced = 28,
    /// Pending only: starts to wait on condition `a`, giving up lock `b`.
    Enroll = 29,
    /// Pending only: compares the futex `a`, of `b` bytes, with a value and starts to wait if it has it.
    FutexWait = 30,
    /// Pending only: the thread lets others run.
    Yield = 31,
    /// Lock `a` is initialised: a new lock, even if another one was there before.
    Made = 32,
    /// A value is handed over: a [`Chunk`] of `b` bytes at `a` in [`Shared::values`], or at [`NO_ROOM`].
    Value = 33,
    /// The thread takes token `a` for the block that it is in.
    BlockToken = 34,
    /// The thread enters the block of token `a`.
    BlockJoin = 35,
    /// The program marks the end of a region that has no beginning.
    StrayExit = 36,
    /// Waits for lock `a`, which another thread holds, for as long as it takes; `flags` [`SHARED`]. Or with
    /// [`JOIN`] for the end of thread number `a`.
    Block = 37,
    /// Process `b` waits to call the predicate at `a`, see [`Seat`].
    Judge = 38,
    /// The thread ends in the marked region that it entered last. The next record leaves it in the thread's name.
    Abandoned = 39,
    /// How data flowed since the thread's last record: `b` bytes of [words](crate::word) at `a` in [`Shared::values`].
    Flow = 40,
    /// What is part of the result: `b` bytes at `a` in [`Shared::values`].
    Focus = 41,
    /// Accesses that were held back: `a` address, `flags` the number of bytes and perhaps [`HELD_WRITE`], `b` the stamp of
    /// the last [moment](RecordKind::is_moment) of their thread before the last one. The program counter has the low
    /// [`SHADOW_PC_BITS`] of that of the last one, or 0, and above them the thread. An access that needs it is next.
    HeldBack = 42,
}

impl RecordKind {
    /// Whether what a thread does after this is told apart from what it did before; after an allocation if it is the `first`.
    pub fn is_moment(self, first: bool) -> bool {
        use RecordKind::{Alloc, Free, Read, Write};
        !matches!(self, Read | Write) && (first || !matches!(self, Alloc | Free))
    }

    /// Whether `a` is the address of an object that threads can wait for.
    pub fn has_object(self) -> bool {
        use RecordKind::*;
        let lock = matches!(self, Acquire | Release | Made);
        lock || matches!(self, Arrive | Leave | Post | Wait | Notify | Wake | Enroll | FutexWait)
    }
}

/// What a record tells under control. Of a program that runs freely all records are events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    /// The thread is about to do this.
    Pending = 1,
    /// The thread does what it was about to do.
    Step = 2,
    /// This has happened.
    Event = 3,
}

impl Phase {
    /// The phase of a number, if it is one.
    pub fn from_number(number: u8) -> Option<Phase> {
        [Phase::Pending, Phase::Step, Phase::Event].into_iter().find(|&p| p as u8 == number)
    }
}

/// A piece of code whose functions are regions. Pieces are sorted and do not overlap.
#[repr(C)]
pub struct Functions {
    /// First address.
    pub start: AtomicU64,
    /// First address after it.
    pub end: AtomicU64,
    /// [`ATOMIC_REGION`], [`DETERMINISTIC_REGION`], or both.
    pub kinds: AtomicU64,
}

/// Kind of [`Functions`].
pub const ATOMIC_REGION: u64 = 1;
/// Kind of [`Functions`].
pub const DETERMINISTIC_REGION: u64 = 2;

/// Memory orders as the compilers' interface numbers them.
pub mod order {
    #![allow(missing_docs)]
    pub const RELAXED: u8 = 0;
    pub const CONSUME: u8 = 1;
    pub const ACQUIRE: u8 = 2;
    pub const RELEASE: u8 = 3;
    pub const ACQ_REL: u8 = 4;
    pub const SEQ_CST: u8 = 5;
}

/// One event, or one step that is about to be taken. It travels through the ring of its thread, or under
/// control through the one log ([`control::wire::Line`](crate::control::wire::Line)), where its place is its
/// order. In rings stamps order the events of all threads; a record with stamp 0 (a plain access) stands
/// between its neighbours in its own ring, which is all the order it has.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Record {
    /// Global order, from 1; dense.
    pub stamp: u64,
    /// Caller's program counter (48 bits), then `flags`, then the kind in the top byte.
    pub what: u64,
    /// First argument, see [`RecordKind`].
    pub a: u64,
    /// Second argument.
    pub b: u64,
}

impl Record {
    /// Puts a record together.
    #[inline]
    pub fn new(stamp: u64, kind: RecordKind, flags: u8, pc: u64, a: u64, b: u64) -> Record {
        let what = (pc & PC_MASK) | u64::from(flags) << 48 | u64::from(kind as u8) << 56;
        Record { stamp, what, a, b }
    }

    /// What kind of event, if the number is one.
    pub fn kind(&self) -> Option<RecordKind> {
        RecordKind::from_number((self.what >> 56) as u8)
    }

    /// Order, mode or another property, depending on the kind.
    pub fn flags(&self) -> u8 {
        (self.what >> 48) as u8
    }

    /// Whether a stub around Rust's standard library says it of a lock.
    pub fn is_of_std(&self) -> bool {
        matches!(self.kind(), Some(RecordKind::Acquire | RecordKind::Release))
            && self.flags() & OF_STD != 0
    }

    /// Return address of the call that made the event.
    pub fn pc(&self) -> u64 {
        self.what & PC_MASK
    }
}

const PC_MASK: u64 = (1 << 48) - 1;

macro_rules! numbered {
    ($(#[$doc:meta])* $type:ident { $($(#[$inner:meta])* $name:ident = $value:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u32)]
        #[allow(missing_docs)]
        pub enum $type { $($(#[$inner])* $name = $value,)* }

        impl $type {
            /// The meaning of a number, if it has one.
            pub fn from_number(number: u32) -> Option<$type> {
                match number { $($value => Some($type::$name),)* _ => None }
            }
        }
    };
}

numbered! {
    /// How one side of a race accessed memory, or what a thread did that takes part in a misuse.
    AccessKind {
        Read = 1,
        Write = 2,
        AtomicRead = 3,
        AtomicWrite = 4,
        Free = 5,
        Use = 6,
        Destroy = 7,
        Lock = 8,
        Unlock = 9,
        WaitFor = 10,
        Close = 11,
        Open = 12,
        Start = 13,
        Install = 14,
        Handle = 15,
        Call = 16,
        Allocate = 17,
    }
}

numbered! {
    /// How something was misused, as the model has it.
    MisuseKind {
        DestroyedHeld = 1,
        DestroyedAwaited = 2,
        UsedDestroyed = 3,
        UsedUninitialised = 4,
        UnlockedByOther = 5,
        UnlockedFree = 6,
        ClosedInUse = 7,
        UsedReused = 8,
        UsedFreed = 9,
        FreedTwice = 10,
        ChangedErrno = 11,
        UnsafeCall = 12,
        NeverJoined = 13,
        BeyondBlock = 14,
    }
}

numbered! {
    /// What kind of synchronization object was misused: [`Race::detail`] of the first six.
    ObjectKind {
        Mutex = 1,
        RwLock = 2,
        Spinlock = 3,
        Condition = 4,
        Barrier = 5,
        Semaphore = 6,
    }
}

/// Functions that are not async-signal-safe and that the runtime sees, by number.
pub const UNSAFE: [&str; 12] = [
    "malloc",
    "free",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_rwlock_lock",
    "pthread_rwlock_unlock",
    "pthread_cond_signal",
    "printf",
    "puts",
    "fputs",
    "exit",
    "syslog",
];

/// What a [`RecordKind::Raced`] says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raced {
    /// The race's entry in [`Shared::races`]; nothing if there was no room for one.
    pub number: Option<usize>,
    /// First byte that both accesses touch.
    pub addr: u64,
    /// Bytes, at most 8.
    pub len: u64,
    /// Who made the earlier access.
    pub thread: u32,
    /// When: slot and clock.
    pub epoch: u64,
    /// What the earlier access did.
    pub earlier: AccessKind,
    /// What the later access did, which is that of the record's thread.
    pub later: AccessKind,
}

impl Raced {
    /// The two arguments and the flags of the record.
    pub fn packed(&self) -> (u64, u64, u8) {
        let entry = self.number.map_or(0, |number| number as u64 + 1);
        let a = self.addr & PC_MASK | ((self.len - 1) & 7) << 48 | entry << 51;
        let b = self.epoch << 32 | u64::from(self.thread);
        (a, b, self.later as u8 | (self.earlier as u8) << 4)
    }

    /// What the record says, if that makes sense.
    pub fn read(record: &Record) -> Option<Raced> {
        let flags = u32::from(record.flags());
        Some(Raced {
            number: ((record.a >> 51) as usize).checked_sub(1),
            addr: record.a & PC_MASK,
            len: (record.a >> 48 & 7) + 1,
            thread: record.b as u32,
            epoch: record.b >> 32,
            earlier: AccessKind::from_number(flags >> 4)?,
            later: AccessKind::from_number(flags & 15)?,
        })
    }
}

const _: () = assert!(RACES + 1 < 1 << 13);

/// Bits of an earlier access's program counter that shadow memory keeps.
pub const SHADOW_PC_BITS: u32 = 23;

/// One side of a race.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Side {
    /// The thread that made the access.
    pub thread: u32,
    /// The [`AccessKind`], as a number.
    pub kind: u32,
    /// Return address of the call that announced the access. Of the earlier side only the lowest
    /// [`SHADOW_PC_BITS`] are known.
    pub pc: u64,
    /// First byte that both touch.
    pub addr: u64,
    /// Bytes touched.
    pub len: u32,
    /// Valid frames.
    pub frames: u32,
    /// When: slot and clock.
    pub epoch: u64,
    /// Return addresses of the functions that were active, innermost first. Of the earlier side they are
    /// not known; there is [`Race::past`] instead.
    pub stack: [u64; FRAMES],
}

/// One race between two places in the program, or one misuse.
#[repr(C, align(64))]
pub struct Race {
    /// 1 when the record is complete.
    pub done: AtomicU32,
    /// How often the two places raced.
    pub count: AtomicU32,
    /// The [`MisuseKind`] as a number; 0 for a race.
    pub misuse: u32,
    /// Of a misuse: the [`ObjectKind`], the descriptor, or the signal, with the number of an [`UNSAFE`]
    /// function above the lowest byte.
    pub detail: u32,
    /// The last stamp given out when the race was found: what its thread held and what memory was
    /// what is known from the events up to here.
    pub stamp: u64,
    /// The access that was there first. Of a misuse the other thread's part, kind 0 if it is not known here;
    /// its program counter is whole, unless it comes from shadow memory.
    pub earlier: Side,
    /// The access that found it.
    pub later: Side,
    /// What the call stack of the earlier thread looks like now, outermost first: of each call the address
    /// it returns to, and a place in the function called. Entries are not erased when a function
    /// returns, so the last ones may be of calls that are over.
    pub past: [[u64; 2]; PAST],
}

/// What stands before a value in [`Shared::values`]. The name and the bytes of the value follow. The numbers
/// are those of `selvedge.h`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Chunk {
    /// See [`call`].
    pub call: u32,
    /// Type of the elements.
    pub kind: u32,
    /// When two values are the same.
    pub predicate: u32,
    /// Bytes of the name.
    pub name_len: u32,
    /// The predicate's number, a double.
    pub bound: u64,
    /// The predicate's function.
    pub same: u64,
    /// Bytes of the value.
    pub bytes: u64,
}

/// [`Chunk::call`]: what the program says of a value.
pub mod call {
    #![allow(missing_docs)]
    /// The bits that are one of the next ones.
    pub const KIND: u32 = 15;
    pub const ASSUME: u32 = 1;
    pub const ENSURE: u32 = 2;
    pub const STATE: u32 = 3;
    pub const OBSERVE: u32 = 4;
    /// No value: a linearization point, and the begin and the end of distinguished accesses.
    pub const POINT: u32 = 5;
    pub const DISTINGUISH: u32 = 6;
    pub const INDISTINCT: u32 = 7;
    /// Flag: an array, and not one element.
    pub const ARRAY: u32 = 16;
    /// Flag of a state: the block ends.
    pub const AFTER: u32 = 32;
}

/// A function of the program that is a predicate.
#[repr(C)]
pub struct Seat {
    /// Its address; 0 in a seat that is free.
    pub function: AtomicU64,
    /// 1 once a process was made that calls it.
    pub taken: AtomicU32,
    /// That process, once it listens.
    pub process: AtomicU32,
}

/// A location that is a state of every block, although the program does not say so.
#[repr(C)]
pub struct Global {
    /// Where its name begins in [`Shared::global_names`].
    pub name: AtomicU32,
    /// Type of its elements.
    pub kind: AtomicU32,
    /// [`call::ARRAY`], or 0.
    pub array: AtomicU32,
    /// Valid entries of `path`.
    pub path_len: AtomicU32,
    /// How many elements it has.
    pub count: AtomicU64,
    /// An address; of a pointer that lies there, unless it is the last one, the next entry is the offset from where
    /// it points.
    pub path: [AtomicU64; GLOBAL_PATH],
}

/// Where a thread was when a signal came that ends the process.
#[repr(C)]
pub struct Crash {
    /// The signal; 0 while there is none.
    pub signal: AtomicU32,
    /// 1 when the rest is complete.
    pub done: AtomicU32,
    /// The thread, plus one; 0 if it is not known.
    pub thread: AtomicU32,
    /// How much of `calls` there is.
    pub calls_len: AtomicU32,
    /// The registers, in the order of `gregs` of a `ucontext_t`; the last one is the instruction.
    pub registers: [AtomicU64; REGISTERS],
    /// The address that an instruction could not access; all ones if no instruction caused the signal.
    pub addr: AtomicU64,
    /// Return addresses of the instrumented functions that were active, innermost first.
    pub calls: [AtomicU64; FRAMES],
    /// How much of `stack` there is.
    pub stack_len: AtomicU32,
    /// How much of `said` there is; more than [`SAID`] while it is written.
    pub said_len: AtomicU32,
    /// The innermost words of the stack.
    pub stack: [AtomicU64; STACK],
    /// What a failed assertion writes to standard error, without the name of the program.
    pub said: [AtomicU8; SAID],
}

impl Crash {
    /// Forgets the last execution.
    pub fn reset(&self) {
        for word in [&self.signal, &self.done, &self.calls_len, &self.stack_len, &self.said_len] {
            word.store(0, Relaxed);
        }
    }
}

/// The whole shared memory.
#[repr(C)]
pub struct Shared {
    #[allow(missing_docs)]
    pub header: Header,
    /// How the program crashed, if it did.
    pub crash: Crash,
    /// Processes that the program has started, directly or not, by their number less one. They look for races
    /// and leave them here, but record no events.
    pub processes: [AtomicU32; PROCESSES],
    #[allow(missing_docs)]
    pub judges: [Seat; JUDGES],
    #[allow(missing_docs)]
    pub lanes: [Lane; LANES],
    #[allow(missing_docs)]
    pub races: [Race; RACES],
    /// Text in the format of `/proc/self/maps`: executable mappings, and after a `dlopen` all of them again.
    pub maps: [u8; MAPS],
    /// Names of marked regions, one after the other.
    pub texts: [u8; TEXTS],
    /// Which functions are regions: two tables, one in use and one to be filled.
    pub functions: [[Functions; FUNCTIONS]; 2],
    /// Locations that are states of every block.
    pub globals: [Global; GLOBALS],
    /// Their names.
    pub global_names: [u8; GLOBAL_NAMES],
    #[allow(missing_docs)]
    pub rings: [[Record; RING]; LANES],
    /// Values, one [`Chunk`] after the other, each at a multiple of eight bytes.
    pub values: [u8; VALUES],
}

const _: () = assert!(size_of::<Record>() == 32 && RING.is_power_of_two());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_fits_into_one_record() {
        let race = Raced {
            number: Some(RACES - 1),
            addr: 0x7fff_ffff_fff9,
            len: 8,
            thread: u32::MAX - 1,
            epoch: 0xdead_beef,
            earlier: AccessKind::Free,
            later: AccessKind::AtomicWrite,
        };
        for race in [race, Raced { number: None, len: 1, ..race }] {
            let (a, b, flags) = race.packed();
            let record = Record::new(1, RecordKind::Raced, flags, 0x5555, a, b);
            assert_eq!(Raced::read(&record), Some(race));
        }
    }
}
