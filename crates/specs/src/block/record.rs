//! Builds executions of blocks from the calls of a program, and checks that they are used as they should be.
//!
//! A call belongs to the innermost block of its thread. A thread that has none of its own is in the block in which the
//! thread that started it was at that time; a thread of a pool enters a block by a token. A block ends when the thread
//! that began it ends it; what was not ended leaves nothing but an [`Unclosed`].
//!
//! Cost per call: one lookup, and the digest of the value.

use rustc_hash::FxHashMap;
use selvedge_model::{SiteId, ThreadId};
use thiserror::Error;

use crate::block::{BlockExecution, Call, Kept, Key, ThreadName, Word};
use crate::{Predicate, Value};

/// Wrong use of blocks. Never a verdict: the program has to be mended.
#[derive(Clone, PartialEq, Eq, Debug, Error, serde::Serialize, serde::Deserialize)]
pub enum Misuse<S> {
    /// An `assume` after the first `ensure` of its block.
    #[error(
        "{name:?} is assumed after {ensured:?} was ensured in the block {block:?}: all assumptions come first"
    )]
    AssumeAfterEnsure {
        /// The block.
        block: Box<str>,
        /// What is assumed.
        name: Box<str>,
        /// Where.
        site: S,
        /// What was ensured first.
        ensured: Box<str>,
        /// Where.
        ensured_at: S,
    },
    /// A call outside of every block.
    #[error("{name:?} is used outside of every deterministic block")]
    Outside {
        /// The word of the call.
        word: Word,
        /// What is assumed, ensured or recorded.
        name: Box<str>,
        /// Where.
        site: S,
    },
    /// A call of a thread whose block has ended.
    #[error("{name:?} is used by a thread of the block {block:?} after the block has ended")]
    AfterEnd {
        /// The block.
        block: Box<str>,
        /// What is assumed, ensured or recorded.
        name: Box<str>,
        /// Where.
        site: S,
    },
    /// An end without a begin in this thread.
    #[error("a deterministic block ends that its thread has not begun")]
    EndWithoutBegin {
        /// Where.
        site: S,
    },
    /// A token of a block that has ended, or of no execution.
    #[error("a thread joins a deterministic block that has ended")]
    JoinAfterEnd {
        /// Where.
        site: S,
    },
}

impl<S> Misuse<S> {
    /// The same with every place replaced.
    pub fn map<T>(self, mut place: impl FnMut(S) -> T) -> Misuse<T> {
        match self {
            Misuse::AssumeAfterEnsure { block, name, site, ensured, ensured_at } => {
                let (site, ensured_at) = (place(site), place(ensured_at));
                Misuse::AssumeAfterEnsure { block, name, site, ensured, ensured_at }
            }
            Misuse::Outside { word, name, site } => {
                Misuse::Outside { word, name, site: place(site) }
            }
            Misuse::AfterEnd { block, name, site } => {
                Misuse::AfterEnd { block, name, site: place(site) }
            }
            Misuse::EndWithoutBegin { site } => Misuse::EndWithoutBegin { site: place(site) },
            Misuse::JoinAfterEnd { site } => Misuse::JoinAfterEnd { site: place(site) },
        }
    }
}

/// A block that was begun and not ended.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Unclosed<S> {
    /// The block.
    pub block: Box<str>,
    /// Where it began.
    pub site: S,
}

/// The block that a thread is in, for another thread to join. It does not outlive the execution.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Token(Option<usize>);

impl Token {
    /// The token as a number that a program can carry around; 0 is "no block".
    pub fn number(self) -> u64 {
        self.0.map_or(0, |i| i as u64 + 1)
    }

    /// The token with this number.
    pub fn from_number(number: u64) -> Token {
        Token(number.checked_sub(1).and_then(|i| usize::try_from(i).ok()))
    }
}

#[derive(Debug)]
struct Open<S> {
    execution: BlockExecution<S>,
    /// The first `ensure`: an index into the calls.
    ensured: Option<usize>,
    counts: FxHashMap<(Word, ThreadName, Box<str>), u32>,
}

/// What a thread is in.
#[derive(Default, Debug)]
struct Nest {
    /// Blocks that it was given by the thread that started it, or joined.
    joined: Option<usize>,
    /// Blocks that it began, outermost first.
    begun: Vec<usize>,
}

impl Nest {
    fn innermost(&self) -> Option<usize> {
        self.begun.last().copied().or(self.joined)
    }
}

/// What a call says, before it is known which block it belongs to.
#[derive(Clone, PartialEq, Debug)]
pub struct Said<'a> {
    /// Assume, ensure or state.
    pub word: Word,
    /// What the user calls the value.
    pub name: &'a str,
    /// When two values count as the same.
    pub predicate: Predicate,
    /// The value.
    pub value: Value,
}

/// Collects the blocks of one execution of the program.
#[derive(Debug)]
pub struct Recorder<S = SiteId> {
    threads: FxHashMap<ThreadId, Nest>,
    /// Every block so far, by the order of their begins; those that have ended keep only their name.
    blocks: Vec<Result<Open<S>, Box<str>>>,
}

impl<S> Default for Recorder<S> {
    fn default() -> Recorder<S> {
        Recorder { threads: FxHashMap::default(), blocks: Vec::new() }
    }
}

impl<S: Clone> Recorder<S> {
    /// Nothing has happened yet.
    pub fn new() -> Recorder<S> {
        Recorder::default()
    }

    /// A thread starts another one, which is then in the same block.
    pub fn start(&mut self, parent: ThreadId, child: ThreadId) {
        let joined = self.threads.get(&parent).and_then(Nest::innermost);
        self.threads.insert(child, Nest { joined, begun: Vec::new() });
    }

    /// A thread enters a block.
    pub fn begin(&mut self, thread: ThreadId, block: &str, site: S) {
        let execution = BlockExecution { block: block.into(), site, calls: Vec::new() };
        let open = Open { execution, ensured: None, counts: FxHashMap::default() };
        self.threads.entry(thread).or_default().begun.push(self.blocks.len());
        self.blocks.push(Ok(open));
    }

    /// A thread ends the innermost block that it began.
    pub fn end(&mut self, thread: ThreadId, site: S) -> Result<BlockExecution<S>, Misuse<S>> {
        let ended = self.threads.get_mut(&thread).and_then(|nest| nest.begun.pop()).and_then(|i| {
            let block = self.blocks[i].as_ref().ok()?.execution.block.clone();
            std::mem::replace(&mut self.blocks[i], Err(block)).ok()
        });
        ended.map(|open| open.execution).ok_or(Misuse::EndWithoutBegin { site })
    }

    /// A thread ends without ending the innermost block that it began, if it began one.
    pub fn abandon(&mut self, thread: ThreadId) {
        self.threads.get_mut(&thread).and_then(|nest| nest.begun.pop());
    }

    /// The innermost block of the thread, for another thread to join.
    pub fn token(&self, thread: ThreadId) -> Token {
        Token(self.threads.get(&thread).and_then(Nest::innermost))
    }

    /// A thread enters the block of the token, and leaves the one that it had joined before. A token of no block only
    /// leaves.
    pub fn join(&mut self, thread: ThreadId, token: Token, site: S) -> Result<(), Misuse<S>> {
        if token.0.is_some_and(|i| !self.blocks.get(i).is_some_and(Result::is_ok)) {
            return Err(Misuse::JoinAfterEnd { site });
        }
        self.threads.entry(thread).or_default().joined = token.0;
        Ok(())
    }

    /// The innermost block of the thread, unless it has ended.
    pub fn block_of(&self, thread: ThreadId) -> Option<&str> {
        let i = self.threads.get(&thread).and_then(Nest::innermost)?;
        self.blocks[i].as_ref().ok().map(|open| &*open.execution.block)
    }

    /// A thread says something. `across` is the thread's name across executions.
    pub fn call(
        &mut self,
        thread: ThreadId,
        across: ThreadName,
        said: Said<'_>,
        site: S,
    ) -> Result<(), Misuse<S>> {
        let Said { word, name, predicate, value } = said;
        let open = match self.threads.get(&thread).and_then(Nest::innermost) {
            None => return Err(Misuse::Outside { word, name: name.into(), site }),
            Some(i) => match &mut self.blocks[i] {
                Ok(open) => open,
                Err(block) => {
                    return Err(Misuse::AfterEnd { block: block.clone(), name: name.into(), site });
                }
            },
        };
        match (word, open.ensured) {
            (Word::Assume, Some(i)) => {
                let ensured = &open.execution.calls[i];
                return Err(Misuse::AssumeAfterEnsure {
                    block: open.execution.block.clone(),
                    name: name.into(),
                    site,
                    ensured: ensured.key.name.clone(),
                    ensured_at: ensured.site.clone(),
                });
            }
            (Word::Ensure, None) => open.ensured = Some(open.execution.calls.len()),
            (Word::Assume | Word::Ensure | Word::Observe | Word::Before | Word::After, _) => {}
        }
        let count = open.counts.entry((word, across, name.into())).or_default();
        let key = Key { word, name: name.into(), thread: across, nth: *count };
        *count += 1;
        open.execution.calls.push(Call { key, predicate, value: Kept::from(value), site });
        Ok(())
    }

    /// The execution has ended: the blocks that have not.
    pub fn finish(self) -> Vec<Unclosed<S>> {
        let open = self.blocks.into_iter().flatten();
        open.map(|o| Unclosed { block: o.execution.block, site: o.execution.site }).collect()
    }
}
