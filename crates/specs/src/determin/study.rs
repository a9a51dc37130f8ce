//! A table under study: its conjuncts, the strongest postcondition (algorithm 2), and whether a precondition implies a
//! postcondition.

use rustc_hash::FxHashMap;

use super::columns::{Column, interned, row_digest};
use super::pairs::{Side, apart, pairs};
use super::set::Set;
use super::table::Table;
use super::{Conjunct, Remark};

/// A table, with what its conjuncts say of the executions.
pub struct Study<'a> {
    pub(super) table: &'a Table,
    pub(super) before: Side<'a>,
    pub(super) after: Side<'a>,
    /// The input of each execution: equal numbers are equal values of all locations before the block.
    pub(super) inputs: Vec<u32>,
    /// By `after` location: whether the block changed it in an execution, or it has no value before.
    changed: Vec<bool>,
}

impl<'a> Study<'a> {
    /// Looks at every value of the table once.
    pub fn new(table: &'a Table) -> Study<'a> {
        let executions = table.rows.len();
        let side = |names: &[Box<str>], value: &dyn Fn(usize, usize) -> &'a crate::Value| {
            let columns = names.iter().enumerate().flat_map(|(l, name)| {
                let values: Vec<_> = (0..executions).map(|i| value(i, l)).collect();
                Column::all(name, &values)
            });
            Side::new(columns.collect(), executions)
        };
        let before = side(&table.before, &|i, l| &table.rows[i].0[l]);
        let after = side(&table.after, &|i, l| &table.rows[i].1[l]);
        let inputs = interned(table.rows.iter().map(|(before, _)| row_digest(before)));
        let changed = table.after.iter().enumerate().map(|(l, name)| {
            table
                .before
                .iter()
                .position(|n| n == name)
                .is_none_or(|k| table.rows.iter().any(|(before, after)| before[k] != after[l]))
        });
        let changed = changed.collect();
        Study { table, before, after, inputs, changed }
    }

    /// What may stand in a precondition.
    pub fn preconjuncts(&self) -> Vec<&Conjunct> {
        self.before.columns.iter().map(|c| &c.conjunct).collect()
    }

    /// What may stand in a postcondition.
    pub fn postconjuncts(&self) -> Vec<&Conjunct> {
        self.after.columns.iter().map(|c| &c.conjunct).collect()
    }

    /// How many different inputs there are.
    pub fn inputs(&self) -> usize {
        self.inputs.iter().max().map_or(0, |max| *max as usize + 1)
    }

    /// Whether two executions begin alike.
    pub fn input_run_twice(&self) -> bool {
        self.inputs() < self.inputs.len()
    }

    /// Whether the block changed a location of the postcondition in an execution.
    pub(super) fn changes(&self, conjunct: &Conjunct) -> bool {
        let at = self.table.after.iter().position(|n| *n == conjunct.name);
        at.is_none_or(|l| self.changed[l])
    }

    /// Algorithm 2 for the strongest precondition: what holds for every two executions that begin alike. Equal values
    /// are the same by every predicate, so these are the executions of one input.
    pub fn strongest_postcondition(&self) -> Set {
        let mut groups: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (i, input) in self.inputs.iter().enumerate() {
            groups.entry(*input).or_default().push(i as u32);
        }
        let mut post = Set::empty(self.after.len());
        for (c, column) in self.after.columns.iter().enumerate() {
            if groups.values().all(|group| apart(group, column).is_none()) {
                post.insert(c);
            }
        }
        post
    }

    /// Whether the precondition implies the postcondition for all pairs of executions; if not, a pair that shows it.
    pub fn implies(&self, pre: &Set, post: &Set) -> Result<(), (usize, usize)> {
        let loose = self.before.loose(pre);
        for group in self.before.groups(pre) {
            for column in post.iter().map(|c| &self.after.columns[c]) {
                let refuted = if loose.is_empty() {
                    apart(&group, column)
                } else {
                    pairs(&group, &loose).find(|&(i, j)| !column.same(i, j))
                };
                refuted.map_or(Ok(()), Err)?;
            }
        }
        Ok(())
    }

    /// Inputs that never varied, and inputs that never varied apart from each other.
    pub(super) fn remarks(&self) -> Vec<Remark> {
        let mut together: Vec<(&[u32], Vec<Box<str>>)> = Vec::new();
        let mut by_classes: FxHashMap<&[u32], usize> = FxHashMap::default();
        for column in &self.before.columns {
            if column.conjunct.predicate != crate::Predicate::Exact {
                continue;
            }
            let at = *by_classes.entry(&column.classes).or_insert(together.len());
            if at == together.len() {
                together.push((&column.classes, Vec::new()));
            }
            together[at].1.push(column.conjunct.name.clone());
        }
        let varies = |classes: &[u32]| classes.iter().any(|c| *c != 0);
        let remark = |(classes, names): (&[u32], Vec<Box<str>>)| match varies(classes) {
            false => Some(Remark::NeverVaried { names }),
            true => (names.len() > 1).then_some(Remark::NeverApart { names }),
        };
        together.into_iter().filter_map(remark).collect()
    }
}
