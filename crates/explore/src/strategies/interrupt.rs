//! Executions in which few atomic blocks are interrupted, each at every place once.
//!
//! Source: Burnim, *Specifying and testing parallelism*, §5.4. The fewer blocks overlap, the fewer serial orders
//! need to be tried to judge an execution, and few interruptions show most violations of atomicity. After a step in
//! an open block the block may be interrupted in favour of another thread: if fewer than `R` interruptions were made
//! in this execution, if this is one of the first `C` times that this place is reached in this block, and if no
//! earlier execution was interrupted at the same list of places. When a block ends and others are open, other threads
//! run until `K` whole blocks have ended since the longest-open one was interrupted; then one of the interrupted goes
//! on. A thread that cannot go on lets others run, which counts as no interruption.
//!
//! Deviations: the name of the block stands for the calling context, because in process no call stacks are known.
//! Only marked blocks count for `K`: a step outside of them is a block of its own, and a thread may need many of these
//! to come to its next block. Which of the places that are left comes next is drawn at random, so that a search that
//! is cut off has not only seen the beginnings of executions.
//!
//! Guarantee: at most `R` times in an execution, a thread that could go on is stopped in a block, and no two
//! executions are stopped at the same list of places. The search ends by itself, on a program that has blocks: when
//! [`DRY`] executions in a row came to no place that is left. Then its coverage is complete.
//!
//! Cost: O(n) per choice; memory for each list of places.

use std::collections::{HashMap, HashSet};

use selvedge_model::{Event, Nesting, RegionId, SiteId, ThreadId};

use crate::entry::{Argument, Entry};
use crate::{Choice, Coverage, Pending, Rng, Strategy};

/// After so many executions in a row without a new place the search is over.
pub const DRY: u32 = 8;
/// The same after a list of places that can be prolonged.
const DRY_AFTER: u32 = 2;

/// What limits the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// R: the most interruptions in an execution.
    pub interruptions: usize,
    /// K: whole blocks that run before an interrupted one goes on.
    pub blocks: usize,
    /// C: how often a place is reached in an execution and may still be interrupted.
    pub occurrences: usize,
}

/// As the paper has them.
const DEFAULT: Bounds = Bounds { interruptions: 1, blocks: 4, occurrences: 4 };

impl Default for Bounds {
    fn default() -> Bounds {
        DEFAULT
    }
}

/// A place at which a block can be interrupted: the block, what its thread does next, and how often a thread was
/// about to do that in this block before.
type Stop = (RegionId, SiteId, u32);

/// Interrupts few blocks.
#[derive(Clone, Debug)]
pub struct Interrupt {
    bounds: Bounds,
    /// Lists of places that need not be begun with again.
    done: HashSet<Vec<Stop>>,
    /// How often there was nothing new after a list.
    dry: HashMap<Vec<Stop>, u32>,
    /// An execution has entered a block.
    has_blocks: bool,
    running: bool,
    rng: Rng,
    nesting: Nesting,
    /// Whole blocks so far.
    whole: usize,
    /// By thread: how many whole blocks there had been when its open block was interrupted.
    since: Vec<Option<usize>>,
    /// By thread: how often its next place was reached before, if the thread has reached it.
    arrived: Vec<Option<u32>>,
    reached: HashMap<(RegionId, SiteId), u32>,
    /// The interruptions of this execution.
    made: Vec<Stop>,
    /// By number of interruptions made: places that were possible next, and how many of them to let pass.
    possible: Vec<usize>,
    pass: Vec<usize>,
}

impl Interrupt {
    /// A search within bounds.
    pub fn new(bounds: Bounds) -> Interrupt {
        Interrupt {
            bounds,
            done: HashSet::new(),
            dry: HashMap::new(),
            has_blocks: false,
            running: false,
            rng: Rng::default(),
            nesting: Nesting::default(),
            whole: 0,
            since: Vec::new(),
            arrived: Vec::new(),
            reached: HashMap::new(),
            made: Vec::new(),
            possible: vec![0; bounds.interruptions],
            pass: vec![0; bounds.interruptions],
        }
    }

    /// Counts that a thread has come to its next place, once, if it is in an open block.
    fn arrive(&mut self, thread: ThreadId, pending: &[Pending]) -> Option<Stop> {
        let region = self.nesting.open(thread)?;
        let site = pending[thread.index()].site;
        let reached = &mut self.reached;
        let nth = *slot(&mut self.arrived, thread).get_or_insert_with(|| {
            let count = reached.entry((region, site)).or_default();
            *count += 1;
            *count - 1
        });
        Some((region, site, nth))
    }

    /// Whether to interrupt a thread that could go on here.
    fn interrupts(&mut self, stop: Stop) -> bool {
        let level = self.made.len();
        if level >= self.bounds.interruptions || stop.2 as usize >= self.bounds.occurrences {
            return false;
        }
        self.made.push(stop);
        let is_new = !self.done.contains(&self.made);
        self.possible[level] += usize::from(is_new);
        if !is_new || self.pass[level] > 0 {
            self.pass[level] -= usize::from(is_new);
            self.made.pop();
            return false;
        }
        if self.made.len() == self.bounds.interruptions {
            self.done.insert(self.made.clone());
        }
        true
    }

    /// A thread in an open block is left.
    fn leave(&mut self, thread: ThreadId) {
        let whole = self.whole;
        slot(&mut self.since, thread).get_or_insert(whole);
    }

    /// Who runs when no thread goes on with a block.
    fn next(&mut self, choice: &Choice<'_>) -> ThreadId {
        let candidates = (0..choice.candidates()).map(|i| choice.candidate(i));
        let (open, free): (Vec<ThreadId>, Vec<ThreadId>) =
            candidates.partition(|&t| self.nesting.open(t).is_some());
        let longest = self.since.iter().flatten().min();
        let enough = longest.is_some_and(|since| self.whole - since >= self.bounds.blocks);
        let from = match (open.is_empty(), free.is_empty()) {
            (false, true) => open,
            (false, false) if enough => open,
            _ => free,
        };
        from[self.rng.below(from.len())]
    }
}

/// The entry of a thread, made when it is first asked for.
fn slot<T>(list: &mut Vec<Option<T>>, thread: ThreadId) -> &mut Option<T> {
    if list.len() <= thread.index() {
        list.resize_with(thread.index() + 1, || None);
    }
    &mut list[thread.index()]
}

impl Strategy for Interrupt {
    fn begin(&mut self, rng: Rng) -> bool {
        self.rng = rng;
        self.nesting.clear();
        self.whole = 0;
        self.since.clear();
        self.arrived.clear();
        self.reached.clear();
        for (level, pass) in self.pass.iter_mut().enumerate() {
            // Where the last execution let everything pass, this one takes what comes first.
            let (possible, used) = (self.possible[level], level < self.made.len());
            *pass = if used && possible > 0 { self.rng.below(2 * possible) } else { 0 };
        }
        self.possible.fill(0);
        self.made.clear();
        self.running = !self.done.contains(&self.made);
        self.running
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        if let Some(thread) = choice.running
            && let Some(stop) = self.arrive(thread, choice.pending)
        {
            if choice.willing().is_none() {
                self.leave(thread);
            } else if self.interrupts(stop) {
                self.leave(thread);
                let others: Vec<ThreadId> =
                    choice.enabled.iter().copied().filter(|&t| t != thread).collect();
                return others[self.rng.below(others.len())];
            } else {
                return thread;
            }
        }
        self.next(choice)
    }

    fn number(&mut self, below: u32) -> u32 {
        self.rng.number(below)
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.arrive(thread, pending);
        *slot(&mut self.arrived, thread) = None;
        self.nesting.step(thread);
        self.has_blocks |= self.nesting.open(thread).is_some();
    }

    fn observe(&mut self, event: &Event) {
        if let Some(ended) = self.nesting.observe(event) {
            *slot(&mut self.since, event.thread) = None;
            *slot(&mut self.arrived, event.thread) = None;
            self.whole += usize::from(ended.steps > 0);
        }
    }

    fn end(&mut self, _: &[Pending]) {
        self.running = false;
        let level = self.made.len();
        if !self.has_blocks || level == self.bounds.interruptions || self.possible[level] > 0 {
            self.dry.remove(&Vec::new());
            return;
        }
        let enough = if level == 0 { DRY } else { DRY_AFTER };
        let dry = self.dry.entry(self.made.clone()).or_default();
        *dry += 1;
        if *dry >= enough {
            self.done.insert(self.made.clone());
        }
    }

    fn coverage(&self) -> Coverage {
        if !self.has_blocks {
            return Coverage::Sample;
        }
        Coverage::of_search(!self.running && self.done.contains(&Vec::new()))
    }
}

/// The strategy of `interrupt`.
pub const ENTRY: Entry = Entry {
    name: "interrupt",
    about: "few atomic blocks are interrupted, at every place once",
    argument: Some(Argument {
        name: "R",
        about: "how many interruptions an execution has at most",
        default: Some(DEFAULT.interruptions),
        further: &[
            Argument {
                name: "K",
                about: "how many blocks run before an interrupted one goes on",
                default: Some(DEFAULT.blocks),
                further: &[],
            },
            Argument {
                name: "C",
                about: "how often a place of an execution may be interrupted",
                default: Some(DEFAULT.occurrences),
                further: &[],
            },
        ],
    }),
    systematic: true,
    new: |[interruptions, blocks, occurrences]| {
        Box::new(Interrupt::new(Bounds {
            interruptions: interruptions.unwrap_or(DEFAULT.interruptions),
            blocks: blocks.unwrap_or(DEFAULT.blocks),
            occurrences: occurrences.unwrap_or(DEFAULT.occurrences),
        }))
    },
};
