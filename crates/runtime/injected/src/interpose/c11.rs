//! C11 threads. The C library implements them beside pthreads, not through them.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::{c_int, c_void};

use super::{cond, mutex, real, waits_for};
use crate::arch::with_pc;
use crate::control::time;
use crate::misuse;
use crate::primitives::{acquired_as, destroying, notifying, releasing};
use crate::wire::TRY;

const SUCCESS: c_int = 0;
const NO_MEMORY: c_int = 3;
const ERROR: c_int = 2;
const TIMED_OUT: c_int = 4;

fn gate(lock: usize, time: [usize; 2], pc: usize) -> Result<(), c_int> {
    if mutex::wait_for_mutex(lock, time, pc) { Ok(()) } else { Err(TIMED_OUT) }
}

fn locked<const FLAGS: u8>(lock: usize, result: c_int, pc: usize) {
    if result == SUCCESS {
        acquired_as(lock, FLAGS, pc);
    }
}

waits_for! {
    lock mtx_lock() [mutex::locks] gate, locked::<0>, unless mtx_trylock is 1, mutex::waits;
    trylock mtx_trylock() [mutex::locks] mutex::try_gate, locked::<TRY>;
    timedlock mtx_timedlock(time) [mutex::locks] gate, locked::<TRY>;
}

unsafe extern "C" fn unlock(lock: usize, pc: usize) -> c_int {
    misuse::mutex_unlocks(lock, pc);
    releasing(lock, pc);
    real!(mtx_unlock(lock) as fn(usize) -> c_int)
}

unsafe extern "C" fn destroy(lock: usize, pc: usize) {
    misuse::mutex_destroys(lock, pc);
    destroying(lock, pc);
    real!(mtx_destroy(lock) as fn(usize) -> ());
}

unsafe extern "C" fn wait(condition: usize, lock: usize, pc: usize) -> c_int {
    cond::wait(condition, lock, pc, (0, TIMED_OUT), || {
        real!(cnd_wait(condition, lock) as fn(usize, usize) -> c_int)
    })
}

unsafe extern "C" fn timedwait(condition: usize, lock: usize, time: usize, pc: usize) -> c_int {
    // SAFETY: the program's time.
    let deadline = unsafe { time::deadline(time::REALTIME, time) };
    cond::wait(condition, lock, pc, (deadline, TIMED_OUT), || {
        real!(cnd_timedwait(condition, lock, time) as fn(usize, usize, usize) -> c_int)
    })
}

unsafe extern "C" fn signal(condition: usize, pc: usize) -> c_int {
    cond::notifies(condition, false, pc);
    notifying(condition, false, pc);
    real!(cnd_signal(condition) as fn(usize) -> c_int)
}

unsafe extern "C" fn broadcast(condition: usize, pc: usize) -> c_int {
    cond::notifies(condition, true, pc);
    notifying(condition, true, pc);
    real!(cnd_broadcast(condition) as fn(usize) -> c_int)
}

unsafe extern "C" fn cond_destroy(condition: usize, pc: usize) {
    misuse::condition_destroys(condition, pc);
    destroying(condition, pc);
    real!(cnd_destroy(condition) as fn(usize) -> ());
}

unsafe extern "C" {
    fn pthread_create(id: *mut usize, attr: usize, f: usize, arg: usize) -> c_int;
    fn pthread_join(id: usize, value: *mut *mut c_void) -> c_int;
    fn pthread_detach(id: usize) -> c_int;
}

/// A C11 thread is a pthread whose function returns an int. The int goes through the pointer that
/// pthreads carry, as in the C library itself.
unsafe extern "C" fn create(id: *mut usize, function: usize, argument: usize, pc: usize) -> c_int {
    let _ = pc;
    // SAFETY: `pthread_create` is our own entry; an int result occupies the low half of the register
    // that a pointer result is returned in.
    match unsafe { pthread_create(id, 0, function, argument) } {
        0 => SUCCESS,
        12 | 11 => NO_MEMORY,
        _ => ERROR,
    }
}

unsafe extern "C" fn join(id: usize, result: *mut c_int, _pc: usize) -> c_int {
    let mut value = core::ptr::null_mut();
    // SAFETY: our own entry; `value` and `result` are valid for writing.
    unsafe {
        if pthread_join(id, &raw mut value) != 0 {
            return ERROR;
        }
        if !result.is_null() {
            result.write(value as usize as c_int);
        }
    }
    SUCCESS
}

unsafe extern "C" fn detach(id: usize, _pc: usize) -> c_int {
    // SAFETY: our own entry.
    if unsafe { pthread_detach(id) } == 0 { SUCCESS } else { ERROR }
}

with_pc! {
    mtx_lock => lock, 1;
    mtx_trylock => trylock, 1;
    mtx_timedlock => timedlock, 2;
    mtx_unlock => unlock, 1;
    mtx_destroy => destroy, 1;
    cnd_wait => wait, 2;
    cnd_timedwait => timedwait, 3;
    cnd_signal => signal, 1;
    cnd_broadcast => broadcast, 1;
    cnd_destroy => cond_destroy, 1;
    thrd_create => create, 3;
    thrd_join => join, 2;
    thrd_detach => detach, 1;
}
