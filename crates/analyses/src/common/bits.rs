//! Sets of small numbers.

/// A set of small numbers: one word for those below 64, more words as needed.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Bits {
    low: u64,
    // invariant: the last word is not zero.
    high: Vec<u64>,
}

impl Bits {
    pub(crate) fn contains(&self, bit: u32) -> bool {
        self.word(bit as usize / 64) >> (bit % 64) & 1 != 0
    }

    pub(crate) fn insert(&mut self, bit: u32) {
        let word = bit as usize / 64;
        if word == 0 {
            self.low |= 1 << bit;
        } else {
            if word > self.high.len() {
                self.high.resize(word, 0);
            }
            self.high[word - 1] |= 1 << (bit % 64);
        }
    }

    pub(crate) fn remove(&mut self, bit: u32) {
        let word = bit as usize / 64;
        if word == 0 {
            self.low &= !(1 << bit);
        } else if word <= self.high.len() {
            self.high[word - 1] &= !(1 << (bit % 64));
            while self.high.last() == Some(&0) {
                self.high.pop();
            }
        }
    }

    pub(crate) fn join(&mut self, other: &Bits) {
        self.low |= other.low;
        if self.high.len() < other.high.len() {
            self.high.resize(other.high.len(), 0);
        }
        for (mine, theirs) in self.high.iter_mut().zip(&other.high) {
            *mine |= theirs;
        }
    }

    pub(crate) fn contains_all(&self, other: &Bits) -> bool {
        other.low & !self.low == 0
            && other.high.len() <= self.high.len()
            && other.high.iter().zip(&self.high).all(|(theirs, mine)| theirs & !mine == 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.low).chain(self.high.iter().copied()).zip(0u32..).flat_map(
            |(mut word, i)| {
                std::iter::from_fn(move || {
                    let bit = (word != 0).then(|| word.trailing_zeros())?;
                    word &= word - 1;
                    Some(i * 64 + bit)
                })
            },
        )
    }

    fn word(&self, i: usize) -> u64 {
        if i == 0 { self.low } else { self.high.get(i - 1).copied().unwrap_or(0) }
    }
}

impl FromIterator<u32> for Bits {
    fn from_iter<I: IntoIterator<Item = u32>>(bits: I) -> Bits {
        let mut set = Bits::default();
        bits.into_iter().for_each(|b| set.insert(b));
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set(a in proptest::collection::btree_set(0u32..200, 0..20),
                       b in proptest::collection::btree_set(0u32..200, 0..20), gone in 0u32..200) {
            let set = |s: &BTreeSet<u32>| s.iter().copied().collect::<Bits>();
            let (x, y) = (set(&a), set(&b));
            prop_assert!(x.iter().eq(a.iter().copied()));
            prop_assert_eq!(x.contains_all(&y), a.is_superset(&b));
            let mut both = x.clone();
            both.join(&y);
            prop_assert_eq!(&both, &set(&(&a | &b)));
            both.remove(gone);
            prop_assert!(!both.contains(gone));
            let rest: BTreeSet<u32> = (&a | &b).into_iter().filter(|&n| n != gone).collect();
            prop_assert_eq!(&both, &set(&rest));
        }
    }
}
