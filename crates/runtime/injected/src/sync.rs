//! What orders threads: clocks of locks, atomics, barriers, semaphores and all else that one thread
//! releases and another acquires, found by address.
//!
//! Sources and rules are those of the `order` module of the analyses, which sees the same events:
//! FastTrack's for locks, C++20 [intro.races] for atomics and fences.
//!
//! Ground rules:
//! - Objects are found and used under the lock of their stripe, and nowhere else.
//! - An object exists from the first release to it until its memory is freed or it is destroyed.
//!   Losing one early would lose order and raise false alarms; keeping one late only misses.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::clock::Clock;
use crate::layout;
use crate::sys::{SpinGuard, SpinLock};
use crate::thread::{Busy, Thread};

/// A synchronization object.
#[repr(C, align(64))]
pub struct Object {
    addr: usize,
    next: u32,
    /// Slot and clock of the last release, if that release is all that `clock` holds: who knows that
    /// point knows everything. 0 if it is not so simple.
    last: u64,
    /// What an exclusive or any acquisition learns.
    pub clock: Clock,
    /// What readers of a reader-writer lock released; the other round of a barrier.
    pub second: Clock,
    /// Barrier: how many threads make a round.
    pub parties: u32,
    /// Barrier: how many have arrived in all.
    pub arrived: u32,
    /// Barrier: how many are still inside the even and the odd rounds.
    pub inside: [u32; 2],
}

const STRIPES: usize = 1024;

#[repr(align(64))]
struct Stripe {
    lock: SpinLock,
    /// Counts the changes of its objects. It has changed before what is stored with a change can be seen.
    version: AtomicU32,
}

static STRIPES_OF: [Stripe; STRIPES] =
    [const { Stripe { lock: SpinLock::new(), version: AtomicU32::new(1) } }; STRIPES];

struct Pool {
    lock: SpinLock,
    next: u32,
    free: u32,
}

struct Global(UnsafeCell<Pool>);
// SAFETY: everything but the lock is touched only under it.
unsafe impl Sync for Global {}

static POOL: Global = Global(UnsafeCell::new(Pool { lock: SpinLock::new(), next: 1, free: 0 }));

/// Set in the address of what is annotated at a place, to tell it from what happens there by itself.
/// It is above the bits that tables are indexed with, so both are found at the same granule.
pub const ANNOTATED: usize = 1 << 60;

fn stripe(addr: usize) -> &'static Stripe {
    &STRIPES_OF[(layout::index(addr) >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54]
}

impl Stripe {
    /// Locks it for a change.
    fn change(&self) -> SpinGuard<'_> {
        let guard = self.lock.lock();
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Release);
        guard
    }
}

/// A number that changes before anything is released at `addr` or forgotten there. A thread that has acquired
/// what was there at some version, and reads a value while the version is still the same, has acquired what
/// was released with the value.
#[inline]
pub fn version(addr: usize) -> u32 {
    stripe(addr).version.load(Ordering::Acquire)
}

fn object(number: u32) -> *mut Object {
    (layout::OBJECTS + number as usize * size_of::<Object>()) as *mut Object
}

fn head(addr: usize) -> &'static AtomicU32 {
    let at = layout::META + (layout::index(addr) >> 3) * 4;
    // SAFETY: the table is mapped and all contents are valid.
    unsafe { &*(at as *const AtomicU32) }
}

fn page(addr: usize) -> &'static AtomicU8 {
    let at = layout::PAGES + (layout::index(addr) >> 12);
    // SAFETY: the table is mapped and all contents are valid.
    unsafe { &*(at as *const AtomicU8) }
}

fn find(addr: usize) -> Option<&'static mut Object> {
    let mut number = head(addr).load(Ordering::Acquire);
    while number != 0 {
        // SAFETY: linked objects are valid, and the caller holds the lock of their stripe.
        let object = unsafe { &mut *object(number) };
        if object.addr == addr {
            return Some(object);
        }
        number = object.next;
    }
    None
}

fn find_or_make(addr: usize) -> &'static mut Object {
    if let Some(object) = find(addr) {
        return object;
    }
    let number = take();
    // SAFETY: a fresh object is ours.
    let fresh = unsafe { &mut *object(number) };
    fresh.addr = addr;
    fresh.last = 0;
    fresh.parties = 0;
    fresh.arrived = 0;
    fresh.inside = [0; 2];
    fresh.next = head(addr).load(Ordering::Relaxed);
    head(addr).store(number, Ordering::Release);
    page(addr).store(1, Ordering::Release);
    fresh
}

fn take() -> u32 {
    // SAFETY: under the pool's lock.
    unsafe {
        let pool = POOL.0.get();
        let _guard = (*pool).lock.lock();
        if (*pool).free != 0 {
            let number = (*pool).free;
            (*pool).free = (*object(number)).next;
            return number;
        }
        let number = (*pool).next;
        (*pool).next += 1;
        if (number as usize + 1) * size_of::<Object>() > layout::OBJECTS_LEN {
            crate::sys::fatal(b"selvedge: too many synchronization objects\n");
        }
        number
    }
}

/// Forgets the objects of one granule for which `gone` says so.
fn unlink(addr: usize, gone: impl Fn(usize) -> bool) {
    let _stripe = stripe(addr).change();
    let mut link: *mut u32 = head(addr).as_ptr();
    // SAFETY: links of the chain are touched only under the stripe's lock.
    unsafe {
        while *link != 0 {
            let number = *link;
            let here = &mut *object(number);
            if !gone(here.addr) {
                link = &raw mut here.next;
                continue;
            }
            *link = here.next;
            here.clock.release();
            here.second.release();
            let pool = POOL.0.get();
            let _guard = (*pool).lock.lock();
            here.next = (*pool).free;
            (*pool).free = number;
        }
    }
}

/// The object at `addr` is no more.
pub fn destroy(t: &mut Thread, addr: usize) {
    let _busy = Busy::new(t);
    unlink(addr, |a| a == addr);
}

/// Memory is gone, and with it every object in it.
pub fn forget(t: &mut Thread, addr: usize, len: usize) {
    let end = addr + len;
    let mut at = addr;
    while at < end {
        let next_page = (at | 4095) + 1;
        if page(at).load(Ordering::Acquire) != 0 {
            let _busy = Busy::new(t);
            for granule in (at & !7..next_page.min(end)).step_by(8) {
                if head(granule).load(Ordering::Relaxed) != 0 {
                    crate::owners::lock_vanished();
                    unlink(granule, |a| (addr..end).contains(&(a & !ANNOTATED)));
                }
            }
        }
        at = next_page;
    }
}

/// Runs `f` with the object at `addr`, which is made if need be.
pub fn with<R>(t: &mut Thread, addr: usize, f: impl FnOnce(&mut Thread, &mut Object) -> R) -> R {
    let _busy = Busy::new(t);
    let _stripe = stripe(addr).change();
    f(t, find_or_make(addr))
}

/// Runs `f` with the object at `addr`, or without if no thread has released there.
pub fn with_existing<R>(
    t: &mut Thread,
    addr: usize,
    f: impl FnOnce(&mut Thread, Option<&mut Object>) -> R,
) -> R {
    let _busy = Busy::new(t);
    let _stripe = stripe(addr).lock.lock();
    f(t, find(addr))
}

/// Whether there can be an object at `addr`.
#[inline]
pub fn may_exist(addr: usize) -> bool {
    head(addr).load(Ordering::Acquire) != 0
}

impl Object {
    /// The thread learns what was released here.
    #[inline]
    pub fn acquire(&mut self, t: &mut Thread) {
        if t.ignore_sync != 0 {
            return;
        }
        if self.last != 0 {
            let last = crate::shadow::Cell(self.last);
            if t.clock.at[last.slot() & 0x3ff] >= last.clock() {
                return;
            }
        }
        t.clock.join(self.clock.known());
    }

    /// What was released here before is replaced by what the thread knows. The caller ticks.
    #[inline]
    pub fn release(&mut self, t: &Thread) {
        if t.ignore_sync != 0 {
            return;
        }
        self.clock.assign(t.clock.known());
        self.last = t.release_mark();
    }

    /// What the thread knows is added. The caller ticks.
    #[inline]
    pub fn release_also(&mut self, t: &Thread) {
        if t.ignore_sync != 0 || self.clock.is_empty() {
            return self.release(t);
        }
        let covered = self.last != 0 && {
            let last = crate::shadow::Cell(self.last);
            t.clock.at[last.slot() & 0x3ff] >= last.clock()
        };
        if covered {
            return self.release(t);
        }
        self.clock.join(t.clock.known());
        self.last = 0;
    }

    /// Replaces or adds a clock that is not the thread's current one.
    pub fn publish(&mut self, clock: &[u32], also: bool) {
        if also {
            self.clock.join(clock);
        } else {
            self.clock.assign(clock);
        }
        self.last = 0;
    }

    /// Nothing is released here any more.
    pub fn clear(&mut self) {
        self.clock.clear();
        self.last = 0;
    }
}

/// Learns what was released at `addr`.
pub fn acquire(t: &mut Thread, addr: usize) {
    if may_exist(addr) {
        with_existing(t, addr, |t, o| {
            if let Some(o) = o {
                o.acquire(t);
            }
        });
    }
    synchronized(t);
}

/// Releases at `addr`, in place of what was there: a lock.
pub fn release(t: &mut Thread, addr: usize) {
    with(t, addr, |t, o| o.release(t));
    t.tick();
}

/// Releases at `addr`, in addition to what was there: semaphores, annotations.
pub fn release_also(t: &mut Thread, addr: usize) {
    with(t, addr, |t, o| o.release_also(t));
    t.tick();
}

/// When accesses are recorded, the filter must let the first one after an acquisition through as
/// well: lock sets have changed. For races alone that is not needed.
#[inline]
pub fn synchronized(t: &mut Thread) {
    if t.record_accesses {
        t.tick();
    }
}

/// In the child of a fork: the threads that held locks do not exist here, so the locks are opened.
pub fn after_fork() {
    for stripe in &STRIPES_OF {
        stripe.lock.reset();
    }
    // SAFETY: the child has one thread.
    unsafe { (*POOL.0.get()).lock.reset() };
}
