//! Where the program was when a signal ended it, and what it said.
//!
//! A signal that ends the process says nothing about the place. So the runtime handles the signals that
//! mean a mistake, as long as the program does not: it writes down where the thread was, and lets the
//! signal do what it would have done. A program that asks for the action gets the default one. This is the
//! same whether the program runs freely or is controlled.
//!
//! Nothing is known of a thread that has used up its stack, unless it has another one for signals.

use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::{LongHandler, default_unless_handled, restore_default};
use crate::arch::glibc::signal as layout;
use crate::arch::words;
use crate::control;
use crate::interpose::real;
use crate::rings;
use crate::sys;
use crate::thread;
use crate::wire::{Crash, FRAMES, REGISTERS, Shared};

/// SIGILL, SIGABRT, SIGBUS, SIGFPE and SIGSEGV.
const SIGNALS: [usize; 5] = [4, 6, 7, 8, 11];

/// The memory to write to, if this process is the one that the host watches.
fn watched() -> Option<&'static Shared> {
    let shared = rings::shared()?;
    let process =
        if control::is_on() { control::process() } else { shared.header.program.load(Acquire) };
    (process == sys::pid()).then_some(shared)
}

/// From now on the place of a crash is written down.
pub fn watch() {
    if watched().is_some() {
        for signal in SIGNALS {
            default_unless_handled(signal as c_int, on_crash);
        }
    }
}

/// The action that stands for the default one.
pub fn action(signal: usize) -> Option<LongHandler> {
    let watched = rings::shared().is_some() && SIGNALS.contains(&signal);
    watched.then_some(on_crash as LongHandler)
}

unsafe extern "C" fn on_crash(signal: c_int, info: usize, context: usize) {
    // SAFETY: the kernel's structures, which are longer than that.
    let (code, addr, registers) = unsafe {
        (
            ((info + 8) as *const c_int).read(),
            ((info + layout::ADDRESS) as *const u64).read(),
            ((context + layout::REGISTERS) as *const [u64; REGISTERS]).read(),
        )
    };
    let by_instruction = code > 0;
    if let Some(shared) = watched() {
        let crash = &shared.crash;
        if crash.signal.compare_exchange(0, signal as u32, AcqRel, Relaxed).is_ok() {
            for (word, register) in crash.registers.iter().zip(registers) {
                word.store(register, Relaxed);
            }
            crash.addr.store(if by_instruction { addr } else { u64::MAX }, Relaxed);
            crash.thread.store(thread_number(), Relaxed);
            keep_calls(crash);
            keep_stack(crash, registers[layout::STACK_POINTER] as usize);
            crash.done.store(1, Release);
        } else {
            await_other(crash);
        }
    }
    restore_default(signal);
    if !by_instruction {
        // An instruction fails again; a signal that was sent has to be sent again.
        let (pid, tid) = (sys::pid() as usize, sys::tid() as usize);
        // SAFETY: no memory involved.
        unsafe { sys::call(sys::TGKILL, [pid, tid, signal as usize, 0, 0, 0]) };
    }
}

/// Another thread has crashed before: it ends the process when it has written down where it was.
fn await_other(crash: &Crash) {
    let mut rounds = 0;
    while crash.done.load(Acquire) == 0 && rounds < 1000 {
        sys::pause(1_000_000);
        rounds += 1;
    }
}

/// Number of the current thread plus one, or 0.
fn thread_number() -> u32 {
    if control::is_on() {
        return control::number_by_kernel();
    }
    let t = thread::current();
    // SAFETY: null, or the thread's own block.
    if t.is_null() { 0 } else { unsafe { (*t).number + 1 } }
}

/// Keeps the instrumented functions that the thread is in.
fn keep_calls(crash: &Crash) {
    let t = thread::current();
    if t.is_null() {
        return;
    }
    let mut frames = [0; FRAMES];
    // SAFETY: the thread's own block.
    let count = unsafe { (*t).stack(words::stack_top(), &mut frames) };
    for (word, frame) in crash.calls.iter().zip(frames) {
        word.store(frame, Relaxed);
    }
    crash.calls_len.store(count, Relaxed);
}

/// Copies what there is from `from` on. The kernel does it, because the pointer may lead nowhere.
fn keep_stack(crash: &Crash, from: usize) {
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
    let read = unsafe { sys::call(sys::PROCESS_VM_READV, [pid, at(&local), 1, at(&remote), 2, 0]) }
        as isize;
    let words = read.max(0) as usize / size_of::<u64>();
    crash.stack_len.store(words as u32, Relaxed);
}

/// `__assert_fail`: what the C library is about to write to standard error is kept for the host, which may
/// not see standard error.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn __assert_fail(
    assertion: *const c_char,
    file: *const c_char,
    line: u32,
    function: *const c_char,
) {
    if let Some(shared) = watched()
        && shared.crash.said_len.compare_exchange(0, u32::MAX, AcqRel, Relaxed).is_ok()
    {
        // SAFETY: the strings that the compiler made of the assertion; the function may be missing.
        unsafe { keep_assertion(&shared.crash, assertion, file, line, function) };
    }
    real!(__assert_fail(assertion, file, line, function)
        as fn(*const c_char, *const c_char, u32, *const c_char) -> ());
}

/// Writes the C library's own line, without the name of the program.
///
/// # Safety
/// The pointers are null or terminated strings.
unsafe fn keep_assertion(
    crash: &Crash,
    assertion: *const c_char,
    file: *const c_char,
    line: u32,
    function: *const c_char,
) {
    let mut len = 0;
    let mut put = |byte: u8| {
        if let Some(place) = crash.said.get(len) {
            place.store(byte, Relaxed);
            len += 1;
        }
    };
    // SAFETY: the caller's.
    unsafe {
        b": ".iter().for_each(|&b| put(b));
        text(file, &mut put);
        put(b':');
        sys::digits(u64::from(line), &mut put);
        b": ".iter().for_each(|&b| put(b));
        text(function, &mut put);
        b": Assertion `".iter().for_each(|&b| put(b));
        text(assertion, &mut put);
        b"' failed.".iter().for_each(|&b| put(b));
    }
    crash.said_len.store(len as u32, Release);
}

/// # Safety
/// `from` is null or a terminated string.
unsafe fn text(from: *const c_char, put: &mut impl FnMut(u8)) {
    let mut at = from.cast::<u8>();
    // SAFETY: the caller's.
    unsafe {
        while !at.is_null() && at.read() != 0 {
            put(at.read());
            at = at.add(1);
        }
    }
}
