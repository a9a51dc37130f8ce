//! What the library for MPI programs needs of the runtime (`crates/spmd`): the loads and stores of instrumented code
//! to memory that other ranks can access, the clock of the current thread, and silence while a thread is inside MPI.
//!
//! Ground rules:
//! - The hook is called once for each access that the filter lets pass, while the runtime is busy: what the hook does
//!   itself is not seen.
//! - Parts of one access to many bytes are passed on as one (see [`Run`]), before the access is made.
//! - A thread inside the MPI library is *outside*: what it locks, sends and receives there says nothing about the
//!   order of the program's own threads.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::places;
use crate::run::Run;
use crate::sampling;
use crate::shadow::{ATOMIC, EPOCH, FREED, Granule};
use crate::thread::{self, Busy, Thread};

type Hook = unsafe extern "C" fn(usize, usize, c_int, usize);

static HOOK: AtomicUsize = AtomicUsize::new(0);

/// The memory to watch: ranges that are sorted and do not overlap. One whose end is 0 is not there.
static WATCHED: [(AtomicUsize, AtomicUsize); 16] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; 16];

/// Whether accesses are wanted.
#[inline]
pub fn is_on() -> bool {
    HOOK.load(Ordering::Relaxed) != 0
}

/// Passes all on that `look` sees, with neighbouring bytes together.
#[cold]
#[inline(never)]
pub fn together(t: &mut Thread, look: impl FnOnce(&mut Thread)) {
    // A handler of a signal may run in the middle of the access: what it accesses has places of its own.
    if t.run.is_open {
        return look(t);
    }
    t.run.is_open = true;
    look(t);
    let _busy = Busy::new(t);
    pass_on(&mut t.run);
    t.run.is_open = false;
}

fn pass_on(run: &mut Run) {
    if run.start < run.end {
        watched(run.start, run.end - run.start, run.write, run.pc);
    }
    run.end = run.start;
}

/// Passes an access on, now or together with what follows it. The thread is busy.
#[inline]
pub fn access(t: &mut Thread, addr: usize, len: usize, write: bool, pc: usize) {
    if !t.run.is_open {
        return watched(addr, len, write, pc);
    }
    let run = &mut t.run;
    if run.end != addr || run.start == run.end || run.write != write || run.pc != pc {
        pass_on(run);
        *run = Run { is_open: true, write, pc, start: addr, end: addr };
    }
    run.end = addr + len;
}

/// Passes an access on, if it is to memory that is watched.
fn watched(addr: usize, len: usize, write: bool, pc: usize) {
    let hook = HOOK.load(Ordering::Acquire);
    if hook == 0 {
        return;
    }
    if is_watched(addr, len) {
        // SAFETY: set by `attach` to a function of this type, which is never unloaded.
        let hook = unsafe { core::mem::transmute::<usize, Hook>(hook) };
        // SAFETY: the hook takes any address and does not use it.
        unsafe { hook(addr, len, c_int::from(write), pc) };
    }
}

#[inline]
fn is_watched(addr: usize, len: usize) -> bool {
    for (start, end) in &WATCHED {
        let end = end.load(Ordering::Acquire);
        if end == 0 {
            return false;
        }
        if addr < end && addr + len > start.load(Ordering::Acquire) {
            return true;
        }
    }
    false
}

/// Whether an access that the filter has let pass is of no interest: its memory is private, or it is not among those
/// that are sampled. Private memory is remembered in the shadow, so that the filter stops what comes again in this
/// epoch; what is watched changes only in calls of MPI, and these begin epochs. What was freed is left to the race
/// check.
#[cold]
#[inline(never)]
pub fn passes_by(
    t: &mut Thread,
    g: &Granule,
    addr: usize,
    bytes: u64,
    write: bool,
    pc: usize,
) -> bool {
    if t.ignore != 0 || g.read.load(Ordering::Relaxed) == FREED {
        return false;
    }
    let start = (addr & !7) + bytes.trailing_zeros() as usize;
    if is_watched(start, bytes.count_ones() as usize) {
        return sampling::is_on() && !sampling::wants(t, pc);
    }
    if sampling::is_on() {
        sampling::private(pc);
    }
    let cell = t.epoch | bytes | places::field(t, pc);
    let word = if write { &g.write } else { &g.read };
    let old = word.load(Ordering::Relaxed);
    let is_of_now = (old ^ cell) & (EPOCH | ATOMIC) == 0;
    word.store(if is_of_now { old | bytes } else { cell }, Ordering::Relaxed);
    true
}

/// Raised when a function of this module changes its type or meaning. The library that calls them may be of another
/// version than the program was built by.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub extern "C" fn selvedge_spmd_version() -> u32 {
    2
}

/// From now on only some loads and stores are passed on: see [`sampling`].
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub extern "C" fn selvedge_spmd_sample(
    instruction: u64,
    function: u64,
    alias_once: c_int,
    seed: u64,
) {
    sampling::begin(instruction, function, alias_once != 0, seed);
}

/// A statement has raced: its loads and stores are not passed on any more, if not all are.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub extern "C" fn selvedge_spmd_settle(pc: usize) {
    sampling::settle(pc);
}

/// Begins to pass accesses on.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn selvedge_spmd_attach(hook: usize) {
    HOOK.store(hook, Ordering::Release);
    thread::RECORD_ALL.store(true, Ordering::Release);
    let current = thread::current();
    // SAFETY: null or the thread's own block.
    if let Some(t) = unsafe { current.as_mut() } {
        t.record_as_wanted();
    }
}

/// The ranges to watch from now on: `count` pairs of first byte and first byte after it. An access at the same time
/// may be passed on or not.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn selvedge_spmd_watch(ranges: *const [u64; 2], count: usize) {
    for (i, (start, end)) in WATCHED.iter().enumerate() {
        // SAFETY: the caller passes that many ranges.
        let range = (i < count).then(|| unsafe { *ranges.add(i) });
        let [from, to] = range.unwrap_or([0, 0]);
        if start.load(Ordering::Relaxed) as u64 == from && end.load(Ordering::Relaxed) as u64 == to
        {
            continue;
        }
        // While a range changes it is too long rather than too short.
        start.store(0, Ordering::Release);
        end.store(to as usize, Ordering::Release);
        start.store(from as usize, Ordering::Release);
    }
}

/// Writes slot, clock of the slot, and clock; returns how many words that are.
fn now(t: &Thread, into: *mut u32, room: usize) -> usize {
    let len = t.clock.len.max(t.slot as usize + 1).min(room.saturating_sub(2));
    // SAFETY: the caller has room for that many words.
    unsafe {
        into.write(t.slot);
        into.add(1).write(t.clock.at[t.slot as usize]);
        for i in 0..len {
            into.add(2 + i).write(t.clock.at[i]);
        }
    }
    len + 2
}

/// The clock of the current thread; 0 words if the runtime does not know it.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn selvedge_spmd_now(into: *mut u32, room: usize) -> usize {
    // SAFETY: null or the thread's own block.
    unsafe { thread::current().as_ref() }.map_or(0, |t| now(t, into, room))
}

/// The thread enters the MPI library. What it accesses next is told apart from what it has accessed.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn selvedge_spmd_enter(into: *mut u32, room: usize) -> usize {
    // SAFETY: null or the thread's own block.
    let Some(t) = (unsafe { thread::current().as_mut() }) else { return 0 };
    // A handler of a signal that jumped out of an access to many bytes left it open.
    pass_on(&mut t.run);
    t.run.is_open = false;
    t.tick();
    t.outside += 1;
    now(t, into, room)
}

/// The thread leaves the MPI library.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn selvedge_spmd_leave() {
    // SAFETY: null or the thread's own block.
    if let Some(t) = unsafe { thread::current().as_mut() } {
        t.outside = t.outside.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::fasttrack;
    use crate::thread::create;

    static PASSED: Mutex<Vec<(usize, usize, bool)>> = Mutex::new(Vec::new());
    /// Nothing is ever stored there, only in its shadow.
    const AT: usize = 0x0123_4777_8000;

    unsafe extern "C" fn hook(addr: usize, len: usize, write: c_int, _pc: usize) {
        PASSED.lock().expect("nobody panics with it").push((addr - AT, len, write != 0));
    }

    /// A rank searches what it knows for each access that it is told of, so `memset` must not be thousands of them.
    #[test]
    fn an_access_to_many_bytes_is_passed_on_as_one() {
        let _alone = fasttrack::tests::prepare();
        let t = create(&[]).expect("a block");
        // SAFETY: one range, and a hook of the right type; both are taken back below.
        unsafe {
            selvedge_spmd_watch(&[AT as u64, AT as u64 + 4096], 1);
            selvedge_spmd_attach(hook as *const () as usize);
        }
        t.set_record_accesses(true);
        fasttrack::range(t, AT + 8, 4000, true, 0x5500_0000_1000);
        // What this epoch has written already is not told again, and the rest is.
        fasttrack::range(t, AT, 4096, true, 0x5500_0000_1000);
        fasttrack::range(t, AT + 4096, 4096, true, 0x5500_0000_1000);
        t.set_record_accesses(false);
        HOOK.store(0, Ordering::Relaxed);
        thread::RECORD_ALL.store(false, Ordering::Relaxed);
        let passed = PASSED.lock().expect("nobody panics with it");
        assert_eq!(*passed, [(8, 4000, true), (0, 8, true), (4008, 88, true)]);
    }
}
