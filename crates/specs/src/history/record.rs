//! One operation as a line of a history has it.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use super::Malformed;
use crate::Value;

/// An operation as a line of a file has it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Who called it.
    pub process: Value,
    /// What was called.
    pub op: Box<str>,
    /// With which argument.
    #[serde(default = "nothing")]
    pub arg: Value,
    /// On which part of the object.
    #[serde(default)]
    pub key: Option<Value>,
    /// What it returned.
    #[serde(default = "nothing")]
    pub ret: Value,
    /// When it was called.
    pub call: i64,
    /// When it returned; without this it is pending.
    #[serde(rename = "return", default)]
    pub returned: Option<i64>,
}

fn nothing() -> Value {
    Value::None
}

/// What is wrong with a record.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum BadRecord {
    /// The model has no such operation.
    #[error("a {model} has no operation {op:?}; it has: {known}")]
    Operation {
        /// The model.
        model: &'static str,
        /// The operation.
        op: Box<str>,
        /// The operations that there are.
        known: String,
    },
    /// The argument is not one of the operation.
    #[error("the argument of {op} must be {expected}")]
    Argument {
        /// The operation.
        op: Box<str>,
        /// What it must be.
        expected: &'static str,
    },
    /// The result is not one of the operation.
    #[error("the result of {op} must be {expected}")]
    Result {
        /// The operation.
        op: Box<str>,
        /// What it must be.
        expected: &'static str,
    },
    /// The operation needs a key.
    #[error("{op} needs a key")]
    Key {
        /// The operation.
        op: Box<str>,
    },
    /// A result, but no time of return.
    #[error("a pending operation has no result: \"ret\" is there, but \"return\" is not")]
    PendingResult,
    /// It returned before it was called.
    #[error("the operation returns before it is called")]
    Backwards,
    /// The process was still busy.
    #[error(
        "process {process} calls this operation before its previous one, called at {previous}, has returned"
    )]
    Busy {
        /// The process.
        process: Value,
        /// When it called the previous one.
        previous: i64,
    },
    /// The initial state is not one of the model.
    #[error("the initial state of a {model} must be {expected}")]
    Initial {
        /// The model.
        model: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

/// Checks times; how many processes there are.
pub(super) fn processes(records: &[Record]) -> Result<usize, Malformed> {
    let mut by_process: BTreeMap<&Value, Vec<usize>> = BTreeMap::new();
    for (place, record) in records.iter().enumerate() {
        let bad = |why| Err(Malformed { place, why });
        match record.returned {
            Some(returned) if returned < record.call => return bad(BadRecord::Backwards),
            None if record.ret != Value::None => return bad(BadRecord::PendingResult),
            _ => {}
        }
        by_process.entry(&record.process).or_default().push(place);
    }
    for places in by_process.values_mut() {
        places.sort_by_key(|p| (records[*p].call, *p));
        for pair in places.windows(2) {
            let [previous, next] = [&records[pair[0]], &records[pair[1]]];
            if previous.returned.is_none_or(|returned| returned > next.call) {
                let (process, previous) = (next.process.clone(), previous.call);
                let why = BadRecord::Busy { process, previous };
                return Err(Malformed { place: pair[1], why });
            }
        }
    }
    Ok(by_process.len())
}
