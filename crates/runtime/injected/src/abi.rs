//! ThreadSanitizer's compiler interface: the functions that `-fsanitize=thread` makes programs call.
//!
//! Ground rules:
//! - Entry points are naked: the caller's program counter is the word at the top of the stack, and
//!   only an entry without a frame of its own knows where that is. They check the filter, and leave
//!   by a jump to a Rust function that takes the program counter as one more argument.
//! - The filter in assembly is exactly `fasttrack::filtered`: the word of the shadow, exclusive-or the
//!   thread's filter word, must have no bit left among bytes, epoch and atomic (the lowest 41).
//! - Nothing here may be called by the runtime itself.

#![allow(missing_docs)] // The names are the interface's own.

use core::arch::naked_asm;

use core::sync::atomic::Ordering::Relaxed;

use crate::fasttrack;
use crate::shadow::{Granule, bytes_of};
use crate::thread::{self, Thread};

/// One naked entry that passes the program counter in the given register.
macro_rules! with_pc {
    ($($name:ident => $target:path, $reg:literal;)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(concat!("mov ", $reg, ", qword ptr [rsp]"), "jmp {}", sym $target)
        }
    )*};
}

pub(crate) use with_pc;

/// Reads or writes a thread-local word. In an executable its place is a constant; a shared library has
/// to look it up, for which it needs a register.
#[cfg(not(selvedge_shared))]
macro_rules! hot {
    ($op:literal $reg:literal, $offset:literal, $scratch:literal) => {
        concat!($op, " ", $reg, ", qword ptr fs:[selvedge_hot@TPOFF + ", $offset, "]")
    };
    (store $offset:literal, $reg:literal, $scratch:literal) => {
        concat!("mov qword ptr fs:[selvedge_hot@TPOFF + ", $offset, "], ", $reg)
    };
}

#[cfg(selvedge_shared)]
macro_rules! hot {
    ($op:literal $reg:literal, $offset:literal, $scratch:literal) => {
        concat!(
            "mov ",
            $scratch,
            ", qword ptr [rip + selvedge_hot@GOTTPOFF]\n",
            $op,
            " ",
            $reg,
            ", qword ptr fs:[",
            $scratch,
            " + ",
            $offset,
            "]"
        )
    };
    (store $offset:literal, $reg:literal, $scratch:literal) => {
        concat!(
            "mov ",
            $scratch,
            ", qword ptr [rip + selvedge_hot@GOTTPOFF]\n",
            "mov qword ptr fs:[",
            $scratch,
            " + ",
            $offset,
            "], ",
            $reg
        )
    };
}

/// Accesses of 8 aligned bytes: a matching word has all of its lowest 41 bits equal. What does not match
/// goes on with the thread and the granule, which are at hand.
macro_rules! whole {
    ($($name:ident, $target:path, $word:literal, $covered:expr;)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "movabs rax, {granule}",
                "and rax, rdi",
                "movabs r8, {shadow}",
                hot!("mov" "rdx", "0", "rcx"),
                concat!("mov rsi, [r8 + rax * 2 + ", $word, "]"),
                "mov rcx, rsi",
                "xor rcx, rdx",
                "shl rcx, 23",
                "jnz 2f",
                "ret",
                "2:",
                "lea rcx, [r8 + rax * 2]",
                hot!("mov" "r9", "16", "r9"),
                "test r9, r9",
                "jz 3f",
                $covered,
                "mov rdx, r9",
                "mov rsi, [rsp]",
                "jmp {target}",
                "3:",
                "ret",
                granule = const GRANULE,
                shadow = const crate::layout::SHADOW,
                target = sym $target,
            )
        }
    )*};
}

/// Picks the granule out of an address.
const GRANULE: usize = (1 << crate::layout::SPACE_BITS) - 8;

/// A read is also covered by a write of this epoch, and by a set in which this thread has all bytes,
/// which is in `Thread::known`, the first field, by the lowest bits of its number.
macro_rules! covered {
    () => {
        concat!(
            "xor rdx, [rcx]\n",
            "shl rdx, 23\n",
            "jz 3f\n",
            "mov eax, esi\n",
            "shr eax, 5\n",
            "and eax, 8 * (32 - 1)\n",
            "or rsi, 255\n",
            "cmp rsi, [r9 + rax]\n",
            "je 3f\n",
        )
    };
}

const _: () = assert!(thread::KNOWN == 32, "as in `covered`");

/// One granule of a 16-byte access that did not match at once: as in `whole`. `rax` has the shadow,
/// `rdx` the filter, `r8` the thread.
macro_rules! granule {
    ($word:literal, $write:literal, $done:literal) => {
        concat!(
            "mov rcx, [rax + ",
            $word,
            "]\n",
            "mov rsi, rcx\n",
            "xor rcx, rdx\n",
            "shl rcx, 23\n",
            "jz ",
            $done,
            "f\n",
            "mov rcx, [rax + ",
            $write,
            "]\n",
            "xor rcx, rdx\n",
            "shl rcx, 23\n",
            "jz ",
            $done,
            "f\n",
            "mov ecx, esi\n",
            "shr ecx, 5\n",
            "and ecx, 8 * ({known} - 1)\n",
            "or rsi, 255\n",
            "cmp rsi, [r8 + rcx]\n",
            "jne 5f\n",
            $done,
            ":"
        )
    };
}

/// Accesses of 16 bytes that begin with a granule: two words at a time.
macro_rules! double {
    ($($name:ident, $target:path, $first:literal $first_write:literal,
        $second:literal $second_write:literal;)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "mov rax, rdi",
                "shl rax, 20",
                "shr rax, 19",
                hot!("mov" "rdx", "0", "rcx"),
                "movabs rcx, {shadow}",
                "add rax, rcx",
                concat!("mov rsi, [rax + ", $first, "]"),
                concat!("mov rcx, [rax + ", $second, "]"),
                "xor rsi, rdx",
                "xor rcx, rdx",
                "or rsi, rcx",
                "shl rsi, 23",
                "jnz 2f",
                "ret",
                "2:",
                hot!("mov" "r8", "16", "r8"),
                "test r8, r8",
                "jz 4f",
                "test dil, 7",
                "jnz 5f",
                granule!($first, $first_write, "3"),
                granule!($second, $second_write, "4"),
                "ret",
                "5:",
                "mov rdx, r8",
                "mov rsi, [rsp]",
                "jmp {target}",
                shadow = const crate::layout::SHADOW,
                known = const crate::thread::KNOWN,
                target = sym $target,
            )
        }
    )*};
}

/// Accesses of 1, 2 or 4 bytes within a granule: of the byte bits only the touched ones matter.
macro_rules! part {
    ($($name:ident, $target:path, $word:literal, $bytes:literal;)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "movabs rax, {granule}",
                "and rax, rdi",
                "movabs r8, {shadow}",
                hot!("mov" "rdx", "0", "rcx"),
                concat!("xor rdx, [r8 + rax * 2 + ", $word, "]"),
                // The bytes of the access that the word lacks, and any difference above them.
                "mov ecx, edi",
                "and ecx, 7",
                concat!("mov esi, ", $bytes),
                "shl esi, cl",
                "movabs rcx, {above}",
                "or rsi, rcx",
                "test rdx, rsi",
                "jnz 2f",
                "ret",
                "2:",
                "lea rcx, [r8 + rax * 2]",
                hot!("mov" "rdx", "16", "rdx"),
                "test rdx, rdx",
                "jz 3f",
                "mov rsi, [rsp]",
                "jmp {target}",
                "3:",
                "ret",
                granule = const GRANULE,
                shadow = const crate::layout::SHADOW,
                above = const crate::shadow::EPOCH | crate::shadow::ATOMIC,
                target = sym $target,
            )
        }
    )*};
}

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

macro_rules! fixed_ranges {
    ($($target:ident $len:literal $write:literal: $($name:ident)*;)*) => {$(
        unsafe extern "C" fn $target(addr: usize, pc: usize) {
            if let Some(t) = thread::me() {
                fasttrack::range(t, addr, $len, $write, pc);
            }
        }
        with_pc! { $($name => $target, "rsi";)* }
    )*};
}

// A read followed by a write of the same place is a write, as far as races go.
fixed_ranges! {
    any_read2 2 false: __tsan_unaligned_read2 __tsan_unaligned_volatile_read2;
    any_read4 4 false: __tsan_unaligned_read4 __tsan_unaligned_volatile_read4;
    any_write2 2 true: __tsan_unaligned_write2 __tsan_unaligned_volatile_write2
        __tsan_unaligned_read_write2;
    any_write4 4 true: __tsan_unaligned_write4 __tsan_unaligned_volatile_write4
        __tsan_unaligned_read_write4;
}

/// Wide accesses that may be unaligned and mostly are not.
macro_rules! perhaps_unaligned {
    ($($aligned:ident $target:ident $len:literal $write:literal: $($name:ident)*;)*) => {$(
        unsafe extern "C" fn $target(addr: usize, pc: usize) {
            if let Some(t) = thread::me() {
                fasttrack::range(t, addr, $len, $write, pc);
            }
        }
        $(
            #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                naked_asm!("test dil, 7", "jnz 2f", "jmp {}", "2:", "mov rsi, [rsp]", "jmp {}",
                    sym $aligned, sym $target)
            }
        )*
    )*};
}

perhaps_unaligned! {
    __tsan_read8 any_read8 8 false: __tsan_unaligned_read8 __tsan_unaligned_volatile_read8;
    __tsan_write8 any_write8 8 true: __tsan_unaligned_write8 __tsan_unaligned_volatile_write8
        __tsan_unaligned_read_write8;
    __tsan_read16 any_read16 16 false: __tsan_unaligned_read16 __tsan_unaligned_volatile_read16;
    __tsan_write16 any_write16 16 true: __tsan_unaligned_write16 __tsan_unaligned_volatile_write16
        __tsan_unaligned_read_write16;
}

macro_rules! same_as {
    ($($name:ident => $target:path;)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!("jmp {}", sym $target)
        }
    )*};
}

same_as! {
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

with_pc! {
    __tsan_read_range => range_read, "rdx";
    __tsan_write_range => range_write, "rdx";
    __tsan_vptr_update => vptr_update, "rdx";
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

/// The call stack is a ring of 64 KiB, so that adding to the low 16 bits stays inside it. An entry is the
/// return address of the function and a place in it.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn __tsan_func_entry() {
    naked_asm!(
        hot!("mov" "rax", "8", "rcx"),
        "mov rdx, [rsp]",
        "mov [rax], rdi",
        "mov [rax + 8], rdx",
        "add ax, {entry}",
        hot!(store "8", "rax", "rcx"),
        "jc 2f",
        "ret",
        "2:",
        "jmp {deeper}",
        entry = const thread::ENTRY,
        deeper = sym crate::regions::deeper,
    )
}

/// Besides taking the entry back it looks whether `regions` wants to know.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn __tsan_func_exit() {
    naked_asm!(
        hot!("mov" "rax", "8", "rcx"),
        "sub ax, {entry}",
        hot!(store "8", "rax", "rcx"),
        "jc 2f",
        hot!("cmp" "rax", "24", "rcx"),
        "je 3f",
        "ret",
        "2:",
        "jmp {shallower}",
        "3:",
        "jmp {left}",
        entry = const thread::ENTRY,
        shallower = sym crate::regions::shallower,
        left = sym crate::regions::left,
    )
}

with_pc! {
    __tsan_init => module_init, "rdi";
}

/// Instrumented modules announce themselves; everything else was set up before.
unsafe extern "C" fn module_init(pc: usize) {
    crate::init::module(pc);
}

macro_rules! atomic_entries {
    ($($module:ident: $load:ident $store:ident $exchange:ident $add:ident $sub:ident $and:ident $or:ident
        $xor:ident $nand:ident $strong:ident $weak:ident $val:ident;)*) => {$(
        with_pc! {
            $load => crate::atomics::$module::load, "rdx";
            $store => crate::atomics::$module::store, "rcx";
            $exchange => crate::atomics::$module::exchange, "rcx";
            $add => crate::atomics::$module::fetch_add, "rcx";
            $sub => crate::atomics::$module::fetch_sub, "rcx";
            $and => crate::atomics::$module::fetch_and, "rcx";
            $or => crate::atomics::$module::fetch_or, "rcx";
            $xor => crate::atomics::$module::fetch_xor, "rcx";
            $nand => crate::atomics::$module::fetch_nand, "rcx";
            $strong => crate::atomics::$module::compare_exchange, "r9";
            $weak => crate::atomics::$module::compare_exchange, "r9";
            $val => crate::atomics::$module::compare_exchange_val, "r9";
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
    __tsan_atomic128_load => crate::atomics::a128::load, "rdx";
    __tsan_atomic128_store => crate::atomics::a128::store, "r8";
    __tsan_atomic128_exchange => crate::atomics::a128::exchange, "r8";
    __tsan_atomic128_fetch_add => crate::atomics::a128::fetch_add, "r8";
    __tsan_atomic128_fetch_sub => crate::atomics::a128::fetch_sub, "r8";
    __tsan_atomic128_fetch_and => crate::atomics::a128::fetch_and, "r8";
    __tsan_atomic128_fetch_or => crate::atomics::a128::fetch_or, "r8";
    __tsan_atomic128_fetch_xor => crate::atomics::a128::fetch_xor, "r8";
    __tsan_atomic128_fetch_nand => crate::atomics::a128::fetch_nand, "r8";
    __tsan_atomic_thread_fence => thread_fence, "rsi";
}

/// All registers for arguments are taken: the caller's program counter goes where the seventh is expected.
macro_rules! wide_compare_exchange {
    ($($name:ident)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "push qword ptr [rsp]",
                "call {target}",
                "add rsp, 8",
                "ret",
                target = sym crate::atomics::a128::compare_exchange,
            )
        }
    )*};
}

wide_compare_exchange! {
    __tsan_atomic128_compare_exchange_strong
    __tsan_atomic128_compare_exchange_weak
}

/// Here even the order of failure is on the stack; it and the program counter go there again.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn __tsan_atomic128_compare_exchange_val() {
    naked_asm!(
        "sub rsp, 8",
        "push qword ptr [rsp + 8]",
        "push qword ptr [rsp + 24]",
        "call {target}",
        "add rsp, 24",
        "ret",
        target = sym crate::atomics::a128::compare_exchange_val,
    )
}

unsafe extern "C" fn thread_fence(mo: i32, pc: usize) {
    crate::atomics::thread_fence((mo & 7) as u8, pc);
}

/// Orders nothing between threads.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn __tsan_atomic_signal_fence(_mo: i32) {}
