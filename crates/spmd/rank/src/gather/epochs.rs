//! Wrong use of windows: accesses outside of an access epoch or beyond the window, and windows that are freed in an
//! epoch (MPI 3.1, section 11.5).
//!
//! *Guarantee*: an access is called wrong only if its rank has not opened an epoch by any of the ways that MPI has, or
//! if its bytes are not in the target's part of the window. A fence without a later one that says that no access
//! follows keeps its epoch open, whatever comes in between, so some wrong accesses are missed. Cost: a look-up or two
//! for each call.

use super::{Gather, Lock};
use crate::hash::{Map, Set};

/// What is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wrong {
    /// An access without an access epoch.
    NoEpoch,
    /// An access to memory that is not in the target's part of the window.
    BeyondWindow,
    /// The window is freed while an access epoch is open.
    FreedInEpoch,
}

impl Wrong {
    /// Its name in a line for the host.
    pub fn name(self) -> &'static str {
        match self {
            Wrong::NoEpoch => "no-epoch",
            Wrong::BeyondWindow => "beyond-window",
            Wrong::FreedInEpoch => "freed-in-epoch",
        }
    }
}

/// The access epochs of a rank that are not locks, and what was told already.
#[derive(Debug, Default)]
pub struct Epochs {
    /// Windows with a fence after which accesses may follow.
    fenced: Set<u64>,
    /// Windows with `MPI_Win_start`, and the targets.
    started: Map<u64, Vec<u32>>,
    told: Set<(u64, Wrong)>,
}

impl Epochs {
    /// A fence of a window; `opens`: accesses may follow.
    pub fn fence(&mut self, window: u64, opens: bool) {
        match opens {
            true => self.fenced.insert(window),
            false => self.fenced.remove(&window),
        };
    }

    /// `MPI_Win_start`.
    pub fn start(&mut self, window: u64, targets: &[u32]) {
        self.started.insert(window, targets.to_vec());
    }

    /// `MPI_Win_complete`.
    pub fn complete(&mut self, window: u64) {
        self.started.remove(&window);
    }

    /// The window is no more.
    pub fn close(&mut self, window: u64) {
        self.fenced.remove(&window);
        self.started.remove(&window);
    }

    /// Whether this is the first time that a place does something wrong.
    pub fn is_new(&mut self, pc: u64, wrong: Wrong) -> bool {
        self.told.insert((pc, wrong))
    }
}

impl Gather {
    /// What is wrong with an access to the bytes from `start` to `end` of a target's part of a window, which has
    /// `limit` bytes if that is known.
    pub fn wrong_access(
        &self,
        window: u64,
        target: u32,
        (start, end): (i64, i64),
        limit: Option<i64>,
    ) -> Option<Wrong> {
        let is_locked = |lock: &Lock| {
            lock.window == window && lock.target.is_none_or(|locked| locked == target)
        };
        let started = self.epochs.started.get(&window);
        let has_epoch = self.epochs.fenced.contains(&window)
            || started.is_some_and(|targets| targets.contains(&target))
            || self.locks().iter().any(is_locked);
        if !has_epoch {
            return Some(Wrong::NoEpoch);
        }
        let is_beyond = |limit| start < end && (start < 0 || end > limit);
        limit.is_some_and(is_beyond).then_some(Wrong::BeyondWindow)
    }

    /// Whether a window has an access epoch that must be ended before it is freed.
    pub fn is_in_epoch(&self, window: u64) -> bool {
        self.epochs.started.contains_key(&window)
            || self.locks().iter().any(|lock| lock.window == window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::Now;

    const NOW: Now<'static> = Now { slot: 0, tick: 1, releases: 1, clock: &[1] };
    const W: u64 = 7;

    fn wrong(gather: &Gather, target: u32) -> Option<Wrong> {
        gather.wrong_access(W, target, (0, 4), Some(8))
    }

    #[test]
    fn every_way_to_open_an_epoch_opens_one() {
        let mut gather = Gather::new(0);
        assert_eq!(wrong(&gather, 1), Some(Wrong::NoEpoch));
        gather.epochs.fence(W, true);
        assert_eq!((wrong(&gather, 1), gather.is_in_epoch(W)), (None, false));
        gather.epochs.fence(W, false);
        assert_eq!(wrong(&gather, 1), Some(Wrong::NoEpoch));
        gather.start(NOW, W, &[1]);
        assert_eq!((wrong(&gather, 1), wrong(&gather, 2)), (None, Some(Wrong::NoEpoch)));
        assert!(gather.is_in_epoch(W));
        gather.complete_epoch(NOW, W, &[1]);
        assert_eq!((wrong(&gather, 1), gather.is_in_epoch(W)), (Some(Wrong::NoEpoch), false));
        gather.lock(NOW, W, Some(1), true);
        assert_eq!((wrong(&gather, 1), wrong(&gather, 2)), (None, Some(Wrong::NoEpoch)));
        gather.unlock(NOW, W, Some(1));
        gather.lock(NOW, W, None, false);
        assert_eq!(
            (wrong(&gather, 1), wrong(&gather, 2), gather.is_in_epoch(W)),
            (None, None, true)
        );
        gather.unlock(NOW, W, None);
        assert_eq!((wrong(&gather, 1), gather.is_in_epoch(W)), (Some(Wrong::NoEpoch), false));
    }

    #[test]
    fn an_access_must_lie_in_the_window() {
        let mut gather = Gather::new(0);
        gather.epochs.fence(W, true);
        let wrong = |bytes, limit| gather.wrong_access(W, 1, bytes, limit);
        assert_eq!(wrong((4, 8), Some(8)), None);
        assert_eq!(wrong((5, 9), Some(8)), Some(Wrong::BeyondWindow));
        assert_eq!(wrong((-4, 0), Some(8)), Some(Wrong::BeyondWindow));
        assert_eq!(wrong((9, 9), Some(8)), None, "no byte");
        assert_eq!(wrong((5, 9), None), None, "its size is not known");
    }
}
