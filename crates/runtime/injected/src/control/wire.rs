//! The memory through which the host steers a controlled execution, and the model of what blocks.
//!
//! Only the thread whose turn it is writes here, or the host while it is the host's turn, except for
//! the few words said otherwise. So everything is a relaxed atomic; the hand-over of the turn orders
//! it. The model is the same code on both sides: the program asks whether more than one thread can go
//! on, the host which ones.
//!
//! Changing anything here: raise [`VERSION`]; the host refuses a program with another one.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::wire::{FRAMES, Phase, Record, RecordKind, SHARED, TRY};

/// First eight bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"selvectl");
/// Layout of everything in this file.
pub const VERSION: u32 = 13;
/// Environment variable with the number of the descriptor.
pub const ENV_FD: &str = "SELVEDGE_CONTROL_FD";
/// The C library's settings: its variable, and what the host sets it to unless the user has. It keeps the stacks of
/// ended threads then: to map and unmap each was a tenth of what an execution with twenty threads costs. The runtime
/// takes the entry away before the program looks.
pub const TUNABLES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.stack_cache_size=0x200000000");

/// Threads that one execution may create.
pub const THREADS: usize = 512;
/// Slots of the hash table of objects.
pub const OBJECTS: usize = 1 << 14;
/// Records that one execution may make.
pub const LOG: usize = 1 << 21;
/// Files that say how their data flows, and one range more, which is empty.
pub const PLACES: usize = 17;
/// Places in the code whose accesses are scheduling points.
pub const WATCHED: usize = 256;

/// Functions of libraries that executions may leave to later ones.
pub const LOOKED_UP: usize = 256;

/// Accesses of one execution whose values are kept.
pub const SEEN: usize = 1 << 18;

/// Callers that are in the line of a record; those further out are in `Control::outer`.
const IN_LINE: usize = 4;

/// Return addresses of the functions around a call, innermost first; 0 behind the last one that is known.
pub type Frames = [u64; FRAMES];

/// Flag: a fresh process for each execution is forked before `main`.
pub const FORK: u32 = 1;
/// Flag: releasing a lock is a scheduling point.
pub const RELEASES: u32 = 2;
/// Flag: plain accesses of instrumented code, and memory that is allocated and freed, become events.
pub const ACCESSES: u32 = 4;
/// Flag: what accesses find and leave in memory is kept.
pub const VALUES: u32 = 8;

/// Flag: how data flows is recorded.
pub const FLOW: u32 = 16;
/// Flag: the host chooses which stars are executed.
pub const STARS: u32 = 32;

/// Parts of the focus that the host may name.
pub const FOCUS: usize = 64;

/// [`Control::turn`] while the host decides.
pub const HOST: u32 = u32::MAX;

/// [`Control::request`]: what the host is asked for.
pub mod request {
    #![allow(missing_docs)]
    pub const NONE: u32 = 0;
    /// More than one thread can go on.
    pub const CHOOSE: u32 = 1;
    /// No thread can go on.
    pub const STUCK: u32 = 2;
    /// Too many steps, records, threads or objects.
    pub const LIMIT: u32 = 3;
    /// No thread can go on, but the program handles signals, and one may be on its way.
    pub const STUCK_UNLESS_SIGNALLED: u32 = 4;
    /// The program wants a number below [`Control::number`](super::Control::number), which the answer
    /// replaces.
    pub const NUMBER: u32 = 5;
    /// There are many words of data flow: the host reads them, and their memory is used again.
    pub const READ: u32 = 6;
}

/// [`Control::sources`]: what the program has learnt from outside, bit by bit.
pub mod source {
    #![allow(missing_docs)]
    /// Numbers of processes.
    pub const PROCESS: u32 = 1;
    /// Files below `/proc`.
    pub const PROC: u32 = 2;
}

/// [`Slot::status`].
pub mod status {
    #![allow(missing_docs)]
    pub const UNUSED: u32 = 0;
    /// It is the thread's turn.
    pub const RUNNING: u32 = 1;
    /// It has said what it wants and waits for its turn.
    pub const WAITING: u32 = 2;
    /// It is in a system call that is not modelled; the host gave its turn to others.
    pub const AWAY: u32 = 3;
    pub const ENDED: u32 = 4;
}

/// One line of the history of the execution: a [`Record`] with its phase, its thread and its callers, in a
/// cache line.
#[repr(C, align(64))]
pub struct Line {
    /// Phase in the top byte, then the thread (16 bits); in the lower half the number of the [`Seen`], plus
    /// one, if there is one.
    head: AtomicU64,
    what: AtomicU64,
    a: AtomicU64,
    b: AtomicU64,
    /// The innermost of the [`Frames`].
    callers: [AtomicU64; IN_LINE],
}

impl Line {
    fn put(&self, phase: Phase, thread: usize, record: &Record, frames: &Frames) {
        self.head.store(u64::from(phase as u8) << 56 | (thread as u64) << 32, Relaxed);
        self.what.store(record.what, Relaxed);
        self.a.store(record.a, Relaxed);
        self.b.store(record.b, Relaxed);
        for (word, &caller) in self.callers.iter().zip(frames) {
            word.store(caller, Relaxed);
        }
    }

    /// Adds the number of the values of the access.
    pub fn see(&self, number: u32) {
        self.head.fetch_or(u64::from(number) + 1, Relaxed);
    }

    /// The number of the values of the access, if there are some.
    pub fn seen(&self) -> Option<usize> {
        (self.head.load(Relaxed) as u32).checked_sub(1).map(|n| n as usize % SEEN)
    }

    /// Phase and thread, if they make sense.
    pub fn head(&self) -> Option<(Phase, usize)> {
        let head = self.head.load(Relaxed);
        let thread = (head >> 32) as usize & 0xffff;
        Phase::from_number((head >> 56) as u8).map(|p| (p, thread)).filter(|_| thread < THREADS)
    }

    /// The record, whose order is that of the lines.
    pub fn record(&self) -> Record {
        let [what, a, b] = [&self.what, &self.a, &self.b].map(|word| word.load(Relaxed));
        Record { stamp: 0, what, a, b }
    }
}

/// Bytes that may be known: 16, in two words.
pub type Words = [AtomicU64; 2];

/// What an access found in memory, and what it left there.
#[repr(C)]
pub struct Seen {
    /// Where.
    pub addr: AtomicU64,
    /// How many bytes.
    pub len: AtomicU32,
    /// [`FOUND`], [`LEFT`], [`FOUND_POINTS`], [`LEFT_POINTS`].
    pub known: AtomicU32,
    /// What it found.
    pub found: Words,
    /// What it left.
    pub left: Words,
    /// Where what it found points, if that can be read.
    pub found_points: Words,
    /// Where what it left points, if that can be read.
    pub left_points: Words,
}

/// Flag of [`Seen::known`].
pub const FOUND: u32 = 1;
/// Flag of [`Seen::known`].
pub const LEFT: u32 = 2;
/// Flag of [`Seen::known`].
pub const FOUND_POINTS: u32 = 4;
/// Flag of [`Seen::known`].
pub const LEFT_POINTS: u32 = 8;

/// Flag of what is pending, above those of its record: the thread asks that others run.
pub const YIELDS: u32 = 1 << 8;
/// Flag of a pending acquisition: who holds the lock already may acquire it again, or is told that it
/// must not.
pub const REENTRANT: u32 = 1 << 9;

/// One thread.
#[repr(C, align(64))]
pub struct Slot {
    /// Futex: 1 when it may go on.
    pub word: AtomicU32,
    /// See [`status`]. The host and the thread both change it, by exchange.
    pub status: AtomicU32,
    /// The kernel's number.
    pub tid: AtomicU32,
    /// [`RecordKind`] of what it is about to do.
    pub kind: AtomicU32,
    /// Those of the record of what it is about to do, [`YIELDS`], [`REENTRANT`].
    pub flags: AtomicU32,
    /// Index of the object in [`Control::objects`], plus one.
    pub object: AtomicU32,
    /// A notification has met it.
    pub eligible: AtomicU32,
    /// [`Control::log_len`] when the thread last changed something that others could notice.
    pub changed: AtomicU32,
    /// A signal is to be handled.
    pub signalled: AtomicU32,
    /// The program has cancelled the thread: it stops waiting at the next cancellation point.
    pub cancelled: AtomicU32,
    /// Return address.
    pub pc: AtomicU64,
    /// As in [`Record`].
    pub a: AtomicU64,
    /// As in [`Record`].
    pub b: AtomicU64,
    /// Virtual time at which it stops waiting; 0 never.
    pub deadline: AtomicU64,
    /// The number of the [`Seen`] of a write that may not have left its value yet, plus one.
    pub unfinished: AtomicU32,
    /// Whether `before` is known.
    pub before_known: AtomicU32,
    /// What is in memory where the thread is about to do something atomic.
    pub before: Words,
}

/// One lock, condition variable, semaphore, barrier or futex.
#[repr(C, align(64))]
pub struct Object {
    /// Belongs to the current execution if equal to [`Control::generation`].
    pub generation: AtomicU32,
    /// Where it lies.
    pub addr: AtomicU64,
    /// Thread that holds it alone, plus one.
    pub owner: AtomicU32,
    /// How many times it does.
    pub depth: AtomicU32,
    /// Readers that hold it.
    pub readers: AtomicU32,
    /// Threads that wait on it.
    pub waiters: AtomicU32,
    /// Waiters that may go.
    pub permits: AtomicU32,
    /// Value of a semaphore; arrivals at a barrier.
    pub value: AtomicU32,
    /// Rounds that a barrier has completed.
    pub round: AtomicU32,
}

/// The whole memory.
#[repr(C)]
pub struct Control {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// [`FORK`], [`RELEASES`], [`ACCESSES`], [`VALUES`], [`FLOW`], [`STARS`].
    pub flags: AtomicU32,
    /// Process that attached, 0 before.
    pub program: AtomicU32,
    /// 1 once it has come to `main`; 2 if it has more than one thread by then.
    pub ready: AtomicU32,
    /// Futex: how many executions the host has asked for.
    pub go: AtomicU32,
    /// Process of the current execution.
    pub child: AtomicU32,
    /// How many executions the fork server has seen to their end.
    pub ended: AtomicU32,
    /// How the last of them ended, as `waitpid` says.
    pub exit: AtomicU32,
    /// Futex: how often the program has woken the host to look at something.
    pub wakeups: AtomicU32,
    /// See [`request`].
    pub request: AtomicU32,
    /// The thread that asks.
    pub asker: AtomicU32,
    /// Whose turn it is.
    pub turn: AtomicU32,
    /// See [`request::NUMBER`].
    pub number: AtomicU32,
    /// Entries of `focus`.
    pub focus_len: AtomicU32,
    /// For which place in the program; 0 if that does not matter.
    pub number_place: AtomicU64,
    /// Memory that is part of the result when the program ends: address and length.
    pub focus: [(AtomicU64, AtomicU64); FOCUS],
    /// Entries of `looked_up` that are given out; may be more than there are.
    pub looked_up_len: AtomicU32,
    /// Functions of libraries that executions have looked up: where the address is kept, and the address. The fork server
    /// takes them over, so that later executions need not look for them.
    pub looked_up: [(AtomicU64, AtomicU64); LOOKED_UP],
    /// Slots in use.
    pub threads: AtomicU32,
    /// Number of the execution.
    pub generation: AtomicU32,
    /// Records written.
    pub log_len: AtomicU32,
    /// Records after which the execution is too long.
    pub limit: AtomicU32,
    /// Whether a thread tried to acquire without waiting, or for a limited time.
    pub tried: AtomicU32,
    /// Kernel number of a thread that has ended but may not be gone, 0 if none.
    pub dying: AtomicU32,
    /// See [`source`].
    pub sources: AtomicU32,
    /// Entries of `seen` that are given out; may be more than there are.
    pub seen_len: AtomicU32,
    /// Entries of `watched`.
    pub watched_len: AtomicU32,
    /// Virtual time in nanoseconds since the start.
    pub now: AtomicU64,
    /// State of the program's random numbers.
    pub random: AtomicU64,
    /// The processors that the program may believe to have; none if it may ask the kernel.
    pub processors: [AtomicU64; 16],
    /// Where the bytes are that stand for places in code that says how its data flows: from, and up to. An empty range is
    /// the last.
    pub places: [(AtomicU64, AtomicU64); PLACES],
    /// Return addresses of accesses that are scheduling points.
    pub watched: [AtomicU64; WATCHED],
    /// By thread number.
    pub slots: [Slot; THREADS],
    /// A hash table with open addressing.
    pub objects: [Object; OBJECTS],
    /// The history.
    pub log: [Line; LOG],
    /// The values of accesses, in the order of the history.
    pub seen: [Seen; SEEN],
    /// Of each line whose callers do not fit in it, the others. Few programs touch this memory.
    outer: [[AtomicU64; FRAMES - IN_LINE]; LOG],
}

impl Control {
    /// Writes a line of the history.
    pub fn put(&self, at: usize, phase: Phase, thread: usize, record: &Record, frames: &Frames) {
        self.log[at].put(phase, thread, record, frames);
        if frames[IN_LINE - 1] != 0 {
            for (word, &caller) in self.outer[at].iter().zip(&frames[IN_LINE..]) {
                word.store(caller, Relaxed);
                if caller == 0 {
                    break;
                }
            }
        }
    }

    /// The functions around the call that made a line.
    pub fn frames(&self, at: usize) -> Frames {
        let mut frames = [0; FRAMES];
        let words = self.log[at].callers.iter().chain(&self.outer[at]);
        for (frame, word) in frames.iter_mut().zip(words) {
            *frame = word.load(Relaxed);
            if *frame == 0 {
                break;
            }
        }
        frames
    }

    /// Forgets the last execution. Thread 0 runs.
    pub fn reset(&self, flags: u32, random: u64) {
        for slot in &self.slots[..self.threads.load(Relaxed).min(THREADS as u32) as usize] {
            slot.status.store(status::UNUSED, Relaxed);
            slot.word.store(0, Relaxed);
        }
        self.flags.store(flags, Relaxed);
        self.request.store(request::NONE, Relaxed);
        self.turn.store(0, Relaxed);
        self.threads.store(1, Relaxed);
        self.generation.fetch_add(1, Relaxed);
        self.log_len.store(0, Relaxed);
        self.seen_len.store(0, Relaxed);
        self.tried.store(0, Relaxed);
        self.sources.store(0, Relaxed);
        self.dying.store(0, Relaxed);
        self.child.store(0, Relaxed);
        self.now.store(0, Relaxed);
        self.random.store(random, Relaxed);
        self.slots[0].clear();
        self.slots[0].status.store(status::RUNNING, Relaxed);
    }

    /// The object at an address, made if it is new; none if there are too many.
    pub fn object(&self, addr: usize) -> Option<usize> {
        let generation = self.generation.load(Relaxed);
        let mut at = (addr >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        for _ in 0..OBJECTS {
            at %= OBJECTS;
            let object = &self.objects[at];
            if object.generation.load(Relaxed) != generation {
                object.clear();
                object.generation.store(generation, Relaxed);
                object.addr.store(addr as u64, Relaxed);
                return Some(at);
            }
            if object.addr.load(Relaxed) == addr as u64 {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// What was known of an object does not hold any more.
    pub fn renew(&self, addr: usize) {
        if let Some(at) = self.object(addr) {
            self.objects[at].clear();
        }
    }

    /// Whether a thread can take its next step.
    pub fn is_enabled(&self, thread: usize) -> bool {
        let slot = &self.slots[thread];
        if slot.status.load(Relaxed) != status::WAITING {
            return false;
        }
        if slot.signalled.load(Relaxed) != 0 || self.is_over(slot) {
            return true;
        }
        let kind = RecordKind::from_number(slot.kind.load(Relaxed) as u8);
        let flags = slot.flags.load(Relaxed);
        let Some(kind) = kind else { return true };
        let number = slot.object.load(Relaxed) as usize;
        let object = number.checked_sub(1).and_then(|i| self.objects.get(i));
        let mine =
            |o: &Object| o.owner.load(Relaxed) == thread as u32 + 1 && flags & REENTRANT != 0;
        let cancellable = matches!(kind, RecordKind::Wake | RecordKind::Wait | RecordKind::Join);
        if cancellable && slot.cancelled.load(Relaxed) != 0 {
            return true;
        }
        let has = |flag: u8| flags as u8 & flag != 0;
        match (kind, object) {
            (RecordKind::Acquire | RecordKind::Wait, _) if has(TRY) => true,
            (RecordKind::Join, _) => {
                let other = slot.a.load(Relaxed) as usize;
                self.slots.get(other).is_none_or(|s| s.status.load(Relaxed) == status::ENDED)
            }
            (RecordKind::Acquire, Some(o)) => {
                let readers = !has(SHARED) && o.readers.load(Relaxed) != 0;
                o.owner.load(Relaxed) == 0 && !readers || mine(o)
            }
            (RecordKind::Wake, Some(o)) => {
                slot.eligible.load(Relaxed) != 0 && o.permits.load(Relaxed) > 0
            }
            (RecordKind::Leave, Some(o)) => o.round.load(Relaxed) != slot.b.load(Relaxed) as u32,
            (RecordKind::Wait, Some(o)) => o.value.load(Relaxed) > 0,
            _ => true,
        }
    }

    /// Whether the thread's time to wait is over.
    pub fn is_over(&self, slot: &Slot) -> bool {
        let deadline = slot.deadline.load(Relaxed);
        deadline != 0 && deadline <= self.now.load(Relaxed)
    }

    /// Threads in use, all valid indices.
    pub fn threads(&self) -> usize {
        (self.threads.load(Relaxed) as usize).min(THREADS)
    }

    /// How many threads can go on, no more than two being counted, and the first of them.
    pub fn enabled(&self) -> (usize, usize) {
        let mut list = (0..self.threads()).filter(|&i| self.is_enabled(i));
        match (list.next(), list.next()) {
            (None, _) => (0, 0),
            (Some(first), None) => (1, first),
            (Some(first), Some(_)) => (2, first),
        }
    }

    /// Lets time pass until a waiting thread's time is over; false if no thread waits for a time.
    pub fn pass_time(&self) -> bool {
        let soonest = (0..self.threads())
            .map(|i| &self.slots[i])
            .filter(|s| s.status.load(Relaxed) == status::WAITING)
            .map(|s| s.deadline.load(Relaxed))
            .filter(|&d| d > self.now.load(Relaxed))
            .min();
        let Some(soonest) = soonest else { return false };
        self.now.fetch_max(soonest, Relaxed);
        true
    }

    /// Whether no thread has changed anything for many records.
    pub fn is_quiet(&self) -> bool {
        const LONG: u32 = 1_000;
        let long_ago = self.log_len.load(Relaxed).saturating_sub(LONG);
        self.slots[..self.threads()].iter().all(|s| s.changed.load(Relaxed) < long_ago)
    }

    /// Whether a thread is in a system call that is not modelled.
    pub fn any_away(&self) -> bool {
        (0..self.threads()).any(|i| self.slots[i].status.load(Relaxed) == status::AWAY)
    }
}

impl Slot {
    /// As new.
    pub fn clear(&self) {
        for word in [&self.word, &self.kind, &self.flags, &self.object, &self.eligible] {
            word.store(0, Relaxed);
        }
        self.changed.store(0, Relaxed);
        self.signalled.store(0, Relaxed);
        self.cancelled.store(0, Relaxed);
        self.deadline.store(0, Relaxed);
        self.unfinished.store(0, Relaxed);
        self.before_known.store(0, Relaxed);
    }
}

impl Object {
    /// Makes the object free, without a thread that waits for it.
    pub fn clear(&self) {
        for word in [
            &self.owner,
            &self.depth,
            &self.readers,
            &self.waiters,
            &self.permits,
            &self.value,
            &self.round,
        ] {
            word.store(0, Relaxed);
        }
    }
}
