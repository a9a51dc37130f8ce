//! An index of executions: finds an execution that a new one differs from, without looking at all of them.
//!
//! Executions of one block that make the same `assume` calls and agree on the exact ones are in one *bucket*, which is
//! found by a digest. Those that agree on all assumptions form a *group* of the bucket; assumptions by other
//! predicates are tried on one execution of each group. A group remembers of every `ensure` only what can contradict
//! a new value (see [`Results`]).
//!
//! *Guarantee*: [`Index::add`] reports a difference if and only if an execution that was added before can be compared
//! with this one and differs from it, and then it names such an execution. (For `relative` and `ulps` as for `within`
//! this holds because a number that is near the least and the greatest value of a group is near all between, up to rounding.)
//!
//! Cost of adding an execution: proportional to its values and to the groups of its bucket, not to the number of
//! executions; callbacks also cost a call for every distinct value of the group.

mod memory;
mod results;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use memory::Memory;
pub use results::Results;

use crate::block::{self, BlockExecution, Call, Comparison, Difference, Key, Trouble, Word};
use crate::{Digest, Judge, Predicate};

/// A number that the front end gives to an execution of a block. No two executions of a store have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ExecutionId(pub u64);

/// Executions of a bucket whose assumptions have equal values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Group {
    /// All assumptions of its executions.
    assumed: Digest,
    /// One of its executions.
    first: ExecutionId,
    /// How many executions it has.
    pub executions: u64,
    /// Which `ensure` calls executions made: up to two different answers, each with an execution.
    shapes: Vec<(Digest, ExecutionId)>,
    /// What was ensured.
    results: Vec<(Key, Results)>,
}

/// Where groups and executions are kept.
pub trait Storage<S> {
    /// Why they could not be read or written.
    type Error;
    /// The groups of a bucket, in the order of their numbers.
    fn groups(&mut self, bucket: Digest) -> Result<Vec<Group>, Self::Error>;
    /// Replaces the group with this number, or adds it.
    fn put(&mut self, bucket: Digest, number: usize, group: &Group) -> Result<(), Self::Error>;
    /// Keeps an execution. One that is not a witness is never asked for again.
    fn keep(
        &mut self,
        id: ExecutionId,
        execution: &BlockExecution<S>,
        witness: bool,
    ) -> Result<(), Self::Error>;
    /// An execution that was kept as a witness; none if it has been pruned.
    fn execution(&mut self, id: ExecutionId) -> Result<Option<BlockExecution<S>>, Self::Error>;
}

/// Why an execution was not added.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum Obstacle<S, E> {
    /// The storage failed.
    #[error("{0}")]
    Storage(E),
    /// A predicate could not judge.
    #[error("{0}")]
    Trouble(Trouble<S>),
}

impl<S, E> From<Trouble<S>> for Obstacle<S, E> {
    fn from(trouble: Trouble<S>) -> Obstacle<S, E> {
        Obstacle::Trouble(trouble)
    }
}

/// What became of an execution that was added.
#[derive(Clone, PartialEq, Debug)]
pub struct Checked<S> {
    /// How many executions it could be compared with.
    pub compared: u64,
    /// An earlier execution that it differs from.
    pub violation: Option<Violation<S>>,
}

/// Two executions that can be compared and differ.
#[derive(Clone, PartialEq, Debug)]
pub struct Violation<S> {
    /// The earlier execution.
    pub earlier: ExecutionId,
    /// The first difference; the earlier execution is the first one.
    pub first: Box<Difference<S>>,
    /// The other ones.
    pub later: Vec<Difference<S>>,
}

/// Finds executions that differ.
#[derive(Clone, Debug, Default)]
pub struct Index<T> {
    storage: T,
}

impl<T> Index<T> {
    /// An index over what is in the storage.
    pub fn new(storage: T) -> Index<T> {
        Index { storage }
    }

    /// The storage.
    pub fn storage(&self) -> &T {
        &self.storage
    }

    /// Adds an execution, after comparing it with the ones that were added before. Executions of different scopes are
    /// not compared: a scope is a build of the program. `also` are further scopes to compare with.
    ///
    /// If a predicate cannot judge, the execution is not added.
    pub fn add<S: Clone>(
        &mut self,
        id: ExecutionId,
        execution: &BlockExecution<S>,
        scope: &str,
        also: &[&str],
        judge: &mut dyn Judge,
    ) -> Result<Checked<S>, Obstacle<S, T::Error>>
    where
        T: Storage<S>,
    {
        reflexive(execution, judge)?;
        let shape = shape(execution);
        let mut checked = Checked { compared: 0, violation: None };
        for scope in std::iter::once(&scope).chain(also) {
            let bucket = bucket(execution, scope);
            for group in self.storage.groups(bucket).map_err(Obstacle::Storage)? {
                let Some(first) = self.storage.execution(group.first).map_err(Obstacle::Storage)?
                else {
                    continue;
                };
                if !assumes_the_same(&first, execution, judge)? {
                    continue;
                }
                checked.compared += group.executions;
                if checked.violation.is_none() {
                    checked.violation = self.violation(&group, shape, execution, judge)?;
                }
            }
        }
        self.insert((id, 1), execution, scope, shape)?;
        Ok(checked)
    }

    /// Adds executions that have been compared before and are all like this one, the first of them; no predicate is
    /// asked.
    pub fn restore<S: Clone>(
        &mut self,
        (first, count): (ExecutionId, u64),
        execution: &BlockExecution<S>,
        scope: &str,
    ) -> Result<(), Obstacle<S, T::Error>>
    where
        T: Storage<S>,
    {
        self.insert((first, count), execution, scope, shape(execution))
    }

    fn violation<S: Clone>(
        &mut self,
        group: &Group,
        shape: Digest,
        execution: &BlockExecution<S>,
        judge: &mut dyn Judge,
    ) -> Result<Option<Violation<S>>, Obstacle<S, T::Error>>
    where
        T: Storage<S>,
    {
        let mut suspects: Vec<ExecutionId> =
            group.shapes.iter().filter(|(s, _)| *s != shape).map(|(_, id)| *id).collect();
        for call in execution.calls_of(Word::Ensure) {
            if let Some((_, results)) = group.results.iter().find(|(key, _)| *key == call.key) {
                suspects.extend(results.suspects(call).map_err(|unfit| trouble(call, unfit))?);
            }
        }
        suspects.sort_unstable();
        suspects.dedup();
        for earlier in suspects {
            let Some(other) = self.storage.execution(earlier).map_err(Obstacle::Storage)? else {
                continue;
            };
            if let Comparison::Differs { first, later } = block::compare(&other, execution, judge)?
            {
                return Ok(Some(Violation { earlier, first, later }));
            }
        }
        Ok(None)
    }

    fn insert<S: Clone>(
        &mut self,
        (id, count): (ExecutionId, u64),
        execution: &BlockExecution<S>,
        scope: &str,
        shape: Digest,
    ) -> Result<(), Obstacle<S, T::Error>>
    where
        T: Storage<S>,
    {
        let bucket = bucket(execution, scope);
        let assumed = assumed(execution);
        let mut groups = self.storage.groups(bucket).map_err(Obstacle::Storage)?;
        let number = groups.iter().position(|g| g.assumed == assumed).unwrap_or(groups.len());
        let mut witness = false;
        if number == groups.len() {
            witness = true;
            groups.push(Group {
                assumed,
                first: id,
                executions: 0,
                shapes: Vec::new(),
                results: Vec::new(),
            });
        }
        let group = &mut groups[number];
        group.executions += count;
        witness |= results::two(&mut group.shapes, shape, id);
        for call in execution.calls_of(Word::Ensure) {
            let at = group.results.iter().position(|(key, _)| *key == call.key);
            let at = at.unwrap_or_else(|| {
                group.results.push((call.key.clone(), Results::default()));
                group.results.len() - 1
            });
            witness |= group.results[at].1.add(call, id).map_err(|unfit| trouble(call, unfit))?;
        }
        self.storage.keep(id, execution, witness).map_err(Obstacle::Storage)?;
        self.storage.put(bucket, number, group).map_err(Obstacle::Storage)
    }
}

fn trouble<S: Clone>(call: &Call<S>, unfit: crate::Unfit) -> Trouble<S> {
    let site = call.site.clone();
    Trouble { key: call.key.clone(), first: site.clone(), second: site, unfit }
}

fn reflexive<S: Clone>(
    execution: &BlockExecution<S>,
    judge: &mut dyn Judge,
) -> Result<(), Trouble<S>> {
    execution.reflexive(judge).map_err(|(call, unfit)| trouble(call, unfit))
}

/// Whether the executions agree on assumptions that are not exact. The bucket says that they agree on the others.
fn assumes_the_same<S: Clone>(
    stored: &BlockExecution<S>,
    new: &BlockExecution<S>,
    judge: &mut dyn Judge,
) -> Result<bool, Trouble<S>> {
    let inexact = |c: &&Call<S>| c.predicate != Predicate::Exact;
    for call in new.calls_of(Word::Assume).filter(inexact) {
        let Some(other) = stored.calls_of(Word::Assume).find(|c| c.key == call.key) else {
            return Ok(false);
        };
        if !block::same(other, call, judge)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The block, which assumptions it makes, and the values of the exact ones.
fn bucket<S>(execution: &BlockExecution<S>, scope: &str) -> Digest {
    let mut assumed: Vec<&Call<S>> = execution.calls_of(Word::Assume).collect();
    assumed.sort_by(|a, b| a.key.cmp(&b.key));
    let mut parts = vec![scope.as_bytes().to_vec(), execution.block.as_bytes().to_vec()];
    for call in assumed {
        parts.push(key(call));
        if call.predicate == Predicate::Exact {
            parts.push(call.value.digest.0.to_le_bytes().to_vec());
        }
    }
    Digest::of(parts.iter().map(Vec::as_slice))
}

/// All assumptions with their values.
fn assumed<S>(execution: &BlockExecution<S>) -> Digest {
    summed(execution, Word::Assume, |call| {
        [key(call), call.value.digest.0.to_le_bytes().to_vec()].concat()
    })
}

/// Which `ensure` calls the execution makes.
fn shape<S>(execution: &BlockExecution<S>) -> Digest {
    summed(execution, Word::Ensure, key)
}

fn summed<S>(
    execution: &BlockExecution<S>,
    word: Word,
    part: impl Fn(&Call<S>) -> Vec<u8>,
) -> Digest {
    let mut calls: Vec<&Call<S>> = execution.calls_of(word).collect();
    calls.sort_by(|a, b| a.key.cmp(&b.key));
    let parts: Vec<Vec<u8>> = calls.into_iter().map(part).collect();
    Digest::of(parts.iter().map(Vec::as_slice))
}

fn key<S>(call: &Call<S>) -> Vec<u8> {
    let Key { word: _, name, thread, nth } = &call.key;
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes.extend(thread.0.to_le_bytes());
    bytes.extend(nth.to_le_bytes());
    bytes.extend(call.predicate.to_string().bytes());
    bytes
}
