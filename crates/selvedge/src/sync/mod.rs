//! Synchronization: the API of [`std::sync`].
//!
//! `Arc` and `Weak` are the standard library's: their counts are not scheduling points, and what they
//! order is not seen. Reach the inside of a value that has come back to one owner by `&mut`
//! (`RaceCell::get_mut`, `Arc::get_mut`), which needs no order and is not tracked.

pub mod atomic;
pub mod mpsc;
mod mutex;
mod once;
mod rwlock;

pub use mutex::{Condvar, Mutex, MutexGuard, WaitTimeoutResult};
pub use once::{Barrier, BarrierWaitResult, LazyLock, Once, OnceLock, OnceState};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak};

/// Applies `f` to what was locked, poisoned or not.
fn map_poison<T, U>(result: LockResult<T>, f: impl FnOnce(T) -> U) -> LockResult<U> {
    match result {
        Ok(value) => Ok(f(value)),
        Err(error) => Err(PoisonError::new(f(error.into_inner()))),
    }
}
