//! Memory that the library hands out from pools of its own, and recycles from thread to thread: the program must
//! find it without a history. What a task has in its own block is forgotten when the task ends
//! ([`ended`]), because the library copies blocks without a call that could be seen.

#![allow(missing_docs)] // The names are the library's own.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::taskloop;
use crate::arch::with_pc;
use crate::interpose::{malloc, real};

type TaskMemory = unsafe extern "C" fn(*mut usize, *mut usize, c_int) -> c_int;

/// The interface's `ompt_get_task_memory`, if the library has it.
static TASK_MEMORY: AtomicUsize = AtomicUsize::new(0);

/// The library tells by this function where the block of the current task lies.
pub fn found_by(function: usize) {
    TASK_MEMORY.store(function, Ordering::Relaxed);
}

/// The current task does nothing any more that touches its block.
pub fn ended() {
    /// The part of a block's head that the library does not count to it, though untied tasks write there.
    const HEAD: usize = 32;
    let function = TASK_MEMORY.load(Ordering::Relaxed);
    if function == 0 {
        return;
    }
    let (mut addr, mut len) = (0, 0);
    // SAFETY: the library's function of this type, with two places for its answers.
    let known = unsafe {
        core::mem::transmute::<usize, TaskMemory>(function)(&raw mut addr, &raw mut len, 0)
    };
    if known != 0 && addr > HEAD {
        malloc::gone(addr - HEAD, len + HEAD, false, 0);
    }
}

/// A block for a task was made.
unsafe extern "C" fn task_alloc(
    place: usize,
    thread: c_int,
    flags: c_int,
    task: usize,
    shared: usize,
    entry: usize,
) -> usize {
    let block = real!(__kmpc_omp_task_alloc(place, thread, flags, task, shared, entry)
        as fn(usize, c_int, c_int, usize, usize, usize) -> usize);
    // What is shared lies behind the task, aligned to a word.
    let len = task.next_multiple_of(8) + shared;
    taskloop::made(entry, len);
    malloc::appeared(block, len, 0)
}

/// All argument registers are taken.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn __kmpc_omp_task_alloc(
    place: usize,
    thread: c_int,
    flags: c_int,
    task: usize,
    shared: usize,
    entry: usize,
) -> usize {
    // SAFETY: the program's own call.
    unsafe { task_alloc(place, thread, flags, task, shared, entry) }
}

unsafe extern "C" fn alloc(size: usize, allocator: usize, pc: usize) -> usize {
    let block = real!(omp_alloc(size, allocator) as fn(usize, usize) -> usize);
    malloc::appeared(block, size, pc)
}

unsafe extern "C" fn aligned_alloc(
    alignment: usize,
    size: usize,
    allocator: usize,
    pc: usize,
) -> usize {
    let block =
        real!(omp_aligned_alloc(alignment, size, allocator) as fn(usize, usize, usize) -> usize);
    malloc::appeared(block, size, pc)
}

unsafe extern "C" fn calloc(count: usize, size: usize, allocator: usize, pc: usize) -> usize {
    let block = real!(omp_calloc(count, size, allocator) as fn(usize, usize, usize) -> usize);
    malloc::appeared(block, count.saturating_mul(size), pc)
}

unsafe extern "C" fn aligned_calloc(
    alignment: usize,
    count: usize,
    size: usize,
    allocator: usize,
    pc: usize,
) -> usize {
    let block = real!(omp_aligned_calloc(alignment, count, size, allocator)
        as fn(usize, usize, usize, usize) -> usize);
    malloc::appeared(block, count.saturating_mul(size), pc)
}

unsafe extern "C" fn realloc(
    old: usize,
    size: usize,
    allocator: usize,
    free_allocator: usize,
    pc: usize,
) -> usize {
    let block = real!(omp_realloc(old, size, allocator, free_allocator)
        as fn(usize, usize, usize, usize) -> usize);
    malloc::appeared(block, size, pc)
}

/// What the compiler makes of the `allocate` directive and clause.
unsafe extern "C" fn compiled_alloc(
    thread: c_int,
    size: usize,
    allocator: usize,
    pc: usize,
) -> usize {
    let block = real!(__kmpc_alloc(thread, size, allocator) as fn(c_int, usize, usize) -> usize);
    malloc::appeared(block, size, pc)
}

unsafe extern "C" fn compiled_aligned_alloc(
    thread: c_int,
    alignment: usize,
    size: usize,
    allocator: usize,
    pc: usize,
) -> usize {
    let block = real!(__kmpc_aligned_alloc(thread, alignment, size, allocator)
        as fn(c_int, usize, usize, usize) -> usize);
    malloc::appeared(block, size, pc)
}

with_pc! {
    omp_alloc => alloc, 2;
    omp_aligned_alloc => aligned_alloc, 3;
    omp_calloc => calloc, 3;
    omp_aligned_calloc => aligned_calloc, 4;
    omp_realloc => realloc, 4;
    __kmpc_alloc => compiled_alloc, 3;
    __kmpc_aligned_alloc => compiled_aligned_alloc, 4;
}
