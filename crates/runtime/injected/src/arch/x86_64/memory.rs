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

/// Puts `new` in the place of `old`, 16 bytes each, at equal distances from `at` on, until something else stands there;
/// returns in how many places, at most `count`, which is not 0.
///
/// # Safety
/// Places from `at` on, `step` bytes apart, are valid and aligned; each half may be changed by another thread at any time.
#[inline]
pub unsafe fn renew_16(
    at: usize,
    step: usize,
    count: usize,
    old: [u64; 2],
    new: [u64; 2],
) -> usize {
    let left: usize;
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "movq {old}, {old_low}",
            "movq {now}, {old_high}",
            "punpcklqdq {old}, {now}",
            "movq {new}, {new_low}",
            "movq {now}, {new_high}",
            "punpcklqdq {new}, {now}",
            "2:",
            "movdqa {now}, [{at}]",
            "pcmpeqd {now}, {old}",
            "pmovmskb {same:e}, {now}",
            "cmp {same:e}, 0xffff",
            "jne 3f",
            "movdqa [{at}], {new}",
            "add {at}, {step}",
            "dec {left}",
            "jnz 2b",
            "3:",
            at = inout(reg) at => _,
            step = in(reg) step,
            left = inout(reg) count => left,
            same = out(reg) _,
            old_low = in(reg) old[0],
            old_high = in(reg) old[1],
            new_low = in(reg) new[0],
            new_high = in(reg) new[1],
            old = out(xmm_reg) _,
            new = out(xmm_reg) _,
            now = out(xmm_reg) _,
            options(nostack),
        );
    }
    count - left
}
