//! Tasks that wait for something, in the order in which they came.

use std::collections::VecDeque;
use std::task::Waker;

/// A place in a queue.
pub(super) type Ticket = u64;

/// The tasks that wait. A task that is woken leaves the queue, and has to check whether it can go on.
#[derive(Default, Debug)]
pub(super) struct Queue {
    last: Ticket,
    waiting: VecDeque<(Ticket, Waker)>,
}

impl Queue {
    /// Waits, in the place that the ticket says or at the end.
    pub(super) fn wait(&mut self, ticket: &mut Option<Ticket>, waker: &Waker) {
        if let Some(entry) = self.waiting.iter_mut().find(|w| Some(w.0) == *ticket) {
            entry.1.clone_from(waker);
            return;
        }
        self.last += 1;
        *ticket = Some(self.last);
        self.waiting.push_back((self.last, waker.clone()));
    }

    pub(super) fn contains(&self, ticket: Ticket) -> bool {
        self.waiting.iter().any(|w| w.0 == ticket)
    }

    /// Leaves the queue: false if the ticket was not in it any more, that is, if it has been woken.
    pub(super) fn leave(&mut self, ticket: Ticket) -> bool {
        let place = self.waiting.iter().position(|w| w.0 == ticket);
        place.map(|i| self.waiting.remove(i)).is_some()
    }

    /// The one that waits longest, to be woken when no lock is held.
    pub(super) fn pop(&mut self) -> Option<(Ticket, Waker)> {
        self.waiting.pop_front()
    }

    /// All of them.
    pub(super) fn pop_all(&mut self) -> Vec<Waker> {
        self.waiting.drain(..).map(|w| w.1).collect()
    }
}
