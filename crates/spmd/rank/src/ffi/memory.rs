//! How much memory the analysis has: what it has allocated itself, which is not the program's.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::heap::Heap;

/// Our heap, with what is allocated counted.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The most bytes that were allocated at once.
pub(super) fn most() -> u64 {
    MOST.load(Relaxed) as u64
}

fn grows(by: usize) {
    let now = NOW.fetch_add(by, Relaxed) + by;
    // Two threads may leave the smaller one of two figures that are close to each other.
    if now > MOST.load(Relaxed) {
        MOST.store(now, Relaxed);
    }
}

// SAFETY: the heap does all of it.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grows(layout.size());
        // SAFETY: the caller's contract.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grows(layout.size());
        // SAFETY: the caller's contract.
        unsafe { Heap.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        NOW.fetch_sub(layout.size(), Relaxed);
        grows(size);
        // SAFETY: the caller's contract.
        unsafe { Heap.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's contract.
        unsafe { Heap.dealloc(at, layout) }
    }
}
