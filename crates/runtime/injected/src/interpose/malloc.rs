//! The heap and mappings: freed memory is forgotten, fresh memory has no history.
//!
//! The allocator is the C library's, called by the names that cannot be interposed, because we are
//! called before any look-up is possible. A program may have been linked with another one (jemalloc,
//! tcmalloc): every function that makes, measures or frees blocks has to be one of ours, so that none of
//! that other allocator's ever sees a block of the C library.
//!
//! Ground rule: shadow changes of a free happen before the block is given back; after that another
//! thread may already have it.
//!
//! Under control freed blocks are kept for a while (`Quarantine`): until then every access to them is seen to be
//! misuse, and freeing them once more does no damage. Blocks that are not large are longer than the program asked for,
//! and to write the whole granules behind their end is misuse (`zoned`). Memory of which `malloc_usable_size` tells the
//! program belongs to the block.

#![allow(missing_docs, non_snake_case)] // The names are the C and C++ libraries'.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{instrumented, real};
use crate::arch::{or_next, with_pc};
use crate::fasttrack;
use crate::misuse;
use crate::rings;
use crate::shadow;
use crate::sync;
use crate::thread;
use crate::wire::{OUT_OF_SIGHT, RecordKind};

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> usize;
    fn __libc_calloc(count: usize, size: usize) -> usize;
    fn __libc_realloc(block: usize, size: usize) -> usize;
    fn __libc_free(block: usize);
    fn __libc_memalign(alignment: usize, size: usize) -> usize;
    fn __errno_location() -> *mut c_int;
}

/// Bytes of a block that can be used. The C library's function of that name may be hidden by another
/// allocator's, so this looks where it would look: the word before a block is the size of its chunk, with
/// three flags, one of which says that the chunk is a mapping of its own.
fn usable(block: usize) -> usize {
    const FLAGS: usize = 7;
    const MAPPED: usize = 2;
    // SAFETY: a live block of the C library's allocator.
    let chunk = unsafe { ((block - 8) as *const usize).read() };
    (chunk & !FLAGS) - if chunk & MAPPED != 0 { 16 } else { 8 }
}

unsafe extern "C" fn do_usable_size(block: usize) -> usize {
    if block == 0 {
        return 0;
    }
    let len = usable(block);
    if is_controlled() {
        fasttrack::ends_at(block + len);
    }
    len
}

/// Behind the end of a block under control.
const ZONE: usize = 16;

/// How many bytes to allocate if the program asks for `size`.
fn zoned(size: usize) -> usize {
    if size <= Quarantine::LARGEST && is_controlled() { size + ZONE } else { size }
}

/// A block was allocated, for which the program asked for `size` bytes and that has `len` of them.
fn allocated(block: usize, (size, len): (usize, usize), pc: usize) -> usize {
    if block == 0 || !crate::init::is_up() {
        return block;
    }
    appeared(block, usable(block), pc);
    if len > size
        && instrumented(pc)
        && let Some(t) = thread::me()
    {
        fasttrack::ends(t, (block + size).next_multiple_of(8), block + usable(block), pc);
    }
    block
}

/// A block of so many bytes was made, by whatever allocator.
pub fn appeared(block: usize, len: usize, pc: usize) -> usize {
    if block == 0 || !crate::init::is_up() {
        return block;
    }
    let _errno = super::Errno::keep();
    shadow::forget(block, len);
    if let Some(t) = thread::me() {
        t.memory_changes += 1;
        const MALLOC: u32 = 0;
        misuse::calls(t, MALLOC, pc);
        if t.ring.is_open() {
            rings::record(t, RecordKind::Alloc, 0, pc, block, len);
        }
    }
    block
}

/// A block is about to be given back. False if it was freed before.
fn freeing(block: usize, pc: usize) -> bool {
    if block == 0 || !crate::init::is_up() {
        return true;
    }
    const FREE: u32 = 1;
    misuse::calls_unsafe(FREE, pc);
    gone(block, usable(block), true, pc)
}

/// The blocks that were freed last.
struct Quarantine {
    blocks: [AtomicUsize; Quarantine::BLOCKS],
    next: AtomicUsize,
}

static QUARANTINE: Quarantine = Quarantine {
    blocks: [const { AtomicUsize::new(0) }; Quarantine::BLOCKS],
    next: AtomicUsize::new(0),
};

impl Quarantine {
    const BLOCKS: usize = 1024;
    /// Larger blocks are not kept: their shadow is not marked as freed throughout.
    const LARGEST: usize = 1 << 15;

    /// Keeps a block instead of one that was kept for long enough, which is to be given back; 0 if there is none.
    fn keep(&self, block: usize) -> usize {
        if usable(block) > Quarantine::LARGEST {
            return block;
        }
        let at = self.next.fetch_add(1, Relaxed) % Quarantine::BLOCKS;
        self.blocks[at].swap(block, Relaxed)
    }
}

/// Whether threads run one at a time, so that freed blocks are kept.
fn is_controlled() -> bool {
    crate::init::is_up() && thread::me().is_some_and(|t| t.ring.is_log())
}

/// Memory is about to vanish. What is mapped where a mapping of the program was may be out of sight; a block of the
/// heap is handed out again by our functions only. False if a block of the heap was freed before.
pub fn gone(addr: usize, len: usize, heap: bool, pc: usize) -> bool {
    let _errno = super::Errno::keep();
    match thread::me() {
        Some(t) => {
            t.memory_changes += 1;
            let seen = instrumented(pc);
            let flags = if seen { 0 } else { OUT_OF_SIGHT };
            // Under control freeing may be a scheduling point: until then the memory is there.
            let controlled = t.ring.is_log();
            if !controlled {
                rings::record(t, RecordKind::Free, flags, pc, addr, len);
            }
            let first = if seen {
                fasttrack::free(t, addr, len, heap, pc)
            } else {
                let first = !(heap && fasttrack::is_freed(addr));
                shadow::forget(addr, len);
                first
            };
            if controlled {
                rings::record(t, RecordKind::Free, flags, pc, addr, len);
            }
            sync::forget(t, addr, len);
            first
        }
        None => {
            shadow::forget(addr, len);
            true
        }
    }
}

unsafe extern "C" fn do_malloc(size: usize, pc: usize) -> usize {
    let len = zoned(size);
    // SAFETY: the program's own call.
    allocated(unsafe { __libc_malloc(len) }, (size, len), pc)
}

unsafe extern "C" fn do_calloc(count: usize, size: usize, pc: usize) -> usize {
    let Some(all) = count.checked_mul(size) else {
        // SAFETY: the program's own call, which fails.
        return unsafe { __libc_calloc(count, size) };
    };
    let len = zoned(all);
    // SAFETY: the program's own call.
    allocated(unsafe { __libc_calloc(1, len) }, (all, len), pc)
}

unsafe extern "C" fn do_free(block: usize, pc: usize) {
    let first = freeing(block, pc);
    let block = match block != 0 && is_controlled() {
        true if first => QUARANTINE.keep(block),
        true => 0,
        false => block,
    };
    // SAFETY: the program's own call, or a block that it freed and that was kept since.
    unsafe { __libc_free(block) };
}

/// Makes a new block for every change of size, so that the old one is kept.
///
/// # Safety
/// `block` is a block of the C library, perhaps freed and kept.
unsafe fn move_block(block: usize, size: usize, pc: usize) -> usize {
    // SAFETY: any size may be asked for.
    let new = unsafe { do_malloc(size, pc) };
    if new != 0 {
        let len = usable(block).min(size);
        // SAFETY: both blocks have that many bytes, and only this thread has the new one.
        unsafe {
            core::ptr::copy_nonoverlapping(block as *const u8, new as *mut u8, len);
            do_free(block, pc);
        }
    }
    new
}

unsafe extern "C" fn do_realloc(block: usize, size: usize, pc: usize) -> usize {
    if block == 0 {
        // SAFETY: the program's own call.
        return unsafe { do_malloc(size, pc) };
    }
    if size != 0 && is_controlled() {
        // SAFETY: the program's own call.
        return unsafe { move_block(block, size, pc) };
    }
    freeing(block, pc);
    // SAFETY: the program's own call.
    let new = unsafe { __libc_realloc(block, size) };
    if new == 0 && size != 0 {
        shadow::forget(block, usable(block));
    }
    allocated(new, (size, size), pc)
}

unsafe extern "C" fn do_reallocarray(block: usize, count: usize, size: usize, pc: usize) -> usize {
    const NO_MEMORY: c_int = 12;
    match count.checked_mul(size) {
        // SAFETY: the program's own call.
        Some(bytes) => unsafe { do_realloc(block, bytes, pc) },
        None => {
            // SAFETY: the C library's own place.
            unsafe { __errno_location().write(NO_MEMORY) };
            0
        }
    }
}

unsafe extern "C" fn do_memalign(alignment: usize, size: usize, pc: usize) -> usize {
    let len = zoned(size);
    // SAFETY: the program's own call.
    allocated(unsafe { __libc_memalign(alignment, len) }, (size, len), pc)
}

unsafe extern "C" fn do_posix_memalign(
    place: *mut usize,
    alignment: usize,
    size: usize,
    pc: usize,
) -> c_int {
    const INVALID: c_int = 22;
    const NO_MEMORY: c_int = 12;
    if !alignment.is_multiple_of(8) || !alignment.is_power_of_two() {
        return INVALID;
    }
    let len = zoned(size);
    // SAFETY: the program's own call.
    let block = unsafe { __libc_memalign(alignment, len) };
    if block == 0 {
        return NO_MEMORY;
    }
    // SAFETY: the program's variable.
    unsafe { place.write(allocated(block, (size, len), pc)) };
    0
}

unsafe extern "C" fn do_valloc(size: usize, pc: usize) -> usize {
    // SAFETY: the program's own call.
    unsafe { do_memalign(4096, size, pc) }
}

unsafe extern "C" fn do_munmap(addr: usize, len: usize, pc: usize) -> c_int {
    if crate::init::is_up() {
        gone(addr, len, false, pc);
    }
    real!(munmap(addr, len) as fn(usize, usize) -> c_int)
}

unsafe extern "C" fn do_mmap(
    addr: usize,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: isize,
) -> usize {
    let new = real!(mmap(addr, len, protection, flags, fd, offset)
        as fn(usize, usize, c_int, c_int, c_int, isize) -> usize);
    if new != usize::MAX && crate::init::is_up() {
        let _errno = super::Errno::keep();
        shadow::forget(new, len);
        if let Some(t) = thread::me() {
            t.memory_changes += 1;
        }
    }
    new
}

/// C++ `new`, plain. 0 if there is no memory.
unsafe extern "C" fn do_new(size: usize, pc: usize) -> usize {
    // SAFETY: the program's own call.
    unsafe { do_malloc(size.max(1), pc) }
}

unsafe extern "C" fn do_new_aligned(size: usize, alignment: usize, pc: usize) -> usize {
    // SAFETY: the program's own call.
    unsafe { do_memalign(alignment, size.max(1), pc) }
}

/// Forms of C++ `new`. Without memory the C++ library's own is left to call handlers and to throw, and
/// we are gone from the stack by then.
macro_rules! new {
    ($($name:ident $next:ident => $target:path, $arguments:tt;)*) => {
        $(unsafe extern "C" fn $next() -> usize {
            static KNOWN: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);
            super::look_up(&KNOWN, concat!(stringify!($name), "\0"), None)
        })*
        or_next! { $($name => $target, $arguments, else $next;)* }
    };
}

new! {
    _Znwm next_new => do_new, 1;
    _Znam next_new_array => do_new, 1;
    _ZnwmRKSt9nothrow_t next_new_nothrow => do_new, 1;
    _ZnamRKSt9nothrow_t next_new_array_nothrow => do_new, 1;
    _ZnwmSt11align_val_t next_new_aligned => do_new_aligned, 2;
    _ZnamSt11align_val_t next_new_array_aligned => do_new_aligned, 2;
    _ZnwmSt11align_val_tRKSt9nothrow_t next_new_aligned_nothrow => do_new_aligned, 2;
    _ZnamSt11align_val_tRKSt9nothrow_t next_new_array_aligned_nothrow => do_new_aligned, 2;
}

with_pc! {
    malloc_usable_size => do_usable_size, 1;
    malloc => do_malloc, 1;
    calloc => do_calloc, 2;
    free => do_free, 1;
    cfree => do_free, 1;
    realloc => do_realloc, 2;
    reallocarray => do_reallocarray, 3;
    memalign => do_memalign, 2;
    aligned_alloc => do_memalign, 2;
    posix_memalign => do_posix_memalign, 3;
    valloc => do_valloc, 1;
    munmap => do_munmap, 2;
    // C++ delete, plain, sized and aligned: the caller matters, not the C++ library.
    _ZdlPv => do_free, 1;
    _ZdaPv => do_free, 1;
    _ZdlPvm => do_free, 1;
    _ZdaPvm => do_free, 1;
    _ZdlPvSt11align_val_t => do_free, 1;
    _ZdaPvSt11align_val_t => do_free, 1;
    _ZdlPvmSt11align_val_t => do_free, 1;
    _ZdaPvmSt11align_val_t => do_free, 1;
    _ZdlPvRKSt9nothrow_t => do_free, 1;
    _ZdaPvRKSt9nothrow_t => do_free, 1;
}

/// All argument registers are taken.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn mmap(
    addr: usize,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: isize,
) -> usize {
    // SAFETY: the program's own call.
    unsafe { do_mmap(addr, len, protection, flags, fd, offset) }
}

/// The same function by its older name.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn mmap64(
    addr: usize,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: isize,
) -> usize {
    // SAFETY: the program's own call.
    unsafe { do_mmap(addr, len, protection, flags, fd, offset) }
}
