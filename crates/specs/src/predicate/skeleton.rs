//! A value taken apart into its numbers and everything else, so that numbers can be put in order place by place.

use super::Predicate;
use crate::{Digest, Value};

/// Up to here `f64` represents whole numbers and their distances.
const WHOLE: i128 = 1 << 52;

impl Predicate {
    /// For a predicate over numbers: the value without its numbers, and the numbers. Values with different skeletons
    /// are not the same. None if a number is too large to be put in order as an `f64`.
    pub(crate) fn skeleton(&self, value: &Value) -> Option<(Digest, Vec<Value>)> {
        let mut numbers = Vec::new();
        let ulps = matches!(self, Predicate::Ulps(_));
        let skeleton = bare(value, ulps, &mut numbers)?;
        Some((skeleton.digest(), numbers))
    }
}

fn bare(value: &Value, ulps: bool, numbers: &mut Vec<Value>) -> Option<Value> {
    let mut inner = |value: &Value| bare(value, ulps, numbers);
    Some(match value {
        Value::Some(value) => Value::Some(Box::new(inner(value)?)),
        Value::Variant(name, value) => Value::Variant(name.clone(), Box::new(inner(value)?)),
        Value::List(values) => Value::List(values.iter().map(inner).collect::<Option<_>>()?),
        Value::Map(entries) => Value::Map(
            entries.iter().map(|(k, v)| Some((k.clone(), inner(v)?))).collect::<Option<_>>()?,
        ),
        Value::Record(members) => Value::Record(
            members.iter().map(|(n, v)| Some((n.clone(), inner(v)?))).collect::<Option<_>>()?,
        ),
        // Not near anything but itself.
        Value::F32(x) if !x.is_finite() => value.clone(),
        Value::F64(x) if !x.is_finite() => value.clone(),
        Value::Int(_) | Value::Huge(_) if ulps => value.clone(),
        Value::Int(n) if n.unsigned_abs() > WHOLE.unsigned_abs() => return None,
        Value::Huge(_) => return None,
        Value::F32(_) | Value::F64(_) | Value::Int(_) => {
            numbers.push(value.clone());
            // By steps, numbers of different types are never near; otherwise the type does not matter.
            if ulps && matches!(value, Value::F32(_)) { Value::F32(0.0) } else { Value::F64(0.0) }
        }
        Value::Unit
        | Value::None
        | Value::Bool(_)
        | Value::Char(_)
        | Value::Text(_)
        | Value::Bytes(_) => value.clone(),
    })
}
