//! Atomic types: the API of [`std::sync::atomic`].
//!
//! Inside a check every access is a scheduling point. Accesses happen in the order of the schedule, for
//! every memory order: executions are sequentially consistent. The memory orders decide what the
//! `races` analysis takes for ordered, so a missing `Release` shows as a race on the data it should have
//! published, and not as a stale value.
//!
//! Unlike the standard library's, these types have no `from_ptr` and are larger than what they hold.

use std::fmt;
use std::panic::Location;
use std::sync::atomic as std_atomic;

use selvedge_model::{AtomicOp, LoadOrder, StoreOrder, UpdateOrder};

use crate::exec::ops;
use crate::exec::slot::Slot;

pub use std::sync::atomic::{Ordering, compiler_fence};

fn load_order(order: Ordering) -> LoadOrder {
    match order {
        Ordering::Relaxed => LoadOrder::Relaxed,
        Ordering::Acquire => LoadOrder::Acquire,
        Ordering::SeqCst => LoadOrder::SeqCst,
        Ordering::Release => panic!("there is no such thing as a release load"),
        Ordering::AcqRel => panic!("there is no such thing as an acquire-release load"),
        _ => panic!("an unknown memory order"),
    }
}

fn store_order(order: Ordering) -> StoreOrder {
    match order {
        Ordering::Relaxed => StoreOrder::Relaxed,
        Ordering::Release => StoreOrder::Release,
        Ordering::SeqCst => StoreOrder::SeqCst,
        Ordering::Acquire => panic!("there is no such thing as an acquire store"),
        Ordering::AcqRel => panic!("there is no such thing as an acquire-release store"),
        _ => panic!("an unknown memory order"),
    }
}

fn update_order(order: Ordering) -> UpdateOrder {
    match order {
        Ordering::Relaxed => UpdateOrder::Relaxed,
        Ordering::Acquire => UpdateOrder::Acquire,
        Ordering::Release => UpdateOrder::Release,
        Ordering::AcqRel => UpdateOrder::AcqRel,
        _ => UpdateOrder::SeqCst,
    }
}

/// See [`std::sync::atomic::fence`].
#[track_caller]
pub fn fence(order: Ordering) {
    if order == Ordering::Relaxed || !ops::fence(update_order(order), Location::caller()) {
        std_atomic::fence(order);
    }
}

/// Makes an access a scheduling point inside a check. One OS thread runs there, and outside it the
/// access has the order that the caller gives.
#[inline]
fn access<R>(
    slot: &Slot,
    op: AtomicOp,
    here: &'static Location<'static>,
    access: impl FnOnce() -> R,
) -> R {
    let controlled = ops::atomic(slot, op, here);
    let result = access();
    if controlled {
        ops::atomic_done(slot, op, here);
    }
    result
}

macro_rules! common {
    ([$($generics:tt)*] $name:ty, $std:ident, $value:ty, $doc:literal) => {
        impl<$($generics)*> $name {
            #[doc = concat!("See [`", $doc, "::new`].")]
            #[track_caller]
            pub const fn new(value: $value) -> Self {
                Self { slot: Slot::new(), inner: std_atomic::$std::new(value) }
            }

            #[doc = concat!("See [`", $doc, "::get_mut`].")]
            pub fn get_mut(&mut self) -> &mut $value {
                self.inner.get_mut()
            }

            /// The value, by its owner; for code written for loom, which has no `get_mut`.
            pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut $value) -> R) -> R {
                f(self.inner.get_mut())
            }

            #[doc = concat!("See [`", $doc, "::into_inner`].")]
            pub fn into_inner(self) -> $value {
                self.inner.into_inner()
            }

            #[doc = concat!("See [`", $doc, "::as_ptr`]. Accesses through the pointer are not seen.")]
            pub const fn as_ptr(&self) -> *mut $value {
                self.inner.as_ptr()
            }

            #[doc = concat!("See [`", $doc, "::load`].")]
            #[track_caller]
            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                let op = AtomicOp::Load(load_order(order));
                access(&self.slot, op, Location::caller(), || self.inner.load(order))
            }

            #[doc = concat!("See [`", $doc, "::store`].")]
            #[track_caller]
            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                let op = AtomicOp::Store(store_order(order));
                access(&self.slot, op, Location::caller(), || self.inner.store(value, order));
            }

            #[doc = concat!("See [`", $doc, "::swap`].")]
            #[track_caller]
            #[inline]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                let op = AtomicOp::Update(update_order(order));
                access(&self.slot, op, Location::caller(), || self.inner.swap(value, order))
            }

            #[doc = concat!("See [`", $doc, "::compare_exchange`].")]
            #[track_caller]
            #[inline]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let here = Location::caller();
                let failed = AtomicOp::Load(load_order(failure));
                let op = AtomicOp::Update(update_order(success));
                let controlled = ops::atomic(&self.slot, op, here);
                let result = self.inner.compare_exchange(current, new, success, failure);
                if controlled {
                    let op = if result.is_ok() { op } else { failed };
                    ops::atomic_done(&self.slot, op, here);
                }
                result
            }

            #[doc = concat!("See [`", $doc, "::compare_exchange_weak`]. Inside a check it does not fail spuriously.")]
            #[track_caller]
            #[inline]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if crate::exec::fiber::controlled() {
                    self.compare_exchange(current, new, success, failure)
                } else {
                    self.inner.compare_exchange_weak(current, new, success, failure)
                }
            }

            #[doc = concat!("See [`", $doc, "::fetch_update`].")]
            #[track_caller]
            pub fn fetch_update<F>(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut f: F,
            ) -> Result<$value, $value>
            where
                F: FnMut($value) -> Option<$value>,
            {
                let mut value = self.load(fetch_order);
                while let Some(next) = f(value) {
                    match self.compare_exchange_weak(value, next, set_order, fetch_order) {
                        Ok(value) => return Ok(value),
                        Err(other) => value = other,
                    }
                }
                Err(value)
            }
        }

        impl<$($generics)*> fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.inner, f)
            }
        }

        impl<$($generics)*> From<$value> for $name {
            #[track_caller]
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    };
}

macro_rules! updates {
    ($value:ty, $doc:literal: $($method:ident)*) => {$(
        #[doc = concat!("See [`", $doc, "::", stringify!($method), "`].")]
        #[track_caller]
        #[inline]
        pub fn $method(&self, value: $value, order: Ordering) -> $value {
            let op = AtomicOp::Update(update_order(order));
            access(&self.slot, op, Location::caller(), || self.inner.$method(value, order))
        }
    )*};
}

macro_rules! integers {
    ($($name:ident $value:ty, $doc:literal;)*) => {$(
        #[doc = concat!("See [`", $doc, "`].")]
        pub struct $name {
            slot: Slot,
            inner: std_atomic::$name,
        }

        common!([] $name, $name, $value, $doc);

        impl $name {
            updates!($value, $doc:
                fetch_add fetch_sub fetch_and fetch_nand fetch_or fetch_xor fetch_max fetch_min);
        }

        impl Default for $name {
            #[track_caller]
            fn default() -> $name {
                $name::new(0)
            }
        }
    )*};
}

integers! {
    AtomicI8 i8, "std::sync::atomic::AtomicI8";
    AtomicU8 u8, "std::sync::atomic::AtomicU8";
    AtomicI16 i16, "std::sync::atomic::AtomicI16";
    AtomicU16 u16, "std::sync::atomic::AtomicU16";
    AtomicI32 i32, "std::sync::atomic::AtomicI32";
    AtomicU32 u32, "std::sync::atomic::AtomicU32";
    AtomicI64 i64, "std::sync::atomic::AtomicI64";
    AtomicU64 u64, "std::sync::atomic::AtomicU64";
    AtomicIsize isize, "std::sync::atomic::AtomicIsize";
    AtomicUsize usize, "std::sync::atomic::AtomicUsize";
}

/// See [`std::sync::atomic::AtomicBool`].
pub struct AtomicBool {
    slot: Slot,
    inner: std_atomic::AtomicBool,
}

common!([] AtomicBool, AtomicBool, bool, "std::sync::atomic::AtomicBool");

impl AtomicBool {
    updates!(bool, "std::sync::atomic::AtomicBool": fetch_and fetch_nand fetch_or fetch_xor);

    /// See [`std::sync::atomic::AtomicBool::fetch_not`].
    #[track_caller]
    pub fn fetch_not(&self, order: Ordering) -> bool {
        self.fetch_xor(true, order)
    }
}

impl Default for AtomicBool {
    #[track_caller]
    fn default() -> AtomicBool {
        AtomicBool::new(false)
    }
}

/// See [`std::sync::atomic::AtomicPtr`].
pub struct AtomicPtr<T> {
    slot: Slot,
    inner: std_atomic::AtomicPtr<T>,
}

common!([T] AtomicPtr<T>, AtomicPtr, *mut T, "std::sync::atomic::AtomicPtr");

impl<T> Default for AtomicPtr<T> {
    #[track_caller]
    fn default() -> AtomicPtr<T> {
        AtomicPtr::new(std::ptr::null_mut())
    }
}

impl<T> fmt::Pointer for AtomicPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.inner, f)
    }
}
