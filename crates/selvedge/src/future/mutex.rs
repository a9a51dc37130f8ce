//! A mutex whose guard may be held across an `await`.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::locked;
use super::queue::{Queue, Ticket};
use crate::sync;

/// A mutual exclusion of tasks. The task that has locked it owns the value until the guard is dropped. It
/// is not poisoned: a panic leaves the value as it is.
#[derive(Debug)]
pub struct Mutex<T>(sync::Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    /// None while a task has it locked.
    value: Option<T>,
    waiting: Queue,
}

impl<T> Mutex<T> {
    /// A mutex with a value.
    #[track_caller]
    pub fn new(value: T) -> Mutex<T> {
        Mutex(sync::Mutex::new(State { value: Some(value), waiting: Queue::default() }))
    }

    /// Locks it, waiting for those who came before.
    pub fn lock(&self) -> Lock<'_, T> {
        Lock { mutex: self, ticket: None }
    }

    /// Locks it if it is free.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        let value = locked(&self.0).value.take().ok_or(TryLockError(()))?;
        Ok(MutexGuard { mutex: self, value: Some(value) })
    }

    /// The value, by its owner.
    ///
    /// # Panics
    /// If a guard was leaked.
    pub fn into_inner(self) -> T {
        let state = self.0.into_inner().unwrap_or_else(sync::PoisonError::into_inner);
        state.value.expect("no guard was leaked")
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

/// Another task has it locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TryLockError(());

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operation would block")
    }
}

impl std::error::Error for TryLockError {}

/// See [`Mutex::lock`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Lock<'a, T> {
    mutex: &'a Mutex<T>,
    ticket: Option<Ticket>,
}

impl<'a, T> Future for Lock<'a, T> {
    type Output = MutexGuard<'a, T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<MutexGuard<'a, T>> {
        let mutex = self.mutex;
        let mut state = locked(&mutex.0);
        match state.value.take() {
            Some(value) => {
                if let Some(ticket) = self.ticket.take() {
                    state.waiting.leave(ticket);
                }
                Poll::Ready(MutexGuard { mutex, value: Some(value) })
            }
            None => {
                state.waiting.wait(&mut self.ticket, context.waker());
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Lock<'_, T> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = locked(&self.mutex.0);
        // It was woken and goes away without having locked: the next one has to hear of it.
        if !state.waiting.leave(ticket)
            && state.value.is_some()
            && let Some((_, next)) = state.waiting.pop()
        {
            drop(state);
            next.wake();
        }
    }
}

/// The right to use the value.
#[derive(Debug)]
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    // invariant: None only while it is dropped.
    value: Option<T>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("a guard has the value")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("a guard has the value")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        let mut state = locked(&self.mutex.0);
        state.value = self.value.take();
        let next = state.waiting.pop();
        drop(state);
        if let Some((_, next)) = next {
            next.wake();
        }
    }
}
