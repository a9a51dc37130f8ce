//! Reductions. The library combines what threads have by a function of the program, or it lets the program do it,
//! in one thread after the other. The first is not checked: it reads what other threads have in their stacks. In
//! the second, the program's code updates the variable, which others may use too early; the lock that excludes
//! threads from each other is named in the call, and the library does not speak of it.
//!
//! Tasks that contribute to a reduction have parts of their own, one for each thread. The first thread of a team
//! that comes to such a reduction makes the parts of all others, which wait for it without saying so: what it does
//! is not checked either.
//!
//! Ground rule: the library tells us that a reduction begins before it takes the lock, and that it ends after it
//! has given it back. So accesses are ignored from there on, and checked again between the two calls.

#![allow(missing_docs)] // The names are the library's own.

use core::ffi::c_int;

use super::ompt::{BEGIN, END};
use crate::interpose::real;
use crate::primitives::{happens_after, happens_before};
use crate::sync::ANNOTATED;
use crate::thread;

/// The interface's callback: the library begins or ends to combine.
pub unsafe extern "C" fn combines(
    _kind: c_int,
    endpoint: c_int,
    _team: *mut u64,
    _task: *mut u64,
    _pc: usize,
) {
    if let Some(t) = thread::me() {
        match endpoint {
            BEGIN => t.ignore_begin(),
            END => t.ignore_end(),
            _ => {}
        }
    }
}

/// Calls a function of the library that begins a reduction; its result is 1 if the program is to combine, and
/// has to say when it has.
fn begins(lock: usize, begin: impl FnOnce() -> c_int) -> c_int {
    let before = thread::me().map_or(0, |t| t.ignore);
    let result = begin();
    if let Some(t) = thread::me()
        && t.ignore > before
    {
        t.ignore_end();
        t.combines = true;
    }
    if result == 1 {
        happens_after(lock | ANNOTATED, 0);
    }
    result
}

/// Calls a function of the library by which the program says that it has combined.
fn ends(lock: usize, end: impl FnOnce()) {
    happens_before(lock | ANNOTATED, 0);
    if let Some(t) = thread::me()
        && core::mem::take(&mut t.combines)
    {
        t.ignore_begin();
    }
    end();
}

macro_rules! reductions {
    ($($begin:ident $end:ident;)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $begin(
            place: usize,
            thread: c_int,
            count: c_int,
            size: usize,
            data: usize,
            function: usize,
            lock: usize,
        ) -> c_int {
            begins(lock, || {
                real!($begin(place, thread, count, size, data, function, lock)
                    as fn(usize, c_int, c_int, usize, usize, usize, usize) -> c_int)
            })
        }

        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $end(place: usize, thread: c_int, lock: usize) {
            ends(lock, || real!($end(place, thread, lock) as fn(usize, c_int, usize) -> ()));
        }
    )*};
}

reductions! {
    __kmpc_reduce_nowait __kmpc_end_reduce_nowait;
    __kmpc_reduce __kmpc_end_reduce;
}

macro_rules! makes_parts {
    ($($name:ident)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            place: usize,
            thread: c_int,
            worksharing: c_int,
            count: c_int,
            data: usize,
        ) -> usize {
            if let Some(t) = thread::me() {
                t.ignore_begin();
            }
            let result = real!($name(place, thread, worksharing, count, data)
                as fn(usize, c_int, c_int, c_int, usize) -> usize);
            if let Some(t) = thread::me() {
                t.ignore_end();
            }
            result
        }
    )*};
}

makes_parts! {
    __kmpc_taskred_modifier_init
    __kmpc_task_reduction_modifier_init
}
