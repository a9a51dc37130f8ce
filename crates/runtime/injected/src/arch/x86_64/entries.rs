//! Entry points without a frame of their own.
//!
//! Ground rules:
//! - The caller's program counter is the word at the top of the stack, and only a naked function knows where that is.
//!   It passes the program counter on as one more argument, behind those that its caller gave.
//! - An entry leaves by a jump wherever it can, so that the function behind it returns to the caller. Where it has to
//!   come back, it keeps the stack aligned to 16 bytes at the call.
//! - A table says how many of the registers for arguments the caller uses: the program counter goes into the next one.

/// A function that is nothing but these instructions.
macro_rules! entry {
    ($name:ident, $($code:tt)*) => {
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!($($code)*)
        }
    };
}

/// The register of an argument, by its number from 0.
macro_rules! argument {
    (0) => {
        "rdi"
    };
    (1) => {
        "rsi"
    };
    (2) => {
        "rdx"
    };
    (3) => {
        "rcx"
    };
    (4) => {
        "r8"
    };
    (5) => {
        "r9"
    };
}

/// Functions that pass all their arguments, so many, and the program counter to another one.
macro_rules! with_pc {
    ($($name:ident => $target:path, $arguments:tt;)*) => {$(
        $crate::arch::entry!($name,
            concat!("mov ", $crate::arch::argument!($arguments), ", qword ptr [rsp]"),
            "jmp {}",
            sym $target,
        );
    )*};
}

/// Functions that are others under another name.
macro_rules! same_as {
    ($($name:ident => $target:path;)*) => {$(
        $crate::arch::entry!($name, "jmp {}", sym $target);
    )*};
}

/// Functions whose last argument is the seventh, on the stack: it and the program counter go there again.
macro_rules! with_pc_behind_seven {
    ($($name:ident => $target:path;)*) => {$(
        $crate::arch::entry!($name,
            "sub rsp, 8",
            "push qword ptr [rsp + 8]",
            "push qword ptr [rsp + 24]",
            "call {}",
            "add rsp, 24",
            "ret",
            sym $target,
        );
    )*};
}

/// Functions that use all registers for arguments: the program counter goes where the seventh is expected.
macro_rules! with_pc_behind_six {
    ($($name:ident => $target:path;)*) => {$(
        $crate::arch::entry!($name, "push qword ptr [rsp]", "call {}", "add rsp, 8", "ret", sym $target);
    )*};
}

/// Functions of two arguments at most that try another one, with the program counter; if that returns 0, they go on
/// with the function whose address `next` returns, as if they had not been there.
macro_rules! or_next {
    ($($name:ident => $target:path, $arguments:tt, else $next:path;)*) => {$(
        $crate::arch::entry!($name,
            "push rdi",
            "push rsi",
            "sub rsp, 8",
            concat!("mov ", $crate::arch::argument!($arguments), ", qword ptr [rsp + 24]"),
            "call {target}",
            "test rax, rax",
            "jnz 2f",
            "call {next}",
            "add rsp, 8",
            "pop rsi",
            "pop rdi",
            "jmp rax",
            "2:",
            "add rsp, 24",
            "ret",
            target = sym $target,
            next = sym $next,
        );
    )*};
}

/// Functions of two arguments at most that call another one first, and go on with the function whose address it
/// returns, as if they had not been there.
macro_rules! noted_first {
    ($($name:ident => $note:path;)*) => {$(
        $crate::arch::entry!($name,
            "push rdi",
            "push rsi",
            "sub rsp, 8",
            "call {note}",
            "add rsp, 8",
            "pop rsi",
            "pop rdi",
            "jmp rax",
            note = sym $note,
        );
    )*};
}

/// Functions with variable arguments behind so many fixed ones: the target gets the fixed ones, a `va_list` of the
/// others and the program counter, whose numbers as arguments follow.
macro_rules! variable {
    ($($name:ident => $target:path, $fixed:tt, $list:tt, $pc:tt;)*) => {$(
        $crate::arch::entry!($name,
            ".cfi_startproc",
            "sub rsp, 216",
            ".cfi_adjust_cfa_offset 216",
            "mov [rsp], rdi",
            "mov [rsp + 8], rsi",
            "mov [rsp + 16], rdx",
            "mov [rsp + 24], rcx",
            "mov [rsp + 32], r8",
            "mov [rsp + 40], r9",
            "movaps [rsp + 48], xmm0",
            "movaps [rsp + 64], xmm1",
            "movaps [rsp + 80], xmm2",
            "movaps [rsp + 96], xmm3",
            "movaps [rsp + 112], xmm4",
            "movaps [rsp + 128], xmm5",
            "movaps [rsp + 144], xmm6",
            "movaps [rsp + 160], xmm7",
            concat!("mov dword ptr [rsp + 176], 8 * ", $fixed),
            "mov dword ptr [rsp + 180], 48",
            "lea rax, [rsp + 224]",
            "mov [rsp + 184], rax",
            "mov [rsp + 192], rsp",
            concat!("lea ", $crate::arch::argument!($list), ", [rsp + 176]"),
            concat!("mov ", $crate::arch::argument!($pc), ", [rsp + 216]"),
            "call {}",
            "add rsp, 216",
            ".cfi_adjust_cfa_offset -216",
            "ret",
            ".cfi_endproc",
            sym $target,
        );
    )*};
}

/// The address of a function that may not be there; 0 if it is not.
macro_rules! weak {
    ($name:literal) => {{
        let at: usize;
        // SAFETY: loads the address of a symbol, null if no module defines it.
        unsafe {
            core::arch::asm!(concat!(".weak ", $name),
                concat!("mov {at}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                at = out(reg) at, options(nostack, pure, readonly, preserves_flags));
        }
        at
    }};
}

pub(crate) use {
    argument, entry, noted_first, or_next, same_as, variable, weak, with_pc, with_pc_behind_seven,
    with_pc_behind_six,
};
