//! Logical time: epochs and vector clocks, and the recycling of their components.
//!
//! A vector clock has one component per *slot*. A thread owns one slot while it lives; [`Slots`] hands
//! slots out and takes them back, so that a program which starts a million short threads needs only
//! as many components as it has threads at a time.
//!
//! Guarantee: with the slots of [`Slots::take`], `epoch ∈ clock` never answers *no* for an event that
//! happened before. It answers *yes* for an unordered event only in the two cases named there and at
//! [`MAX_CLOCK`]; a race detector built on it may then miss, and never raises a false alarm.

use std::fmt;

use crate::ThreadId;

/// One component of a vector clock: how often its owner has released something.
pub type Clock = u64;

/// Components saturate here, at 2^48 − 1. A thread that has come this far cannot be told apart from
/// its own past any more, so later unordered events of it look ordered.
pub const MAX_CLOCK: Clock = (1 << 48) - 1;

/// How many slots there are. Should more threads than this live at one time, the ones in excess share
/// the last slot and look ordered among each other.
pub const MAX_SLOTS: usize = 1 << 16;

/// Ended threads that were not joined keep their slot until this many slots are in use.
const RECYCLE_UNJOINED_ABOVE: usize = 1 << 10;

/// Index of a component.
pub type Slot = u16;

/// A point in the life of one thread: slot and clock in one word, compared with one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch before everything: contained in every clock.
    pub const ZERO: Epoch = Epoch(0);

    /// The point `clock` of the owner of `slot`.
    #[inline]
    pub fn new(slot: Slot, clock: Clock) -> Epoch {
        debug_assert!(clock <= MAX_CLOCK);
        Epoch(u64::from(slot) << 48 | clock)
    }

    /// Whose point this is.
    #[inline]
    pub fn slot(self) -> Slot {
        (self.0 >> 48) as Slot
    }

    /// Which point.
    #[inline]
    pub fn clock(self) -> Clock {
        self.0 & MAX_CLOCK
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.clock(), self.slot())
    }
}

/// What a thread, lock or other object knows of every thread's progress. Missing components are zero.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct VectorClock(Vec<Clock>);

impl VectorClock {
    /// The clock that knows nothing.
    pub const fn new() -> VectorClock {
        VectorClock(Vec::new())
    }

    /// The component of `slot`.
    #[inline]
    pub fn get(&self, slot: Slot) -> Clock {
        self.0.get(usize::from(slot)).copied().unwrap_or(0)
    }

    /// Sets the component of `slot`.
    pub fn set(&mut self, slot: Slot, clock: Clock) {
        let i = usize::from(slot);
        if i >= self.0.len() {
            self.0.resize(i + 1, 0);
        }
        self.0[i] = clock.min(MAX_CLOCK);
    }

    /// Advances the component of `slot` by one, up to [`MAX_CLOCK`].
    pub fn tick(&mut self, slot: Slot) {
        self.set(slot, self.get(slot) + 1);
    }

    /// The epoch of `slot` in this clock.
    #[inline]
    pub fn epoch(&self, slot: Slot) -> Epoch {
        Epoch::new(slot, self.get(slot))
    }

    /// Whether the event at `epoch` is known here, that is, happened before.
    #[inline]
    pub fn contains(&self, epoch: Epoch) -> bool {
        epoch.clock() <= self.get(epoch.slot())
    }

    /// Whether everything known to `other` is known here.
    pub fn contains_all(&self, other: &VectorClock) -> bool {
        other.iter().all(|(slot, clock)| clock <= self.get(slot))
    }

    /// Learns everything known to `other`.
    pub fn join(&mut self, other: &VectorClock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, &theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(theirs);
        }
    }

    /// Becomes a copy of `other`, keeping the allocation.
    pub fn assign(&mut self, other: &VectorClock) {
        self.0.clone_from(&other.0);
    }

    /// Forgets everything, keeping the allocation.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&c| c == 0)
    }

    /// The components that are not zero.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, Clock)> + '_ {
        self.0.iter().enumerate().filter(|&(_, &c)| c != 0).map(|(i, &c)| (i as Slot, c))
    }
}

impl fmt::Debug for VectorClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Hands out slots to threads and takes them back.
#[derive(Debug, Default)]
pub struct Slots {
    /// For each slot its owners so far, each with the clock at which its ownership began.
    // invariant: clocks ascend within a slot.
    owners: Vec<Vec<(Clock, ThreadId)>>,
    /// Lists of owners of another time, whose memory the next ones use.
    // invariant: all empty.
    spare: Vec<Vec<(Clock, ThreadId)>>,
    /// Slots of ended threads with the last clock of the owner, longest ended first.
    retired: Vec<(Slot, Clock)>,
}

impl Slots {
    /// A slot for a new thread, and the clock at which the thread starts in it. `known` is what the
    /// thread starts out knowing: the clock of its forker, if it has one.
    ///
    /// A retired slot is taken when its last owner's end is known to the newcomer: then its events
    /// are ordered before everything the newcomer does, and sharing the slot confuses nothing.
    /// Failing that, once more than a thousand slots are in use, the slot that retired first is taken
    /// nevertheless: races between that ended thread and what comes after the newcomer are missed.
    pub fn take(&mut self, thread: ThreadId, known: Option<&VectorClock>) -> (Slot, Clock) {
        let exact = self
            .retired
            .iter()
            .position(|&(slot, last)| known.is_some_and(|k| last <= k.get(slot)));
        let recycled = exact.or_else(|| {
            (self.owners.len() >= RECYCLE_UNJOINED_ABOVE && !self.retired.is_empty()).then_some(0)
        });
        let (slot, first) = match recycled {
            Some(i) => {
                let (slot, last) = self.retired.remove(i);
                (slot, (last + 1).min(MAX_CLOCK))
            }
            None if self.owners.len() < MAX_SLOTS => {
                self.owners.push(self.spare.pop().unwrap_or_default());
                ((self.owners.len() - 1) as Slot, 1)
            }
            None => {
                let slot = (MAX_SLOTS - 1) as Slot;
                let begun = self.owners[usize::from(slot)].last().map_or(0, |&(clock, _)| clock);
                (slot, (begun + 1).min(MAX_CLOCK))
            }
        };
        self.owners[usize::from(slot)].push((first, thread));
        (slot, first)
    }

    /// Takes back the slot of a thread that has ended with its component at `last`.
    pub fn retire(&mut self, slot: Slot, last: Clock) {
        self.retired.push((slot, last));
    }

    /// The thread that was at `epoch`.
    pub fn owner(&self, epoch: Epoch) -> Option<ThreadId> {
        let owners = self.owners.get(usize::from(epoch.slot()))?;
        let next = owners.partition_point(|&(first, _)| first <= epoch.clock());
        Some(owners[next.checked_sub(1)?].1)
    }

    /// Takes all slots away from their threads.
    pub fn clear(&mut self) {
        for mut owners in self.owners.drain(..) {
            owners.clear();
            self.spare.push(owners);
        }
        self.retired.clear();
    }

    /// How many slots were ever in use at one time.
    pub fn in_use(&self) -> usize {
        self.owners.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(components: &[Clock]) -> VectorClock {
        VectorClock(components.to_vec())
    }

    #[test]
    fn join_is_the_pointwise_maximum() {
        let mut a = clock(&[3, 0, 7]);
        a.join(&clock(&[1, 5]));
        assert_eq!(a, clock(&[3, 5, 7]));
        assert!(a.contains_all(&clock(&[3, 5])));
        assert!(!a.contains_all(&clock(&[0, 0, 0, 1])));
    }

    #[test]
    fn epochs_keep_slot_and_clock_apart() {
        let e = Epoch::new(u16::MAX, MAX_CLOCK);
        assert_eq!((e.slot(), e.clock()), (u16::MAX, MAX_CLOCK));
        assert!(VectorClock::new().contains(Epoch::ZERO));
        assert!(!VectorClock::new().contains(Epoch::new(0, 1)));
    }

    #[test]
    fn a_clock_saturates_and_then_everything_looks_ordered() {
        let mut c = clock(&[MAX_CLOCK - 1]);
        c.tick(0);
        let before = c.epoch(0);
        c.tick(0);
        assert_eq!(c.epoch(0), before);
        assert!(c.contains(before));
    }

    #[test]
    fn a_joined_threads_slot_is_taken_again_by_a_thread_that_knows_its_end() {
        let mut slots = Slots::default();
        let (main, _) = slots.take(ThreadId(0), None);
        let (worker, first) = slots.take(ThreadId(1), Some(&clock(&[1])));
        slots.retire(worker, first + 4);

        let ignorant = clock(&[2, first + 3]);
        let (other, _) = slots.take(ThreadId(2), Some(&ignorant));
        assert_ne!(other, worker, "the forker does not know of the end yet");

        let joined = clock(&[2, first + 4]);
        let (again, start) = slots.take(ThreadId(3), Some(&joined));
        assert_eq!((again, start), (worker, first + 5));
        assert_eq!(slots.owner(Epoch::new(worker, first + 4)), Some(ThreadId(1)));
        assert_eq!(slots.owner(Epoch::new(worker, start)), Some(ThreadId(3)));
        assert_eq!(slots.owner(Epoch::new(main, 1)), Some(ThreadId(0)));
    }

    #[test]
    fn a_million_joined_threads_need_two_slots() {
        let mut slots = Slots::default();
        let (main, first) = slots.take(ThreadId(0), None);
        let mut known = VectorClock::new();
        known.set(main, first);
        for t in 1..1_000_000 {
            let (slot, clock) = slots.take(ThreadId(t), Some(&known));
            known.set(slot, clock);
            slots.retire(slot, clock);
        }
        assert_eq!(slots.in_use(), 2);
    }

    #[test]
    fn more_threads_than_slots_share_the_last_one() {
        let mut slots = Slots::default();
        for t in 0..=(MAX_SLOTS as u32 + 5) {
            slots.take(ThreadId(t), None);
        }
        assert_eq!(slots.in_use(), MAX_SLOTS);
    }
}
