//! Which locks each thread holds, where it acquired them, and sets of locks as small numbers.
//!
//! Shared by every analysis that reasons about locks. Sets are interned: a set that recurs has one
//! [`LockSet`] number, and comparing two is comparing numbers.
//!
//! Cost: a look-up for an acquisition; a release of the lock acquired last only forgets that. Memory follows
//! the distinct sets, not the events.

use std::ops::Range;

use rustc_hash::FxHashMap;
use selvedge_model::{Event, Held, LockId, Mode, Op, ThreadId};

/// An interned list of held locks, outermost first. [`LockSet::EMPTY`] is the empty one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LockSet(u32);

impl LockSet {
    /// No locks.
    pub const EMPTY: LockSet = LockSet(0);
}

/// The locks of every thread.
#[derive(Debug)]
pub struct HeldLocks {
    threads: Vec<Vec<Acquisition>>,
    sets: Vec<Set>,
    locks: Vec<Held>,
    /// A set is what another one becomes by one more lock; so the way to it is its name.
    next: FxHashMap<(LockSet, Held), LockSet>,
}

#[derive(Clone, Debug)]
struct Set {
    /// Where in `locks` it is.
    at: Range<u32>,
    /// What it became the last time a lock was added: nearly always what it becomes the next time.
    last: Option<(Held, LockSet)>,
}

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug)]
struct Acquisition {
    held: Held,
    /// What the thread held before, and since.
    // invariant: `before` is `after` of the acquisition below it, or empty.
    before: LockSet,
    after: LockSet,
}

impl Default for HeldLocks {
    fn default() -> HeldLocks {
        HeldLocks {
            threads: Vec::new(),
            sets: vec![Set { at: 0..0, last: None }],
            locks: Vec::new(),
            next: FxHashMap::default(),
        }
    }
}

impl HeldLocks {
    /// Takes in an event; only acquisitions and releases matter.
    #[inline]
    pub fn on_event(&mut self, event: &Event) {
        match event.op {
            Op::Acquire(lock, mode) => {
                self.acquire(event.thread, Held { lock, mode, site: event.site });
            }
            Op::Release(lock, mode) => self.release(event.thread, lock, mode),
            accesses!()
            | Op::Fence(_)
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => {}
        }
    }

    /// The locks that `thread` holds, as a number.
    #[inline]
    pub fn set(&self, thread: ThreadId) -> LockSet {
        self.stack(thread).last().map_or(LockSet::EMPTY, |a| a.after)
    }

    /// The locks of a set, outermost first, each once: a re-acquired lock stands where it was first
    /// acquired.
    #[inline]
    pub fn locks(&self, set: LockSet) -> &[Held] {
        let Range { start, end } = self.sets[set.0 as usize].at;
        &self.locks[start as usize..end as usize]
    }

    /// How often `thread` has acquired `lock` without releasing it, in any mode.
    pub fn depth(&self, thread: ThreadId, lock: LockId) -> usize {
        self.stack(thread).iter().filter(|a| a.held.lock == lock).count()
    }

    /// Whether `thread` holds `lock`, in any mode.
    pub fn holds(&self, thread: ThreadId, lock: LockId) -> bool {
        self.stack(thread).iter().any(|a| a.held.lock == lock)
    }

    /// Forgets all locks that threads hold, and the numbers of all sets.
    pub fn clear(&mut self) {
        self.threads.iter_mut().for_each(Vec::clear);
        self.sets.truncate(1);
        self.sets[0].last = None;
        self.locks.clear();
        self.next.clear();
    }

    fn stack(&self, thread: ThreadId) -> &[Acquisition] {
        self.threads.get(thread.index()).map_or(&[], Vec::as_slice)
    }

    fn acquire(&mut self, thread: ThreadId, held: Held) {
        let before = self.set(thread);
        let after = self.with(before, held);
        if thread.index() >= self.threads.len() {
            self.threads.resize_with(thread.index() + 1, Vec::new);
        }
        self.threads[thread.index()].push(Acquisition { held, before, after });
    }

    fn release(&mut self, thread: ThreadId, lock: LockId, mode: Mode) {
        let Some(stack) = self.threads.get_mut(thread.index()) else { return };
        let released = |a: &Acquisition| a.held.lock == lock && a.held.mode == mode;
        let Some(i) = stack.iter().rposition(released) else { return };
        let mut set = stack.remove(i).before;
        // What was acquired since is now held without it.
        for j in i..self.threads[thread.index()].len() {
            let held = self.threads[thread.index()][j].held;
            let (before, after) = (set, self.with(set, held));
            self.threads[thread.index()][j] = Acquisition { held, before, after };
            set = after;
        }
    }

    /// The set with one more lock, which is the same if it has been acquired in this mode already.
    fn with(&mut self, set: LockSet, held: Held) -> LockSet {
        match self.sets[set.0 as usize].last {
            Some((last, next)) if last == held => next,
            _ => {
                let next = self.look_up(set, held);
                self.sets[set.0 as usize].last = Some((held, next));
                next
            }
        }
    }

    fn look_up(&mut self, set: LockSet, held: Held) -> LockSet {
        if self.locks(set).iter().any(|h| h.lock == held.lock && h.mode == held.mode) {
            return set;
        }
        if let Some(&known) = self.next.get(&(set, held)) {
            return known;
        }
        let number = LockSet(self.sets.len() as u32);
        let Range { start, end } = self.sets[set.0 as usize].at;
        let first = self.locks.len() as u32;
        self.locks.extend_from_within(start as usize..end as usize);
        self.locks.push(held);
        self.sets.push(Set { at: first..self.locks.len() as u32, last: None });
        self.next.insert((set, held), number);
        number
    }
}

/// Whether some lock of `a` and `b` keeps the two holders from running at the same time.
pub fn exclude_each_other(a: &[Held], b: &[Held]) -> bool {
    a.iter().any(|x| b.iter().any(|y| x.lock == y.lock && x.mode.excludes(y.mode)))
}

/// Whether an access of a kind that is `write` is protected by holding a lock in `mode`: writing
/// under a read lock is not.
pub fn protects(mode: Mode, write: bool) -> bool {
    mode == Mode::Exclusive || !write
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_model::SiteId;

    fn event(op: Op) -> Event {
        Event { thread: ThreadId(0), site: SiteId(7), op }
    }

    #[test]
    fn a_recursive_lock_is_held_until_its_last_release() {
        let mut held = HeldLocks::default();
        let lock = LockId(3);
        let acquire = event(Op::Acquire(lock, Mode::Exclusive));
        let release = event(Op::Release(lock, Mode::Exclusive));
        held.on_event(&acquire);
        let once = held.set(ThreadId(0));
        held.on_event(&acquire);
        assert_eq!(held.set(ThreadId(0)), once);
        held.on_event(&release);
        assert!(held.holds(ThreadId(0), lock));
        held.on_event(&release);
        assert_eq!(held.set(ThreadId(0)), LockSet::EMPTY);
    }

    #[test]
    fn locks_may_be_released_in_any_order() {
        let mut held = HeldLocks::default();
        for lock in [1, 2, 3] {
            held.on_event(&event(Op::Acquire(LockId(lock), Mode::Exclusive)));
        }
        held.on_event(&event(Op::Release(LockId(1), Mode::Exclusive)));
        let locks: Vec<_> = held.locks(held.set(ThreadId(0))).iter().map(|h| h.lock.0).collect();
        assert_eq!(locks, [2, 3]);
    }
}
