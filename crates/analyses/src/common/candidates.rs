//! Sets of locks that were held at every access to some memory so far, as small numbers.
//!
//! Cost: a look-up for a refinement that was made before. Memory follows the distinct sets.

use rustc_hash::FxHashMap;
use selvedge_model::LockId;

use super::held::{HeldLocks, LockSet, protects};

/// An interned set of candidate locks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Candidates(u32);

impl Candidates {
    /// No lock.
    pub(crate) const NONE: Candidates = Candidates(0);
}

/// The sets of candidate locks, and the refinements made before.
#[derive(Debug)]
pub(crate) struct CandidateSets {
    // invariant: the locks of a set ascend, and set 0 is empty.
    sets: Vec<Box<[LockId]>>,
    numbers: FxHashMap<Box<[LockId]>, Candidates>,
    refined: FxHashMap<(Option<Candidates>, LockSet, bool), Candidates>,
}

impl Default for CandidateSets {
    fn default() -> CandidateSets {
        CandidateSets {
            sets: vec![Box::default()],
            numbers: FxHashMap::from_iter([(Box::default(), Candidates::NONE)]),
            refined: FxHashMap::default(),
        }
    }
}

impl CandidateSets {
    pub(crate) fn clear(&mut self) {
        self.sets.truncate(1);
        self.numbers.retain(|_, &mut number| number == Candidates::NONE);
        self.refined.clear();
    }

    /// The locks of `from` that protect an access under the locks of `set`; `None` stands for all locks.
    pub(crate) fn refine(
        &mut self,
        from: Option<Candidates>,
        set: LockSet,
        write: bool,
        held: &HeldLocks,
    ) -> Candidates {
        if from == Some(Candidates::NONE) || set == LockSet::EMPTY {
            return Candidates::NONE;
        }
        if let Some(&known) = self.refined.get(&(from, set, write)) {
            return known;
        }
        let candidate = |lock| from.is_none_or(|c| self.sets[c.0 as usize].contains(lock));
        let mut left: Vec<LockId> = held
            .locks(set)
            .iter()
            .filter(|h| protects(h.mode, write) && candidate(&h.lock))
            .map(|h| h.lock)
            .collect();
        left.sort_unstable();
        left.dedup();
        let refined = self.number(left);
        self.refined.insert((from, set, write), refined);
        refined
    }

    /// The locks of a set, ascending.
    pub(crate) fn locks(&self, set: Candidates) -> &[LockId] {
        &self.sets[set.0 as usize]
    }

    /// The number of a set.
    // The locks ascend.
    pub(crate) fn number(&mut self, locks: Vec<LockId>) -> Candidates {
        let locks = locks.into_boxed_slice();
        if let Some(&number) = self.numbers.get(&locks) {
            return number;
        }
        let number = Candidates(self.sets.len() as u32);
        self.sets.push(locks.clone());
        self.numbers.insert(locks, number);
        number
    }
}
