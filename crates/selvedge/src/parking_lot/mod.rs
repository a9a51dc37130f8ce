//! Locks with the API of the `parking_lot` crate (feature `parking_lot`).
//!
//! As there, `Mutex`, `RwLock` and `ReentrantMutex` are those of `lock_api` over raw locks, and the raw
//! locks are ours: the executor's inside a check, those of `parking_lot` outside. So every method of a
//! lock and of its guards is the same code. `Condvar` and `Once` are our own. Without default features
//! this module is the `parking_lot` crate.

mod condvar;
mod once;
mod raw;

pub use ::parking_lot::lock_api;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use once::{Once, OnceState};
pub use raw::{RawMutex, RawRwLock, RawThreadId};

macro_rules! aliases {
    ($($name:ident <$($lifetime:lifetime)?> = $raw:ty $(, $more:ty)?;)*) => {$(
        #[doc = concat!("See `parking_lot::", stringify!($name), "`.")]
        pub type $name<$($lifetime,)? T> = lock_api::$name<$($lifetime,)? $raw, $($more,)? T>;
    )*};
}

aliases! {
    Mutex<> = RawMutex;
    MutexGuard<'a> = RawMutex;
    MappedMutexGuard<'a> = RawMutex;
    RwLock<> = RawRwLock;
    RwLockReadGuard<'a> = RawRwLock;
    RwLockWriteGuard<'a> = RawRwLock;
    RwLockUpgradableReadGuard<'a> = RawRwLock;
    MappedRwLockReadGuard<'a> = RawRwLock;
    MappedRwLockWriteGuard<'a> = RawRwLock;
    ReentrantMutex<> = RawMutex, RawThreadId;
    ReentrantMutexGuard<'a> = RawMutex, RawThreadId;
    MappedReentrantMutexGuard<'a> = RawMutex, RawThreadId;
}

/// See `parking_lot::FairMutex`. Inside a check every order of the waiting threads is possible.
pub type FairMutex<T> = Mutex<T>;
/// See `parking_lot::FairMutexGuard`.
pub type FairMutexGuard<'a, T> = MutexGuard<'a, T>;
/// See `parking_lot::MappedFairMutexGuard`.
pub type MappedFairMutexGuard<'a, T> = MappedMutexGuard<'a, T>;

/// See `parking_lot::const_mutex`.
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::const_new(<RawMutex as lock_api::RawMutex>::INIT, value)
}

/// See `parking_lot::const_fair_mutex`.
pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    const_mutex(value)
}

/// See `parking_lot::const_rwlock`.
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::const_new(<RawRwLock as lock_api::RawRwLock>::INIT, value)
}

/// See `parking_lot::const_reentrant_mutex`.
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    ReentrantMutex::const_new(
        <RawMutex as lock_api::RawMutex>::INIT,
        <RawThreadId as lock_api::GetThreadId>::INIT,
        value,
    )
}
