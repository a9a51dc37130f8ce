//! A queue whose order is decided as late as possible.
//!
//! Operations that overlap put elements in any order. An eager state would have one of the orders, and there are as many
//! states as orders, of which most turn out wrong when the elements are taken. Here the state is the *set* of elements
//! in the queue, with the times of the operations that put them. An element may be taken if no other element in the
//! queue was put by an operation that had returned before this one's was called.
//!
//! That is exact. Let e be taken while f is in the queue: then e must have been put before f, although the search may
//! have put f first. It is possible unless f's operation returned before e's was called. If it is, let e's operation have
//! its effect just before f's returned, if not earlier: nothing that happened in between can tell, because the queue was
//! not empty then, and the elements that were taken then left before both.

use super::future::{Future, Id, UNSEEN};
use crate::Value;

/// An element, and when the operation that put it was called and returned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Element {
    pub(super) call: i64,
    pub(super) returned: i64,
    pub(super) id: Id,
}

impl Element {
    /// Whether it was certainly put before the other.
    fn precedes(self, other: Element) -> bool {
        self.returned < other.call
    }
}

/// The elements of a queue, sorted. Of those that stay for ever only the one that was put first is kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Queue(Box<[Element]>);

impl Queue {
    /// A queue that begins with these elements in this order.
    pub(super) fn of(ids: impl Iterator<Item = Id>) -> Queue {
        let elements = ids.zip(i64::MIN..);
        Queue(elements.map(|(id, time)| Element { call: time, returned: time, id }).collect())
    }

    /// The queue with one more element, unless the elements then cannot leave as they must.
    pub(super) fn with(&self, new: Element, future: &Future) -> Option<Queue> {
        let possible = self.0.iter().all(|&old| {
            let leaves_first = |a: Element, b: Element| future.allows([a.id, b.id].into_iter());
            (!old.precedes(new) || leaves_first(old, new))
                && (!new.precedes(old) || leaves_first(new, old))
        });
        if !possible {
            return None;
        }
        let mut elements = self.0.to_vec();
        if future.stays(new.id) {
            // It only matters before which elements it was put.
            let new = Element { call: i64::MIN, ..new };
            match elements.iter_mut().find(|e| future.stays(e.id)) {
                Some(old) => old.returned = old.returned.min(new.returned),
                None => elements.push(new),
            }
        } else {
            elements.push(new);
        }
        elements.sort_unstable();
        Some(Queue(elements.into()))
    }

    /// The queue after an operation that takes `ret`, or something unknown; null if the queue is empty.
    pub(super) fn taken(&self, ret: Option<&Value>, future: &Future) -> Vec<Queue> {
        if self.0.is_empty() {
            let nothing = matches!(ret, None | Some(Value::None));
            return if nothing { vec![self.clone()] } else { Vec::new() };
        }
        let wanted = match ret {
            Some(Value::None) => return Vec::new(),
            Some(value) => Some(future.id(value)).filter(|id| *id != UNSEEN),
            None => None,
        };
        let fits = |e: &Element| match (ret, wanted) {
            (Some(_), None) => false,
            (Some(_), Some(wanted)) => e.id == wanted,
            (None, _) => !future.stays(e.id),
        };
        let first = |e: &Element| !self.0.iter().any(|f| f.precedes(*e));
        let mut after: Vec<Queue> = Vec::new();
        for (i, e) in self.0.iter().enumerate().filter(|(_, e)| fits(e) && first(e)) {
            // Elements that were put by operations at the same times are the same.
            if i > 0 && self.0[i - 1] == *e {
                continue;
            }
            let mut rest = self.0.to_vec();
            rest.remove(i);
            after.push(Queue(rest.into()));
        }
        after
    }

    /// How many bytes it occupies besides its own size.
    pub(super) fn heap(&self) -> usize {
        size_of_val(&*self.0)
    }
}
