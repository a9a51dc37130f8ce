//! Reader-writer locks: thin over the executor's locks, as mutexes are.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync as std_sync;

use selvedge_model::Mode;

use super::{LockResult, TryLockError, TryLockResult, map_poison};
use crate::exec::objects::Hold;
use crate::exec::ops;
use crate::exec::slot::Slot;

/// See [`std::sync::RwLock`].
pub struct RwLock<T: ?Sized> {
    slot: Slot,
    inner: std_sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// See [`std::sync::RwLock::new`].
    #[track_caller]
    pub const fn new(value: T) -> RwLock<T> {
        RwLock { slot: Slot::new(), inner: std_sync::RwLock::new(value) }
    }

    /// See [`std::sync::RwLock::into_inner`].
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

macro_rules! guards {
    ($($doc:literal $try_doc:literal $guard_doc:literal $guard:ident $lock:ident $try_lock:ident $mode:expr;)*) => {$(
        #[doc = $guard_doc]
        #[must_use = "if unused the RwLock will immediately unlock"]
        pub struct $guard<'a, T: ?Sized> {
            slot: &'a Slot,
            // invariant: None only while it is dropped.
            inner: Option<std_sync::$guard<'a, T>>,
            held: Option<&'static Location<'static>>,
        }

        impl<T: ?Sized> RwLock<T> {
            #[doc = $doc]
            #[track_caller]
            pub fn $lock(&self) -> LockResult<$guard<'_, T>> {
                let here = Location::caller();
                let held = ops::acquire(&self.slot, $mode, here).then_some(here);
                map_poison(self.inner.$lock(), |inner| $guard {
                    slot: &self.slot,
                    inner: Some(inner),
                    held,
                })
            }

            #[doc = $try_doc]
            #[track_caller]
            pub fn $try_lock(&self) -> TryLockResult<$guard<'_, T>> {
                let here = Location::caller();
                let held = match ops::try_acquire(&self.slot, $mode, here) {
                    Some(false) => return Err(TryLockError::WouldBlock),
                    Some(true) => Some(here),
                    None => None,
                };
                let guard = |inner| $guard { slot: &self.slot, inner: Some(inner), held };
                match self.inner.$try_lock() {
                    Ok(inner) => Ok(guard(inner)),
                    Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
                    Err(TryLockError::Poisoned(error)) => {
                        map_poison(Err(error), guard).map_err(TryLockError::Poisoned)
                    }
                }
            }
        }

        impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;
            fn deref(&self) -> &T {
                self.inner.as_ref().expect("a guard in use has the lock")
            }
        }

        impl<T: ?Sized> Drop for $guard<'_, T> {
            fn drop(&mut self) {
                if let Some(here) = self.held {
                    ops::release(self.slot, $mode, here);
                }
                self.inner = None;
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    )*};
}

guards! {
    "See [`std::sync::RwLock::read`]." "See [`std::sync::RwLock::try_read`]."
    "See [`std::sync::RwLockReadGuard`]." RwLockReadGuard read try_read Mode::Shared;
    "See [`std::sync::RwLock::write`]." "See [`std::sync::RwLock::try_write`]."
    "See [`std::sync::RwLockWriteGuard`]." RwLockWriteGuard write try_write Mode::Exclusive;
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// See [`std::sync::RwLockWriteGuard::downgrade`].
    pub fn downgrade(mut s: Self) -> RwLockReadGuard<'a, T> {
        let (held, inner) = (s.held.take(), s.inner.take());
        if let Some(here) = held {
            ops::downgrade(s.slot, Hold::Exclusive, Hold::Shared, here);
        }
        let inner = inner.map(std_sync::RwLockWriteGuard::downgrade);
        RwLockReadGuard { slot: s.slot, inner, held }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("a guard in use has the lock")
    }
}

impl<T: ?Sized> RwLock<T> {
    /// See [`std::sync::RwLock::is_poisoned`].
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// See [`std::sync::RwLock::clear_poison`].
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// See [`std::sync::RwLock::get_mut`].
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<T: Default> Default for RwLock<T> {
    #[track_caller]
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    #[track_caller]
    fn from(value: T) -> RwLock<T> {
        RwLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}
