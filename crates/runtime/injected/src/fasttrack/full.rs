//! What the fast paths do not handle: recording, sets, atomics, first touches, and races.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::places;
use crate::report::{self, Earlier, Misused, Other};
use crate::rings;
use crate::shadow::{
    self, ATOMIC, BEYOND, Cell, Cells, FREED, Granule, granule, is_cell, is_private, is_racy,
    is_set,
};
use crate::spmd;
use crate::thread::{self, Busy, Change, Memo, Thread};
use crate::wire::{AccessKind, MisuseKind};

use super::ordered;

/// Everything that the fast forms leave: recording, sets, atomics, and races. This may take long (a
/// page of sets that is touched first), so words are changed only if they are still what was looked
/// at, and else looked at again.
#[inline(never)]
pub(super) fn in_full(t: &mut Thread, g: &Granule, addr: usize, cell: u64, write: bool, pc: usize) {
    const TRIES: u32 = 8;
    if t.ignore != 0 {
        return;
    }
    // A handler of a signal would make sets in the same places.
    let _busy = Busy::new(t);
    let here = Here { addr, cell, write, pc };
    let racy = t.record_racy && is_racy(g.write.load(Ordering::Relaxed));
    let all = t.record_accesses && !t.hold_back;
    let recorded = (all || racy) && !is_covered(t, g, cell, write);
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
        let len = bytes.count_ones() as usize;
        spmd::access(t, start, len, here.write, here.pc);
        rings::record_access(t, stamped, here.write, here.pc, start, len);
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

/// One try; false if another thread changed the word meanwhile.
fn attempt(t: &mut Thread, g: &Granule, here: &Here) -> bool {
    let &Here { cell, write, .. } = here;
    let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
    let freed = r == FREED;
    let mut writes = Cells::new();
    // See `free`: the mark is not a property of the access.
    let from_heap = freed && w & ATOMIC != 0 && is_cell(w);
    writes.fill(if from_heap { w & !ATOMIC } else { w });
    let was_racy = t.record_racy && is_racy(w);
    if write
        && !was_racy
        && !freed
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
            (true, _) => AccessKind::Free,
            (_, false) => AccessKind::Write,
            (_, true) => AccessKind::AtomicWrite,
        };
        raced |= conflicts(t, c, earlier, here);
    }
    if from_heap {
        if !raced {
            used_freed(t, Cell(w), here);
        }
        // One report is enough.
        if g.write.compare_exchange(w, w & !ATOMIC, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return false;
        }
    }
    let w = if from_heap { w & !ATOMIC } else { w };
    let racy = was_racy || t.record_racy && raced;
    if !write {
        let new = if freed { cell } else { add(t, r, None, cell, false) };
        let mut seen = w;
        if racy {
            // Another name for the same writes: their threads must not take them for known, now that
            // another thread has read.
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
    for c in reads.iter() {
        let earlier = if c.atomic() { AccessKind::AtomicRead } else { AccessKind::Read };
        raced |= conflicts(t, c, earlier, here);
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
    let rest = if freed || racy { 0 } else { after_write(t, r, &reads, cell, raced) };
    if rest != r {
        let _ = g.read.compare_exchange(r, rest, Ordering::Relaxed, Ordering::Relaxed);
    }
    true
}

/// The thread accesses memory that it knows to be freed.
#[cold]
fn used_freed(t: &mut Thread, free: Cell, here: &Here) {
    let byte = (here.cell & 0xff).trailing_zeros();
    let addr = (here.addr & !7) + byte as usize;
    freed(t, MisuseKind::UsedFreed, free, addr, here.kind(), here.pc);
}

/// Under control the order of threads is known: an access to memory that is freed by then comes after the free,
/// whether or not anything orders the two. Memory behind the end of a block must not be written.
#[cold]
pub(super) fn used_wrongly(
    t: &mut Thread,
    (addr, len): (usize, usize),
    part: AccessKind,
    pc: usize,
) {
    let writes = matches!(part, AccessKind::Write | AccessKind::AtomicWrite);
    let wrong = |at: usize| match granule(at).read.load(Ordering::Relaxed) {
        FREED => Some((at, MisuseKind::UsedFreed, AccessKind::Free)),
        BEYOND if writes => Some((at, MisuseKind::BeyondBlock, AccessKind::Allocate)),
        _ => None,
    };
    let mut granules = (addr & !7..addr + len).step_by(8);
    let Some((at, kind, earlier)) = granules.find_map(wrong) else { return };
    let _busy = Busy::new(t);
    let cell = Cell(granule(at).write.load(Ordering::Relaxed));
    misused(t, (kind, earlier), cell, at.max(addr), part, pc);
}

/// The thread frees a block that was freed before.
#[cold]
pub(super) fn freed_twice(t: &mut Thread, addr: usize, pc: usize) {
    let _busy = Busy::new(t);
    let free = Cell(granule(addr).write.load(Ordering::Relaxed));
    if ordered(t, free.0) || t.ring.is_log() {
        freed(t, MisuseKind::FreedTwice, free, addr, AccessKind::Free, pc);
    } else {
        let earlier = Earlier { cell: free, pc: places::of_byte(free, 0), kind: AccessKind::Free };
        report::race(t, &earlier, AccessKind::Free, (addr & !7, 8), pc, false);
    }
}

fn freed(t: &mut Thread, kind: MisuseKind, free: Cell, addr: usize, part: AccessKind, pc: usize) {
    misused(t, (kind, AccessKind::Free), free, addr, part, pc);
}

/// Memory is misused after what the shadow word `cell` says of an earlier free or allocation.
fn misused(
    t: &mut Thread,
    (kind, earlier): (MisuseKind, AccessKind),
    cell: Cell,
    addr: usize,
    part: AccessKind,
    pc: usize,
) {
    let other = Other {
        thread: thread::owner(cell.slot(), cell.clock()),
        kind: earlier,
        pc: places::of_byte(cell, (addr & 7) as u32),
        cell,
    };
    report::misuse(t, &Misused { kind, detail: 0, addr, part }, Some(&other), pc);
}

/// What is left to say of the reads in `old` after a write: a plain one makes those redundant that it is
/// ordered after. A private set stays as it is while there is anything left of it.
fn after_write(t: &mut Thread, old: u64, reads: &Cells, cell: u64, raced: bool) -> u64 {
    if cell & ATOMIC != 0 {
        return old;
    }
    let mut rest = Cells::new();
    let mut same = true;
    for c in reads.iter() {
        let left = if ordered(t, c.0) { c.0 & !(cell & 0xff) } else { c.0 };
        same &= left == c.0;
        if left & 0xff != 0 {
            rest.push(left);
        }
    }
    let made = t.next_set;
    let mut cells = rest.iter();
    let new = match (cells.next(), cells.next()) {
        (None, _) => 0,
        _ if same || is_private(old) => old,
        (Some(one), None) => one.0,
        _ => t.write_set(&rest),
    };
    if !raced && is_set(old) && !is_private(old) {
        t.memorise(Memo { old, cell, new, made, change: Change::TakeAway });
    }
    new
}

/// The name of a new set for a granule on which there was a race.
fn racy_set(t: &mut Thread, cells: &Cells) -> u64 {
    shadow::racy(t.write_set(cells))
}

/// Changes a word from what was looked at, and looks at the other word again if that has changed.
pub(super) fn change(
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
pub(super) fn check_again(t: &mut Thread, there: u64, here: &Here) {
    let mut cells = Cells::new();
    cells.fill(there);
    for c in cells.iter() {
        let earlier = match (here.write, c.atomic()) {
            (true, false) => AccessKind::Read,
            (true, true) => AccessKind::AtomicRead,
            (false, false) => AccessKind::Write,
            (false, true) => AccessKind::AtomicWrite,
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
pub(super) struct Here {
    pub(super) addr: usize,
    pub(super) cell: u64,
    pub(super) write: bool,
    pub(super) pc: usize,
}

impl Here {
    fn kind(&self) -> AccessKind {
        match (self.write, self.cell & ATOMIC != 0) {
            (true, false) => AccessKind::Write,
            (true, true) => AccessKind::AtomicWrite,
            (false, false) => AccessKind::Read,
            (false, true) => AccessKind::AtomicRead,
        }
    }
}

/// Whether an earlier access races with this one; if so it is reported.
#[inline]
fn conflicts(t: &mut Thread, c: Cell, earlier: AccessKind, here: &Here) -> bool {
    let both = c.0 & here.cell & 0xff;
    if both == 0 || c.0 & here.cell & ATOMIC != 0 || ordered(t, c.0) {
        return false;
    }
    let later = here.kind();
    // A cell's bytes may have been touched from different places: each is a race of its own.
    let mut left = both;
    while left != 0 {
        let (from, bytes) = places::lowest(c, left);
        left &= !bytes;
        let start = (here.addr & !7) + bytes.trailing_zeros() as usize;
        let earlier = Earlier { cell: c, pc: from, kind: earlier };
        let first = t.record_racy && !is_racy(granule(here.addr).write.load(Ordering::Relaxed));
        let first = first && left == both & !bytes;
        report::race(t, &earlier, later, (start, bytes.count_ones()), here.pc, first);
    }
    true
}

/// The word that says what `old` says (its cells, if they are at hand) and `cell` as well, without
/// what `cell` makes redundant. After a race the cells it was with count as redundant: one report is
/// enough.
fn add(t: &mut Thread, old: u64, cells: Option<&Cells>, cell: u64, raced: bool) -> u64 {
    if old == 0 {
        return cell;
    }
    if !raced && let Some(new) = t.remembered(old, Change::Add, cell) {
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
        if c.joins(cell)
            && let Some(both) = places::join(t, c.0, new)
        {
            new = both;
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
    let made = t.next_set;
    let word = match out.count() {
        1 => new,
        n if new == cell && is_restless(old, cells.count(), n) => {
            shadow::private(t.write_set(&out), &out)
        }
        _ => t.write_set(&out),
    };
    if cell & ATOMIC == 0 && is_set(word) {
        t.remember(word, new & 0xff);
    }
    if !raced && !is_private(old) && !is_private(word) {
        t.memorise(Memo { old, cell, new: word, made, change: Change::Add });
    }
    word
}

/// Whether a set that replaces another is worth being private: that one was already, or no other granule
/// had it and a thread has only come back.
fn is_restless(old: u64, before: usize, now: usize) -> bool {
    now <= shadow::PLACE_CELLS
        && is_set(old)
        && (is_private(old) || now <= before && !shadow::is_used_again(old))
}
