//! When a thread did something: stretches between two of its synchronizations, as the program under test
//! counts them, and what was true of the thread in each.

use std::collections::VecDeque;

const CLOCK_BITS: u32 = selvedge_injected::shadow::CLOCK_BITS;

/// An epoch of a thread: the component of clocks that it has, and how far that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch(u32);

impl Epoch {
    /// An epoch as records have it.
    pub fn from_record(bits: u64) -> Epoch {
        Epoch(bits as u32)
    }

    /// The one after it.
    pub(crate) fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }

    /// Whether both are of one component. Only those have an order.
    fn is_comparable(self, other: Epoch) -> bool {
        self.0 >> CLOCK_BITS == other.0 >> CLOCK_BITS
    }
}

/// What was true of one thread from which epoch on, as far back as it is remembered.
#[derive(Clone, Debug)]
pub struct Past<T> {
    /// Latest last.
    changes: VecDeque<(Epoch, T)>,
    forgotten: bool,
}

impl<T> Default for Past<T> {
    fn default() -> Past<T> {
        Past { changes: VecDeque::new(), forgotten: false }
    }
}

impl<T: Copy> Past<T> {
    /// Changes that are remembered.
    const REMEMBERED: usize = 2048;

    /// It is true from this epoch on.
    pub fn change(&mut self, from: Epoch, now: T) {
        if self.changes.back().is_some_and(|(last, _)| *last == from) {
            self.changes.pop_back();
        }
        if self.changes.len() == Self::REMEMBERED {
            self.changes.pop_front();
            self.forgotten = true;
        }
        self.changes.push_back((from, now));
    }

    /// What was true in an epoch, `first` being true before any change. None if that is not known: it is
    /// long ago, or the thread had another component of clocks meanwhile.
    pub fn at(&self, epoch: Epoch, first: T) -> Option<T> {
        let comparable = |(from, _): &&(Epoch, T)| from.is_comparable(epoch);
        let before =
            self.changes.iter().rev().filter(comparable).find(|(from, _)| from.0 <= epoch.0);
        let begun = !self.forgotten && self.changes.iter().all(|change| comparable(&change));
        before.map(|&(_, value)| value).or(begun.then_some(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_true_is_remembered_for_a_while() {
        let epoch = |slot: u32, clock: u32| Epoch(slot << CLOCK_BITS | clock);
        let mut past = Past::default();
        assert_eq!(past.at(epoch(1, 9), 'a'), Some('a'));
        past.change(epoch(1, 5), 'x');
        past.change(epoch(1, 5), 'b');
        past.change(epoch(1, 7), 'c');
        let found = [4, 5, 6, 7, 100].map(|clock| past.at(epoch(1, clock), 'a'));
        assert_eq!(found, ['a', 'b', 'b', 'c', 'c'].map(Some));
        assert_eq!(past.at(epoch(2, 6), 'a'), None, "another component");
        for clock in 8..5000 {
            past.change(epoch(1, clock), 'd');
        }
        assert_eq!(past.at(epoch(1, 6), 'a'), None, "long ago");
        assert_eq!(past.at(epoch(1, 4999), 'a'), Some('d'));
    }
}
