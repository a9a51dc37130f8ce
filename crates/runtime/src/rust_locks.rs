//! Which locks of Rust a thread is known to hold.
//!
//! Acquisitions and releases of such a lock are seen only where they are instrumented or have a stub
//! ([`rust_std`](crate::rust_std)); inside the standard library only slow acquisitions are seen. A lock
//! that seems to be held for ever would be part of deadlocks that cannot happen.
//!
//! Guarantee: a thread counts as holding a lock only if it was seen to want it, or to give it up in a wait,
//! and only until a release is seen. May miss that a lock is held.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_model::{Mode, Range};

/// Locks by thread and address.
#[derive(Debug, Default)]
pub(crate) struct RustLocks {
    /// How often each is held: more than once only if shared.
    held: BTreeMap<(u32, u64), u32>,
    /// Those that were given up in a wait, to be taken again.
    given_up: BTreeSet<(u32, u64)>,
}

impl RustLocks {
    /// The thread has the lock. False if it had it already, so that it must have given it back out of
    /// sight.
    pub(crate) fn take(&mut self, thread: u32, lock: u64, mode: Mode) -> bool {
        let times = self.held.entry((thread, lock)).or_default();
        let is_new = *times == 0 || mode == Mode::Shared;
        *times = if is_new { *times + 1 } else { 1 };
        is_new
    }

    /// The thread gives the lock back. False if it is not known to have it.
    pub(crate) fn give(&mut self, thread: u32, lock: u64) -> bool {
        let Some(times) = self.held.get_mut(&(thread, lock)) else { return false };
        *times -= 1;
        if *times == 0 {
            self.held.remove(&(thread, lock));
        }
        true
    }

    /// The thread gives the lock up and waits. False if it is not known to have it.
    pub(crate) fn give_up(&mut self, thread: u32, lock: u64) -> bool {
        self.give(thread, lock) && self.given_up.insert((thread, lock))
    }

    /// Whether the thread has given the lock up in a wait; it does not wait any more.
    pub(crate) fn wakes(&mut self, thread: u32, lock: u64) -> bool {
        self.given_up.remove(&(thread, lock))
    }

    /// The memory is something else from now on.
    pub(crate) fn forget(&mut self, range: Range) {
        let is_gone = |lock: u64| (range.start..range.end()).contains(&lock);
        self.held.retain(|&(_, lock), _| !is_gone(lock));
        self.given_up.retain(|&(_, lock)| !is_gone(lock));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_out_of_sight_is_not_held_twice() {
        let mut locks = RustLocks::default();
        assert!(locks.take(1, 8, Mode::Exclusive));
        assert!(!locks.take(1, 8, Mode::Exclusive));
        assert!(locks.give(1, 8));
        assert!(!locks.give(1, 8));
        assert!(locks.take(1, 8, Mode::Shared) && locks.take(1, 8, Mode::Shared));
        assert!(locks.give(1, 8) && locks.give(1, 8) && !locks.give(1, 8));
    }

    #[test]
    fn only_what_was_held_is_given_up_and_taken_again() {
        let mut locks = RustLocks::default();
        assert!(!locks.give_up(1, 8) && !locks.wakes(1, 8));
        locks.take(1, 8, Mode::Exclusive);
        assert!(locks.give_up(1, 8));
        // The slow way in says so, and then the wait.
        assert!(locks.wakes(1, 8) && !locks.wakes(1, 8));
        locks.take(1, 8, Mode::Exclusive);
        locks.forget(Range { start: 0, len: 16 });
        assert!(!locks.give(1, 8));
    }
}
