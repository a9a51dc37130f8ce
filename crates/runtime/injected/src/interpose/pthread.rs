//! Threads: creation, end, joining, names.
//!
//! The end of a thread is seen from a destructor of thread-specific data that puts itself off until
//! the last round, so that the program's own destructors still belong to the thread.

#![allow(missing_docs)] // The names are the C library's.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use super::{openmp, real};
use crate::arch::with_pc;
use crate::control::{self, ops, time};
use crate::primitives;
use crate::regions;
use crate::rings;
use crate::shadow;
use crate::sync;
use crate::thread::{self, Thread, state};
use crate::wire::RecordKind;

type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

unsafe extern "C" {
    fn pthread_key_create(key: *mut u32, destructor: unsafe extern "C" fn(*mut c_void)) -> c_int;
    fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
    fn pthread_attr_getstacksize(attr: usize, size: *mut usize) -> c_int;
    fn pthread_attr_getdetachstate(attr: usize, state: *mut c_int) -> c_int;
    fn pthread_self() -> usize;
}

/// Key of `end_destructor`, plus one; 0 before start-up.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Rounds of destructors that the C library makes.
const ROUNDS: u32 = 4;
/// Size of a stack for which the program does not ask for a size.
const DEFAULT_STACK: usize = 8 << 20;

/// Called once at start-up.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: `key` is written; the destructor is ours.
    if unsafe { pthread_key_create(&raw mut key, end_destructor) } == 0 {
        KEY.store(key + 1, Ordering::Release);
    }
}

/// Ends the thread's block in the last round of destructors, so that the program's own come before.
unsafe extern "C" fn end_destructor(thread: *mut c_void) {
    let key = KEY.load(Ordering::Acquire) - 1;
    let t = thread.cast::<Thread>();
    // SAFETY: the value is the block of this very thread, set by `run`.
    unsafe {
        (*t).end_rounds += 1;
        if (*t).end_rounds < ROUNDS {
            pthread_setspecific(key, thread);
        } else {
            end(&mut *t);
        }
    }
}

/// The clock of all ended threads, for a thread that takes over a lock that one of them held. Only the
/// address matters.
static ENDED: u64 = 0;

/// The thread is ordered after all threads that have ended: the lock it got was given up by the
/// kernel in the name of one of them.
pub fn after_ended_threads() {
    if let Some(t) = thread::me().filter(|t| control::of(t).is_none()) {
        sync::acquire(t, (&raw const ENDED) as usize);
    }
}

/// Runs `end_destructor` for the main thread too, in case it ends before the others.
pub fn main_has_end_destructor() {
    let key = KEY.load(Ordering::Acquire);
    let t = thread::current();
    if key != 0 && !t.is_null() {
        // SAFETY: the key exists; the block outlives the thread.
        unsafe { pthread_setspecific(key - 1, t.cast()) };
    }
}

fn end(t: &mut Thread) {
    control::ending(t);
    if control::of(t).is_none() {
        sync::release_also(t, (&raw const ENDED) as usize);
    }
    regions::leave_all(t);
    rings::record(t, RecordKind::End, 0, 0, 0, 0);
    control::end(t);
    t.ring.close();
    t.end();
}

/// The first code of every thread.
unsafe extern "C" fn run(thread: *mut c_void) -> *mut c_void {
    // SAFETY: `create` passes the block that it made for this thread alone.
    let t = unsafe { &mut *thread.cast::<Thread>() };
    let (function, argument, stack) = t.start;
    forget_stack(stack);
    // SAFETY: no memory of ours involved.
    t.pthread.store(unsafe { pthread_self() }, Ordering::Release);
    t.begin();
    let number = t.number;
    t.ring.open(number);
    // SAFETY: the key exists, because a thread was created.
    unsafe { pthread_setspecific(KEY.load(Ordering::Acquire) - 1, thread) };
    control::begin(t);
    t.record_as_wanted();
    rings::record(t, RecordKind::Begin, 0, function, 0, 0);
    // SAFETY: function and argument are those that the program passed to create the thread.
    unsafe { core::mem::transmute::<usize, Start>(function)(argument as *mut c_void) }
}

/// Stacks are reused by the C library; what former threads did there is history. The thread's control
/// block lies at the top of the stack.
fn forget_stack(len: usize) {
    // SAFETY: no memory involved.
    let top = (unsafe { pthread_self() } + 4096) & !4095;
    shadow::forget(top - len, len);
}

unsafe extern "C" fn create(
    id: *mut usize,
    attr: usize,
    function: usize,
    argument: usize,
    pc: usize,
) -> c_int {
    let plain = |id, f: Start, a: *mut c_void| {
        real!(pthread_create(id, attr, f, a) as fn(*mut usize, usize, Start, *mut c_void) -> c_int)
    };
    // SAFETY: the program's own function.
    let theirs = unsafe { core::mem::transmute::<usize, Start>(function) };
    openmp::refuse_team(pc);
    let controlled = control::creating(pc, function);
    let Some(t) = thread::me() else { return plain(id, theirs, argument as *mut c_void) };
    let Some(child) = thread::create(t.clock.known()) else {
        return plain(id, theirs, argument as *mut c_void);
    };
    let (mut stack, mut detached) = (DEFAULT_STACK, 0);
    if attr != 0 {
        // SAFETY: the program's attributes.
        unsafe {
            pthread_attr_getstacksize(attr, &raw mut stack);
            pthread_attr_getdetachstate(attr, &raw mut detached);
        }
    }
    child.controlled = controlled;
    child.joined_as = controlled;
    child.start = (function, argument, stack);
    child.started_at = pc;
    child.detached.store(detached as u32, Ordering::Release);
    primitives::forking(t, child, pc);
    let mut own = 0usize;
    let result = plain(&raw mut own, run, (&raw mut *child).cast());
    if result != 0 {
        child.abandon();
        control::not_created(controlled);
        return result;
    }
    if !id.is_null() {
        // SAFETY: the program's variable for the result.
        unsafe { id.write(own) };
    }
    // The child also sets it. The first one counts: by now the block may belong to another thread.
    let _ = child.pthread.compare_exchange(0, own, Ordering::AcqRel, Ordering::Relaxed);
    0
}

/// After a successful join: the joiner knows all that the thread did, and the block is free.
pub fn joined(block: Option<&'static Thread>, pc: usize) {
    let Some(block) = block else { return };
    while block.state.load(Ordering::Acquire) != state::ENDED {
        // The destructor ran before the join returned, so this does not wait long, if at all.
        crate::sys::yield_now();
    }
    primitives::joined(block, pc);
    block.pthread.store(0, Ordering::Release);
    block.state.store(state::FREE, Ordering::Release);
}

unsafe extern "C" fn join(id: usize, value: usize, pc: usize) -> c_int {
    let block = thread::find(id);
    ops::join(block.map_or(0, Thread::joinable), 0, pc);
    if let Some(block) = block {
        primitives::joins(block, pc);
    }
    let result = real!(pthread_join(id, value) as fn(usize, usize) -> c_int);
    if result == 0 {
        joined(block, pc);
    }
    result
}

unsafe extern "C" fn tryjoin(id: usize, value: usize, pc: usize) -> c_int {
    let block = thread::find(id);
    ops::yield_now(pc);
    let result = real!(pthread_tryjoin_np(id, value) as fn(usize, usize) -> c_int);
    if result == 0 {
        joined(block, pc);
    }
    result
}

unsafe extern "C" fn timedjoin(id: usize, value: usize, time: usize, pc: usize) -> c_int {
    let block = thread::find(id);
    // SAFETY: the program's time.
    let deadline = unsafe { time::deadline(time::REALTIME, time) };
    if !ops::join(block.map_or(0, Thread::joinable), deadline, pc) {
        return ops::ETIMEDOUT;
    }
    let result = real!(pthread_timedjoin_np(id, value, time) as fn(usize, usize, usize) -> c_int);
    if result == 0 {
        joined(block, pc);
    }
    result
}

unsafe extern "C" fn clockjoin(
    id: usize,
    value: usize,
    clock: usize,
    time: usize,
    pc: usize,
) -> c_int {
    let block = thread::find(id);
    // SAFETY: the program's time.
    let deadline = unsafe { time::deadline(clock, time) };
    if !ops::join(block.map_or(0, Thread::joinable), deadline, pc) {
        return ops::ETIMEDOUT;
    }
    let result = real!(
        pthread_clockjoin_np(id, value, clock, time) as fn(usize, usize, usize, usize) -> c_int
    );
    if result == 0 {
        joined(block, pc);
    }
    result
}

/// The thread is detached: no thread will join it.
pub fn detached(block: Option<&'static Thread>) {
    let Some(block) = block else { return };
    block.detached.store(1, Ordering::Release);
    if block.state.load(Ordering::Acquire) == state::ENDED {
        block.state.store(state::FREE, Ordering::Release);
    }
}

unsafe extern "C" fn detach(id: usize, _pc: usize) -> c_int {
    let block = thread::find(id);
    let result = real!(pthread_detach(id) as fn(usize) -> c_int);
    if result == 0 {
        detached(block);
    }
    result
}

unsafe extern "C" fn cancel(id: usize, _pc: usize) -> c_int {
    let block = thread::find(id);
    let result = real!(pthread_cancel(id) as fn(usize) -> c_int);
    if result == 0 {
        control::cancelled(block.map_or(0, Thread::joinable));
    }
    result
}

unsafe extern "C" fn setname(id: usize, name: *const u8, pc: usize) -> c_int {
    let result = real!(pthread_setname_np(id, name) as fn(usize, *const u8) -> c_int);
    // SAFETY: no memory involved, and the name was accepted.
    unsafe {
        if result == 0 && id == pthread_self() {
            named(name, pc);
        }
    }
    result
}

/// The current thread has a new name.
///
/// # Safety
/// `name` is a terminated string that the C library has accepted.
pub unsafe fn named(name: *const u8, pc: usize) {
    let mut bytes = [0u8; 16];
    for (i, byte) in bytes.iter_mut().take(15).enumerate() {
        // SAFETY: the caller's.
        *byte = unsafe { name.add(i).read() };
        if *byte == 0 {
            break;
        }
    }
    let [a, b] = [0, 8].map(|i| {
        let mut half = [0u8; 8];
        half.copy_from_slice(&bytes[i..i + 8]);
        usize::from_le_bytes(half)
    });
    if let Some(t) = thread::me() {
        rings::record(t, RecordKind::Name, 0, pc, a, b);
    }
}

with_pc! {
    pthread_create => create, 4;
    pthread_join => join, 2;
    pthread_tryjoin_np => tryjoin, 2;
    pthread_timedjoin_np => timedjoin, 3;
    pthread_clockjoin_np => clockjoin, 4;
    pthread_detach => detach, 1;
    pthread_cancel => cancel, 1;
    pthread_setname_np => setname, 2;
}
