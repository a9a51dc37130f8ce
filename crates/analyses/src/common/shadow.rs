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
    parts: Parts<T>,
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
    /// More bytes with states of their own: the first of their [`Parts`].
    // invariant: masks are disjoint and not empty, by their first bytes, and states differ; none unless `mask` is not
    // empty.
    rest: PartId,
    state: T,
}

/// The number of a part, one higher than its place; 0 is none.
type PartId = u32;

/// States of bytes of granules that have several.
#[derive(Debug)]
struct Parts<T> {
    all: Vec<Part<T>>,
    /// The first one that is not in use.
    free: PartId,
    /// The parts of a granule that is being changed.
    scratch: Vec<(Mask, T)>,
}

#[derive(Debug)]
struct Part<T> {
    mask: Mask,
    next: PartId,
    state: T,
}

impl<T> Default for Parts<T> {
    fn default() -> Parts<T> {
        Parts { all: Vec::new(), free: 0, scratch: Vec::new() }
    }
}

impl<T: Default> Parts<T> {
    fn get(&mut self, id: PartId) -> Option<&mut Part<T>> {
        self.all.get_mut((id as usize).wrapping_sub(1))
    }

    fn state(&mut self, id: PartId) -> Option<&mut T> {
        self.get(id).map(|part| &mut part.state)
    }

    fn add(&mut self, part: Part<T>) -> PartId {
        let free = self.free;
        match self.get(free) {
            Some(place) => {
                let next = std::mem::replace(place, part).next;
                self.free = next;
                free
            }
            None => {
                self.all.push(part);
                self.all.len() as PartId
            }
        }
    }

    /// Takes a part out, and says which one comes after it.
    fn remove(&mut self, id: PartId) -> Option<(Mask, T, PartId)> {
        let free = self.free;
        let Part { mask, next, state } = self.get(id)?;
        let taken = (*mask, std::mem::take(state), std::mem::replace(next, free));
        self.free = id;
        Some(taken)
    }

    /// Shows some parts.
    fn each(&mut self, mut id: PartId, mut visit: impl FnMut(Mask, &mut T)) {
        while let Some(part) = self.get(id) {
            visit(part.mask, &mut part.state);
            id = part.next;
        }
    }
}

impl<T: Clone + Default + PartialEq> Default for Shadow<T> {
    fn default() -> Shadow<T> {
        Shadow {
            pages: Vec::new(),
            parts: Parts::default(),
            by_number: FxHashMap::default(),
            spare: Vec::new(),
            recent: [(0, 0); RECENT],
        }
    }
}

impl<T: Clone + Default + PartialEq> Shadow<T> {
    /// Calls `visit` for the states of all bytes of `range`, each with the bytes that it stands for.
    #[inline]
    pub fn visit(&mut self, range: Range, visit: impl FnMut(Range, &mut T)) {
        self.visit_by(range, T::eq, visit);
    }

    /// The same, if more states count as equal than are.
    #[inline]
    pub fn visit_by(
        &mut self,
        range: Range,
        same: impl Fn(&T, &T) -> bool,
        mut visit: impl FnMut(Range, &mut T),
    ) {
        if range.len == 0 {
            return;
        }
        let last = (range.end() - 1) / GRANULE;
        let mut number = range.start / GRANULE;
        while number <= last {
            let mask = mask_of(range, number);
            let page = self.page_of(number);
            let granule = &mut self.pages[page as usize][number as usize % PAGE_GRANULES];
            if granule.mask == mask && granule.rest == 0 {
                visit(bytes_of(mask, number), &mut granule.state);
            } else {
                let parts = &mut self.parts;
                let visit = |part, state: &mut T| visit(bytes_of(part, number), state);
                granule.visit(mask, parts, &same, visit);
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
        let (page, parts) = (&mut self.pages[index as usize], &mut self.parts);
        let first = number * PAGE / GRANULE;
        let from = (range.start / GRANULE).saturating_sub(first) as usize;
        for (i, granule) in page.iter_mut().enumerate().skip(from) {
            let granule_number = first + i as u64;
            if granule_number * GRANULE >= range.end() {
                break;
            }
            let mask = mask_of(range, granule_number);
            if granule.mask != 0 && mask != 0 {
                let visit = |part, state: &mut T| visit(bytes_of(part, granule_number), state);
                granule.forget(mask, parts, visit);
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
        self.parts = Parts::default();
        self.spare.clear();
        self.spare.extend((0..self.pages.len() as u32).rev());
        self.recent = [(0, 0); RECENT];
    }

    /// Shows the states of all bytes to `visit`, in no particular order.
    pub fn each(&mut self, mut visit: impl FnMut(&mut T)) {
        for granule in self.pages.iter_mut().flat_map(|page| page.iter_mut()) {
            if granule.mask != 0 {
                visit(&mut granule.state);
                self.parts.each(granule.rest, |_, state| visit(state));
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
                    let rest = granule.rest;
                    self.parts.each(rest, |mask, state| visit(bytes_of(mask, number), state));
                }
            }
        }
    }

    /// How many pages have been allocated, a measure of memory.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Where the page of a granule is.
    #[inline]
    fn page_of(&mut self, number: u64) -> u32 {
        let page = number / PAGE_GRANULES as u64;
        let (recent, mut index) = self.recent[page as usize % RECENT];
        if recent != page + 1 {
            index = self.page(page);
            self.recent[page as usize % RECENT] = (page + 1, index);
        }
        index
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
    fn visit(
        &mut self,
        mask: Mask,
        parts: &mut Parts<T>,
        same: &impl Fn(&T, &T) -> bool,
        mut visit: impl FnMut(Mask, &mut T),
    ) {
        if self.mask == 0 {
            self.mask = mask;
            visit(mask, &mut self.state);
            return;
        }
        if self.visit_part(mask, parts, same, &mut visit) {
            return;
        }
        self.change(parts, same, |all| {
            let mut unseen = mask;
            for i in 0..all.len() {
                let common = all[i].0 & mask;
                if common == 0 {
                    continue;
                }
                unseen &= !common;
                if common != all[i].0 {
                    let outside = (all[i].0 & !mask, all[i].1.clone());
                    all.push(outside);
                    all[i].0 = common;
                }
                visit(common, &mut all[i].1);
            }
            if unseen != 0 {
                let mut state = T::default();
                visit(unseen, &mut state);
                all.push((unseen, state));
            }
        });
    }

    /// The same if one part has exactly these bytes. Nearly always the parts stay what they are.
    fn visit_part(
        &mut self,
        mask: Mask,
        parts: &mut Parts<T>,
        same: &impl Fn(&T, &T) -> bool,
        visit: &mut impl FnMut(Mask, &mut T),
    ) -> bool {
        let mut id = self.rest;
        while self.mask != mask && parts.get(id).is_some_and(|part| part.mask != mask) {
            id = parts.get(id).map_or(0, |part| part.next);
        }
        let place = if self.mask == mask { Some(&mut self.state) } else { parts.state(id) };
        let Some(place) = place else { return false };
        visit(mask, place);
        let state = std::mem::take(place);
        let mut equal = self.mask != mask && same(&self.state, &state);
        parts.each(self.rest, |other, of| equal |= other != mask && same(of, &state));
        match parts.state(id).filter(|_| self.mask != mask) {
            Some(place) => *place = state,
            None => self.state = state,
        }
        if equal {
            self.change(parts, same, |_| {});
        }
        true
    }

    fn forget(&mut self, mask: Mask, parts: &mut Parts<T>, mut visit: impl FnMut(Mask, &mut T)) {
        if self.rest == 0 {
            if self.mask & mask != 0 {
                visit(self.mask & mask, &mut self.state);
                self.mask &= !mask;
            }
            if self.mask == 0 {
                self.state = T::default();
            }
            return;
        }
        self.change(parts, &T::eq, |all| {
            for (part, state) in all.iter_mut() {
                if *part & mask != 0 {
                    visit(*part & mask, state);
                    *part &= !mask;
                }
            }
            all.retain(|(part, _)| *part != 0);
        });
    }

    /// Changes the parts; those that have become equal are merged.
    fn change(
        &mut self,
        parts: &mut Parts<T>,
        same: &impl Fn(&T, &T) -> bool,
        change: impl FnOnce(&mut Vec<(Mask, T)>),
    ) {
        let mut all = std::mem::take(&mut parts.scratch);
        let mut id = std::mem::take(&mut self.rest);
        while let Some((mask, state, next)) = parts.remove(id) {
            all.push((mask, state));
            id = next;
        }
        all.push((std::mem::take(&mut self.mask), std::mem::take(&mut self.state)));
        change(&mut all);
        let mut i = 0;
        while i < all.len() {
            match all[..i].iter().position(|(_, state)| same(state, &all[i].1)) {
                Some(equal) => {
                    let (mask, _) = all.remove(i);
                    all[equal].0 |= mask;
                }
                None => i += 1,
            }
        }
        all.sort_by_key(|(mask, _)| mask.trailing_zeros());
        for (mask, state) in all.drain(1.min(all.len())..).rev() {
            self.rest = parts.add(Part { mask, next: self.rest, state });
        }
        if let Some((mask, state)) = all.pop() {
            (self.mask, self.state) = (mask, state);
        }
        parts.scratch = all;
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
        let mut parts = Parts::default();
        for part in [0x0f, 0xf0, 0x03] {
            granule.visit(part, &mut parts, &u32::eq, |_, state| *state += 1);
        }
        // The last visit made the state of two bytes another one, and the next one makes it the same again.
        assert_eq!(parts.all.len(), 1);
        granule.visit(0xfc, &mut parts, &u32::eq, |_, state| *state += 1);
        assert_eq!((granule.mask, granule.rest), (0xff, 0));
        granule.visit(0x0f, &mut parts, &u32::eq, |_, state| *state = 7);
        assert_ne!(granule.rest, 0);
        granule.visit(0x0f, &mut parts, &u32::eq, |_, state| *state = 2);
        assert_eq!((granule.mask, granule.rest), (0xff, 0));
        granule.visit(0x01, &mut parts, &u32::eq, |_, state| *state = 3);
        assert_eq!(parts.all.len(), 1, "a place is used again");
    }
}
