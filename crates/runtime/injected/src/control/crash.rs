//! Where the program was when a signal ended it.
//!
//! A signal that ends the process says nothing about the place. So the runtime handles the signals that
//! mean a mistake, as long as the program does not: it writes down where the thread was, and lets the
//! signal do what it would have done. A program that asks for the action gets the default one.
//!
//! Nothing is known of a thread that has used up its stack, unless it has another one for signals.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::wire::{Control, Crash};
use super::{control, is_on};
use crate::interpose::signal;
use crate::sys;

/// SIGILL, SIGABRT, SIGBUS, SIGFPE and SIGSEGV.
const SIGNALS: [usize; 5] = [4, 6, 7, 8, 11];

/// From the start of a `ucontext_t` to the saved stack and instruction pointers.
const STACK: usize = 160;
const INSTRUCTION: usize = 168;
/// From the start of a `siginfo_t` to the address that could not be accessed.
const ADDRESS: usize = 16;

/// From now on the place of a crash is written down.
pub fn watch() {
    for signal in SIGNALS {
        signal::default_unless_handled(signal as c_int, on_crash);
    }
}

/// The action that stands for the default one.
pub fn action(signal: usize) -> Option<signal::LongHandler> {
    (is_on() && SIGNALS.contains(&signal)).then_some(on_crash as signal::LongHandler)
}

/// The kernel has made the default action the next one already.
unsafe extern "C" fn on_crash(signal: c_int, info: usize, context: usize) {
    // SAFETY: the kernel's structures, which are longer than that.
    let (code, addr, stack, pc) = unsafe {
        (
            ((info + 8) as *const c_int).read(),
            ((info + ADDRESS) as *const u64).read(),
            ((context + STACK) as *const usize).read(),
            ((context + INSTRUCTION) as *const u64).read(),
        )
    };
    let by_instruction = code > 0;
    if let Some(c) = control()
        && c.child.load(Acquire) == sys::pid()
        && c.crash.signal.compare_exchange(0, signal as u32, AcqRel, Relaxed).is_ok()
    {
        c.crash.pc.store(pc, Relaxed);
        c.crash.addr.store(if by_instruction { addr } else { u64::MAX }, Relaxed);
        c.crash.thread.store(thread_number(c), Relaxed);
        keep_stack(&c.crash, stack);
    }
    if !by_instruction {
        // An instruction fails again; a signal that was sent has to be sent again.
        const TGKILL: usize = 234;
        let (pid, tid) = (sys::pid() as usize, super::tid() as usize);
        // SAFETY: no memory involved.
        unsafe { sys::call(TGKILL, [pid, tid, signal as usize, 0, 0, 0]) };
    }
}

/// Number of the current thread plus one, or 0. It may be past its last step, and giving back what
/// the C library keeps for it.
fn thread_number(c: &Control) -> u32 {
    let tid = super::tid();
    let mine = |&i: &usize| c.slots[i].tid.load(Relaxed) == tid;
    (0..c.threads()).rev().find(mine).map_or(0, |i| i as u32 + 1)
}

/// Copies what there is from `from` on. The kernel does it, because the pointer may lead nowhere.
fn keep_stack(crash: &Crash, from: usize) {
    const PROCESS_VM_READV: usize = 310;
    const PAGE: usize = 4096;
    let to = crash.stack.as_ptr() as usize;
    let len = size_of_val(&crash.stack);
    // The piece up to the end of the page is there even if the next page is not.
    let first = len.min(PAGE - from % PAGE);
    let local = [to, len];
    let remote = [from, first, from.wrapping_add(first), len - first];
    let at = |a: &[usize]| a.as_ptr() as usize;
    let pid = sys::pid() as usize;
    // SAFETY: it writes to the atomics of the crash, which no other thread writes now.
    let read =
        unsafe { sys::call(PROCESS_VM_READV, [pid, at(&local), 1, at(&remote), 2, 0]) } as isize;
    let words = read.max(0) as usize / size_of::<u64>();
    crash.stack_len.store(words as u32, Relaxed);
}
