//! Misuse of synchronization objects, signal handlers and threads: what no schedule allows. Misuse of
//! descriptors and of memory is found where those are tracked (`interpose::channels`, `fasttrack`).
//!
//! The C library's own objects say who holds them, how many wait, and mostly whether they were destroyed (GNU C
//! library, `sysdeps/nptl/bits`, since 2.25). Where an object does not say that it was initialised or destroyed,
//! a mark in a part of it that the library does not use says so: initialising the object again, by a function or
//! by assignment, takes the mark away.
//!
//! Guarantee: reports only what happens, in the thread that does it. A mutex that finds mistakes by itself (error
//! checking, recursive, robust) reports them by itself, and is not looked at. May miss: a lock that lies in zeroed
//! memory and was never initialised, because that is what the static initialisers are; readers that unlock a
//! reader-writer lock that other readers hold; spinlocks after their destruction.
//!
//! Cost: one or two loads for each operation on an object.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::arch::glibc::{barrier, condition, mutex, rwlock, semaphore};
use crate::errno::Errno;
use crate::report::{self, Misused, Other};
use crate::rings;
use crate::shadow::Cell;
use crate::sync;
use crate::thread::{self, Thread, state};
use crate::wire::{AccessKind, MisuseKind, ObjectKind};

fn word(addr: usize, offset: usize) -> &'static AtomicU32 {
    // SAFETY: an object of the C library that the program is about to pass to the library, which reads it as well;
    // the words of these structures are aligned.
    unsafe { &*((addr + offset) as *const AtomicU32) }
}

fn load(addr: usize, offset: usize) -> u32 {
    word(addr, offset).load(Ordering::Relaxed)
}

#[cold]
fn found(kind: MisuseKind, of: ObjectKind, addr: usize, part: AccessKind, pc: usize) {
    let Some(t) = thread::me().filter(|_| rings::finds_misuse()) else { return };
    let _errno = Errno::keep();
    let other = waiter(t, addr).filter(|_| kind == MisuseKind::DestroyedAwaited);
    report::misuse(t, &Misused { kind, detail: of as u32, addr, part }, other.as_ref(), pc);
}

/// A thread that waits for the object.
fn waiter(t: &Thread, object: usize) -> Option<Other> {
    thread::all().filter(|other| other.index != t.index).find_map(|other| {
        let is_here = other.waits_for.load(Ordering::Acquire) == object;
        is_here.then(|| Other {
            thread: other.number,
            kind: AccessKind::WaitFor,
            pc: other.waits_at.load(Ordering::Relaxed) as u64,
            cell: Cell(0),
        })
    })
}

/// The thread is about to wait for the object.
pub fn waits(object: usize, pc: usize) {
    if let Some(t) = thread::me() {
        t.waits_at.store(pc, Ordering::Relaxed);
        t.waits_for.store(object, Ordering::Release);
    }
}

/// It does not wait any more.
pub fn waited() {
    if let Some(t) = thread::me() {
        t.waits_for.store(0, Ordering::Release);
    }
}

/// A mutex is about to be locked.
pub fn mutex_locks(lock: usize, pc: usize) {
    mutex_used(lock, AccessKind::Lock, pc);
}

fn mutex_used(lock: usize, part: AccessKind, pc: usize) -> bool {
    let kind = load(lock, mutex::KIND);
    if kind & mutex::NEVER == 0 {
        return true;
    }
    let how = match kind {
        mutex::DESTROYED => MisuseKind::UsedDestroyed,
        _ => MisuseKind::UsedUninitialised,
    };
    found(how, ObjectKind::Mutex, lock, part, pc);
    false
}

/// A mutex is about to be unlocked.
pub fn mutex_unlocks(lock: usize, pc: usize) {
    let t = thread::current();
    // SAFETY: null or the thread's own block.
    if t.is_null() || load(lock, mutex::OWNER) == unsafe { (*t).tid } {
        return;
    }
    if !mutex_used(lock, AccessKind::Unlock, pc) || !mutex::is_simple(load(lock, mutex::KIND)) {
        return;
    }
    let how = match load(lock, mutex::LOCK) {
        0 => MisuseKind::UnlockedFree,
        _ => MisuseKind::UnlockedByOther,
    };
    found(how, ObjectKind::Mutex, lock, AccessKind::Unlock, pc);
}

/// A mutex is about to be destroyed.
pub fn mutex_destroys(lock: usize, pc: usize) {
    if !mutex_used(lock, AccessKind::Destroy, pc) {
        return;
    }
    let how = if load(lock, mutex::LOCK) != 0 {
        MisuseKind::DestroyedHeld
    } else if load(lock, mutex::USERS) != 0 && mutex::is_simple(load(lock, mutex::KIND)) {
        // A thread that waits on a condition variable will want it back.
        MisuseKind::DestroyedAwaited
    } else {
        return;
    };
    found(how, ObjectKind::Mutex, lock, AccessKind::Destroy, pc);
}

/// What stands in the unused word of an object after it was initialised, and after it was destroyed.
const INITIALISED: u32 = 0x5e1e_d6e1;
const DESTROYED: u32 = 0x5e1e_d6ed;

/// A reader-writer lock is about to be locked.
pub fn rwlock_locks(lock: usize, pc: usize) {
    marked(lock, rwlock::MARK, ObjectKind::RwLock, AccessKind::Lock, pc);
}

/// Whether the object was destroyed, which is reported.
fn marked(addr: usize, mark: usize, of: ObjectKind, part: AccessKind, pc: usize) -> bool {
    let destroyed = load(addr, mark) == DESTROYED;
    if destroyed {
        found(MisuseKind::UsedDestroyed, of, addr, part, pc);
    }
    destroyed
}

/// A reader-writer lock is about to be unlocked.
pub fn rwlock_unlocks(lock: usize, pc: usize) {
    let t = thread::current();
    let writer = load(lock, rwlock::WRITER);
    // SAFETY: null or the thread's own block.
    if t.is_null() || writer == unsafe { (*t).tid } {
        return;
    }
    if marked(lock, rwlock::MARK, ObjectKind::RwLock, AccessKind::Unlock, pc) {
        return;
    }
    let readers = load(lock, rwlock::READERS);
    let how = if writer != 0 {
        MisuseKind::UnlockedByOther
    } else if readers >> rwlock::COUNT_SHIFT == 0 && readers & rwlock::WRITE_LOCKED == 0 {
        MisuseKind::UnlockedFree
    } else {
        return;
    };
    found(how, ObjectKind::RwLock, lock, AccessKind::Unlock, pc);
}

/// A reader-writer lock is about to be destroyed.
pub fn rwlock_destroys(lock: usize, pc: usize) {
    if marked(lock, rwlock::MARK, ObjectKind::RwLock, AccessKind::Destroy, pc) {
        return;
    }
    let readers = load(lock, rwlock::READERS);
    if readers >> rwlock::COUNT_SHIFT != 0 || readers & rwlock::WRITE_LOCKED != 0 {
        found(MisuseKind::DestroyedHeld, ObjectKind::RwLock, lock, AccessKind::Destroy, pc);
    }
    word(lock, rwlock::MARK).store(DESTROYED, Ordering::Relaxed);
}

/// A spinlock is about to be unlocked or destroyed. It is 1 while no thread has it.
pub fn spinlock(lock: usize, part: AccessKind, pc: usize) {
    let is_free = load(lock, 0) == 1;
    let how = match (part, is_free) {
        (AccessKind::Unlock, true) => MisuseKind::UnlockedFree,
        (AccessKind::Destroy, false) => MisuseKind::DestroyedHeld,
        _ => return,
    };
    found(how, ObjectKind::Spinlock, lock, part, pc);
}

/// A condition variable is about to be used.
pub fn condition_used(condition: usize, part: AccessKind, pc: usize) {
    if load(condition, condition::WAITERS) & condition::DESTROYED != 0 {
        found(MisuseKind::UsedDestroyed, ObjectKind::Condition, condition, part, pc);
    }
}

/// The thread is about to wait on a condition variable, in a program that runs freely.
pub fn condition_waits(condition: usize, pc: usize) {
    condition_used(condition, AccessKind::WaitFor, pc);
    waits(condition, pc);
    if let Some(t) = thread::me() {
        sync::with(t, condition, |_, object| object.arrived += 1);
    }
}

/// The thread does not wait any more; `unasked` if no other thread has woken it.
pub fn condition_waited(condition: usize, unasked: bool) {
    waited();
    if unasked {
        condition_notified(condition, false);
    }
}

/// One or all waiters of a condition variable are about to be woken.
pub fn condition_notified(condition: usize, all: bool) {
    if sync::may_exist(condition)
        && let Some(t) = thread::me()
    {
        sync::with(t, condition, |_, object| {
            object.arrived = if all { 0 } else { object.arrived.saturating_sub(1) };
        });
    }
}

/// A condition variable is about to be destroyed: threads that were woken may still be inside a wait, threads that
/// were not must not be.
pub fn condition_destroys(condition: usize, pc: usize) {
    condition_used(condition, AccessKind::Destroy, pc);
    let inside = load(condition, condition::WAITERS) >> condition::COUNT_SHIFT;
    let asleep = match thread::me() {
        Some(t) if inside != 0 && sync::may_exist(condition) => {
            sync::with(t, condition, |_, object| object.arrived)
        }
        _ => 0,
    };
    if asleep != 0 {
        let of = ObjectKind::Condition;
        found(MisuseKind::DestroyedAwaited, of, condition, AccessKind::Destroy, pc);
    }
}

/// A thread is about to wait at a barrier.
pub fn barrier_waits(barrier: usize, pc: usize) {
    let (of, part) = (ObjectKind::Barrier, AccessKind::Use);
    if !marked(barrier, barrier::MARK, of, part, pc) && load(barrier, barrier::COUNT) == 0 {
        found(MisuseKind::UsedUninitialised, of, barrier, part, pc);
    }
}

/// A barrier was initialised.
pub fn barrier_made(barrier: usize) {
    word(barrier, barrier::MARK).store(INITIALISED, Ordering::Relaxed);
}

/// A barrier is about to be destroyed.
pub fn barrier_destroys(barrier: usize, pc: usize) {
    let (of, part) = (ObjectKind::Barrier, AccessKind::Destroy);
    if marked(barrier, barrier::MARK, of, part, pc) {
        return;
    }
    let waits = match thread::me() {
        Some(t) if !crate::control::is_on() && sync::may_exist(barrier) => {
            sync::with(t, barrier, |_, object| object.arrived % object.parties.max(1) != 0)
        }
        _ => false,
    };
    if waits {
        found(MisuseKind::DestroyedAwaited, of, barrier, part, pc);
    }
    word(barrier, barrier::MARK).store(DESTROYED, Ordering::Relaxed);
}

/// A semaphore is about to be used. One that another process has initialised is not private, so that it is not zero.
pub fn semaphore_used(semaphore: usize, pc: usize) {
    let (of, part) = (ObjectKind::Semaphore, AccessKind::Use);
    match load(semaphore, semaphore::MARK) {
        INITIALISED => {}
        DESTROYED => found(MisuseKind::UsedDestroyed, of, semaphore, part, pc),
        _ => {
            use self::semaphore::{PRIVATE, VALUE, WAITERS};
            if [VALUE, WAITERS, PRIVATE].iter().all(|&offset| load(semaphore, offset) == 0) {
                found(MisuseKind::UsedUninitialised, of, semaphore, part, pc);
            }
        }
    }
}

/// A semaphore was initialised.
pub fn semaphore_made(semaphore: usize) {
    word(semaphore, semaphore::MARK).store(INITIALISED, Ordering::Relaxed);
}

/// A semaphore is about to be destroyed.
pub fn semaphore_destroys(semaphore: usize, pc: usize) {
    let (of, part) = (ObjectKind::Semaphore, AccessKind::Destroy);
    if marked(semaphore, semaphore::MARK, of, part, pc) {
        return;
    }
    let waiters = load(semaphore, semaphore::WAITERS);
    if load(semaphore, semaphore::VALUE) == 0 && waiters != 0 {
        found(MisuseKind::DestroyedAwaited, of, semaphore, part, pc);
    }
    word(semaphore, semaphore::MARK).store(DESTROYED, Ordering::Relaxed);
}

/// Where the handler of each signal was installed, and by which thread.
static INSTALLED: [(AtomicUsize, AtomicU32); 65] =
    [const { (AtomicUsize::new(0), AtomicU32::new(0)) }; 65];

/// The handler of a signal is installed.
pub fn installs(signal: usize, pc: usize) {
    if let (Some((at, by)), Some(t)) = (INSTALLED.get(signal), thread::me()) {
        by.store(t.number, Ordering::Relaxed);
        at.store(pc, Ordering::Release);
    }
}

/// What a thread was in the middle of when its signal came.
pub struct Handling {
    signal: u32,
    errno: i32,
}

/// The thread is about to run a handler. If the signal came by itself (`strikes`), it may have interrupted anything.
pub fn handles(signal: usize, strikes: bool) -> Handling {
    let mut before = Handling { signal: 0, errno: Errno::get() };
    if let Some(t) = thread::me() {
        before.signal = t.handles;
        let strikes = strikes && t.expects_signal == 0;
        t.handles = if strikes { signal as u32 } else { 0 };
    }
    before
}

/// The thread has run the handler, whose function is at `handler`.
pub fn handled(before: &Handling, handler: usize) {
    let after = Errno::get();
    if let Some(t) = thread::me() {
        let signal = core::mem::replace(&mut t.handles, before.signal);
        if signal != 0 && after != before.errno {
            in_handler(t, MisuseKind::ChangedErrno, signal, 0, AccessKind::Handle, handler + 1);
        }
    }
    Errno::set(after);
}

#[cold]
fn in_handler(
    t: &mut Thread,
    kind: MisuseKind,
    signal: u32,
    function: u32,
    part: AccessKind,
    pc: usize,
) {
    let _errno = Errno::keep();
    let other = INSTALLED.get(signal as usize).map(|(at, by)| Other {
        thread: by.load(Ordering::Relaxed),
        kind: AccessKind::Install,
        pc: at.load(Ordering::Acquire) as u64,
        cell: Cell(0),
    });
    let other = other.filter(|o| o.pc != 0);
    report::misuse(
        t,
        &Misused { kind, detail: signal | function << 8, addr: 0, part },
        other.as_ref(),
        pc,
    );
}

/// The thread jumps, perhaps out of a handler.
pub fn jumps(t: &mut Thread) {
    t.handles = 0;
    t.expects_signal = 0;
    t.waits_for.store(0, Ordering::Release);
}

/// The thread calls a function of [`UNSAFE`](crate::wire::UNSAFE), by its number there.
#[inline]
pub fn calls(t: &mut Thread, function: u32, pc: usize) {
    if t.handles != 0 {
        let signal = t.handles;
        in_handler(t, MisuseKind::UnsafeCall, signal, function, AccessKind::Call, pc);
    }
}

/// The same, wherever the thread is.
#[inline]
pub fn calls_unsafe(function: u32, pc: usize) {
    if let Some(t) = thread::me() {
        calls(t, function, pc);
    }
}

/// While it lives, the thread is in a call during which handlers may do what they like: it waits for signals, or
/// has sent one to itself.
pub struct ExpectsSignal;

impl ExpectsSignal {
    /// Begins.
    pub fn begin() -> ExpectsSignal {
        if let Some(t) = thread::me() {
            t.expects_signal += 1;
        }
        ExpectsSignal
    }
}

impl Drop for ExpectsSignal {
    fn drop(&mut self) {
        if let Some(t) = thread::me() {
            t.expects_signal = t.expects_signal.saturating_sub(1);
        }
    }
}

/// The program ends: reports threads that have ended and that no thread has joined.
pub fn at_end() {
    let Some(t) = thread::me() else { return };
    for other in thread::all() {
        let ended = other.state.load(Ordering::Acquire) == state::ENDED;
        if ended && other.detached.load(Ordering::Acquire) == 0 && other.index != t.index {
            let other = Other {
                thread: other.number,
                kind: AccessKind::Start,
                pc: other.started_at as u64,
                cell: Cell(0),
            };
            let what = Misused {
                kind: MisuseKind::NeverJoined,
                detail: 0,
                addr: 0,
                part: AccessKind::Start,
            };
            report::misuse(t, &what, Some(&other), other.pc as usize);
        }
    }
}
