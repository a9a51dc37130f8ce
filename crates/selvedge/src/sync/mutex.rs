//! Mutual exclusion and condition variables.
//!
//! The data and the poison flag live in the standard library's types, so they behave as those do;
//! waiting is the executor's. Inside a check the inner lock is never contended.

use std::fmt;
use std::panic::Location;
use std::sync as std_sync;
use std::time::Duration;

use selvedge_model::{Mode, Wakes};

use super::guard::{Held, guards, guards_mut};
use super::{LockResult, TryLockResult, map_poison, map_try};
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
    held: Held<'a, std_sync::MutexGuard<'a, T>>,
}

guards!(MutexGuard);
guards_mut!(MutexGuard);

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
        self.lock_at(Location::caller())
    }

    #[inline]
    fn lock_at(&self, here: &'static Location<'static>) -> LockResult<MutexGuard<'_, T>> {
        let held = Held::lock(&self.slot, Mode::Exclusive, here, || self.inner.lock());
        map_poison(held, |held| MutexGuard { lock: self, held })
    }

    /// See [`std::sync::Mutex::try_lock`].
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let here = Location::caller();
        let held = Held::try_lock(&self.slot, Mode::Exclusive, here, || self.inner.try_lock());
        map_try(held, |held| MutexGuard { lock: self, held })
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
        ops::enroll(&self.slot, &lock.slot, here, || drop(guard.held.give_up()));
        let notified = ops::wait_notified(&self.slot, timeout, here);
        let result = WaitTimeoutResult(!notified);
        map_poison(lock.lock_at(here), |guard| (guard, result))
    }

    fn wait_std<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        wait: impl FnOnce(
            std_sync::MutexGuard<'a, T>,
        ) -> LockResult<(std_sync::MutexGuard<'a, T>, bool)>,
    ) -> Waited<'a, T> {
        let inner = guard.held.give_up();
        map_poison(wait(inner), |(inner, timed_out)| {
            guard.held.take_back(inner);
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
