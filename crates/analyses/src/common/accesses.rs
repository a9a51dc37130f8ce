//! What FastTrack remembers of the accesses to some bytes, and which of them a new access races with.
//!
//! Source: FastTrack (Flanagan and Freund, PLDI 2009), section 3: of the writes only the last is kept,
//! and of the reads only the last as long as they are ordered. Atomic accesses are kept beside plain
//! ones, the last one of each thread.
//!
//! **Guarantee**: finds a race exactly if the access races with one that is remembered. A forgotten access
//! is ordered before a remembered one, or a race with it has been found already.
//!
//! Cost: a comparison for an access in an epoch that has seen it; O(1) for most others; O(threads that
//! read) for a write after reads that are not ordered.

use selvedge_model::{Epoch, Role, Slot, VectorClock};

/// An access as an analysis remembers it. The default stands for no access, at [`Epoch::ZERO`], which is
/// before everything.
pub(crate) trait Mark: Copy + Default + PartialEq {
    /// When, and whose.
    fn epoch(&self) -> Epoch;
}

/// The history of some bytes.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Accesses<M> {
    write: M,
    reads: Reads<M>,
    atomics: Option<Box<Atomics<M>>>,
}

/// Plain reads since the last write that is ordered after them.
#[derive(Clone, PartialEq, Debug)]
enum Reads<M> {
    /// The last one; all earlier ones are ordered before it.
    Last(M),
    /// The last one of each thread, because some are unordered.
    // invariant: one for each slot, ascending.
    OfEach(Box<Marks<M>>),
}

impl<M: Default> Default for Reads<M> {
    fn default() -> Reads<M> {
        Reads::Last(M::default())
    }
}

/// The last access of each thread, by slot.
#[derive(Clone, PartialEq, Debug)]
struct Marks<M>(Vec<M>);

impl<M> Default for Marks<M> {
    fn default() -> Marks<M> {
        Marks(Vec::new())
    }
}

impl<M: Mark> Marks<M> {
    fn put(&mut self, mark: M) {
        match self.0.binary_search_by_key(&mark.epoch().slot(), |m| m.epoch().slot()) {
            Ok(i) => self.0[i] = mark,
            Err(i) => self.0.insert(i, mark),
        }
    }

    fn of(&self, slot: Slot) -> Option<&M> {
        let i = self.0.binary_search_by_key(&slot, |m| m.epoch().slot()).ok()?;
        Some(&self.0[i])
    }

    fn unordered(&self, clock: &VectorClock) -> Option<M> {
        self.0.iter().find(|m| !clock.contains(m.epoch())).copied()
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Atomics<M> {
    loads: Marks<M>,
    stores: Marks<M>,
}

impl<M> Default for Atomics<M> {
    fn default() -> Atomics<M> {
        Atomics { loads: Marks::default(), stores: Marks::default() }
    }
}

/// What a thread brings to an access.
#[derive(Clone, Copy)]
pub(crate) struct Visit<'a, M> {
    /// The access.
    pub(crate) mark: M,
    /// What is ordered before it.
    pub(crate) clock: &'a VectorClock,
}

/// Each takes in an access and returns an earlier one that it races with, and what that did.
impl<M: Mark> Accesses<M> {
    #[inline]
    pub(crate) fn on_read(&mut self, v: Visit<'_, M>) -> Option<(M, Role)> {
        let now = v.mark.epoch();
        if self.write.epoch() == now {
            return None;
        }
        match &mut self.reads {
            Reads::Last(mark) if mark.epoch() == now => return None,
            Reads::Last(mark) if v.clock.contains(mark.epoch()) => *mark = v.mark,
            Reads::Last(mark) => {
                let mut marks = Marks(vec![*mark]);
                marks.put(v.mark);
                self.reads = Reads::OfEach(Box::new(marks));
            }
            Reads::OfEach(marks) => {
                if marks.of(now.slot()).is_some_and(|m| m.epoch() == now) {
                    return None;
                }
                marks.put(v.mark);
            }
        }
        self.unordered_write(v.clock).or_else(|| self.unordered_atomic_store(v.clock))
    }

    #[inline]
    pub(crate) fn on_write(&mut self, v: Visit<'_, M>) -> Option<(M, Role)> {
        if self.write.epoch() == v.mark.epoch() {
            return None;
        }
        let seen = self.unordered(v);
        self.write = v.mark;
        // What was read before is ordered before this write, or has just been found to race.
        self.reads = Reads::default();
        self.atomics = None;
        seen
    }

    /// An access that a write would race with, and what that did.
    pub(crate) fn unordered(&self, v: Visit<'_, M>) -> Option<(M, Role)> {
        if self.write.epoch() == v.mark.epoch() {
            return None;
        }
        self.unordered_write(v.clock)
            .or_else(|| self.unordered_read(v.clock))
            .or_else(|| self.unordered_atomic_store(v.clock))
            .or_else(|| self.unordered_atomic_load(v.clock))
    }

    /// Whether the last plain access has the same mark, and is no read if this one writes.
    #[inline]
    pub(crate) fn repeats(&self, mark: &M, write: bool) -> bool {
        match &self.reads {
            Reads::Last(read) if read.epoch() == Epoch::ZERO => self.write == *mark,
            Reads::Last(read) => !write && read == mark,
            Reads::OfEach(_) => false,
        }
    }

    /// The thread that made the last access has made it again: its mark becomes another one, of a later epoch.
    pub(crate) fn renew(&mut self, slot: Slot, write: bool, renewed: impl Fn(M) -> M) {
        let is_own = |mark: &M| mark.epoch() != Epoch::ZERO && mark.epoch().slot() == slot;
        let written = Some(self.write).filter(is_own);
        if write {
            if let Some(mark) = written {
                self.write = renewed(mark);
                self.reads = Reads::default();
            }
            return;
        }
        let read = match &self.reads {
            Reads::Last(mark) => Some(*mark),
            Reads::OfEach(marks) => marks.of(slot).copied(),
        };
        let Some(mark) = read.filter(is_own).or(written).map(renewed) else { return };
        match &mut self.reads {
            Reads::Last(last) if last.epoch() == Epoch::ZERO || is_own(last) => *last = mark,
            Reads::Last(last) => {
                let mut marks = Marks(vec![*last]);
                marks.put(mark);
                self.reads = Reads::OfEach(Box::new(marks));
            }
            Reads::OfEach(marks) => marks.put(mark),
        }
    }

    pub(crate) fn on_atomic_load(&mut self, v: Visit<'_, M>) -> Option<(M, Role)> {
        let seen = self.unordered_write(v.clock);
        self.atomics.get_or_insert_default().loads.put(v.mark);
        seen
    }

    pub(crate) fn on_atomic_store(&mut self, v: Visit<'_, M>) -> Option<(M, Role)> {
        let seen = self.unordered_write(v.clock).or_else(|| self.unordered_read(v.clock));
        self.atomics.get_or_insert_default().stores.put(v.mark);
        seen
    }

    #[inline]
    fn unordered_write(&self, clock: &VectorClock) -> Option<(M, Role)> {
        (!clock.contains(self.write.epoch())).then_some((self.write, Role::Write))
    }

    #[inline]
    fn unordered_read(&self, clock: &VectorClock) -> Option<(M, Role)> {
        let mark = match &self.reads {
            Reads::Last(mark) => (!clock.contains(mark.epoch())).then_some(*mark),
            Reads::OfEach(marks) => marks.unordered(clock),
        };
        Some((mark?, Role::Read))
    }

    #[inline]
    fn unordered_atomic_store(&self, clock: &VectorClock) -> Option<(M, Role)> {
        Some((self.atomics.as_ref()?.stores.unordered(clock)?, Role::AtomicWrite))
    }

    fn unordered_atomic_load(&self, clock: &VectorClock) -> Option<(M, Role)> {
        Some((self.atomics.as_ref()?.loads.unordered(clock)?, Role::AtomicRead))
    }
}
