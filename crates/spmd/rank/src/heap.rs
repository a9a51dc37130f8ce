//! A heap of our own for what this library remembers.
//!
//! In the program's heap it would lie between the program's blocks. Open MPI registers memory by page
//! (`MPI_Win_attach`, at most 64 pages of each window), and programs that attach many small blocks find room because
//! those lie side by side.
//!
//! Blocks of up to 32 KiB are of one of few sizes, four to each power of two, and a block that was given back
//! is used again for one of its size. Larger ones are mappings of their own. Cost: a lock, and a list.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// The heap.
#[derive(Debug)]
pub struct Heap;

/// All blocks are multiples of this, and lie at multiples of it.
const GRAIN: usize = 16;
/// The size of the largest block that is not a mapping.
const MOST: usize = 1 << 15;
const CLASSES: usize = class_of(MOST) + 1;
/// Memory is taken from the system in pieces of this size.
const CHUNK: usize = 1 << 20;
const PAGE: usize = 4096;

/// Blocks that were given back, by class (each begins with the address of the next one), and the rest of a chunk.
struct Lists {
    free: [usize; CLASSES],
    chunk: usize,
    end: usize,
}

static LISTS: Mutex<Lists> = Mutex::new(Lists { free: [0; CLASSES], chunk: 0, end: 0 });

/// Eight classes up to 128 bytes, and then four from each power of two to the next.
const fn class_of(size: usize) -> usize {
    if size <= 8 * GRAIN {
        return if size == 0 { 0 } else { (size - 1) / GRAIN };
    }
    let power = (size - 1).ilog2() as usize;
    8 + 4 * (power - 7) + (size - 1 - (1 << power)) / (1 << (power - 2))
}

const fn size_of(class: usize) -> usize {
    if class < 8 {
        return (class + 1) * GRAIN;
    }
    let power = 7 + (class - 8) / 4;
    (1 << power) + ((class - 8) % 4 + 1) * (1 << (power - 2))
}

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        len: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        from: i64,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, len: usize) -> c_int;
    fn mremap(at: *mut c_void, old: usize, new: usize, flags: c_int, ...) -> *mut c_void;
}

/// Memory of the system, zeroed; null if there is none.
fn map(len: usize) -> *mut u8 {
    const READ_WRITE: c_int = 3;
    const PRIVATE_ANONYMOUS: c_int = 0x22;
    // SAFETY: a new mapping, wherever there is room.
    let at = unsafe { mmap(std::ptr::null_mut(), len, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0) };
    if at.addr() == usize::MAX { std::ptr::null_mut() } else { at.cast() }
}

/// The length of the mapping that a block is, if it is one.
fn mapping(layout: Layout) -> Option<usize> {
    let is_one = layout.size() > MOST || layout.align() > GRAIN;
    is_one.then(|| layout.size().max(1).next_multiple_of(PAGE))
}

// SAFETY: a block is given out to one owner at a time: it leaves its list, or the chunk, under the lock. It has the
// size of its class, which is not less than the layout's, and lies at a multiple of the grain, or of a page.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(len) = mapping(layout) {
            return if layout.align() > PAGE { std::ptr::null_mut() } else { map(len) };
        }
        let class = class_of(layout.size());
        let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
        let first = lists.free[class];
        if first != 0 {
            // SAFETY: a block in the list begins with the address of the next one.
            lists.free[class] = unsafe { *(first as *const usize) };
            return first as *mut u8;
        }
        let size = size_of(class);
        if lists.end - lists.chunk < size {
            let chunk = map(CHUNK) as usize;
            if chunk == 0 {
                return std::ptr::null_mut();
            }
            (lists.chunk, lists.end) = (chunk, chunk + CHUNK);
        }
        lists.chunk += size;
        (lists.chunk - size) as *mut u8
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(len) = mapping(layout) {
            // SAFETY: the caller gives a block back that `alloc` mapped with this length.
            unsafe { munmap(block.cast(), len) };
            return;
        }
        let class = class_of(layout.size());
        let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the block is nobody's now, and no class is smaller than a word.
        unsafe { *block.cast::<usize>() = lists.free[class] };
        lists.free[class] = block as usize;
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        const MAY_MOVE: c_int = 1;
        // SAFETY: the caller's contract: the size does not overflow when it is rounded up to the alignment.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (mapping(layout), mapping(new)) {
            (Some(old), Some(len)) => {
                // SAFETY: a mapping of ours with this length.
                let at = unsafe { mremap(block.cast(), old, len, MAY_MOVE) };
                if at.addr() == usize::MAX { std::ptr::null_mut() } else { at.cast() }
            }
            (None, None) if class_of(layout.size()) == class_of(size) => block,
            _ => {
                // SAFETY: two different blocks, of which each has as many bytes as are copied; the old one was ours.
                unsafe {
                    let at = self.alloc(new);
                    if !at.is_null() {
                        block.copy_to_nonoverlapping(at, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    at
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_are_no_smaller_than_what_they_are_for_and_not_much_larger() {
        for size in 1..=MOST {
            let class = class_of(size);
            assert!(size_of(class) >= size && size_of(class).is_multiple_of(GRAIN), "{size}");
            assert!(class == 0 || size_of(class - 1) < size, "{size} fits into a smaller one");
        }
    }

    proptest! {
        /// Blocks keep what was written to them, whatever is done to others.
        #[test]
        fn blocks_do_not_overlap(steps in prop::collection::vec((0usize..8, 1usize..100_000, 0u32..3), 1..60)) {
            let mut blocks: [Option<(*mut u8, Layout, u8)>; 8] = [None; 8];
            let holds = |at: *mut u8, len: usize, value: u8| {
                // SAFETY: a block of at least this length, all of which was written.
                unsafe { std::slice::from_raw_parts(at, len) }.iter().all(|&b| b == value)
            };
            for (i, (slot, size, what)) in steps.into_iter().enumerate() {
                let value = i as u8;
                // SAFETY: blocks are given back and made larger as they were got.
                unsafe {
                    let (at, layout) = match (blocks[slot].take(), what) {
                        (Some((at, layout, old)), 0) => {
                            let new = Heap.realloc(at, layout, size);
                            prop_assert!(holds(new, size.min(layout.size()), old));
                            (new, Layout::from_size_align(size, layout.align()).expect("small"))
                        }
                        (Some((at, layout, old)), _) => {
                            prop_assert!(holds(at, layout.size(), old));
                            Heap.dealloc(at, layout);
                            continue;
                        }
                        (None, what) => {
                            let layout = Layout::from_size_align(size, 1 << (3 * what)).expect("small");
                            (Heap.alloc(layout), layout)
                        }
                    };
                    prop_assert!(!at.is_null() && at.addr().is_multiple_of(layout.align()));
                    at.write_bytes(value, layout.size());
                    blocks[slot] = Some((at, layout, value));
                }
            }
            for (at, layout, value) in blocks.into_iter().flatten() {
                prop_assert!(holds(at, layout.size(), value));
            }
        }
    }
}
