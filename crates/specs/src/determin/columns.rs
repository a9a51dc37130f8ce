//! One conjunct over all executions: which of them count as the same.
//!
//! For a transitive predicate executions fall into classes. For `within` the numbers of each place are sorted and cut
//! where two neighbours are too far apart: executions in different pieces are not the same. If no piece is longer than
//! the bound, as is usual, executions in one piece are the same, and the pieces are classes as well.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::Conjunct;
use crate::{Digest, NoCallbacks, Predicate, Value};

/// How close numbers are that count as the same.
pub(super) const NEAR: f64 = 1e-10;

/// One conjunct over all executions.
pub(super) struct Column<'a> {
    pub(super) conjunct: Conjunct,
    /// By execution. Executions of different classes are not the same.
    pub(super) classes: Vec<u32>,
    /// Executions of one class are the same only if their values are.
    pub(super) loose: Option<Vec<&'a Value>>,
}

impl<'a> Column<'a> {
    /// The columns of a location: one for each predicate that applies to all its values.
    pub(super) fn all(name: &str, values: &[&'a Value]) -> Vec<Column<'a>> {
        let predicates = applicable(values);
        predicates.into_iter().map(|predicate| Column::new(name, predicate, values)).collect()
    }

    fn new(name: &str, predicate: Predicate, values: &[&'a Value]) -> Column<'a> {
        let (classes, tight) = match &predicate {
            Predicate::Within(bound) => pieces(&predicate, values, *bound),
            _ => {
                let class = |value: &&Value| predicate.class(value).ok().flatten();
                (interned(values.iter().map(class)), true)
            }
        };
        let loose = (!tight).then(|| values.to_vec());
        Column { conjunct: Conjunct { name: name.into(), predicate }, classes, loose }
    }

    /// Whether the executions count as the same.
    pub(super) fn same(&self, i: usize, j: usize) -> bool {
        self.classes[i] == self.classes[j]
            && self.loose.as_ref().is_none_or(|values| {
                self.conjunct.predicate.same(values[i], values[j], &mut NoCallbacks) == Ok(true)
            })
    }

    /// Whether all executions count as the same.
    pub(super) fn constant(&self) -> bool {
        self.classes.iter().all(|c| *c == 0) && self.loose.is_none()
    }
}

/// Small numbers for things: the same number if and only if they are equal, in the order of their first appearance.
pub(super) fn interned<T: Hash + Eq>(things: impl Iterator<Item = T>) -> Vec<u32> {
    let mut numbers = FxHashMap::default();
    things
        .map(|thing| {
            let next = numbers.len() as u32;
            *numbers.entry(thing).or_insert(next)
        })
        .collect()
}

/// The predicates that are tried on a location, those that imply others first.
fn applicable(values: &[&Value]) -> Vec<Predicate> {
    let mut predicates = vec![Predicate::Exact];
    if values.iter().all(|v| matches!(v, Value::List(_))) {
        predicates.extend([Predicate::Multiset, Predicate::Set]);
    }
    let mut fraction = false;
    let mut number = |value: &Value| {
        let number = value.number();
        fraction |= number.is_some_and(|x| x.is_finite() && x.fract() != 0.0);
        number.is_some()
    };
    let numbers = values.iter().all(|value| match value {
        Value::List(items) => items.iter().all(&mut number),
        other => number(other),
    });
    if numbers && fraction {
        predicates.push(Predicate::Within(NEAR));
    }
    predicates
}

/// Classes by sorted pieces, and whether executions of one class are always the same.
fn pieces(predicate: &Predicate, values: &[&Value], bound: f64) -> (Vec<u32>, bool) {
    let Some(bare) = values.iter().map(|v| predicate.skeleton(v)).collect::<Option<Vec<_>>>()
    else {
        return (vec![0; values.len()], false);
    };
    let kinds = interned(bare.iter().map(|(skeleton, _)| *skeleton));
    let mut places: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
    kinds.iter().enumerate().for_each(|(i, kind)| places.entry(*kind).or_default().push(i));
    let mut keys: Vec<(u32, Vec<u32>)> = kinds.iter().map(|kind| (*kind, Vec::new())).collect();
    let mut tight = true;
    for members in places.values() {
        for place in 0..bare[members[0]].1.len() {
            let number = |i: usize| bare[i].1[place].number().unwrap_or_default();
            let mut sorted: Vec<(f64, usize)> = members.iter().map(|&i| (number(i), i)).collect();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (mut piece, mut start, mut last) = (0, sorted[0].0, sorted[0].0);
            for (x, i) in sorted {
                if x - last > bound {
                    piece += 1;
                    start = x;
                }
                tight &= x - start <= bound;
                last = x;
                keys[i].1.push(piece);
            }
        }
    }
    (interned(keys.into_iter()), tight)
}

/// The digest of a row of values.
pub(super) fn row_digest(values: &[Value]) -> Digest {
    let digests: Vec<[u8; 16]> = values.iter().map(|v| v.digest().0.to_le_bytes()).collect();
    Digest::of(digests.iter().map(<[u8; 16]>::as_slice))
}
