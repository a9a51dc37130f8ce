//! AtomFuzzer: makes atomicity violations happen, without a prediction.
//!
//! Source: Park and Sen, *Randomized active atomicity violation detection in concurrent programs*, FSE
//! 2008; Park, *Active testing*, section 4.3, algorithms 4.7 and 4.8. Inside an atomic block, a thread
//! that is about to acquire a lock which it has already acquired and released in the block is paused.
//! If another thread then acquires that lock, the block is not causally atomic: the other's critical
//! section happens after the first of the block and before the second.
//!
//! Blocks are annotated regions ([`AtomFuzzer::new`]), or, as in section 6.3, whatever a thread does from
//! acquiring a lock to holding none ([`AtomFuzzer::lock_regions`]); waiting on a condition variable ends
//! such a block, since a thread that waits expects others in between. [`AtomFuzzer::aimed`] takes a
//! prediction instead of blocks, and looks for that pair of steps alone.
//!
//! Deviations: the paper only looks at locks. Here an atomic block that comes to an atomic location or
//! plain variable a second time is paused in the same way, and another thread's conflicting access in
//! between is the violation; whether the pair really is not serializable (it is if both the block's
//! accesses and the other one only read, for example) is decided by the kinds of the three accesses. A
//! lock that all three take in shared mode is not a violation.
//!
//! Guarantee: [`AtomFuzzer::violations`] only has triples that happened: one thread's step between two
//! steps of another thread's atomic block, all on one object, not equivalent to any serial order of the
//! three. What an attempt to acquire a lock or a compare-exchange did is taken from the event, not from
//! the attempt, and acquiring a lock that the thread holds does not count. May miss violations that
//! involve several objects, and accesses that are not steps of the executor.
//!
//! Cost: O(n + objects of the block) per choice.

use selvedge_model::{Access, Event, LockId, Mode, Op, RegionId, RegionKind, SiteId, ThreadId};

use crate::strategies::active::{Active, Verdict};
use crate::{Choice, Pending, Rng, Step, Strategy};

/// A step of another thread between two of an atomic block, on one object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Violation {
    /// The thread whose block it is.
    pub victim: ThreadId,
    /// The thread that came in between.
    pub intruder: ThreadId,
    /// First and second step of the block, and the step in between.
    pub sites: [SiteId; 3],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Thing {
    Lock(LockId),
    Memory(Access),
}

impl Thing {
    fn meets(self, other: Thing) -> bool {
        match (self, other) {
            (Thing::Lock(a), Thing::Lock(b)) => a == b,
            (Thing::Memory(a), Thing::Memory(b)) => a.range().overlaps(b.range()),
            _ => false,
        }
    }
}

/// What a step is about and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Touch {
    thing: Thing,
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
    /// The locks that it holds, each as often as it has acquired it.
    held: Vec<LockId>,
    touched: Vec<Earlier>,
}

/// What is taken to be atomic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aim {
    Regions,
    LockRegions,
    /// Only this pair of steps, and only this step in between; within one region if `inside`.
    Pair {
        pair: [SiteId; 2],
        between: Option<SiteId>,
        inside: bool,
    },
}

impl Aim {
    /// Whether the thread of `block` is inside something that is taken to be atomic.
    fn holds_in(self, block: &Block) -> bool {
        match self {
            Aim::Regions => !block.regions.is_empty(),
            Aim::LockRegions => !block.held.is_empty(),
            Aim::Pair { inside, .. } => !inside || !block.regions.is_empty(),
        }
    }

    fn may_begin(self, site: SiteId) -> bool {
        !matches!(self, Aim::Pair { pair, .. } if pair[0] != site)
    }

    fn may_end(self, site: SiteId) -> bool {
        !matches!(self, Aim::Pair { pair, .. } if pair[1] != site)
    }

    fn may_intrude(self, site: SiteId) -> bool {
        !matches!(self, Aim::Pair { between: Some(between), .. } if between != site)
    }
}

/// Steers towards violations of atomic blocks.
#[derive(Clone, Debug)]
pub struct AtomFuzzer {
    active: Active,
    aim: Aim,
    blocks: Vec<Block>,
    violations: Vec<Violation>,
}

impl AtomFuzzer {
    /// Checks annotated blocks.
    pub fn new() -> AtomFuzzer {
        let active = Active::default();
        AtomFuzzer { active, aim: Aim::Regions, blocks: Vec::new(), violations: Vec::new() }
    }

    /// Takes what a thread does while it holds a lock for a block.
    pub fn lock_regions() -> AtomFuzzer {
        AtomFuzzer { aim: Aim::LockRegions, ..AtomFuzzer::new() }
    }

    /// Aims at a predicted violation: two steps of one thread on an object, at these sites, that no
    /// block need contain, and a step of another thread in between, at `between` if it is given.
    pub fn aimed(pair: [SiteId; 2], between: Option<SiteId>) -> AtomFuzzer {
        let aim = Aim::Pair { pair, between, inside: false };
        AtomFuzzer { aim, ..AtomFuzzer::new() }
    }

    /// Only counts a pair whose steps are in one execution of an annotated block.
    pub fn inside_region(mut self) -> AtomFuzzer {
        if let Aim::Pair { inside, .. } = &mut self.aim {
            *inside = true;
        }
        self
    }

    /// The violations of this execution.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// How many threads of this execution were paused and did not reach the target.
    pub fn thrashes(&self) -> u64 {
        self.active.thrashes()
    }

    /// A thread has touched something, or is about to and cannot be stopped any more.
    fn touched(&mut self, thread: ThreadId, site: SiteId, mine: Touch) {
        if self.aim.may_intrude(site) {
            self.intrude(thread, site, mine);
        }
        let aim = self.aim;
        let block = &mut self.blocks[thread.index()];
        if !aim.holds_in(block) {
            return;
        }
        let (begins, ends) = (aim.may_begin(site), aim.may_end(site));
        let at = block.touched.iter().position(|e| e.touch.thing.meets(mine.thing));
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
            if matches!(aim, Aim::Pair { .. }) {
                self.active.reach();
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

    /// A step of `thread` comes after those that other threads' blocks have taken.
    fn intrude(&mut self, thread: ThreadId, site: SiteId, mine: Touch) {
        for (i, block) in self.blocks.iter_mut().enumerate() {
            for earlier in block.touched.iter_mut().filter(|_| i != thread.index()) {
                let conflict = earlier.touch.writes || mine.writes;
                if conflict && earlier.touch.thing.meets(mine.thing) {
                    // A write in between violates more than a read.
                    match &mut earlier.intruder {
                        Some((_, _, true)) => {}
                        found if mine.writes || found.is_none() => {
                            *found = Some((thread, site, mine.writes));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    fn know(&mut self, threads: usize) {
        if self.blocks.len() < threads {
            self.blocks.resize_with(threads, Block::default);
        }
    }

    /// The step of a block that `next` would be the second to, if it is one.
    fn first_of<'a>(&'a self, thread: ThreadId, next: &Pending) -> Option<&'a Earlier> {
        first_of(self.aim, &self.blocks, thread, next)
    }
}

fn first_of<'a>(
    aim: Aim,
    blocks: &'a [Block],
    thread: ThreadId,
    next: &Pending,
) -> Option<&'a Earlier> {
    let thing = touch(next.step)?.thing;
    let block = &blocks[thread.index()];
    let again = matches!(thing, Thing::Lock(lock) if block.held.contains(&lock));
    let open = aim.holds_in(block) && aim.may_end(next.site) && !again;
    block.touched.iter().find(|e| open && e.touch.thing.meets(thing))
}

/// What a step is about to touch, if it succeeds.
fn touch(step: Step) -> Option<Touch> {
    match step {
        Step::Do(op) => touch_of(op),
        Step::TryAcquire(lock, mode) => touch_of(Op::Acquire(lock, mode)),
        _ => None,
    }
}

fn touch_of(op: Op) -> Option<Touch> {
    if let Op::Acquire(lock, mode) = op {
        return Some(Touch { thing: Thing::Lock(lock), writes: mode == Mode::Exclusive });
    }
    op.access().map(|(access, writes)| Touch { thing: Thing::Memory(access), writes })
}

/// Whether a step between `first` and `second` violates atomicity: unless it commutes with one of them.
/// `between` says whether it writes.
fn violates(first: Touch, between: bool, second: Touch) -> bool {
    between || first.writes && second.writes
}

impl Default for AtomFuzzer {
    fn default() -> AtomFuzzer {
        AtomFuzzer::new()
    }
}

impl Strategy for AtomFuzzer {
    fn begin(&mut self, rng: Rng) -> bool {
        self.blocks.clear();
        self.violations.clear();
        self.active.begin(rng)
    }

    fn number(&mut self, below: u32) -> u32 {
        self.active.number(below)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.know(choice.pending.len());
        let AtomFuzzer { active, aim, blocks, .. } = self;
        let open = |t: ThreadId, next: &Pending| first_of(*aim, blocks, t, next);
        active.choose(
            choice,
            |_| false,
            |thread, paused, _| {
                let next = choice.next(thread);
                let Some(mine) = touch(next.step) else { return Verdict::Irrelevant };
                // The thread comes between two steps of a paused one's block: let it.
                let victim = paused.iter().any(|&p| {
                    let theirs = choice.next(p);
                    aim.may_intrude(next.site)
                        && touch(theirs.step).is_some_and(|second| {
                            second.thing.meets(mine.thing)
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
        self.know(pending.len());
        let next = pending[thread.index()];
        let part = self.first_of(thread, &next).is_some_and(|first| first.intruder.is_none());
        self.active.stepped(thread, part);
        // Plain accesses are not observed: they are known from the step alone.
        if let Step::Do(op @ (Op::Read(_) | Op::Write(_))) = next.step
            && let Some(mine) = touch_of(op)
        {
            self.touched(thread, next.site, mine);
        }
        if matches!(next.step, Step::Enroll(..)) && self.aim == Aim::LockRegions {
            self.blocks[thread.index()].touched.clear();
        }
    }

    fn observe(&mut self, event: &Event) {
        let Event { thread, site, op } = *event;
        self.know(thread.index() + 1);
        match op {
            Op::Atomic(..) => {
                if let Some(mine) = touch_of(op) {
                    self.touched(thread, site, mine);
                }
            }
            Op::Acquire(lock, _) => {
                let again = self.blocks[thread.index()].held.contains(&lock);
                if !again && let Some(mine) = touch_of(op) {
                    self.touched(thread, site, mine);
                }
                self.blocks[thread.index()].held.push(lock);
            }
            Op::Release(lock, _) => {
                let block = &mut self.blocks[thread.index()];
                if let Some(i) = block.held.iter().rposition(|&l| l == lock) {
                    block.held.remove(i);
                }
                if block.held.is_empty() && self.aim == Aim::LockRegions {
                    block.touched.clear();
                }
            }
            Op::RegionEnter(region, RegionKind::Atomic) => {
                self.blocks[thread.index()].regions.push(region);
            }
            Op::RegionExit(region) => {
                let within =
                    !matches!(self.aim, Aim::LockRegions | Aim::Pair { inside: false, .. });
                let block = &mut self.blocks[thread.index()];
                if block.regions.last() == Some(&region) {
                    block.regions.pop();
                }
                if block.regions.is_empty() && within {
                    block.touched.clear();
                }
            }
            Op::RegionEnter(..)
            | Op::Flow(_)
            | Op::Focus(_)
            | Op::Read(_)
            | Op::Write(_)
            | Op::Fence(_)
            | threads!()
            | rendezvous!()
            | conditions!()
            | allocation!() => {}
        }
    }
}
