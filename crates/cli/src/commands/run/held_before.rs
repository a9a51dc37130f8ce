//! The locks that threads held at earlier epochs.

use std::collections::BTreeMap;

use selvedge_analyses::held::LockSet;
use selvedge_model::ThreadId;
use selvedge_runtime::{Epoch, Past};

/// The number of threads whose history is kept.
const THREADS: usize = 4096;

/// The lock sets of threads, by epoch.
#[derive(Default)]
pub(super) struct HeldBefore {
    threads: BTreeMap<ThreadId, Past<LockSet>>,
    /// The history of this thread and of all threads before it was dropped.
    forgotten: Option<ThreadId>,
}

impl HeldBefore {
    /// Records that a thread holds `held` from an epoch on.
    pub(super) fn change(&mut self, thread: ThreadId, from: Epoch, held: LockSet) {
        if self.forgotten.is_some_and(|last| thread <= last) {
            return;
        }
        self.threads.entry(thread).or_default().change(from, held);
        if self.threads.len() > THREADS {
            self.forgotten = self.threads.pop_first().map(|(thread, _)| thread);
        }
    }

    /// The locks that a thread held in an epoch, if known.
    pub(super) fn at(&self, thread: ThreadId, epoch: Epoch) -> Option<LockSet> {
        if self.forgotten.is_some_and(|last| thread <= last) {
            return None;
        }
        let past = self.threads.get(&thread);
        past.map_or(Some(LockSet::EMPTY), |past| past.at(epoch, LockSet::EMPTY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_threads_are_forgotten_first() {
        let mut held = HeldBefore::default();
        let epoch = Epoch::from_record(1);
        let last = THREADS as u32 + 1;
        for thread in 1..=last {
            held.change(ThreadId(thread), epoch, LockSet::EMPTY);
        }
        assert_eq!(held.at(ThreadId(1), epoch), None);
        assert_eq!(held.at(ThreadId(last), epoch), Some(LockSet::EMPTY));
        assert_eq!(held.at(ThreadId(last + 1), epoch), Some(LockSet::EMPTY), "it never held any");
    }
}
