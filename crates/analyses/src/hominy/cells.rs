//! What is known of memory, each thing once: memory that was accessed alike shares a cell.
//!
//! A program that fills an array, or makes a thousand objects in one loop, does the same to all of them. So memory has
//! numbers of cells, equal cells have one number, and what an access makes of a cell is remembered for the other
//! memory that is accessed in the same way before threads synchronize again.
//!
//! Cost: a look-up in a small table for memory that was accessed like other memory, hashing a cell otherwise. Cells
//! that no memory has any more are collected when they are as many as the others, which costs a walk through all
//! memory: so it is spread over as many accesses.

use std::hash::{BuildHasher, Hash};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::Cell;
use crate::common::shadow::Shadow;

/// What some bytes have: a cell, and how often they were accessed.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct State {
    pub(super) cell: CellId,
    pub(super) count: u32,
}

/// The default one is of memory that nothing is known of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct CellId(u32);

/// At least so many cells are made before those that are not in use are looked for.
const COLLECT: usize = 1 << 14;

/// All cells.
#[derive(Debug)]
pub(super) struct Cells {
    // invariant: the first one is the default.
    all: Vec<Cell>,
    free: Vec<u32>,
    /// By what they hash to. Of two different ones with one hash, one is not found again, and shared no more.
    numbers: FxHashMap<u64, u32>,
    /// How many there may be before those that are not in use are looked for.
    limit: usize,
}

impl Default for Cells {
    fn default() -> Cells {
        let first = Cell::default();
        let numbers = FxHashMap::from_iter([(FxBuildHasher.hash_one(&first), 0)]);
        Cells { all: vec![first], free: Vec::new(), numbers, limit: COLLECT }
    }
}

impl Cells {
    pub(super) fn get(&self, id: CellId) -> &Cell {
        &self.all[id.0 as usize]
    }

    pub(super) fn number(&mut self, cell: Cell) -> CellId {
        let hash = FxBuildHasher.hash_one(&cell);
        if let Some(&known) = self.numbers.get(&hash)
            && self.all[known as usize] == cell
        {
            return CellId(known);
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = cell;
                number
            }
            None => {
                self.all.push(cell);
                self.all.len() as u32 - 1
            }
        };
        self.numbers.insert(hash, number);
        CellId(number)
    }

    /// Forgets the cells that no memory has any more, if there may be many, and says whether it did.
    pub(super) fn collect(&mut self, memory: &mut Shadow<State>) -> bool {
        let used = self.all.len() - self.free.len();
        // Memory that is walked through is paid for by the cells that were made.
        if used < self.limit.max(memory.pages() * 16) {
            return false;
        }
        let mut in_use = vec![false; self.all.len()];
        in_use[0] = true;
        memory.each(|state| in_use[state.cell.0 as usize] = true);
        self.free.clear();
        self.numbers.retain(|_, number| in_use[*number as usize]);
        for (number, cell) in self.all.iter_mut().enumerate().filter(|(i, _)| !in_use[*i]) {
            *cell = Cell::default();
            self.free.push(number as u32);
        }
        self.limit = 2 * (self.all.len() - self.free.len()) + COLLECT;
        true
    }
}

/// What was made of cells lately, by what was done.
#[derive(Debug)]
pub(super) struct Lately<K> {
    entries: Vec<Option<(CellId, K, CellId)>>,
}

const LATELY: usize = 256;

impl<K> Default for Lately<K> {
    fn default() -> Lately<K> {
        Lately { entries: (0..LATELY).map(|_| None).collect() }
    }
}

impl<K: Hash + PartialEq> Lately<K> {
    /// What was made of a cell.
    #[inline]
    pub(super) fn made(&self, of: CellId, by: &K) -> Option<CellId> {
        match &self.entries[place(of, by)] {
            Some((cell, how, made)) if *cell == of && how == by => Some(*made),
            _ => None,
        }
    }

    pub(super) fn remember(&mut self, of: CellId, by: K, made: CellId) {
        let at = place(of, &by);
        self.entries[at] = Some((of, by, made));
    }

    /// The numbers of cells mean something else now.
    pub(super) fn forget(&mut self) {
        self.entries.fill_with(|| None);
    }
}

#[inline]
fn place<K: Hash>(of: CellId, by: &K) -> usize {
    (FxBuildHasher.hash_one((of, by)) >> 32) as usize % LATELY
}

#[cfg(test)]
mod tests {
    use selvedge_model::Range;

    use super::super::StoryId;
    use super::*;

    fn cell(story: usize) -> Cell {
        Cell { story: StoryId(story as u32), ..Cell::default() }
    }

    #[test]
    fn equal_cells_have_one_number_and_what_memory_has_is_kept() {
        let (mut cells, mut memory) = (Cells::default(), Shadow::default());
        let kept = cells.number(cell(1));
        assert_eq!(cells.number(cell(1)), kept);
        memory.visit(Range { start: 64, len: 8 }, |_, state: &mut State| {
            *state = State { cell: kept, count: 1 };
        });
        assert!(!cells.collect(&mut memory));
        (2..=COLLECT).for_each(|story| _ = cells.number(cell(story)));
        assert!(cells.collect(&mut memory));
        assert_eq!(cells.get(kept), &cell(1));
        assert_eq!(cells.number(cell(1)), kept);
        let before = cells.all.len();
        let other = cells.number(cell(2));
        assert_ne!(other, kept);
        assert_eq!(cells.all.len(), before, "a number is used again");
    }
}
