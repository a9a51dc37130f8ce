//! Synchronization: the API of [`std::sync`].
//!
//! `Arc` and `Weak` are the standard library's, so that `Arc<dyn Trait>`, `self: Arc<Self>` and the
//! traits of other crates work as usual; on stable Rust a type of our own could offer none of them.
//! Their counts are not scheduling points, and the executor does not see what they order. A race whose later access
//! may have been ordered by dropping the last `Arc`, because the same thread goes on to destroy the
//! cell, is therefore a prediction: it fails a check once both threads have stood before their
//! accesses at the same time.

pub mod atomic;
mod guard;
pub mod mpsc;
mod mutex;
mod once;
mod rwlock;

pub use mutex::{Condvar, Mutex, MutexGuard, WaitTimeoutResult};
pub use once::{Barrier, BarrierWaitResult, LazyLock, Once, OnceLock, OnceState};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult, Weak};

/// Applies `f` to what was locked at once, poisoned or not.
fn map_try<T, U>(result: TryLockResult<T>, f: impl FnOnce(T) -> U) -> TryLockResult<U> {
    match result {
        Ok(value) => Ok(f(value)),
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        Err(TryLockError::Poisoned(error)) => {
            map_poison(Err(error), f).map_err(TryLockError::Poisoned)
        }
    }
}

/// Applies `f` to what was locked, poisoned or not.
fn map_poison<T, U>(result: LockResult<T>, f: impl FnOnce(T) -> U) -> LockResult<U> {
    match result {
        Ok(value) => Ok(f(value)),
        Err(error) => Err(PoisonError::new(f(error.into_inner()))),
    }
}
