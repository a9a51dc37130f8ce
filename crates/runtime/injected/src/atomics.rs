//! Atomic operations: performed here, ordered by their memory orders, checked against plain accesses.
//!
//! The operation and the change of the location's clock happen under the lock of the location's
//! stripe, so that a thread that reads a value also finds the clock that was published with it. Relaxed
//! operations on locations to which no thread has released need no lock, and neither does a load that sees
//! again what the thread has seen before ([`Seen`]). What no analysis asks for is not recorded.
//!
//! Widths up to 8 bytes are the compiler's atomics; 16 bytes use `cmpxchg16b`.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};
use core::sync::atomic::{compiler_fence, fence};

use crate::control::{self, Want};
use crate::fasttrack;
use crate::rings;
use crate::sync::{self, Object};
use crate::thread::{self, Seen, Thread};
use crate::wire::{AccessKind, RecordKind, order};

fn acquires(mo: u8) -> bool {
    matches!(mo, order::ACQUIRE | order::CONSUME | order::ACQ_REL | order::SEQ_CST)
}

fn releases(mo: u8) -> bool {
    matches!(mo, order::RELEASE | order::ACQ_REL | order::SEQ_CST)
}

/// The reading half: an acquire learns at once, a relaxed one for the next acquire fence.
fn after_read(t: &mut Thread, object: Option<&mut Object>, mo: u8) {
    let Some(object) = object.filter(|_| t.ignore_sync == 0) else { return };
    if acquires(mo) {
        object.acquire(t);
    } else if !object.clock.is_empty() {
        let mut clock = t.fence_acquired;
        clock.join(object.clock.known());
        t.fence_acquired = clock;
    }
}

/// The writing half: a store replaces what was released here, an update continues it.
fn before_write(t: &mut Thread, object: &mut Object, mo: u8, update: bool) {
    if t.ignore_sync != 0 {
        return;
    }
    if releases(mo) {
        if update { object.release_also(t) } else { object.release(t) }
    } else if !t.fence_released.is_empty() {
        object.publish(t.fence_released.known(), update);
    } else if !update {
        object.clear();
    }
}

fn load<T>(addr: usize, len: usize, mo: u8, pc: usize, operation: impl Fn() -> T) -> T {
    let Some(t) = thread::me() else { return operation() };
    if let Some(c) = control::of(t) {
        return control::atomic(c, t, &Want::with(RecordKind::Load, mo, pc, addr, len), |t| {
            fasttrack::used_controlled(t, (addr, len), AccessKind::AtomicRead, pc);
            let value = operation();
            // A reader of a lock of Rust looks whether a writer has it before it tries to take it. If one has, the
            // rest happens inside the standard library, and this is all that shows what the thread waits for.
            let flags = mo | rings::may_lock(true);
            rings::record(t, RecordKind::Load, flags, pc, addr, len);
            (value, false)
        });
    }
    if t.record_atomics || t.record_accesses {
        let value = sync::with_existing(t, addr, |t, object| {
            let value = operation();
            after_read(t, object, mo);
            rings::record(t, RecordKind::Load, mo, pc, addr, len);
            value
        });
        if acquires(mo) {
            sync::synchronized(t);
        }
        fasttrack::atomic(t, addr, len, false, pc);
        return value;
    }
    load_unrecorded(t, addr, len, mo, pc, operation)
}

/// A load of which no analysis wants to know: one that sees again what the thread saw before takes no lock and
/// changes nothing.
fn load_unrecorded<T>(
    t: &mut Thread,
    addr: usize,
    len: usize,
    mo: u8,
    pc: usize,
    operation: impl Fn() -> T,
) -> T {
    let seen = *t.seen(addr);
    let known = seen.addr == addr && (seen.acquired || !acquires(mo));
    let again = if known && seen.version == sync::version(addr) {
        let value = operation();
        // The version is looked at again after the value, also if the load is relaxed.
        compiler_fence(SeqCst);
        Some(value).filter(|_| seen.version == sync::version(addr))
    } else {
        None
    };
    let value = match again {
        Some(value) if seen.epoch == t.epoch && fasttrack::words(addr) == Some(seen.words) => {
            return value;
        }
        Some(value) => value,
        // Under the lock no change is half done: a version that is read outside may already be that of a
        // release whose value has not been stored yet.
        None => sync::with_existing(t, addr, |t, object| {
            let value = operation();
            let acquired = acquires(mo) && t.ignore_sync == 0 || object.is_none();
            after_read(t, object, mo);
            let version = sync::version(addr);
            *t.seen(addr) = Seen { addr, version, acquired, epoch: 0, words: (0, 0) };
            value
        }),
    };
    fasttrack::atomic(t, addr, len, false, pc);
    if (addr & 7) + len <= 8
        && t.ignore == 0
        && let Some(words) = fasttrack::words(addr)
    {
        let epoch = t.epoch;
        let seen = t.seen(addr);
        (seen.epoch, seen.words) = (epoch, words);
    }
    value
}

fn store(addr: usize, len: usize, mo: u8, pc: usize, operation: impl FnOnce()) {
    let Some(t) = thread::me() else { return operation() };
    if let Some(c) = control::of(t) {
        return control::atomic(c, t, &Want::with(RecordKind::Store, mo, pc, addr, len), |t| {
            fasttrack::used_controlled(t, (addr, len), AccessKind::AtomicWrite, pc);
            operation();
            rings::record(t, RecordKind::Store, mo, pc, addr, len);
            ((), true)
        });
    }
    fasttrack::atomic(t, addr, len, true, pc);
    let matters = releases(mo) || !t.fence_released.is_empty() || sync::may_exist(addr);
    if !matters && !t.record_atomics {
        return operation();
    }
    sync::with(t, addr, |t, object| {
        before_write(t, object, mo, false);
        operation();
        if t.record_atomics {
            rings::record(t, RecordKind::Store, mo, pc, addr, len);
        }
    });
    if releases(mo) {
        t.tick();
    }
}

/// `operation` says whether it wrote; if not, it counts as a load of order `failed`.
fn update<T>(
    addr: usize,
    len: usize,
    mo: u8,
    failed: u8,
    pc: usize,
    operation: impl FnOnce() -> (T, bool),
) -> T {
    let Some(t) = thread::me() else { return operation().0 };
    let strong = mo != order::RELAXED;
    if let Some(c) = control::of(t) {
        let flags = mo | rings::may_lock(strong);
        return control::atomic(c, t, &Want::with(RecordKind::Update, flags, pc, addr, len), |t| {
            fasttrack::used_controlled(t, (addr, len), AccessKind::AtomicWrite, pc);
            let (value, wrote) = operation();
            let mo = if wrote { mo } else { failed };
            rings::record_update(t, (wrote, strong), mo, pc, addr, len);
            (value, wrote)
        });
    }
    let recorded = t.record_atomics || t.ring.is_open() && rings::may_lock(strong) != 0;
    let matters = releases(mo) || !t.fence_released.is_empty() || sync::may_exist(addr) || recorded;
    // The access belongs to the epoch that is published with it, and is noted before another thread can
    // see what was published: the thread that drops the last reference may free the place at once.
    let (value, wrote) = if matters {
        sync::with(t, addr, |t, object| {
            let (value, wrote) = operation();
            let mo = if wrote { mo } else { failed };
            after_read(t, Some(object), mo);
            fasttrack::atomic(t, addr, len, wrote, pc);
            if wrote {
                before_write(t, object, mo, true);
            }
            if recorded {
                rings::record_update(t, (wrote, strong), mo, pc, addr, len);
            }
            (value, wrote)
        })
    } else {
        let (value, wrote) = operation();
        fasttrack::atomic(t, addr, len, wrote, pc);
        (value, wrote)
    };
    if wrote && releases(mo) {
        t.tick();
    } else if acquires(mo) {
        sync::synchronized(t);
    }
    value
}

/// A fence between threads.
pub fn thread_fence(mo: u8, pc: usize) {
    fence(SeqCst);
    let Some(t) = thread::me() else { return };
    if control::of(t).is_none() {
        order_by_fence(t, mo);
    }
    if t.record_atomics {
        rings::record(t, RecordKind::Fence, mo, pc, 0, 0);
    }
}

fn order_by_fence(t: &mut Thread, mo: u8) {
    if acquires(mo) && !t.fence_acquired.is_empty() {
        let _busy = thread::Busy::new(t);
        let mut clock = t.fence_acquired;
        t.clock.join(clock.known());
        clock.clear();
        t.fence_acquired = clock;
    }
    if releases(mo) {
        {
            let _busy = thread::Busy::new(t);
            let mut clock = t.fence_released;
            clock.assign(t.clock.known());
            t.fence_released = clock;
        }
        t.tick();
    } else if acquires(mo) {
        sync::synchronized(t);
    }
}

/// The compilers pass orders as ints, some with hints in the higher bits.
fn order_of(mo: i32) -> u8 {
    (mo & 7) as u8
}

macro_rules! width {
    ($module:ident, $int:ty, $atomic:ty) => {
        #[allow(missing_docs)]
        pub mod $module {
            use super::*;

            const LEN: usize = size_of::<$int>();

            /// # Safety
            /// `p` points to a live value of the width.
            unsafe fn at<'a>(p: *const $int) -> &'a $atomic {
                // SAFETY: the program performs an atomic access there, so it is valid for one.
                unsafe { &*p.cast::<$atomic>() }
            }

            pub unsafe extern "C" fn load(p: *const $int, mo: i32, pc: usize) -> $int {
                // SAFETY: the program's own access.
                super::load(p as usize, LEN, order_of(mo), pc, || unsafe { at(p) }.load(SeqCst))
            }

            pub unsafe extern "C" fn store(p: *mut $int, v: $int, mo: i32, pc: usize) {
                super::store(p as usize, LEN, order_of(mo), pc, || {
                    // SAFETY: the program's own access.
                    let place = unsafe { at(p) };
                    if order_of(mo) == order::SEQ_CST {
                        place.store(v, SeqCst);
                    } else {
                        place.store(v, core::sync::atomic::Ordering::Release);
                    }
                });
            }

            unsafe fn rmw(
                p: *mut $int,
                mo: i32,
                pc: usize,
                f: impl FnOnce(&$atomic) -> $int,
            ) -> $int {
                let mo = order_of(mo);
                // SAFETY: the program's own access.
                super::update(p as usize, LEN, mo, mo, pc, || (f(unsafe { at(p) }), true))
            }

            width!(@rmw $int: exchange swap, fetch_add fetch_add, fetch_sub fetch_sub,
                fetch_and fetch_and, fetch_or fetch_or, fetch_xor fetch_xor, fetch_nand fetch_nand);

            pub unsafe extern "C" fn compare_exchange_val(
                p: *mut $int, expected: $int, desired: $int, mo: i32, failed: i32, pc: usize,
            ) -> $int {
                super::update(p as usize, LEN, order_of(mo), order_of(failed), pc, || {
                    // SAFETY: the program's own access.
                    match unsafe { at(p) }.compare_exchange(expected, desired, SeqCst, SeqCst) {
                        Ok(old) => (old, true),
                        Err(old) => (old, false),
                    }
                })
            }

            pub unsafe extern "C" fn compare_exchange(
                p: *mut $int, expected: *mut $int, desired: $int, mo: i32, failed: i32, pc: usize,
            ) -> i32 {
                // SAFETY: the program's own access; `expected` is a local of the caller.
                unsafe {
                    let wanted = expected.read();
                    let old = compare_exchange_val(p, wanted, desired, mo, failed, pc);
                    if old != wanted {
                        expected.write(old);
                    }
                    i32::from(old == wanted)
                }
            }
        }
    };
    (@rmw $int:ty: $($name:ident $method:ident),*) => {$(
        pub unsafe extern "C" fn $name(p: *mut $int, v: $int, mo: i32, pc: usize) -> $int {
            // SAFETY: the program's own access.
            unsafe { rmw(p, mo, pc, |a| a.$method(v, SeqCst)) }
        }
    )*};
}

width!(a8, u8, AtomicU8);
width!(a16, u16, AtomicU16);
width!(a32, u32, AtomicU32);
width!(a64, u64, AtomicU64);

/// The methods of the smaller atomics, for 16 bytes.
#[repr(transparent)]
pub struct Wide(core::cell::UnsafeCell<u128>);

impl Wide {
    fn compare_exchange(
        &self,
        old: u128,
        new: u128,
        _: core::sync::atomic::Ordering,
        _: core::sync::atomic::Ordering,
    ) -> Result<u128, u128> {
        // SAFETY: the place is valid for an atomic access of 16 bytes.
        let seen = unsafe { crate::arch::compare_exchange_16(self.0.get(), old, new) };
        if seen == old { Ok(seen) } else { Err(seen) }
    }

    fn change(&self, f: impl Fn(u128) -> u128) -> u128 {
        let mut seen = self.load(SeqCst);
        loop {
            match self.compare_exchange(seen, f(seen), SeqCst, SeqCst) {
                Ok(old) => return old,
                Err(now) => seen = now,
            }
        }
    }

    fn load(&self, o: core::sync::atomic::Ordering) -> u128 {
        match self.compare_exchange(0, 0, o, o) {
            Ok(v) | Err(v) => v,
        }
    }

    fn store(&self, v: u128, _: core::sync::atomic::Ordering) {
        self.change(|_| v);
    }

    fn swap(&self, v: u128, _: core::sync::atomic::Ordering) -> u128 {
        self.change(|_| v)
    }

    fn fetch_add(&self, v: u128, _: core::sync::atomic::Ordering) -> u128 {
        self.change(|x| x.wrapping_add(v))
    }

    fn fetch_sub(&self, v: u128, _: core::sync::atomic::Ordering) -> u128 {
        self.change(|x| x.wrapping_sub(v))
    }

    fn fetch_and(&self, v: u128, _: core::sync::atomic::Ordering) -> u128 {
        self.change(|x| x & v)
    }

    fn fetch_or(&self, v: u128, _: core::sync::atomic::Ordering) -> u128 {
        self.change(|x| x | v)
    }

    fn fetch_xor(&self, v: u128, _: core::sync::atomic::Ordering) -> u128 {
        self.change(|x| x ^ v)
    }

    fn fetch_nand(&self, v: u128, _: core::sync::atomic::Ordering) -> u128 {
        self.change(|x| !(x & v))
    }
}

width!(a128, u128, Wide);
