//! The state of everything that threads wait for: locks, condition variables, barriers, semaphores.
//!
//! One state per idea; the types of `std::sync` are thin shims over these. A state answers which of the
//! threads that stand before it could take their step now; the executor keeps the answer up to date, so
//! that enabled and blocked are known at every choice and never guessed.

use std::collections::VecDeque;

use selvedge_model::{Mode, ThreadId};

/// Who can and who cannot take its step after a change: the caller enables and disables accordingly.
pub(crate) type Enabling = (ThreadId, bool);

/// In which way a thread wants or holds a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(feature = "parking_lot"), allow(dead_code))]
pub(crate) enum Hold {
    /// With other readers.
    Shared,
    /// With other readers, even if a thread waits to write.
    Recursive,
    /// With readers, and as the only one that may go on to write.
    Upgradable,
    /// Alone.
    Exclusive,
    /// Alone, by the thread that holds it upgradable.
    Upgrade,
}

impl From<Mode> for Hold {
    fn from(mode: Mode) -> Hold {
        match mode {
            Mode::Shared => Hold::Shared,
            Mode::Exclusive => Hold::Exclusive,
        }
    }
}

impl Hold {
    /// As the events say it.
    pub(crate) fn mode(self) -> Mode {
        match self {
            Hold::Shared | Hold::Recursive | Hold::Upgradable => Mode::Shared,
            Hold::Exclusive | Hold::Upgrade => Mode::Exclusive,
        }
    }
}

/// A mutex or reader-writer lock.
///
/// Readers are let in while a writer waits; [`circles`](super::circles) finds the deadlocks that come of
/// keeping them out.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    writer: Option<ThreadId>,
    // invariant: None if there is a writer.
    upgrader: Option<ThreadId>,
    // invariant: empty if there is a writer.
    readers: Vec<ThreadId>,
    /// Threads about to acquire.
    contenders: Vec<(ThreadId, Hold)>,
}

impl Lock {
    pub(crate) fn is_free(&self, hold: Hold) -> bool {
        self.writer.is_none()
            && match hold {
                Hold::Shared | Hold::Recursive => true,
                Hold::Upgradable => self.upgrader.is_none(),
                Hold::Exclusive => self.upgrader.is_none() && self.readers.is_empty(),
                Hold::Upgrade => self.readers.is_empty(),
            }
    }

    /// A thread that holds the lock.
    pub(crate) fn holder(&self) -> Option<ThreadId> {
        self.writer.or(self.upgrader).or(self.readers.first().copied())
    }

    /// In which way a thread is about to acquire.
    pub(crate) fn wanted_by(&self, thread: ThreadId) -> Option<Hold> {
        self.contenders.iter().find(|c| c.0 == thread).map(|c| c.1)
    }

    /// Who has to release before the lock can be held in a way.
    pub(crate) fn in_the_way_of(&self, hold: Hold) -> impl Iterator<Item = ThreadId> + '_ {
        let (upgraders, readers) = match hold {
            Hold::Shared | Hold::Recursive => (false, false),
            Hold::Upgradable => (true, false),
            Hold::Exclusive => (true, true),
            Hold::Upgrade => (false, true),
        };
        let readers = self.readers.iter().filter(move |_| readers);
        self.writer.into_iter().chain(self.upgrader.filter(|_| upgraders)).chain(readers.copied())
    }

    /// Who is about to acquire it alone and cannot.
    pub(crate) fn waiting_writers(&self) -> impl Iterator<Item = ThreadId> + '_ {
        let waits =
            |hold| hold != Hold::Shared && hold != Hold::Recursive && hold != Hold::Upgradable;
        let contenders = self.contenders.iter();
        contenders.filter(move |c| waits(c.1) && !self.is_free(c.1)).map(|c| c.0)
    }

    pub(crate) fn contend(&mut self, thread: ThreadId, hold: Hold) -> bool {
        self.contenders.push((thread, hold));
        self.is_free(hold)
    }

    pub(crate) fn give_up(&mut self, thread: ThreadId) {
        if let Some(i) = self.contenders.iter().position(|c| c.0 == thread) {
            self.contenders.swap_remove(i);
        }
    }

    pub(crate) fn take(&mut self, thread: ThreadId, hold: Hold) {
        debug_assert!(self.is_free(hold));
        match hold {
            Hold::Shared | Hold::Recursive => self.readers.push(thread),
            Hold::Upgradable => self.upgrader = Some(thread),
            Hold::Exclusive => self.writer = Some(thread),
            Hold::Upgrade => {
                self.upgrader = None;
                self.writer = Some(thread);
            }
        }
    }

    pub(crate) fn give_back(&mut self, thread: ThreadId, hold: Hold) {
        match hold {
            Hold::Exclusive | Hold::Upgrade => self.writer = None,
            Hold::Upgradable => self.upgrader = None,
            Hold::Shared | Hold::Recursive => {
                // A guard may be dropped by a thread that did not lock; then any reader stands for it.
                let at = self.readers.iter().position(|&t| t == thread).unwrap_or(0);
                if at < self.readers.len() {
                    self.readers.swap_remove(at);
                }
            }
        }
    }

    pub(crate) fn has_contenders(&self) -> bool {
        !self.contenders.is_empty()
    }

    pub(crate) fn enabling(&self) -> impl Iterator<Item = Enabling> + '_ {
        self.contenders.iter().map(|&(t, hold)| (t, self.is_free(hold)))
    }
}

/// A condition variable. A notification wakes one of those who waited when it was made, and which one
/// is the strategy's choice: it becomes a token that any of them may take.
#[derive(Debug, Default)]
pub(crate) struct Cond {
    time: u64,
    /// Who waits since when.
    waiters: Vec<(ThreadId, u64)>,
    /// When the notifications not yet taken were made, oldest first.
    // invariant: never more than waiters who are older; so every token is taken in the end.
    tokens: VecDeque<u64>,
}

impl Cond {
    pub(crate) fn enroll(&mut self, thread: ThreadId) {
        self.time += 1;
        self.waiters.push((thread, self.time));
    }

    /// Any thread that waits may take this notification. Returns how many more threads will wake up.
    pub(crate) fn notify_one(&mut self) -> usize {
        if self.tokens.len() == self.waiters.len() {
            return 0;
        }
        self.time += 1;
        self.tokens.push_back(self.time);
        1
    }

    pub(crate) fn notify_all(&mut self) -> usize {
        let woken = self.waiters.len() - self.tokens.len();
        self.time += 1;
        self.tokens.resize(self.waiters.len(), self.time);
        self.tokens.iter_mut().for_each(|t| *t = self.time);
        woken
    }

    /// The thread wakes up: true if by a notification, false if without one.
    pub(crate) fn leave(&mut self, thread: ThreadId) -> bool {
        let Some(i) = self.waiters.iter().position(|w| w.0 == thread) else { return false };
        let (_, since) = self.waiters.remove(i);
        match self.tokens.iter().position(|&t| t > since) {
            Some(token) => {
                self.tokens.remove(token);
                true
            }
            None => false,
        }
    }

    pub(crate) fn enabling(&self) -> impl Iterator<Item = Enabling> + '_ {
        let newest = self.tokens.back().copied().unwrap_or(0);
        self.waiters.iter().map(move |&(t, since)| (t, newest > since))
    }
}

/// A barrier.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    pub(crate) round: u32,
    waiting: Vec<ThreadId>,
}

impl Barrier {
    /// The threads that may leave because `thread` was the last of `parties` to arrive.
    pub(crate) fn arrive(&mut self, thread: ThreadId, parties: usize) -> Option<Vec<ThreadId>> {
        if self.waiting.len() + 1 >= parties {
            self.round += 1;
            return Some(std::mem::take(&mut self.waiting));
        }
        self.waiting.push(thread);
        None
    }
}

/// A counting semaphore that can be closed: then no thread waits for it any more.
#[derive(Debug, Default)]
pub(crate) struct Semaphore {
    pub(crate) count: usize,
    closed: bool,
    waiters: Vec<ThreadId>,
}

impl Semaphore {
    pub(crate) fn is_ready(&self) -> bool {
        self.count > 0 || self.closed
    }

    pub(crate) fn enroll(&mut self, thread: ThreadId) {
        self.waiters.push(thread);
    }

    /// Takes one; false if there is none.
    pub(crate) fn leave(&mut self, thread: ThreadId) -> bool {
        self.waiters.retain(|&t| t != thread);
        let taken = self.count > 0;
        self.count -= usize::from(taken);
        taken
    }

    pub(crate) fn post(&mut self, limit: usize) {
        self.count = (self.count + 1).min(limit);
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    pub(crate) fn enabling(&self) -> impl Iterator<Item = Enabling> + '_ {
        let ready = self.is_ready();
        self.waiters.iter().map(move |&t| (t, ready))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ThreadId = ThreadId(0);
    const B: ThreadId = ThreadId(1);
    const C: ThreadId = ThreadId(2);

    fn enabled(cond: &Cond) -> Vec<ThreadId> {
        cond.enabling().filter(|e| e.1).map(|e| e.0).collect()
    }

    #[test]
    fn a_notification_wakes_one_of_those_who_waited() {
        let mut cond = Cond::default();
        assert_eq!(cond.notify_one(), 0);
        cond.enroll(A);
        assert_eq!(enabled(&cond), [], "it is not kept for later");
        cond.enroll(B);
        cond.notify_one();
        cond.enroll(C);
        assert_eq!(enabled(&cond), [A, B]);
        assert!(cond.leave(B));
        assert_eq!(enabled(&cond), []);
    }

    #[test]
    fn more_notifications_than_waiters_are_lost() {
        let mut cond = Cond::default();
        cond.enroll(A);
        cond.notify_one();
        cond.notify_one();
        cond.enroll(B);
        assert!(cond.leave(A));
        assert_eq!(enabled(&cond), []);
        assert!(!cond.leave(B), "left without a notification");
    }

    #[test]
    fn all_are_woken_and_nobody_later() {
        let mut cond = Cond::default();
        cond.enroll(A);
        cond.notify_one();
        cond.enroll(B);
        cond.notify_all();
        cond.enroll(C);
        assert_eq!(enabled(&cond), [A, B]);
        assert!(cond.leave(A) && cond.leave(B));
        assert_eq!(enabled(&cond), []);
    }

    #[test]
    fn a_lock_is_shared_by_readers_only() {
        let mut lock = Lock::default();
        lock.take(A, Hold::Shared);
        assert!(lock.contend(B, Hold::Shared));
        assert!(!lock.contend(C, Hold::Exclusive));
        lock.give_up(B);
        lock.take(B, Hold::Shared);
        lock.give_back(A, Hold::Shared);
        assert_eq!(lock.enabling().collect::<Vec<_>>(), [(C, false)]);
        lock.give_back(B, Hold::Shared);
        assert_eq!(lock.enabling().collect::<Vec<_>>(), [(C, true)]);
    }

    #[test]
    fn whoever_may_upgrade_keeps_out_writers_and_others_who_may() {
        let mut lock = Lock::default();
        lock.take(A, Hold::Upgradable);
        assert!(lock.is_free(Hold::Shared));
        assert!(!lock.is_free(Hold::Upgradable) && !lock.is_free(Hold::Exclusive));
        lock.take(B, Hold::Shared);
        assert!(!lock.contend(A, Hold::Upgrade));
        lock.give_back(B, Hold::Shared);
        assert_eq!(lock.enabling().collect::<Vec<_>>(), [(A, true)]);
        lock.give_up(A);
        lock.take(A, Hold::Upgrade);
        assert!(!lock.is_free(Hold::Shared));
        lock.give_back(A, Hold::Exclusive);
        assert!(lock.is_free(Hold::Exclusive));
    }
}
