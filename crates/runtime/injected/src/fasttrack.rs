//! Data races: two accesses to the same byte, at least one a write, not both atomic, neither ordered
//! before the other.
//!
//! Paper: FastTrack, Flanagan and Freund, PLDI 2009, section 3 (epochs, adaptive representation of
//! reads). Deviations: a granule of 8 bytes with byte masks instead of a variable; what one epoch
//! cannot say goes to an interned set of cells instead of a vector clock, so that read-shared arrays
//! cost one set and not one vector per element (a granule that is alone in changing with every epoch gets
//! a set of its own, which is such a vector); an access that a later access of the same strength is
//! ordered after is forgotten.
//!
//! Guarantee: never reports a race when all synchronization of the program is seen, and the place it
//! names for the earlier access is one that touched the byte. Finds the first race on every granule, in
//! the order that was seen; further ones on the same granule are found if what is remembered after it
//! shows them. May miss: accesses within the same few nanoseconds (shadow words are updated without
//! locks), more than 62 different threads or epochs in one granule, granules whose set was recycled (a
//! thread makes 4,096 more sets), and threads that wore out or share a slot (see `thread`).
//!
//! Cost, in instructions: 10 for an access that the filter in `abi` stops, because this epoch has made
//! it before (14 if it is narrower than 8 bytes); about 45 for the first of an epoch if all that is known
//! of the granule is in the past and one cell holds what is left; 15 more if a cell takes a byte from
//! another place; 100 if a set is found again, 150 if the thread's cell in a private one is renewed; about
//! 700 if a set has to be made, rarely.

#[cfg(test)]
mod agreement;
mod full;
mod sweeps;
#[cfg(test)]
pub(crate) mod tests;

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::control;
use crate::places;
use crate::rings::held_back;
use crate::shadow::{
    self, ATOMIC, BEYOND, Cell, EPOCH, FREED, Granule, PC_SHIFT, granule, is_only_atomic,
    is_private, is_racy, is_set,
};
use crate::spmd;
use crate::thread::{Busy, Change, Thread};
use crate::wire::AccessKind;
pub use sweeps::sweep;

use full::{Here, change, check_again, freed_twice, in_full, used_wrongly};

/// Whether the access is in the thread's past. Of words that are not one cell nothing is: the clock has
/// -1 for the slots that mark them.
#[inline(always)]
fn ordered(t: &Thread, word: u64) -> bool {
    let cell = Cell(word);
    t.clock.at[cell.slot() & 0x3ff] as i32 >= cell.clock() as i32
}

/// Whether a point, as in a cell, is in the thread's past.
pub fn is_past(t: &Thread, epoch: u64) -> bool {
    ordered(t, epoch)
}

/// Whether the word has no byte but these.
#[inline(always)]
fn within(word: u64, bytes: u64) -> bool {
    word & !bytes & 0xff == 0
}

/// What is left of a word, one cell, when these bytes are taken away.
#[inline(always)]
fn without(word: u64, bytes: u64) -> u64 {
    if within(word, bytes) { 0 } else { word & !bytes }
}

/// A plain read of some bytes of one granule. Here and in `write` every way out is a store or a jump, so
/// that nothing needs to be saved on the stack.
#[inline(always)]
pub fn read(t: &mut Thread, g: &Granule, addr: usize, bytes: u64, pc: usize) {
    let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
    if !t.unusual && ordered(t, w) && w | r != 0 && places::is_plain(pc) {
        let cell = t.epoch | bytes | (pc as u64) << PC_SHIFT;
        if within(r, bytes) && ordered(t, r) {
            g.read.store(cell, Ordering::Relaxed);
            return;
        }
        if bytes != 0xff
            && Cell(r).joins(cell)
            && let Some(both) = places::joined(t, r, cell)
        {
            g.read.store(both, Ordering::Relaxed);
            return;
        }
    }
    // For whole granules `abi` has seen to that.
    if bytes != 0xff && t.remembers(r, bytes) {
        return;
    }
    slow_read(t, g, addr, bytes, pc);
}

/// A plain write of some bytes of one granule.
#[inline(always)]
pub fn write(t: &mut Thread, g: &Granule, addr: usize, bytes: u64, pc: usize) {
    let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
    if !t.unusual && ordered(t, w) && ordered(t, r) && w | r != 0 && places::is_plain(pc) {
        let cell = t.epoch | bytes | (pc as u64) << PC_SHIFT;
        if within(w, bytes) {
            g.write.store(cell, Ordering::Relaxed);
            g.read.store(without(r, bytes), Ordering::Relaxed);
            return;
        }
        if bytes != 0xff
            && Cell(w).joins(cell)
            && let Some(both) = places::joined(t, w, cell)
        {
            g.write.store(both, Ordering::Relaxed);
            g.read.store(without(r, bytes), Ordering::Relaxed);
            return;
        }
    }
    slow_write(t, g, addr, bytes, pc);
}

#[inline(never)]
fn slow_read(t: &mut Thread, g: &Granule, addr: usize, bytes: u64, pc: usize) {
    if control::is_on() {
        let len = bytes.count_ones() as usize;
        control::access(addr, len, false, pc);
        return used_controlled(t, (addr, len), AccessKind::Read, pc);
    }
    // A handler of a signal would change what is remembered while it is looked at.
    let _busy = Busy::new(t);
    let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
    if t.remembers(r, bytes) {
        return;
    }
    let usual = !t.unusual || t.holds_back();
    if t.unusual {
        if spmd::is_on() && spmd::passes_by(t, g, addr, bytes, false, pc) {
            return;
        }
        if usual {
            held_back::access(t, addr, bytes, false, pc);
        }
    }
    let cell = t.epoch | bytes | places::field(t, pc);
    if ordered(t, w) && usual {
        if w | r == 0 {
            return first(t, g, addr, cell, false, pc);
        }
        let known = if within(r, bytes) && ordered(t, r) {
            Some(cell)
        } else if Cell(r).joins(cell) {
            places::join(t, r, cell)
        } else if is_private(r) {
            if renewed(t, r, cell) {
                return;
            }
            None
        } else {
            t.remembered(r, Change::Add, cell)
        };
        // Another thread may have changed the word in the meantime: `change` compares.
        let here = Here { addr, cell, write: false, pc };
        if known.is_some_and(|new| change(t, &g.read, r, new, &g.write, w, &here)) {
            return;
        }
    }
    in_full(t, g, addr, cell, false, pc);
}

#[inline(never)]
fn slow_write(t: &mut Thread, g: &Granule, addr: usize, bytes: u64, pc: usize) {
    if control::is_on() {
        let len = bytes.count_ones() as usize;
        control::access(addr, len, true, pc);
        return used_controlled(t, (addr, len), AccessKind::Write, pc);
    }
    // A handler of a signal would change what is remembered while it is looked at.
    let _busy = Busy::new(t);
    let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
    if t.remembers(w, bytes) {
        return;
    }
    let usual = !t.unusual || t.holds_back();
    if t.unusual {
        if spmd::is_on() && spmd::passes_by(t, g, addr, bytes, true, pc) {
            return;
        }
        if usual {
            held_back::access(t, addr, bytes, true, pc);
        }
    }
    let cell = t.epoch | bytes | places::field(t, pc);
    // What did not race with these accesses once does not race with them now.
    let rest = if ordered(t, r) {
        Some(without(r, bytes))
    } else if is_set(r) {
        t.remembered(r, Change::TakeAway, cell)
    } else {
        None
    };
    if let Some(rest) = rest
        && usual
        && !is_racy(w)
    {
        if w | r == 0 {
            return first(t, g, addr, cell, true, pc);
        }
        let known = if within(w, bytes) && ordered(t, w) {
            Some(cell)
        } else if Cell(w).joins(cell) {
            places::join(t, w, cell)
        } else {
            t.remembered(w, Change::Add, cell)
        };
        let here = Here { addr, cell, write: true, pc };
        if known.is_some_and(|new| change(t, &g.write, w, new, &g.read, r, &here)) {
            let _ = g.read.compare_exchange(r, rest, Ordering::Relaxed, Ordering::Relaxed);
            return;
        }
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

/// Puts the access into a private set; false if that is not possible.
fn renewed(t: &mut Thread, word: u64, cell: u64) -> bool {
    let _busy = Busy::new(t);
    let now = shadow::renew(word, cell, |old, cell| {
        if Cell(old).covers(cell) { Some(old) } else { places::join(t, old, cell) }
    });
    if let Some(now) = now
        && now & ATOMIC == 0
    {
        t.remember(word, now & 0xff);
    }
    now.is_some()
}

/// An atomic access. The reading half of a read-modify-write is covered by the writing half.
#[inline]
pub fn atomic(t: &mut Thread, addr: usize, len: usize, write: bool, pc: usize) {
    if t.ignore != 0 {
        return;
    }
    if (addr & 7) + len <= 8 {
        return atomic_part(t, addr, len, write, pc);
    }
    let mut at = addr;
    while at < addr + len {
        let part = (8 - (at & 7)).min(addr + len - at);
        atomic_part(t, at, part, write, pc);
        at += part;
    }
}

/// The words of the granule at `addr`, if they cannot change without being different: of a private set the
/// content may.
#[inline]
pub fn words(addr: usize) -> Option<(u64, u64)> {
    let g = granule(addr);
    let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
    (!is_private(w)).then_some((w, r))
}

fn atomic_part(t: &mut Thread, addr: usize, len: usize, write: bool, pc: usize) {
    let g = granule(addr);
    let bytes = shadow::bytes_of(addr, len);
    let cell = t.epoch | bytes | ATOMIC | places::field(t, pc);
    let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
    let (word, mine) = if write { (&g.write, w) } else { (&g.read, r) };
    if (mine ^ cell) & EPOCH == 0 && mine & bytes == bytes && r != FREED {
        return;
    }
    if w | r == 0 {
        return first(t, g, addr, cell, write, pc);
    }
    // With an atomic access a plain one in the past does not conflict, and another atomic one never.
    let harmless = |word: u64| {
        let all = |word| shadow::all(word, |c| c.atomic() || ordered(t, c.0));
        word == 0 || is_only_atomic(word) || !is_racy(word) && all(word)
    };
    if harmless(w) && (!write || harmless(r)) {
        // It makes a former access redundant only if that is atomic as well, and in the past.
        if mine == 0 || within(mine, bytes) && mine & ATOMIC != 0 && ordered(t, mine) {
            return word.store(cell, Ordering::Relaxed);
        }
        if is_private(mine) && renewed(t, mine, cell) {
            return;
        }
        if Cell(mine).joins(cell)
            && let Some(both) = places::join(t, mine, cell)
            && word.compare_exchange(mine, both, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        {
            return;
        }
    }
    in_full(t, g, addr, cell, write, pc);
}

/// Whether the filter would have stopped this: the same test that `abi` makes in assembly.
#[inline(always)]
pub fn filtered(t: &Thread, word: u64, bytes: u64) -> bool {
    (word ^ t.epoch) & (EPOCH | ATOMIC) == 0 && word & bytes == bytes
}

/// One access under control, whatever it spans: one scheduling point.
#[cold]
fn controlled(t: &mut Thread, addr: usize, len: usize, is_write: bool, pc: usize) {
    control::access(addr, len, is_write, pc);
    let part = if is_write { AccessKind::Write } else { AccessKind::Read };
    used_controlled(t, (addr, len), part, pc);
}

/// A plain access to a few bytes, in three granules at most for 16 of them.
#[inline(always)]
pub fn few(t: &mut Thread, addr: usize, len: usize, is_write: bool, pc: usize) {
    if control::is_on() {
        return controlled(t, addr, len, is_write, pc);
    }
    if t.ignore != 0 {
        return;
    }
    let end = addr + len;
    let mut at = addr;
    while at < end {
        let here = (8 - (at & 7)).min(end - at);
        part(t, at, here, is_write, pc);
        at += here;
    }
}

/// A plain access to any number of bytes.
pub fn range(t: &mut Thread, addr: usize, len: usize, is_write: bool, pc: usize) {
    if control::is_on() {
        return controlled(t, addr, len, is_write, pc);
    }
    if t.ignore != 0 {
        return;
    }
    let end = addr.saturating_add(len);
    let first_whole = (addr.saturating_add(7) & !7).min(end);
    part(t, addr, first_whole - addr, is_write, pc);
    let whole = (end - first_whole) / 8;
    sweeps::granules(t, first_whole, (8, whole), is_write, pc);
    let rest = first_whole + whole * 8;
    part(t, rest, end - rest, is_write, pc);
}

/// Some bytes of one granule, perhaps none.
#[inline(always)]
fn part(t: &mut Thread, addr: usize, len: usize, is_write: bool, pc: usize) {
    if len == 0 {
        return;
    }
    let (g, bytes) = (granule(addr), shadow::bytes_of(addr, len));
    if !filtered(t, g.write.load(Ordering::Relaxed), bytes) {
        if is_write {
            write(t, g, addr, bytes, pc);
        } else if !filtered(t, g.read.load(Ordering::Relaxed), bytes) {
            read(t, g, addr, bytes, pc);
        }
    }
}

/// Memory is about to be freed: that conflicts with every access that is not ordered before it, and
/// with every later access that is not ordered after it.
/// Of a block of the `heap`, every access is misuse from then on, also of a thread that knows of the free. Its cells
/// are marked as atomic, which keeps the filters from taking such an access for known. False if it was freed before.
pub fn free(t: &mut Thread, addr: usize, len: usize, heap: bool, pc: usize) -> bool {
    const CHECKED: usize = 1 << 15;
    if t.ignore != 0 {
        shadow::forget(addr, len);
        return true;
    }
    let checked = len.min(CHECKED);
    if heap && is_freed(addr) {
        freed_twice(t, addr, pc);
        return false;
    }
    let recording = (t.record_accesses, t.record_racy);
    t.set_record_accesses(false);
    t.record_racy = false;
    if control::is_on() {
        control::access(addr, checked, true, pc);
    } else {
        range(t, addr, checked, true, pc);
    }
    t.set_record_accesses(recording.0);
    t.record_racy = recording.1;
    if heap && control::is_on() {
        // Another thread may have run at the scheduling point.
        if is_freed(addr) {
            freed_twice(t, addr, pc);
            return false;
        }
        FREED_FROM.fetch_min(addr, Ordering::Relaxed);
        FREED_TO.fetch_max(addr + checked, Ordering::Relaxed);
    }
    let mark = if heap { ATOMIC } else { 0 };
    let cell = t.epoch | 0xff | mark | places::field(t, pc);
    for at in (addr..addr + checked).step_by(8) {
        let g = granule(at);
        g.write.store(cell, Ordering::Relaxed);
        g.read.store(FREED, Ordering::Relaxed);
    }
    if len > checked {
        shadow::forget(addr + checked, len - checked);
    }
    true
}

/// Under control: memory from `from` on, up to `to`, is behind the end of a block that is allocated now. Writing it is
/// misuse.
pub fn ends(t: &mut Thread, from: usize, to: usize, pc: usize) {
    FREED_FROM.fetch_min(from, Ordering::Relaxed);
    FREED_TO.fetch_max(to, Ordering::Relaxed);
    let cell = t.epoch | 0xff | ATOMIC | places::field(t, pc);
    for at in (from..to).step_by(8) {
        let g = granule(at);
        g.write.store(cell, Ordering::Relaxed);
        g.read.store(BEYOND, Ordering::Relaxed);
    }
}

/// The program is told that a block ends at `end`: it may write all of it.
pub fn ends_at(end: usize) {
    let behind = |at: &usize| granule(*at).read.load(Ordering::Relaxed) == BEYOND;
    let granules = (1..).map(|n| (end & !7) - 8 * n);
    for at in granules.take_while(behind) {
        granule(at).write.store(0, Ordering::Relaxed);
        granule(at).read.store(0, Ordering::Relaxed);
    }
}

/// The memory that must not be used under control lies between these two.
static FREED_FROM: AtomicUsize = AtomicUsize::new(usize::MAX);
static FREED_TO: AtomicUsize = AtomicUsize::new(0);

/// Looks under control whether an access is to memory that was freed, or behind the end of a block.
#[inline]
pub fn used_controlled(t: &mut Thread, at: (usize, usize), part: AccessKind, pc: usize) {
    let (from, to) = (FREED_FROM.load(Ordering::Relaxed), FREED_TO.load(Ordering::Relaxed));
    if at.0 < to && at.0 >= from {
        used_wrongly(t, at, part, pc);
    }
}

/// Whether a block of the heap was freed, and not handed out again.
pub fn is_freed(block: usize) -> bool {
    granule(block).read.load(Ordering::Relaxed) == FREED
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
    if past & touched & !t.unusual & places::is_plain(pc) {
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
    if control::is_on() {
        return controlled(t, addr, 16, is_write, pc);
    }
    for at in [addr, addr + 8] {
        let g = granule(at);
        if is_write {
            write(t, g, at, 0xff, pc);
        } else if !filtered(t, g.write.load(Ordering::Relaxed), 0xff) {
            read(t, g, at, 0xff, pc);
        }
    }
}
