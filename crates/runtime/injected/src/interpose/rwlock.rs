//! Reader-writer locks. A writer learns what writers and readers released, a reader only what writers
//! did: readers do not order each other.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::real;
use crate::abi::with_pc;
use crate::control::{self, ops, time};
use crate::rings;
use crate::sync;
use crate::thread;

fn acquired(lock: usize, shared: bool, pc: usize) {
    if control::is_on() && ops::acquired(lock, shared, pc) {
        return;
    }
    let Some(t) = thread::me() else { return };
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
    rings::acquired(t, u8::from(shared), pc, lock);
}

fn releasing(lock: usize, pc: usize) {
    if control::is_on() && ops::releasing(lock, pc) {
        return;
    }
    let Some(t) = thread::me() else { return };
    // While a writer holds the lock nobody else changes this, and while readers hold it it is 0.
    let shared = sync::with(t, lock, |_, object| object.parties == 0);
    rings::releasing(t, u8::from(shared), pc, lock);
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

/// Under control, waits until the lock can be acquired; false if the time is over. A writer that wants
/// the lock again is told that it must not.
fn gate(lock: usize, shared: bool, [clock, time]: [usize; 2], pc: usize) -> bool {
    // SAFETY: the program's time.
    let deadline = unsafe { time::deadline(clock, time) };
    ops::lock(lock, shared, true, deadline, pc)
}

fn try_gate(lock: usize, shared: bool, _: [usize; 2], pc: usize) -> bool {
    ops::try_lock(lock, shared, pc);
    true
}

macro_rules! locks {
    ($($imp:ident $name:ident($($arg:ident),*) $shared:literal $gate:ident;)*) => {$(
        unsafe extern "C" fn $imp(lock: usize, $($arg: usize,)* pc: usize) -> c_int {
            if control::is_on() && !$gate(lock, $shared, super::mutex::last_two(&[0, 0, $($arg),*]), pc) {
                return ops::ETIMEDOUT;
            }
            let result = real!($name(lock $(, $arg)*) as fn(usize $(, locks!(@ $arg))*) -> c_int);
            if result == 0 {
                acquired(lock, $shared, pc);
            }
            result
        }
    )*};
    (@ $arg:ident) => { usize };
}

locks! {
    rdlock pthread_rwlock_rdlock() true gate;
    tryrdlock pthread_rwlock_tryrdlock() true try_gate;
    timedrdlock pthread_rwlock_timedrdlock(time) true gate;
    clockrdlock pthread_rwlock_clockrdlock(clock, time) true gate;
    wrlock pthread_rwlock_wrlock() false gate;
    trywrlock pthread_rwlock_trywrlock() false try_gate;
    timedwrlock pthread_rwlock_timedwrlock(time) false gate;
    clockwrlock pthread_rwlock_clockwrlock(clock, time) false gate;
}

unsafe extern "C" fn unlock(lock: usize, pc: usize) -> c_int {
    releasing(lock, pc);
    real!(pthread_rwlock_unlock(lock) as fn(usize) -> c_int)
}

unsafe extern "C" fn destroy(lock: usize, pc: usize) -> c_int {
    super::mutex::destroying(lock, pc);
    real!(pthread_rwlock_destroy(lock) as fn(usize) -> c_int)
}

with_pc! {
    pthread_rwlock_rdlock => rdlock, "rsi";
    pthread_rwlock_tryrdlock => tryrdlock, "rsi";
    pthread_rwlock_timedrdlock => timedrdlock, "rdx";
    pthread_rwlock_clockrdlock => clockrdlock, "rcx";
    pthread_rwlock_wrlock => wrlock, "rsi";
    pthread_rwlock_trywrlock => trywrlock, "rsi";
    pthread_rwlock_timedwrlock => timedwrlock, "rdx";
    pthread_rwlock_clockwrlock => clockwrlock, "rcx";
    pthread_rwlock_unlock => unlock, "rsi";
    pthread_rwlock_destroy => destroy, "rsi";
}
