//! One-time initialisation: `pthread_once`, `call_once`, and the guards of C++ static variables.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::real;
use crate::arch::with_pc;
use crate::control::flow;
use crate::primitives::{entering_once, happens_before, initialised, initialising, leaving_once};
use crate::thread;

type Function = unsafe extern "C" fn();

/// What the trampoline needs, per thread: the library's callback has no argument.
fn run_between(
    control: usize,
    function: Function,
    pc: usize,
    real: impl FnOnce() -> c_int,
) -> c_int {
    const DONE: u32 = 2;
    // SAFETY: the program's control word.
    let done = unsafe { (control as *const u32).read() } & DONE != 0;
    entering_once(control, done, pc);
    let Some(t) = thread::me() else { return real() };
    let outer = core::mem::replace(&mut t.once, (control, function as usize, pc));
    let result = real();
    let mut passed = true;
    if let Some(t) = thread::me() {
        passed = t.once.1 != 0;
        t.once = outer;
    }
    leaving_once(control, pc);
    initialised(control, pc);
    if passed {
        flow::initialisation_passed(pc);
    }
    result
}

unsafe extern "C" fn trampoline() {
    let t = thread::current();
    // SAFETY: `run_between` runs only on threads that the runtime knows, and set the function.
    unsafe {
        let (control, function, pc) = (*t).once;
        // It is not passed.
        (*t).once.1 = 0;
        initialised(control, pc);
        flow::initialisation_begins(pc);
        core::mem::transmute::<usize, Function>(function)();
        flow::initialisation_ends(pc);
        initialising(control, pc);
    }
}

unsafe extern "C" fn once(control: usize, function: Function, pc: usize) -> c_int {
    let known = thread::me().is_some();
    run_between(control, function, pc, || {
        let callback = if known { trampoline } else { function };
        real!(pthread_once(control, callback) as fn(usize, Function) -> c_int)
    })
}

unsafe extern "C" fn c11_once(control: usize, function: Function, pc: usize) {
    let known = thread::me().is_some();
    run_between(control, function, pc, || {
        let callback = if known { trampoline } else { function };
        real!(call_once(control, callback) as fn(usize, Function) -> ());
        0
    });
}

unsafe extern "C" fn guard_acquire(guard: usize, pc: usize) -> c_int {
    entering_once(guard, false, pc);
    let result = real!(__cxa_guard_acquire(guard) as fn(usize) -> c_int);
    if result == 0 {
        leaving_once(guard, pc);
    }
    initialised(guard, pc);
    if result != 0 {
        flow::initialisation_begins(pc);
    } else {
        flow::initialisation_passed(pc);
    }
    result
}

unsafe extern "C" fn guard_release(guard: usize, pc: usize) {
    flow::initialisation_ends(pc);
    initialising(guard, pc);
    leaving_once(guard, pc);
    real!(__cxa_guard_release(guard) as fn(usize) -> ());
}

unsafe extern "C" fn guard_abort(guard: usize, pc: usize) {
    flow::initialisation_ends(pc);
    initialising(guard, pc);
    leaving_once(guard, pc);
    real!(__cxa_guard_abort(guard) as fn(usize) -> ());
}

/// An exception may end an initialisation; the thread that tries again then comes after it.
unsafe extern "C" fn throw(exception: usize, info: usize, destructor: usize, pc: usize) {
    if let Some(t) = thread::me()
        && t.once.0 != 0
    {
        let once = t.once.0;
        flow::initialisation_ends(pc);
        happens_before(once, pc);
        leaving_once(once, pc);
    }
    real!(__cxa_throw(exception, info, destructor) as fn(usize, usize, usize) -> ());
}

with_pc! {
    __cxa_throw => throw, 3;
    __cxa_guard_abort => guard_abort, 1;
    pthread_once => once, 2;
    call_once => c11_once, 2;
    __cxa_guard_acquire => guard_acquire, 1;
    __cxa_guard_release => guard_release, 1;
}
