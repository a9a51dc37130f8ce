//! Shadow memory: what is remembered of each 8 bytes of the program (a *granule*).
//!
//! A granule has two words: the last **write** and the last **read**. A word is empty (0), or one
//! [`Cell`] — thread slot, clock, touched bytes, whether atomic, and from where (see `places`) — or the
//! name of a [`Set`] of cells, when one cell cannot say it: several readers, or different bytes touched
//! by different threads or at different times.
//!
//! ```text
//! cell   63        41 40     39     30 29     8 7      0
//!        from (23)    atomic slot (10) clock(22) bytes(8)
//! set    63     50 49     40 39     30 29     8 7      0
//!        owner(14) seq high  1023     seq low   bytes of all cells
//! racy   a set, with slot 1021
//! private a set, with slot 1020, the lowest bit telling that all cells are atomic
//! freed  read word only: slot 1022; the write word says by whom. With bytes: behind the end of a block
//! ```
//!
//! Where accesses to memory that is used with races are recorded, the write word of such a granule is
//! a *racy* set from its first race on, even if it has one cell or none: no fast form takes it.
//!
//! Sets are shared by granules, so that a read-shared array costs a few. A granule whose set changes with
//! every epoch of its threads (a counter, a flag, a variable that all read) gets a *private* one, in which
//! each thread changes its own cell.
//!
//! Ground rules:
//! - Words are read and written with relaxed atomics and no lock. A lost update loses a past access,
//!   so a race may be missed; it never invents one.
//! - A set is written once by the thread that owns its place and named only afterwards. Places are
//!   used in turn, so an old name may refer to a set that is gone: the sequence number in the set
//!   tells, and the word then counts as empty.
//! - A set is written and a private one changed under the lock of its owner's sets; they are read
//!   without. A cell that is changed meanwhile is seen as it was or as it is, and both are true.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::layout;

/// The two words of a granule.
#[repr(C, align(16))]
pub struct Granule {
    /// Last write.
    pub write: AtomicU64,
    /// Last read.
    pub read: AtomicU64,
}

/// The shadow of the granule that `addr` lies in.
#[inline(always)]
pub fn granule(addr: usize) -> &'static Granule {
    let at = layout::SHADOW + (layout::index(addr) & !7) * 2;
    // SAFETY: the whole shadow is mapped before any instrumented code runs; all contents are valid.
    unsafe { &*(at as *const Granule) }
}

/// Bits of the clock in a cell.
pub const CLOCK_BITS: u32 = 22;
/// Clocks saturate here.
pub const MAX_CLOCK: u32 = (1 << CLOCK_BITS) - 1;
/// Slots that threads can have are below this.
pub const SLOTS: usize = 1020;
/// The first slot that marks a word that is not one cell.
pub const FIRST_MARK: u64 = PRIVATE_SLOT;
const PRIVATE_SLOT: u64 = 1020;
const RACY_SLOT: u64 = 1021;
const FREED_SLOT: u64 = 1022;
const SET_SLOT: u64 = 1023;
const EPOCH_SHIFT: u32 = 8;
const SLOT_SHIFT: u32 = EPOCH_SHIFT + CLOCK_BITS;
/// Bit 40.
pub const ATOMIC: u64 = 1 << 40;
/// First bit of where the access was made from.
pub const PC_SHIFT: u32 = 41;
/// What must agree for two cells to be of one thread at one time.
pub const EPOCH: u64 = 0xffff_ffff << EPOCH_SHIFT;

/// What must agree for two cells to be of one thread.
const OWNER: u64 = 0x3ff << SLOT_SHIFT;

/// The read word of freed memory.
pub const FREED: u64 = FREED_SLOT << SLOT_SHIFT;

/// The read word of memory behind the end of a block. Only under control, where the race check does not run.
pub const BEYOND: u64 = FREED | 0xff;

/// One access, or several by one thread in one epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cell(pub u64);

impl Cell {
    /// Slot and clock in place, everything else zero.
    pub fn epoch_of(slot: u32, clock: u32) -> u64 {
        u64::from(slot) << SLOT_SHIFT | u64::from(clock) << EPOCH_SHIFT
    }

    /// Which bytes of the granule.
    #[inline(always)]
    pub fn bytes(self) -> u64 {
        self.0 & 0xff
    }

    /// The slot of the thread that made the access.
    #[inline(always)]
    pub fn slot(self) -> usize {
        (self.0 >> SLOT_SHIFT) as usize & 0x3ff
    }

    /// The thread's clock at the access.
    #[inline(always)]
    pub fn clock(self) -> u32 {
        (self.0 >> EPOCH_SHIFT) as u32 & MAX_CLOCK
    }

    /// Whether an atomic access.
    #[inline(always)]
    pub fn atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    /// Whether this is an access of the same epoch as `other`, at least as strong.
    #[inline(always)]
    pub fn covers(self, other: u64) -> bool {
        (self.0 ^ other) & EPOCH == 0
            && other & !self.0 & 0xff == 0
            && self.0 & !other & ATOMIC == 0
    }

    /// Whether the two are of one thread, one time and one strength, so that one cell can hold both.
    #[inline(always)]
    pub fn joins(self, other: u64) -> bool {
        (self.0 ^ other) & (EPOCH | ATOMIC) == 0
    }
}

/// Whether a word is a single cell or empty.
#[inline(always)]
pub fn is_cell(word: u64) -> bool {
    word >> SLOT_SHIFT & 0x3ff < FIRST_MARK
}

/// Whether a word names a set.
#[inline(always)]
pub fn is_set(word: u64) -> bool {
    matches!(word >> SLOT_SHIFT & 0x3ff, SET_SLOT | RACY_SLOT | PRIVATE_SLOT)
}

/// Whether a word names a set that no other granule has.
#[inline(always)]
pub fn is_private(word: u64) -> bool {
    word >> SLOT_SHIFT & 0x3ff == PRIVATE_SLOT
}

fn marked(set: u64, mark: u64) -> u64 {
    set & !(0x3ff << SLOT_SHIFT) | mark << SLOT_SHIFT
}

/// The name of the same set, which has these cells, as one of this granule alone.
pub fn private(set: u64, cells: &Cells) -> u64 {
    let kind = if cells.iter().all(Cell::atomic) { ONLY_ATOMIC } else { 0 };
    marked(set, PRIVATE_SLOT) & !0xff | kind
}

/// Whether a write word says that there was a race.
#[inline(always)]
pub fn is_racy(word: u64) -> bool {
    word >> SLOT_SHIFT & 0x3ff == RACY_SLOT
}

/// The name of the same set, as one of a granule on which there was a race.
pub fn racy(set: u64) -> u64 {
    marked(set, RACY_SLOT)
}

/// Cells that one place for a set can hold: all that a private set can. Larger sets take several places in a row.
pub const PLACE_CELLS: usize = 14;
/// Cells that a set can hold; the oldest are dropped beyond that.
pub const SET_CELLS: usize = PLACE_CELLS + 3 * 16;

/// Several cells.
#[repr(C, align(128))]
pub struct Set {
    /// The sequence number plus one; 0 while the set is being written.
    seq: AtomicU64,
    /// How many cells, and [`USED_AGAIN`].
    len: AtomicU64,
    cells: [AtomicU64; PLACE_CELLS],
}

impl Set {
    fn count(&self) -> usize {
        (self.len.load(Ordering::Acquire) as u32 as usize).min(SET_CELLS)
    }

    /// A cell, also beyond this place.
    fn cell(&self, i: usize) -> &AtomicU64 {
        let first = (&raw const self.cells).cast::<AtomicU64>();
        // SAFETY: a set of more than PLACE_CELLS cells has the places behind it; they are mapped in
        // any case, because the block of a thread goes on behind its sets.
        unsafe { &*first.add(i % SET_CELLS) }
    }
}

/// Set in `len` when the set was found again for another granule.
const USED_AGAIN: u64 = 1 << 32;

/// Sets of one thread, used in turn.
pub const SETS: usize = 4096;

/// A copy of the cells of a word.
pub struct Cells {
    // invariant: at most SET_CELLS, and that many of `list` are written.
    len: usize,
    list: [MaybeUninit<u64>; SET_CELLS],
}

impl Cells {
    /// No cells.
    #[inline(always)]
    pub fn new() -> Cells {
        Cells { len: 0, list: [MaybeUninit::uninit(); SET_CELLS] }
    }

    /// Takes the cells of any word.
    #[inline]
    pub fn fill(&mut self, word: u64) {
        if is_set(word) {
            read_set(word, self);
        } else if is_cell(word) && word != 0 {
            self.push(word);
        }
    }

    /// How many.
    #[inline]
    pub fn count(&self) -> usize {
        self.len
    }

    /// Adds a cell, at the cost of the oldest when full.
    #[inline]
    pub fn push(&mut self, cell: u64) {
        if self.len == SET_CELLS {
            self.list.rotate_left(1);
            self.len -= 1;
        }
        self.list[self.len % SET_CELLS] = MaybeUninit::new(cell);
        self.len += 1;
    }

    /// The cells.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Cell> + '_ {
        // SAFETY: by the invariant the first `len` are written.
        self.list.iter().take(self.len).map(|c| Cell(unsafe { c.assume_init() }))
    }
}

impl Default for Cells {
    fn default() -> Cells {
        Cells::new()
    }
}

fn set_at(owner: usize, seq: u64) -> &'static Set {
    let base = layout::THREADS + owner * layout::THREAD_LEN + crate::thread::SETS_OFFSET;
    let at = base + (seq as usize % SETS) * size_of::<Set>();
    // SAFETY: thread blocks are mapped for good and all contents of a set are valid.
    unsafe { &*(at as *const Set) }
}

/// Owner and sequence number in the name of a set.
fn parts(word: u64) -> (usize, u64) {
    ((word >> 50) as usize, (word >> 8 & 0x3f_ffff) | (word >> 40 & 0x3ff) << 22)
}

fn read_set(word: u64, into: &mut Cells) {
    let (owner, seq) = parts(word);
    let set = set_at(owner, seq);
    if set.seq.load(Ordering::Acquire) != seq + 1 {
        return;
    }
    let len = set.count();
    for i in 0..len {
        into.list[i] = MaybeUninit::new(set.cell(i).load(Ordering::Relaxed));
    }
    fence(Ordering::Acquire);
    // The owner may have begun to reuse the place while we read.
    into.len = if set.seq.load(Ordering::Relaxed) == seq + 1 { len } else { 0 };
}

/// Whether `such` is true of all cells of a word. False if the set is gone, or if the word is not a cell.
#[inline]
pub fn all(word: u64, such: impl Fn(Cell) -> bool) -> bool {
    if !is_set(word) {
        return is_cell(word) && such(Cell(word));
    }
    let (owner, seq) = parts(word);
    let set = set_at(owner, seq);
    let here = |order| set.seq.load(order) == seq + 1;
    here(Ordering::Acquire)
        && (0..set.count()).all(|i| such(Cell(set.cell(i).load(Ordering::Relaxed))))
        && {
            fence(Ordering::Acquire);
            here(Ordering::Relaxed)
        }
}

/// In the low byte of a private set's name: all its cells are atomic.
const ONLY_ATOMIC: u64 = 1;

/// Whether a word names a private set of atomic accesses.
#[inline(always)]
pub fn is_only_atomic(word: u64) -> bool {
    is_private(word) && word & ONLY_ATOMIC != 0
}

/// Puts `cell` into a private set: in place of an earlier access of the same thread and strength to no
/// more bytes, or what `join` makes of it and one of this epoch, or beside the others. None if the set
/// is gone, is full, or cannot take it; else what stands there now.
#[inline]
pub fn renew(word: u64, cell: u64, join: impl FnOnce(u64, u64) -> Option<u64>) -> Option<u64> {
    if cell & ATOMIC == 0 && is_only_atomic(word) {
        return None;
    }
    let (owner, seq) = parts(word);
    let set = set_at(owner, seq);
    let _guard = crate::thread::sets_lock(owner).lock();
    if set.seq.load(Ordering::Relaxed) != seq + 1 {
        return None;
    }
    let len = set.count().min(PLACE_CELLS);
    for place in &set.cells[..len] {
        let old = place.load(Ordering::Relaxed);
        let new = match (old ^ cell) & (OWNER | ATOMIC) == 0 {
            false => continue,
            true if Cell(old).joins(cell) => join(old, cell)?,
            true if old & !cell & 0xff == 0 => cell,
            true => continue,
        };
        place.store(new, Ordering::Relaxed);
        return Some(new);
    }
    set.cells.get(len)?.store(cell, Ordering::Relaxed);
    set.len.store(len as u64 + 1, Ordering::Release);
    Some(cell)
}

/// Whether the set that `word` names was found again since it was made.
pub fn is_used_again(word: u64) -> bool {
    let (owner, seq) = parts(word);
    set_at(owner, seq).len.load(Ordering::Relaxed) & USED_AGAIN != 0
}

/// Notes that the set that `word` names, if it names one, is used for another granule. For its owner.
#[inline]
pub fn use_again(word: u64) {
    if is_set(word) {
        let (owner, seq) = parts(word);
        let len = &set_at(owner, seq).len;
        let now = len.load(Ordering::Relaxed);
        if now & USED_AGAIN == 0 {
            len.store(now | USED_AGAIN, Ordering::Relaxed);
        }
    }
}

/// Writes a set in the next place of `owner`, which is `next`, and returns the word that names it.
pub fn write_set(owner: usize, next: &mut u32, cells: &Cells) -> u64 {
    let _guard = crate::thread::sets_lock(owner).lock();
    let places = 1 + cells.count().saturating_sub(PLACE_CELLS).div_ceil(16) as u32;
    if *next as usize % SETS + places as usize > SETS {
        *next = next.wrapping_add(SETS as u32 - *next % SETS as u32);
    }
    let seq = u64::from(*next);
    *next = next.wrapping_add(places);
    let set = set_at(owner, seq);
    set.seq.store(0, Ordering::Relaxed);
    fence(Ordering::Release);
    let mut bytes = 0;
    for (i, cell) in cells.iter().enumerate().take(SET_CELLS) {
        set.cell(i).store(cell.0, Ordering::Relaxed);
        bytes |= cell.bytes();
    }
    set.len.store(cells.count() as u64, Ordering::Relaxed);
    set.seq.store(seq + 1, Ordering::Release);
    (owner as u64) << 50
        | (seq >> 22) << 40
        | SET_SLOT << SLOT_SHIFT
        | (seq & 0x3f_ffff) << 8
        | bytes
}

/// The bytes that an access of `len` at `addr` touches in the granule of `addr`.
#[inline(always)]
pub fn bytes_of(addr: usize, len: usize) -> u64 {
    let all = if len >= 8 { 0xff } else { (1u64 << len) - 1 };
    all << (addr & 7) & 0xff
}

/// Forgets everything about a range of memory.
pub fn forget(addr: usize, len: usize) {
    const LARGE: usize = 1 << 16;
    if len == 0 {
        return;
    }
    let first = layout::SHADOW + (layout::index(addr) & !7) * 2;
    let last = layout::SHADOW + ((layout::index(addr) + len + 7) & !7) * 2;
    let end = last.min(layout::SHADOW + layout::SHADOW_LEN);
    if end - first < LARGE {
        zero(first, end);
        return;
    }
    let page_first = (first + 4095) & !4095;
    let page_end = end & !4095;
    zero(first, page_first);
    // SAFETY: shadow pages, for which zero means "nothing known".
    unsafe { crate::sys::discard(page_first, page_end - page_first) };
    zero(page_end, end);
}

fn zero(from: usize, to: usize) {
    let mut at = from;
    while at < to {
        // SAFETY: within the shadow.
        let granule = unsafe { &*(at as *const Granule) };
        // Looking first keeps memory that was never accessed out of memory, and caches clean.
        if granule.write.load(Ordering::Relaxed) | granule.read.load(Ordering::Relaxed) != 0 {
            granule.write.store(0, Ordering::Relaxed);
            granule.read.store(0, Ordering::Relaxed);
        }
        at += size_of::<Granule>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_keeps_its_parts_apart() {
        let c = Cell(Cell::epoch_of(1019, MAX_CLOCK) | 0x81 | 0x7f_ffff << PC_SHIFT);
        assert_eq!((c.slot(), c.clock(), c.bytes()), (1019, MAX_CLOCK, 0x81));
        assert_eq!(c.0 >> PC_SHIFT, 0x7f_ffff);
        assert!(!c.atomic() && Cell(c.0 | ATOMIC).atomic());
        assert!(is_cell(c.0) && !is_set(c.0) && is_cell(0) && !is_cell(FREED));
        let set = 5 << 50 | 3 << 40 | SET_SLOT << SLOT_SHIFT | 7 << 8 | 0x0f;
        assert!(is_set(set) && !is_racy(set) && is_set(racy(set)) && is_racy(racy(set)));
        assert_eq!(racy(set) ^ set, (SET_SLOT ^ RACY_SLOT) << SLOT_SHIFT, "still the same set");
    }

    #[test]
    fn bytes_within_a_granule() {
        assert_eq!(bytes_of(0, 8), 0xff);
        assert_eq!(bytes_of(4, 4), 0xf0);
        assert_eq!(bytes_of(7, 1), 0x80);
        assert_eq!(bytes_of(6, 4), 0xc0);
    }
}
