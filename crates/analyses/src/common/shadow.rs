//! What an analysis remembers of memory, at the precision of bytes.
//!
//! Memory is divided into granules of eight bytes. Nearly always all accesses to a granule touch the
//! same bytes of it, so a granule holds one state for one set of bytes; when an access touches some of
//! them only, the state is split, and states that have become equal are merged again. The effect is
//! that of one state for each byte.
//!
//! Granules come in pages that are allocated when first touched: memory follows what the program
//! touches, not how long it runs, and is given back when the program frees its memory.

use rustc_hash::FxHashMap;
use selvedge_model::Range;

const GRANULE: u64 = 8;
const PAGE_GRANULES: usize = 128;
const PAGE: u64 = GRANULE * PAGE_GRANULES as u64;
const RECENT: usize = 64;

/// Bytes of one granule, as bits.
type Mask = u8;

/// A state of type `T` for every byte; `T::default()` where nothing has happened.
#[derive(Debug)]
pub struct Shadow<T> {
    pages: Vec<Page<T>>,
    by_number: FxHashMap<u64, u32>,
    /// Pages that no memory uses now.
    spare: Vec<u32>,
    /// Where some pages were found lately, by the low bits of their numbers; the numbers are stored
    /// one higher, so that zero means nothing.
    recent: [(u64, u32); RECENT],
}

type Page<T> = Box<[Granule<T>; PAGE_GRANULES]>;

#[derive(Debug, Default)]
struct Granule<T> {
    /// The bytes that `state` stands for; none in a granule that is untouched.
    mask: Mask,
    state: T,
    /// More bytes with states of their own.
    // invariant: masks are disjoint and not empty; None unless `mask` is not empty.
    #[allow(clippy::box_collection)] // One word in the granule, which has no use for three.
    rest: Option<Box<Vec<(Mask, T)>>>,
}

impl<T: Clone + Default + PartialEq> Default for Shadow<T> {
    fn default() -> Shadow<T> {
        Shadow {
            pages: Vec::new(),
            by_number: FxHashMap::default(),
            spare: Vec::new(),
            recent: [(0, 0); RECENT],
        }
    }
}

impl<T: Clone + Default + PartialEq> Shadow<T> {
    /// Calls `visit` for the states of all bytes of `range`, each with the bytes that it stands for.
    #[inline]
    pub fn visit(&mut self, range: Range, mut visit: impl FnMut(Range, &mut T)) {
        if range.len == 0 {
            return;
        }
        let last = (range.end() - 1) / GRANULE;
        let mut number = range.start / GRANULE;
        while number <= last {
            let mask = mask_of(range, number);
            let granule = self.granule(number);
            if granule.mask == mask && granule.rest.is_none() {
                visit(bytes_of(mask, number), &mut granule.state);
            } else {
                granule.visit(mask, |part, state| visit(bytes_of(part, number), state));
            }
            number += 1;
        }
    }

    /// As [`Shadow::visit`], for the bytes that have a state, which then is forgotten.
    pub fn forget(&mut self, range: Range, mut visit: impl FnMut(Range, &mut T)) {
        if range.len == 0 {
            return;
        }
        let numbers = range.start / PAGE..=(range.end() - 1) / PAGE;
        if (range.len / PAGE) as usize > self.by_number.len() {
            let mut touched: Vec<u64> =
                self.by_number.keys().copied().filter(|n| numbers.contains(n)).collect();
            touched.sort_unstable();
            touched.into_iter().for_each(|n| self.forget_in_page(n, range, &mut visit));
        } else {
            numbers.for_each(|n| self.forget_in_page(n, range, &mut visit));
        }
    }

    fn forget_in_page(&mut self, number: u64, range: Range, visit: &mut impl FnMut(Range, &mut T)) {
        let Some(&index) = self.by_number.get(&number) else { return };
        let page = &mut self.pages[index as usize];
        let first = number * PAGE / GRANULE;
        let from = (range.start / GRANULE).saturating_sub(first) as usize;
        for (i, granule) in page.iter_mut().enumerate().skip(from) {
            let granule_number = first + i as u64;
            if granule_number * GRANULE >= range.end() {
                break;
            }
            let mask = mask_of(range, granule_number);
            if granule.mask != 0 && mask != 0 {
                granule.forget(mask, |part, state| visit(bytes_of(part, granule_number), state));
            }
        }
        if page.iter().all(|g| g.mask == 0) {
            self.by_number.remove(&number);
            self.spare.push(index);
            self.recent[number as usize % RECENT] = (0, 0);
        }
    }

    /// Forgets the states of all bytes, and keeps the pages for whatever comes next.
    pub fn clear(&mut self) {
        for (_, index) in self.by_number.drain() {
            for granule in self.pages[index as usize].iter_mut().filter(|g| g.mask != 0) {
                *granule = Granule::default();
            }
        }
        self.spare.clear();
        self.spare.extend((0..self.pages.len() as u32).rev());
        self.recent = [(0, 0); RECENT];
    }

    /// Shows the states of all bytes to `visit`, in no particular order.
    pub fn each(&mut self, mut visit: impl FnMut(&mut T)) {
        for granule in self.pages.iter_mut().flat_map(|page| page.iter_mut()) {
            if granule.mask != 0 {
                visit(&mut granule.state);
                granule
                    .rest
                    .iter_mut()
                    .flat_map(|rest| rest.iter_mut())
                    .for_each(|(_, s)| visit(s));
            }
        }
    }

    /// Shows the states of all bytes to `visit`, each with the bytes that it stands for, in the order of
    /// addresses.
    pub fn each_with_bytes(&mut self, mut visit: impl FnMut(Range, &mut T)) {
        let mut pages: Vec<(u64, u32)> = self.by_number.iter().map(|(&n, &i)| (n, i)).collect();
        pages.sort_unstable();
        for (number, index) in pages {
            let first = number * PAGE_GRANULES as u64;
            for (granule, number) in self.pages[index as usize].iter_mut().zip(first..) {
                if granule.mask != 0 {
                    visit(bytes_of(granule.mask, number), &mut granule.state);
                    let rest = granule.rest.iter_mut().flat_map(|rest| rest.iter_mut());
                    rest.for_each(|(mask, state)| visit(bytes_of(*mask, number), state));
                }
            }
        }
    }

    /// How many pages have been allocated, a measure of memory.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    #[inline]
    fn granule(&mut self, number: u64) -> &mut Granule<T> {
        let page = number / PAGE_GRANULES as u64;
        let (recent, mut index) = self.recent[page as usize % RECENT];
        if recent != page + 1 {
            index = self.page(page);
            self.recent[page as usize % RECENT] = (page + 1, index);
        }
        &mut self.pages[index as usize][number as usize % PAGE_GRANULES]
    }

    fn page(&mut self, number: u64) -> u32 {
        if let Some(&index) = self.by_number.get(&number) {
            return index;
        }
        let index = self.spare.pop().unwrap_or_else(|| {
            self.pages.push(Box::new(std::array::from_fn(|_| Granule::default())));
            (self.pages.len() - 1) as u32
        });
        self.by_number.insert(number, index);
        index
    }
}

impl<T: Clone + Default + PartialEq> Granule<T> {
    #[cold]
    fn visit(&mut self, mask: Mask, mut visit: impl FnMut(Mask, &mut T)) {
        if self.mask == 0 {
            self.mask = mask;
            visit(mask, &mut self.state);
            return;
        }
        let mut parts = self.take();
        let mut unseen = mask;
        for i in 0..parts.len() {
            let common = parts[i].0 & mask;
            if common == 0 {
                continue;
            }
            unseen &= !common;
            if common != parts[i].0 {
                let outside = (parts[i].0 & !mask, parts[i].1.clone());
                parts.push(outside);
                parts[i].0 = common;
            }
            visit(common, &mut parts[i].1);
        }
        if unseen != 0 {
            let mut state = T::default();
            visit(unseen, &mut state);
            parts.push((unseen, state));
        }
        self.put(parts);
    }

    fn forget(&mut self, mask: Mask, mut visit: impl FnMut(Mask, &mut T)) {
        let mut parts = self.take();
        for (part, state) in &mut parts {
            if *part & mask != 0 {
                visit(*part & mask, state);
                *part &= !mask;
            }
        }
        parts.retain(|(part, _)| *part != 0);
        self.put(parts);
    }

    fn take(&mut self) -> Vec<(Mask, T)> {
        let mut parts = self.rest.take().map_or_else(Vec::new, |rest| *rest);
        parts.push((std::mem::take(&mut self.mask), std::mem::take(&mut self.state)));
        parts
    }

    fn put(&mut self, parts: Vec<(Mask, T)>) {
        let mut merged: Vec<(Mask, T)> = Vec::with_capacity(parts.len());
        for (mask, state) in parts {
            match merged.iter_mut().find(|(_, s)| *s == state) {
                Some((known, _)) => *known |= mask,
                None => merged.push((mask, state)),
            }
        }
        if let Some((mask, state)) = merged.pop() {
            (self.mask, self.state) = (mask, state);
        }
        self.rest = (!merged.is_empty()).then(|| Box::new(merged));
    }
}

/// The bytes of granule `number` that lie in `range`.
#[inline]
fn mask_of(range: Range, number: u64) -> Mask {
    let start = number * GRANULE;
    let from = range.start.max(start) - start;
    let to = range.end().min(start.saturating_add(GRANULE)).saturating_sub(start);
    if from >= to { 0 } else { (0xffu16 >> (GRANULE - (to - from)) << from) as Mask }
}

/// The bytes from the first to the last that the mask has.
#[inline]
fn bytes_of(mask: Mask, number: u64) -> Range {
    let first = u64::from(mask.trailing_zeros());
    let len = GRANULE - u64::from(mask.leading_zeros()) - first;
    Range { start: number * GRANULE + first, len }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Add(Range, u32),
        Forget(Range),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let range =
            (0u64..40, 1u64..20).prop_map(|(start, len)| Range { start: 1010 + start, len });
        let step = prop_oneof![
            4 => (range.clone(), 1u32..4).prop_map(|(r, n)| Step::Add(r, n)),
            1 => range.prop_map(Step::Forget),
        ];
        proptest::collection::vec(step, 0..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Against one state for each byte in an ordinary map.
        #[test]
        fn it_behaves_as_one_state_for_each_byte(steps in steps()) {
            let mut shadow: Shadow<u32> = Shadow::default();
            let mut bytes: BTreeMap<u64, u32> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Add(range, n) => {
                        shadow.visit(range, |_, state| *state = state.wrapping_mul(5).wrapping_add(n));
                        for b in range.start..range.end() {
                            let state = bytes.entry(b).or_default();
                            *state = state.wrapping_mul(5).wrapping_add(n);
                        }
                    }
                    Step::Forget(range) => {
                        let mut seen = 0;
                        shadow.forget(range, |part, _| { assert!(part.overlaps(range)); seen += 1; });
                        let before = bytes.len();
                        bytes.retain(|b, _| !(range.start..range.end()).contains(b));
                        prop_assert_eq!(seen > 0, bytes.len() < before);
                    }
                }
            }
            for b in 1000..1080 {
                let mut found = None;
                shadow.visit(Range { start: b, len: 1 }, |_, state| found = Some(*state));
                prop_assert_eq!(found, Some(bytes.get(&b).copied().unwrap_or(0)), "byte {}", b);
            }
        }
    }

    #[test]
    fn freed_memory_gives_its_pages_back() {
        let mut shadow: Shadow<u32> = Shadow::default();
        for round in 0..100 {
            let range = Range { start: 0x10_0000 * (round + 1), len: 4 * PAGE };
            shadow.visit(range, |_, state| *state = 1);
            shadow.forget(Range { start: 0, len: u64::MAX }, |_, _| {});
        }
        assert_eq!(shadow.pages(), 4);
    }

    #[test]
    fn page_zero_is_memory_too() {
        let mut shadow: Shadow<u32> = Shadow::default();
        shadow.visit(Range { start: 0, len: 8 }, |_, state| *state = 9);
        shadow.visit(Range { start: PAGE * RECENT as u64, len: 8 }, |_, state| *state = 5);
        shadow.visit(Range { start: 0, len: 8 }, |_, state| assert_eq!(*state, 9));
    }

    #[test]
    fn equal_states_are_merged_again() {
        let mut granule: Granule<u32> = Granule::default();
        for part in [0x0f, 0xf0, 0x03] {
            granule.visit(part, |_, state| *state += 1);
        }
        assert!(granule.rest.is_some());
        granule.visit(0xff, |_, state| *state = 7);
        assert_eq!((granule.mask, granule.rest), (0xff, None));
    }
}
