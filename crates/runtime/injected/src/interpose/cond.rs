//! Condition variables of pthreads.
//!
//! A thread that is cancelled while it waits gets the mutex back before its cleanup handlers run; a
//! handler of our own, registered around the wait, sees that.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use super::{memory, real};
use crate::arch::glibc::condition;
use crate::arch::with_pc;
use crate::control::{ops, time};
use crate::misuse;
use crate::primitives::{self, acquired, destroying, notifying, releasing};
use crate::wire::AccessKind;

#[repr(C)]
struct Cleanup {
    routine: usize,
    arg: *mut c_void,
    kind: c_int,
    previous: usize,
}

unsafe extern "C" {
    fn _pthread_cleanup_push(
        buffer: *mut Cleanup,
        routine: unsafe extern "C" fn(*mut c_void),
        arg: *mut c_void,
    );
    fn pthread_testcancel();
    fn _pthread_cleanup_pop(buffer: *mut Cleanup, execute: c_int);
}

struct Waiting {
    cond: usize,
    mutex: usize,
    pc: usize,
    /// No other thread has woken it: it was cancelled, or the time is over.
    unasked: AtomicBool,
}

unsafe extern "C" fn woken(waiting: *mut c_void) {
    // SAFETY: registered with a `Waiting` that lives in the frame of `wait`.
    let waiting = unsafe { &*waiting.cast::<Waiting>() };
    misuse::condition_waited(waiting.cond, waiting.unasked.load(Ordering::Relaxed));
    primitives::woken(waiting.cond, waiting.pc);
    acquired(waiting.mutex, waiting.pc);
}

/// Waits by `real`, giving the mutex up meanwhile. Under control it waits in the model, until the
/// given virtual time, and returns the given code when that is over.
pub fn wait(
    cond: usize,
    mutex: usize,
    pc: usize,
    (deadline, timed_out): (u64, c_int),
    real: impl FnOnce() -> c_int,
) -> c_int {
    memory::uses(cond, pc);
    let (unlock, relock) = (|| unlock(mutex), || relock(mutex));
    let controlled = primitives::wait_on_condition(cond, mutex, deadline, pc, unlock, relock);
    if let Some(notified) = controlled {
        // SAFETY: a thread that is cancelled here has the mutex, as it should.
        unsafe { pthread_testcancel() };
        return if notified || deadline == 0 { 0 } else { timed_out };
    }
    misuse::condition_waits(cond, pc);
    releasing(mutex, pc);
    let mut waiting = Waiting { cond, mutex, pc, unasked: AtomicBool::new(true) };
    let mut cleanup = Cleanup { routine: 0, arg: core::ptr::null_mut(), kind: 0, previous: 0 };
    // SAFETY: both structures outlive the wait; the handler is popped before they go.
    unsafe { _pthread_cleanup_push(&raw mut cleanup, woken, (&raw mut waiting).cast()) };
    let result = real();
    waiting.unasked.store(result != 0, Ordering::Relaxed);
    // SAFETY: pushed above. Executing it is what normal wake-up needs as well.
    unsafe { _pthread_cleanup_pop(&raw mut cleanup, 1) };
    result
}

fn unlock(mutex: usize) {
    real!(pthread_mutex_unlock(mutex) as fn(usize) -> c_int);
}

fn relock(mutex: usize) {
    real!(pthread_mutex_lock(mutex) as fn(usize) -> c_int);
}

/// The virtual time of a wait without a clock of its own: the condition variable has one.
fn deadline(cond: usize, time: usize) -> u64 {
    // SAFETY: the program's condition variable and time.
    unsafe {
        let monotonic =
            ((cond + condition::WAITERS) as *const u32).read() & condition::MONOTONIC != 0;
        time::deadline(usize::from(monotonic), time)
    }
}

unsafe extern "C" fn cond_wait(cond: usize, mutex: usize, pc: usize) -> c_int {
    wait(
        cond,
        mutex,
        pc,
        (0, 0),
        || real!(pthread_cond_wait @ "GLIBC_2.3.2" (cond, mutex) as fn(usize, usize) -> c_int),
    )
}

unsafe extern "C" fn timedwait(cond: usize, mutex: usize, time: usize, pc: usize) -> c_int {
    wait(cond, mutex, pc, (deadline(cond, time), ops::ETIMEDOUT), || {
        real!(pthread_cond_timedwait @ "GLIBC_2.3.2" (cond, mutex, time)
            as fn(usize, usize, usize) -> c_int)
    })
}

unsafe extern "C" fn clockwait(
    cond: usize,
    mutex: usize,
    clock: usize,
    time: usize,
    pc: usize,
) -> c_int {
    // SAFETY: the program's time.
    let deadline = unsafe { time::deadline(clock, time) };
    wait(cond, mutex, pc, (deadline, ops::ETIMEDOUT), || {
        real!(pthread_cond_clockwait(cond, mutex, clock, time)
            as fn(usize, usize, usize, usize) -> c_int)
    })
}

/// Waiters are about to be woken.
pub fn notifies(cond: usize, all: bool, pc: usize) {
    const SIGNAL: u32 = 6;
    misuse::calls_unsafe(SIGNAL, pc);
    misuse::condition_used(cond, AccessKind::Use, pc);
    if !crate::control::is_on() {
        misuse::condition_notified(cond, all);
    }
}

unsafe extern "C" fn signal(cond: usize, pc: usize) -> c_int {
    memory::uses(cond, pc);
    notifies(cond, false, pc);
    notifying(cond, false, pc);
    real!(pthread_cond_signal @ "GLIBC_2.3.2" (cond) as fn(usize) -> c_int)
}

unsafe extern "C" fn broadcast(cond: usize, pc: usize) -> c_int {
    memory::uses(cond, pc);
    notifies(cond, true, pc);
    notifying(cond, true, pc);
    real!(pthread_cond_broadcast @ "GLIBC_2.3.2" (cond) as fn(usize) -> c_int)
}

unsafe extern "C" fn init(cond: usize, attr: usize, _pc: usize) -> c_int {
    real!(pthread_cond_init @ "GLIBC_2.3.2" (cond, attr) as fn(usize, usize) -> c_int)
}

unsafe extern "C" fn destroy(cond: usize, pc: usize) -> c_int {
    misuse::condition_destroys(cond, pc);
    memory::destroys(cond, pc);
    destroying(cond, pc);
    real!(pthread_cond_destroy @ "GLIBC_2.3.2" (cond) as fn(usize) -> c_int)
}

with_pc! {
    pthread_cond_wait => cond_wait, 2;
    pthread_cond_timedwait => timedwait, 3;
    pthread_cond_clockwait => clockwait, 4;
    pthread_cond_signal => signal, 1;
    pthread_cond_broadcast => broadcast, 1;
    pthread_cond_init => init, 2;
    pthread_cond_destroy => destroy, 1;
}
