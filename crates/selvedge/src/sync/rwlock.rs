//! Reader-writer locks: thin over the executor's locks, as mutexes are.

use std::fmt;
use std::panic::Location;
use std::sync as std_sync;

use selvedge_model::Mode;

use super::guard::{Held, guards, guards_mut};
use super::{LockResult, TryLockResult, map_poison, map_try};
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

/// See [`std::sync::RwLockReadGuard`].
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    held: Held<'a, std_sync::RwLockReadGuard<'a, T>>,
}

/// See [`std::sync::RwLockWriteGuard`].
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    held: Held<'a, std_sync::RwLockWriteGuard<'a, T>>,
}

guards!(RwLockReadGuard RwLockWriteGuard);
guards_mut!(RwLockWriteGuard);

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// See [`std::sync::RwLockWriteGuard::downgrade`].
    pub fn downgrade(s: Self) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard { held: s.held.downgrade(std_sync::RwLockWriteGuard::downgrade) }
    }
}

impl<T: ?Sized> RwLock<T> {
    /// See [`std::sync::RwLock::read`].
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let here = Location::caller();
        let held = Held::lock(&self.slot, Mode::Shared, here, || self.inner.read());
        map_poison(held, |held| RwLockReadGuard { held })
    }

    /// See [`std::sync::RwLock::try_read`].
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let here = Location::caller();
        let held = Held::try_lock(&self.slot, Mode::Shared, here, || self.inner.try_read());
        map_try(held, |held| RwLockReadGuard { held })
    }

    /// See [`std::sync::RwLock::write`].
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let here = Location::caller();
        let held = Held::lock(&self.slot, Mode::Exclusive, here, || self.inner.write());
        map_poison(held, |held| RwLockWriteGuard { held })
    }

    /// See [`std::sync::RwLock::try_write`].
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let here = Location::caller();
        let held = Held::try_lock(&self.slot, Mode::Exclusive, here, || self.inner.try_write());
        map_try(held, |held| RwLockWriteGuard { held })
    }

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
