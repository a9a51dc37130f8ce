//! Semaphores. A wait is ordered after every earlier post, not only the one it consumed, because
//! which one that was cannot be seen; that can only miss.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::real;
use crate::abi::with_pc;
use crate::rings;
use crate::sync;
use crate::thread;
use crate::wire::RecordKind;

unsafe extern "C" fn post(semaphore: usize, pc: usize) -> c_int {
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
    ($($imp:ident $name:ident($($arg:ident),*);)*) => {$(
        unsafe extern "C" fn $imp(semaphore: usize, $($arg: usize,)* pc: usize) -> c_int {
            let result = real!($name(semaphore $(, $arg)*) as fn(usize $(, waits!(@ $arg))*) -> c_int);
            if result == 0 {
                taken(semaphore, pc);
            }
            result
        }
    )*};
    (@ $arg:ident) => { usize };
}

waits! {
    wait sem_wait();
    trywait sem_trywait();
    timedwait sem_timedwait(time);
    clockwait sem_clockwait(clock, time);
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
