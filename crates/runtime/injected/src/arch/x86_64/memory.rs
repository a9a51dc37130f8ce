//! Memory without the C library, and 16 bytes at once.

use core::arch::asm;

/// Copies upwards.
///
/// # Safety
/// Both blocks are valid for `len` bytes, and `to` does not begin inside `from`.
#[inline(always)]
pub unsafe fn copy_up(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
            options(nostack, preserves_flags));
    }
}

/// Sets bytes.
///
/// # Safety
/// The block is valid for `len` bytes.
#[inline(always)]
pub unsafe fn fill(to: *mut u8, byte: u8, len: usize) {
    // SAFETY: the caller's.
    unsafe {
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte,
            options(nostack, preserves_flags));
    }
}

/// Keeps the compiler from recognising a loop and calling the function that the loop is part of.
#[inline(always)]
pub fn opaque() {
    // SAFETY: no instruction.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// Exchanges 16 bytes if they are `old`, and returns what was there.
///
/// # Safety
/// The place is valid for an atomic access of 16 bytes.
#[inline]
pub unsafe fn compare_exchange_16(at: *mut u128, old: u128, new: u128) -> u128 {
    let (lo, hi): (u64, u64);
    // SAFETY: the caller's. rbx is the compiler's own, so it is put aside and back, and the others are named: `reg`
    // could be rbx.
    unsafe {
        asm!("xchg rsi, rbx", "lock cmpxchg16b [rdi]", "mov rbx, rsi",
            in("rdi") at, inout("rsi") new as u64 => _,
            in("rcx") (new >> 64) as u64,
            inout("rax") old as u64 => lo, inout("rdx") (old >> 64) as u64 => hi,
            options(nostack));
    }
    u128::from(hi) << 64 | u128::from(lo)
}
