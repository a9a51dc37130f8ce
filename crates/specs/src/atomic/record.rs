//! Builds the [`AtomicBlocks`] of one execution from what its threads do.
//!
//! Cost: O(1) per step; per observed value one lookup and its digest.

use rustc_hash::FxHashMap;
use selvedge_model::{Nesting, Position, RegionId, RegionKind, SiteId, ThreadId};
use thiserror::Error;

use super::{AtomicBlock, AtomicBlocks, BlockName, Distinguished};
use crate::block::{Call, Kept, Key, Said, ThreadName};

/// So many steps outside of blocks are remembered.
const OUTSIDE: usize = 100_000;

/// Wrong use of atomic blocks. Never a verdict: the program has to be mended.
#[derive(Clone, PartialEq, Eq, Debug, Error, serde::Serialize, serde::Deserialize)]
pub enum Misuse<S> {
    /// A linearization point outside of every atomic block.
    #[error("a linearization point is reached outside of every atomic block")]
    PointOutside {
        /// Where.
        site: S,
    },
    /// A second linearization point in a block.
    #[error(
        "the atomic block {block:?} reaches a second linearization point: a block has at most one"
    )]
    SecondPoint {
        /// The block.
        block: Box<str>,
        /// Where.
        site: S,
    },
    /// A value is observed, and no execution enters an atomic block.
    #[error(
        "{name:?} is observed, but the program enters no atomic block: there is nothing to execute alone"
    )]
    NoBlock {
        /// What is observed.
        name: Box<str>,
        /// Where.
        site: S,
    },
    /// An end without a begin in this thread.
    #[error("an atomic block ends that its thread has not begun")]
    EndWithoutBegin {
        /// Where.
        site: S,
    },
    /// A block that its thread never left.
    #[error("the atomic block {block:?} was never left")]
    Unclosed {
        /// The block.
        block: Box<str>,
        /// Where it begins.
        site: S,
    },
}

impl<S> Misuse<S> {
    /// The same with its place replaced.
    pub fn map<T>(self, place: impl FnOnce(S) -> T) -> Misuse<T> {
        match self {
            Misuse::PointOutside { site } => Misuse::PointOutside { site: place(site) },
            Misuse::SecondPoint { block, site } => Misuse::SecondPoint { block, site: place(site) },
            Misuse::NoBlock { name, site } => Misuse::NoBlock { name, site: place(site) },
            Misuse::EndWithoutBegin { site } => Misuse::EndWithoutBegin { site: place(site) },
            Misuse::Unclosed { block, site } => Misuse::Unclosed { block, site: place(site) },
        }
    }

    /// Where it is.
    pub fn site(&self) -> &S {
        match self {
            Misuse::PointOutside { site }
            | Misuse::SecondPoint { site, .. }
            | Misuse::NoBlock { site, .. }
            | Misuse::EndWithoutBegin { site }
            | Misuse::Unclosed { site, .. } => site,
        }
    }
}

/// The top-level block that a thread is in.
#[derive(Debug)]
struct Open<S> {
    block: AtomicBlock<S>,
    /// It has taken a step.
    begun: bool,
}

/// Collects the atomic blocks of one execution.
#[derive(Debug)]
pub struct Recorder<S = SiteId> {
    nesting: Nesting,
    open: FxHashMap<ThreadId, Open<S>>,
    counts: FxHashMap<(ThreadName, Box<str>), u32>,
    calls: FxHashMap<(ThreadName, Box<str>), u32>,
    /// Steps so far.
    steps: u32,
    /// Points and distinguished accesses so far.
    marks: u32,
    /// By thread: how many calls of `distinguished` it is in.
    distinguishing: FxHashMap<ThreadId, u32>,
    said: AtomicBlocks<S>,
}

impl<S> Default for Recorder<S> {
    fn default() -> Recorder<S> {
        Recorder {
            nesting: Nesting::default(),
            open: FxHashMap::default(),
            counts: FxHashMap::default(),
            calls: FxHashMap::default(),
            steps: 0,
            marks: 0,
            distinguishing: FxHashMap::default(),
            said: AtomicBlocks::default(),
        }
    }
}

impl<S: Clone> Recorder<S> {
    /// A thread, with its name across executions, enters a region.
    pub fn enter(
        &mut self,
        (thread, across): (ThreadId, ThreadName),
        (region, kind, name): (RegionId, RegionKind, &str),
        site: S,
    ) {
        self.said.entered |= kind == RegionKind::Atomic;
        if !self.nesting.enter(thread, region, kind) {
            return;
        }
        let count = self.counts.entry((across, name.into())).or_default();
        let id = BlockName { thread: across, name: name.into(), nth: *count };
        *count += 1;
        let (entered, begin, end, steps, outside) = (self.steps + 1, 0, 0, 0, (0, 0));
        let (point, accesses) = (None, Vec::new());
        let block = AtomicBlock { id, site, entered, begin, end, steps, outside, point, accesses };
        self.open.insert(thread, Open { block, begun: false });
    }

    /// A thread leaves the region that it entered last.
    pub fn exit(&mut self, thread: ThreadId) {
        if self.nesting.exit(thread).is_some()
            && let Some(Open { block, begun: true }) = self.open.remove(&thread)
        {
            self.said.blocks.push(block);
        }
    }

    /// A thread ends without leaving the region that it entered last: a top-level block stays open.
    pub fn abandon(&mut self, thread: ThreadId) {
        self.nesting.exit(thread);
    }

    /// A thread takes a step, which may matter to others or not: that of a thread that starts or joins another does
    /// not.
    #[inline]
    pub fn step(&mut self, (thread, across): (ThreadId, ThreadName), matters: bool) {
        self.steps += 1;
        match self.nesting.step(thread) {
            Position::Outside => {
                if matters && self.said.outside.len() < OUTSIDE {
                    self.said.outside.push(across);
                }
            }
            position @ (Position::Opens(_) | Position::Inside(_)) => {
                let (now, outside) = (self.steps, self.said.outside.len());
                let Some(open) = self.open.get_mut(&thread) else { return };
                open.block.end = now;
                open.block.steps += 1;
                open.block.outside.1 = outside;
                if matches!(position, Position::Opens(_)) {
                    open.begun = true;
                    (open.block.begin, open.block.outside.0) = (now, outside);
                }
            }
        }
    }

    /// A thread begins or ends a call of `distinguished`.
    pub fn distinguish(&mut self, thread: ThreadId, on: bool) {
        let depth = self.distinguishing.entry(thread).or_default();
        *depth = if on { *depth + 1 } else { depth.saturating_sub(1) };
    }

    /// A thread accesses a variable.
    pub fn access(&mut self, thread: ThreadId, variable: u64, writes: bool) {
        if self.distinguishing.get(&thread).is_none_or(|&depth| depth == 0) {
            return;
        }
        self.marks += 1;
        let Some(open) = self.open.get_mut(&thread) else { return };
        let accesses = &mut open.block.accesses;
        if !writes {
            accesses.retain(|a| a.writes || a.variable != variable);
        }
        accesses.push(Distinguished { at: self.marks, variable, writes });
    }

    /// Whether any thread is in a call of `distinguished`.
    pub fn distinguishes(&self) -> bool {
        !self.distinguishing.is_empty()
    }

    /// A thread reaches a linearization point.
    pub fn point(&mut self, thread: ThreadId, site: S) -> Result<(), Misuse<S>> {
        self.marks += 1;
        let Some(open) = self.open.get_mut(&thread) else {
            return Err(Misuse::PointOutside { site });
        };
        if open.block.point.replace(self.marks).is_some() {
            return Err(Misuse::SecondPoint { block: open.block.id.name.clone(), site });
        }
        Ok(())
    }

    /// A thread observes a value.
    pub fn observe(&mut self, across: ThreadName, said: Said<'_>, site: S) {
        let Said { word, name, predicate, value } = said;
        let count = self.calls.entry((across, name.into())).or_default();
        let key = Key { word, name: name.into(), thread: across, nth: *count };
        *count += 1;
        self.said.observed.push(Call { key, predicate, value: Kept::from(value), site });
    }

    /// The execution is over.
    pub fn finish(self) -> AtomicBlocks<S> {
        let mut said = self.said;
        said.blocks.sort_by_key(|block| block.begin);
        let mut open: Vec<_> =
            self.open.into_values().map(|o| (o.block.id, o.block.site)).collect();
        open.sort_by(|a, b| a.0.cmp(&b.0));
        said.unclosed = open.into_iter().map(|(id, site)| (id.name, site)).collect();
        said
    }
}
