//! How data flows: what code that was compiled with `selvedge cc --selvedge-flow` says of itself.
//!
//! The compiler's half (`crates/instrument`) has put calls of these functions into the program. Under control they make
//! accesses that the host asked for scheduling points, and atomic operations always. If the host asked for the flow,
//! they write words into the memory for values: which blocks are executed, which addresses are accessed, where calls
//! leave. A [`RecordKind::Flow`] names the words that a thread wrote since its last record, and comes before its next
//! one; so the log has everything in its order.
//!
//! Most words are written by the program itself: its part of a hook writes the word if the byte of the place is 1, and if
//! there is room up to [`selvedge_flow_end`]. [`begin`] sets these bytes, except those of scheduling points. The host reads
//! what has piled up while the thread waits, and the memory is used again.
//!
//! Ground rules:
//! - Words are written only by the thread whose turn it is; the cursor is that of the process.
//! - A word for an access is written behind its scheduling point: what comes before it has happened.
//! - Whether words are recorded does not decide when a thread gives way: what counts is what was, or would have been, written.
//! - Where nothing is controlled, these functions do nothing.

#![allow(missing_docs)] // The names are the interface of `crates/instrument`.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::{self as control, wire};
use crate::arch::with_pc;
use crate::interpose;
use crate::regions;
use crate::rings;
use crate::sys;
use crate::thread;
use crate::wire::{self as shared_wire, RecordKind};
use crate::word;

/// Bytes of a word.
const WORD: usize = 8;

/// Bytes that are taken from the memory for values at a time.
const PIECE: u64 = 1 << 17;
/// So many pieces are read by the host at a time. Their memory is used again: new memory would cost more than what is
/// written there.
const PIECES: u32 = 64;

/// Where the next word goes, and where there is no more room, or something is to be looked at. The program writes words
/// itself where the byte of the place is 1 (`crates/instrument`, `here`).
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
#[allow(non_upper_case_globals)]
pub static selvedge_flow_next: AtomicUsize = AtomicUsize::new(0);
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
#[allow(non_upper_case_globals)]
pub static selvedge_flow_end: AtomicUsize = AtomicUsize::new(0);
/// The program has written memory since this was looked at last.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
#[allow(non_upper_case_globals)]
pub static selvedge_flow_wrote: AtomicBool = AtomicBool::new(false);
use {selvedge_flow_end as END, selvedge_flow_next as NEXT, selvedge_flow_wrote as WROTE};

/// Where the piece ends, and where the words begin that no record names yet.
static PIECE_END: AtomicUsize = AtomicUsize::new(0);
/// Pieces that were taken since the host has read them.
static TAKEN: AtomicU32 = AtomicU32::new(0);
static UNNAMED: AtomicUsize = AtomicUsize::new(0);

/// How much the thread has done since the last scheduling point: so much, and a word each from there on. Words that are not
/// recorded count as well, so that what is recorded does not decide when a thread gives way.
static COUNT: AtomicU32 = AtomicU32::new(0);
static COUNTED: AtomicUsize = AtomicUsize::new(0);

/// Counts so much more.
#[inline]
pub fn count(more: u32) {
    COUNT.store(COUNT.load(Relaxed).wrapping_add(more), Relaxed);
}

/// Counts from zero again.
pub fn count_from_here() {
    COUNT.store(0, Relaxed);
    COUNTED.store(NEXT.load(Relaxed), Relaxed);
}

/// How much the thread has done since the last scheduling point.
#[inline]
pub fn counted() -> u32 {
    let words = (NEXT.load(Relaxed) - COUNTED.load(Relaxed)) / WORD;
    COUNT.load(Relaxed).wrapping_add(words as u32)
}

/// An execution begins: where nothing but a word is wanted of a place, the program writes it itself.
pub fn begin(c: &wire::Control) {
    let flags = c.flags.load(Relaxed);
    let only_words = flags & (wire::FLOW | wire::ACCESSES | wire::VALUES) == wire::FLOW;
    // What is told before writes has to be asked before each.
    let told = |shared: &shared_wire::Shared| shared.header.globals.load(Relaxed) != 0;
    if !only_words || rings::shared().is_none_or(told) {
        return;
    }
    for (start, end) in &c.places {
        let (start, end) = (start.load(Relaxed) as usize, end.load(Relaxed) as usize);
        if start == end {
            break;
        }
        if !interpose::instrumented(start) {
            interpose::add_module(start);
        }
        // SAFETY: the host knows where the section of places is mapped, which is written by nobody else.
        unsafe { core::ptr::write_bytes(start as *mut u8, 1, end - start) };
        let watched = c.watched.iter().take(c.watched_len.load(Relaxed) as usize);
        for place in watched.map(|w| w.load(Relaxed) as usize) {
            if (start..end).contains(&place) {
                // SAFETY: one of these bytes.
                unsafe { (place as *mut u8).write(0) };
            }
        }
    }
}

/// The process is controlled no more: nothing is written from now on.
pub fn leave() {
    END.store(NEXT.load(Relaxed), Relaxed);
    PIECE_END.store(NEXT.load(Relaxed), Relaxed);
}

/// What assembly that compares and exchanges found. Only the thread whose turn it is comes here, and nothing lies
/// between.
static FOUND: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Eight of up to sixteen bytes, those behind the end as zeros.
///
/// # Safety
/// The bytes are readable.
unsafe fn part_of(addr: usize, len: usize, part: usize) -> u64 {
    let mut bytes = [0; 8];
    for (i, byte) in bytes.iter_mut().enumerate() {
        let at = part * 8 + i;
        if at < len {
            // SAFETY: one of the bytes.
            *byte = unsafe { ((addr + at) as *const u8).read_volatile() };
        }
    }
    u64::from_le_bytes(bytes)
}

/// Whether the host asked for the flow.
#[inline]
fn is_recorded(c: &wire::Control) -> bool {
    c.flags.load(Relaxed) & wire::FLOW != 0
}

/// Writes a word, if the host asked for the flow.
#[inline]
fn put(c: &wire::Control, tag: u64, payload: usize) {
    if !is_recorded(c) {
        return count(1);
    }
    if NEXT.load(Relaxed) == END.load(Relaxed) && !refill() {
        return count(1);
    }
    let at = NEXT.load(Relaxed);
    let word = tag << word::SHIFT | payload as u64 & word::PAYLOAD;
    // SAFETY: eight bytes of a piece of shared memory that is ours, aligned.
    unsafe { (at as *mut u64).write_volatile(word) };
    NEXT.store(at + WORD, Relaxed);
}

/// Makes room for a word, up to the next moment at which the thread has done so much that it has to give way; false if
/// there is none.
#[cold]
fn refill() -> bool {
    if NEXT.load(Relaxed) == PIECE_END.load(Relaxed) && !next_piece() {
        return false;
    }
    let left = control::ACCESSES.saturating_sub(counted()).max(1) as usize;
    let end = NEXT.load(Relaxed) + left * WORD;
    END.store(end.min(PIECE_END.load(Relaxed)), Relaxed);
    true
}

/// Takes the next piece; false if there is no room.
fn next_piece() -> bool {
    let before = counted();
    if let Some((c, t)) = control::me() {
        name_words(t);
        if TAKEN.load(Relaxed) == PIECES {
            TAKEN.store(0, Relaxed);
            control::have_it_read(c, t);
        }
    }
    TAKEN.store(TAKEN.load(Relaxed) + 1, Relaxed);
    let Some(shared) = rings::shared() else { return false };
    let at = shared.header.values_len.fetch_add(PIECE, Relaxed);
    if at + PIECE > shared_wire::VALUES as u64 {
        shared.header.values_len.store(shared_wire::VALUES as u64, Relaxed);
        return false;
    }
    let start = (&raw const shared.values) as usize + at as usize;
    populate(start, PIECE as usize);
    for place in [&NEXT, &UNNAMED, &COUNTED] {
        place.store(start, Relaxed);
    }
    COUNT.store(before, Relaxed);
    PIECE_END.store(start + PIECE as usize, Relaxed);
    true
}

/// Has the kernel map memory that is about to be written, all at once: a page fault for each page would cost more than the
/// words in it.
fn populate(start: usize, len: usize) {
    const POPULATE_WRITE: usize = 23;
    // SAFETY: memory of our own. A kernel that does not know this changes nothing.
    unsafe { sys::call(sys::MADVISE, [start, len, POPULATE_WRITE, 0, 0, 0]) };
}

/// Names the words that no record names yet, and says whether the thread has written. To be called before the thread's
/// next record.
#[inline]
pub fn name_words(t: &thread::Thread) {
    if WROTE.load(Relaxed) {
        WROTE.store(false, Relaxed);
        if let Some(c) = control::of(t) {
            control::changed(c, t);
        }
    }
    let (from, to) = (UNNAMED.load(Relaxed), NEXT.load(Relaxed));
    if from != to {
        UNNAMED.store(to, Relaxed);
        let Some(shared) = rings::shared() else { return };
        let at = from - (&raw const shared.values) as usize;
        control::words(t, at, to - from);
    }
}

/// A range of memory is accessed by code that says so itself: a function of the C library, or one that was compiled
/// without data flow.
pub fn range(c: &wire::Control, addr: usize, len: usize, write: bool) {
    put(c, if write { word::WRITES } else { word::READS }, addr);
    put(c, word::NUMBER, len);
    // The caller counts the access.
    count(2_u32.wrapping_neg());
}

#[inline]
fn access(place: usize, addr: usize, len: usize, write: bool) {
    let Some((c, t)) = control::me() else { return };
    control::plain(c, t, (addr, len), write, place);
    put(c, word::ADDRESS, addr);
}

#[inline]
fn atomic(place: usize, addr: usize, len: usize, order: usize, kind: RecordKind) {
    let Some((c, t)) = control::me() else { return };
    let want = control::Want::with(kind, order as u8, place, addr, len);
    control::atomic(c, t, &want, |t| {
        // Otherwise the words say the same.
        if !is_recorded(c) {
            rings::record(t, kind, order as u8, place, addr, len);
        }
        ((), kind != RecordKind::Load)
    });
    put(c, word::ADDRESS, addr);
}

macro_rules! hooks {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$doc])*
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: $ty),*) $(-> $result)? $body
    )*};
}

hooks! {
    /// A function begins.
    fn selvedge_flow_enter(place: usize) {
        if let Some((c, t)) = control::me() {
            if !interpose::instrumented(place) {
                interpose::add_module(place);
            }
            // The call is a task.
            if control::is_watched(c, place) {
                control::task_begins(t, place);
            }
            put(c, word::ENTER, place);
        }
    }

    /// A block begins.
    fn selvedge_flow_block(place: usize) {
        if let Some((c, _)) = control::me() {
            put(c, word::BLOCK, place);
        }
    }

    fn selvedge_flow_read(place: usize, addr: usize, len: usize) {
        access(place, addr, len, false);
    }

    fn selvedge_flow_write(place: usize, addr: usize, len: usize) {
        access(place, addr, len, true);
    }

    fn selvedge_flow_load(place: usize, addr: usize, len: usize, order: usize) {
        atomic(place, addr, len, order, RecordKind::Load);
    }

    fn selvedge_flow_store(place: usize, addr: usize, len: usize, order: usize) {
        atomic(place, addr, len, order, RecordKind::Store);
    }

    fn selvedge_flow_update(place: usize, addr: usize, len: usize, order: usize) {
        atomic(place, addr, len, order, RecordKind::Update);
    }

    /// Whether a compare-exchange succeeded.
    fn selvedge_flow_flag(flag: usize) {
        if let Some((c, _)) = control::me() {
            put(c, word::NUMBER, flag);
        }
    }

    /// Assembly is about to compare and exchange.
    fn selvedge_flow_exchange(place: usize, addr: usize, len: usize, order: usize) {
        atomic(place, addr, len, order, RecordKind::Update);
        for (part, found) in FOUND.iter().enumerate() {
            // SAFETY: the program is about to access these bytes.
            found.store(unsafe { part_of(addr, len, part) }, Relaxed);
        }
    }

    /// It has; an exchange that changes nothing counts as one that failed.
    fn selvedge_flow_exchanged(addr: usize, len: usize) {
        if let Some((c, _)) = control::me() {
            // SAFETY: the program has just accessed these bytes.
            let same = |part: usize| unsafe { part_of(addr, len, part) } == FOUND[part].load(Relaxed);
            put(c, word::NUMBER, usize::from(!(same(0) && same(1))));
        }
    }

    fn selvedge_flow_copy(place: usize, to: usize, from: usize, len: usize) {
        if let Some((c, t)) = control::me() {
            control::plain(c, t, (from, len), false, place);
            put(c, word::ADDRESS, to);
            put(c, word::ADDRESS, from);
            put(c, word::NUMBER, len);
        }
    }

    fn selvedge_flow_fill(place: usize, to: usize, len: usize) {
        if let Some((c, t)) = control::me() {
            control::plain(c, t, (to, len), true, place);
            put(c, word::ADDRESS, to);
            put(c, word::NUMBER, len);
        }
    }

    /// A call leaves what is followed.
    fn selvedge_flow_leave(place: usize) {
        if let Some((c, _)) = control::me() {
            put(c, word::LEAVE, place);
        }
    }

    fn selvedge_flow_back(_place: usize) {
        if let Some((c, _)) = control::me() {
            put(c, word::BACK, 0);
        }
    }

    /// Whether a star is executed. Only a sequential execution leaves one out.
    fn selvedge_star_enter(name: *const c_char) -> c_int {
        let Some((c, _)) = control::me() else { return 1 };
        if c.flags.load(Relaxed) & wire::STARS == 0 {
            return 1;
        }
        c_int::from(control::chosen_number_at(2, name as usize) == 0)
    }

    /// The value of a starred condition.
    fn selvedge_star_value(value: c_int) -> c_int {
        if let Some((c, _)) = control::me() {
            put(c, word::NUMBER, usize::from(value != 0));
        }
        value
    }
}

/// A one-time initialisation begins: whichever task comes first does it.
pub fn initialisation_begins(pc: usize) {
    const NAME: &[u8] = b"once";
    if let Some((c, t)) = control::me()
        && is_recorded(c)
    {
        let name = NAME.as_ptr() as usize;
        regions::enter_marked(t, name, NAME.len(), shared_wire::LAZY, pc);
    }
}

/// It has ended.
pub fn initialisation_ends(pc: usize) {
    if let Some((c, t)) = control::me()
        && is_recorded(c)
    {
        regions::leave_marked(t, pc);
    }
}

/// It had been done: an initialisation in which nothing happens.
pub fn initialisation_passed(pc: usize) {
    initialisation_begins(pc);
    initialisation_ends(pc);
}

/// Bytes of one part of the focus that are compared.
const FOCUS: usize = 1 << 30;

unsafe extern "C" fn focus(at: *const u8, len: usize, pc: usize) {
    let Some((c, t)) = control::me() else { return };
    put(c, word::FOCUS, at as usize);
    put(c, word::NUMBER, len);
    let Some(shared) = rings::shared() else { return };
    let len = len.min(FOCUS);
    let room = (len as u64).next_multiple_of(8);
    let place = shared.header.values_len.fetch_add(room, Relaxed);
    if place + room > shared_wire::VALUES as u64 {
        shared.header.values_len.store(shared_wire::VALUES as u64, Relaxed);
        return;
    }
    // SAFETY: a part of the shared memory that was given to us alone; the program says that it has these bytes.
    unsafe {
        let to = ((&raw const shared.values) as *mut u8).add(place as usize);
        core::ptr::copy_nonoverlapping(at, to, len);
    }
    rings::record(t, RecordKind::Focus, 0, pc, place as usize, len);
}

with_pc! {
    selvedge_focus => focus, 2;
}

/// The program ends: the memory that the user named is part of the result, and the last words are named.
pub fn at_end() {
    let Some((c, t)) = control::me() else { return };
    let len = c.focus_len.load(Relaxed) as usize;
    for part in c.focus.iter().take(len) {
        let (at, len) = (part.0.load(Relaxed), part.1.load(Relaxed));
        // SAFETY: a global of the program, as its symbol table says.
        unsafe { focus(at as *const u8, len as usize, 0) };
    }
    name_words(t);
}
