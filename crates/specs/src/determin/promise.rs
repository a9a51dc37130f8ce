//! What was inferred of a block, as assertions about its executions.
//!
//! An execution that recorded the states which an inference is about is turned into one that assumes the precondition
//! and ensures the postcondition. Executions of that kind are compared like those of any block; one that differs is an
//! *anomaly*: it breaks what all executions before it kept.

use serde::{Deserialize, Serialize};

use super::table::named;
use super::{Conjunct, Specification};
use crate::{BlockExecution, Call, Key, ThreadName, Word};

/// What was inferred of a block, without the evidence.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Promise {
    /// The block.
    pub block: Box<str>,
    /// What two executions must have in common.
    pub assumes: Vec<Conjunct>,
    /// What they then have in common.
    pub ensures: Vec<Conjunct>,
}

impl From<&Specification> for Promise {
    fn from(of: &Specification) -> Promise {
        let conjuncts =
            |list: &[super::Supported]| list.iter().map(|s| s.conjunct.clone()).collect();
        Promise {
            block: of.block.clone(),
            assumes: conjuncts(&of.precondition),
            ensures: conjuncts(&of.postcondition),
        }
    }
}

impl Promise {
    /// The name of the block that assumes and ensures what was inferred.
    pub fn name(&self) -> Box<str> {
        format!("{} (inferred)", self.block).into()
    }

    /// The execution with what was inferred as its assumptions and results. Nothing if it is one of another block, or
    /// did not record all the states, or if nothing is promised.
    pub fn of<S: Clone>(&self, execution: &BlockExecution<S>) -> Option<BlockExecution<S>> {
        if execution.block != self.block || self.ensures.is_empty() {
            return None;
        }
        let mut calls = Vec::new();
        for (from, to, conjuncts) in [
            (Word::Before, Word::Assume, &self.assumes),
            (Word::After, Word::Ensure, &self.ensures),
        ] {
            let states = named(execution, from);
            for Conjunct { name, predicate } in conjuncts {
                let state = states.get(name)?;
                calls.push(Call {
                    // Names are those of locations, each of which was recorded once.
                    key: Key { word: to, name: name.clone(), thread: ThreadName(0), nth: 0 },
                    predicate: predicate.clone(),
                    value: state.value.clone(),
                    site: state.site.clone(),
                });
            }
        }
        Some(BlockExecution { block: self.name(), site: execution.site.clone(), calls })
    }
}
