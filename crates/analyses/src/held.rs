//! Which locks each thread holds, where it acquired them, and sets of locks as small numbers.
//!
//! Shared by every analysis that reasons about locks. Sets are interned: a set that recurs has one
//! [`LockSet`] number, and comparing two is comparing numbers.

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
    threads: Vec<Holding>,
    sets: Vec<Box<[Held]>>,
    numbers: FxHashMap<Box<[Held]>, LockSet>,
}

#[derive(Debug, Default)]
struct Holding {
    // invariant: `set` is the number of `stack` without the re-acquisitions.
    stack: Vec<Held>,
    set: LockSet,
}

impl Default for HeldLocks {
    fn default() -> HeldLocks {
        let mut held =
            HeldLocks { threads: Vec::new(), sets: Vec::new(), numbers: FxHashMap::default() };
        held.number(Box::default());
        held
    }
}

impl HeldLocks {
    /// Takes in an event; only acquisitions and releases matter.
    pub fn on_event(&mut self, event: &Event) {
        match event.op {
            Op::Acquire(lock, mode) => {
                self.change(event.thread, |stack| {
                    stack.push(Held { lock, mode, site: event.site });
                });
            }
            Op::Release(lock, mode) => self.change(event.thread, |stack| {
                if let Some(i) = stack.iter().rposition(|h| h.lock == lock && h.mode == mode) {
                    stack.remove(i);
                }
            }),
            _ => {}
        }
    }

    /// The locks that `thread` holds, as a number.
    #[inline]
    pub fn set(&self, thread: ThreadId) -> LockSet {
        self.threads.get(thread.index()).map_or(LockSet::EMPTY, |t| t.set)
    }

    /// The locks of a set, outermost first, each once: a re-acquired lock stands where it was first
    /// acquired.
    pub fn locks(&self, set: LockSet) -> &[Held] {
        &self.sets[set.0 as usize]
    }

    /// How often `thread` has acquired `lock` without releasing it, in any mode.
    pub fn depth(&self, thread: ThreadId, lock: LockId) -> usize {
        let stack = self.threads.get(thread.index()).map_or(&[][..], |t| &t.stack);
        stack.iter().filter(|h| h.lock == lock).count()
    }

    /// Whether `thread` holds `lock`, in any mode.
    pub fn holds(&self, thread: ThreadId, lock: LockId) -> bool {
        self.locks(self.set(thread)).iter().any(|h| h.lock == lock)
    }

    fn change(&mut self, thread: ThreadId, change: impl FnOnce(&mut Vec<Held>)) {
        if thread.index() >= self.threads.len() {
            self.threads.resize_with(thread.index() + 1, Holding::default);
        }
        let stack = &mut self.threads[thread.index()].stack;
        change(stack);
        let mut set: Vec<Held> = Vec::with_capacity(stack.len());
        for held in stack.iter() {
            if !set.iter().any(|h| h.lock == held.lock && h.mode == held.mode) {
                set.push(*held);
            }
        }
        self.threads[thread.index()].set = self.number(set.into());
    }

    fn number(&mut self, set: Box<[Held]>) -> LockSet {
        if let Some(&number) = self.numbers.get(&set) {
            return number;
        }
        let number = LockSet(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
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
