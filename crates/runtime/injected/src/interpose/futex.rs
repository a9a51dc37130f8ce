//! `syscall`: Rust's standard library, and others that make their own locks, wait and wake with
//! futexes through it. Waking releases to the address and returning from a wait acquires from it: that
//! is more order than a futex gives by itself, and just what the locks built on it mean.

#![allow(missing_docs)] // The names are the C library's.

use core::sync::atomic::AtomicUsize;

use super::look_up;
use crate::arch::with_pc_behind_seven;
use crate::control::{self, ops, time};
use crate::misuse;
use crate::primitives::{Futex, futex_wait, futex_wake, happens_after, happens_before};

const FUTEX: usize = crate::sys::FUTEX;
const GETRANDOM: usize = 318;
const WAIT: usize = 0;
const WAKE: usize = 1;
const REQUEUE: usize = 3;
const CMP_REQUEUE: usize = 4;
const WAKE_OP: usize = 5;
const WAIT_BITSET: usize = 9;
const WAKE_BITSET: usize = 10;

type Syscall = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> isize;

// The arguments that are not there are rubbish that the kernel ignores.
with_pc_behind_seven! {
    syscall => perform;
}

#[allow(clippy::too_many_arguments)] // They are the system call's.
unsafe extern "C" fn perform(
    number: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
    pc: usize,
) -> isize {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    let real = look_up(&KNOWN, "syscall\0", None);
    // SAFETY: the C library's function; more arguments than the program passed do no harm.
    let call = || unsafe { core::mem::transmute::<usize, Syscall>(real)(number, a, b, c, d, e, f) };
    // SAFETY: the program's buffer.
    if number == GETRANDOM && unsafe { time::fill(a, b) } {
        return b as isize;
    }
    if number != FUTEX {
        return call();
    }
    // SAFETY: the program's own call.
    match unsafe { controlled([a, b, c, d, e, f], pc) } {
        None => {}
        Some(Ok(count)) => return count as isize,
        Some(Err(error)) => {
            super::Errno::set(error);
            return -1;
        }
    }
    let operation = b & 0x7f;
    if matches!(operation, WAKE | WAKE_BITSET | WAKE_OP | REQUEUE | CMP_REQUEUE) {
        happens_before(a, 0);
    }
    let waits = matches!(operation, WAIT | WAIT_BITSET);
    if waits {
        misuse::waits(a, pc);
    }
    let result = call();
    if waits {
        misuse::waited();
        happens_after(a, 0);
    }
    result
}

/// The call in the model; nothing if the thread is not controlled or the operation is not modelled.
unsafe fn controlled(
    [addr, operation, value, time, second, third]: [usize; 6],
    pc: usize,
) -> Option<Result<u32, i32>> {
    const REALTIME: usize = 256;
    const EAGAIN: i32 = 11;
    control::me()?;
    let clock = if operation & REALTIME != 0 { time::REALTIME } else { time::MONOTONIC };
    // SAFETY: the caller's.
    unsafe {
        match operation & 0x7f {
            kind @ (WAIT | WAIT_BITSET) => {
                let deadline =
                    if kind == WAIT { time::after(time) } else { time::deadline(clock, time) };
                Some(match futex_wait(addr, value as u32, deadline, pc)? {
                    Futex::Different => Err(EAGAIN),
                    Futex::Woken => Ok(0),
                    Futex::TimedOut => Err(ops::ETIMEDOUT),
                })
            }
            WAKE | WAKE_BITSET => futex_wake(addr, value as u32, pc).map(Ok),
            CMP_REQUEUE if (addr as *const u32).read_volatile() != third as u32 => {
                control::me().map(|_| Err(EAGAIN))
            }
            REQUEUE | CMP_REQUEUE => {
                let woken = futex_wake(addr, value as u32, pc)?;
                let (c, _) = control::me()?;
                Some(Ok(woken + ops::requeue(c, addr, second, time as u32)))
            }
            _ => None,
        }
    }
}
