//! What a program learns from outside, which may differ between two executions of one schedule. Random
//! numbers are made from the seed, whether the program calls a function or reads a file. What cannot be
//! controlled is noted, so that the host can name it when two executions differ.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering::Relaxed;

use super::wire::source;
use super::{me, time};
use crate::interpose::real;
use crate::sys;

/// Bytes of a file of random numbers.
const RANDOM: usize = 1 << 18;

unsafe extern "C" {
    fn fdopen(fd: c_int, mode: *const c_char) -> usize;
}

fn note(bit: u32) {
    if let Some((c, _)) = me() {
        c.sources.fetch_or(bit, Relaxed);
    }
}

unsafe fn begins_with(path: usize, text: &[u8]) -> bool {
    // SAFETY: a terminated string, of which nothing behind the first difference is read.
    path != 0 && text.iter().enumerate().all(|(i, &b)| unsafe { *((path + i) as *const u8) } == b)
}

/// A file is about to be opened: what to open instead, if it is a source of random numbers.
///
/// # Safety
/// `path` is null or a terminated string.
pub unsafe fn opening(path: usize) -> Option<c_int> {
    me()?;
    // SAFETY: the caller's.
    unsafe {
        if begins_with(path, b"/proc/") {
            note(source::PROC);
        }
        let random = begins_with(path, b"/dev/urandom\0") || begins_with(path, b"/dev/random\0");
        if random { seeded() } else { None }
    }
}

/// A file of random numbers that the seed decides.
fn seeded() -> Option<c_int> {
    let name = c"random".as_ptr() as usize;
    // SAFETY: a terminated string.
    let fd = unsafe { sys::call(sys::MEMFD_CREATE, [name, 0, 0, 0, 0, 0]) };
    if fd < 0 {
        return None;
    }
    let mut block = [0u8; 4096];
    let at = block.as_mut_ptr() as usize;
    for offset in (0..RANDOM).step_by(block.len()) {
        // SAFETY: `at` is the start of `block`, which is alive and which only the kernel reads.
        unsafe {
            time::fill(at, block.len());
            sys::call(sys::PWRITE, [fd as usize, at, block.len(), offset, 0, 0]);
        }
    }
    Some(fd as c_int)
}

unsafe fn stream(path: usize, mode: *const c_char) -> Option<usize> {
    // SAFETY: the caller's.
    unsafe { opening(path).map(|fd| fdopen(fd, mode)) }
}

/// `fopen`
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn fopen(path: usize, mode: *const c_char) -> usize {
    // SAFETY: the program's strings.
    unsafe { stream(path, mode) }
        .unwrap_or_else(|| real!(fopen(path, mode) as fn(usize, *const c_char) -> usize))
}

/// `fopen64`
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn fopen64(path: usize, mode: *const c_char) -> usize {
    // SAFETY: the program's strings.
    unsafe { stream(path, mode) }
        .unwrap_or_else(|| real!(fopen64(path, mode) as fn(usize, *const c_char) -> usize))
}

/// `getpid`
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub extern "C" fn getpid() -> c_int {
    note(source::PROCESS);
    sys::pid() as c_int
}

/// `std::random_device::operator()` in libstdc++, which asks the processor.
#[allow(non_snake_case)]
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn _ZNSt13random_device9_M_getvalEv(device: usize) -> u32 {
    let mut value = 0u32;
    // SAFETY: the four bytes above.
    if unsafe { time::fill(&raw mut value as usize, 4) } {
        return value;
    }
    real!(_ZNSt13random_device9_M_getvalEv(device) as fn(usize) -> u32)
}
