//! What the guards of mutexes and reader-writer locks have in common.

use std::panic::Location;

use selvedge_model::Mode;

use super::{LockResult, TryLockError, TryLockResult, map_poison, map_try};
use crate::exec::objects::Hold;
use crate::exec::ops;
use crate::exec::slot::Slot;

type Here = &'static Location<'static>;

/// A lock that is held until this is dropped: by the standard library's guard `G`, and inside a check by
/// the executor as well.
pub(super) struct Held<'a, G> {
    slot: &'a Slot,
    mode: Mode,
    // invariant: None only while a condition variable has the lock, and while it is dropped.
    inner: Option<G>,
    /// Inside a check: where it was locked.
    at: Option<Here>,
}

impl<'a, G> Held<'a, G> {
    /// Waits for the lock; `lock` is the standard library's, which inside a check is free by then.
    #[inline]
    pub(super) fn lock(
        slot: &'a Slot,
        mode: Mode,
        here: Here,
        lock: impl FnOnce() -> LockResult<G>,
    ) -> LockResult<Held<'a, G>> {
        let at = ops::acquire(slot, mode, here).then_some(here);
        map_poison(lock(), |inner| Held { slot, mode, inner: Some(inner), at })
    }

    /// Takes the lock if it is free.
    pub(super) fn try_lock(
        slot: &'a Slot,
        mode: Mode,
        here: Here,
        lock: impl FnOnce() -> TryLockResult<G>,
    ) -> TryLockResult<Held<'a, G>> {
        let at = match ops::try_acquire(slot, mode, here) {
            Some(false) => return Err(TryLockError::WouldBlock),
            Some(true) => Some(here),
            None => None,
        };
        map_try(lock(), |inner| Held { slot, mode, inner: Some(inner), at })
    }

    /// Goes on to hold the lock with others; `downgrade` is the standard library's.
    pub(super) fn downgrade<H>(mut self, downgrade: impl FnOnce(G) -> H) -> Held<'a, H> {
        let inner = self.give_up();
        if let Some(here) = self.at {
            ops::downgrade(self.slot, Hold::Exclusive, Hold::Shared, here);
        }
        Held { slot: self.slot, mode: Mode::Shared, inner: Some(downgrade(inner)), at: self.at }
    }

    /// Takes the inner guard out, without a release: to the executor the lock is still held.
    pub(super) fn give_up(&mut self) -> G {
        self.inner.take().expect("a guard in use has the lock")
    }

    /// Takes a guard back that was given up.
    pub(super) fn take_back(&mut self, inner: G) {
        self.inner = Some(inner);
    }

    #[inline]
    pub(super) fn get(&self) -> &G {
        self.inner.as_ref().expect("a guard in use has the lock")
    }

    #[inline]
    pub(super) fn get_mut(&mut self) -> &mut G {
        self.inner.as_mut().expect("a guard in use has the lock")
    }
}

impl<G> Drop for Held<'_, G> {
    #[inline]
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            if let Some(here) = self.at {
                ops::release(self.slot, self.mode, here);
            }
            // After the point of the release, if it is one: until then the lock is held.
            drop(inner);
        }
    }
}

/// What a guard with a field `held` can do with what it guards.
macro_rules! guards {
    ($($guard:ident)*) => {$(
        impl<T: ?Sized> std::ops::Deref for $guard<'_, T> {
            type Target = T;
            #[inline]
            fn deref(&self) -> &T {
                self.held.get()
            }
        }

        impl<T: ?Sized + std::fmt::Debug> std::fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + std::fmt::Display> std::fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }
    )*};
}

macro_rules! guards_mut {
    ($($guard:ident)*) => {$(
        impl<T: ?Sized> std::ops::DerefMut for $guard<'_, T> {
            #[inline]
            fn deref_mut(&mut self) -> &mut T {
                self.held.get_mut()
            }
        }
    )*};
}

pub(super) use {guards, guards_mut};
