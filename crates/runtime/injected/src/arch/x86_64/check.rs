//! The filter: most accesses end here, because their thread has made them in this epoch before.
//!
//! Ground rules:
//! - Entries are naked, see [`entries`](super::entries). They compare with the shadow and leave by a jump to a Rust
//!   function that takes the program counter as one more argument.
//! - The filter in assembly is exactly `fasttrack::filtered`: the word of the shadow, exclusive-or the
//!   thread's filter word, must have no bit left among bytes, epoch and atomic (the lowest 41).

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
        $crate::arch::entry!($name,
            "movabs rax, {granule}",
            "and rax, rdi",
            "movabs r8, {shadow}",
            $crate::arch::hot!("mov" "rdx", "0", "rcx"),
            concat!("mov rsi, [r8 + rax * 2 + ", $word, "]"),
            "mov rcx, rsi",
            "xor rcx, rdx",
            "shl rcx, 23",
            "jnz 2f",
            "ret",
            "2:",
            "lea rcx, [r8 + rax * 2]",
            $crate::arch::hot!("mov" "r9", "16", "r9"),
            "test r9, r9",
            "jz 3f",
            $covered,
            "mov rdx, r9",
            "mov rsi, [rsp]",
            "jmp {target}",
            "3:",
            "ret",
            granule = const $crate::arch::GRANULE,
            shadow = const $crate::layout::SHADOW,
            target = sym $target,
        );
    )*};
}

/// Picks the granule out of an address.
pub const GRANULE: usize = (1 << crate::layout::SPACE_BITS) - 8;

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

const _: () = assert!(crate::layout::KNOWN == 32, "as in `covered`");

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
        $crate::arch::entry!($name,
            "mov rax, rdi",
            "shl rax, 20",
            "shr rax, 19",
            $crate::arch::hot!("mov" "rdx", "0", "rcx"),
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
            $crate::arch::hot!("mov" "r8", "16", "r8"),
            "test r8, r8",
            "jz 4f",
            "test dil, 7",
            "jnz 5f",
            $crate::arch::granule!($first, $first_write, "3"),
            $crate::arch::granule!($second, $second_write, "4"),
            "ret",
            "5:",
            "mov rdx, r8",
            "mov rsi, [rsp]",
            "jmp {target}",
            shadow = const $crate::layout::SHADOW,
            known = const $crate::layout::KNOWN,
            target = sym $target,
        );
    )*};
}

/// Accesses of 1, 2 or 4 bytes within a granule: of the byte bits only the touched ones matter.
macro_rules! part {
    ($($name:ident, $target:path, $word:literal, $bytes:literal;)*) => {$(
        $crate::arch::entry!($name,
            "movabs rax, {granule}",
            "and rax, rdi",
            "movabs r8, {shadow}",
            $crate::arch::hot!("mov" "rdx", "0", "rcx"),
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
            $crate::arch::hot!("mov" "rdx", "16", "rdx"),
            "test rdx, rdx",
            "jz 3f",
            "mov rsi, [rsp]",
            "jmp {target}",
            "3:",
            "ret",
            granule = const $crate::arch::GRANULE,
            shadow = const $crate::layout::SHADOW,
            above = const $crate::shadow::EPOCH | $crate::shadow::ATOMIC,
            target = sym $target,
        );
    )*};
}

/// Returns if two granules that follow each other have all bytes of an access across them in these words: of the bytes
/// those that are touched, and everything above the bytes. `r8` has the shadow of the first one, `cl` the first byte.
macro_rules! across {
    ($word:literal, $next:literal, $bytes:literal, or $other:literal) => {
        concat!(
            $crate::arch::hot!("mov" "rdx", "0", "rax"),
            "\nmov rsi, [r8 + ",
            $word,
            "]\n",
            "xor rsi, rdx\n",
            "xor rdx, [r8 + ",
            $next,
            "]\n",
            // Of both: epoch and atomic.
            "mov rax, rsi\n",
            "or rax, rdx\n",
            "shl rax, 23\n",
            "shr rax, 31\n",
            "jnz ",
            $other,
            "f\n",
            // The bytes that the words lack, those of the second granule above those of the first.
            "movzx eax, sil\n",
            "movzx edx, dl\n",
            "shl edx, 8\n",
            "or eax, edx\n",
            "mov esi, ",
            $bytes,
            "\nshl esi, cl\n",
            "test eax, esi\n",
            "jnz ",
            $other,
            "f\n",
            "ret\n",
            $other,
            ":"
        )
    };
}

/// Accesses that may be unaligned. Those within a granule go on as aligned ones. A read is also covered by writes of this
/// epoch. The shadow goes on behind a granule; where addresses wrap it does not, but no program has memory there.
macro_rules! perhaps_unaligned {
    ($($name:ident $len:literal $within:path, $target:path, $($code:expr),*;)*) => {$(
        $crate::arch::entry!($name,
            "mov ecx, edi",
            "and ecx, 7",
            concat!("cmp ecx, 8 - ", $len),
            "ja 2f",
            "jmp {within}",
            "2:",
            "movabs rax, {granule}",
            "and rax, rdi",
            "movabs r8, {shadow}",
            "lea r8, [r8 + rax * 2]",
            $($code,)*
            "mov rsi, [rsp]",
            "jmp {target}",
            within = sym $within,
            granule = const $crate::arch::GRANULE,
            shadow = const $crate::layout::SHADOW,
            target = sym $target,
        );
    )*};
}

/// Accesses of 16 bytes that may be unaligned, and mostly are not.
macro_rules! perhaps_unaligned_double {
    ($($name:ident => aligned $aligned:path, unaligned $target:path;)*) => {$(
        $crate::arch::entry!($name,"test dil, 7", "jnz 2f", "jmp {}", "2:", "mov rsi, [rsp]", "jmp {}",
            sym $aligned, sym $target
        );
    )*};
}

/// Accesses of any number of bytes, which are often those of one number: gcc says so of whatever may be unaligned.
macro_rules! ranges {
    ($($name:ident $target:path, of 4 $four:path, of 8 $eight:path;)*) => {$(
        $crate::arch::entry!($name,
            "cmp rsi, 8",
            "je 2f",
            "cmp rsi, 4",
            "je 3f",
            "mov rdx, [rsp]",
            "jmp {}",
            "2:",
            "jmp {}",
            "3:",
            "jmp {}",
            sym $target, sym $eight, sym $four
        );
    )*};
}

/// A function is entered: its return address and a place in it go on the call stack, a ring of 64 KiB, so that
/// adding to the low 16 bits stays inside it.
macro_rules! enters {
    ($name:ident, beyond $deeper:path) => {
        $crate::arch::entry!($name,
            $crate::arch::hot!("mov" "rax", "8", "rcx"),
            "mov rdx, [rsp]",
            "mov [rax], rdi",
            "mov [rax + 8], rdx",
            "add ax, {entry}",
            $crate::arch::hot!(store "8", "rax", "rcx"),
            "jc 2f",
            "ret",
            "2:",
            "jmp {deeper}",
            entry = const $crate::layout::ENTRY,
            deeper = sym $deeper,
        );
    };
}

/// A function is left: the entry is taken back, and if it is the one that `left` wants to know of, that is called.
macro_rules! leaves {
    ($name:ident, beyond $shallower:path, at the innermost $left:path) => {
        $crate::arch::entry!($name,
            $crate::arch::hot!("mov" "rax", "8", "rcx"),
            "sub ax, {entry}",
            $crate::arch::hot!(store "8", "rax", "rcx"),
            "jc 2f",
            $crate::arch::hot!("cmp" "rax", "24", "rcx"),
            "je 3f",
            "ret",
            "2:",
            "jmp {shallower}",
            "3:",
            "jmp {left}",
            entry = const $crate::layout::ENTRY,
            shallower = sym $shallower,
            left = sym $left,
        );
    };
}

pub(crate) use {
    across, covered, double, enters, granule, hot, leaves, part, perhaps_unaligned,
    perhaps_unaligned_double, ranges, whole,
};
