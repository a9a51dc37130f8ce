//! ThreadSanitizer's compiler interface: the functions that `-fsanitize=thread` makes programs call.
//!
//! Most entries begin in assembly, which finds the caller's program counter and leaves out accesses that their thread
//! has made before: see [`arch`](crate::arch).
//!
//! Ground rule: nothing here may be called by the runtime itself.

#![allow(missing_docs)] // The names are the interface's own.

use core::sync::atomic::Ordering::Relaxed;

use crate::arch::{
    across, covered, double, enters, leaves, part, perhaps_unaligned, perhaps_unaligned_double,
    ranges, same_as, whole, with_pc, with_pc_behind_seven, with_pc_behind_six,
};
use crate::fasttrack;
use crate::shadow::{Granule, bytes_of};
use crate::thread::{self, Thread};

whole! {
    __tsan_read8, read8, "8", covered!();
    __tsan_write8, write8, "0", "";
}

double! {
    __tsan_read16, read16, "8" "0", "24" "16";
    __tsan_write16, write16, "0" "0", "16" "16";
}

unsafe extern "C" fn read16(addr: usize, pc: usize, t: &mut Thread) {
    if addr & 7 != 0 {
        return fasttrack::range(t, addr, 16, false, pc);
    }
    fasttrack::two(t, addr, false, pc);
}

unsafe extern "C" fn write16(addr: usize, pc: usize, t: &mut Thread) {
    if addr & 7 != 0 {
        return fasttrack::range(t, addr, 16, true, pc);
    }
    fasttrack::two(t, addr, true, pc);
}

part! {
    __tsan_read1, read1, "8", "1";
    __tsan_read2, read2, "8", "3";
    __tsan_read4, read4, "8", "15";
    __tsan_write1, write1, "0", "1";
    __tsan_write2, write2, "0", "3";
    __tsan_write4, write4, "0", "15";
}

/// Whether the access goes beyond its first granule.
#[inline(always)]
fn crosses(addr: usize, len: usize) -> bool {
    (addr & 7) + len > 8
}

/// The current thread comes from the filter: accesses are not announced from within the runtime, so
/// that there is no other reference to it.
macro_rules! behind_filter {
    ($($read:ident $write:ident $len:literal;)*) => {$(
        unsafe extern "C" fn $read(addr: usize, pc: usize, t: &mut Thread, g: &Granule) {
            if crosses(addr, $len) {
                return fasttrack::range(t, addr, $len, false, pc);
            }
            let bytes = bytes_of(addr, $len);
            // `__tsan_read8` has seen to that.
            if $len == 8 || !fasttrack::filtered(t, g.write.load(Relaxed), bytes) {
                fasttrack::read(t, g, addr, bytes, pc);
            }
        }

        unsafe extern "C" fn $write(addr: usize, pc: usize, t: &mut Thread, g: &Granule) {
            if crosses(addr, $len) {
                return fasttrack::range(t, addr, $len, true, pc);
            }
            fasttrack::write(t, g, addr, bytes_of(addr, $len), pc);
        }
    )*};
}

behind_filter! {
    read1 write1 1;
    read2 write2 2;
    read4 write4 4;
    read8 write8 8;
}

unsafe extern "C" fn range_read(addr: usize, len: usize, pc: usize) {
    if let Some(t) = thread::me() {
        fasttrack::range(t, addr, len, false, pc);
    }
}

unsafe extern "C" fn range_write(addr: usize, len: usize, pc: usize) {
    if let Some(t) = thread::me() {
        fasttrack::range(t, addr, len, true, pc);
    }
}

/// Accesses that cross granules, if they are of at most 8 bytes.
macro_rules! few_granules {
    ($($target:ident $len:literal $write:literal;)*) => {$(
        unsafe extern "C" fn $target(addr: usize, pc: usize) {
            if let Some(t) = thread::me() {
                fasttrack::few(t, addr, $len, $write, pc);
            }
        }
    )*};
}

few_granules! {
    across_read2 2 false;
    across_read4 4 false;
    across_read8 8 false;
    any_read16 16 false;
    across_write2 2 true;
    across_write4 4 true;
    across_write8 8 true;
    any_write16 16 true;
}

/// A read is known if the read words say so, or the write words.
macro_rules! unaligned_reads {
    ($($name:ident $len:literal $bytes:literal => $within:path, $target:path;)*) => {
        perhaps_unaligned! {
            $($name $len $within, $target, across!("8", "24", $bytes, or "3"), across!("0", "16", $bytes, or "4");)*
        }
    };
}

macro_rules! unaligned_writes {
    ($($name:ident $len:literal $bytes:literal => $within:path, $target:path;)*) => {
        perhaps_unaligned! { $($name $len $within, $target, across!("0", "16", $bytes, or "3");)* }
    };
}

unaligned_reads! {
    __tsan_unaligned_read2 "2" "3" => __tsan_read2, across_read2;
    __tsan_unaligned_read4 "4" "15" => __tsan_read4, across_read4;
    __tsan_unaligned_read8 "8" "255" => __tsan_read8, across_read8;
}

// A read followed by a write of the same place is a write, as far as races go.
unaligned_writes! {
    __tsan_unaligned_write2 "2" "3" => __tsan_write2, across_write2;
    __tsan_unaligned_write4 "4" "15" => __tsan_write4, across_write4;
    __tsan_unaligned_write8 "8" "255" => __tsan_write8, across_write8;
}

perhaps_unaligned_double! {
    __tsan_unaligned_read16 => aligned __tsan_read16, unaligned any_read16;
    __tsan_unaligned_write16 => aligned __tsan_write16, unaligned any_write16;
}

same_as! {
    __tsan_unaligned_volatile_read2 => __tsan_unaligned_read2;
    __tsan_unaligned_volatile_read4 => __tsan_unaligned_read4;
    __tsan_unaligned_volatile_read8 => __tsan_unaligned_read8;
    __tsan_unaligned_volatile_read16 => __tsan_unaligned_read16;
    __tsan_unaligned_volatile_write2 => __tsan_unaligned_write2;
    __tsan_unaligned_volatile_write4 => __tsan_unaligned_write4;
    __tsan_unaligned_volatile_write8 => __tsan_unaligned_write8;
    __tsan_unaligned_volatile_write16 => __tsan_unaligned_write16;
    __tsan_unaligned_read_write2 => __tsan_unaligned_write2;
    __tsan_unaligned_read_write4 => __tsan_unaligned_write4;
    __tsan_unaligned_read_write8 => __tsan_unaligned_write8;
    __tsan_unaligned_read_write16 => __tsan_unaligned_write16;
    __tsan_volatile_read1 => __tsan_read1;
    __tsan_volatile_read2 => __tsan_read2;
    __tsan_volatile_read4 => __tsan_read4;
    __tsan_volatile_read8 => __tsan_read8;
    __tsan_volatile_write1 => __tsan_write1;
    __tsan_volatile_write2 => __tsan_write2;
    __tsan_volatile_write4 => __tsan_write4;
    __tsan_volatile_write8 => __tsan_write8;
    __tsan_unaligned_volatile_read1 => __tsan_read1;
    __tsan_unaligned_volatile_write1 => __tsan_write1;
    __tsan_unaligned_read1 => __tsan_read1;
    __tsan_unaligned_write1 => __tsan_write1;
    __tsan_read_write1 => __tsan_write1;
    __tsan_read_write2 => __tsan_write2;
    __tsan_read_write4 => __tsan_write4;
    __tsan_read_write8 => __tsan_write8;
    __tsan_unaligned_read_write1 => __tsan_write1;
    __tsan_vptr_read => __tsan_read8;
    __tsan_volatile_read16 => __tsan_read16;
    __tsan_volatile_write16 => __tsan_write16;
    __tsan_read_write16 => __tsan_write16;
}

ranges! {
    __tsan_read_range range_read, of 4 __tsan_unaligned_read4, of 8 __tsan_unaligned_read8;
    __tsan_write_range range_write, of 4 __tsan_unaligned_write4, of 8 __tsan_unaligned_write8;
}

with_pc! {
    __tsan_vptr_update => vptr_update, 2;
}

// Our own: a loop's accesses, told behind it, and lanes of vectors (`crates/instrument`, `accesses`).
with_pc! {
    selvedge_sweep_read => sweep_read, 4;
    selvedge_sweep_write => sweep_write, 4;
    selvedge_lanes_read => lanes_read, 3;
    selvedge_lanes_write => lanes_write, 3;
}

unsafe extern "C" fn lanes_read(start: usize, len: usize, bits: usize, pc: usize) {
    lanes(start, len, bits, false, pc);
}

unsafe extern "C" fn lanes_write(start: usize, len: usize, bits: usize, pc: usize) {
    lanes(start, len, bits, true, pc);
}

/// The lanes of a vector, of `len` bytes each, whose bit is set; neighbours are one access.
fn lanes(start: usize, len: usize, mut bits: usize, is_write: bool, pc: usize) {
    let Some(t) = thread::me() else { return };
    let mut at = start;
    while bits != 0 {
        let skipped = bits.trailing_zeros();
        bits >>= skipped;
        at = at.wrapping_add(len * skipped as usize);
        let count = bits.trailing_ones();
        fasttrack::range(t, at, len * count as usize, is_write, pc);
        at = at.wrapping_add(len * count as usize);
        bits = bits.checked_shr(count).unwrap_or(0);
    }
}

unsafe extern "C" fn sweep_read(start: usize, stride: usize, count: usize, len: usize, pc: usize) {
    if let Some(t) = thread::me() {
        fasttrack::sweep(t, start, (stride, count, len), false, pc);
    }
}

unsafe extern "C" fn sweep_write(start: usize, stride: usize, count: usize, len: usize, pc: usize) {
    if let Some(t) = thread::me() {
        fasttrack::sweep(t, start, (stride, count, len), true, pc);
    }
}

macro_rules! given_pc {
    ($($name:ident $len:literal $write:literal;)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(addr: usize, pc: usize) {
            if let Some(t) = thread::me() {
                fasttrack::range(t, addr, $len, $write, pc);
            }
        }
    )*};
}

given_pc! {
    __tsan_read1_pc 1 false;
    __tsan_read2_pc 2 false;
    __tsan_read4_pc 4 false;
    __tsan_read8_pc 8 false;
    __tsan_read16_pc 16 false;
    __tsan_write1_pc 1 true;
    __tsan_write2_pc 2 true;
    __tsan_write4_pc 4 true;
    __tsan_write8_pc 8 true;
    __tsan_write16_pc 16 true;
}

#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn __tsan_read_range_pc(addr: usize, len: usize, pc: usize) {
    // SAFETY: as the entry without the program counter.
    unsafe { range_read(addr, len, pc) };
}

#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn __tsan_write_range_pc(addr: usize, len: usize, pc: usize) {
    // SAFETY: as the entry without the program counter.
    unsafe { range_write(addr, len, pc) };
}

/// Constructors and destructors set the virtual table again and again. Setting the same one is not
/// counted as a write: no thread can notice it.
unsafe extern "C" fn vptr_update(vptr: *const usize, new: usize, pc: usize) {
    // SAFETY: the program is about to write there.
    if unsafe { vptr.read_volatile() } != new
        && let Some(t) = thread::me()
    {
        fasttrack::range(t, vptr as usize, 8, true, pc);
    }
}

enters! { __tsan_func_entry, beyond crate::regions::deeper }

leaves! { __tsan_func_exit, beyond crate::regions::shallower, at the innermost crate::regions::left }

with_pc! {
    __tsan_init => module_init, 0;
}

/// Instrumented modules announce themselves; everything else was set up before.
unsafe extern "C" fn module_init(pc: usize) {
    crate::init::module(pc);
}

macro_rules! atomic_entries {
    ($($module:ident: $load:ident $store:ident $exchange:ident $add:ident $sub:ident $and:ident $or:ident
        $xor:ident $nand:ident $strong:ident $weak:ident $val:ident;)*) => {$(
        with_pc! {
            $load => crate::atomics::$module::load, 2;
            $store => crate::atomics::$module::store, 3;
            $exchange => crate::atomics::$module::exchange, 3;
            $add => crate::atomics::$module::fetch_add, 3;
            $sub => crate::atomics::$module::fetch_sub, 3;
            $and => crate::atomics::$module::fetch_and, 3;
            $or => crate::atomics::$module::fetch_or, 3;
            $xor => crate::atomics::$module::fetch_xor, 3;
            $nand => crate::atomics::$module::fetch_nand, 3;
            $strong => crate::atomics::$module::compare_exchange, 5;
            $weak => crate::atomics::$module::compare_exchange, 5;
            $val => crate::atomics::$module::compare_exchange_val, 5;
        }
    )*};
}

atomic_entries! {
    a8: __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_exchange __tsan_atomic8_fetch_add
        __tsan_atomic8_fetch_sub __tsan_atomic8_fetch_and __tsan_atomic8_fetch_or
        __tsan_atomic8_fetch_xor __tsan_atomic8_fetch_nand __tsan_atomic8_compare_exchange_strong
        __tsan_atomic8_compare_exchange_weak __tsan_atomic8_compare_exchange_val;
    a16: __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_exchange
        __tsan_atomic16_fetch_add __tsan_atomic16_fetch_sub __tsan_atomic16_fetch_and
        __tsan_atomic16_fetch_or __tsan_atomic16_fetch_xor __tsan_atomic16_fetch_nand
        __tsan_atomic16_compare_exchange_strong __tsan_atomic16_compare_exchange_weak
        __tsan_atomic16_compare_exchange_val;
    a32: __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_exchange
        __tsan_atomic32_fetch_add __tsan_atomic32_fetch_sub __tsan_atomic32_fetch_and
        __tsan_atomic32_fetch_or __tsan_atomic32_fetch_xor __tsan_atomic32_fetch_nand
        __tsan_atomic32_compare_exchange_strong __tsan_atomic32_compare_exchange_weak
        __tsan_atomic32_compare_exchange_val;
    a64: __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_exchange
        __tsan_atomic64_fetch_add __tsan_atomic64_fetch_sub __tsan_atomic64_fetch_and
        __tsan_atomic64_fetch_or __tsan_atomic64_fetch_xor __tsan_atomic64_fetch_nand
        __tsan_atomic64_compare_exchange_strong __tsan_atomic64_compare_exchange_weak
        __tsan_atomic64_compare_exchange_val;
}

// A 16-byte value takes two argument registers, so the program counter comes later.
with_pc! {
    __tsan_atomic128_load => crate::atomics::a128::load, 2;
    __tsan_atomic128_store => crate::atomics::a128::store, 4;
    __tsan_atomic128_exchange => crate::atomics::a128::exchange, 4;
    __tsan_atomic128_fetch_add => crate::atomics::a128::fetch_add, 4;
    __tsan_atomic128_fetch_sub => crate::atomics::a128::fetch_sub, 4;
    __tsan_atomic128_fetch_and => crate::atomics::a128::fetch_and, 4;
    __tsan_atomic128_fetch_or => crate::atomics::a128::fetch_or, 4;
    __tsan_atomic128_fetch_xor => crate::atomics::a128::fetch_xor, 4;
    __tsan_atomic128_fetch_nand => crate::atomics::a128::fetch_nand, 4;
    __tsan_atomic_thread_fence => thread_fence, 1;
}

with_pc_behind_six! {
    __tsan_atomic128_compare_exchange_strong => crate::atomics::a128::compare_exchange;
    __tsan_atomic128_compare_exchange_weak => crate::atomics::a128::compare_exchange;
}

with_pc_behind_seven! {
    __tsan_atomic128_compare_exchange_val => crate::atomics::a128::compare_exchange_val;
}

unsafe extern "C" fn thread_fence(mo: i32, pc: usize) {
    crate::atomics::thread_fence((mo & 7) as u8, pc);
}

/// Orders nothing between threads.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn __tsan_atomic_signal_fence(_mo: i32) {}
