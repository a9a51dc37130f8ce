//! Histories: is there an order of overlapping operations that a sequential object would give the same answers in?
//!
//! A [`History`] is read from records of operations by a model (`register`, `queue`, …), and [`History::check`] decides
//! whether it is linearizable. Linearizability is local, so operations on different keys are checked apart.
//!
//! Papers: Wing and Gong, "Testing and verifying concurrent objects"; Lowe, "Testing for linearizability" (just-in-time
//! linearization with memory); Burnim, §5.2 for the definition.
//!
//! *Guarantee*: the verdict is exact, for histories with pending operations as well; [`Verdict::Undecided`] is said if
//! the caller's limit is reached first.

mod future;
mod models;
mod queue;
mod record;
mod search;

use std::collections::BTreeMap;

use thiserror::Error;

pub use models::{MODELS, ModelKind, UnknownModel};
pub use record::{BadRecord, Record};
pub use search::{Limit, Sequential, Spent};

use crate::Value;
use models::Object;

/// An operation, with times by which operations are ordered. Two operations overlap unless one returned before the other
/// was called.
#[derive(Clone, PartialEq, Debug)]
pub struct Operation<O, R> {
    /// What was called.
    pub op: O,
    /// When it was called.
    pub call: i64,
    /// What it returned, and when. None: it is pending, and may have had its effect or not.
    pub returned: Option<(R, i64)>,
}

/// The verdict over a history, or over the part of it that concerns one key.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// There is an order. Operations are named by their places; pending ones may be missing.
    Linearizable(Vec<usize>),
    /// There is none.
    NotLinearizable(Option<Prefix>),
    /// The limit was reached.
    Undecided,
}

/// The longest linearizable prefix of a history that is not linearizable.
#[derive(Clone, PartialEq, Debug)]
pub struct Prefix {
    /// An order of it.
    pub order: Vec<usize>,
    /// How many operations returned in it.
    pub returned: usize,
    /// The operation that returned next: with its result there is no order.
    pub next: usize,
}

/// Decides whether operations are linearizable. `limit` is asked now and then whether to go on.
pub fn check<M: Sequential>(
    operations: &[Operation<M::Op, M::Ret>],
    initial: &M,
    limit: &mut dyn Limit,
) -> Verdict
where
    M::Op: Clone,
    M::Ret: Clone,
{
    match search::search(operations, initial, limit) {
        Some(Some(order)) => Verdict::Linearizable(order),
        Some(None) => Verdict::NotLinearizable(longest(operations, initial, limit)),
        None => Verdict::Undecided,
    }
}

/// The longest linearizable prefix of operations that are not linearizable, by bisection: a prefix of a linearizable
/// prefix is linearizable. None if the limit is reached.
fn longest<M: Sequential>(
    operations: &[Operation<M::Op, M::Ret>],
    initial: &M,
    limit: &mut dyn Limit,
) -> Option<Prefix>
where
    M::Op: Clone,
    M::Ret: Clone,
{
    let mut returns: Vec<(i64, usize)> = Vec::new();
    returns.extend(
        operations.iter().enumerate().filter_map(|(i, o)| Some((o.returned.as_ref()?.1, i))),
    );
    returns.sort_unstable();
    // Invariant: the first `good` returns have an order, the first `bad` have none.
    let (mut good, mut bad, mut order) = (0, returns.len(), Vec::new());
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        let (kept, places) = cut(operations, &returns[..middle]);
        match search::search(&kept, initial, limit)? {
            Some(found) => {
                order = found.into_iter().map(|i| places[i]).collect();
                good = middle;
            }
            None => bad = middle,
        }
    }
    Some(Prefix { order, returned: good, next: returns.get(good)?.1 })
}

/// What was known when the last of these operations returned, and the places of the operations.
fn cut<O: Clone, R: Clone>(
    operations: &[Operation<O, R>],
    returns: &[(i64, usize)],
) -> (Vec<Operation<O, R>>, Vec<usize>) {
    let now = returns.last().map_or(i64::MIN, |(time, _)| *time);
    let kept = operations.iter().enumerate().filter(|(_, o)| o.call <= now);
    let cut = |(i, o): (usize, &Operation<O, R>)| {
        let known = returns.iter().any(|(_, r)| *r == i);
        let returned = if known { o.returned.clone() } else { None };
        (Operation { op: o.op.clone(), call: o.call, returned }, i)
    };
    kept.map(cut).unzip()
}

/// A history of one kind of object.
#[derive(Clone, Debug)]
pub struct History {
    model: ModelKind,
    /// By key; operations by their place among the records.
    parts: BTreeMap<Value, (Vec<models::Operation>, Vec<usize>)>,
    initial: models::Initial,
    operations: usize,
    processes: usize,
}

/// A record that does not fit the model or the other records.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("{why}")]
pub struct Malformed {
    /// The place of the record.
    pub place: usize,
    /// What is wrong with it.
    pub why: BadRecord,
}

/// The verdict over one part of a history, with the places of records.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// The key; none if the object is not checked by parts.
    pub key: Option<Value>,
    /// The verdict.
    pub verdict: Verdict,
}

impl History {
    /// Understands records as operations of the model's object, which begins as `initial`.
    pub fn new(
        model: ModelKind,
        initial: Option<&Value>,
        records: &[Record],
    ) -> Result<History, Malformed> {
        let processes = record::processes(records)?;
        let initial = model.initial(initial).map_err(|why| Malformed { place: 0, why })?;
        let mut parts: BTreeMap<Value, (Vec<_>, Vec<_>)> = BTreeMap::new();
        for (place, record) in records.iter().enumerate() {
            let bad = |why| Malformed { place, why };
            let (key, operation) = model.operation(record).map_err(bad)?;
            let part = parts.entry(key).or_default();
            part.0.push(operation);
            part.1.push(place);
        }
        Ok(History { model, parts, initial, operations: records.len(), processes })
    }

    /// How many operations there are.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// Checks part by part, and stops after the first that is not linearizable.
    pub fn check(&self, limit: &mut dyn Limit) -> Vec<Part> {
        let mut checked = Vec::new();
        for (key, (operations, places)) in &self.parts {
            let object = Object::new(self.model, &self.initial, key);
            let place = |i: usize| places[i];
            let verdict = match check(operations, &object, limit) {
                Verdict::Linearizable(order) => {
                    Verdict::Linearizable(order.into_iter().map(place).collect())
                }
                Verdict::NotLinearizable(prefix) => {
                    Verdict::NotLinearizable(prefix.map(|p| Prefix {
                        order: p.order.into_iter().map(place).collect(),
                        returned: p.returned,
                        next: place(p.next),
                    }))
                }
                Verdict::Undecided => Verdict::Undecided,
            };
            let failed = matches!(verdict, Verdict::NotLinearizable(_));
            let key = (*key != Value::None).then(|| key.clone());
            checked.push(Part { key, verdict });
            if failed {
                break;
            }
        }
        checked
    }
}
