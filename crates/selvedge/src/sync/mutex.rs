//! Mutual exclusion and condition variables.
//!
//! The data and the poison flag live in the standard library's types, so they behave as those do;
//! waiting is the executor's. Inside a check the inner lock is never contended.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync as std_sync;
use std::time::Duration;

use selvedge_model::{Mode, Wakes};

use super::{LockResult, TryLockError, TryLockResult, map_poison};
use crate::exec::fiber::controlled;
use crate::exec::ops;
use crate::exec::slot::Slot;

/// See [`std::sync::Mutex`].
pub struct Mutex<T: ?Sized> {
    slot: Slot,
    inner: std_sync::Mutex<T>,
}

/// See [`std::sync::MutexGuard`].
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized> {
    lock: &'a Mutex<T>,
    /// None only while a condition variable has the lock.
    inner: Option<std_sync::MutexGuard<'a, T>>,
    /// Inside a check: where it was locked.
    held: Option<&'static Location<'static>>,
}

// SAFETY: a shared guard gives out nothing but `&T`. Without this, the reference to the lock would ask
// for `T: Send` as well, which the standard library's guard does not.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// See [`std::sync::Mutex::new`].
    #[track_caller]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { slot: Slot::new(), inner: std_sync::Mutex::new(value) }
    }

    /// See [`std::sync::Mutex::into_inner`].
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// See [`std::sync::Mutex::lock`].
    #[track_caller]
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let here = Location::caller();
        let held = ops::acquire(&self.slot, Mode::Exclusive, here).then_some(here);
        self.guard(self.inner.lock(), held)
    }

    /// See [`std::sync::Mutex::try_lock`].
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let here = Location::caller();
        match ops::try_acquire(&self.slot, Mode::Exclusive, here) {
            Some(false) => Err(TryLockError::WouldBlock),
            Some(true) => self.guard(self.inner.lock(), Some(here)).map_err(TryLockError::Poisoned),
            None => match self.inner.try_lock() {
                Ok(inner) => self.guard(Ok(inner), None).map_err(TryLockError::Poisoned),
                Err(TryLockError::Poisoned(e)) => {
                    self.guard(Err(e), None).map_err(TryLockError::Poisoned)
                }
                Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            },
        }
    }

    fn guard<'a>(
        &'a self,
        inner: LockResult<std_sync::MutexGuard<'a, T>>,
        held: Option<&'static Location<'static>>,
    ) -> LockResult<MutexGuard<'a, T>> {
        map_poison(inner, |inner| MutexGuard { lock: self, inner: Some(inner), held })
    }

    /// See [`std::sync::Mutex::is_poisoned`].
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// See [`std::sync::Mutex::clear_poison`].
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// See [`std::sync::Mutex::get_mut`].
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    #[track_caller]
    fn from(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner, f)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard in use has the lock")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("a guard in use has the lock")
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            if let Some(here) = self.held {
                ops::release(&self.lock.slot, Mode::Exclusive, here);
            }
            // After the point of the release, if it is one: until then the lock is held.
            drop(inner);
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// See [`std::sync::WaitTimeoutResult`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// See [`std::sync::WaitTimeoutResult::timed_out`].
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

/// See [`std::sync::Condvar`].
///
/// Inside a check a wait wakes up when it is notified and not otherwise, and a timeout is over only when
/// no thread can do anything else.
#[derive(Debug)]
pub struct Condvar {
    slot: Slot,
    inner: std_sync::Condvar,
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Condvar {
        Condvar::new()
    }
}

type Waited<'a, T> = LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>;

impl Condvar {
    /// See [`std::sync::Condvar::new`].
    #[track_caller]
    pub const fn new() -> Condvar {
        Condvar { slot: Slot::new(), inner: std_sync::Condvar::new() }
    }

    fn wait_controlled<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Option<Duration>,
        here: &'static Location<'static>,
    ) -> Waited<'a, T> {
        let lock = guard.lock;
        ops::enroll(&self.slot, &lock.slot, here, || drop(guard.inner.take()));
        let notified = ops::wait_notified(&self.slot, timeout, here);
        ops::acquire(&lock.slot, Mode::Exclusive, here);
        let result = WaitTimeoutResult(!notified);
        map_poison(lock.guard(lock.inner.lock(), Some(here)), |guard| (guard, result))
    }

    fn wait_std<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        wait: impl FnOnce(
            std_sync::MutexGuard<'a, T>,
        ) -> LockResult<(std_sync::MutexGuard<'a, T>, bool)>,
    ) -> Waited<'a, T> {
        let inner = guard.inner.take().expect("a guard in use has the lock");
        map_poison(wait(inner), |(inner, timed_out)| {
            guard.inner = Some(inner);
            (guard, WaitTimeoutResult(timed_out))
        })
    }

    /// See [`std::sync::Condvar::wait`].
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let waited = if controlled() {
            self.wait_controlled(guard, None, Location::caller())
        } else {
            self.wait_std(guard, |inner| map_poison(self.inner.wait(inner), |g| (g, false)))
        };
        map_poison(waited, |(guard, _)| guard)
    }

    /// See [`std::sync::Condvar::wait_while`].
    #[track_caller]
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// See [`std::sync::Condvar::wait_timeout`].
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> Waited<'a, T> {
        if controlled() {
            return self.wait_controlled(guard, Some(timeout), Location::caller());
        }
        self.wait_std(guard, |inner| {
            map_poison(self.inner.wait_timeout(inner, timeout), |(g, r)| (g, r.timed_out()))
        })
    }

    /// See [`std::sync::Condvar::wait_timeout_while`].
    #[track_caller]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: F,
    ) -> Waited<'a, T>
    where
        F: FnMut(&mut T) -> bool,
    {
        let start = crate::time::Instant::now();
        loop {
            if !condition(&mut guard) {
                return Ok((guard, WaitTimeoutResult(false)));
            }
            let Some(left) = timeout.checked_sub(start.elapsed()).filter(|d| !d.is_zero()) else {
                return Ok((guard, WaitTimeoutResult(true)));
            };
            guard = self.wait_timeout(guard, left)?.0;
        }
    }

    /// See [`std::sync::Condvar::notify_one`].
    #[track_caller]
    pub fn notify_one(&self) {
        if ops::notify(&self.slot, Wakes::One, Location::caller()).is_none() {
            self.inner.notify_one();
        }
    }

    /// See [`std::sync::Condvar::notify_all`].
    #[track_caller]
    pub fn notify_all(&self) {
        if ops::notify(&self.slot, Wakes::All, Location::caller()).is_none() {
            self.inner.notify_all();
        }
    }
}
