//! A channel for one value.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::locked;
use crate::sync::Mutex;

#[derive(Debug)]
struct State<T> {
    value: Option<T>,
    sender_gone: bool,
    receiver_gone: bool,
    waits: Option<Waker>,
}

/// A new channel.
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let state = State { value: None, sender_gone: false, receiver_gone: false, waits: None };
    let state = Arc::new(Mutex::new(state));
    (Sender(Arc::clone(&state)), Receiver(state))
}

/// The half that sends.
#[derive(Debug)]
pub struct Sender<T>(Arc<Mutex<State<T>>>);

/// The half that receives: a future of the value.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Receiver<T>(Arc<Mutex<State<T>>>);

impl<T> Sender<T> {
    /// Sends the value, or gives it back if the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        let mut state = locked(&self.0);
        if state.receiver_gone {
            return Err(value);
        }
        state.value = Some(value);
        // The receiver is woken when `self` is dropped.
        Ok(())
    }

    /// Whether the receiver is gone.
    pub fn is_closed(&self) -> bool {
        locked(&self.0).receiver_gone
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = locked(&self.0);
        state.sender_gone = true;
        let waits = state.waits.take();
        drop(state);
        if let Some(waker) = waits {
            waker.wake();
        }
    }
}

impl<T> Receiver<T> {
    /// The value, if it is there.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let mut state = locked(&self.0);
        match state.value.take() {
            Some(value) => Ok(value),
            None if state.sender_gone => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// Takes no value that is not there yet.
    pub fn close(&mut self) {
        locked(&self.0).receiver_gone = true;
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = locked(&self.0);
        match state.value.take() {
            Some(value) => Poll::Ready(Ok(value)),
            None if state.sender_gone || state.receiver_gone => Poll::Ready(Err(RecvError(()))),
            None => {
                state.waits = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = locked(&self.0);
        state.receiver_gone = true;
        let unread = state.value.take();
        drop(state);
        // With no lock held: it is the user's destructor.
        drop(unread);
    }
}

/// The sender went away without sending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecvError(());

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed")
    }
}

impl std::error::Error for RecvError {}

/// Why there is no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TryRecvError {
    /// Not yet.
    Empty,
    /// It never comes, or has been taken.
    Closed,
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryRecvError::Empty => "channel empty",
            TryRecvError::Closed => "channel closed",
        })
    }
}

impl std::error::Error for TryRecvError {}
