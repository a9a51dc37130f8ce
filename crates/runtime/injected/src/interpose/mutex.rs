//! Mutexes and spinlocks of pthreads.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::real;
use crate::abi::with_pc;
use crate::control::{self, ops, time};
use crate::rings;
use crate::sync;
use crate::thread;
use crate::wire::RecordKind;

/// The lock was acquired although its owner died: it is held all the same.
const OWNER_DEAD: c_int = 130;

/// The thread has acquired a lock that excludes all others.
pub fn acquired(addr: usize, pc: usize) {
    if control::is_on() && ops::acquired(addr, false, pc) {
        return;
    }
    if let Some(t) = thread::me() {
        sync::acquire(t, addr);
        rings::acquired(t, 0, pc, addr);
    }
}

/// The thread is about to release it.
pub fn releasing(addr: usize, pc: usize) {
    if control::is_on() && ops::releasing(addr, pc) {
        return;
    }
    if let Some(t) = thread::me() {
        rings::releasing(t, 0, pc, addr);
        sync::release(t, addr);
    }
}

/// The object is about to be destroyed.
pub fn destroying(addr: usize, pc: usize) {
    if control::is_on() && ops::renewed(addr) {
        return;
    }
    if let Some(t) = thread::me() {
        rings::record(t, RecordKind::Destroy, 0, pc, addr, 0);
        sync::destroy(t, addr);
    }
}

fn held(result: c_int) -> bool {
    result == 0 || result == OWNER_DEAD
}

/// The clock and the time of a timed acquisition; the clock that counts from the epoch, which is 0, and
/// null if they are not given.
pub fn last_two(arguments: &[usize]) -> [usize; 2] {
    [arguments[arguments.len() - 2], arguments[arguments.len() - 1]]
}

/// Under control, waits until the mutex can be acquired; false if the time is over.
pub fn mutex_gate(lock: usize, [clock, time]: [usize; 2], pc: usize) -> bool {
    // SAFETY: the program's mutex and time.
    let (reentrant, deadline) = unsafe { (ops::reentrant(lock), time::deadline(clock, time)) };
    ops::lock(lock, false, reentrant, deadline, pc)
}

/// Under control, a scheduling point.
pub fn try_gate(lock: usize, _: [usize; 2], pc: usize) -> bool {
    ops::try_lock(lock, false, pc);
    true
}

fn spin_gate(lock: usize, _: [usize; 2], pc: usize) -> bool {
    ops::lock(lock, false, false, 0, pc)
}

macro_rules! locks {
    ($($imp:ident $name:ident($($arg:ident),*) $gate:expr;)*) => {$(
        unsafe extern "C" fn $imp(lock: usize, $($arg: usize,)* pc: usize) -> c_int {
            let gate: fn(usize, [usize; 2], usize) -> bool = $gate;
            if control::is_on() && !gate(lock, last_two(&[0, 0, $($arg),*]), pc) {
                return ops::ETIMEDOUT;
            }
            let result = real!($name(lock $(, $arg)*) as fn(usize $(, locks!(@ $arg))*) -> c_int);
            if result == OWNER_DEAD {
                super::pthread::after_ended_threads();
            }
            if held(result) {
                acquired(lock, pc);
            }
            result
        }
    )*};
    (@ $arg:ident) => { usize };
}

locks! {
    lock pthread_mutex_lock() mutex_gate;
    trylock pthread_mutex_trylock() try_gate;
    timedlock pthread_mutex_timedlock(time) mutex_gate;
    clocklock pthread_mutex_clocklock(clock, time) mutex_gate;
    spin_lock pthread_spin_lock() spin_gate;
    spin_trylock pthread_spin_trylock() try_gate;
}

unsafe extern "C" fn unlock(lock: usize, pc: usize) -> c_int {
    releasing(lock, pc);
    real!(pthread_mutex_unlock(lock) as fn(usize) -> c_int)
}

unsafe extern "C" fn spin_unlock(lock: usize, pc: usize) -> c_int {
    releasing(lock, pc);
    real!(pthread_spin_unlock(lock) as fn(usize) -> c_int)
}

unsafe extern "C" fn init(lock: usize, attributes: usize, pc: usize) -> c_int {
    let result = real!(pthread_mutex_init(lock, attributes) as fn(usize, usize) -> c_int);
    if result == 0 {
        ops::made(lock, pc);
    }
    result
}

unsafe extern "C" fn destroy(lock: usize, pc: usize) -> c_int {
    let result = real!(pthread_mutex_destroy(lock) as fn(usize) -> c_int);
    if result == 0 {
        destroying(lock, pc);
    }
    result
}

unsafe extern "C" fn spin_destroy(lock: usize, pc: usize) -> c_int {
    destroying(lock, pc);
    real!(pthread_spin_destroy(lock) as fn(usize) -> c_int)
}

with_pc! {
    pthread_mutex_lock => lock, "rsi";
    pthread_mutex_trylock => trylock, "rsi";
    pthread_mutex_timedlock => timedlock, "rdx";
    pthread_mutex_clocklock => clocklock, "rcx";
    pthread_mutex_unlock => unlock, "rsi";
    pthread_mutex_init => init, "rdx";
    pthread_mutex_destroy => destroy, "rsi";
    pthread_spin_lock => spin_lock, "rsi";
    pthread_spin_trylock => spin_trylock, "rsi";
    pthread_spin_unlock => spin_unlock, "rsi";
    pthread_spin_destroy => spin_destroy, "rsi";
}
