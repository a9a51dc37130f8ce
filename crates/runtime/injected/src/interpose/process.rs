//! Forking. Libraries that are loaded later announce themselves by `__tsan_init`; `dlopen` itself looks
//! at its caller and cannot be interposed.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::{c_char, c_int};

use super::real;
use crate::arch::with_pc;
use crate::thread::{self, Busy};

const READ_WRITE: c_int = 2;

unsafe extern "C" {
    fn setsid() -> c_int;
    fn chdir(path: *const c_char) -> c_int;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn dup2(old: c_int, new: c_int) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn _exit(code: c_int) -> !;
}

/// The child goes on checking for races but records nothing: the rings are its parent's.
unsafe extern "C" fn do_fork(_pc: usize) -> c_int {
    let t = thread::current();
    // SAFETY: null, or the thread's own block. Being busy puts signals off until both sides are in order.
    let busy = unsafe { t.as_mut() }.map(Busy::new);
    let pid = real!(fork() as fn() -> c_int);
    if pid == 0 {
        crate::clock::after_fork();
        crate::sync::after_fork();
        super::openmp::after_fork();
        crate::places::after_fork();
        crate::rings::after_fork();
        // SAFETY: null, or the thread's own block; the child has no other thread.
        thread::after_fork(unsafe { t.as_mut() });
        crate::init::after_fork();
        crate::control::leave();
    }
    drop(busy);
    pid
}

/// `daemon`, by the functions that it consists of: the C library's own would fork without us.
unsafe extern "C" fn do_daemon(keep_directory: c_int, keep_streams: c_int, pc: usize) -> c_int {
    // SAFETY: plain functions of the C library, used as its own `daemon` uses them.
    unsafe {
        match do_fork(pc) {
            -1 => return -1,
            0 => {}
            child => {
                // The host sees that there is a process that goes on.
                crate::rings::process(child as u32);
                _exit(0)
            }
        }
        if setsid() == -1 {
            return -1;
        }
        if keep_directory == 0 {
            let _ = chdir(c"/".as_ptr());
        }
        if keep_streams == 0 {
            let null = open(c"/dev/null".as_ptr(), READ_WRITE);
            if null == -1 {
                return -1;
            }
            for stream in 0..3 {
                dup2(null, stream);
            }
            if null > 2 {
                close(null);
            }
        }
    }
    0
}

with_pc! {
    fork => do_fork, 0;
    daemon => do_daemon, 2;
}
