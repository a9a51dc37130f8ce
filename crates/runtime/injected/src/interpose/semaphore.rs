//! Semaphores.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::{memory, real, waits_for};
use crate::arch::with_pc;
use crate::control::{ops, time};
use crate::misuse;
use crate::primitives::{self, destroying};

unsafe extern "C" {
    fn sem_getvalue(semaphore: usize, into: *mut c_int) -> c_int;
}

fn value(semaphore: usize) -> u32 {
    let mut value = 0;
    // SAFETY: the program's semaphore.
    unsafe { sem_getvalue(semaphore, &raw mut value) };
    value.max(0) as u32
}

/// Under control, waits until the semaphore can be decremented.
fn gate(semaphore: usize, [clock, time]: [usize; 2], pc: usize) -> Result<(), c_int> {
    // SAFETY: the program's time.
    let deadline = unsafe { time::deadline(clock, time) };
    if ops::semaphore(semaphore, false, deadline, pc, || value(semaphore)) {
        return Ok(());
    }
    super::Errno::set(ops::ETIMEDOUT);
    Err(-1)
}

fn try_gate(semaphore: usize, _: [usize; 2], pc: usize) -> Result<(), c_int> {
    ops::semaphore(semaphore, true, 0, pc, || value(semaphore));
    Ok(())
}

fn waited(semaphore: usize, result: c_int, pc: usize) {
    primitives::waited(semaphore, result == 0, pc, || value(semaphore));
}

waits_for! {
    wait sem_wait() [misuse::semaphore_used] gate, waited;
    trywait sem_trywait() [misuse::semaphore_used] try_gate, waited;
    timedwait sem_timedwait(time) [misuse::semaphore_used] gate, waited;
    clockwait sem_clockwait(clock, time) [misuse::semaphore_used] gate, waited;
}

unsafe extern "C" fn post(semaphore: usize, pc: usize) -> c_int {
    misuse::semaphore_used(semaphore, pc);
    memory::uses(semaphore, pc);
    primitives::post(
        semaphore,
        pc,
        || value(semaphore),
        || real!(sem_post(semaphore) as fn(usize) -> c_int),
    )
}

unsafe extern "C" fn init(semaphore: usize, shared: c_int, value: u32, _pc: usize) -> c_int {
    let result = real!(sem_init(semaphore, shared, value) as fn(usize, c_int, u32) -> c_int);
    if result == 0 {
        misuse::semaphore_made(semaphore);
    }
    result
}

unsafe extern "C" fn destroy(semaphore: usize, pc: usize) -> c_int {
    misuse::semaphore_destroys(semaphore, pc);
    memory::destroys(semaphore, pc);
    destroying(semaphore, pc);
    real!(sem_destroy(semaphore) as fn(usize) -> c_int)
}

unsafe extern "C" fn close(semaphore: usize, pc: usize) -> c_int {
    destroying(semaphore, pc);
    real!(sem_close(semaphore) as fn(usize) -> c_int)
}

with_pc! {
    sem_init => init, 3;
    sem_post => post, 1;
    sem_wait => wait, 1;
    sem_trywait => trywait, 1;
    sem_timedwait => timedwait, 2;
    sem_clockwait => clockwait, 3;
    sem_destroy => destroy, 1;
    sem_close => close, 1;
}
