//! The serial executions that were tried to explain what an execution observed.

use selvedge_model::Site;
use selvedge_specs::atomic::{BlockName, Tried, Unable, Witness};
use selvedge_specs::{Difference, ThreadName};

use crate::State;

/// So many orders are shown; the others are counted.
pub const SHOWN: usize = 10;

/// The orders in which the atomic blocks of an execution were executed alone.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Serial {
    /// Which serial executions counted.
    #[cfg_attr(feature = "serde", serde(default))]
    pub witness: Witness,
    /// The first of them.
    pub orders: Vec<SerialOrder>,
    /// How many more observed something else.
    pub more_differ: u64,
    /// How many more could not be executed.
    pub more_unable: u64,
}

/// An order of blocks.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SerialOrder {
    /// The blocks; empty if any serial execution counts and this is one of other blocks.
    pub blocks: Vec<Block>,
    /// What came of it.
    pub outcome: SerialOutcome,
}

/// A top-level atomic block.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Block {
    /// The thread that executes it.
    pub thread: String,
    /// What the user calls it.
    pub name: String,
    /// How many blocks of that name the thread has executed before.
    pub nth: u32,
}

/// What came of executing blocks alone in an order.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum SerialOutcome {
    /// It observed something else: first what the interleaved execution observed, then this one.
    Differs(Vec<State>),
    /// The block has to wait for another thread.
    Waits(Block),
    /// The block is not reached.
    Missed(Block),
    /// Another block is executed in its place, or none, or one too many.
    Other {
        /// The block of the order.
        expected: Option<Block>,
        /// The one in its place.
        found: Option<Block>,
    },
    /// The program failed.
    Failed,
    /// It did not end within its limits.
    CutOff,
}

impl Serial {
    /// Orders that were tried; `thread` gives the names of threads.
    pub fn new(
        witness: Witness,
        tried: &[Tried<Site>],
        thread: impl Fn(ThreadName) -> String,
    ) -> Serial {
        let block = |of: &BlockName| Block {
            thread: thread(of.thread),
            name: of.name.to_string(),
            nth: of.nth,
        };
        let outcome = |of: &Result<Vec<Difference<Site>>, Unable>| match of {
            Ok(differing) => SerialOutcome::Differs(differing.iter().map(State::of).collect()),
            Err(Unable::Waits(of)) => SerialOutcome::Waits(block(of)),
            Err(Unable::Missed(of)) => SerialOutcome::Missed(block(of)),
            Err(Unable::Other { expected, found }) => SerialOutcome::Other {
                expected: expected.as_ref().map(block),
                found: found.as_ref().map(block),
            },
            Err(Unable::Failed) => SerialOutcome::Failed,
            Err(Unable::CutOff) => SerialOutcome::CutOff,
        };
        let order = |of: &Tried<Site>| SerialOrder {
            blocks: of.blocks.iter().map(block).collect(),
            outcome: outcome(&of.outcome),
        };
        let shown = tried.len().min(SHOWN);
        let more = &tried[shown..];
        let more_differ = more.iter().filter(|t| t.outcome.is_ok()).count() as u64;
        Serial {
            witness,
            orders: tried[..shown].iter().map(order).collect(),
            more_differ,
            more_unable: more.len() as u64 - more_differ,
        }
    }
}
