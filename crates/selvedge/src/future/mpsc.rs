//! A channel from many tasks to one.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::locked;
use super::oneshot;
use super::queue::{Queue, Ticket};
use crate::sync::Mutex;

pub use oneshot::TryRecvError;

#[derive(Debug)]
struct State<T> {
    values: VecDeque<T>,
    capacity: usize,
    senders: usize,
    closed: bool,
    /// The receiver, if it waits.
    receiver: Option<Waker>,
    /// Senders that wait for room.
    waiting: Queue,
}

/// A new channel with room for `capacity` values.
///
/// # Panics
/// If there is no room at all.
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a channel has room for at least one value");
    let state = Arc::new(Mutex::new(State {
        values: VecDeque::new(),
        capacity,
        senders: 1,
        closed: false,
        receiver: None,
        waiting: Queue::default(),
    }));
    (Sender(Arc::clone(&state)), Receiver(state))
}

/// A new channel with room for any number of values: sending never waits.
#[track_caller]
pub fn unbounded_channel<T>() -> (Sender<T>, Receiver<T>) {
    channel(usize::MAX)
}

/// The half that sends.
#[derive(Debug)]
pub struct Sender<T>(Arc<Mutex<State<T>>>);

/// The half that receives.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Mutex<State<T>>>);

impl<T> Sender<T> {
    /// Sends a value when there is room for it.
    pub fn send(&self, value: T) -> Send<'_, T> {
        Send { channel: &self.0, value: Some(value), ticket: None }
    }

    /// Sends a value if there is room for it.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let mut state = locked(&self.0);
        if state.closed {
            return Err(TrySendError::Closed(value));
        }
        if state.values.len() == state.capacity {
            return Err(TrySendError::Full(value));
        }
        state.values.push_back(value);
        let receiver = state.receiver.take();
        drop(state);
        if let Some(waker) = receiver {
            waker.wake();
        }
        Ok(())
    }

    /// Whether nothing is received any more.
    pub fn is_closed(&self) -> bool {
        locked(&self.0).closed
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        locked(&self.0).senders += 1;
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = locked(&self.0);
        state.senders -= 1;
        let receiver = if state.senders == 0 { state.receiver.take() } else { None };
        drop(state);
        if let Some(waker) = receiver {
            waker.wake();
        }
    }
}

/// See [`Sender::send`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Send<'a, T> {
    channel: &'a Mutex<State<T>>,
    value: Option<T>,
    ticket: Option<Ticket>,
}

impl<T> Unpin for Send<'_, T> {}

impl<T> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    /// # Panics
    /// If it is polled after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = locked(self.channel);
        if !state.closed && state.values.len() == state.capacity {
            state.waiting.wait(&mut self.ticket, context.waker());
            return Poll::Pending;
        }
        if let Some(ticket) = self.ticket.take() {
            state.waiting.leave(ticket);
        }
        let value = self.value.take().expect("a future is not polled after it was ready");
        if state.closed {
            return Poll::Ready(Err(SendError(value)));
        }
        state.values.push_back(value);
        let receiver = state.receiver.take();
        drop(state);
        if let Some(waker) = receiver {
            waker.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T> Drop for Send<'_, T> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = locked(self.channel);
        // It was woken because there is room, and goes away without using it.
        if !state.waiting.leave(ticket)
            && let Some((_, next)) = state.waiting.pop()
        {
            drop(state);
            next.wake();
        }
    }
}

impl<T> Receiver<T> {
    /// The next value, when it is there; nothing when all senders are gone and every value was taken.
    pub fn recv(&mut self) -> Recv<'_, T> {
        Recv(self)
    }

    /// The next value, if it is there.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        match self.take() {
            Some(Some(value)) => Ok(value),
            Some(None) => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// Lets nothing more be sent; what has been sent can still be received.
    pub fn close(&mut self) {
        let mut state = locked(&self.0);
        state.closed = true;
        let waiting = state.waiting.pop_all();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// A value, or that there will be none; nothing if one may come.
    fn take(&self) -> Option<Option<T>> {
        let mut state = locked(&self.0);
        match state.values.pop_front() {
            Some(value) => {
                let room = state.waiting.pop();
                drop(state);
                if let Some((_, sender)) = room {
                    sender.wake();
                }
                Some(Some(value))
            }
            None if state.senders == 0 || state.closed => Some(None),
            None => None,
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.close();
        let unread = std::mem::take(&mut locked(&self.0).values);
        // With no lock held: these are the user's destructors.
        drop(unread);
    }
}

/// See [`Receiver::recv`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Recv<'a, T>(&'a mut Receiver<T>);

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        // Enrolled before looking, so that nothing that comes in between is missed.
        locked(&self.0.0).receiver = Some(context.waker().clone());
        match self.0.take() {
            Some(taken) => Poll::Ready(taken),
            None => Poll::Pending,
        }
    }
}

/// The receiver is gone, so the value cannot be received.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// Why a value was not sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room now.
    Full(T),
    /// The receiver is gone.
    Closed(T),
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed")
    }
}

impl<T> std::error::Error for SendError<T> {}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "Full(..)",
            TrySendError::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySendError::Full(_) => "no available capacity",
            TrySendError::Closed(_) => "channel closed",
        })
    }
}

impl<T> std::error::Error for TrySendError<T> {}
