//! Clocks, sleeps, yields, random numbers and processors. They matter only to controlled executions, where
//! time is virtual and random numbers are the same every time.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::{c_int, c_uint};

use super::real;
use crate::arch::with_pc;
use crate::control::{ops, time};

const SECOND: u64 = 1_000_000_000;

unsafe extern "C" fn gettime(clock: c_int, into: *mut [u64; 2], pc: usize) -> c_int {
    let Some(now) = time::read(clock as usize, pc) else {
        return real!(clock_gettime(clock, into) as fn(c_int, *mut [u64; 2]) -> c_int);
    };
    // SAFETY: the program's structure.
    unsafe { into.write([now / SECOND, now % SECOND]) };
    0
}

unsafe extern "C" fn timeofday(into: *mut [u64; 2], zone: usize, pc: usize) -> c_int {
    let Some(now) = time::read(time::REALTIME, pc).filter(|_| !into.is_null()) else {
        return real!(gettimeofday(into, zone) as fn(*mut [u64; 2], usize) -> c_int);
    };
    // SAFETY: the program's structure.
    unsafe { into.write([now / SECOND, now % SECOND / 1_000]) };
    0
}

unsafe extern "C" fn seconds(into: *mut u64, pc: usize) -> u64 {
    let Some(now) = time::read(time::REALTIME, pc) else {
        return real!(time(into) as fn(*mut u64) -> u64);
    };
    if !into.is_null() {
        // SAFETY: the program's variable.
        unsafe { into.write(now / SECOND) };
    }
    now / SECOND
}

unsafe extern "C" fn c11_get(into: *mut [u64; 2], base: c_int, pc: usize) -> c_int {
    let Some(now) = time::read(time::REALTIME, pc).filter(|_| base == 1) else {
        return real!(timespec_get(into, base) as fn(*mut [u64; 2], c_int) -> c_int);
    };
    // SAFETY: the program's structure.
    unsafe { into.write([now / SECOND, now % SECOND]) };
    base
}

unsafe fn duration(time: *const [u64; 2]) -> u64 {
    // SAFETY: the program's structure.
    let [seconds, rest] = unsafe { time.read() };
    seconds.saturating_mul(SECOND).saturating_add(rest)
}

unsafe extern "C" fn nano(wanted: *const [u64; 2], rest: *mut [u64; 2], pc: usize) -> c_int {
    // SAFETY: the program's structure.
    if time::sleep(unsafe { duration(wanted) }, pc) {
        return 0;
    }
    real!(nanosleep(wanted, rest) as fn(*const [u64; 2], *mut [u64; 2]) -> c_int)
}

unsafe extern "C" fn clock_nano(
    clock: c_int,
    flags: c_int,
    wanted: *const [u64; 2],
    rest: *mut [u64; 2],
    pc: usize,
) -> c_int {
    const ABSOLUTE: c_int = 1;
    // SAFETY: the program's structure.
    let slept = unsafe {
        if flags & ABSOLUTE != 0 {
            time::sleep_until(time::deadline(clock as usize, wanted as usize), pc)
        } else {
            time::sleep(duration(wanted), pc)
        }
    };
    if slept {
        return 0;
    }
    real!(clock_nanosleep(clock, flags, wanted, rest)
        as fn(c_int, c_int, *const [u64; 2], *mut [u64; 2]) -> c_int)
}

unsafe extern "C" fn micro(wanted: c_uint, pc: usize) -> c_int {
    if time::sleep(u64::from(wanted) * 1_000, pc) {
        return 0;
    }
    real!(usleep(wanted) as fn(c_uint) -> c_int)
}

unsafe extern "C" fn whole(wanted: c_uint, pc: usize) -> c_uint {
    if time::sleep(u64::from(wanted) * SECOND, pc) {
        return 0;
    }
    real!(sleep(wanted) as fn(c_uint) -> c_uint)
}

unsafe extern "C" fn c11_sleep(wanted: *const [u64; 2], rest: *mut [u64; 2], pc: usize) -> c_int {
    // SAFETY: the program's structure.
    if time::sleep(unsafe { duration(wanted) }, pc) {
        return 0;
    }
    real!(thrd_sleep(wanted, rest) as fn(*const [u64; 2], *mut [u64; 2]) -> c_int)
}

unsafe extern "C" fn give_way(pc: usize) -> c_int {
    if ops::yield_now(pc) {
        return 0;
    }
    real!(sched_yield() as fn() -> c_int)
}

unsafe extern "C" fn c11_yield(pc: usize) {
    if !ops::yield_now(pc) {
        real!(thrd_yield() as fn() -> ());
    }
}

unsafe extern "C" fn random(at: usize, len: usize, flags: c_uint, _pc: usize) -> isize {
    // SAFETY: the program's buffer.
    if unsafe { time::fill(at, len) } {
        return len as isize;
    }
    real!(getrandom(at, len, flags) as fn(usize, usize, c_uint) -> isize)
}

unsafe extern "C" fn entropy(at: usize, len: usize, _pc: usize) -> c_int {
    // SAFETY: the program's buffer.
    if unsafe { time::fill(at, len) } {
        return 0;
    }
    real!(getentropy(at, len) as fn(usize, usize) -> c_int)
}

/// Under control all threads share one processor; how many there are is not the program's business.
unsafe extern "C" fn affinity(process: c_int, len: usize, into: *mut u8, _pc: usize) -> c_int {
    let result = real!(sched_getaffinity(process, len, into) as fn(c_int, usize, *mut u8) -> c_int);
    if result == 0
        && let Some(mask) = crate::control::processors()
    {
        for i in 0..len.min(128) {
            // SAFETY: the program's set of that length.
            unsafe { into.add(i).write(mask[i / 8].to_le_bytes()[i % 8]) };
        }
    }
    result
}

with_pc! {
    sched_getaffinity => affinity, 3;
    clock_gettime => gettime, 2;
    gettimeofday => timeofday, 2;
    time => seconds, 1;
    timespec_get => c11_get, 2;
    nanosleep => nano, 2;
    clock_nanosleep => clock_nano, 4;
    usleep => micro, 1;
    sleep => whole, 1;
    thrd_sleep => c11_sleep, 2;
    sched_yield => give_way, 0;
    thrd_yield => c11_yield, 0;
    getrandom => random, 3;
    getentropy => entropy, 2;
}
