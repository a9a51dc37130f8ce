//! Mutexes and spinlocks of pthreads.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::{memory, real, waits_for};
use crate::arch::glibc::mutex;
use crate::arch::with_pc;
use crate::control::{ops, time};
use crate::misuse;
use crate::primitives::{acquired_as, blocks, destroying, made, releasing};
use crate::wire::{AccessKind, TRY};

/// The result of acquiring a lock whose owner died: the thread holds it nevertheless.
const OWNER_DEAD: c_int = 130;

/// Under control, waits until the mutex can be acquired; false if the time is over.
pub fn wait_for_mutex(lock: usize, [clock, time]: [usize; 2], pc: usize) -> bool {
    // SAFETY: the program's mutex and time.
    let (reentrant, deadline) = unsafe { (ops::reentrant(lock), time::deadline(clock, time)) };
    ops::lock(lock, false, reentrant, deadline, pc)
}

fn mutex_gate(lock: usize, time: [usize; 2], pc: usize) -> Result<(), c_int> {
    if wait_for_mutex(lock, time, pc) { Ok(()) } else { Err(ops::ETIMEDOUT) }
}

/// Under control, a scheduling point.
pub fn try_gate(lock: usize, _: [usize; 2], pc: usize) -> Result<(), c_int> {
    ops::try_lock(lock, false, pc);
    Ok(())
}

fn spin_gate(lock: usize, _: [usize; 2], pc: usize) -> Result<(), c_int> {
    ops::lock(lock, false, false, 0, pc);
    Ok(())
}

/// What to do after a call that acquires the lock, if it did.
fn locked<const FLAGS: u8>(lock: usize, result: c_int, pc: usize) {
    if result == OWNER_DEAD {
        super::pthread::after_ended_threads();
    }
    if result == 0 || result == OWNER_DEAD {
        acquired_as(lock, FLAGS, pc);
        memory::uses(lock, pc);
    }
}

/// A mutex that finds mistakes does not let a thread wait for itself.
pub fn waits(lock: usize, pc: usize) {
    // SAFETY: the program's mutex.
    if unsafe { mutex::kind(lock) } & mutex::TYPE != mutex::ERROR_CHECK {
        blocks(lock, false, pc);
    }
}

/// A mutex is about to be locked.
pub fn locks(lock: usize, pc: usize) {
    const LOCK: u32 = 2;
    misuse::calls_unsafe(LOCK, pc);
    misuse::mutex_locks(lock, pc);
}

waits_for! {
    lock pthread_mutex_lock() [locks] mutex_gate, locked::<0>, unless pthread_mutex_trylock is 16, waits;
    trylock pthread_mutex_trylock() [locks] try_gate, locked::<TRY>;
    timedlock pthread_mutex_timedlock(time) [locks] mutex_gate, locked::<TRY>;
    clocklock pthread_mutex_clocklock(clock, time) [locks] mutex_gate, locked::<TRY>;
    spin_lock pthread_spin_lock() [|_, _| {}] spin_gate, locked::<0>;
    spin_trylock pthread_spin_trylock() [|_, _| {}] try_gate, locked::<TRY>;
}

unsafe extern "C" fn unlock(lock: usize, pc: usize) -> c_int {
    misuse::mutex_unlocks(lock, pc);
    memory::uses(lock, pc);
    releasing(lock, pc);
    real!(pthread_mutex_unlock(lock) as fn(usize) -> c_int)
}

unsafe extern "C" fn spin_unlock(lock: usize, pc: usize) -> c_int {
    misuse::spinlock(lock, AccessKind::Unlock, pc);
    memory::uses(lock, pc);
    releasing(lock, pc);
    real!(pthread_spin_unlock(lock) as fn(usize) -> c_int)
}

unsafe extern "C" fn init(lock: usize, attributes: usize, pc: usize) -> c_int {
    let result = real!(pthread_mutex_init(lock, attributes) as fn(usize, usize) -> c_int);
    if result == 0 {
        made(lock, pc);
    }
    result
}

unsafe extern "C" fn destroy(lock: usize, pc: usize) -> c_int {
    misuse::mutex_destroys(lock, pc);
    memory::destroys(lock, pc);
    let result = real!(pthread_mutex_destroy(lock) as fn(usize) -> c_int);
    if result == 0 {
        destroying(lock, pc);
    }
    result
}

unsafe extern "C" fn spin_destroy(lock: usize, pc: usize) -> c_int {
    misuse::spinlock(lock, AccessKind::Destroy, pc);
    memory::destroys(lock, pc);
    destroying(lock, pc);
    real!(pthread_spin_destroy(lock) as fn(usize) -> c_int)
}

with_pc! {
    pthread_mutex_lock => lock, 1;
    pthread_mutex_trylock => trylock, 1;
    pthread_mutex_timedlock => timedlock, 2;
    pthread_mutex_clocklock => clocklock, 3;
    pthread_mutex_unlock => unlock, 1;
    pthread_mutex_init => init, 2;
    pthread_mutex_destroy => destroy, 1;
    pthread_spin_lock => spin_lock, 1;
    pthread_spin_trylock => spin_trylock, 1;
    pthread_spin_unlock => spin_unlock, 1;
    pthread_spin_destroy => spin_destroy, 1;
}
