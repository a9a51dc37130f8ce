//! Semaphores. A wait is ordered after every earlier post, not only the one it consumed, because
//! which one that was cannot be seen; that can only miss.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::real;
use crate::abi::with_pc;
use crate::control::{self, ops, time};
use crate::rings;
use crate::sync;
use crate::thread;
use crate::wire::RecordKind;

unsafe extern "C" {
    fn sem_getvalue(semaphore: usize, into: *mut c_int) -> c_int;
}

fn value(semaphore: usize) -> u32 {
    let mut value = 0;
    // SAFETY: the program's semaphore.
    unsafe { sem_getvalue(semaphore, &raw mut value) };
    value.max(0) as u32
}

/// Under control, waits until the semaphore can be decremented; false if the time is over.
fn gate(semaphore: usize, [clock, time]: [usize; 2], pc: usize) -> bool {
    // SAFETY: the program's time.
    let deadline = unsafe { time::deadline(clock, time) };
    ops::semaphore(semaphore, false, deadline, pc, || value(semaphore))
}

fn try_gate(semaphore: usize, _: [usize; 2], pc: usize) -> bool {
    ops::semaphore(semaphore, true, 0, pc, || value(semaphore))
}

unsafe extern "C" fn post(semaphore: usize, pc: usize) -> c_int {
    if control::is_on() && ops::post(semaphore, pc) {
        let result = real!(sem_post(semaphore) as fn(usize) -> c_int);
        ops::posted(semaphore, || value(semaphore));
        return result;
    }
    if let Some(t) = thread::me() {
        rings::record(t, RecordKind::Post, 0, pc, semaphore, 0);
        sync::release_also(t, semaphore);
    }
    real!(sem_post(semaphore) as fn(usize) -> c_int)
}

fn taken(semaphore: usize, pc: usize) {
    let _errno = super::Errno::keep();
    if let Some(t) = thread::me() {
        sync::acquire(t, semaphore);
        rings::record(t, RecordKind::Wait, 0, pc, semaphore, 0);
    }
}

macro_rules! waits {
    ($($imp:ident $name:ident($($arg:ident),*) $gate:ident;)*) => {$(
        unsafe extern "C" fn $imp(semaphore: usize, $($arg: usize,)* pc: usize) -> c_int {
            let on = control::is_on();
            if on && !$gate(semaphore, super::mutex::last_two(&[0, 0, $($arg),*]), pc) {
                super::Errno::set(ops::ETIMEDOUT);
                return -1;
            }
            let result = real!($name(semaphore $(, $arg)*) as fn(usize $(, waits!(@ $arg))*) -> c_int);
            if on && ops::decremented(semaphore, result == 0, pc, || value(semaphore)) {
                return result;
            }
            if result == 0 {
                taken(semaphore, pc);
            }
            result
        }
    )*};
    (@ $arg:ident) => { usize };
}

waits! {
    wait sem_wait() gate;
    trywait sem_trywait() try_gate;
    timedwait sem_timedwait(time) gate;
    clockwait sem_clockwait(clock, time) gate;
}

unsafe extern "C" fn destroy(semaphore: usize, pc: usize) -> c_int {
    super::mutex::destroying(semaphore, pc);
    real!(sem_destroy(semaphore) as fn(usize) -> c_int)
}

unsafe extern "C" fn close(semaphore: usize, pc: usize) -> c_int {
    super::mutex::destroying(semaphore, pc);
    real!(sem_close(semaphore) as fn(usize) -> c_int)
}

with_pc! {
    sem_post => post, "rsi";
    sem_wait => wait, "rsi";
    sem_trywait => trywait, "rsi";
    sem_timedwait => timedwait, "rdx";
    sem_clockwait => clockwait, "rcx";
    sem_destroy => destroy, "rsi";
    sem_close => close, "rsi";
}
