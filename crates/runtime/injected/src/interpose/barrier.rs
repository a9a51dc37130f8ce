//! Barriers of pthreads.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::{memory, real};
use crate::arch::with_pc;
use crate::misuse;
use crate::primitives::{self, barrier_made, destroying};

unsafe extern "C" fn wait(barrier: usize, pc: usize) -> c_int {
    const PARTIES: usize = 8;
    // SAFETY: the number of parties is the third int of the program's barrier.
    let parties = || unsafe { ((barrier + PARTIES) as *const u32).read() };
    let real = || {
        misuse::waits(barrier, pc);
        let result = real!(pthread_barrier_wait(barrier) as fn(usize) -> c_int);
        misuse::waited();
        result
    };
    misuse::barrier_waits(barrier, pc);
    memory::uses(barrier, pc);
    primitives::barrier(barrier, parties, pc, real)
}

unsafe extern "C" fn init(barrier: usize, attr: usize, count: u32, pc: usize) -> c_int {
    let result =
        real!(pthread_barrier_init(barrier, attr, count) as fn(usize, usize, u32) -> c_int);
    if result == 0 {
        misuse::barrier_made(barrier);
        barrier_made(barrier, count, pc);
    }
    result
}

unsafe extern "C" fn destroy(barrier: usize, pc: usize) -> c_int {
    misuse::barrier_destroys(barrier, pc);
    // The real call first: it waits until all threads have left.
    let result = real!(pthread_barrier_destroy(barrier) as fn(usize) -> c_int);
    memory::destroys(barrier, pc);
    destroying(barrier, pc);
    result
}

with_pc! {
    pthread_barrier_wait => wait, 1;
    pthread_barrier_init => init, 3;
    pthread_barrier_destroy => destroy, 1;
}
