//! Races and misuse found inline become records in shared memory, each pair of places once.
//!
//! Without a host the pairs are only counted, and the count is printed when the program ends.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::arch::words;
use crate::layout;
use crate::rings;
use crate::shadow::Cell;
use crate::thread::{self, Thread};
use crate::wire::{self, AccessKind, FRAMES, MisuseKind, PAST, Raced, Side};

const PAIRS: usize = 1 << 13;

/// Pairs already reported, by hash: the pair's key, never 0.
static SEEN: [AtomicU64; PAIRS] = [const { AtomicU64::new(0) }; PAIRS];
/// For each of them its record.
static RECORD: [AtomicU32; PAIRS] = [const { AtomicU32::new(0) }; PAIRS];
/// Pairs found in a process without a host.
pub static UNREPORTED: AtomicU32 = AtomicU32::new(0);
/// Misuse found in a process without a host.
pub static UNREPORTED_MISUSE: AtomicU32 = AtomicU32::new(0);

/// Memory on which the program says that races do no harm: first address, and first address after it.
static ALLOWED: [(AtomicUsize, AtomicUsize); 256] =
    [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; 256];

/// Races on these bytes are not reported from now on.
pub fn allow(addr: usize, len: usize) {
    for (start, end) in &ALLOWED {
        if start.compare_exchange(0, addr, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return end.store(addr + len, Ordering::Release);
        }
    }
}

fn is_allowed(addr: usize) -> bool {
    ALLOWED.iter().take_while(|(start, _)| start.load(Ordering::Acquire) != 0).any(
        |(start, end)| addr >= start.load(Ordering::Acquire) && addr < end.load(Ordering::Acquire),
    )
}

/// Where the pair's entry is, and whether it is new. None when the table is full.
fn entry(key: u64) -> Option<(usize, bool)> {
    let start = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as usize;
    for i in 0..64 {
        let at = (start + i) % PAIRS;
        let seen = SEEN[at].load(Ordering::Acquire);
        if seen == key {
            return Some((at, false));
        }
        if seen == 0 {
            match SEEN[at].compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some((at, true)),
                Err(other) if other == key => return Some((at, false)),
                Err(_) => {}
            }
        }
    }
    None
}

/// The earlier side of a race.
pub struct Earlier {
    /// By whom and when.
    pub cell: Cell,
    /// Low bits of the program counter.
    pub pc: u64,
    /// What kind of access it was.
    pub kind: AccessKind,
}

/// Reports that what the thread is about to do to `len` bytes at `addr` was not ordered after `earlier`. If it
/// is the `first` race on the granule, that is recorded among the events as well.
#[cold]
pub fn race(
    t: &mut Thread,
    earlier: &Earlier,
    later: AccessKind,
    (addr, len): (usize, u32),
    pc: usize,
    first: bool,
) {
    #[cfg(test)]
    tests::found(earlier, addr, len, pc);
    if is_allowed(addr) {
        return;
    }
    if !first && rings::shared().is_some_and(|s| s.header.flags & wire::NO_RACES != 0) {
        return;
    }
    let owner = thread::owner(earlier.cell.slot(), earlier.cell.clock());
    if let Some(fd) = layout::descriptor_at(addr) {
        let part =
            |kind| if kind == AccessKind::Write { AccessKind::Close } else { AccessKind::Use };
        let other =
            Other { thread: owner, kind: part(earlier.kind), pc: earlier.pc, cell: earlier.cell };
        let what = Misused { kind: MisuseKind::ClosedInUse, detail: fd, addr, part: part(later) };
        return misuse(t, &what, Some(&other), pc);
    }
    let race = Raced {
        number: None,
        addr: addr as u64,
        len: u64::from(len),
        thread: owner,
        epoch: thread::short_epoch(earlier.cell),
        earlier: earlier.kind,
        later,
    };
    let first_side = side(race.thread, race.earlier, earlier.pc, race.epoch, (race.addr, len));
    let second_side = side(t.number, later, pc as u64, own_epoch(t), (race.addr, len));
    let number = enter(t, (0, 0), first_side, second_side);
    if first {
        rings::raced(t, &Raced { number, ..race }, pc);
    }
}

/// A misuse: what, of what, and the part of the thread that found it.
pub struct Misused {
    /// How.
    pub kind: MisuseKind,
    /// See [`wire::Race::detail`].
    pub detail: u32,
    /// Where it lies, if it lies in memory.
    pub addr: usize,
    /// What the thread does.
    pub part: AccessKind,
}

/// Another thread's part in a misuse, or an earlier one of the same thread.
pub struct Other {
    /// The thread's number.
    pub thread: u32,
    /// What it did.
    pub kind: AccessKind,
    /// Where.
    pub pc: u64,
    /// When, if that is known.
    pub cell: Cell,
}

/// Reports a misuse. Each pair of places is kept once.
#[cold]
pub fn misuse(t: &mut Thread, what: &Misused, other: Option<&Other>, pc: usize) {
    let at = (what.addr as u64, 1);
    let earlier = match other {
        Some(o) => side(o.thread, o.kind, o.pc, thread::short_epoch(o.cell), at),
        None => Side { kind: 0, ..side(u32::MAX, AccessKind::Use, 0, 0, at) },
    };
    let later = side(t.number, what.part, pc as u64, own_epoch(t), at);
    enter(t, (what.kind as u32, what.detail), earlier, later);
}

fn own_epoch(t: &Thread) -> u64 {
    thread::short_epoch(Cell(t.epoch))
}

fn side(thread: u32, kind: AccessKind, pc: u64, epoch: u64, (addr, len): (u64, u32)) -> Side {
    let (frames, stack) = (0, [0; FRAMES]);
    Side { thread, kind: kind as u32, pc, addr, len, frames, epoch, stack }
}

/// Enters a race or a misuse into the table, or counts it if its two places are there: its number.
fn enter(t: &Thread, (misuse, detail): (u32, u32), first: Side, mut second: Side) -> Option<usize> {
    let low = |pc: u64| pc & ((1 << wire::SHADOW_PC_BITS) - 1);
    let (a, b) = (low(first.pc), low(second.pc));
    let key = a.min(b) << 24 | a.max(b) | u64::from(misuse) << 48 | 1 << 63;
    let (at, new) = entry(key)?;
    let Some(shared) = rings::shared() else {
        let unreported = if misuse == 0 { &UNREPORTED } else { &UNREPORTED_MISUSE };
        unreported.fetch_add(u32::from(new), Ordering::Relaxed);
        return None;
    };
    if !new {
        let number = (RECORD[at].load(Ordering::Acquire) as usize).checked_sub(1)?;
        shared.races.get(number)?.count.fetch_add(1, Ordering::Relaxed);
        return Some(number);
    }
    let number = shared.header.races.fetch_add(1, Ordering::AcqRel) as usize;
    if number >= wire::RACES {
        return None;
    }
    second.frames = t.stack(words::stack_top(), &mut second.stack);
    let past = past(first.thread);
    let place = (&raw const shared.races[number]).cast_mut();
    // SAFETY: the number was given to us alone, and the host looks only after `done`.
    unsafe {
        (&raw mut (*place).stamp).write(shared.header.stamp.0.load(Ordering::Acquire));
        (&raw mut (*place).misuse).write(misuse);
        (&raw mut (*place).detail).write(detail);
        (&raw mut (*place).earlier).write(first);
        (&raw mut (*place).later).write(second);
        (&raw mut (*place).past).write(past);
    }
    shared.races[number].count.store(1, Ordering::Relaxed);
    shared.races[number].done.store(1, Ordering::Release);
    RECORD[at].store(number as u32 + 1, Ordering::Release);
    Some(number)
}

/// The outer part of a thread's call stack, as it is now. How much of it is in use is known to the thread
/// alone; what is not was in use before.
fn past(owner: u32) -> [[u64; 2]; PAST] {
    let mut entries = [[0; 2]; PAST];
    if let Some(thread) = thread::by_number(owner) {
        thread.outer_calls(&mut entries);
    }
    entries
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::Earlier;

    /// What was found: program counters, bytes.
    #[derive(Debug)]
    pub(crate) struct Found {
        pub(crate) earlier_pc: u64,
        pub(crate) later_pc: u64,
        pub(crate) addr: usize,
        pub(crate) len: usize,
    }

    pub(crate) static FOUND: Mutex<Vec<Found>> = Mutex::new(Vec::new());

    /// A race was found.
    pub(super) fn found(earlier: &Earlier, addr: usize, len: u32, pc: usize) {
        let later_pc = pc as u64 & 0x7f_ffff;
        let mut all = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Found { earlier_pc: earlier.pc, later_pc, addr, len: len as usize });
    }
}
