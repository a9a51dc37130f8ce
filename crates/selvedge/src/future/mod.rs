//! Asynchronous tasks: a small executor, and what tasks synchronize by.
//!
//! A task is a thread of its own that does nothing but poll its future, so inside a check every wake-up is
//! a step of the schedule, and a task that is never woken is a deadlock. Futures of other crates work as
//! long as what they share between threads is made of the types of this crate: their wakers are ours.
//!
//! ```
//! use selvedge::future::{block_on, oneshot, spawn};
//!
//! selvedge::check(|| {
//!     let (sender, receiver) = oneshot::channel();
//!     let task = spawn(async move { receiver.await.unwrap() + 1 });
//!     sender.send(41).unwrap();
//!     assert_eq!(block_on(task).unwrap(), 42);
//! });
//! ```
//!
//! | here | like |
//! | --- | --- |
//! | [`block_on`], [`spawn`], [`JoinHandle`], [`yield_now`] | `tokio::task`, `tokio::runtime` |
//! | [`Mutex`], [`Notify`], [`oneshot`], [`mpsc`] | `tokio::sync` |

mod mutex;
mod notify;
mod queue;
mod signal;
mod task;

pub mod mpsc;
pub mod oneshot;

pub use mutex::{Lock, Mutex, MutexGuard, TryLockError};
pub use notify::{Notified, Notify};
pub use task::{JoinError, JoinHandle, YieldNow, block_on, spawn, yield_now};

/// A lock of ours for a moment. A panic inside one of these moments is a bug of ours, and what it
/// guards is right at every step; so poison means nothing.
fn locked<T>(mutex: &crate::sync::Mutex<T>) -> crate::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
