//! What a group remembers of one `ensure`: as much as can contradict a new value, and no more.
//!
//! - Where the predicate is transitive, values fall into classes. Two different classes contradict every value, so two
//!   are enough.
//! - Where it is about numbers, values with the same skeleton (everything but the numbers) differ least from the
//!   least and most from the greatest number at each place. Different skeletons differ, so two are enough.
//! - Otherwise every distinct value counts.

use serde::{Deserialize, Serialize};

use super::ExecutionId;
use crate::{Call, Digest, NoCallbacks, Predicate, Unfit, Value};

/// What executions ensured in one call.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// Up to two classes or skeletons, each with an execution.
    kinds: Vec<(Digest, ExecutionId)>,
    /// The least and greatest numbers of the first skeleton, place by place.
    ranges: Vec<Extremes>,
    /// Every distinct value, where only that will do.
    distinct: Vec<(Digest, ExecutionId)>,
}

/// The least and the greatest number that a place had, as bits of an `f64`, and in which executions.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Extremes {
    least: (u64, ExecutionId),
    greatest: (u64, ExecutionId),
}

/// Notes a kind unless it is there or two others are. Whether it was noted.
pub(super) fn two(kinds: &mut Vec<(Digest, ExecutionId)>, kind: Digest, id: ExecutionId) -> bool {
    let noted = kinds.len() < 2 && kinds.iter().all(|(k, _)| *k != kind);
    if noted {
        kinds.push((kind, id));
    }
    noted
}

/// How a value is looked at.
enum Look {
    Class(Digest),
    Numbers(Digest, Vec<Value>),
    Distinct(Digest),
}

impl Results {
    /// Executions that may differ from the call: if any execution does, one of these does.
    pub(super) fn suspects<S>(&self, call: &Call<S>) -> Result<Vec<ExecutionId>, Unfit> {
        let others = |kinds: &[(Digest, ExecutionId)], kind: Digest| {
            kinds.iter().filter(|(k, _)| *k != kind).map(|(_, id)| *id).collect::<Vec<_>>()
        };
        Ok(match look(call)? {
            Look::Class(class) => others(&self.kinds, class),
            // Numbers that were looked at and values that were not may be in one group.
            Look::Distinct(digest) => {
                let mut suspects = others(&self.distinct, digest);
                suspects.extend(self.kinds.iter().map(|(_, id)| *id));
                suspects.extend(self.ranges.iter().flat_map(|e| [e.least.1, e.greatest.1]));
                suspects
            }
            Look::Numbers(skeleton, numbers) => {
                let mut suspects = others(&self.kinds, skeleton);
                suspects.extend(self.distinct.iter().map(|(_, id)| *id));
                if self.kinds.first().is_some_and(|(k, _)| *k == skeleton) {
                    suspects.extend(self.outside(&call.predicate, &numbers)?);
                }
                suspects
            }
        })
    }

    /// The executions whose extreme numbers are not near the given ones.
    fn outside(&self, predicate: &Predicate, numbers: &[Value]) -> Result<Vec<ExecutionId>, Unfit> {
        let mut found = Vec::new();
        for (range, number) in self.ranges.iter().zip(numbers) {
            for (bits, id) in [range.least, range.greatest] {
                let extreme = f64::from_bits(bits);
                let extreme = match number {
                    // The skeleton says that it was one; so the conversion loses nothing.
                    Value::F32(_) if matches!(predicate, Predicate::Ulps(_)) => {
                        Value::F32(extreme as f32)
                    }
                    _ => Value::F64(extreme),
                };
                if !predicate.same(&extreme, number, &mut NoCallbacks)? {
                    found.push(id);
                }
            }
        }
        Ok(found)
    }

    /// Adds a value. Whether the execution is now a witness.
    pub(super) fn add<S>(&mut self, call: &Call<S>, id: ExecutionId) -> Result<bool, Unfit> {
        Ok(match look(call)? {
            Look::Class(class) => two(&mut self.kinds, class, id),
            Look::Distinct(digest) => {
                let new = self.distinct.iter().all(|(d, _)| *d != digest);
                if new {
                    self.distinct.push((digest, id));
                }
                new
            }
            Look::Numbers(skeleton, numbers) => {
                let mut witness = two(&mut self.kinds, skeleton, id);
                if self.kinds.first().is_some_and(|(k, _)| *k == skeleton) {
                    witness |= self.widen(&numbers, id);
                }
                witness
            }
        })
    }

    fn widen(&mut self, numbers: &[Value], id: ExecutionId) -> bool {
        let numbers = numbers.iter().filter_map(Value::number);
        if self.ranges.is_empty() {
            self.ranges.extend(numbers.map(|n| {
                let extreme = (n.to_bits(), id);
                Extremes { least: extreme, greatest: extreme }
            }));
            return !self.ranges.is_empty();
        }
        let mut widened = false;
        for (range, number) in self.ranges.iter_mut().zip(numbers) {
            if number < f64::from_bits(range.least.0) {
                range.least = (number.to_bits(), id);
                widened = true;
            }
            if number > f64::from_bits(range.greatest.0) {
                range.greatest = (number.to_bits(), id);
                widened = true;
            }
        }
        widened
    }
}

fn look<S>(call: &Call<S>) -> Result<Look, Unfit> {
    let predicate = &call.predicate;
    if *predicate == Predicate::Exact {
        return Ok(Look::Class(call.value.digest));
    }
    let Some(value) = &call.value.value else {
        return Err(Unfit::OnlyDigest { predicate: predicate.clone() });
    };
    if let Some(class) = predicate.class(value)? {
        return Ok(Look::Class(class));
    }
    let ranges = match predicate {
        Predicate::Within(_) | Predicate::Ulps(_) => true,
        // Above 1, a number may be near a negative and a positive one, and not near those between.
        Predicate::Relative(e) => *e <= 1.0,
        _ => false,
    };
    let skeleton = if ranges { predicate.skeleton(value) } else { None };
    Ok(match skeleton {
        Some((skeleton, numbers)) => Look::Numbers(skeleton, numbers),
        None => Look::Distinct(call.value.digest),
    })
}
