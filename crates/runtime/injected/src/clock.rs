//! Vector clocks: the ones of threads, which are arrays in place, and the ones of synchronization
//! objects, which are as long as needed and come from an arena of our own.
//!
//! Cost: O(slots in use) for every operation.

use crate::layout;
use crate::shadow::SLOTS;
use crate::sys::SpinLock;

/// The clock of a thread: one component for each slot.
#[repr(C, align(64))]
pub struct ThreadClock {
    /// Components from here on are zero.
    pub len: usize,
    /// By slot.
    pub at: [u32; SLOTS + 4],
}

impl ThreadClock {
    /// Sets one component.
    #[inline]
    pub fn set(&mut self, slot: u32, clock: u32) {
        self.len = self.len.max(slot as usize + 1);
        self.at[slot as usize % (SLOTS + 4)] = clock;
    }

    /// Learns what `other` knows.
    #[inline]
    pub fn join(&mut self, other: &[u32]) {
        self.len = self.len.max(other.len());
        if let (Some(mine), Some(theirs)) =
            (self.at.first_chunk_mut::<SMALLEST>(), other.first_chunk::<SMALLEST>())
            && other.len() == SMALLEST
        {
            return raise(mine, theirs);
        }
        for (mine, &theirs) in self.at.iter_mut().zip(other) {
            *mine = (*mine).max(theirs);
        }
    }

    /// The components that can be other than zero, and some that are: a few at a time are faster.
    #[inline]
    pub fn known(&self) -> &[u32] {
        self.at.get(..self.len.next_multiple_of(SMALLEST).min(SLOTS)).unwrap_or(&[])
    }
}

/// Each component becomes the larger one.
#[inline]
fn raise(mine: &mut [u32; SMALLEST], theirs: &[u32; SMALLEST]) {
    for (mine, &theirs) in mine.iter_mut().zip(theirs) {
        *mine = (*mine).max(theirs);
    }
}

/// Components in the smallest block; every class doubles.
const SMALLEST: usize = 8;
const CLASSES: usize = 8;

struct Arena {
    lock: SpinLock,
    next: usize,
    free: [u32; CLASSES],
}

struct Global(core::cell::UnsafeCell<Arena>);
// SAFETY: all access is under the arena's own lock.
unsafe impl Sync for Global {}

static ARENA: Global = Global(core::cell::UnsafeCell::new(Arena {
    lock: SpinLock::new(),
    next: 1,
    free: [0; CLASSES],
}));

/// The clock of a synchronization object. Empty clocks have no memory.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Clock {
    // invariant: 0, or the number of a block of `SMALLEST << class` components that no other clock has.
    block: u32,
    class: u8,
    len: u16,
}

fn block(number: u32) -> *mut u32 {
    (layout::CLOCKS + number as usize * SMALLEST * 4) as *mut u32
}

impl Clock {
    /// Whether nothing is known.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The components.
    #[inline]
    pub fn known(&self) -> &[u32] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: by the invariant the block holds at least `len` components and is ours.
        unsafe { core::slice::from_raw_parts(block(self.block), usize::from(self.len)) }
    }

    /// Becomes a copy of `from`.
    #[inline]
    pub fn assign(&mut self, from: &[u32]) {
        self.make_room(from.len());
        self.len = from.len() as u16;
        if let (Ok(mine), Ok(theirs)) =
            (<&mut [u32; SMALLEST]>::try_from(self.parts()), <&[u32; SMALLEST]>::try_from(from))
        {
            *mine = *theirs;
            return;
        }
        for (mine, &theirs) in self.parts().iter_mut().zip(from) {
            *mine = theirs;
        }
    }

    /// Learns what `from` knows.
    pub fn join(&mut self, from: &[u32]) {
        let old = usize::from(self.len);
        if from.len() > old {
            self.make_room(from.len());
            self.len = from.len() as u16;
            for fresh in self.parts().iter_mut().skip(old) {
                *fresh = 0;
            }
        }
        for (mine, &theirs) in self.parts().iter_mut().zip(from) {
            *mine = (*mine).max(theirs);
        }
    }

    /// Forgets everything, keeping the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Gives the memory back.
    pub fn release(&mut self) {
        if self.block != 0 {
            give_back(self.block, self.class);
        }
        *self = Clock::default();
    }

    fn parts(&mut self) -> &mut [u32] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: by the invariant, as in `known`.
        unsafe { core::slice::from_raw_parts_mut(block(self.block), usize::from(self.len)) }
    }

    #[inline]
    fn make_room(&mut self, len: usize) {
        if self.block == 0 || len > SMALLEST << self.class {
            self.grow(len);
        }
    }

    #[cold]
    fn grow(&mut self, len: usize) {
        let mut class = 0u8;
        while (SMALLEST << class) < len {
            class += 1;
        }
        let number = take(class);
        let new = block(number);
        for (i, &c) in self.known().iter().enumerate() {
            // SAFETY: the new block is larger than the old one.
            unsafe { new.add(i).write(c) };
        }
        if self.block != 0 {
            give_back(self.block, self.class);
        }
        self.block = number;
        self.class = class;
    }
}

fn take(class: u8) -> u32 {
    // SAFETY: the lock is a field that is never moved; everything else is touched only under it.
    unsafe {
        let arena = ARENA.0.get();
        let _guard = (*arena).lock.lock();
        let free = &mut (*arena).free[usize::from(class) % CLASSES];
        if *free != 0 {
            let number = *free;
            *free = block(number).read();
            return number;
        }
        let number = (*arena).next;
        (*arena).next += 1 << class;
        if ((*arena).next + 1) * SMALLEST * 4 > layout::CLOCKS_LEN {
            crate::sys::fatal(b"selvedge: out of memory for vector clocks\n");
        }
        number as u32
    }
}

fn give_back(number: u32, class: u8) {
    // SAFETY: as in `take`; the block belongs to the caller, who forgets it.
    unsafe {
        let arena = ARENA.0.get();
        let _guard = (*arena).lock.lock();
        let free = &mut (*arena).free[usize::from(class) % CLASSES];
        block(number).write(*free);
        *free = number;
    }
}

/// In the child of a fork: the thread that held the lock does not exist here, so the lock is opened.
pub fn after_fork() {
    // SAFETY: the child has one thread.
    unsafe { (*ARENA.0.get()).lock.reset() };
}
