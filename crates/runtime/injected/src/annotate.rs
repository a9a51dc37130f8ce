//! What programs say themselves: ThreadSanitizer's public functions for custom synchronization, the
//! dynamic annotations, and `selvedge.h`.

#![allow(missing_docs, non_snake_case)] // The names are the interface's own.

use core::ffi::{c_char, c_int};

use crate::arch::with_pc;
use crate::control;
use crate::primitives;
use crate::regions;
use crate::report;
use crate::sync;
use crate::thread;
use crate::values;
use crate::wire;

unsafe extern "C" fn acquire(addr: usize, pc: usize) {
    primitives::happens_after(addr, pc);
}

unsafe extern "C" fn release(addr: usize, pc: usize) {
    primitives::happens_before(addr, pc);
}

// What is annotated at a place stays, whatever atomic operations there do: a relaxed store to a flag
// ends what was released through the flag, not what the program said about it.

unsafe extern "C" fn annotated_acquire(addr: usize, pc: usize) {
    // SAFETY: only the address is used.
    unsafe { acquire(addr | sync::ANNOTATED, pc) };
}

unsafe extern "C" fn annotated_release(addr: usize, pc: usize) {
    // SAFETY: only the address is used.
    unsafe { release(addr | sync::ANNOTATED, pc) };
}

with_pc! {
    __tsan_acquire => acquire, 1;
    __tsan_release => release, 1;
    selvedge_happens_after => annotated_acquire, 1;
    selvedge_happens_before => annotated_release, 1;
}

unsafe extern "C" fn acquire_all(pc: usize) {
    primitives::happens_after_all(pc);
}

with_pc! {
    selvedge_acquire_all => acquire_all, 0;
}

// What the stubs around Rust's standard library say of its locks (see `rust_std` of the host): the slow
// ways in and out of a lock, at the address at which the fast ways, which are atomics, release too.

unsafe extern "C" fn locked(addr: usize, shared: usize, pc: usize) {
    primitives::said_acquired(addr, shared as u8 | wire::OF_STD, pc);
}

unsafe extern "C" fn unlocking(addr: usize, shared: usize, pc: usize) {
    primitives::said_releasing(addr, shared as u8 | wire::OF_STD, pc);
}

with_pc! {
    selvedge_std_locked => locked, 2;
    selvedge_std_unlocking => unlocking, 2;
}

/// Flags of ThreadSanitizer's mutex annotations.
const READ_LOCK: u32 = 1 << 3;
const TRY_FAILED: u32 = 1 << 5;

fn mode(flags: u32) -> u8 {
    if flags & READ_LOCK != 0 { wire::SHARED } else { 0 }
}

unsafe extern "C" fn post_lock(addr: usize, flags: u32, _recursion: c_int, pc: usize) {
    inside_end();
    if flags & TRY_FAILED != 0 {
        return;
    }
    primitives::said_acquired(addr, mode(flags), pc);
}

unsafe extern "C" fn pre_unlock(addr: usize, flags: u32, pc: usize) -> c_int {
    primitives::said_releasing(addr, mode(flags), pc);
    inside_begin();
    0
}

unsafe extern "C" fn mutex_destroy(addr: usize, _flags: u32, pc: usize) {
    primitives::destroying(addr, pc);
}

with_pc! {
    __tsan_mutex_post_lock => post_lock, 3;
    __tsan_mutex_pre_unlock => pre_unlock, 2;
    __tsan_mutex_destroy => mutex_destroy, 2;
}

fn ignore_begin() {
    if let Some(t) = thread::me() {
        t.ignore_begin();
    }
}

fn ignore_end() {
    if let Some(t) = thread::me() {
        t.ignore_end();
    }
}

fn ignore_sync_begin() {
    if let Some(t) = thread::me() {
        t.ignore_sync += 1;
    }
}

fn ignore_sync_end() {
    if let Some(t) = thread::me() {
        t.ignore_sync = t.ignore_sync.saturating_sub(1);
    }
}

/// The code of a lock of the program's own making begins: neither its accesses nor its synchronization count.
fn inside_begin() {
    ignore_begin();
    ignore_sync_begin();
}

/// It ends.
fn inside_end() {
    ignore_end();
    ignore_sync_end();
}

macro_rules! simply {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) $body:block)*) => {$(
        $(#[$doc])*
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: $ty),*) $body
    )*};
}

simply! {
    fn __tsan_mutex_create(_addr: usize, _flags: u32) {}
    fn __tsan_mutex_pre_lock(_addr: usize, _flags: u32) { inside_begin() }
    fn __tsan_mutex_post_unlock(_addr: usize, _flags: u32) { inside_end() }
    fn __tsan_mutex_pre_signal(_addr: usize, _flags: u32) { inside_begin() }
    fn __tsan_mutex_post_signal(_addr: usize, _flags: u32) { inside_end() }
    fn __tsan_mutex_pre_divert(_addr: usize, _flags: u32) { inside_end() }
    fn __tsan_mutex_post_divert(_addr: usize, _flags: u32) { inside_begin() }
    fn __tsan_ignore_thread_begin() { ignore_begin() }
    fn __tsan_ignore_thread_end() { ignore_end() }
    fn selvedge_ignore_begin() { ignore_begin() }
    fn selvedge_ignore_end() { ignore_end() }
    fn AnnotateIgnoreReadsBegin(_file: *const c_char, _line: c_int) { ignore_begin() }
    fn AnnotateIgnoreReadsEnd(_file: *const c_char, _line: c_int) { ignore_end() }
    fn AnnotateIgnoreWritesBegin(_file: *const c_char, _line: c_int) { ignore_begin() }
    fn AnnotateIgnoreWritesEnd(_file: *const c_char, _line: c_int) { ignore_end() }
    fn AnnotateIgnoreSyncBegin(_file: *const c_char, _line: c_int) { ignore_sync_begin() }
    fn AnnotateIgnoreSyncEnd(_file: *const c_char, _line: c_int) { ignore_sync_end() }
    fn AnnotateEnableRaceDetection(_file: *const c_char, _line: c_int, on: c_int) {
        if on == 0 { ignore_begin() } else { ignore_end() }
    }
    fn AnnotateThreadName(_file: *const c_char, _line: c_int, name: *const u8) {
        // SAFETY: the program's string.
        unsafe { crate::interpose::pthread::named(name, 0) };
    }
    // What follows says nothing that matters here: such annotations are for other tools.
    fn AnnotateFlushState(_file: *const c_char, _line: c_int) {}
    fn AnnotateNewMemory(_file: *const c_char, _line: c_int, _at: usize, _len: usize) {}
    fn AnnotateNoOp(_file: *const c_char, _line: c_int, _at: usize) {}
    fn AnnotateFlushExpectedRaces(_file: *const c_char, _line: c_int) {}
    fn AnnotateExpectRace(_file: *const c_char, _line: c_int, _at: usize, _why: *const c_char) {}
    fn AnnotateCondVarSignal(_file: *const c_char, _line: c_int, _cond: usize) {}
    fn AnnotateCondVarSignalAll(_file: *const c_char, _line: c_int, _cond: usize) {}
    fn AnnotateCondVarWait(_file: *const c_char, _line: c_int, _cond: usize, _lock: usize) {}
    fn AnnotateMutexIsNotPHB(_file: *const c_char, _line: c_int, _lock: usize) {}
    fn AnnotateMutexIsUsedAsCondVar(_file: *const c_char, _line: c_int, _lock: usize) {}
    fn AnnotatePCQCreate(_file: *const c_char, _line: c_int, _queue: usize) {}
    fn AnnotatePCQDestroy(_file: *const c_char, _line: c_int, _queue: usize) {}
    fn AnnotatePCQPut(_file: *const c_char, _line: c_int, _queue: usize) {}
    fn AnnotatePCQGet(_file: *const c_char, _line: c_int, _queue: usize) {}
    fn AnnotatePublishMemoryRange(_file: *const c_char, _line: c_int, _at: usize, _len: usize) {}
    fn AnnotateUnpublishMemoryRange(_file: *const c_char, _line: c_int, _at: usize, _len: usize) {}
    fn AnnotateTraceMemory(_file: *const c_char, _line: c_int, _at: usize) {}
}

unsafe extern "C" fn happens_before(_file: *const c_char, _line: c_int, addr: usize, pc: usize) {
    // SAFETY: only the address is used.
    unsafe { annotated_release(addr, pc) };
}

unsafe extern "C" fn happens_after(_file: *const c_char, _line: c_int, addr: usize, pc: usize) {
    // SAFETY: only the address is used.
    unsafe { annotated_acquire(addr, pc) };
}

unsafe extern "C" fn rwlock_acquired(
    _file: *const c_char,
    _line: c_int,
    lock: usize,
    writes: isize,
    pc: usize,
) {
    primitives::said_acquired(lock, if writes == 0 { wire::SHARED } else { 0 }, pc);
}

unsafe extern "C" fn rwlock_releasing(
    _file: *const c_char,
    _line: c_int,
    lock: usize,
    writes: isize,
    pc: usize,
) {
    primitives::said_releasing(lock, if writes == 0 { wire::SHARED } else { 0 }, pc);
}

unsafe extern "C" fn rwlock_destroy(_file: *const c_char, _line: c_int, lock: usize, pc: usize) {
    primitives::destroying(lock, pc);
}

with_pc! {
    AnnotateRWLockAcquired => rwlock_acquired, 4;
    AnnotateRWLockReleased => rwlock_releasing, 4;
    AnnotateRWLockDestroy => rwlock_destroy, 3;
}

simply! {
    /// A lock is known from its first use on.
    fn AnnotateRWLockCreate(_file: *const c_char, _line: c_int, _lock: usize) {}
    fn AnnotateRWLockCreateStatic(_file: *const c_char, _line: c_int, _lock: usize) {}
    fn AnnotateBenignRace(_file: *const c_char, _line: c_int, addr: usize, _why: *const c_char) {
        report::allow(addr, 1);
    }
    fn AnnotateBenignRaceSized(
        _file: *const c_char, _line: c_int, addr: usize, len: usize, _why: *const c_char
    ) {
        report::allow(addr, len);
    }
    fn WTFAnnotateBenignRaceSized(
        _file: *const c_char, _line: c_int, addr: usize, len: usize, _why: *const c_char
    ) {
        report::allow(addr, len);
    }
}

with_pc! {
    AnnotateHappensBefore => happens_before, 3;
    AnnotateHappensAfter => happens_after, 3;
    WTFAnnotateHappensBefore => happens_before, 3;
    WTFAnnotateHappensAfter => happens_after, 3;
}

unsafe extern "C" fn region_enter(name: *const u8, kind: c_int, pc: usize) {
    if let Some(t) = thread::me() {
        let mut len = 0;
        // SAFETY: a string constant of the program.
        while len < 4096 && unsafe { name.add(len).read() } != 0 {
            len += 1;
        }
        if kind as u8 & wire::TASK != 0 {
            control::task_begins(t, pc);
        }
        regions::enter_marked(t, name as usize, len, kind as u8 & wire::MARKED, pc);
    }
}

/// Enters a region whose name has a length, for languages whose strings are not terminated.
unsafe extern "C" fn region_enter_named(name: *const u8, len: usize, kind: c_int, pc: usize) {
    if let Some(t) = thread::me() {
        let len = len.min(4096);
        regions::enter_marked(t, name as usize, len, kind as u8 & wire::MARKED, pc);
    }
}

unsafe extern "C" fn region_exit(pc: usize) {
    if let Some(t) = thread::me() {
        values::region_ends(t);
        regions::leave_marked(t, pc);
    }
}

with_pc! {
    selvedge_region_enter => region_enter, 2;
    selvedge_region_enter_named => region_enter_named, 3;
    selvedge_region_exit => region_exit, 0;
}
