//! Decides which accesses are held back, and tells of those that were; see [`owners`](crate::owners).

use core::sync::atomic::Ordering;

use super::{record_access, write};
use crate::owners::{Access, Held, Locked, owned_in};
use crate::places;
use crate::shadow::{ATOMIC, Cells, granule};
use crate::thread::{self, Busy, Thread};
use crate::wire::{self, RecordKind};

/// A plain access to some bytes of one granule: holds it back, or records it.
pub fn access(thread: &mut Thread, addr: usize, bytes: u64, write: bool, pc: usize) {
    let (number, moment) = (thread.number, thread.moment);
    let access = Access::new(&mut thread.owning, number, (addr, bytes), write, pc);
    let mut both = Locked::new(addr);
    if !access.hold_back(&mut both, moment) {
        let held = access.take_over(&mut both);
        held.iter().flatten().for_each(|held| tell(thread, held));
        let start = (addr & !7) + bytes.trailing_zeros() as usize;
        record_access(thread, true, write, pc, start, bytes.count_ones() as usize);
    }
    both.unlock();
}

/// What the host is about to be told of some memory needs to know all accesses to it: they are told, and the
/// next ones will be recorded.
pub(super) fn ends(thread: &mut Thread, addr: usize, len: usize) {
    for at in owned_in(addr, len) {
        let _busy = Busy::new(thread);
        let mut both = Locked::new(at);
        let held = [both.end(0), both.end(1)];
        held.iter().flatten().for_each(|held| tell(thread, held));
        both.unlock();
    }
}

/// Records what an owner has held back: the last write, and the last read if that came later.
#[cold]
fn tell(thread: &mut Thread, held: &Held) {
    let start = held.granule + held.bytes.trailing_zeros() as usize;
    let len = held.bytes.count_ones() as u8;
    for (moment, flag) in [(held.written, wire::HELD_WRITE), (held.read, 0)] {
        if moment != 0 && (flag != 0 || moment > held.written) {
            let code = u64::from(held.thread) << wire::SHADOW_PC_BITS | place(held, flag != 0);
            let (code, moment) = (code as usize, moment as usize);
            write(thread, false, RecordKind::HeldBack, len | flag, code, start, moment);
        }
    }
}

/// Where an owner made its last access, the low bits; 0 if that is not known.
fn place(held: &Held, write: bool) -> u64 {
    let g = granule(held.granule);
    let word = if write { &g.write } else { &g.read }.load(Ordering::Relaxed);
    let mut cells = Cells::new();
    cells.fill(word);
    let byte = held.bytes.trailing_zeros();
    let found = cells.iter().find(|cell| {
        cell.0 >> byte & 1 != 0
            && cell.0 & ATOMIC == 0
            && thread::owner(cell.slot(), cell.clock()) == held.thread
    });
    found.map_or(0, |cell| places::of_byte(cell, byte))
}
