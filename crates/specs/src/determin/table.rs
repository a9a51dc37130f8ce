//! What is inferred from: executions of a block, with the values of its locations before and after.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use crate::{BlockExecution, Call, Value, Word};

/// One execution, as a line of a file of executions has it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The block.
    pub block: Box<str>,
    /// The values before.
    pub pre: BTreeMap<Box<str>, Value>,
    /// The values after.
    pub post: BTreeMap<Box<str>, Value>,
}

impl Row {
    /// The states that an execution recorded. A location that was recorded several times, or by several threads, is as
    /// many locations.
    pub fn of<S>(execution: &BlockExecution<S>) -> Row {
        let side = |word| {
            let calls = named(execution, word).into_iter();
            calls.filter_map(|(name, call)| Some((name, call.value.value.clone()?))).collect()
        };
        Row { block: execution.block.clone(), pre: side(Word::Before), post: side(Word::After) }
    }
}

/// The states that an execution recorded, by location.
pub(super) fn named<S>(execution: &BlockExecution<S>, word: Word) -> BTreeMap<Box<str>, &Call<S>> {
    let mut calls = BTreeMap::new();
    for call in execution.calls_of(word).filter(|c| c.value.value.is_some()) {
        let nth = (1..).map(|n| match n {
            1 => call.key.name.clone(),
            n => format!("{} ({n})", call.key.name).into(),
        });
        let free = nth.into_iter().find(|name| !calls.contains_key(name));
        calls.extend(free.map(|name| (name, call)));
    }
    calls
}

/// An execution does not fit to the others.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BadRow {
    /// It lacks a location.
    #[error(
        "this execution of the block {block:?} has no value for {name:?} {when} the block; the others have one"
    )]
    Lacks {
        /// The block.
        block: Box<str>,
        /// The location.
        name: Box<str>,
        /// Before or after.
        when: &'static str,
    },
    /// It has a location that the others do not have.
    #[error(
        "this execution of the block {block:?} has a value for {name:?} {when} the block; the others have none"
    )]
    More {
        /// The block.
        block: Box<str>,
        /// The location.
        name: Box<str>,
        /// Before or after.
        when: &'static str,
    },
}

/// Executions of one block. All have the same locations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    pub(super) block: Box<str>,
    pub(super) before: Vec<Box<str>>,
    pub(super) after: Vec<Box<str>>,
    /// By execution, then in the order of the names.
    pub(super) rows: Vec<(Vec<Value>, Vec<Value>)>,
}

impl Table {
    /// A table with one execution.
    pub fn new(row: Row) -> Table {
        let Row { block, pre, post } = row;
        let (before, first): (Vec<_>, Vec<_>) = pre.into_iter().unzip();
        let (after, last): (Vec<_>, Vec<_>) = post.into_iter().unzip();
        Table { block, before, after, rows: vec![(first, last)] }
    }

    /// The block.
    pub fn block(&self) -> &str {
        &self.block
    }

    /// Adds an execution of the same block.
    pub fn push(&mut self, row: Row) -> Result<(), BadRow> {
        let Row { block, pre, post } = row;
        let fitting = |names: &[Box<str>], mut values: BTreeMap<Box<str>, Value>, when| {
            let mut column = Vec::with_capacity(names.len());
            for name in names {
                let lacks = || BadRow::Lacks { block: block.clone(), name: name.clone(), when };
                column.push(values.remove(name).ok_or_else(lacks)?);
            }
            match values.into_keys().next() {
                Some(name) => Err(BadRow::More { block: block.clone(), name, when }),
                None => Ok(column),
            }
        };
        let before = fitting(&self.before, pre, "before")?;
        let after = fitting(&self.after, post, "after")?;
        self.rows.push((before, after));
        Ok(())
    }

    /// The values of a location, if there is one of that name: those after the block, else those before.
    pub fn values(&self, name: &str) -> Vec<&Value> {
        if let Some(i) = self.after.iter().position(|n| &**n == name) {
            return self.rows.iter().map(|(_, after)| &after[i]).collect();
        }
        let before = self.before.iter().position(|n| &**n == name);
        before.map_or_else(Vec::new, |i| self.rows.iter().map(|(before, _)| &before[i]).collect())
    }
}
