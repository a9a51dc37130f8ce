//! Condition variables for the mutexes of this module.

use std::collections::VecDeque;
use std::panic::Location;
use std::sync::{Condvar as StdCondvar, Mutex as StdMutex, MutexGuard as StdGuard, PoisonError};
use std::time::Duration;

use selvedge_model::Wakes;

use super::{MutexGuard, RawMutex};
use crate::exec::fiber::controlled;
use crate::exec::ops;
use crate::exec::slot::Slot;
use crate::time::Instant;

type Here = &'static Location<'static>;

/// See `parking_lot::WaitTimeoutResult`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// See `parking_lot::WaitTimeoutResult::timed_out`.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

/// See `parking_lot::Condvar`.
///
/// Inside a check a wait wakes up when it is notified and not otherwise, and a timeout is over only when
/// no thread can do anything else.
#[derive(Debug)]
pub struct Condvar {
    slot: Slot,
    outside: StdMutex<Outside>,
    notified: StdCondvar,
}

/// The threads that wait outside a check, longest first. A thread that is notified leaves the list.
#[derive(Debug)]
struct Outside {
    last: u64,
    waiting: VecDeque<u64>,
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl Condvar {
    /// See `parking_lot::Condvar::new`.
    #[track_caller]
    pub const fn new() -> Condvar {
        let outside = Outside { last: 0, waiting: VecDeque::new() };
        Condvar { slot: Slot::new(), outside: StdMutex::new(outside), notified: StdCondvar::new() }
    }

    fn outside(&self) -> StdGuard<'_, Outside> {
        self.outside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See `parking_lot::Condvar::notify_one`.
    #[track_caller]
    pub fn notify_one(&self) -> bool {
        if let Some(woken) = ops::notify(&self.slot, Wakes::One, Location::caller()) {
            return woken > 0;
        }
        let woken = self.outside().waiting.pop_front().is_some();
        self.notified.notify_all();
        woken
    }

    /// See `parking_lot::Condvar::notify_all`.
    #[track_caller]
    pub fn notify_all(&self) -> usize {
        if let Some(woken) = ops::notify(&self.slot, Wakes::All, Location::caller()) {
            return woken;
        }
        let woken = self.outside().waiting.drain(..).count();
        self.notified.notify_all();
        woken
    }

    /// Waits with the mutex given up; false if the timeout is over first.
    fn wait_notified(&self, raw: &RawMutex, timeout: Option<Duration>, here: Here) -> bool {
        if controlled() {
            // SAFETY: the caller has a guard, so the mutex is locked.
            ops::enroll(&self.slot, &raw.half().slot, here, || unsafe { raw.unlock_inner() });
            return ops::wait_notified(&self.slot, timeout, here);
        }
        let deadline = timeout.and_then(|t| std::time::Instant::now().checked_add(t));
        let mut outside = self.outside();
        outside.last += 1;
        let me = outside.last;
        outside.waiting.push_back(me);
        // After the list is locked, so that no notification comes in between.
        // SAFETY: the caller has a guard, so the mutex is locked.
        unsafe { raw.unlock_inner() };
        while outside.waiting.contains(&me) {
            outside = match deadline {
                None => self.notified.wait(outside).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(std::time::Instant::now());
                    if left.is_zero() {
                        outside.waiting.retain(|&t| t != me);
                        return false;
                    }
                    let waited = self.notified.wait_timeout(outside, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }

    fn wait_and_relock<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Option<Duration>,
        here: Here,
    ) -> WaitTimeoutResult {
        // SAFETY: the raw mutex is unlocked and locked again before the guard can be used.
        let raw = unsafe { MutexGuard::mutex(guard).raw() };
        let notified = self.wait_notified(raw, timeout, here);
        raw.relock(here);
        WaitTimeoutResult(!notified)
    }

    /// See `parking_lot::Condvar::wait`.
    #[track_caller]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_and_relock(guard, None, Location::caller());
    }

    /// See `parking_lot::Condvar::wait_for`.
    #[track_caller]
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_and_relock(guard, Some(timeout), Location::caller())
    }

    /// See `parking_lot::Condvar::wait_until`.
    #[track_caller]
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        self.wait_for(guard, deadline.saturating_duration_since(Instant::now()))
    }

    /// See `parking_lot::Condvar::wait_while`.
    #[track_caller]
    pub fn wait_while<T: ?Sized, F>(&self, guard: &mut MutexGuard<'_, T>, mut condition: F)
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut **guard) {
            self.wait(guard);
        }
    }

    /// See `parking_lot::Condvar::wait_while_until`.
    #[track_caller]
    pub fn wait_while_until<T: ?Sized, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: F,
        deadline: Instant,
    ) -> WaitTimeoutResult
    where
        F: FnMut(&mut T) -> bool,
    {
        let mut result = WaitTimeoutResult(false);
        while !result.timed_out() && condition(&mut **guard) {
            result = self.wait_until(guard, deadline);
        }
        result
    }

    /// See `parking_lot::Condvar::wait_while_for`.
    #[track_caller]
    pub fn wait_while_for<T: ?Sized, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Duration,
    ) -> WaitTimeoutResult
    where
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_until(guard, condition, Instant::now() + timeout)
    }
}
