//! AtomFuzzer: makes atomicity violations happen, without a prediction.
//!
//! Source: Park and Sen, *Randomized active atomicity violation detection in concurrent programs*, FSE
//! 2008; Park, *Active testing*, section 4.3, algorithms 4.7 and 4.8. Inside an atomic block, a thread
//! that is about to acquire a lock which it has already acquired and released in the block is paused.
//! If another thread then acquires that lock, the block is not causally atomic: the other's critical
//! section happens after the first of the block and before the second.
//!
//! Deviations: the paper only looks at locks. Here an atomic block that comes to an atomic location or
//! plain variable a second time is paused in the same way, and another thread's conflicting access in
//! between is the violation; whether the pair really is not serializable (it is if both the block's
//! accesses and the other one only read, for example) is decided by the kinds of the three accesses. A
//! lock taken in shared mode by all three is no violation.
//!
//! [`AtomFuzzer::aimed`] takes a prediction instead of blocks, and looks for that pair of steps alone.
//!
//! Guarantee: [`AtomFuzzer::violations`] only has triples that happened: one thread's step between two
//! steps of another thread's atomic block, all on one object, not equivalent to any serial order of the
//! three. May miss violations that involve several objects.
//!
//! Cost: O(n + objects of the block) per choice.

use selvedge_model::{Event, Mode, Op, RegionId, RegionKind, SiteId, ThreadId};

use crate::active::{Active, Verdict};
use crate::{Choice, Pending, Step, Strategy};

/// A step of another thread between two of an atomic block, on one object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Violation {
    /// Whose block.
    pub victim: ThreadId,
    /// Who came in between.
    pub intruder: ThreadId,
    /// First and second step of the block, and the step in between.
    pub sites: [SiteId; 3],
}

/// What a step is about and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Touch {
    object: (u8, u64),
    writes: bool,
}

#[derive(Clone, Debug)]
struct Earlier {
    touch: Touch,
    site: SiteId,
    /// Another thread's step since then that conflicts with it.
    intruder: Option<(ThreadId, SiteId, bool)>,
}

#[derive(Clone, Debug, Default)]
struct Block {
    /// The atomic regions that the thread is in, innermost last.
    regions: Vec<RegionId>,
    touched: Vec<Earlier>,
}

/// Steers towards violations of atomic blocks.
#[derive(Clone, Debug)]
pub struct AtomFuzzer {
    active: Active,
    /// Only this pair of steps, whether in a block or not, and only this step in between.
    aim: Option<([SiteId; 2], Option<SiteId>)>,
    blocks: Vec<Block>,
    violations: Vec<Violation>,
}

impl AtomFuzzer {
    /// For `limit` executions.
    pub fn new(seed: u64, limit: u64) -> AtomFuzzer {
        let active = Active::new(seed, limit);
        AtomFuzzer { active, aim: None, blocks: Vec::new(), violations: Vec::new() }
    }

    /// Aims at a predicted violation: two steps of one thread on an object, at these sites, that no
    /// block need contain, and a step of another thread in between, at `between` if it is given.
    pub fn aimed(pair: [SiteId; 2], between: Option<SiteId>, seed: u64, limit: u64) -> AtomFuzzer {
        AtomFuzzer { aim: Some((pair, between)), ..AtomFuzzer::new(seed, limit) }
    }

    /// The violations of this execution.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// How many threads were paused in vain in this execution.
    pub fn thrashes(&self) -> u64 {
        self.active.thrashes()
    }

    /// A step of `thread` comes after those that other threads' blocks have taken.
    fn intrude(&mut self, thread: ThreadId, site: SiteId, mine: Touch) {
        for (i, block) in self.blocks.iter_mut().enumerate() {
            for earlier in block.touched.iter_mut().filter(|_| i != thread.index()) {
                if earlier.touch.object == mine.object && (earlier.touch.writes || mine.writes) {
                    earlier.intruder.get_or_insert((thread, site, mine.writes));
                }
            }
        }
    }

    fn know(&mut self, threads: usize) {
        if self.blocks.len() < threads {
            self.blocks.resize_with(threads, Block::default);
        }
    }
}

fn touch(step: Step) -> Option<Touch> {
    let touch = |kind, id, writes| Some(Touch { object: (kind, id), writes });
    match step {
        Step::Do(Op::Acquire(l, mode)) | Step::TryAcquire(l, mode) => {
            touch(1, u64::from(l.0), mode == Mode::Exclusive)
        }
        Step::Do(Op::Read(a)) => touch(0, a.addr, false),
        Step::Do(Op::Write(a)) => touch(0, a.addr, true),
        Step::Do(Op::Atomic(a, op)) => touch(0, a.addr, op.writes()),
        _ => None,
    }
}

/// Whether a step `between`, given by whether it writes, keeps `first` and `second` from being one: not
/// if it commutes with either.
fn violates(first: Touch, between: bool, second: Touch) -> bool {
    between || first.writes && second.writes
}

impl Strategy for AtomFuzzer {
    fn begin(&mut self) -> bool {
        self.blocks.clear();
        self.violations.clear();
        self.active.begin()
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.know(choice.pending.len());
        let AtomFuzzer { active, aim, blocks, .. } = self;
        let open = |t: ThreadId, next: &Pending| {
            let object = touch(next.step)?.object;
            let second = aim.is_none_or(|(pair, _)| next.site == pair[1]);
            let block = &blocks[t.index()];
            let inside = aim.is_some() || !block.regions.is_empty();
            block.touched.iter().find(|e| inside && second && e.touch.object == object)
        };
        active.choose(
            choice,
            |_| false,
            |thread, paused, _| {
                let next = choice.next(thread);
                let Some(mine) = touch(next.step) else { return Verdict::Irrelevant };
                let wanted = aim.is_none_or(|(_, between)| between.is_none_or(|b| b == next.site));
                // The thread comes between two steps of a paused one's block: let it.
                let victim = paused.iter().any(|&p| {
                    let theirs = choice.next(p);
                    wanted
                        && touch(theirs.step).is_some_and(|second| {
                            second.object == mine.object
                                && open(p, theirs)
                                    .is_some_and(|first| violates(first.touch, mine.writes, second))
                        })
                });
                if victim {
                    return Verdict::Irrelevant;
                }
                match open(thread, next) {
                    Some(first) if first.intruder.is_none() => Verdict::Partial,
                    _ => Verdict::Irrelevant,
                }
            },
        )
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.active.forced(thread);
        self.know(pending.len());
        let Pending { site, step, .. } = pending[thread.index()];
        let Some(mine) = touch(step) else { return };
        if self.aim.is_none_or(|(_, between)| between.is_none_or(|b| b == site)) {
            self.intrude(thread, site, mine);
        }
        let block = &mut self.blocks[thread.index()];
        let (begins, ends) = match self.aim {
            Some((pair, _)) => (site == pair[0], site == pair[1]),
            None => (!block.regions.is_empty(), !block.regions.is_empty()),
        };
        let at = block.touched.iter().position(|e| e.touch.object == mine.object);
        if ends
            && let Some(first) = at.map(|i| &block.touched[i])
            && let Some((intruder, between, writes)) = first.intruder
            && violates(first.touch, writes, mine)
        {
            let violation =
                Violation { victim: thread, intruder, sites: [first.site, between, site] };
            if !self.violations.contains(&violation) {
                self.violations.push(violation);
            }
        }
        let earlier = Earlier { touch: mine, site, intruder: None };
        match at {
            Some(i) if begins => block.touched[i] = earlier,
            Some(i) if ends => drop(block.touched.swap_remove(i)),
            None if begins => block.touched.push(earlier),
            _ => {}
        }
    }

    fn observe(&mut self, event: &Event) {
        let block = event.thread.index();
        match event.op {
            Op::RegionEnter(region, RegionKind::Atomic) => {
                self.know(block + 1);
                self.blocks[block].regions.push(region);
            }
            Op::RegionExit(region) => {
                self.know(block + 1);
                let block = &mut self.blocks[block];
                if block.regions.last() == Some(&region) {
                    block.regions.pop();
                }
                if block.regions.is_empty() && self.aim.is_none() {
                    block.touched.clear();
                }
            }
            _ => {}
        }
    }
}
