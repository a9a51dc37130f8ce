//! `syscall`: Rust's standard library, and others that make their own locks, wait and wake with
//! futexes through it. Waking releases to the address and returning from a wait acquires from it: that
//! is more order than a futex gives by itself, and just what the locks built on it mean.

#![allow(missing_docs)] // The names are the C library's.

use core::sync::atomic::AtomicUsize;

use super::look_up;
use crate::rings;
use crate::sync;
use crate::thread;
use crate::wire::RecordKind;

const FUTEX: usize = crate::sys::FUTEX;
const WAIT: usize = 0;
const WAKE: usize = 1;
const REQUEUE: usize = 3;
const CMP_REQUEUE: usize = 4;
const WAKE_OP: usize = 5;
const WAIT_BITSET: usize = 9;
const WAKE_BITSET: usize = 10;

type Syscall = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> isize;

/// `syscall(number, …)`; the arguments that are not there are rubbish that the kernel ignores.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn syscall(
    number: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    let real = look_up(&KNOWN, "syscall\0", None);
    // SAFETY: the C library's function; more arguments than the program passed do no harm.
    let call = || unsafe { core::mem::transmute::<usize, Syscall>(real)(number, a, b, c, d, e, f) };
    if number != FUTEX {
        return call();
    }
    let operation = b & 0x7f;
    if matches!(operation, WAKE | WAKE_BITSET | WAKE_OP | REQUEUE | CMP_REQUEUE)
        && let Some(t) = thread::me()
    {
        rings::record(t, RecordKind::HappensBefore, 0, 0, a, 0);
        sync::release_also(t, a);
    }
    let result = call();
    if matches!(operation, WAIT | WAIT_BITSET)
        && let Some(t) = thread::me()
    {
        let _errno = super::Errno::keep();
        sync::acquire(t, a);
        rings::record(t, RecordKind::HappensAfter, 0, 0, a, 0);
    }
    result
}
