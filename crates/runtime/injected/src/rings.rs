//! Recording: events go to the thread's ring in shared memory, in the order in which the thread made them,
//! or under control to the one log of the execution. What is recorded is the same either way.
//!
//! Ground rules:
//! - A record is complete before `head` says that it is there; `head` is never taken back. So what was
//!   recorded survives the program, even if it is killed.
//! - A thread whose ring is full waits for the host. If the host is gone, or says so, the thread does not
//!   wait: recording stops and the rest counts as lost.
//! - Stamps are taken where the event takes effect: after an acquisition, before a release.
//! - A signal that arrives while a record is written waits until it is: its handler makes records, too.

pub mod held_back;

use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::control;
use crate::owners;
use crate::regions;
use crate::sys;
use crate::thread::{Busy, Thread};
use crate::wire::{self, LANES, MAY_LOCK, RING, Raced, Record, RecordKind, Shared, lane, order};

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(core::ptr::null_mut());
static STOPPED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether this process executes a program of its own, and is not the one that the host started.
static EXECUTED: AtomicBool = AtomicBool::new(false);

/// The memory shared with the host, if there is a host.
pub fn shared() -> Option<&'static Shared> {
    let shared = SHARED.load(Ordering::Acquire);
    // SAFETY: null, or a mapping of the right size that is never unmapped; everything that both sides
    // write is atomic, and records are handed over by `head` and `tail`.
    unsafe { shared.as_ref() }
}

/// Takes the shared memory into use.
pub fn attach(at: usize) {
    SHARED.store(at as *mut Shared, Ordering::Release);
}

/// Whether threads record nothing any more.
pub fn is_stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Whether misuse is looked for: not in the child of a fork, which gives back what its parent has locked and opened for it.
pub fn finds_misuse() -> bool {
    !is_stopped() || EXECUTED.load(Ordering::Relaxed)
}

/// This process executes a program, and is another one than the host started.
pub fn execute() -> Option<u32> {
    EXECUTED.store(true, Ordering::Relaxed);
    follow()
}

/// This process is another one than the host started: its threads record nothing, because the rings and the
/// numbers of threads are that one's. Where its own numbers begin; nothing if there are too many processes.
fn follow() -> Option<u32> {
    STOPPED.store(true, Ordering::Relaxed);
    Some((process(sys::pid())? + 1) << wire::THREAD_BITS)
}

/// The number of another process that takes part.
pub fn process(pid: u32) -> Option<u32> {
    let shared = shared()?;
    let known = shared.header.processes.load(Ordering::Acquire) as usize;
    let mut all = shared.processes.iter().take(known);
    if let Some(number) = all.position(|p| p.load(Ordering::Acquire) == pid) {
        return Some(number as u32);
    }
    let number = shared.header.processes.fetch_add(1, Ordering::AcqRel);
    shared.processes.get(number as usize)?.store(pid, Ordering::Release);
    Some(number)
}

/// In the child of a fork, which takes part only if it has more than one thread.
pub fn after_fork() {
    STOPPED.store(true, Ordering::Relaxed);
    EXECUTED.store(false, Ordering::Relaxed);
    FORKED.store(true, Ordering::Relaxed);
}

/// Where the numbers of threads begin, if this is the child of a fork and starts its first thread.
pub fn first_thread_after_fork() -> Option<u32> {
    FORKED.swap(false, Ordering::Relaxed).then(follow)?
}

/// Where a thread's records go.
#[derive(Default)]
#[repr(C)]
pub struct Writer {
    // invariant: lane number plus one, `LOG` under control, 0 if the thread does not record.
    lane: usize,
    head: u64,
}

/// Instead of a lane: the log of the controlled execution.
const LOG: usize = usize::MAX;

impl Writer {
    /// Finds a free ring, if the host wants records.
    pub fn open(&mut self, thread: u32) {
        *self = Writer::default();
        let Some(shared) = shared() else { return };
        if shared.header.flags & wire::RECORD_SYNC == 0 || STOPPED.load(Ordering::Relaxed) {
            return;
        }
        let free = shared.lanes.iter().position(|l| {
            l.state
                .compare_exchange(lane::FREE, lane::USED, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        match free {
            Some(i) => {
                shared.lanes[i].thread.store(thread, Ordering::Release);
                self.lane = i + 1;
                self.head = shared.lanes[i].head.load(Ordering::Relaxed);
            }
            None => {
                shared.header.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The thread is controlled from now on.
    pub fn open_log(&mut self) {
        self.lane = LOG;
    }

    /// Whether the thread is controlled.
    #[inline(always)]
    pub fn is_log(&self) -> bool {
        self.lane == LOG
    }

    /// Hands the ring back; the host frees it when it has read the rest.
    pub fn close(&mut self) {
        if let Some(shared) = shared()
            && self.lane != 0
            && self.lane != LOG
        {
            shared.lanes[self.lane - 1].state.store(lane::ENDED, Ordering::Release);
        }
        self.lane = 0;
    }

    /// Whether the thread records into a ring.
    pub fn is_ring(&self) -> bool {
        self.is_open() && !self.is_log()
    }

    /// Whether records are wanted.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.lane != 0
    }

    /// Stops writing without telling the host: the ring belongs to the parent of this fork.
    pub fn abandon(&mut self) {
        self.lane = 0;
    }
}

/// Records an event with the next stamp.
#[inline]
pub fn record(thread: &mut Thread, kind: RecordKind, flags: u8, pc: usize, a: usize, b: usize) {
    if kind == RecordKind::Destroy {
        owners::lock_vanished();
    }
    if thread.ring.is_open() {
        if thread.hold_back {
            end_owners(thread, kind, a, b);
        }
        if happens_in_regions(kind) {
            regions::tell(thread);
        }
        if matches!(kind, RecordKind::Fork | RecordKind::Destroy) {
            record_callers(thread);
        }
        write(thread, true, kind, flags, pc, a, b);
    }
}

/// The host is told what was held back before it is told what ends or conflicts with it.
#[cold]
fn end_owners(thread: &mut Thread, kind: RecordKind, a: usize, b: usize) {
    use RecordKind::{Alloc, Free, HappensAfter, HappensBefore, Load, Store, Update};
    match kind {
        Alloc | Free => held_back::ends(thread, a, b),
        Load | Store | Update => held_back::ends(thread, a, b & 0xff),
        HappensBefore | HappensAfter => held_back::ends(thread, a, 1),
        _ => {}
    }
}

/// Records that the thread has acquired a lock. What it does with the lock is told apart from what it has
/// done before, so that each epoch has one set of locks: releasing one begins an epoch in any case.
pub fn acquired(thread: &mut Thread, flags: u8, pc: usize, lock: usize) {
    if thread.ring.is_open() {
        regions::tell(thread);
        record_callers(thread);
        thread.tick();
        if thread.hold_back {
            thread.owning.acquired(lock, flags);
        }
        let epoch = thread.short_epoch() << 32;
        write(thread, true, RecordKind::Acquire, flags, pc, lock, epoch);
    }
}

/// Records that the thread is about to wait, for as long as it takes.
#[cold]
pub fn blocks(thread: &mut Thread, flags: u8, pc: usize, what: usize) {
    if thread.ring.is_open() {
        record_callers(thread);
        write(thread, true, RecordKind::Block, flags, pc, what, 0);
    }
}

/// Records that the thread is about to release a lock, with which its epoch ends.
pub fn releasing(thread: &mut Thread, flags: u8, pc: usize, lock: usize) {
    if thread.ring.is_open() {
        regions::tell(thread);
        if thread.hold_back {
            thread.owning.releasing(lock, flags);
        }
        let epoch = thread.short_epoch() << 32;
        write(thread, true, RecordKind::Release, flags, pc, lock, epoch);
    }
}

/// Whether it matters which regions the event happened in. No event can interfere with an allocation,
/// and a thread that begins or ends is not in a region of its own.
fn happens_in_regions(kind: RecordKind) -> bool {
    !matches!(
        kind,
        RecordKind::Alloc
            | RecordKind::Free
            | RecordKind::Destroy
            | RecordKind::Begin
            | RecordKind::End
            | RecordKind::Name
    )
}

/// Records that a region is entered or left.
pub fn region(thread: &mut Thread, kind: RecordKind, flags: u8, pc: usize, a: usize, b: usize) {
    if thread.ring.is_open() {
        write(thread, true, kind, flags, pc, a, b);
    }
}

/// Records that the access at `pc` is the later one of the first race on a granule. The record of the access
/// itself follows, or for an atomic access is next to this.
#[cold]
pub fn raced(thread: &mut Thread, race: &Raced, pc: usize) {
    if thread.ring.is_open() {
        regions::tell(thread);
        let (a, b, flags) = race.packed();
        write(thread, true, RecordKind::Raced, flags, pc, a as usize, b as usize);
    }
}

/// Ends the program and tells the host why.
pub fn refuse(why: wire::Failure, message: &[u8]) -> ! {
    if let Some(shared) = shared() {
        shared.header.failure.store(why as u32, Ordering::Release);
    }
    sys::fatal(message)
}

/// Records who called the function that makes the next record, if that is known. In the log every record
/// has its callers.
fn record_callers(thread: &mut Thread) {
    if thread.ring.is_log() {
        return;
    }
    let mut frames = [0; wire::FRAMES];
    if thread.stack(crate::arch::words::stack_top(), &mut frames) > 0 {
        for three in frames.chunks(3).take(wire::CALLERS / 3) {
            let [first, second, third] = [three[0], three[1], three[2]].map(|f| f as usize);
            write(thread, false, RecordKind::Callers, 0, first, second, third);
            if third == 0 {
                break;
            }
        }
    }
}

/// Records a read-modify-write, or one that came to no writing. Locks of Rust are made of those that
/// acquire or release if they write (`matters`), and whether this one is of a lock is seen from who
/// called it. For the sake of those that are, one that acquires begins an epoch, as in [`acquired`].
#[inline]
pub fn record_update(
    thread: &mut Thread,
    (wrote, matters): (bool, bool),
    mo: u8,
    pc: usize,
    addr: usize,
    len: usize,
) {
    if thread.ring.is_open() {
        if thread.hold_back {
            held_back::ends(thread, addr, len);
        }
        regions::tell(thread);
        let mut b = len;
        let flags = mo | may_lock(matters);
        if flags & MAY_LOCK != 0 {
            if thread.hold_back {
                thread.owning.used(addr, step(wrote, mo));
            }
            record_callers(thread);
            if wrote && mo != order::RELEASE {
                thread.tick();
            }
            b |= thread.short_epoch() << 32;
        }
        let kind = if wrote { RecordKind::Update } else { RecordKind::Load };
        write(thread, true, kind, flags, pc, addr, b);
    }
}

/// What a read-modify-write may do to a lock of Rust.
fn step(wrote: bool, mo: u8) -> owners::Step {
    match mo {
        order::ACQUIRE | order::CONSUME if wrote => owners::Step::Acquired,
        order::RELEASE if wrote => owners::Step::Released,
        _ => owners::Step::Other,
    }
}

/// [`MAY_LOCK`] if an atomic operation that `matters` may be part of a lock of Rust: a read-modify-write that is not
/// relaxed, and under control a load.
pub fn may_lock(matters: bool) -> u8 {
    if matters && sys::is_mixed() { MAY_LOCK } else { 0 }
}

/// Records an access. It needs a stamp only where it may race with others, whose order is then known.
#[cold]
pub fn record_access(
    thread: &mut Thread,
    stamped: bool,
    write_: bool,
    pc: usize,
    addr: usize,
    len: usize,
) {
    let kind = if write_ { RecordKind::Write } else { RecordKind::Read };
    if thread.ring.is_open() {
        regions::tell(thread);
        write(thread, stamped, kind, 0, pc, addr, len);
    }
}

#[inline(never)]
fn write(
    thread: &mut Thread,
    stamped: bool,
    kind: RecordKind,
    flags: u8,
    pc: usize,
    a: usize,
    b: usize,
) {
    if thread.ring.is_log() {
        return control::happened(
            thread,
            &Record::new(0, kind, flags, pc as u64, a as u64, b as u64),
        );
    }
    let Some(shared) = shared() else { return };
    let _busy = Busy::new(thread);
    let lane = &shared.lanes[(thread.ring.lane - 1) % LANES];
    let head = thread.ring.head;
    if head - lane.tail.load(Ordering::Acquire) >= RING as u64 && !wait_for_room(shared, lane, head)
    {
        shared.header.lost.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let stamp = if stamped { shared.header.stamp.0.fetch_add(1, Ordering::AcqRel) + 1 } else { 0 };
    let ring = shared.rings[(thread.ring.lane - 1) % LANES].as_ptr().cast_mut();
    let record = Record::new(stamp, kind, flags, pc as u64, a as u64, b as u64);
    // SAFETY: the place is within the ring, and by the indices the host does not read it now.
    unsafe { ring.add(head as usize % RING).write_volatile(record) };
    lane.head.store(head + 1, Ordering::Release);
    thread.ring.head = head + 1;
    if stamped && kind.is_moment(thread.moment == 0) {
        thread.moment = stamp;
    }
}

#[cold]
fn wait_for_room(shared: &Shared, lane: &wire::Lane, head: u64) -> bool {
    let mut rounds = 0u64;
    loop {
        if STOPPED.load(Ordering::Relaxed) || shared.header.host_gone.load(Ordering::Acquire) != 0 {
            STOPPED.store(true, Ordering::Relaxed);
            return false;
        }
        if head - lane.tail.load(Ordering::Acquire) < RING as u64 {
            return true;
        }
        rounds += 1;
        if rounds < 32 {
            sys::yield_now();
        } else {
            sys::pause(200_000);
            if rounds.is_multiple_of(64) && !sys::alive(shared.header.host) {
                STOPPED.store(true, Ordering::Relaxed);
            }
        }
    }
}
