//! A notification without a value.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::locked;
use super::queue::{Queue, Ticket};
use crate::sync::Mutex;

/// Tells one task, or all that wait, that something has happened. One notification is kept for a task
/// that comes later.
#[derive(Debug)]
pub struct Notify(Mutex<State>);

#[derive(Default, Debug)]
struct State {
    kept: bool,
    waiting: Queue,
    /// Who was woken by `notify_one` and has not been polled since.
    told: Vec<Ticket>,
}

impl State {
    /// Notifies one task. Returns its waker if it waits already.
    fn notify(&mut self) -> Option<std::task::Waker> {
        match self.waiting.pop() {
            Some((ticket, waker)) => {
                self.told.push(ticket);
                Some(waker)
            }
            None => {
                self.kept = true;
                None
            }
        }
    }

    fn forget(&mut self, ticket: Ticket) -> bool {
        let place = self.told.iter().position(|&t| t == ticket);
        place.map(|i| self.told.swap_remove(i)).is_some()
    }
}

impl Default for Notify {
    #[track_caller]
    fn default() -> Notify {
        Notify::new()
    }
}

impl Notify {
    /// Nothing has happened yet.
    #[track_caller]
    pub fn new() -> Notify {
        Notify(Mutex::new(State::default()))
    }

    /// Wakes the task that waits longest, or the next one that comes.
    pub fn notify_one(&self) {
        let waker = locked(&self.0).notify();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wakes all tasks that wait now, and none that come later.
    pub fn notify_waiters(&self) {
        let waiting = locked(&self.0).waiting.pop_all();
        waiting.into_iter().for_each(std::task::Waker::wake);
    }

    /// Waits for a notification. It waits from its first poll on.
    pub fn notified(&self) -> Notified<'_> {
        Notified { notify: self, ticket: None }
    }
}

/// See [`Notify::notified`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct Notified<'a> {
    notify: &'a Notify,
    ticket: Option<Ticket>,
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = locked(&self.notify.0);
        let ready = match self.ticket {
            None => std::mem::take(&mut state.kept),
            Some(ticket) => !state.waiting.contains(ticket),
        };
        if ready {
            if let Some(ticket) = self.ticket.take() {
                state.forget(ticket);
            }
            return Poll::Ready(());
        }
        state.waiting.wait(&mut self.ticket, context.waker());
        Poll::Pending
    }
}

impl Drop for Notified<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = locked(&self.notify.0);
        state.waiting.leave(ticket);
        // It was notified and goes away: another task gets the notification instead.
        let next = if state.forget(ticket) { state.notify() } else { None };
        drop(state);
        if let Some(waker) = next {
            waker.wake();
        }
    }
}
