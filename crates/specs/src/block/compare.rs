//! Compares two executions of a block.
//!
//! Calls are paired by [`Key`]: word, name, thread and count. An execution whose assumptions are not the same, or that
//! makes other `assume` calls, cannot be compared. An `ensure` that only one execution makes is a difference.
//!
//! *Guarantee*: the outcome does not depend on the order in which threads made their calls, except for the order in
//! which differences are listed: that of the first execution, and where it lacks the call, that of the second.

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::block::{BlockExecution, Call, Kept, Key, Word};
use crate::predicate::{Judge, Predicate, Unfit};

/// How two executions of a block relate.
#[derive(Clone, PartialEq, Debug)]
pub enum Comparison<S> {
    /// They assume different things: the first assumption that differs.
    Incomparable(Difference<S>),
    /// Everything that is ensured is the same.
    Same,
    /// Something that is ensured is not.
    Differs {
        /// The first difference.
        first: Box<Difference<S>>,
        /// The other ones.
        later: Vec<Difference<S>>,
    },
}

/// A call whose values are not the same, or that only one execution made.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Difference<S> {
    /// The call.
    pub key: Key,
    /// How values were compared.
    pub predicate: Predicate,
    /// Value and place in the first execution, if it made the call.
    pub first: Option<(Kept, S)>,
    /// Value and place in the second execution, if it made the call.
    pub second: Option<(Kept, S)>,
}

impl<S: Clone> Difference<S> {
    fn new(first: Option<&Call<S>>, second: Option<&Call<S>>) -> Option<Difference<S>> {
        let call = first.or(second)?;
        let side = |call: Option<&Call<S>>| call.map(|c| (c.value.clone(), c.site.clone()));
        Some(Difference {
            key: call.key.clone(),
            predicate: call.predicate.clone(),
            first: side(first),
            second: side(second),
        })
    }
}

/// A predicate could not judge a call. That is no verdict.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("{}: {unfit}", key.name)]
#[derive(serde::Serialize, serde::Deserialize)]
pub struct Trouble<S> {
    /// The call.
    pub key: Key,
    /// Where it stands in the first execution.
    pub first: S,
    /// Where it stands in the second.
    pub second: S,
    /// What is wrong.
    pub unfit: Unfit,
}

/// Compares two executions of one block. Equal digests are the same value under every predicate.
pub fn compare<S: Clone>(
    a: &BlockExecution<S>,
    b: &BlockExecution<S>,
    judge: &mut dyn Judge,
) -> Result<Comparison<S>, Trouble<S>> {
    let (assumed, assumed_too) = (a.calls_of(Word::Assume), b.calls_of(Word::Assume));
    if let Some(difference) = differing(assumed, assumed_too, true, judge)?.into_iter().next() {
        return Ok(Comparison::Incomparable(difference));
    }
    let (ensured, ensured_too) = (a.calls_of(Word::Ensure), b.calls_of(Word::Ensure));
    let mut differences = differing(ensured, ensured_too, false, judge)?.into_iter();
    Ok(match differences.next() {
        None => Comparison::Same,
        Some(first) => Comparison::Differs { first: Box::new(first), later: differences.collect() },
    })
}

/// What differs between the calls of two executions, or the first thing that does.
pub(crate) fn differing<'a, S: Clone + 'a>(
    a: impl Iterator<Item = &'a Call<S>>,
    b: impl Iterator<Item = &'a Call<S>>,
    only_first: bool,
    judge: &mut dyn Judge,
) -> Result<Vec<Difference<S>>, Trouble<S>> {
    let mut unpaired: FxHashMap<&Key, (usize, &Call<S>)> =
        b.enumerate().map(|(i, c)| (&c.key, (i, c))).collect();
    let mut found = Vec::new();
    for (i, first) in a.enumerate() {
        let second = unpaired.remove(&first.key).map(|(_, call)| call);
        let same = match second {
            Some(second) => same(first, second, judge)?,
            None => false,
        };
        if !same {
            found.push((i, 0, Difference::new(Some(first), second)));
            if only_first {
                break;
            }
        }
    }
    found.extend(unpaired.values().map(|&(i, call)| (i, 1, Difference::new(None, Some(call)))));
    found.sort_by_key(|&(i, side, _)| (i, side));
    Ok(found.into_iter().filter_map(|(_, _, difference)| difference).collect())
}

/// Whether two paired calls count as the same.
pub(crate) fn same<S: Clone>(
    first: &Call<S>,
    second: &Call<S>,
    judge: &mut dyn Judge,
) -> Result<bool, Trouble<S>> {
    judged(first, second, judge).map_err(|unfit| Trouble {
        key: first.key.clone(),
        first: first.site.clone(),
        second: second.site.clone(),
        unfit,
    })
}

fn judged<S>(first: &Call<S>, second: &Call<S>, judge: &mut dyn Judge) -> Result<bool, Unfit> {
    let predicate = &first.predicate;
    if *predicate != second.predicate {
        let (first, second) = (predicate.clone(), second.predicate.clone());
        return Err(Unfit::Predicates { first, second });
    }
    if first.value.digest == second.value.digest {
        return Ok(true);
    }
    match (&first.value.value, &second.value.value) {
        _ if *predicate == Predicate::Exact => Ok(false),
        (Some(a), Some(b)) => predicate.same(a, b, judge),
        _ => Err(Unfit::OnlyDigest { predicate: predicate.clone() }),
    }
}
