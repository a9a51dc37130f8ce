//! Where a signal ended the program, and the finding that this is: the same for a program that runs freely
//! and for one under control.

use std::sync::atomic::{AtomicU64, Ordering};

use selvedge_model::{
    Calls, Ended, Failure, Finding, Kind, Place, Role, SiteId, Symbols, ThreadId,
};

use crate::last_words::message;
use crate::modules::{Modules, Registers, Resolve};
use crate::shm::Shm;
use crate::stacks;
use crate::wire;

const SIGABRT: i32 = 6;

/// Where the program was when a signal ended it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Crash {
    /// The thread, if it is known.
    pub thread: Option<ThreadId>,
    /// At which instruction, or by whose call into a library.
    pub site: SiteId,
    /// Whether it was such a call, and only the words on the stack tell by whom.
    pub approximate: bool,
    /// The address that the instruction could not access, if that caused the signal.
    pub addr: Option<u64>,
    /// The functions that were active; only instrumented ones, if there are any.
    pub calls: Calls,
    /// What a failed assertion of C said.
    pub said: Option<String>,
}

/// Where the program was when that signal ended it.
pub(crate) fn read(
    shm: &Shm,
    signal: i32,
    symbols: &mut Symbols,
    modules: &Modules,
    resolver: &mut dyn Resolve,
) -> Option<Crash> {
    let crash = &shm.shared().crash;
    let is_known = crash.signal.load(Ordering::Relaxed) == signal as u32;
    if crash.done.load(Ordering::Acquire) == 0 || !is_known {
        return None;
    }
    let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let addr = load(&crash.addr);
    let thread = crash.thread.load(Ordering::Relaxed).checked_sub(1).map(ThreadId);
    let words = crash.stack_len.load(Ordering::Relaxed) as usize;
    let stack: Vec<u64> = crash.stack.iter().take(words).map(load).collect();
    let calls = crash.calls_len.load(Ordering::Relaxed) as usize;
    let mut calls: Vec<u64> = crash.calls.iter().take(calls).map(load).collect();
    let registers = registers(crash);
    let pc = registers[16];
    let mut callers = resolver.unwind(&registers, &stack, modules);
    let unwound = !callers.is_empty();
    if !unwound {
        callers = stack.into_iter().filter(|&word| modules.is_return(word)).collect();
    }
    if calls.is_empty() && unwound {
        calls.clone_from(&callers);
    }
    // Sites are those of return addresses: this is the instruction itself.
    let within = resolver.site_within(pc + 1, &callers, modules);
    let approximate = !unwound && resolver.site(pc + 1, modules) != within;
    let site = SiteId(symbols.sites.intern(within));
    let addr = Some(addr).filter(|&a| a != u64::MAX);
    let calls = stacks::calls(pc + 1, &calls, modules, resolver);
    Some(Crash { thread, site, approximate, addr, calls, said: said(crash) })
}

/// The registers in the kernel's order (`gregs` of a `ucontext_t`), as debug information numbers them.
fn registers(crash: &wire::Crash) -> Registers {
    const ORDER: [usize; 17] = [13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16];
    ORDER.map(|i| crash.registers[i].load(Ordering::Relaxed))
}

fn said(crash: &wire::Crash) -> Option<String> {
    let len = crash.said_len.load(Ordering::Acquire) as usize;
    if len == 0 || len > wire::SAID {
        return None;
    }
    let bytes: Vec<u8> = crash.said[..len].iter().map(|b| b.load(Ordering::Relaxed)).collect();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The finding that a signal ended the program, or that an assertion failed and thereby ended it. `errors` is
/// what the program wrote to standard error, as far as it is known, and `last` the thread that ran last.
pub fn finding(
    signal: i32,
    crash: Option<&Crash>,
    errors: &str,
    last: ThreadId,
    symbols: &mut Symbols,
) -> Finding {
    let finding = ended(signal, crash, errors, last, symbols);
    for (place, crash) in finding.places.iter().zip(crash) {
        symbols.calls.insert((place.thread, place.site), crash.calls.clone());
    }
    finding
}

fn ended(
    signal: i32,
    crash: Option<&Crash>,
    errors: &str,
    last: ThreadId,
    symbols: &mut Symbols,
) -> Finding {
    let kept = crash.and_then(|c| c.said.as_deref()).unwrap_or_default();
    let thread = crash.and_then(|c| c.thread).unwrap_or(last);
    if signal == SIGABRT
        && let Some(message) = message(errors).or_else(|| message(kept))
    {
        return message.finding(Ended::Signal(signal), thread, symbols);
    }
    // The last words of the C library or of a sanitizer say more than the signal.
    let said = errors.lines().map(str::trim).rfind(|l| !l.is_empty()).map(str::to_owned);
    let place = crash.map(|c| Place { thread, site: c.site, role: Role::Fail, held: Vec::new() });
    let failure = Failure::Signal {
        number: signal,
        address: crash.and_then(|c| c.addr),
        said,
        approximate: crash.is_some_and(|c| c.approximate),
    };
    Finding::failure(Kind::Crash, failure, place.into_iter().collect())
}
