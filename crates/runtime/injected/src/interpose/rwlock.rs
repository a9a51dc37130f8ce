//! Reader-writer locks of pthreads.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::{memory, real, waits_for};
use crate::arch::with_pc;
use crate::control::{ops, time};
use crate::misuse;
use crate::primitives::{blocks, destroying, rwlock_acquired, rwlock_releasing};
use crate::wire::{SHARED, TRY};

/// Under control, waits until the lock can be acquired. A writer that wants the lock again is told that it
/// must not.
fn wait(lock: usize, shared: bool, [clock, time]: [usize; 2], pc: usize) -> Result<(), c_int> {
    // SAFETY: the program's time.
    let deadline = unsafe { time::deadline(clock, time) };
    if ops::lock(lock, shared, true, deadline, pc) { Ok(()) } else { Err(ops::ETIMEDOUT) }
}

fn read(lock: usize, time: [usize; 2], pc: usize) -> Result<(), c_int> {
    wait(lock, true, time, pc)
}

fn write(lock: usize, time: [usize; 2], pc: usize) -> Result<(), c_int> {
    wait(lock, false, time, pc)
}

fn try_read(lock: usize, _: [usize; 2], pc: usize) -> Result<(), c_int> {
    ops::try_lock(lock, true, pc);
    Ok(())
}

/// What to do after a call that acquires the lock, if it did.
fn has<const FLAGS: u8>(lock: usize, result: c_int, pc: usize) {
    if result == 0 {
        rwlock_acquired(lock, FLAGS, pc);
    }
}

fn locks(lock: usize, pc: usize) {
    const LOCK: u32 = 4;
    misuse::calls_unsafe(LOCK, pc);
    misuse::rwlock_locks(lock, pc);
}

waits_for! {
    rdlock pthread_rwlock_rdlock() [locks] read, has::<SHARED>,
        unless pthread_rwlock_tryrdlock is 16, |lock, pc| blocks(lock, true, pc);
    tryrdlock pthread_rwlock_tryrdlock() [locks] try_read, has::<{ SHARED | TRY }>;
    timedrdlock pthread_rwlock_timedrdlock(time) [locks] read, has::<{ SHARED | TRY }>;
    clockrdlock pthread_rwlock_clockrdlock(clock, time) [locks] read, has::<{ SHARED | TRY }>;
    wrlock pthread_rwlock_wrlock() [locks] write, has::<0>,
        unless pthread_rwlock_trywrlock is 16, |lock, pc| blocks(lock, false, pc);
    trywrlock pthread_rwlock_trywrlock() [locks] super::mutex::try_gate, has::<TRY>;
    timedwrlock pthread_rwlock_timedwrlock(time) [locks] write, has::<TRY>;
    clockwrlock pthread_rwlock_clockwrlock(clock, time) [locks] write, has::<TRY>;
}

unsafe extern "C" fn unlock(lock: usize, pc: usize) -> c_int {
    misuse::rwlock_unlocks(lock, pc);
    memory::uses(lock, pc);
    rwlock_releasing(lock, pc);
    real!(pthread_rwlock_unlock(lock) as fn(usize) -> c_int)
}

unsafe extern "C" fn destroy(lock: usize, pc: usize) -> c_int {
    misuse::rwlock_destroys(lock, pc);
    memory::destroys(lock, pc);
    destroying(lock, pc);
    real!(pthread_rwlock_destroy(lock) as fn(usize) -> c_int)
}

with_pc! {
    pthread_rwlock_rdlock => rdlock, 1;
    pthread_rwlock_tryrdlock => tryrdlock, 1;
    pthread_rwlock_timedrdlock => timedrdlock, 2;
    pthread_rwlock_clockrdlock => clockrdlock, 3;
    pthread_rwlock_wrlock => wrlock, 1;
    pthread_rwlock_trywrlock => trywrlock, 1;
    pthread_rwlock_timedwrlock => timedwrlock, 2;
    pthread_rwlock_clockwrlock => clockwrlock, 3;
    pthread_rwlock_unlock => unlock, 1;
    pthread_rwlock_destroy => destroy, 1;
}
