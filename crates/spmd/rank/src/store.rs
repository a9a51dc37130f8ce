//! The interval store: which accesses touch which bytes.
//!
//! Paper: the thesis keeps accesses in an interval skip list (section 7.2). Deviation: we keep disjoint fragments in
//! a `BTreeMap`, each with the accesses that touch all of its bytes. Accesses to neighbouring bytes by the same
//! accesses become one fragment, so a loop over an array costs one fragment and not one interval per element.
//!
//! Cost: O((log n + k) · a) for an insertion or a search that touches k fragments with a accesses each.

use std::collections::BTreeMap;

use crate::rules::Bytes;

/// Bytes that the same accesses touch.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Fragment {
    end: u64,
    // invariant: sorted, without repetitions, not empty.
    ids: Vec<u32>,
}

/// Accesses by the bytes that they touch. What an access is, only its id says.
#[derive(Clone, Default, Debug)]
pub struct Store {
    fragments: BTreeMap<u64, Fragment>,
}

impl Store {
    /// Adds an access; returns the most accesses that touch one of its bytes, if it had to be compared with them.
    /// `covers(old, new)` says that `old` makes `new` redundant where both touch memory.
    pub fn insert(&mut self, bytes: Bytes, id: u32, covers: impl Fn(u32, u32) -> bool) -> usize {
        if bytes.len == 0 || self.insert_quickly(bytes, id, &covers) {
            return 0;
        }
        let mut most = 0;
        self.split(bytes.start);
        self.split(bytes.end());
        let mut at = bytes.start;
        while at < bytes.end() {
            let next = self.fragments.range_mut(at..bytes.end()).next();
            match next {
                Some((&start, fragment)) if start == at => {
                    let end = fragment.end;
                    add(&mut fragment.ids, id, &covers);
                    most = most.max(fragment.ids.len());
                    self.join(at);
                    at = end;
                }
                next => {
                    let end = next.map_or(bytes.end(), |(&start, _)| start);
                    self.fragments.insert(at, Fragment { end, ids: vec![id] });
                    self.join(at);
                    at = end;
                }
            }
        }
        self.join(bytes.end());
        most
    }

    /// The usual cases: the bytes lie in one fragment that has the access or makes it redundant, or they are behind one
    /// that has no other access, as in a loop over an array. Returns whether it is one of these.
    fn insert_quickly(
        &mut self,
        bytes: Bytes,
        id: u32,
        covers: &impl Fn(u32, u32) -> bool,
    ) -> bool {
        let end = bytes.end();
        let before = self.fragments.range_mut(..=bytes.start).next_back();
        let Some((_, before)) = before else { return false };
        if before.end >= end {
            return before.ids.iter().any(|&old| old == id || covers(old, id));
        }
        if before.end != bytes.start || before.ids != [id] {
            return false;
        }
        // What comes next must not touch the bytes, nor be joined with them.
        if self.fragments.range(bytes.start..=end).next().is_some() {
            return false;
        }
        if let Some((_, before)) = self.fragments.range_mut(..=bytes.start).next_back() {
            before.end = end;
        }
        true
    }

    /// The accesses that touch any of the bytes, with the bytes that they share with them.
    pub fn touching(&self, bytes: Bytes) -> impl Iterator<Item = (Bytes, &[u32])> {
        let from =
            self.fragments.range(..=bytes.start).next_back().map_or(bytes.start, |(&s, _)| s);
        self.fragments.range(from..bytes.end()).filter_map(move |(&start, f)| {
            let common = Bytes { start, len: f.end - start }.common(bytes)?;
            Some((common, f.ids.as_slice()))
        })
    }

    /// All fragments, by address.
    pub fn iter(&self) -> impl Iterator<Item = (Bytes, &[u32])> {
        self.fragments
            .iter()
            .map(|(&start, f)| (Bytes { start, len: f.end - start }, f.ids.as_slice()))
    }

    /// Keeps only the accesses that `keep` names, under the id that it gives them.
    pub fn retain(&mut self, keep: impl Fn(u32) -> Option<u32>) {
        self.change(|ids| {
            *ids = ids.iter().filter_map(|&id| keep(id)).collect();
            ids.sort_unstable();
            ids.dedup();
        });
    }

    /// Drops accesses that others make redundant.
    pub fn prune(&mut self, covers: impl Fn(u32, u32) -> bool) {
        self.change(|ids| {
            let mut kept = Vec::new();
            ids.iter().for_each(|&id| add(&mut kept, id, &covers));
            *ids = kept;
        });
    }

    /// Changes the accesses of all fragments. Those without an access go, and neighbours that became alike are joined.
    fn change(&mut self, change: impl Fn(&mut Vec<u32>)) {
        let mut all: Vec<(u64, Fragment)> = Vec::with_capacity(self.fragments.len());
        for (start, mut fragment) in std::mem::take(&mut self.fragments) {
            change(&mut fragment.ids);
            match all.last_mut() {
                Some((_, last)) if last.end == start && last.ids == fragment.ids => {
                    last.end = fragment.end;
                }
                _ if fragment.ids.is_empty() => {}
                _ => all.push((start, fragment)),
            }
        }
        self.fragments = all.into_iter().collect();
    }

    /// The most accesses that touch one byte.
    pub fn most(&self) -> usize {
        self.fragments.values().map(|fragment| fragment.ids.len()).max().unwrap_or(0)
    }

    /// How many fragments there are.
    pub fn len(&self) -> usize {
        self.fragments.len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// Makes a fragment begin at `at`, if one goes across it.
    fn split(&mut self, at: u64) {
        if let Some((&start, fragment)) = self.fragments.range_mut(..at).next_back()
            && fragment.end > at
        {
            let rest = Fragment { end: fragment.end, ids: fragment.ids.clone() };
            fragment.end = at;
            debug_assert!(start < at);
            self.fragments.insert(at, rest);
        }
    }

    /// Makes one fragment of the one that begins at `at` and the one before it, if they say the same.
    fn join(&mut self, at: u64) {
        let Some(here) = self.fragments.get(&at) else { return };
        let (end, same) = match self.fragments.range(..at).next_back() {
            Some((_, before)) => (here.end, before.end == at && before.ids == here.ids),
            None => return,
        };
        if same {
            self.fragments.remove(&at);
            if let Some((_, before)) = self.fragments.range_mut(..at).next_back() {
                before.end = end;
            }
        }
    }
}

/// Adds an access to those of a fragment: only what no other one makes redundant stays.
fn add(ids: &mut Vec<u32>, id: u32, covers: &impl Fn(u32, u32) -> bool) {
    if ids.iter().any(|&old| old == id || covers(old, id)) {
        return;
    }
    ids.retain(|&old| !covers(id, old));
    let place = ids.partition_point(|&old| old < id);
    ids.insert(place, id);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPACE: usize = 64;

    proptest! {
        #[test]
        fn the_store_is_a_list_of_bytes(
            accesses in prop::collection::vec((0u64..60, 0u64..20, 0u32..6), 0..40),
            asked in (0u64..60, 0u64..20),
        ) {
            let mut store = Store::default();
            let mut bytes: Vec<Vec<u32>> = vec![Vec::new(); SPACE + 20];
            for &(start, len, id) in &accesses {
                store.insert(Bytes { start, len }, id, |_, _| false);
                for byte in &mut bytes[start as usize..(start + len) as usize] {
                    byte.push(id);
                    byte.sort_unstable();
                    byte.dedup();
                }
            }
            let asked = Bytes { start: asked.0, len: asked.1 };
            let mut found: Vec<Vec<u32>> = vec![Vec::new(); SPACE + 20];
            for (part, ids) in store.touching(asked) {
                prop_assert!(part.start >= asked.start && part.end() <= asked.end());
                for byte in part.start..part.end() {
                    found[byte as usize] = ids.to_vec();
                }
            }
            for byte in 0..bytes.len() {
                let inside = (asked.start..asked.end()).contains(&(byte as u64));
                let expected = if inside { bytes[byte].clone() } else { Vec::new() };
                prop_assert_eq!(&found[byte], &expected, "byte {}", byte);
            }
            // Fragments do not overlap, and neighbours differ.
            let all: Vec<(Bytes, &[u32])> = store.iter().collect();
            for pair in all.windows(2) {
                prop_assert!(pair[0].0.end() <= pair[1].0.start);
                prop_assert!(pair[0].0.end() < pair[1].0.start || pair[0].1 != pair[1].1);
            }
        }
    }

    #[test]
    fn a_loop_over_an_array_is_one_fragment() {
        let mut store = Store::default();
        for i in 0..1000 {
            store.insert(Bytes { start: 8 * i, len: 8 }, 7, |_, _| false);
        }
        assert_eq!(store.len(), 1);
        let mut backwards = Store::default();
        for i in (0..1000).rev() {
            backwards.insert(Bytes { start: 8 * i, len: 8 }, 7, |_, _| false);
        }
        assert_eq!(backwards.len(), 1);
    }

    #[test]
    fn what_is_covered_is_not_kept() {
        let smaller_covers = |a: u32, b: u32| a < b;
        let mut store = Store::default();
        store.insert(Bytes { start: 0, len: 8 }, 5, smaller_covers);
        store.insert(Bytes { start: 4, len: 8 }, 3, smaller_covers);
        store.insert(Bytes { start: 0, len: 12 }, 9, smaller_covers);
        let all: Vec<(u64, u64, Vec<u32>)> =
            store.iter().map(|(b, ids)| (b.start, b.len, ids.to_vec())).collect();
        assert_eq!(all, [(0, 4, vec![5]), (4, 8, vec![3])]);
    }
}
