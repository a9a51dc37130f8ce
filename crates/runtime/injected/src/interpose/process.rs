//! Forking. Libraries that are loaded later announce themselves by `__tsan_init`; `dlopen` itself looks
//! at its caller and cannot be interposed.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::real;
use crate::abi::with_pc;
use crate::thread;

/// The child goes on checking for races but records nothing: the rings are its parent's.
unsafe extern "C" fn do_fork(_pc: usize) -> c_int {
    let t = thread::current();
    if !t.is_null() {
        // SAFETY: the thread's own block. Being busy puts signals off until both sides are in order.
        unsafe { (*t).busy += 1 };
    }
    let pid = real!(fork() as fn() -> c_int);
    if pid == 0 {
        crate::clock::after_fork();
        crate::sync::after_fork();
        crate::places::after_fork();
        thread::after_fork();
        crate::init::after_fork();
        crate::control::leave();
    }
    if !t.is_null() {
        // SAFETY: the thread's own block, which no other thread changes.
        unsafe {
            if pid == 0 {
                (*t).record_nothing();
            }
            (*t).busy -= 1;
        }
    }
    pid
}

with_pc! {
    fork => do_fork, "rdi";
}
