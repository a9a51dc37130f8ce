//! The tasks of a `taskloop`. The program fills the block of one task, and the library copies it for each of the
//! others. If a variable is to be copied by a constructor, the program does that in a function that it passes. Then
//! the library also calls the program's destructors, and only after it has said that the task has ended: they touch
//! the block when it was forgotten already, and another task may get it next. So a block is forgotten again before
//! the program copies into it.
//!
//! The library may split a loop among threads, so the copying function is found by the task's code, which is the
//! same for all tasks of a construct.
//!
//! May report falsely: in a program with more than `PLACES` constructs that make tasks, those that found no place.

#![allow(missing_docs)] // The names are the library's own.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::interpose::{malloc, real};

/// A construct that makes tasks.
struct Construct {
    /// The code of its tasks; 0 if the place is free.
    code: AtomicUsize,
    /// The length of their blocks.
    len: AtomicUsize,
    /// The program's function that copies a block; 0 if there is none.
    copy: AtomicUsize,
}

const PLACES: usize = 1 << 12;
/// How many places are looked at for one construct.
const NEAR: usize = 16;

static CONSTRUCTS: [Construct; PLACES] = [const {
    Construct { code: AtomicUsize::new(0), len: AtomicUsize::new(0), copy: AtomicUsize::new(0) }
}; PLACES];

/// The construct whose tasks have this code, new if it was not known; nothing if there is no place for it.
fn construct(code: usize) -> Option<&'static Construct> {
    let first = (code >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    (first..first + NEAR).map(|at| &CONSTRUCTS[at % PLACES]).find(|construct| {
        let known = construct.code.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
        known.is_ok() || known == Err(code)
    })
}

/// A task of `len` bytes that runs this code was made.
pub fn made(code: usize, len: usize) {
    if let Some(construct) = construct(code) {
        construct.len.store(len, Ordering::Release);
    }
}

/// The beginning of the library's `kmp_task_t`.
#[repr(C)]
struct Task {
    shared: usize,
    code: usize,
}

type Copy = unsafe extern "C" fn(*mut Task, *mut Task, c_int);

/// Called in the place of the program's function.
unsafe extern "C" fn copy(to: *mut Task, from: *mut Task, is_last: c_int) {
    // SAFETY: a task that the library passes.
    let Some(construct) = construct(unsafe { (*from).code }) else { return };
    malloc::appeared(to as usize, construct.len.load(Ordering::Acquire), 0);
    // SAFETY: `instead` passed this function on only after it had stored the program's.
    unsafe {
        let theirs = construct.copy.load(Ordering::Acquire);
        core::mem::transmute::<usize, Copy>(theirs)(to, from, is_last);
    }
}

/// What to pass to the library instead of the program's copying function.
unsafe fn instead(task: *mut Task, theirs: usize) -> usize {
    // SAFETY: the task that the program has filled.
    match construct(unsafe { (*task).code }) {
        Some(construct) if theirs != 0 => {
            construct.copy.store(theirs, Ordering::Release);
            copy as *const () as usize
        }
        _ => theirs,
    }
}

macro_rules! taskloops {
    ($($name:ident($($modifier:ident)?);)*) => {$(
        #[allow(clippy::too_many_arguments)] // The library's.
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            place: usize,
            thread: c_int,
            task: usize,
            if_value: c_int,
            lower: usize,
            upper: usize,
            stride: usize,
            no_group: c_int,
            schedule: c_int,
            grain: u64,
            $($modifier: c_int,)?
            copy: usize,
        ) {
            // SAFETY: the program's own call.
            let copy = unsafe { instead(task as *mut Task, copy) };
            real!($name(
                place, thread, task, if_value, lower, upper, stride, no_group, schedule, grain,
                $($modifier,)? copy
            ) as fn(
                usize, c_int, usize, c_int, usize, usize, usize, c_int, c_int, u64,
                $(taskloops!(@ $modifier),)? usize
            ) -> ());
        }
    )*};
    (@ $modifier:ident) => { c_int };
}

taskloops! {
    __kmpc_taskloop();
    __kmpc_taskloop_5(modifier);
}
