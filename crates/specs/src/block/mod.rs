//! One execution of a deterministic block: what it assumed, what it ensured, and the states to infer about.
//!
//! Paper: Burnim, §2.3 and chapter 3: `deterministic assume(Pre) { … } assert(Post)`, where `Pre` and `Post` relate
//! the values of two executions. [`Recorder`] builds a [`BlockExecution`] from the calls of a program;
//! [`compare`] compares two of them.

mod compare;
mod record;

use selvedge_model::SiteId;
use serde::{Deserialize, Serialize};

pub use compare::{Comparison, Difference, Trouble, compare};
pub(crate) use compare::{differing, same};
pub use record::{Misuse, Recorder, Said, Token, Unclosed};

use crate::predicate::{Judge, Unfit};
use crate::{Digest, Predicate, Value};

/// What a call says of its value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Two executions must have it in common to be compared.
    Assume,
    /// It must then be the same.
    Ensure,
    /// A location to infer about, before the block.
    Before,
    /// The same location when the block ends.
    After,
    /// It must be that of some execution in which atomic blocks run alone.
    Observe,
}

/// The name of a thread that is the same in every execution.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ThreadName(pub u64);

/// What calls of two executions are paired by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Key {
    /// Assume, ensure or state.
    pub word: Word,
    /// What the user calls the value.
    pub name: Box<str>,
    /// The thread.
    pub thread: ThreadName,
    /// How many calls of that word and name the thread has made before in this execution of the block.
    pub nth: u32,
}

/// A value, or its digest if that is enough.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Kept {
    /// The digest of the value.
    pub digest: Digest,
    /// The value itself, where it was kept.
    #[serde(with = "crate::value::stored::perhaps")]
    pub value: Option<Value>,
}

impl Kept {
    /// Keeps the digest only.
    pub fn digest_only(&self) -> Kept {
        Kept { digest: self.digest, value: None }
    }
}

impl From<Value> for Kept {
    fn from(value: Value) -> Kept {
        Kept { digest: value.digest(), value: Some(value) }
    }
}

/// One call of `assume`, `ensure` or `state`. `S` is a place in the source, as in [`Target`](selvedge_model::Target).
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Call<S = SiteId> {
    /// What it is paired by.
    pub key: Key,
    /// When two values count as the same.
    pub predicate: Predicate,
    /// What was handed over.
    pub value: Kept,
    /// Where the call stands.
    pub site: S,
}

/// One execution of a block, from its begin to its end.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct BlockExecution<S = SiteId> {
    /// The name of the block.
    pub block: Box<str>,
    /// Where it began.
    pub site: S,
    /// The calls, in the order in which they were made.
    pub calls: Vec<Call<S>>,
}

impl<S> BlockExecution<S> {
    /// The calls with this word.
    pub fn calls_of(&self, word: Word) -> impl Iterator<Item = &Call<S>> {
        self.calls.iter().filter(move |c| c.key.word == word)
    }

    /// The same with every place replaced.
    pub fn map<T>(self, mut place: impl FnMut(S) -> T) -> BlockExecution<T> {
        let BlockExecution { block, site, calls } = self;
        let site = place(site);
        let mut call = |Call { key, predicate, value, site }| Call {
            key,
            predicate,
            value,
            site: place(site),
        };
        let calls = calls.into_iter().map(&mut call).collect();
        BlockExecution { block, site, calls }
    }

    /// Whether it ensures anything.
    pub fn ensures(&self) -> bool {
        self.calls_of(Word::Ensure).next().is_some()
    }

    /// Checks that every predicate applies to its value and takes it for the same as itself. The call that is at fault
    /// comes with the error.
    pub fn reflexive(&self, judge: &mut dyn Judge) -> Result<(), (&Call<S>, Unfit)> {
        self.calls.iter().try_for_each(|call| match &call.value.value {
            Some(value) => call.predicate.reflexive(value, judge).map_err(|unfit| (call, unfit)),
            None => Ok(()),
        })
    }
}
