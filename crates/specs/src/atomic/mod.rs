//! One execution of a program with atomic blocks: which blocks there were and when, and what was observed.
//!
//! Paper: Burnim, §2.4 and chapter 5. Atomic blocks claim that what is observed is as in some execution in which each
//! block runs alone. [`Recorder`] collects the [`AtomicBlocks`] of an execution; [`linearizations`] are the orders in which
//! they may have to be executed alone to find out, and [`disagreements`] compares what was observed.
//!
//! Time is counted in steps: a block lasts from the first to the last step that its thread takes in it, since what a
//! thread does before its first step no other thread can notice. A block without any step overlaps with nothing, and
//! is left out.

mod counts;
mod orders;
mod record;
mod witness;

use selvedge_model::SiteId;

pub use counts::{Interleavings, Looked};
pub use orders::{Keep, Linearizations, linearizations};
pub use record::{Misuse, Recorder};
pub use witness::{UnknownWitness, Witness};

use crate::block::{Call, Difference, ThreadName, Trouble, differing};
use crate::predicate::Judge;

/// What recognises a block in another execution: its thread, its name, and how many of that name came before in the
/// thread.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub struct BlockName {
    /// The thread.
    pub thread: ThreadName,
    /// What the user calls the block.
    pub name: Box<str>,
    /// How many blocks of this name the thread has executed before.
    pub nth: u32,
}

/// An access that the user calls distinguished: its order among others tells the order of their blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Distinguished {
    /// When.
    pub at: u32,
    /// To what.
    pub variable: u64,
    /// Whether it changes it.
    pub writes: bool,
}

/// A top-level atomic block.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct AtomicBlock<S = SiteId> {
    /// What recognises it.
    pub id: BlockName,
    /// Where it begins.
    pub site: S,
    /// The step after which its thread entered it, and one: until its first step it waits.
    pub entered: u32,
    /// Its first step.
    pub begin: u32,
    /// Its last step.
    pub end: u32,
    /// How many steps its thread took in it.
    pub steps: u32,
    /// How many steps there had been outside of blocks at its first step, and at its last.
    pub outside: (usize, usize),
    /// When it reached its linearization point, if it did.
    pub point: Option<u32>,
    /// Its distinguished accesses. Of the reads of a variable, the last one.
    pub accesses: Vec<Distinguished>,
}

impl<S> AtomicBlock<S> {
    /// Whether it ended before another one began.
    pub fn precedes(&self, other: &AtomicBlock<S>) -> bool {
        self.end < other.begin
    }

    /// Whether the two overlap.
    pub fn overlaps(&self, other: &AtomicBlock<S>) -> bool {
        !self.precedes(other) && !other.precedes(self)
    }
}

/// The atomic blocks of an execution, and what it observed.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct AtomicBlocks<S = SiteId> {
    /// The top-level blocks that ended, in the order of their first steps.
    pub blocks: Vec<AtomicBlock<S>>,
    /// The threads that took steps outside of blocks, in order, as far as these matter to others.
    pub outside: Vec<ThreadName>,
    /// What was observed, in the order of the calls.
    pub observed: Vec<Call<S>>,
    /// Blocks that were entered and not left.
    pub unclosed: Vec<(Box<str>, S)>,
    /// Whether any atomic block was entered, with steps or without.
    pub entered: bool,
}

impl<S> Default for AtomicBlocks<S> {
    fn default() -> AtomicBlocks<S> {
        AtomicBlocks {
            blocks: Vec::new(),
            outside: Vec::new(),
            observed: Vec::new(),
            unclosed: Vec::new(),
            entered: false,
        }
    }
}

impl<S> AtomicBlocks<S> {
    /// The same with every place replaced.
    pub fn map<T>(self, mut place: impl FnMut(S) -> T) -> AtomicBlocks<T> {
        let AtomicBlocks { blocks, outside, observed, unclosed, entered } = self;
        let mut block = |b: AtomicBlock<S>| AtomicBlock {
            id: b.id,
            site: place(b.site),
            entered: b.entered,
            begin: b.begin,
            end: b.end,
            steps: b.steps,
            outside: b.outside,
            point: b.point,
            accesses: b.accesses,
        };
        let blocks = blocks.into_iter().map(&mut block).collect();
        let mut call = |Call { key, predicate, value, site }| Call {
            key,
            predicate,
            value,
            site: place(site),
        };
        let observed = observed.into_iter().map(&mut call).collect();
        let unclosed = unclosed.into_iter().map(|(name, site)| (name, place(site))).collect();
        AtomicBlocks { blocks, outside, observed, unclosed, entered }
    }

    /// Whether a thread was in a block, perhaps waiting to begin, while another one was in one.
    pub fn met(&self) -> bool {
        let mut times: Vec<(u32, u32)> = self.blocks.iter().map(|b| (b.entered, b.end)).collect();
        times.sort_unstable();
        let mut last = 0;
        times.iter().any(|&(entered, end)| {
            let meets = entered <= last;
            last = last.max(end);
            meets
        })
    }

    /// Whether no thread took a step while another one had an open block.
    pub fn is_serial(&self) -> bool {
        self.blocks.iter().all(|block| block.end - block.begin + 1 == block.steps)
    }
}

/// A serial order that was tried, to find an execution that observes the same.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Tried<S = SiteId> {
    /// The blocks in the order in which they were to be executed.
    pub blocks: Vec<BlockName>,
    /// What was observed differently, or why the order could not be executed.
    pub outcome: Result<Vec<Difference<S>>, Unable>,
}

/// Why an order of blocks could not be executed.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Unable {
    /// The block has to wait for another thread.
    Waits(BlockName),
    /// The block is not reached: its thread ends, waits, or another block has to come first.
    Missed(BlockName),
    /// Another block is executed in its place, or none.
    Other {
        /// The block of the order; none if there is one too many.
        expected: Option<BlockName>,
        /// The block that is executed instead.
        found: Option<BlockName>,
    },
    /// The program failed.
    Failed,
    /// The execution did not end within its limits.
    CutOff,
}

/// What two executions observed differently: values that are not the same, and calls that only one made.
pub fn disagreements<S: Clone>(
    first: &[Call<S>],
    second: &[Call<S>],
    judge: &mut dyn Judge,
) -> Result<Vec<Difference<S>>, Trouble<S>> {
    differing(first.iter(), second.iter(), false, judge)
}
