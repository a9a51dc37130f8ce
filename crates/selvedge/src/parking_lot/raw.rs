//! Raw locks: the executor's order over `parking_lot`'s locks.
//!
//! Ground rules, on which the SAFETY comments lean:
//! 1. A thread that has locked one of these has locked `inner` in the same way, and unlocks both. So
//!    exclusion is `parking_lot`'s, and does not depend on the executor.
//! 2. Inside a check the executor lets a thread take the lock only when `inner` is free for it: `inner`
//!    never waits.

use std::num::NonZeroUsize;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::Duration;

use ::parking_lot::lock_api::{
    GetThreadId, GuardNoSend, RawMutex as _, RawMutexFair, RawMutexTimed, RawRwLockDowngrade,
    RawRwLockFair, RawRwLockRecursive, RawRwLockRecursiveTimed, RawRwLockTimed, RawRwLockUpgrade,
    RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};

use crate::exec::fiber::with;
use crate::exec::objects::Hold;
use crate::exec::ops;
use crate::exec::slot::Slot;
use crate::time::Instant;

type Here = &'static Location<'static>;

/// The executor's half of a lock.
pub(super) struct Half {
    pub(super) slot: Slot,
    /// Where it was last locked inside a check; null if it was locked outside.
    // ordering: relaxed. Only a thread that holds the lock reads it, and it got the lock after the write.
    locked_at: AtomicPtr<Location<'static>>,
}

impl Half {
    const fn new() -> Half {
        Half { slot: Slot::anonymous(), locked_at: AtomicPtr::new(ptr::null_mut()) }
    }

    fn note(&self, here: Option<Here>) {
        let here = here.map_or(ptr::null_mut(), |h| ptr::from_ref(h).cast_mut());
        self.locked_at.store(here, Ordering::Relaxed);
    }

    fn lock(&self, hold: Hold, here: Here, inner: impl FnOnce()) {
        let controlled = ops::acquire(&self.slot, hold, here);
        inner();
        self.note(controlled.then_some(here));
    }

    /// Locks if `inner` can, which says so; inside a check if the executor says so.
    fn try_lock(&self, hold: Hold, here: Here, inner: impl FnOnce() -> bool) -> bool {
        let controlled = ops::try_acquire(&self.slot, hold, here);
        let locked = controlled != Some(false) && inner();
        if locked {
            self.note(controlled.map(|_| here));
        }
        locked
    }

    fn lock_for(
        &self,
        hold: Hold,
        timeout: Duration,
        here: Here,
        inner: impl FnOnce() -> bool,
    ) -> bool {
        let controlled = ops::acquire_for(&self.slot, hold, Some(timeout), here);
        let locked = controlled != Some(false) && inner();
        if locked {
            self.note(controlled.map(|_| here));
        }
        locked
    }

    fn locked_at(&self) -> Option<Here> {
        let at = self.locked_at.load(Ordering::Relaxed);
        // SAFETY: only `note` stores here: null, or a reference to a `'static` location.
        unsafe { at.cast_const().as_ref() }
    }

    fn unlock(&self, hold: Hold) {
        if let Some(here) = self.locked_at() {
            ops::release(&self.slot, hold, here);
        }
    }

    fn downgrade(&self, from: Hold, to: Hold) {
        if let Some(here) = self.locked_at() {
            ops::downgrade(&self.slot, from, to, here);
        }
    }
}

/// How long until then.
fn until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// See `parking_lot::RawMutex`.
pub struct RawMutex {
    half: Half,
    inner: ::parking_lot::RawMutex,
}

impl RawMutex {
    pub(super) fn half(&self) -> &Half {
        &self.half
    }

    /// Locks again after a wait that gave it up.
    pub(super) fn relock(&self, here: Here) {
        self.half.lock(Hold::Exclusive, here, || self.inner.lock());
    }

    /// Unlocks `inner` alone, for a wait that gives up the executor's half itself.
    ///
    /// # Safety
    /// The lock must be held.
    pub(super) unsafe fn unlock_inner(&self) {
        // SAFETY: rule 1.
        unsafe { self.inner.unlock() };
    }
}

// SAFETY: rule 1.
unsafe impl ::parking_lot::lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawMutex = RawMutex {
        half: Half::new(),
        inner: <::parking_lot::RawMutex as ::parking_lot::lock_api::RawMutex>::INIT,
    };

    type GuardMarker = GuardNoSend;

    #[track_caller]
    fn lock(&self) {
        self.half.lock(Hold::Exclusive, Location::caller(), || self.inner.lock());
    }

    #[track_caller]
    fn try_lock(&self) -> bool {
        self.half.try_lock(Hold::Exclusive, Location::caller(), || self.inner.try_lock())
    }

    unsafe fn unlock(&self) {
        self.half.unlock(Hold::Exclusive);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.unlock() };
    }

    fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }
}

// SAFETY: rule 1.
unsafe impl RawMutexFair for RawMutex {
    unsafe fn unlock_fair(&self) {
        self.half.unlock(Hold::Exclusive);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.unlock_fair() };
    }
}

// SAFETY: rule 1.
unsafe impl RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> bool {
        let inner = || self.inner.try_lock_for(timeout);
        self.half.lock_for(Hold::Exclusive, timeout, Location::caller(), inner)
    }

    #[track_caller]
    fn try_lock_until(&self, deadline: Instant) -> bool {
        self.try_lock_for(until(deadline))
    }
}

/// See `parking_lot::RawRwLock`.
pub struct RawRwLock {
    half: Half,
    inner: ::parking_lot::RawRwLock,
}

// SAFETY: rule 1.
unsafe impl ::parking_lot::lock_api::RawRwLock for RawRwLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: RawRwLock = RawRwLock {
        half: Half::new(),
        inner: <::parking_lot::RawRwLock as ::parking_lot::lock_api::RawRwLock>::INIT,
    };

    type GuardMarker = GuardNoSend;

    #[track_caller]
    fn lock_shared(&self) {
        self.half.lock(Hold::Shared, Location::caller(), || self.inner.lock_shared());
    }

    #[track_caller]
    fn try_lock_shared(&self) -> bool {
        self.half.try_lock(Hold::Shared, Location::caller(), || self.inner.try_lock_shared())
    }

    unsafe fn unlock_shared(&self) {
        self.half.unlock(Hold::Shared);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.unlock_shared() };
    }

    #[track_caller]
    fn lock_exclusive(&self) {
        self.half.lock(Hold::Exclusive, Location::caller(), || self.inner.lock_exclusive());
    }

    #[track_caller]
    fn try_lock_exclusive(&self) -> bool {
        self.half.try_lock(Hold::Exclusive, Location::caller(), || self.inner.try_lock_exclusive())
    }

    unsafe fn unlock_exclusive(&self) {
        self.half.unlock(Hold::Exclusive);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.unlock_exclusive() };
    }

    fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }

    fn is_locked_exclusive(&self) -> bool {
        self.inner.is_locked_exclusive()
    }
}

// SAFETY: rule 1.
unsafe impl RawRwLockFair for RawRwLock {
    unsafe fn unlock_shared_fair(&self) {
        self.half.unlock(Hold::Shared);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.unlock_shared_fair() };
    }

    unsafe fn unlock_exclusive_fair(&self) {
        self.half.unlock(Hold::Exclusive);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.unlock_exclusive_fair() };
    }
}

// SAFETY: rule 1.
unsafe impl RawRwLockDowngrade for RawRwLock {
    unsafe fn downgrade(&self) {
        self.half.downgrade(Hold::Exclusive, Hold::Shared);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.downgrade() };
    }
}

// SAFETY: rule 1.
unsafe impl RawRwLockTimed for RawRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        let inner = || self.inner.try_lock_shared_for(timeout);
        self.half.lock_for(Hold::Shared, timeout, Location::caller(), inner)
    }

    #[track_caller]
    fn try_lock_shared_until(&self, deadline: Instant) -> bool {
        self.try_lock_shared_for(until(deadline))
    }

    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        let inner = || self.inner.try_lock_exclusive_for(timeout);
        self.half.lock_for(Hold::Exclusive, timeout, Location::caller(), inner)
    }

    #[track_caller]
    fn try_lock_exclusive_until(&self, deadline: Instant) -> bool {
        self.try_lock_exclusive_for(until(deadline))
    }
}

// SAFETY: rule 1. A recursive reader never waits for a writer that waits.
unsafe impl RawRwLockRecursive for RawRwLock {
    #[track_caller]
    fn lock_shared_recursive(&self) {
        let inner = || self.inner.lock_shared_recursive();
        self.half.lock(Hold::Recursive, Location::caller(), inner);
    }

    #[track_caller]
    fn try_lock_shared_recursive(&self) -> bool {
        let inner = || self.inner.try_lock_shared_recursive();
        self.half.try_lock(Hold::Recursive, Location::caller(), inner)
    }
}

// SAFETY: rule 1.
unsafe impl RawRwLockRecursiveTimed for RawRwLock {
    #[track_caller]
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        let inner = || self.inner.try_lock_shared_recursive_for(timeout);
        self.half.lock_for(Hold::Recursive, timeout, Location::caller(), inner)
    }

    #[track_caller]
    fn try_lock_shared_recursive_until(&self, deadline: Instant) -> bool {
        self.try_lock_shared_recursive_for(until(deadline))
    }
}

// SAFETY: rule 1.
unsafe impl RawRwLockUpgrade for RawRwLock {
    #[track_caller]
    fn lock_upgradable(&self) {
        self.half.lock(Hold::Upgradable, Location::caller(), || self.inner.lock_upgradable());
    }

    #[track_caller]
    fn try_lock_upgradable(&self) -> bool {
        let inner = || self.inner.try_lock_upgradable();
        self.half.try_lock(Hold::Upgradable, Location::caller(), inner)
    }

    unsafe fn unlock_upgradable(&self) {
        self.half.unlock(Hold::Upgradable);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.unlock_upgradable() };
    }

    #[track_caller]
    unsafe fn upgrade(&self) {
        // SAFETY: the caller's promise, and rule 1.
        self.half.lock(Hold::Upgrade, Location::caller(), || unsafe { self.inner.upgrade() });
    }

    #[track_caller]
    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: the caller's promise, and rule 1.
        let inner = || unsafe { self.inner.try_upgrade() };
        self.half.try_lock(Hold::Upgrade, Location::caller(), inner)
    }
}

// SAFETY: rule 1.
unsafe impl RawRwLockUpgradeFair for RawRwLock {
    unsafe fn unlock_upgradable_fair(&self) {
        self.half.unlock(Hold::Upgradable);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.unlock_upgradable_fair() };
    }
}

// SAFETY: rule 1.
unsafe impl RawRwLockUpgradeDowngrade for RawRwLock {
    unsafe fn downgrade_upgradable(&self) {
        self.half.downgrade(Hold::Upgradable, Hold::Shared);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.downgrade_upgradable() };
    }

    unsafe fn downgrade_to_upgradable(&self) {
        self.half.downgrade(Hold::Exclusive, Hold::Upgradable);
        // SAFETY: the caller's promise, and rule 1.
        unsafe { self.inner.downgrade_to_upgradable() };
    }
}

// SAFETY: rule 1.
unsafe impl RawRwLockUpgradeTimed for RawRwLock {
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        let inner = || self.inner.try_lock_upgradable_for(timeout);
        self.half.lock_for(Hold::Upgradable, timeout, Location::caller(), inner)
    }

    #[track_caller]
    fn try_lock_upgradable_until(&self, deadline: Instant) -> bool {
        self.try_lock_upgradable_for(until(deadline))
    }

    #[track_caller]
    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        // SAFETY: the caller's promise, and rule 1.
        let inner = || unsafe { self.inner.try_upgrade_for(timeout) };
        self.half.lock_for(Hold::Upgrade, timeout, Location::caller(), inner)
    }

    #[track_caller]
    unsafe fn try_upgrade_until(&self, deadline: Instant) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.try_upgrade_for(until(deadline)) }
    }
}

/// See `parking_lot::RawThreadId`.
#[derive(Debug)]
pub struct RawThreadId;

// SAFETY: no two threads have the same number: inside a check it is odd, made of the execution's and
// the thread's own; outside it is even and counted.
unsafe impl GetThreadId for RawThreadId {
    const INIT: RawThreadId = RawThreadId;

    fn nonzero_thread_id(&self) -> NonZeroUsize {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static OUTSIDE: usize = LAST.fetch_add(2, Ordering::Relaxed) + 2);
        let controlled = with(|e| (e.generation as usize) << 24 | e.current.index() << 1 | 1);
        let number = controlled.unwrap_or_else(|| OUTSIDE.with(|n| *n));
        NonZeroUsize::new(number).expect("numbers begin at one")
    }
}
