//! Signals: a handler is instrumented code too, and must not run while the runtime holds a lock of
//! its own. Handlers are therefore reached through ours, which puts off what arrives at such a moment.
//! Signals that an instruction of the program caused are delivered at once: the program is not in the
//! runtime then.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

pub mod crash;

use super::real;
use crate::sys;
use crate::thread::{self, Thread};

const SIGNALS: usize = 65;
const SA_SIGINFO: c_int = 4;
const SA_RESTART: c_int = 0x1000_0000;
const SA_ONSTACK: c_int = 0x0800_0000;
const DEFAULT: usize = 0;
const IGNORE: usize = 1;
const ERROR: usize = usize::MAX;

/// The C library's `struct sigaction`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

/// A handler in its long form: the signal, and addresses of what the kernel says about it.
pub type LongHandler = unsafe extern "C" fn(c_int, usize, usize);

impl Action {
    /// Calls `handler`, which then lets happen what would have happened.
    fn before_default(handler: LongHandler) -> Action {
        let flags = SA_SIGINFO | SA_ONSTACK;
        Action { handler: handler as usize, mask: [0; 16], flags, restorer: 0 }
    }
}

/// Puts a handler before the default action of a signal, if the program leaves it at that.
pub fn default_unless_handled(signal: c_int, handler: LongHandler) {
    let plain = |new: *const Action, old: *mut Action| {
        real!(sigaction(signal, new, old) as fn(c_int, *const Action, *mut Action) -> c_int)
    };
    let new = Action::before_default(handler);
    let mut old = new;
    if plain(core::ptr::null(), &raw mut old) == 0 && old.handler == DEFAULT {
        plain(&raw const new, core::ptr::null_mut());
    }
}

/// Makes the default action the next one, whatever the C library has.
pub fn restore_default(signal: c_int) {
    /// Bytes of the kernel's set of signals.
    const SET: usize = 8;
    let action = [DEFAULT, 0, 0, 0];
    // SAFETY: a structure of the kernel's size: handler, flags, restorer and mask.
    unsafe {
        sys::call(sys::SIGACTION, [signal as usize, action.as_ptr() as usize, 0, SET, 0, 0]);
    }
}

/// The program's handlers, and whether they take the long form.
static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];
static LONG_FORM: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];

fn caused_by_instruction(signal: usize, info: *const c_int) -> bool {
    const ILL: usize = 4;
    const TRAP: usize = 5;
    const BUS: usize = 7;
    const FPE: usize = 8;
    const SEGV: usize = 11;
    const SYS: usize = 31;
    // SAFETY: the kernel's siginfo; the third int is the code, positive if the kernel made it.
    matches!(signal, ILL | TRAP | BUS | FPE | SEGV | SYS) && unsafe { info.add(2).read() } > 0
}

unsafe fn call_handler(signal: usize, info: usize, context: usize) {
    let handler = HANDLERS[signal % SIGNALS].load(Ordering::Acquire);
    if handler == DEFAULT || handler == IGNORE {
        return;
    }
    let _errno = super::Errno::keep();
    // SAFETY: the function that the program registered; the short form ignores the other arguments.
    unsafe {
        core::mem::transmute::<usize, unsafe extern "C" fn(c_int, usize, usize)>(handler)(
            signal as c_int,
            info,
            context,
        );
    }
}

unsafe extern "C" fn on_signal(signal: c_int, info: usize, context: usize) {
    let number = signal as usize;
    let t = thread::current();
    // SAFETY: the thread's own block, looked at between two of its instructions.
    unsafe {
        if t.is_null() || (*t).busy == 0 || caused_by_instruction(number, info as *const c_int) {
            return call_handler(number, info, context);
        }
        (*t).pending |= 1 << (number - 1);
        crate::control::interrupted(&*t);
    }
}

/// Runs the handlers of signals that were put off. What the kernel said about them is not kept, except
/// their number.
///
/// # Safety
/// `t` is the current thread, which is not busy.
#[cold]
pub unsafe fn deliver_pending(t: *mut Thread) {
    // SAFETY: the caller's.
    let pending = unsafe { core::mem::replace(&mut (*t).pending, 0) };
    for number in 1..SIGNALS {
        if pending >> (number - 1) & 1 != 0 {
            let info = [number as c_int; 32];
            let context = [0u64; 128];
            // SAFETY: zeroed structures of sufficient size stand for what the kernel would pass.
            unsafe { call_handler(number, info.as_ptr() as usize, context.as_ptr() as usize) };
        }
    }
}

/// `sigaction`
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    let number = signal as usize % SIGNALS;
    let plain = |new: *const Action, old: *mut Action| {
        real!(sigaction(signal, new, old) as fn(c_int, *const Action, *mut Action) -> c_int)
    };
    let former = HANDLERS[number].load(Ordering::Acquire);
    let former_long = LONG_FORM[number].load(Ordering::Acquire);
    let result = if new.is_null() {
        plain(new, old)
    } else {
        // SAFETY: the program's structure.
        let mut action = unsafe { new.read() };
        let theirs = action.handler;
        if theirs != DEFAULT && theirs != IGNORE {
            LONG_FORM[number].store((action.flags & SA_SIGINFO) as usize, Ordering::Release);
            crate::control::handles_signal(number);
            action.handler = on_signal as *const () as usize;
            action.flags |= SA_SIGINFO;
        } else if theirs == DEFAULT
            && let Some(handler) = crash::action(number)
        {
            action = Action::before_default(handler);
        }
        HANDLERS[number].store(theirs, Ordering::Release);
        let result = plain(&raw const action, old);
        if result != 0 {
            HANDLERS[number].store(former, Ordering::Release);
        }
        result
    };
    if result == 0 && !old.is_null() {
        // SAFETY: the program's structure, just written by the C library.
        unsafe {
            if (*old).handler == on_signal as *const () as usize {
                (*old).handler = former;
                if former_long == 0 {
                    (*old).flags &= !SA_SIGINFO;
                }
            } else if let Some(ours) = crash::action(number)
                && (*old).handler == ours as usize
            {
                (*old).handler = DEFAULT;
                (*old).flags = 0;
            }
        }
    }
    result
}

/// `signal`, as the BSD-flavoured function that the C library makes it.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn signal(signal: c_int, handler: usize) -> usize {
    let new = Action { handler, mask: [0; 16], flags: SA_RESTART, restorer: 0 };
    let mut old = new;
    // SAFETY: both structures live here.
    if unsafe { sigaction(signal, &raw const new, &raw mut old) } == 0 {
        old.handler
    } else {
        ERROR
    }
}
