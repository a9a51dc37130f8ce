//! Accesses to many granules at once: ranges, and what a loop has done.
//!
//! Memory that is swept was mostly accessed alike before, so what was found out about one granule holds for the next ones
//! with the same words. Loops mostly sweep the same memory again and again, so a thread remembers its sweeps for an epoch:
//! within it, and as long as the thread has neither got nor given back memory, a sweep that it has made before tells nothing
//! new, as an access that the filter stops.
//!
//! Cost, in instructions: about 25 for a sweep that is remembered; 9 for a granule that is like the one before it, of which
//! all is in the past; 8 for one that this epoch has accessed before.

use core::sync::atomic::Ordering;

use super::{filtered, ordered, range, read, write};
use crate::arch;
use crate::control;
use crate::places;
use crate::shadow::{ATOMIC, EPOCH, Granule, PC_SHIFT, granule};
use crate::spmd;
use crate::thread::{SWEPT, Swept, Thread};

/// All of a sweep but its start, if it is small enough to be remembered. Never 0.
fn shape((stride, count, len): (usize, usize, usize), is_write: bool) -> Option<u64> {
    let fits = stride < 1 << 24 && count < 1 << 31 && len < 1 << 8;
    let all = (count as u64) << 33 | (stride as u64) << 9 | (len as u64) << 1 | u64::from(is_write);
    fits.then_some(all)
}

/// Plain accesses at equal distances: `count` of `len` bytes each, `stride` bytes from one to the next.
pub fn sweep(
    t: &mut Thread,
    start: usize,
    parts: (usize, usize, usize),
    is_write: bool,
    pc: usize,
) {
    let (stride, count, len) = parts;
    if count == 0 || t.ignore != 0 {
        return;
    }
    if !t.unusual
        && let Some(shape) = shape(parts, is_write)
    {
        let now = Swept { start, shape, epoch: t.epoch, memory: t.memory_changes };
        let mixed = (start as u64 ^ shape.rotate_left(24)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = &mut t.swept[(mixed >> 54) as usize % SWEPT];
        if *place == now {
            return;
        }
        *place = now;
    }
    if stride <= len {
        return range(t, start, stride.wrapping_mul(count - 1).wrapping_add(len), is_write, pc);
    }
    if len == 8 && (start | stride) & 7 == 0 && !control::is_on() {
        return granules(t, start, (stride, count), is_write, pc);
    }
    let mut at = start;
    for _ in 0..count {
        range(t, at, len, is_write, pc);
        at = at.wrapping_add(stride);
    }
}

/// Accesses to all bytes of granules: how many bytes from one to the next, and how many. Not under control.
pub fn granules(
    t: &mut Thread,
    at: usize,
    (step, count): (usize, usize),
    is_write: bool,
    pc: usize,
) {
    if count == 0 {
        return;
    }
    let all = Granules { at, first: granule(at), step, count };
    let last: *const Granule = granule(all.address(count - 1));
    if last != all.shadow(count - 1) {
        // The shadow does not go on at the same distance where addresses wrap.
        for i in 0..count {
            range(t, all.address(i), 8, is_write, pc);
        }
        return;
    }
    if t.unusual && spmd::is_on() {
        return spmd::together(t, |t| look(t, all, is_write, pc));
    }
    look(t, all, is_write, pc);
}

#[inline]
fn look(t: &mut Thread, all: Granules, is_write: bool, pc: usize) {
    if is_write {
        written(t, all, pc);
    } else {
        were_read(t, all, pc);
    }
}

/// Granules at equal distances.
// invariant: the last one is at `shadow(count - 1)`, too.
#[derive(Clone, Copy)]
struct Granules {
    at: usize,
    first: *const Granule,
    step: usize,
    count: usize,
}

impl Granules {
    #[inline(always)]
    fn address(&self, i: usize) -> usize {
        self.at.wrapping_add(self.step.wrapping_mul(i))
    }

    #[inline(always)]
    fn shadow(&self, i: usize) -> *const Granule {
        self.first.wrapping_byte_add(self.step.wrapping_mul(2 * i))
    }

    #[inline(always)]
    fn at(&self, i: usize) -> &'static Granule {
        // SAFETY: by the invariant all are granules of the shadow, which is mapped for all addresses and for good.
        unsafe { &*self.shadow(i) }
    }

    /// The first one from `i` on of which the word that `of` takes does not have the whole epoch.
    #[inline(always)]
    fn beyond(&self, mut i: usize, epoch: u64, of: impl Fn(&Granule) -> u64) -> usize {
        let whole = epoch | 0xff;
        while i < self.count && (of(self.at(i)) ^ whole) & (EPOCH | ATOMIC | 0xff) == 0 {
            i += 1;
        }
        i
    }

    /// Puts the new words into those from `i` on that have the old ones; returns the next one.
    #[inline(always)]
    fn renew(&self, i: usize, old: [u64; 2], new: [u64; 2]) -> usize {
        let is_alike =
            |g: &Granule| [g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed)] == old;
        if i == self.count || !is_alike(self.at(i)) {
            return i;
        }
        // SAFETY: as `at`; the words are changed as everywhere here, without locks.
        let done = unsafe {
            arch::renew_16(self.shadow(i) as usize, 2 * self.step, self.count - i, old, new)
        };
        i + done
    }
}

fn written(t: &mut Thread, all: Granules, pc: usize) {
    let is_usual = !t.unusual && places::is_plain(pc);
    let cell = t.epoch | 0xff | (pc as u64) << PC_SHIFT;
    let mut i = 0;
    loop {
        i = all.beyond(i, t.epoch, |g| g.write.load(Ordering::Relaxed));
        if i == all.count {
            return;
        }
        let g = all.at(i);
        let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
        if is_usual && ordered(t, w) && ordered(t, r) && w | r != 0 {
            g.write.store(cell, Ordering::Relaxed);
            g.read.store(0, Ordering::Relaxed);
            i = all.renew(i + 1, [w, r], [cell, 0]);
        } else {
            write(t, g, all.address(i), 0xff, pc);
            i += 1;
        }
    }
}

fn were_read(t: &mut Thread, all: Granules, pc: usize) {
    let is_usual = !t.unusual && places::is_plain(pc);
    let cell = t.epoch | 0xff | (pc as u64) << PC_SHIFT;
    let mut i = 0;
    loop {
        i = all.beyond(i, t.epoch, |g| g.read.load(Ordering::Relaxed));
        i = all.beyond(i, t.epoch, |g| g.write.load(Ordering::Relaxed));
        if i == all.count {
            return;
        }
        let g = all.at(i);
        let (w, r) = (g.write.load(Ordering::Relaxed), g.read.load(Ordering::Relaxed));
        if filtered(t, r, 0xff) {
            i += 1;
        } else if is_usual && ordered(t, w) && ordered(t, r) && w | r != 0 {
            g.read.store(cell, Ordering::Relaxed);
            i = all.renew(i + 1, [w, r], [w, cell]);
        } else if t.remembers(r, 0xff) {
            // A set in which this thread has all bytes, and mostly those behind it have it too.
            i += 1;
            while i < all.count && all.at(i).read.load(Ordering::Relaxed) == r {
                i += 1;
            }
        } else {
            read(t, g, all.address(i), 0xff, pc);
            i += 1;
        }
    }
}
