//! Data races: two accesses to the same byte, at least one a write, not both atomic, neither ordered
//! before the other.
//!
//! Paper: FastTrack, Flanagan and Freund, PLDI 2009, section 3 (epochs, adaptive representation of
//! reads). Deviations: a granule of 8 bytes with byte masks instead of a variable; what one epoch
//! cannot say goes to an interned set of cells instead of a vector clock, so that read-shared arrays
//! cost one set and not one vector per element; an access that a later access of the same strength is
//! ordered after is forgotten.
//!
//! Guarantee: never reports a race when all synchronization of the program is seen. May miss: accesses
//! within the same few nanoseconds (shadow words are updated without locks), more than 62 different
//! accesses to one granule, granules whose set was recycled (a thread makes 4,096 more sets), and
//! threads that wore out or share a slot (see `thread`).
//!
//! Cost: the filter is one load and one compare, in `abi`; behind it two loads, two clock look-ups and
//! a store. Sets cost a copy of up to 62 words, rarely.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::report;
use crate::rings;
use crate::shadow::{
    self, ATOMIC, Cell, Cells, EPOCH, FREED, Granule, PC_SHIFT, granule, is_cell, is_racy, is_set,
};
use crate::thread::{Busy, Memo, Thread};
use crate::wire::Does;

/// Whether the access is in the thread's past. Of words that are not one cell nothing is: the clock has
/// -1 for the slots that mark them.
#[inline(always)]
fn ordered(t: &Thread, word: u64) -> bool {
    let cell = Cell(word);
    t.clock.at[cell.slot() & 0x3ff] as i32 >= cell.clock() as i32
}

/// A plain read of some bytes of one granule.
#[inline(always)]
pub fn read(t: &mut Thread, addr: usize, bytes: u64, pc: usize) {
    let g = granule(addr);
    let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
    let cell = t.epoch | bytes | (pc as u64) << PC_SHIFT;
    if ordered(t, w) && !t.unusual {
        if w | r == 0 {
            return first(t, g, addr, cell, false, pc);
        }
        if r & !bytes & 0xff == 0 && ordered(t, r) {
            g.read.store(cell, Ordering::Relaxed);
            return;
        }
        if (r ^ cell) & !0xff == 0 {
            g.read.store(r | bytes, Ordering::Relaxed);
            return;
        }
    }
    if t.remembers(r, bytes) {
        return;
    }
    if ordered(t, w)
        && !t.unusual
        && let Some(new) = t.recall(r, cell)
    {
        g.read.store(new, Ordering::Relaxed);
        return;
    }
    in_full(t, g, addr, cell, false, pc);
}

/// A plain write of some bytes of one granule.
#[inline(always)]
pub fn write(t: &mut Thread, addr: usize, bytes: u64, pc: usize) {
    let g = granule(addr);
    let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
    let cell = t.epoch | bytes | (pc as u64) << PC_SHIFT;
    if ordered(t, w) && ordered(t, r) && !t.unusual {
        if w | r == 0 {
            return first(t, g, addr, cell, true, pc);
        }
        if (w | r) & !bytes & 0xff == 0 {
            g.write.store(cell, Ordering::Relaxed);
            g.read.store(0, Ordering::Relaxed);
            return;
        }
        if (w ^ cell) & !0xff == 0 && r & !bytes & 0xff == 0 {
            g.write.store(w | bytes, Ordering::Relaxed);
            g.read.store(0, Ordering::Relaxed);
            return;
        }
    }
    if t.remembers(w, bytes) {
        return;
    }
    // What did not race with these accesses once does not race with them now.
    if r == 0
        && !t.unusual
        && !is_racy(w)
        && let Some(new) = t.recall(w, cell)
    {
        g.write.store(new, Ordering::Relaxed);
        return;
    }
    in_full(t, g, addr, cell, true, pc);
}

/// The first access to a granule. Here the moment between looking and writing can be long, because
/// the shadow's page may not be there yet, and two threads that start together would miss each other.
/// So the word is changed atomically, and the other word looked at again afterwards.
fn first(t: &mut Thread, g: &Granule, addr: usize, cell: u64, write: bool, pc: usize) {
    let (mine, other) = if write { (&g.write, &g.read) } else { (&g.read, &g.write) };
    if mine.compare_exchange(0, cell, Ordering::SeqCst, Ordering::Relaxed).is_err() {
        return in_full(t, g, addr, cell, write, pc);
    }
    let there = other.load(Ordering::SeqCst);
    if there != 0 {
        check_again(t, there, &Here { addr, cell, write, pc });
    }
}

/// An atomic access. The reading half of a read-modify-write is covered by the writing half.
pub fn atomic(t: &mut Thread, addr: usize, len: usize, write: bool, pc: usize) {
    if t.ignore != 0 {
        return;
    }
    let mut at = addr;
    while at < addr + len {
        let part = (8 - (at & 7)).min(addr + len - at);
        let g = granule(at);
        let bytes = shadow::bytes_of(at, part);
        let cell = t.epoch | bytes | ATOMIC | (pc as u64) << PC_SHIFT;
        let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
        let mine = if write { w } else { r };
        let again = (mine ^ cell) & EPOCH == 0 && mine & bytes == bytes;
        if !again {
            let simple = ordered(t, w) && ordered(t, r);
            // An atomic access makes a former one redundant only if that is atomic as well.
            if w | r == 0 {
                first(t, g, at, cell, write, pc);
            } else if simple && mine & !bytes & 0xff == 0 && (mine == 0 || mine & ATOMIC != 0) {
                let word = if write { &g.write } else { &g.read };
                word.store(cell, Ordering::Relaxed);
            } else {
                in_full(t, g, at, cell, write, pc);
            }
        }
        at += part;
    }
}

/// Everything that the fast forms leave: recording, sets, atomics, and races. This may take long (a
/// page of sets that is touched first), so words are changed only if they are still what was looked
/// at, and else looked at again.
#[inline(never)]
fn in_full(t: &mut Thread, g: &Granule, addr: usize, cell: u64, write: bool, pc: usize) {
    const TRIES: u32 = 8;
    if t.ignore != 0 {
        return;
    }
    // A handler of a signal would make sets in the same places.
    let _busy = Busy::new(t);
    let here = Here { addr, cell, write, pc };
    let racy = t.record_racy && is_racy(g.write.load(Ordering::Relaxed));
    let recorded = (t.record_accesses || racy) && !is_covered(t, g, cell, write);
    if recorded {
        record(t, &here, racy);
    }
    for _ in 0..TRIES {
        if attempt(t, g, &here) {
            break;
        }
    }
    if t.record_racy && !recorded && !racy && is_racy(g.write.load(Ordering::Relaxed)) {
        record(t, &here, true);
    }
}

/// Records a plain access; atomic ones are recorded where they are made.
#[cold]
fn record(t: &mut Thread, here: &Here, stamped: bool) {
    if here.cell & ATOMIC == 0 {
        let bytes = here.cell & 0xff;
        let start = (here.addr & !7) + bytes.trailing_zeros() as usize;
        rings::record_access(t, stamped, here.write, here.pc, start, bytes.count_ones() as usize);
    }
}

/// Whether the cell in the word, or one of its set, is of this epoch and at least as strong. Of writes
/// with races that must also be the last thing that happened: then the set has the name that it had.
fn is_covered(t: &Thread, g: &Granule, cell: u64, write: bool) -> bool {
    let word = if write { &g.write } else { &g.read }.load(Ordering::Relaxed);
    if is_racy(word) {
        return t.remembers(word, cell & 0xff);
    }
    let mut cells = Cells::new();
    cells.fill(word);
    cells.iter().any(|c| c.covers(cell))
}

/// One try; false if somebody else changed the word meanwhile.
fn attempt(t: &mut Thread, g: &Granule, here: &Here) -> bool {
    let &Here { cell, write, .. } = here;
    let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
    let freed = r == FREED;
    let mut writes = Cells::new();
    writes.fill(w);
    let was_racy = t.record_racy && is_racy(w);
    if write
        && !was_racy
        && let Some(mine) = writes.iter().find(|c| c.covers(cell))
    {
        known(t, w, mine);
        return true;
    }
    if !write && is_cell(r) && r != 0 && Cell(r).covers(cell) {
        return true;
    }
    let mut raced = false;
    for c in writes.iter() {
        let earlier = match (freed, c.atomic()) {
            (true, _) => Does::Free,
            (_, false) => Does::Write,
            (_, true) => Does::AtomicWrite,
        };
        raced |= conflicts(t, c, earlier, here);
    }
    let racy = was_racy || t.record_racy && raced;
    if !write {
        let new = if freed { cell } else { add(t, r, None, cell, false) };
        let mut seen = w;
        if racy {
            // Another name for the same writes: their threads shall not take them for known, now
            // that somebody has read.
            let renamed = racy_set(t, &writes);
            if g.write.compare_exchange(w, renamed, Ordering::SeqCst, Ordering::Relaxed).is_err() {
                return false;
            }
            seen = renamed;
        }
        return change(t, &g.read, r, new, &g.write, seen, here);
    }
    let mut reads = Cells::new();
    reads.fill(r);
    let mut outdated = cell & ATOMIC == 0;
    for c in reads.iter() {
        let earlier = if c.atomic() { Does::AtomicRead } else { Does::Read };
        raced |= conflicts(t, c, earlier, here);
        outdated &= ordered(t, c.0) && c.bytes() & !cell & 0xff == 0;
    }
    let mut new = add(t, w, Some(&writes), cell, raced);
    if racy {
        let mut cells = Cells::new();
        cells.fill(new);
        new = racy_set(t, &cells);
        if cell & ATOMIC == 0 {
            t.remember(new, cell & 0xff);
        }
    }
    if !change(t, &g.write, w, new, &g.read, r, here) {
        return false;
    }
    // Who reads memory that others write without order shall be seen to read it again.
    if r != 0 && (freed || outdated || racy) {
        let _ = g.read.compare_exchange(r, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
    true
}

/// The name of a new set for a granule on which there was a race.
fn racy_set(t: &mut Thread, cells: &Cells) -> u64 {
    shadow::racy(t.write_set(cells))
}

/// Changes a word from what was looked at, and looks at the other word again if that has changed.
fn change(
    t: &mut Thread,
    word: &AtomicU64,
    old: u64,
    new: u64,
    other: &AtomicU64,
    other_old: u64,
    here: &Here,
) -> bool {
    if word.compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed).is_err() {
        return false;
    }
    let there = other.load(Ordering::SeqCst);
    if there != other_old {
        check_again(t, there, here);
    }
    true
}

/// Checks against a word of the other kind than the access that appeared meanwhile: writes for a read,
/// reads for a write.
#[cold]
fn check_again(t: &mut Thread, there: u64, here: &Here) {
    let mut cells = Cells::new();
    cells.fill(there);
    for c in cells.iter() {
        let earlier = match (here.write, c.atomic()) {
            (true, false) => Does::Read,
            (true, true) => Does::AtomicRead,
            (false, false) => Does::Write,
            (false, true) => Does::AtomicWrite,
        };
        conflicts(t, c, earlier, here);
    }
}

/// The set that `word` names holds `mine`, which is an access of this epoch.
fn known(t: &mut Thread, word: u64, mine: Cell) {
    if is_set(word) && !mine.atomic() {
        t.remember(word, mine.bytes());
    }
}

/// The access in question.
struct Here {
    addr: usize,
    cell: u64,
    write: bool,
    pc: usize,
}

/// Whether an earlier access races with this one; if so it is reported.
#[inline]
fn conflicts(t: &mut Thread, c: Cell, earlier: Does, here: &Here) -> bool {
    let both = c.0 & here.cell & 0xff;
    if both == 0 || c.0 & here.cell & ATOMIC != 0 || ordered(t, c.0) {
        return false;
    }
    let later = match (here.write, here.cell & ATOMIC != 0) {
        (true, false) => Does::Write,
        (true, true) => Does::AtomicWrite,
        (false, false) => Does::Read,
        (false, true) => Does::AtomicRead,
    };
    let start = (here.addr & !7) + both.trailing_zeros() as usize;
    if t.record_racy && !is_racy(granule(here.addr).write.load(Ordering::Relaxed)) {
        rings::raced(t, (c, earlier), later, start, both.count_ones() as usize, here.pc);
    }
    report::race(t, c, earlier, Cell(here.cell), later, start, both.count_ones(), here.pc);
    true
}

/// The word that says what `old` says (its cells, if they are at hand) and `cell` as well, without
/// what `cell` makes redundant. After a race the cells it was with count as redundant: one report is
/// enough.
fn add(t: &mut Thread, old: u64, cells: Option<&Cells>, cell: u64, raced: bool) -> u64 {
    if old == 0 {
        return cell;
    }
    if !raced && let Some(new) = t.recall(old, cell) {
        return new;
    }
    let mut own = Cells::new();
    let cells = cells.unwrap_or_else(|| {
        own.fill(old);
        &own
    });
    let mut out = Cells::new();
    let mut new = cell;
    for c in cells.iter() {
        if c.covers(cell) {
            known(t, old, c);
            return old;
        }
        if c.same_access(Cell(cell)) {
            new |= c.bytes();
            continue;
        }
        let weaker = cell & ATOMIC == 0 || c.atomic();
        let redundant = weaker && (raced || ordered(t, c.0));
        let left = if redundant { c.0 & !(cell & 0xff) } else { c.0 };
        if left & 0xff != 0 {
            out.push(left);
        }
    }
    out.push(new);
    if out.count() == 1 {
        return new;
    }
    let made = t.next_set;
    let word = t.write_set(&out);
    if cell & ATOMIC == 0 {
        t.remember(word, new & 0xff);
    }
    if !raced {
        t.memorise(Memo { old, cell, new: word, made });
    }
    word
}

/// Whether the filter would have stopped this: the same test that `abi` makes in assembly.
#[inline(always)]
fn filtered(t: &Thread, word: u64, bytes: u64) -> bool {
    (word ^ t.epoch) & (EPOCH | ATOMIC) == 0 && word & bytes == bytes
}

/// A plain access to any number of bytes.
pub fn range(t: &mut Thread, addr: usize, len: usize, is_write: bool, pc: usize) {
    if crate::control::is_on() {
        return crate::control::access(addr, len, is_write, pc);
    }
    if t.ignore != 0 {
        return;
    }
    let end = addr.saturating_add(len);
    let mut at = addr;
    while at < end {
        let part = (8 - (at & 7)).min(end - at);
        let bytes = shadow::bytes_of(at, part);
        let g = granule(at);
        let w = g.write.load(Ordering::Relaxed);
        if !filtered(t, w, bytes) {
            if is_write {
                write(t, at, bytes, pc);
            } else if !filtered(t, g.read.load(Ordering::Relaxed), bytes) {
                read(t, at, bytes, pc);
            }
        }
        at += part;
    }
}

/// Memory is about to be freed: that conflicts with every access that is not ordered before it, and
/// whoever comes later without being ordered after it conflicts with it.
pub fn free(t: &mut Thread, addr: usize, len: usize, pc: usize) {
    const CHECKED: usize = 1 << 15;
    if t.ignore != 0 {
        return shadow::forget(addr, len);
    }
    let checked = len.min(CHECKED);
    let recording = (t.record_accesses, t.record_racy);
    t.set_record_accesses(false);
    t.record_racy = false;
    range(t, addr, checked, true, pc);
    t.set_record_accesses(recording.0);
    t.record_racy = recording.1;
    let cell = t.epoch | 0xff | (pc as u64) << PC_SHIFT;
    for at in (addr..addr + checked).step_by(8) {
        let g = granule(at);
        g.write.store(cell, Ordering::Relaxed);
        g.read.store(FREED, Ordering::Relaxed);
    }
    if len > checked {
        shadow::forget(addr + checked, len - checked);
    }
}

/// A plain read that the read word did not filter: one that follows a write of the same epoch is
/// covered by it.
#[inline(always)]
pub fn read_after_filter(t: &mut Thread, addr: usize, bytes: u64, pc: usize) {
    if !filtered(t, granule(addr).write.load(Ordering::Relaxed), bytes) {
        read(t, addr, bytes, pc);
    }
}

/// A plain access to two whole granules. The usual case, in which all that was there is in the past,
/// makes no call; everything else is left to the forms for one granule.
#[inline(always)]
pub fn two(t: &mut Thread, addr: usize, is_write: bool, pc: usize) {
    let (first, second) = (granule(addr), granule(addr + 8));
    let words = [&first.write, &first.read, &second.write, &second.read];
    let [w, r, x, s] = words.map(|word| word.load(Ordering::Relaxed));
    let past = ordered(t, w) & ordered(t, r) & ordered(t, x) & ordered(t, s);
    let touched = (w | r != 0) & (x | s != 0);
    if past & touched & !t.unusual {
        let cell = t.epoch | 0xff | (pc as u64) << PC_SHIFT;
        if is_write {
            first.write.store(cell, Ordering::Relaxed);
            first.read.store(0, Ordering::Relaxed);
            second.write.store(cell, Ordering::Relaxed);
            second.read.store(0, Ordering::Relaxed);
        } else {
            first.read.store(cell, Ordering::Relaxed);
            second.read.store(cell, Ordering::Relaxed);
        }
        return;
    }
    one_by_one(t, addr, is_write, pc);
}

#[inline(never)]
fn one_by_one(t: &mut Thread, addr: usize, is_write: bool, pc: usize) {
    for at in [addr, addr + 8] {
        if is_write {
            write(t, at, 0xff, pc);
        } else {
            read_after_filter(t, at, 0xff, pc);
        }
    }
}
