//! What an execution says of its deterministic and atomic blocks.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use selvedge_model::Site;
use selvedge_specs::atomic::{self, AtomicBlocks};
use selvedge_specs::{
    BlockExecution, Comparison, Difference, Judge, Misuse, ThreadName, Trouble, Unclosed, compare,
};

/// The deterministic and atomic blocks of one execution of a program.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Blocks {
    /// Those that ended, in the order of their ends.
    pub executions: Vec<BlockExecution<Site>>,
    /// Those that were begun and not ended.
    pub unclosed: Vec<Unclosed<Site>>,
    /// Tasks of a parallel program in which threads ended.
    pub open_tasks: Vec<Unclosed<Site>>,
    /// What ended the execution, if blocks were not used as they should be.
    pub wrong: Option<Wrong>,
    /// How many conflicts `determinism` saw in blocks that ensure something.
    pub conflicts: u64,
    /// The atomic blocks, and what was observed.
    pub atomic: AtomicBlocks<Site>,
    /// The names of atomic blocks that are not conflict-serializable, if something was observed.
    pub serial_conflicts: Vec<Box<str>>,
}

/// Why what a program says of its blocks cannot be judged. The program has to be mended; this is no verdict.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Wrong {
    /// Blocks were not used as they should be.
    Misuse(Misuse<Site>),
    /// Atomic blocks were not used as they should be.
    Atomic(atomic::Misuse<Site>),
    /// A predicate cannot judge the values that it was given.
    Predicate(Trouble<Site>),
    /// A value cannot be handed over.
    Value {
        /// What the user calls it.
        name: Box<str>,
        /// Where it was to be handed over.
        site: Site,
        /// What its type says.
        why: String,
    },
    /// What is known of earlier executions could not be read or written.
    Storage(String),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Misuse(misuse) => {
                write!(f, "{misuse}")?;
                match misuse {
                    Misuse::AssumeAfterEnsure { site, ensured_at, .. } => {
                        write!(f, "\n  assumed at {site}\n  ensured at {ensured_at}")
                    }
                    Misuse::Outside { site, .. }
                    | Misuse::AfterEnd { site, .. }
                    | Misuse::EndWithoutBegin { site }
                    | Misuse::JoinAfterEnd { site } => write!(f, "\n  at {site}"),
                }
            }
            Wrong::Atomic(misuse) => write!(f, "{misuse}\n  at {}", misuse.site()),
            Wrong::Predicate(trouble) => {
                write!(f, "{trouble}\n  at {}", trouble.first)?;
                if trouble.second != trouble.first {
                    write!(f, "\n  at {}", trouble.second)?;
                }
                Ok(())
            }
            Wrong::Value { name, site, why } => {
                write!(f, "the value of {name:?} cannot be handed over: {why}\n  at {site}")
            }
            Wrong::Storage(why) => write!(f, "the states of earlier executions: {why}"),
        }
    }
}

impl std::error::Error for Wrong {}

/// What recognises an execution of a block in another execution of the program: the block, the thread, and how
/// many executions of the block the thread has made before.
type Occasion<'a> = (&'a str, Option<ThreadName>, usize);

impl Blocks {
    /// Whether the execution observed anything.
    pub fn observes(&self) -> bool {
        !self.atomic.observed.is_empty()
    }

    /// Whether a block of the execution ensures anything.
    pub fn ensures(&self) -> bool {
        self.executions.iter().any(BlockExecution::ensures)
    }

    /// The first value that differs from that of another execution of the program, by the names of its block
    /// and of itself.
    pub fn changed(&self, other: &Blocks, judge: &mut dyn Judge) -> Option<(Box<str>, Box<str>)> {
        match self.difference(other, judge)? {
            (execution, Comparison::Differs { first, .. }) => {
                Some((execution.block.clone(), first.key.name))
            }
            _ => None,
        }
    }

    fn occasions(&self) -> impl Iterator<Item = (Occasion<'_>, &BlockExecution<Site>)> {
        let mut counts: HashMap<(&str, Option<ThreadName>), usize> = HashMap::new();
        self.executions.iter().map(move |execution| {
            let thread = execution.calls.first().map(|call| call.key.thread);
            let count = counts.entry((&execution.block, thread)).or_default();
            *count += 1;
            ((&*execution.block, thread, *count), execution)
        })
    }

    /// The first execution of a block whose results differ from those of its counterpart in another execution
    /// of the program, with how they differ. What a predicate cannot judge does not differ.
    pub fn difference(
        &self,
        other: &Blocks,
        judge: &mut dyn Judge,
    ) -> Option<(&BlockExecution<Site>, Comparison<Site>)> {
        let theirs: HashMap<_, _> = other.occasions().collect();
        self.occasions().find_map(|(occasion, mine)| {
            let comparison = compare(mine, theirs.get(&occasion)?, judge).ok()?;
            let differs = matches!(comparison, Comparison::Differs { .. });
            differs.then_some((mine, comparison))
        })
    }
}

/// Two values that differ, and the others that do.
#[derive(Clone, PartialEq, Debug)]
pub struct Differing {
    /// The first difference, in the order of the calls.
    pub first: Box<Difference<Site>>,
    /// The other ones.
    pub later: Vec<Difference<Site>>,
}

impl Differing {
    /// Where the value is ensured.
    pub fn site(&self) -> &Site {
        let Difference { first, second, .. } = &*self.first;
        let call = second.as_ref().or(first.as_ref());
        call.map(|(_, site)| site).expect("a difference is one of calls")
    }
}

/// An execution of the program in which a block ensured something else.
#[derive(Clone, Debug)]
pub struct Contrast {
    /// The block.
    pub block: Box<str>,
    /// Where the value is ensured.
    pub site: Site,
    /// What the blocks of that execution say.
    pub blocks: Arc<Blocks>,
}

impl Contrast {
    /// How an execution of the program differs in the value, if it does. Every execution of the block counts.
    pub fn shows(&self, blocks: &Blocks, judge: &mut dyn Judge) -> Option<Differing> {
        let of = |blocks: &'_ Blocks| {
            let of_block = |e: &&BlockExecution<Site>| e.block == self.block;
            blocks.executions.iter().filter(of_block).cloned().collect::<Vec<_>>()
        };
        let (theirs, mine) = (of(&self.blocks), of(blocks));
        theirs.iter().find_map(|first| {
            mine.iter().find_map(|second| match compare(first, second, judge) {
                Ok(Comparison::Differs { first, later }) => {
                    Some(Differing { first, later }).filter(|d| *d.site() == self.site)
                }
                _ => None,
            })
        })
    }
}
