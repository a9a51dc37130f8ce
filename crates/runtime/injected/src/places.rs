//! Where accesses were made from, as shadow cells say it.
//!
//! A cell has one field of 23 bits for that. Usually it holds the low bits of a program counter. Bytes
//! of a granule that one thread touches in one epoch share a cell, also if they are touched from
//! different places: a loop over bytes that the compiler unrolled, fields of a structure, the halves of
//! a value. Then the field is the number of a *mosaic*: eight program counters, one for each byte.
//! Numbers are below [`MOSAICS`]; a program counter whose low bits are below it too is written as a
//! mosaic of that one place. So a byte of a cell has exactly one place, and it is one that touched it.
//!
//! Mosaics are interned, for all threads and for good: a program has as many as it has ways to touch
//! granules in pieces. When there are no numbers left, cells with different places stay apart.
//!
//! Cost: which mosaic comes of a cell and an access is remembered by each thread (one multiplication,
//! one compare); what is not remembered costs a look at a hash table, and a lock if it is new.

use core::sync::atomic::{AtomicU16, AtomicU32, Ordering, compiler_fence, fence};

use crate::layout;
use crate::shadow::{ATOMIC, Cell, EPOCH, PC_SHIFT};
use crate::sys::SpinLock;
use crate::thread::joint::Joint;
use crate::thread::{Busy, Thread};

/// Mosaics that there can be, and the first value of the field that is a program counter.
pub const MOSAICS: usize = layout::MOSAICS_LEN / size_of::<Mosaic>();
const FIELD: u64 = (1 << (64 - PC_SHIFT)) - 1;
/// Says nothing of any place: for program counters that could not be interned any more.
const UNKNOWN: u64 = 0;

type Mosaic = [AtomicU32; 8];

/// Numbers of mosaics by hash, 0 for none.
static INDEX: [AtomicU16; 2 * MOSAICS] = [const { AtomicU16::new(0) }; 2 * MOSAICS];
static USED: AtomicU32 = AtomicU32::new(1);
static LOCK: SpinLock = SpinLock::new();

fn mosaic(number: u64) -> &'static Mosaic {
    let at = layout::MOSAICS + (number as usize % MOSAICS) * size_of::<Mosaic>();
    // SAFETY: the table is mapped and all contents are valid.
    unsafe { &*(at as *const Mosaic) }
}

/// Whether the program counter's low bits stand for themselves.
#[inline(always)]
pub fn is_plain(pc: usize) -> bool {
    pc as u64 & (FIELD & !(MOSAICS as u64 - 1)) != 0
}

/// What a cell has for an access at `pc`, in place.
#[inline(always)]
pub fn field(t: &mut Thread, pc: usize) -> u64 {
    if is_plain(pc) { (pc as u64) << PC_SHIFT } else { of_one(t, pc as u64 & FIELD) << PC_SHIFT }
}

#[cold]
fn of_one(t: &mut Thread, low: u64) -> u64 {
    let _busy = Busy::new(t);
    intern([low as u32; 8]).unwrap_or(UNKNOWN)
}

/// The program counter of one byte of a cell, its low bits.
pub fn of_byte(cell: Cell, byte: u32) -> u64 {
    let field = cell.0 >> PC_SHIFT;
    if is_plain(field as usize) {
        return field;
    }
    // The number came through a shadow word; what it stands for was written before.
    fence(Ordering::Acquire);
    u64::from(mosaic(field)[byte as usize % 8].load(Ordering::Relaxed))
}

/// The place of the lowest of these bytes of a cell, and all of them that it touched.
pub fn lowest(cell: Cell, bytes: u64) -> (u64, u64) {
    let pc = of_byte(cell, bytes.trailing_zeros());
    let same = (0..8).filter(|&b| bytes >> b & 1 != 0 && of_byte(cell, b) == pc);
    (pc, same.fold(0, |all, b| all | 1 << b))
}

/// The cell for a cell and another access of the same epoch and strength, if that is remembered. Bytes
/// that the cell has already keep their place.
#[inline(always)]
pub fn joined(t: &Thread, old: u64, cell: u64) -> Option<u64> {
    if (old ^ cell) >> PC_SHIFT == 0 {
        return Some(old | cell & 0xff);
    }
    let key = Joint::key(old, cell);
    let joint = &t.joints[Joint::place(key)];
    if joint.key.load(Ordering::Relaxed) != key {
        return None;
    }
    compiler_fence(Ordering::SeqCst);
    let result = joint.result.load(Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let still = joint.key.load(Ordering::Relaxed) == key;
    still.then_some(old & (EPOCH | ATOMIC) | result)
}

/// The same, remembered or not. None if there are no numbers left.
pub fn join(t: &mut Thread, old: u64, cell: u64) -> Option<u64> {
    if let Some(known) = joined(t, old, cell) {
        return Some(known);
    }
    let bytes = (old | cell) & 0xff;
    let mut pcs = [0; 8];
    for (b, pc) in (0..).zip(&mut pcs) {
        if bytes >> b & 1 != 0 {
            *pc = of_byte(Cell(if old >> b & 1 != 0 { old } else { cell }), b) as u32;
        }
    }
    let _busy = Busy::new(t);
    let result = intern(pcs)? << PC_SHIFT | bytes;
    let key = Joint::key(old, cell);
    let joint = &t.joints[Joint::place(key)];
    joint.key.store(key, Ordering::Relaxed);
    joint.result.store(result, Ordering::Relaxed);
    Some(old & (EPOCH | ATOMIC) | result)
}

/// The number of a mosaic. Signals must be put off.
fn intern(pcs: [u32; 8]) -> Option<u64> {
    let hash = pcs.iter().fold(0u64, |h, &pc| {
        (h.rotate_left(23) ^ u64::from(pc)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    });
    let start = (hash >> 40) as usize;
    if let Ok(number) = look_up(&pcs, start) {
        return Some(number);
    }
    let _guard = LOCK.lock();
    let at = match look_up(&pcs, start) {
        Ok(number) => return Some(number),
        Err(at) => at,
    };
    let number = USED.load(Ordering::Relaxed);
    if number as usize >= MOSAICS {
        return None;
    }
    USED.store(number + 1, Ordering::Relaxed);
    for (to, pc) in mosaic(u64::from(number)).iter().zip(pcs) {
        to.store(pc, Ordering::Relaxed);
    }
    INDEX[at].store(number as u16, Ordering::Release);
    Some(u64::from(number))
}

/// The number, or where in the index it would be. The index is never more than half full.
fn look_up(pcs: &[u32; 8], start: usize) -> Result<u64, usize> {
    let mut at = start % INDEX.len();
    loop {
        let number = INDEX[at].load(Ordering::Acquire);
        if number == 0 {
            return Err(at);
        }
        let same =
            mosaic(number.into()).iter().zip(pcs).all(|(a, &b)| a.load(Ordering::Relaxed) == b);
        if same {
            return Ok(number.into());
        }
        at = (at + 1) % INDEX.len();
    }
}

/// In the child of a fork: the thread that held the lock does not exist here, so the lock is opened.
pub fn after_fork() {
    LOCK.reset();
}
