//! `flockfile` and its like: a stream has a lock that one thread may take several times. What the C library
//! takes it for inside `printf` and the like is out of sight, and orders nothing of the program's.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::mutex::try_gate;
use super::{real, waits_for};
use crate::arch::with_pc;
use crate::control::ops;
use crate::primitives::{acquired, releasing};

fn gate(stream: usize, _: [usize; 2], pc: usize) -> Result<(), c_int> {
    ops::lock(stream, false, true, 0, pc);
    Ok(())
}

waits_for! {
    try_lock ftrylockfile() [|_, _| {}] try_gate, |stream, result, pc| if result == 0 {
        acquired(stream, pc);
    };
}

unsafe extern "C" fn lock(stream: usize, pc: usize) {
    if crate::control::is_on() {
        let _ = gate(stream, [0; 2], pc);
    }
    real!(flockfile(stream) as fn(usize) -> ());
    acquired(stream, pc);
}

unsafe extern "C" fn unlock(stream: usize, pc: usize) {
    releasing(stream, pc);
    real!(funlockfile(stream) as fn(usize) -> ());
}

with_pc! {
    flockfile => lock, 1;
    ftrylockfile => try_lock, 1;
    funlockfile => unlock, 1;
}
