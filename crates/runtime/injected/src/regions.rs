//! Regions: stretches of a thread that the program marks (`selvedge.h`), and functions that the user
//! names by a pattern, from their entry to their exit.
//!
//! A function that is a region costs nothing when it is entered and a comparison when it is left. The
//! runtime records its entry only when something else is recorded in it: just before that record, it
//! records all functions of the call stack that are regions and are not recorded yet, outermost first. A
//! function in which nothing is recorded is never recorded itself. Nothing is lost by that, since its
//! thread recorded nothing after the entry. Where globals are states of blocks, a function is also recorded before its
//! first write to memory, because the block begins with what was there before.
//!
//! Ground rules:
//! - An entry of the call stack is two words: the return address of the function and a place in it. The
//!   compilers' entry hook writes both; the top bit of the second says that the entry has been looked
//!   at. If it is set, it is set in all entries below.
//! - The fourth thread-local word is the entry of the innermost function that was recorded, 0 if there is
//!   none: the exit hook comes here exactly when that is left (or an entry a whole ring away from it).
//! - Regions nest on the wire. Where a marked region and a function overlap, what is inside is left and
//!   entered again: a region may be cut in two, never prolonged.
//! - Nothing here starts an epoch while something is being recorded, because the record may be the
//!   middle of a release.
//!
//! Guarantee: all records of a thread are between those of the functions and marks that they happened
//! in, up to `DEPTH` at a time; deeper ones are left out. Functions that the compiler inlined have no
//! entry and are not regions. A jump or the end of the thread also leaves a function.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::arch::words;
use crate::layout;
use crate::rings;
use crate::sys;
use crate::thread::{self, Busy, ENTRY, STACK_LEN, Thread};
use crate::values;
use crate::wire::{self, RecordKind, call};

/// At most so many nested regions of a thread are recorded.
const DEPTH: usize = 64;
/// Bit of an entry's second word.
const LOOKED_AT: u64 = 1 << 63;

/// A place in the call stack: how often the ring has begun anew, and the entry. They compare by depth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(C)]
pub struct Height {
    turns: u32,
    entry: usize,
}

/// A region that the host knows the thread to be in.
#[derive(Clone, Copy)]
#[repr(C)]
struct Open {
    /// Of a function its entry; of a mark where the next entry was to be.
    height: Height,
    function: bool,
    flags: u8,
    pc: usize,
    /// Of a mark its name in shared memory; of a function a place in it.
    name: usize,
    len: usize,
}

/// The regions of one thread.
#[repr(C)]
pub struct Regions {
    /// Functions are looked at.
    by_function: bool,
    /// How often the ring of the call stack has begun anew.
    turns: u32,
    // invariant: that many of `open` are valid.
    len: usize,
    /// Marked regions beyond [`DEPTH`].
    beyond: u32,
    open: [Open; DEPTH],
}

impl Regions {
    /// A thread begins, or ceases to record.
    pub fn reset(&mut self, by_function: bool) {
        self.by_function = by_function;
        self.turns = 0;
        self.len = 0;
        self.beyond = 0;
    }
}

/// Whether functions are regions in this run.
pub fn by_function() -> bool {
    !rings::is_stopped()
        && rings::shared().is_some_and(|s| s.header.flags & wire::FUNCTION_REGIONS != 0)
}

/// Waits until the host has said which functions of the modules known so far are regions.
pub fn wait_for_functions() {
    let Some(shared) = rings::shared().filter(|_| by_function()) else { return };
    let header = &shared.header;
    let wanted = header.maps_len.load(Ordering::Acquire);
    header.functions_wanted.store(wanted, Ordering::Release);
    let mut rounds = 0u64;
    while header.functions_ready.load(Ordering::Acquire) < wanted {
        rounds += 1;
        let gone = header.host_gone.load(Ordering::Acquire) != 0
            || (rounds.is_multiple_of(1024) && !sys::alive(header.host));
        if gone {
            return;
        }
        sys::pause(100_000);
    }
}

/// What the function around `pc` is a region of.
fn kinds_of(pc: u64) -> u64 {
    let Some(shared) = rings::shared() else { return 0 };
    let state = shared.header.functions.load(Ordering::Acquire);
    let table = &shared.functions[(state >> 31) as usize];
    let table = &table[..(state as usize & 0x7fff_ffff).min(wire::FUNCTIONS)];
    let after = table.partition_point(|f| f.start.load(Ordering::Relaxed) <= pc);
    match after.checked_sub(1).map(|i| &table[i]) {
        Some(f) if pc < f.end.load(Ordering::Relaxed) => f.kinds.load(Ordering::Relaxed),
        _ => 0,
    }
}

/// Tells the host the functions of the call stack that it does not know of yet. To be called before
/// anything is recorded that happened in them.
#[inline(always)]
pub fn tell(t: &mut Thread) {
    if t.regions.by_function {
        tell_functions(t);
    }
}

/// The thread is about to write: blocks that are functions begin before that, if globals are their states.
#[inline]
pub fn tell_before_write(t: &mut Thread) {
    let with_globals =
        |s: &wire::Shared| s.header.globals.load(Ordering::Relaxed) != 0 && t.ring.is_open();
    if rings::shared().is_some_and(with_globals) {
        tell(t);
    }
}

fn tell_functions(t: &mut Thread) {
    let _busy = Busy::new(t);
    let base = layout::THREADS + t.index as usize * layout::THREAD_LEN;
    let mut at = Height { turns: t.regions.turns, entry: words::stack_top() };
    let mut unknown = 0;
    while unknown < STACK_LEN / ENTRY && at != (Height { turns: 0, entry: base }) {
        let below = below(base, at);
        if second_word(below.entry) & LOOKED_AT != 0 {
            break;
        }
        at = below;
        unknown += 1;
    }
    for _ in 0..unknown {
        let pc = second_word(at.entry);
        // SAFETY: the second word of an entry of this thread's call stack.
        unsafe { ((at.entry + 8) as *mut u64).write_volatile(pc | LOOKED_AT) };
        let kinds = kinds_of(pc);
        for (kind, flags) in [
            (wire::ATOMIC_REGION, wire::FUNCTION),
            (wire::DETERMINISTIC_REGION, wire::FUNCTION | wire::DETERMINISTIC),
        ] {
            if kinds & kind != 0 {
                let pc = pc as usize;
                enter(t, Open { height: at, function: true, flags, pc, name: pc, len: 0 });
            }
        }
        at = above(base, at);
    }
}

fn second_word(entry: usize) -> u64 {
    // SAFETY: entries lie in the stack part of a thread's block, which is mapped for good.
    unsafe { ((entry + 8) as *const u64).read_volatile() }
}

fn below(base: usize, at: Height) -> Height {
    match at.entry - base {
        0 => Height { turns: at.turns.wrapping_sub(1), entry: base + STACK_LEN - ENTRY },
        offset => Height { entry: base + offset - ENTRY, ..at },
    }
}

fn above(base: usize, at: Height) -> Height {
    match at.entry - base + ENTRY {
        STACK_LEN => Height { turns: at.turns.wrapping_add(1), entry: base },
        offset => Height { entry: base + offset, ..at },
    }
}

/// Whether a deterministic region has ever begun.
static BLOCKS: AtomicBool = AtomicBool::new(false);

/// Whether a deterministic region has ever begun, as far as the host was told.
pub fn any_block() -> bool {
    BLOCKS.load(Ordering::Relaxed)
}

/// Tells the host of a region, if there is room to remember it.
fn enter(t: &mut Thread, open: Open) -> bool {
    let Regions { len, .. } = t.regions;
    if len == DEPTH {
        return false;
    }
    t.regions.open[len] = open;
    t.regions.len = len + 1;
    write_enter(t, &open);
    if open.flags & wire::DETERMINISTIC != 0 {
        BLOCKS.store(true, Ordering::Relaxed);
        values::globals(t, 0, open.pc);
    }
    watch_innermost(t);
    true
}

fn write_enter(t: &mut Thread, open: &Open) {
    let b = t.short_epoch() << 32 | open.len;
    rings::region(t, RecordKind::RegionEnter, open.flags, open.pc, open.name, b);
}

fn write_exit(t: &mut Thread, pc: usize) {
    let b = t.short_epoch() << 32;
    rings::region(t, RecordKind::RegionExit, 0, pc, 0, b);
}

/// Leaves the region with that number, and for a moment those inside it.
fn leave(t: &mut Thread, number: usize, pc: usize) {
    let len = t.regions.len;
    for i in (number..len).rev() {
        if i == number && t.regions.open[i].flags & wire::DETERMINISTIC != 0 {
            values::globals(t, call::AFTER, pc);
        }
        write_exit(t, pc);
    }
    t.regions.open.copy_within(number + 1..len, number);
    t.regions.len = len - 1;
    for i in number..len - 1 {
        let inside = t.regions.open[i];
        write_enter(t, &inside);
    }
    watch_innermost(t);
}

/// The exit hook shall look out for the innermost function.
fn watch_innermost(t: &Thread) {
    let open = &t.regions.open[..t.regions.len];
    let innermost = open.iter().rev().find(|o| o.function);
    words::set_innermost(innermost.map_or(0, |o| o.height.entry));
}

/// A marked region begins.
pub fn enter_marked(t: &mut Thread, name: usize, len: usize, flags: u8, pc: usize) {
    if !t.ring.is_open() {
        return;
    }
    let _busy = Busy::new(t);
    tell(t);
    let (name, len) = shared_name(name, len);
    let height = Height { turns: t.regions.turns, entry: words::stack_top() };
    if !enter(t, Open { height, function: false, flags, pc, name, len }) {
        t.regions.beyond += 1;
    }
    t.tick();
}

/// The marked region that began last ends.
pub fn leave_marked(t: &mut Thread, pc: usize) {
    if t.regions.beyond > 0 {
        t.regions.beyond -= 1;
        return;
    }
    let open = &t.regions.open[..t.regions.len];
    let Some(number) = open.iter().rposition(|o| !o.function) else {
        return rings::record(t, RecordKind::StrayExit, 0, pc, 0, 0);
    };
    let _busy = Busy::new(t);
    leave(t, number, pc);
    t.tick();
}

/// The number of the deterministic region that [`leave_marked`] would leave.
pub fn block_to_leave(t: &Thread) -> Option<u32> {
    let open = &t.regions.open[..t.regions.len];
    let number = open.iter().rposition(|o| !o.function).filter(|_| t.regions.beyond == 0)?;
    (open[number].flags & wire::DETERMINISTIC != 0).then_some(number as u32)
}

/// The number of the innermost deterministic region that the thread has marked.
pub fn innermost_marked_block(t: &Thread) -> Option<u32> {
    let open = &t.regions.open[..t.regions.len];
    let is_block = |o: &Open| !o.function && o.flags & wire::DETERMINISTIC != 0;
    open.iter().rposition(is_block).map(|number| number as u32)
}

/// Names that are in shared memory already: where they are in the program, and there (plus one; 0 while
/// they are being copied). A name stays where it is and what it is.
static NAMES: [(AtomicUsize, AtomicU32); 1024] =
    [const { (AtomicUsize::new(0), AtomicU32::new(0)) }; 1024];

/// The place and length of a name in shared memory, where it outlives the program.
fn shared_name(name: usize, len: usize) -> (usize, usize) {
    let start = name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    for i in 0..NAMES.len() {
        let (key, place) = &NAMES[(start + i) % NAMES.len()];
        let known = match key.compare_exchange(0, name, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                let copied = copy_name(name, len);
                place.store(copied.map_or(0, |at| at as u32 + 1), Ordering::Release);
                return copied.map_or((0, 0), |at| (at, len));
            }
            Err(known) => known,
        };
        if known == name {
            return match place.load(Ordering::Acquire) {
                0 => copy_name(name, len).map_or((0, 0), |at| (at, len)),
                at => (at as usize - 1, len),
            };
        }
    }
    (0, 0)
}

/// Copies a name, if there is room.
pub fn copy_name(name: usize, len: usize) -> Option<usize> {
    let shared = rings::shared()?;
    let at = shared.header.texts_len.fetch_add(len as u32, Ordering::Relaxed) as usize;
    if at + len > wire::TEXTS {
        // So that the number does not come round.
        shared.header.texts_len.store(wire::TEXTS as u32, Ordering::Relaxed);
        return None;
    }
    for i in 0..len {
        // SAFETY: the program's string, and a part of the shared memory that was given to us alone;
        // the host reads it after the record that names it.
        unsafe {
            let byte = ((name + i) as *const u8).read();
            ((&raw const shared.texts) as *mut u8).add(at + i).write_volatile(byte);
        }
    }
    Some(at)
}

/// The call stack has become so deep that its ring begins anew.
pub unsafe extern "C" fn deeper() {
    if let Some(t) = thread_in_program() {
        t.regions.turns = t.regions.turns.wrapping_add(1);
    }
}

/// The call stack is back in the former turn of its ring.
pub unsafe extern "C" fn shallower() {
    if let Some(t) = thread_in_program() {
        t.regions.turns = t.regions.turns.wrapping_sub(1);
        leave_functions(t);
    }
}

/// The entry of the innermost function that was told has been left, or one that lies a whole ring above.
pub unsafe extern "C" fn left() {
    if let Some(t) = thread_in_program() {
        leave_functions(t);
    }
}

fn leave_functions(t: &mut Thread) {
    let _busy = Busy::new(t);
    let now = Height { turns: t.regions.turns, entry: words::stack_top() };
    let left = |t: &Thread| {
        let open = &t.regions.open[..t.regions.len];
        open.iter().rposition(|o| o.function).filter(|&i| open[i].height == now)
    };
    let mut any = false;
    while let Some(number) = left(t) {
        let pc = t.regions.open[number].pc;
        leave(t, number, pc);
        any = true;
    }
    if any {
        t.tick();
    }
}

/// How deep the call stack is now.
pub fn height(t: &Thread) -> Height {
    Height { turns: t.regions.turns, entry: words::stack_top() }
}

/// The call stack is cut off at `height` by a jump: what was entered above is left.
pub fn jump_to(t: &mut Thread, height: Height) {
    let _busy = Busy::new(t);
    while let Some(last) = t.regions.len.checked_sub(1) {
        let Open { height: at, function, pc, .. } = t.regions.open[last];
        if at < height || (at == height && !function) {
            break;
        }
        leave(t, last, pc);
    }
    t.regions.turns = height.turns;
    words::set_stack_top(height.entry);
    t.tick();
}

/// The thread ends, wherever it was.
pub fn leave_all(t: &mut Thread) {
    while let Some(last) = t.regions.len.checked_sub(1) {
        let Open { pc, function, .. } = t.regions.open[last];
        if !function {
            rings::record(t, RecordKind::Abandoned, 0, pc, 0, 0);
        }
        leave(t, last, pc);
    }
}

/// The current thread: the hooks of the compilers are called from the program only.
fn thread_in_program() -> Option<&'static mut Thread> {
    // SAFETY: null or the thread's own block; the runtime is not inside itself.
    unsafe { thread::current().as_mut() }
}
