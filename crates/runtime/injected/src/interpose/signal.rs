//! Signals: a handler is instrumented code too, and must not run while the runtime holds a lock of
//! its own. Handlers are therefore reached through ours, which puts off what arrives at such a moment.
//! Signals that an instruction of the program caused are delivered at once: the program is not in the
//! runtime then.
//!
//! Ground rules:
//! - While a signal is put off the kernel delivers no other one to the thread, so that the order of signals,
//!   how many there are and what the kernel says about them are kept.
//! - A handler that was put off runs with the mask that the kernel would have given it: what was blocked,
//!   what its `sigaction` blocks, and the signal itself unless that has `SA_NODEFER`.
//! - What a thread did before it installed a handler comes before every run of the handler, and what it did
//!   before it sent a signal comes before the runs that it may have caused.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

pub mod crash;

use super::real;
use crate::arch::glibc;
use crate::arch::with_pc;
use crate::misuse::{self, ExpectsSignal};
use crate::primitives::{happens_after, happens_before};
use crate::sys;
use crate::thread::{self, Thread};

const SIGNALS: usize = 65;
const SA_SIGINFO: c_int = 4;
const SA_RESTART: c_int = 0x1000_0000;
const SA_ONSTACK: c_int = 0x0800_0000;
const SA_NODEFER: c_int = 0x4000_0000;
const SA_RESETHAND: c_int = 1 << 31;
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

/// What the program wants done with each signal: its handler, the flags and the signals to block meanwhile.
static HANDLERS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];
static FLAGS: [AtomicI32; SIGNALS] = [const { AtomicI32::new(0) }; SIGNALS];
static MASKS: [AtomicU64; SIGNALS] = [const { AtomicU64::new(0) }; SIGNALS];
/// Synchronization objects are found by address; the program has no memory at these addresses. This one is
/// what is released by setting timers.
const TIMERS: usize = 0x4340_0000_0000;
/// How far apart they are, as for descriptors.
const KEY: usize = 16;

/// What is released by installing the handler of a signal, and by sending it to any thread.
fn handler_key(signal: usize) -> usize {
    TIMERS + (1 + signal % SIGNALS) * KEY
}

/// What is released by sending a signal to the thread.
fn thread_key(thread: &Thread, signal: usize) -> usize {
    TIMERS + ((1 + thread.index as usize) * 2 * SIGNALS + signal % SIGNALS) * KEY
}

/// The thread is about to handle a signal, or has waited for it: see the ground rules.
fn received(signal: usize, by_timer: bool, pc: usize) {
    let Some(t) = thread::me() else { return };
    let own = thread_key(t, signal);
    happens_after(handler_key(signal), pc);
    happens_after(own, pc);
    if by_timer {
        happens_after(TIMERS, pc);
    }
}

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
    const SI_TIMER: c_int = -2;
    // SAFETY: the kernel's structure, or one that stands for it; the third int is the code.
    let by_timer = unsafe { (info as *const c_int).add(2).read() } == SI_TIMER;
    {
        let _errno = super::Errno::keep();
        // Sites are those of return addresses.
        received(signal, by_timer, handler + 1);
    }
    let before = misuse::handles(signal, !caused_by_instruction(signal, info as *const c_int));
    // SAFETY: the function that the program registered; the short form ignores the other arguments.
    unsafe {
        core::mem::transmute::<usize, unsafe extern "C" fn(c_int, usize, usize)>(handler)(
            signal as c_int,
            info,
            context,
        );
    }
    misuse::handled(&before, handler);
}

unsafe extern "C" fn on_signal(signal: c_int, info: usize, context: usize) {
    let number = signal as usize;
    let t = thread::current();
    // SAFETY: the thread's own block, looked at between two of its instructions.
    unsafe {
        if t.is_null() || (*t).busy == 0 || caused_by_instruction(number, info as *const c_int) {
            return call_handler(number, info, context);
        }
        put_off(&mut *t, number, info, context);
        crate::control::interrupted(&*t);
    }
}

/// Signals that are never blocked: those that instructions cause, and two of the C library's own.
const UNBLOCKED: u64 = bit(4) | bit(5) | bit(7) | bit(8) | bit(11) | bit(31) | bit(32) | bit(33);

const fn bit(signal: usize) -> u64 {
    1 << (signal - 1)
}

/// Keeps a signal until the runtime is left, and all others away.
///
/// # Safety
/// `info` and `context` are the kernel's, of the thread's current signal.
unsafe fn put_off(t: &mut Thread, number: usize, info: usize, context: usize) {
    // SAFETY: the caller's; the kernel's mask of signals is one word.
    unsafe {
        if t.pending == 0 {
            let mask = (context + glibc::signal::MASK) as *mut u64;
            t.pending_mask = mask.read();
            t.pending_info = (info as *const [u64; 16]).read();
            mask.write(!UNBLOCKED);
        }
    }
    t.pending |= bit(number);
}

fn set_mask(mask: u64) {
    const SET: usize = 2;
    // SAFETY: the kernel reads one word.
    unsafe { sys::call(sys::SIGPROCMASK, [SET, (&raw const mask) as usize, 0, 8, 0, 0]) };
}

/// Runs the handlers of signals that were put off. Of a context nothing is kept but the mask.
///
/// # Safety
/// `t` is the current thread, which is not busy.
#[cold]
pub unsafe fn deliver_pending(t: *mut Thread) {
    // SAFETY: the caller's. From here on another signal may be put off.
    let (pending, mask, first) = unsafe {
        let kept = ((*t).pending, (*t).pending_mask, (*t).pending_info);
        (*t).pending = 0;
        kept
    };
    for number in (1..SIGNALS).filter(|&number| pending & bit(number) != 0) {
        let mut context = [0u64; 128];
        context[glibc::signal::MASK / 8] = mask;
        // The first int is the number.
        let info = if first[0] as u32 as usize == number { first } else { [number as u64; 16] };
        let deferred = FLAGS[number].load(Ordering::Acquire) & SA_NODEFER == 0;
        let own = if deferred { bit(number) } else { 0 };
        set_mask((mask | MASKS[number].load(Ordering::Acquire) | own) & !UNBLOCKED);
        // SAFETY: structures of sufficient size stand for what the kernel would pass.
        unsafe { call_handler(number, info.as_ptr() as usize, context.as_ptr() as usize) };
    }
    set_mask(mask);
}

/// In the child of a fork: what was put off is the parent's.
pub fn after_fork(t: &mut Thread) {
    if t.pending != 0 {
        t.pending = 0;
        set_mask(t.pending_mask);
    }
}

unsafe extern "C" fn do_sigaction(
    signal: c_int,
    new: *const Action,
    old: *mut Action,
    pc: usize,
) -> c_int {
    let number = signal as usize % SIGNALS;
    let plain = |new: *const Action, old: *mut Action| {
        real!(sigaction(signal, new, old) as fn(c_int, *const Action, *mut Action) -> c_int)
    };
    let former = HANDLERS[number].load(Ordering::Acquire);
    let former_flags = FLAGS[number].load(Ordering::Acquire);
    let result = if new.is_null() {
        plain(new, old)
    } else {
        // SAFETY: the program's structure.
        let mut action = unsafe { new.read() };
        let theirs = action.handler;
        if theirs != DEFAULT && theirs != IGNORE {
            FLAGS[number].store(action.flags, Ordering::Release);
            MASKS[number].store(action.mask[0], Ordering::Release);
            crate::control::handles_signal(number);
            misuse::installs(number, pc);
            happens_before(handler_key(number), pc);
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
                if former_flags & SA_SIGINFO == 0 {
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

/// Installs a handler in the way of `signal`, with the given flags.
fn install(signal: c_int, handler: usize, flags: c_int, pc: usize) -> usize {
    let new = Action { handler, mask: [0; 16], flags, restorer: 0 };
    let mut old = new;
    // SAFETY: both structures live here.
    if unsafe { do_sigaction(signal, &raw const new, &raw mut old, pc) } == 0 {
        old.handler
    } else {
        ERROR
    }
}

/// `signal`, as the BSD-flavoured function that the C library makes it.
unsafe extern "C" fn do_signal(signal: c_int, handler: usize, pc: usize) -> usize {
    install(signal, handler, SA_RESTART, pc)
}

/// `signal`, as System V has it and strict dialects of C get it.
unsafe extern "C" fn do_sysv_signal(signal: c_int, handler: usize, pc: usize) -> usize {
    install(signal, handler, SA_RESETHAND | SA_NODEFER, pc)
}

/// A signal is about to be sent to a thread, or to any thread of this process.
fn sending(to: Option<&Thread>, signal: c_int, pc: usize) {
    let number = signal as usize % SIGNALS;
    happens_before(to.map_or(handler_key(number), |t| thread_key(t, number)), pc);
}

unsafe extern "C" {
    fn pthread_self() -> usize;
}

fn is_self(id: usize) -> bool {
    // SAFETY: no memory involved.
    id == unsafe { pthread_self() }
}

unsafe extern "C" fn do_pthread_kill(id: usize, signal: c_int, pc: usize) -> c_int {
    sending(thread::find(id), signal, pc);
    let _expected = is_self(id).then(ExpectsSignal::begin);
    real!(pthread_kill(id, signal) as fn(usize, c_int) -> c_int)
}

unsafe extern "C" fn do_pthread_sigqueue(
    id: usize,
    signal: c_int,
    value: usize,
    pc: usize,
) -> c_int {
    sending(thread::find(id), signal, pc);
    real!(pthread_sigqueue(id, signal, value) as fn(usize, c_int, usize) -> c_int)
}

/// Whether a process that a signal is sent to may be this one.
fn is_own(pid: c_int) -> bool {
    pid <= 0 || pid as u32 == sys::pid()
}

unsafe extern "C" fn do_kill(pid: c_int, signal: c_int, pc: usize) -> c_int {
    if is_own(pid) {
        sending(None, signal, pc);
    }
    let _expected = (pid as u32 == sys::pid()).then(ExpectsSignal::begin);
    real!(kill(pid, signal) as fn(c_int, c_int) -> c_int)
}

unsafe extern "C" fn do_sigqueue(pid: c_int, signal: c_int, value: usize, pc: usize) -> c_int {
    if is_own(pid) {
        sending(None, signal, pc);
    }
    real!(sigqueue(pid, signal, value) as fn(c_int, c_int, usize) -> c_int)
}

unsafe extern "C" fn do_tgkill(pid: c_int, thread: c_int, signal: c_int, pc: usize) -> c_int {
    sending(None, signal, pc);
    real!(tgkill(pid, thread, signal) as fn(c_int, c_int, c_int) -> c_int)
}

unsafe extern "C" fn do_raise(signal: c_int, pc: usize) -> c_int {
    sending(thread::me().as_deref(), signal, pc);
    let _expected = ExpectsSignal::begin();
    real!(raise(signal) as fn(c_int) -> c_int)
}

/// Waits for a signal: handlers run nowhere else.
unsafe extern "C" fn do_sigsuspend(mask: usize, _pc: usize) -> c_int {
    let _expected = ExpectsSignal::begin();
    real!(sigsuspend(mask) as fn(usize) -> c_int)
}

unsafe extern "C" fn do_pause(_pc: usize) -> c_int {
    let _expected = ExpectsSignal::begin();
    real!(pause() as fn() -> c_int)
}

unsafe extern "C" fn do_alarm(seconds: u32, pc: usize) -> u32 {
    const SIGALRM: c_int = 14;
    sending(None, SIGALRM, pc);
    real!(alarm(seconds) as fn(u32) -> u32)
}

unsafe extern "C" fn do_setitimer(which: c_int, new: usize, old: usize, pc: usize) -> c_int {
    /// SIGALRM, SIGVTALRM and SIGPROF.
    const OF_TIMERS: [c_int; 3] = [14, 26, 27];
    if let Some(&signal) = OF_TIMERS.get(which as usize) {
        sending(None, signal, pc);
    }
    real!(setitimer(which, new, old) as fn(c_int, usize, usize) -> c_int)
}

unsafe extern "C" fn do_timer_settime(
    timer: usize,
    flags: c_int,
    new: usize,
    old: usize,
    pc: usize,
) -> c_int {
    happens_before(TIMERS, pc);
    real!(timer_settime @ "GLIBC_2.3.3" (timer, flags, new, old) as fn(usize, c_int, usize, usize) -> c_int)
}

/// A thread has waited for a signal and got it, unless the number is not that of one.
fn waited(signal: c_int, pc: usize) {
    if signal > 0 {
        received(signal as usize, true, pc);
    }
}

unsafe extern "C" fn do_sigwait(set: usize, into: *mut c_int, pc: usize) -> c_int {
    let result = real!(sigwait(set, into) as fn(usize, *mut c_int) -> c_int);
    if result == 0 {
        // SAFETY: the program's variable, just written.
        waited(unsafe { into.read() }, pc);
    }
    result
}

unsafe extern "C" fn do_sigwaitinfo(set: usize, info: usize, pc: usize) -> c_int {
    let signal = real!(sigwaitinfo(set, info) as fn(usize, usize) -> c_int);
    waited(signal, pc);
    signal
}

unsafe extern "C" fn do_sigtimedwait(set: usize, info: usize, time: usize, pc: usize) -> c_int {
    let signal = real!(sigtimedwait(set, info, time) as fn(usize, usize, usize) -> c_int);
    waited(signal, pc);
    signal
}

with_pc! {
    raise => do_raise, 1;
    sigsuspend => do_sigsuspend, 1;
    pause => do_pause, 0;
    sigaction => do_sigaction, 3;
    signal => do_signal, 2;
    bsd_signal => do_signal, 2;
    sysv_signal => do_sysv_signal, 2;
    __sysv_signal => do_sysv_signal, 2;
    pthread_kill => do_pthread_kill, 2;
    pthread_sigqueue => do_pthread_sigqueue, 3;
    kill => do_kill, 2;
    sigqueue => do_sigqueue, 3;
    tgkill => do_tgkill, 3;
    alarm => do_alarm, 1;
    setitimer => do_setitimer, 3;
    timer_settime => do_timer_settime, 4;
    sigwait => do_sigwait, 2;
    sigwaitinfo => do_sigwaitinfo, 2;
    sigtimedwait => do_sigtimedwait, 3;
}
