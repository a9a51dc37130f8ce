//! Sets of conjuncts, by their numbers.

/// A set of small numbers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Set(Vec<u64>);

impl Set {
    /// Nothing, with room for numbers below `count`.
    pub fn empty(count: usize) -> Set {
        Set(vec![0; count.div_ceil(64)])
    }

    /// Every number below `count`.
    pub fn full(count: usize) -> Set {
        let mut set = Set::empty(count);
        (0..count).for_each(|i| set.insert(i));
        set
    }

    /// Adds a number for which there is room.
    pub fn insert(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    /// Takes a number out.
    pub fn remove(&mut self, i: usize) {
        self.0[i / 64] &= !(1 << (i % 64));
    }

    /// The set without a number.
    pub fn without(&self, i: usize) -> Set {
        let mut rest = self.clone();
        rest.remove(i);
        rest
    }

    /// Whether the number is in the set.
    pub fn contains(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    /// Whether everything in this set is in the other, which has the same room.
    pub fn is_subset(&self, other: &Set) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The numbers, in their order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            std::iter::successors(Some(word), |w| Some(w & w.wrapping_sub(1)))
                .take_while(|w| *w != 0)
                .map(move |w| i * 64 + w.trailing_zeros() as usize)
        })
    }
}
