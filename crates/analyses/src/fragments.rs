//! What is known about memory, byte by byte: a map from addresses to values, in fragments.
//!
//! A fragment is a run of bytes that have always been touched together, so that they share one value.
//! Accesses of mixed sizes split fragments where they must; nothing is rounded to words. Fragments are
//! kept in order within pages of 1 KiB, and the pages in a hash table: finding a byte is one look-up
//! and a binary search, and an access to a long range costs one step per fragment or untouched page.

use rustc_hash::FxHashMap;
use selvedge_model::Range;

const PAGE_BITS: u32 = 10;
const PAGE: u64 = 1 << PAGE_BITS;

/// Values of type `T` for the bytes of memory. Bytes never touched have none.
#[derive(Debug)]
pub(crate) struct Fragments<T> {
    pages: FxHashMap<u64, Vec<Fragment<T>>>,
}

/// Bytes `start..end` of a page.
// invariant: 0 ≤ start < end ≤ PAGE; fragments of a page ascend and do not overlap.
#[derive(Debug)]
struct Fragment<T> {
    start: u16,
    end: u16,
    value: T,
}

impl<T> Default for Fragments<T> {
    fn default() -> Fragments<T> {
        Fragments { pages: FxHashMap::default() }
    }
}

impl<T: Clone + Default> Fragments<T> {
    /// Shows every fragment of `range` to `visit`, with the bytes that it covers. Bytes that have not
    /// been touched before get the default value first.
    pub(crate) fn touch(&mut self, range: Range, mut visit: impl FnMut(Range, &mut T)) {
        for (number, start, end) in pages(range) {
            let page = self.pages.entry(number).or_default();
            let base = number << PAGE_BITS;
            let mut next = split(page, start);
            let mut at = start;
            while at < end {
                match page.get(next) {
                    Some(f) if f.start == at => {
                        if f.end > end {
                            split(page, end);
                        }
                    }
                    following => {
                        let end = following.map_or(end, |f| f.start.min(end));
                        page.insert(next, Fragment { start: at, end, value: T::default() });
                    }
                }
                let fragment = &mut page[next];
                let len = u64::from(fragment.end - fragment.start);
                visit(Range { start: base + u64::from(fragment.start), len }, &mut fragment.value);
                at = fragment.end;
                next += 1;
            }
        }
    }

    /// Forgets the bytes of `range`, in time proportional to what is known and not to the range.
    pub(crate) fn forget(&mut self, range: Range) {
        let few = (range.len >> PAGE_BITS) as usize <= self.pages.len();
        if few {
            pages(range).for_each(|(number, start, end)| self.forget_in_page(number, start, end));
        } else {
            let last = range.end().saturating_sub(1);
            let inside = range.start.div_ceil(PAGE)..range.end() >> PAGE_BITS;
            self.pages.retain(|number, _| !inside.contains(number));
            for number in [range.start >> PAGE_BITS, last >> PAGE_BITS] {
                let base = number << PAGE_BITS;
                let start = range.start.saturating_sub(base).min(PAGE) as u16;
                let end = (range.end() - base).min(PAGE) as u16;
                self.forget_in_page(number, start, end);
            }
        }
    }

    fn forget_in_page(&mut self, number: u64, start: u16, end: u16) {
        if let Some(page) = self.pages.get_mut(&number) {
            let from = split(page, start);
            let to = split(page, end);
            page.drain(from..to);
            if page.is_empty() {
                self.pages.remove(&number);
            }
        }
    }
}

/// The pages that a range reaches into, each with the bytes of it that the range covers.
fn pages(range: Range) -> impl Iterator<Item = (u64, u16, u16)> {
    let numbers = if range.start < range.end() {
        range.start >> PAGE_BITS..((range.end() - 1) >> PAGE_BITS) + 1
    } else {
        0..0
    };
    numbers.map(move |number| {
        let base = number << PAGE_BITS;
        let start = range.start.max(base) - base;
        let end = (range.end() - base).min(PAGE);
        (number, start as u16, end as u16)
    })
}

/// Makes sure that no fragment reaches across `at`, and returns the index of the first at or after it.
fn split<T: Clone>(page: &mut Vec<Fragment<T>>, at: u16) -> usize {
    let next = page.partition_point(|f| f.start < at);
    if let Some(before) = next.checked_sub(1)
        && page[before].end > at
    {
        let Fragment { end, ref value, .. } = page[before];
        let rest = Fragment { start: at, end, value: value.clone() };
        page[before].end = at;
        page.insert(next, rest);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn range(start: u64, len: u64) -> Range {
        Range { start, len }
    }

    #[test]
    fn the_last_bytes_of_memory_can_be_touched() {
        let mut memory = Fragments::<u32>::default();
        let top = range(u64::MAX - 4, 4);
        memory.touch(top, |_, v| *v += 1);
        let mut seen = Vec::new();
        memory.touch(range(u64::MAX - 8, 8), |r, v| seen.push((r.len, *v)));
        assert_eq!(seen, [(4, 0), (4, 1)]);
        memory.forget(range(0, u64::MAX));
        assert!(memory.pages.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        /// Against one counter per byte.
        #[test]
        fn every_byte_has_its_own_history(
            ops in prop::collection::vec((0u64..3000, 0u64..1500, 0u8..5), 0..30)
        ) {
            let mut memory = Fragments::<u32>::default();
            let mut bytes: BTreeMap<u64, u32> = BTreeMap::new();
            for (i, &(start, len, kind)) in ops.iter().enumerate() {
                let r = range(start, if kind == 1 { len % 9 } else { len });
                if kind == 0 {
                    memory.forget(r);
                    bytes.retain(|b, _| !(r.start..r.end()).contains(b));
                    continue;
                }
                let mut covered = r.start;
                memory.touch(r, |piece, value| {
                    assert_eq!(piece.start, covered, "pieces ascend and leave no gap");
                    covered = piece.end();
                    for b in piece.start..piece.end() {
                        assert_eq!(*value, bytes.get(&b).copied().unwrap_or(0));
                    }
                    *value = i as u32 + 1;
                });
                prop_assert_eq!(covered, r.end());
                bytes.extend((r.start..r.end()).map(|b| (b, i as u32 + 1)));
            }
        }
    }
}
