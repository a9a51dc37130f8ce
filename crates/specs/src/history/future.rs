//! What the rest of a history says about elements of a queue or a stack.
//!
//! Overlapping operations put elements in any order, and only when they are taken does it turn out which order it was.
//! But when an element can be taken is known from the history. So an order that contradicts it need not be tried:
//! of two elements, the one that must leave first cannot be one that is taken only after the other has been. And
//! elements that no operation returns cannot be told apart.

use rustc_hash::FxHashMap;

use crate::Value;

/// A value of a history, by number.
pub(super) type Id = u32;

/// The number of every value that no operation returns.
pub(super) const UNSEEN: Id = Id::MAX;

/// When elements of one value are put and taken.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    put: usize,
    taken: usize,
    /// The first call and the last return of operations that take it.
    first: Option<i64>,
    last: Option<i64>,
}

/// When elements can be taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Future {
    /// By value: no element of the value is taken before `.0`, and all are before `.1`, as far as that is known.
    times: Vec<(i64, i64)>,
    ids: Vec<(Value, Id)>,
    /// Not even an operation whose result is unknown takes an element that no operation returns.
    unseen_stay: bool,
    /// When the first pending operation that takes something was called.
    pending: i64,
}

impl Future {
    /// None if a value is taken more often than it is put.
    ///
    /// `put` are the values that are put, also by pending operations and at the beginning; `taken` the values, calls and
    /// returns of operations that take them, with no value for those that are pending.
    pub(super) fn new<'a>(
        put: impl Iterator<Item = &'a Value>,
        taken: impl Iterator<Item = (Option<&'a Value>, i64, i64)>,
    ) -> Option<Future> {
        let mut known: FxHashMap<crate::Digest, (Value, Known)> = FxHashMap::default();
        let mut pending: Option<i64> = None;
        for value in put {
            known
                .entry(value.digest())
                .or_insert_with(|| (value.clone(), Known::default()))
                .1
                .put += 1;
        }
        for (value, call, returned) in taken {
            let Some(value) = value else {
                pending = Some(pending.map_or(call, |p| p.min(call)));
                continue;
            };
            let entry =
                known.entry(value.digest()).or_insert_with(|| (value.clone(), Known::default()));
            let Known { taken, first, last, .. } = &mut entry.1;
            *taken += 1;
            *first = Some(first.map_or(call, |f| f.min(call)));
            *last = Some(last.map_or(returned, |l| l.max(returned)));
        }
        let mut values: Vec<(Value, Known)> = known.into_values().collect();
        values.sort_by(|a, b| a.0.cmp(&b.0));
        let mut future = Future { unseen_stay: pending.is_none(), ..Future::default() };
        future.pending = pending.unwrap_or(i64::MAX);
        for (value, known) in values {
            if known.taken > known.put {
                return None;
            }
            let id = if known.taken == 0 { UNSEEN } else { future.times.len() as Id };
            future.ids.push((value, id));
            if let (Some(mut first), Some(mut last)) = (known.first, known.last) {
                if known.put > known.taken {
                    // Some of them may stay, or be taken by an operation whose result is not known.
                    first = first.min(future.pending);
                    last = i64::MAX;
                }
                future.times.push((first, last));
            }
        }
        Some(future)
    }

    /// The number of a value.
    pub(super) fn id(&self, value: &Value) -> Id {
        let at = self.ids.binary_search_by(|(v, _)| v.cmp(value));
        at.map_or(UNSEEN, |at| self.ids[at].1)
    }

    fn times(&self, id: Id) -> (i64, i64) {
        self.times.get(id as usize).copied().unwrap_or((self.pending, i64::MAX))
    }

    /// Whether elements may leave in this order: no element is taken only after a later one has been.
    pub(super) fn allows(&self, leaving: impl Iterator<Item = Id>) -> bool {
        let mut earliest = i64::MIN;
        for id in leaving {
            let (first, last) = self.times(id);
            earliest = earliest.max(first);
            if earliest > last {
                return false;
            }
        }
        true
    }

    /// Whether an element stays for ever, and with it all that leave only after it.
    pub(super) fn stays(&self, id: Id) -> bool {
        id == UNSEEN && self.unseen_stay
    }
}
