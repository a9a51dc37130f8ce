//! The words that each thread has for itself, where the entries of [`check`](super::check) find them.
//!
//! | offset | what |
//! | --- | --- |
//! | 0 | the filter: the epoch with all byte bits. 0 matches untouched shadow, so unknown threads pass |
//! | 8 | the top of the call stack |
//! | 16 | the thread, null if the runtime does not know it |
//! | 24 | the entry of the call stack whose end is to be seen; 0 for none |
//!
//! They start as constants, so a thread that the runtime does not know is harmless.

use core::arch::{asm, global_asm};

use crate::layout;

global_asm!(
    r#"
    .section .tdata,"awT",@progbits
    .balign 32
    .hidden selvedge_hot
    .globl selvedge_hot
    .type selvedge_hot, @object
    .size selvedge_hot, 32
selvedge_hot:
    .quad 0
    .quad {stack}
    .quad 0
    .quad 0
    .text
    "#,
    stack = const layout::NOBODYS_STACK,
);

/// Reads the word at an offset.
macro_rules! load {
    ($offset:literal) => {{
        let word: usize;
        // SAFETY: reads a thread-local word of ours.
        unsafe {
            asm!("mov {t}, qword ptr [rip + selvedge_hot@GOTTPOFF]",
                concat!("mov {t}, qword ptr fs:[{t} + ", $offset, "]"),
                t = out(reg) word, options(nostack, readonly, preserves_flags));
        }
        word
    }};
}

/// Writes the word at an offset.
macro_rules! store {
    ($offset:literal, $word:expr) => {
        // SAFETY: writes a thread-local word of ours.
        unsafe {
            asm!("mov {t}, qword ptr [rip + selvedge_hot@GOTTPOFF]",
                concat!("mov qword ptr fs:[{t} + ", $offset, "], {v}"),
                t = out(reg) _, v = in(reg) $word, options(nostack, preserves_flags));
        }
    };
}

/// Sets the filter.
#[inline(always)]
pub fn set_filter(filter: u64) {
    store!("0", filter);
}

/// The top of the call stack.
#[inline(always)]
pub fn stack_top() -> usize {
    load!("8")
}

/// Sets the top of the call stack.
#[inline(always)]
pub fn set_stack_top(top: usize) {
    store!("8", top);
}

/// The address of the thread's block.
#[inline(always)]
pub fn thread() -> usize {
    load!("16")
}

/// Sets the address of the thread's block.
#[inline(always)]
pub fn set_thread(block: usize) {
    store!("16", block);
}

/// Sets the entry of the call stack whose end is to be seen.
#[inline(always)]
pub fn set_innermost(entry: usize) {
    store!("24", entry);
}
