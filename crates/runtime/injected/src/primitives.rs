//! What synchronization primitives do, each in one place: the functions of the C library, of C11 and of
//! annotations that mean the same come here.
//!
//! A primitive does up to three things. It *records* what happened, for the host. In a program that runs
//! freely it passes on what threads know of each other ([`sync`]), for the race check. Under control it
//! has a scheduling point and changes the model of what blocks ([`ops`]), and the race check is off. Each
//! function here decides between the last two once.
//!
//! Ground rules:
//! - What releases is recorded before the real call, what acquires after it.
//! - Under control the model says that the real call succeeds at once, or there is none.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::clock::Clock;
use crate::control::{self, ops};
use crate::errno::Errno;
use crate::rings;
use crate::sync::{self, Object};
use crate::thread::{self, Busy, Thread};
use crate::wire::{ALL, FUTEX, JOIN, OF_STD, RecordKind, SHARED};

/// Where the code of a library begins and ends that says itself what its synchronization means.
static INFORMED: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// The locks and conditions that this code uses itself mean nothing more than it says.
pub fn is_informed(start: usize, end: usize) {
    INFORMED[0].store(start, Ordering::Relaxed);
    INFORMED[1].store(end, Ordering::Relaxed);
}

/// The current thread, if a lock or condition that code at `pc` uses means anything. Under control all of them
/// do: they block.
fn user(pc: usize) -> Option<&'static mut Thread> {
    let [start, end] = [&INFORMED[0], &INFORMED[1]].map(|w| w.load(Ordering::Relaxed));
    thread::me().filter(|t| !(start..end).contains(&pc) || control::of(t).is_some())
}

/// The thread has acquired a lock that excludes all others.
pub fn acquired(lock: usize, pc: usize) {
    acquired_as(lock, 0, pc);
}

/// The same; `flags` may say that the thread did not wait for ever, by [`TRY`](crate::wire::TRY).
pub fn acquired_as(lock: usize, flags: u8, pc: usize) {
    let Some(t) = user(pc) else { return };
    match control::of(t) {
        Some(c) => {
            ops::acquired(c, t, lock, false);
            ops::progressed(c, t);
        }
        None => sync::acquire(t, lock),
    }
    rings::acquired(t, flags, pc, lock);
}

/// The thread is about to wait for a lock that another one holds. Under control the model knows that.
pub fn blocks(lock: usize, shared: bool, pc: usize) {
    if let Some(t) = user(pc).filter(|t| control::of(t).is_none()) {
        rings::blocks(t, u8::from(shared) * SHARED, pc, lock);
    }
}

/// The thread is about to wait for the end of another one.
pub fn joins(other: &Thread, pc: usize) {
    if let Some(t) = thread::me().filter(|t| control::of(t).is_none()) {
        rings::blocks(t, JOIN, pc, other.told_as());
    }
}

/// The thread is about to release a lock that excludes all others.
pub fn releasing(lock: usize, pc: usize) {
    let Some(t) = user(pc) else { return };
    if let Some(c) = control::of(t) {
        ops::before_release(c, t, lock, pc);
        return give_back(c, t, lock, pc);
    }
    rings::releasing(t, 0, pc, lock);
    sync::release(t, lock);
}

/// Under control, the thread releases a lock of any kind.
fn give_back(c: &control::wire::Control, t: &mut Thread, lock: usize, pc: usize) {
    if let Some(shared) = ops::released(c, t, lock) {
        rings::releasing(t, u8::from(shared) * SHARED, pc, lock);
    }
}

/// The thread has acquired a reader-writer lock. A writer learns what writers and readers released, a
/// reader only what writers did: readers do not order each other. `flags` are those of the record.
pub fn rwlock_acquired(lock: usize, flags: u8, pc: usize) {
    let Some(t) = thread::me() else { return };
    let shared = flags & SHARED != 0;
    match control::of(t) {
        Some(c) => {
            ops::acquired(c, t, lock, shared);
            ops::progressed(c, t);
        }
        None => {
            if sync::may_exist(lock) {
                sync::with_existing(t, lock, |t, object| {
                    let Some(object) = object else { return };
                    object.acquire(t);
                    if !shared {
                        t.clock.join(object.second.known());
                    }
                });
            }
            sync::synchronized(t);
            // Which way a lock was taken is in the object, because unlocking does not say.
            sync::with(t, lock, |_, object| object.parties = u32::from(!shared));
        }
    }
    rings::acquired(t, flags, pc, lock);
}

/// The thread is about to release a reader-writer lock.
pub fn rwlock_releasing(lock: usize, pc: usize) {
    let Some(t) = thread::me() else { return };
    if let Some(c) = control::of(t) {
        ops::before_release(c, t, lock, pc);
        return give_back(c, t, lock, pc);
    }
    // While a writer holds the lock no other thread changes this, and while readers hold it it is 0.
    let shared = sync::with(t, lock, |_, object| object.parties == 0);
    rings::releasing(t, u8::from(shared) * SHARED, pc, lock);
    sync::with(t, lock, |t, object| {
        if shared {
            object.second.join(t.clock.known());
        } else {
            object.release(t);
            object.second.clear();
            object.parties = 0;
        }
    });
    t.tick();
}

/// Where a lock of the program's own making releases. What is said of a lock stays, whatever atomic operations
/// there do, except of a lock of Rust's standard library, of which atomics are a part.
fn said_key(lock: usize, flags: u8) -> usize {
    if flags & OF_STD != 0 { lock } else { lock | sync::ANNOTATED }
}

/// The program says that it has acquired a lock of its own making; `flags` as in its record.
pub fn said_acquired(lock: usize, flags: u8, pc: usize) {
    let Some(t) = thread::me() else { return };
    if control::of(t).is_none() {
        sync::acquire(t, said_key(lock, flags));
    }
    rings::acquired(t, flags, pc, lock);
}

/// The program says that it is about to release a lock of its own making.
pub fn said_releasing(lock: usize, flags: u8, pc: usize) {
    let Some(t) = thread::me() else { return };
    rings::releasing(t, flags, pc, lock);
    if control::of(t).is_none() {
        // Readers must not replace what a writer released.
        sync::release_also(t, said_key(lock, flags));
    }
}

/// The object is about to be destroyed.
pub fn destroying(addr: usize, pc: usize) {
    let Some(t) = thread::me() else { return };
    rings::record(t, RecordKind::Destroy, 0, pc, addr, 0);
    match control::of(t) {
        Some(c) => c.renew(addr),
        None => sync::destroy(t, addr),
    }
}

/// A lock was made. Under control, where it was made tells it from others in every execution.
pub fn made(lock: usize, pc: usize) {
    if let Some((c, t)) = control::me() {
        c.renew(lock);
        rings::record(t, RecordKind::Made, 0, pc, lock, 0);
    }
}

/// The thread was woken from waiting on a condition variable. Waking up orders nothing by itself (it may
/// be spurious); the mutex does.
pub fn woken(condition: usize, pc: usize) {
    if let Some(t) = user(pc) {
        rings::record(t, RecordKind::Wake, 0, pc, condition, 0);
    }
}

/// Waits on a condition variable under control: whether it was notified, or nothing if the thread is not
/// controlled. `unlock` and `relock` work on the real mutex.
pub fn wait_on_condition(
    condition: usize,
    mutex: usize,
    deadline: u64,
    pc: usize,
    unlock: impl FnOnce(),
    relock: impl FnOnce(),
) -> Option<bool> {
    let (c, t) = control::me()?;
    ops::enroll(c, t, condition, mutex, pc);
    give_back(c, t, mutex, pc);
    unlock();
    let notified = ops::await_notification(c, t, condition, 0, deadline, pc);
    woken(condition, pc);
    ops::lock(mutex, false, false, 0, pc);
    relock();
    acquired(mutex, pc);
    Some(notified)
}

/// Waiters of a condition variable are about to be woken.
pub fn notifying(condition: usize, all: bool, pc: usize) {
    let Some(t) = user(pc) else { return };
    let flags = u8::from(all) * ALL;
    let c = control::of(t);
    if let Some(c) = c {
        ops::before_notify(c, t, condition, flags, pc);
    }
    rings::record(t, RecordKind::Notify, flags, pc, condition, 0);
    if let Some(c) = c {
        ops::notified(c, t, condition, if all { u32::MAX } else { 1 });
    }
}

/// Even rounds of a barrier use the first clock, odd rounds the second.
fn clock_of(object: &mut Object, round: u32) -> &mut Clock {
    if round.is_multiple_of(2) { &mut object.clock } else { &mut object.second }
}

fn arrive(t: &mut Thread, barrier: usize) -> u32 {
    sync::with(t, barrier, |t, object| {
        let parties = object.parties.max(1);
        let round = object.arrived / parties;
        let side = (round % 2) as usize;
        // The clock of the round before last is free as soon as all threads have left that round.
        if object.arrived.is_multiple_of(parties) && object.inside[side] == 0 {
            clock_of(object, round).clear();
        }
        object.arrived += 1;
        object.inside[side] += 1;
        clock_of(object, round).join(t.clock.known());
        round
    })
}

fn leave(t: &mut Thread, barrier: usize, round: u32) {
    sync::with(t, barrier, |t, object| {
        let side = (round % 2) as usize;
        object.inside[side] = object.inside[side].saturating_sub(1);
        t.clock.join(clock_of(object, round).known());
    });
    sync::synchronized(t);
}

/// What the wait returns to the last thread of a barrier's round.
const SERIAL: c_int = -1;

/// Waits at a barrier for `parties` threads, by `real` in a program that runs freely. A thread that
/// leaves a round is ordered after all that arrived in it, and not after those that have already arrived
/// in the next.
pub fn barrier(
    barrier: usize,
    parties: impl FnOnce() -> u32,
    pc: usize,
    real: impl FnOnce() -> c_int,
) -> c_int {
    let Some(t) = thread::me() else { return real() };
    let c = control::of(t);
    let round = match c {
        Some(c) => ops::arrive(c, t, barrier, pc),
        None => arrive(t, barrier),
    };
    rings::record(t, RecordKind::Arrive, 0, pc, barrier, round as usize);
    let result = match c {
        Some(c) => i32::from(ops::leave(c, t, barrier, round, parties(), pc)) * SERIAL,
        None => {
            t.tick();
            real()
        }
    };
    if (result == 0 || result == SERIAL)
        && let Some(t) = thread::me()
    {
        if c.is_none() {
            leave(t, barrier, round);
        }
        rings::record(t, RecordKind::Leave, 0, pc, barrier, round as usize);
    }
    result
}

/// A barrier for so many threads was made.
pub fn barrier_made(barrier: usize, parties: u32, pc: usize) {
    destroying(barrier, pc);
    if let Some(t) = thread::me().filter(|t| control::of(t).is_none()) {
        sync::with(t, barrier, |_, object| object.parties = parties);
    }
}

/// Increments a semaphore by `real`. A wait is ordered after every earlier post, not only the one it
/// consumed, because which one that was cannot be seen; that can only miss.
pub fn post(
    semaphore: usize,
    pc: usize,
    value: impl Fn() -> u32,
    real: impl FnOnce() -> c_int,
) -> c_int {
    let Some(t) = thread::me() else { return real() };
    let c = control::of(t);
    if let Some(c) = c {
        ops::before_post(c, t, semaphore, pc);
    }
    rings::record(t, RecordKind::Post, 0, pc, semaphore, 0);
    match c {
        Some(c) => {
            let result = real();
            ops::set_value(c, t, semaphore, value(), true);
            result
        }
        None => {
            sync::release_also(t, semaphore);
            real()
        }
    }
}

/// A semaphore was decremented (`taken`), or could not be.
pub fn waited(semaphore: usize, taken: bool, pc: usize, value: impl Fn() -> u32) {
    let Some(t) = thread::me() else { return };
    let _errno = Errno::keep();
    match control::of(t) {
        Some(c) => ops::set_value(c, t, semaphore, value(), taken),
        None if taken => sync::acquire(t, semaphore),
        None => {}
    }
    if taken {
        rings::record(t, RecordKind::Wait, 0, pc, semaphore, 0);
    }
}

/// A thread is about to start.
pub fn forking(t: &mut Thread, child: &Thread, pc: usize) {
    rings::record(t, RecordKind::Fork, 0, pc, child.told_as(), 0);
    t.tick();
}

/// A thread that has ended was joined.
pub fn joined(child: &Thread, pc: usize) {
    let Some(t) = thread::me() else { return };
    if control::of(t).is_none() {
        // As in `Thread::tick`: the clock must not go back.
        let _busy = Busy::new(t);
        t.clock.join(child.clock.known());
    }
    rings::record(t, RecordKind::Join, 0, pc, child.told_as(), 0);
    sync::synchronized(t);
}

/// What the thread has done so far comes before what follows [`happens_after`] of the same key.
pub fn happens_before(key: usize, pc: usize) {
    if let Some(t) = thread::me() {
        rings::record(t, RecordKind::HappensBefore, 0, pc, key, 0);
        if control::of(t).is_none() {
            sync::release_also(t, key);
        }
    }
}

/// What the thread does from now on comes after every earlier [`happens_before`] of the key.
pub fn happens_after(key: usize, pc: usize) {
    if let Some(t) = thread::me() {
        let _errno = Errno::keep();
        if control::of(t).is_none() {
            sync::acquire(t, key);
        }
        rings::record(t, RecordKind::HappensAfter, 0, pc, key, 0);
    }
}

/// The thread comes after everything that any thread has released so far: for waits of which it is not
/// known who ended them. More order than there is can only miss.
pub fn happens_after_all(pc: usize) {
    let Some(t) = thread::me() else { return };
    if control::of(t).is_none() {
        thread::join_all(t);
        sync::synchronized(t);
    }
    rings::record(t, RecordKind::HappensAfter, 0, pc, 0, 0);
}

/// How waiting for a futex under control ended.
pub enum Futex {
    /// The word had another value.
    Different,
    /// A thread woke it.
    Woken,
    /// The time was over.
    TimedOut,
}

/// Waits for a futex under control, if its word is `value`.
///
/// # Safety
/// `addr` is a futex of the program.
pub unsafe fn futex_wait(addr: usize, value: u32, deadline: u64, pc: usize) -> Option<Futex> {
    let (c, t) = control::me()?;
    // SAFETY: the caller's.
    if unsafe { !ops::compare_futex(c, t, addr, value, pc) } {
        return Some(Futex::Different);
    }
    let notified = ops::await_notification(c, t, addr, FUTEX, deadline, pc);
    rings::record(t, RecordKind::Wake, FUTEX, pc, addr, 0);
    happens_after(addr, pc);
    Some(if notified { Futex::Woken } else { Futex::TimedOut })
}

/// Wakes waiters of a futex under control: how many.
pub fn futex_wake(addr: usize, count: u32, pc: usize) -> Option<u32> {
    let (c, t) = control::me()?;
    let flags = ops::futex_flags(count);
    ops::before_notify(c, t, addr, flags, pc);
    happens_before(addr, pc);
    rings::record(t, RecordKind::Notify, flags, pc, addr, 0);
    Some(ops::notified(c, t, addr, count))
}

/// Enters a one-time initialisation, under control when no other thread is in it; `done` says that it is
/// over.
pub fn entering_once(once: usize, done: bool, pc: usize) {
    if let Some((c, t)) = control::me() {
        if !done {
            ops::lock(once, false, false, 0, pc);
        }
        ops::acquired(c, t, once, false);
        rings::acquired(t, 0, pc, once);
    }
}

/// A one-time initialisation was made, by this or another thread: the thread comes after it.
pub fn initialised(once: usize, pc: usize) {
    if thread::me().is_some_and(|t| control::of(t).is_none()) {
        happens_after(once, pc);
    }
}

/// This thread has made a one-time initialisation.
pub fn initialising(once: usize, pc: usize) {
    if let Some(t) = thread::me().filter(|t| control::of(t).is_none()) {
        rings::record(t, RecordKind::HappensBefore, 0, pc, once, 0);
        sync::release(t, once);
    }
}

/// Leaves a one-time initialisation under control.
pub fn leaving_once(once: usize, pc: usize) {
    if let Some((c, t)) = control::me() {
        give_back(c, t, once, pc);
    }
}
