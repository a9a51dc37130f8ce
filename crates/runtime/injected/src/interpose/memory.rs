//! Copying, filling, comparing and scanning memory: reads and writes that the compilers leave to the
//! C library.
//!
//! The names that the Rust compiler itself calls (`memcpy`, `memmove`, `memset`, `memcmp`) are
//! exported under a prefix that the build takes off, after the runtime's own calls have been pointed
//! at private versions: the runtime must not watch itself.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;

use super::{instrumented, real};
use crate::arch;
use crate::arch::with_pc;
use crate::fasttrack;
use crate::thread;

pub fn reads(addr: usize, len: usize, pc: usize) {
    if len != 0
        && instrumented(pc)
        && let Some(t) = thread::me()
    {
        fasttrack::range(t, addr, len, false, pc);
    }
}

pub fn writes(addr: usize, len: usize, pc: usize) {
    if len != 0
        && instrumented(pc)
        && let Some(t) = thread::me()
    {
        fasttrack::range(t, addr, len, true, pc);
    }
}

/// A synchronization object is used: that conflicts with destroying it. Called before what the use releases, and
/// after what it acquires.
pub fn uses(object: usize, pc: usize) {
    if instrumented(pc)
        && let Some(t) = thread::me().filter(|t| is_unrecorded(t))
    {
        fasttrack::atomic(t, object, 1, false, pc);
    }
}

/// A synchronization object is about to be destroyed.
pub fn destroys(object: usize, pc: usize) {
    if instrumented(pc)
        && let Some(t) = thread::me().filter(|t| is_unrecorded(t))
    {
        fasttrack::range(t, object, 1, true, pc);
    }
}

/// Whether accesses stay in the program. Analyses know the events of the objects themselves.
fn is_unrecorded(t: &thread::Thread) -> bool {
    !t.record_accesses && !t.record_racy && !crate::control::is_on()
}

unsafe extern "C" fn copy(to: usize, from: usize, len: usize, pc: usize) -> usize {
    reads(from, len, pc);
    writes(to, len, pc);
    real!(memcpy(to, from, len) as fn(usize, usize, usize) -> usize)
}

unsafe extern "C" fn move_(to: usize, from: usize, len: usize, pc: usize) -> usize {
    reads(from, len, pc);
    writes(to, len, pc);
    real!(memmove(to, from, len) as fn(usize, usize, usize) -> usize)
}

unsafe extern "C" fn set(to: usize, byte: c_int, len: usize, pc: usize) -> usize {
    writes(to, len, pc);
    real!(memset(to, byte, len) as fn(usize, c_int, usize) -> usize)
}

/// As far as the first difference: what is behind it need not be there.
unsafe extern "C" fn compare(a: usize, b: usize, len: usize, pc: usize) -> c_int {
    if instrumented(pc) {
        let len = common(a, b, len, false);
        reads(a, len, pc);
        reads(b, len, pc);
    }
    real!(memcmp(a, b, len) as fn(usize, usize, usize) -> c_int)
}

with_pc! {
    selvedge_public_memcpy => copy, 3;
    selvedge_public_memmove => move_, 3;
    selvedge_public_memset => set, 3;
    selvedge_public_memcmp => compare, 3;
    __tsan_memcpy => copy, 3;
    __tsan_memmove => move_, 3;
    __tsan_memset => set, 3;
}

pub fn length(s: usize) -> usize {
    real!(strlen(s) as fn(usize) -> usize)
}

unsafe extern "C" fn len(s: usize, pc: usize) -> usize {
    let n = length(s);
    reads(s, n + 1, pc);
    n
}

unsafe extern "C" fn str_copy(to: usize, from: usize, pc: usize) -> usize {
    let n = length(from) + 1;
    reads(from, n, pc);
    writes(to, n, pc);
    real!(strcpy(to, from) as fn(usize, usize) -> usize)
}

unsafe extern "C" fn str_ncopy(to: usize, from: usize, limit: usize, pc: usize) -> usize {
    let n = real!(strnlen(from, limit) as fn(usize, usize) -> usize);
    reads(from, (n + 1).min(limit), pc);
    writes(to, limit, pc);
    real!(strncpy(to, from, limit) as fn(usize, usize, usize) -> usize)
}

unsafe extern "C" fn str_cat(to: usize, from: usize, pc: usize) -> usize {
    let (m, n) = (length(to), length(from) + 1);
    reads(from, n, pc);
    reads(to, m, pc);
    writes(to + m, n, pc);
    real!(strcat(to, from) as fn(usize, usize) -> usize)
}

/// Up to and with the first difference, or the end of strings that have one.
fn common(a: usize, b: usize, limit: usize, strings: bool) -> usize {
    let mut i = 0;
    while i < limit {
        // SAFETY: the program is about to read as far.
        let (x, y) = unsafe {
            (((a + i) as *const u8).read_volatile(), ((b + i) as *const u8).read_volatile())
        };
        i += 1;
        if x != y || strings && x == 0 {
            break;
        }
    }
    i
}

unsafe extern "C" fn str_compare(a: usize, b: usize, pc: usize) -> c_int {
    let n = common(a, b, usize::MAX, true);
    reads(a, n, pc);
    reads(b, n, pc);
    real!(strcmp(a, b) as fn(usize, usize) -> c_int)
}

unsafe extern "C" fn str_ncompare(a: usize, b: usize, limit: usize, pc: usize) -> c_int {
    let n = common(a, b, limit, true);
    reads(a, n, pc);
    reads(b, n, pc);
    real!(strncmp(a, b, limit) as fn(usize, usize, usize) -> c_int)
}

unsafe extern "C" fn str_find(s: usize, c: c_int, pc: usize) -> usize {
    let found = real!(strchr(s, c) as fn(usize, c_int) -> usize);
    let n = if found == 0 { length(s) + 1 } else { found - s + 1 };
    reads(s, n, pc);
    found
}

unsafe extern "C" fn find(s: usize, c: c_int, limit: usize, pc: usize) -> usize {
    let found = real!(memchr(s, c, limit) as fn(usize, c_int, usize) -> usize);
    reads(s, if found == 0 { limit } else { found - s + 1 }, pc);
    found
}

with_pc! {
    strlen => len, 1;
    strcpy => str_copy, 2;
    strncpy => str_ncopy, 3;
    strcat => str_cat, 2;
    strcmp => str_compare, 2;
    strncmp => str_ncompare, 3;
    strchr => str_find, 2;
    memchr => find, 3;
}

/// What the runtime's own code calls. The build renames it.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn selvedge_private_memcpy(
    to: *mut u8,
    from: *const u8,
    len: usize,
) -> *mut u8 {
    const SMALL: usize = 256;
    if len <= SMALL {
        let mut i = 0;
        // SAFETY: within both blocks; volatile, lest the compiler make this loop a `memcpy`.
        unsafe {
            while i + 8 <= len {
                let word = from.add(i).cast::<u64>().read_unaligned();
                to.add(i).cast::<u64>().write_unaligned(word);
                arch::opaque();
                i += 8;
            }
            while i < len {
                to.add(i).write_volatile(from.add(i).read_volatile());
                i += 1;
            }
        }
        return to;
    }
    // SAFETY: the compiler calls this as `memcpy`.
    unsafe { arch::copy_up(to, from, len) };
    to
}

/// What the runtime's own code calls.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn selvedge_private_memmove(
    to: *mut u8,
    from: *const u8,
    len: usize,
) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= len {
        // SAFETY: the target does not begin inside the source, so upwards is right.
        return unsafe { selvedge_private_memcpy(to, from, len) };
    }
    let mut i = len;
    while i > 0 {
        i -= 1;
        // SAFETY: within both blocks; volatile, lest the compiler make this loop a `memmove`.
        unsafe { to.add(i).write_volatile(from.add(i).read_volatile()) };
    }
    to
}

/// What the runtime's own code calls.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn selvedge_private_memset(to: *mut u8, byte: c_int, len: usize) -> *mut u8 {
    // SAFETY: the compiler calls this as `memset`.
    unsafe { arch::fill(to, byte as u8, len) };
    to
}

/// What the runtime's own code calls.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn selvedge_private_memcmp(a: *const u8, b: *const u8, len: usize) -> c_int {
    for i in 0..len {
        // SAFETY: within both blocks.
        let (x, y) = unsafe { (a.add(i).read_volatile(), b.add(i).read_volatile()) };
        if x != y {
            return c_int::from(x) - c_int::from(y);
        }
    }
    0
}
