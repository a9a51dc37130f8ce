//! Which threads are in atomic blocks.
//!
//! Blocks nest, and only the outermost atomic one of a thread counts: the *top-level* block. It is *open* from the
//! first step that its thread takes in it until the thread leaves it. What a thread does before that step, no other
//! thread can notice, so a block that has been entered and not yet opened overlaps with nothing.

use crate::{Event, Op, RegionId, RegionKind, ThreadId};

/// The regions that each thread is in.
#[derive(Clone, Debug, Default)]
pub struct Nesting {
    threads: Vec<Nest>,
}

#[derive(Clone, Debug, Default)]
struct Nest {
    /// The regions that the thread is in, outermost first, and whether they are atomic.
    regions: Vec<(RegionId, bool)>,
    /// Steps in the top-level block.
    steps: u32,
}

/// Where a step is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Outside of every atomic block.
    Outside,
    /// The first step in a top-level block: it opens the block.
    Opens(RegionId),
    /// A later step in it.
    Inside(RegionId),
}

/// A top-level block that its thread has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The block.
    pub region: RegionId,
    /// How many steps the thread took in it.
    pub steps: u32,
}

impl Nesting {
    /// Forgets the execution before.
    pub fn clear(&mut self) {
        self.threads.clear();
    }

    fn nest(&mut self, thread: ThreadId) -> &mut Nest {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Nest::default);
        }
        &mut self.threads[thread.index()]
    }

    /// A thread enters a region: whether that begins a top-level block.
    pub fn enter(&mut self, thread: ThreadId, region: RegionId, kind: RegionKind) -> bool {
        let nest = self.nest(thread);
        let begins = kind == RegionKind::Atomic && nest.top_level().is_none();
        nest.regions.push((region, kind == RegionKind::Atomic));
        if begins {
            nest.steps = 0;
        }
        begins
    }

    /// A thread leaves the region that it entered last: the top-level block, if it was that.
    pub fn exit(&mut self, thread: ThreadId) -> Option<Ended> {
        let nest = self.nest(thread);
        let (region, atomic) = nest.regions.pop()?;
        (atomic && nest.top_level().is_none()).then_some(Ended { region, steps: nest.steps })
    }

    /// A thread takes a step.
    pub fn step(&mut self, thread: ThreadId) -> Position {
        let nest = self.nest(thread);
        match nest.top_level() {
            None => Position::Outside,
            Some(region) => {
                nest.steps += 1;
                if nest.steps == 1 { Position::Opens(region) } else { Position::Inside(region) }
            }
        }
    }

    /// Follows the regions of an event: the top-level block that it ends, if it ends one.
    pub fn observe(&mut self, event: &Event) -> Option<Ended> {
        if let Op::RegionEnter(region, kind) = event.op {
            self.enter(event.thread, region, kind);
        }
        matches!(event.op, Op::RegionExit(_)).then(|| self.exit(event.thread)).flatten()
    }

    /// The top-level block that a thread is in, open or not.
    pub fn block(&self, thread: ThreadId) -> Option<RegionId> {
        self.threads.get(thread.index())?.top_level()
    }

    /// The top-level block of a thread, if it is open.
    pub fn open(&self, thread: ThreadId) -> Option<RegionId> {
        let nest = self.threads.get(thread.index())?;
        nest.top_level().filter(|_| nest.steps > 0)
    }
}

impl Nest {
    fn top_level(&self) -> Option<RegionId> {
        self.regions.iter().find(|(_, atomic)| *atomic).map(|(region, _)| *region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: ThreadId = ThreadId(1);

    #[test]
    fn only_the_outermost_atomic_region_counts_and_its_first_step_opens_it() {
        let mut nesting = Nesting::default();
        let [a, b, d] = [RegionId(0), RegionId(1), RegionId(2)];
        assert!(!nesting.enter(T, d, RegionKind::Deterministic));
        assert_eq!(nesting.step(T), Position::Outside);
        assert!(nesting.enter(T, a, RegionKind::Atomic));
        assert_eq!((nesting.block(T), nesting.open(T)), (Some(a), None));
        assert_eq!(nesting.step(T), Position::Opens(a));
        assert!(!nesting.enter(T, b, RegionKind::Atomic));
        assert_eq!(nesting.step(T), Position::Inside(a));
        assert_eq!(nesting.exit(T), None);
        assert_eq!(nesting.exit(T), Some(Ended { region: a, steps: 2 }));
        assert_eq!((nesting.block(T), nesting.exit(T), nesting.exit(T)), (None, None, None));
    }
}
