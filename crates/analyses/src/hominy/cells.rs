//! What is known of memory: memory that was accessed alike shares a cell.
//!
//! A program that fills an array, or makes a thousand objects in one loop, does the same to all of them. So memory has
//! numbers of cells, and what an access makes of a cell is remembered for the other memory that is accessed in
//! the same way before threads synchronize again.
//!
//! Cost: a look-up in a small table for memory that was accessed like other memory, a new cell otherwise. Cells
//! that no memory has any more are collected when they are as many as the others, which costs a walk through all
//! memory: so it is spread over as many accesses.

use std::hash::{BuildHasher, Hash};

use rustc_hash::FxBuildHasher;

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

/// So many cells for each page of memory are made before those that are not in use are looked for.
const PER_PAGE: usize = 8;
/// At least so many cells are made before those that are not in use are looked for.
const COLLECT: usize = 1 << 14;

/// All cells.
#[derive(Debug)]
pub(super) struct Cells {
    // invariant: the first one is the default.
    all: Vec<Cell>,
    free: Vec<u32>,
    /// How many there may be before those that are not in use are looked for.
    limit: usize,
}

impl Default for Cells {
    fn default() -> Cells {
        Cells { all: vec![Cell::default()], free: Vec::new(), limit: COLLECT }
    }
}

impl Cells {
    pub(super) fn get(&self, id: CellId) -> &Cell {
        &self.all[id.0 as usize]
    }

    /// Whether all is the same that is known of some memory and of other memory.
    pub(super) fn same(&self, one: &State, other: &State) -> bool {
        one == other || one.count == other.count && self.get(one.cell) == self.get(other.cell)
    }

    pub(super) fn add(&mut self, cell: Cell) -> CellId {
        match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = cell;
                CellId(number)
            }
            None => {
                self.all.push(cell);
                CellId(self.all.len() as u32 - 1)
            }
        }
    }

    /// Forgets the cells that no memory has any more, if there may be many, and says whether it did.
    pub(super) fn collect(&mut self, memory: &mut Shadow<State>) -> bool {
        let used = self.all.len() - self.free.len();
        // Memory that is walked through is paid for by the cells that were made.
        if used < self.limit.max(memory.pages() * PER_PAGE) {
            return false;
        }
        let mut in_use = vec![false; self.all.len()];
        in_use[0] = true;
        memory.each(|state| in_use[state.cell.0 as usize] = true);
        self.free.clear();
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
    fn what_memory_has_is_kept() {
        let (mut cells, mut memory) = (Cells::default(), Shadow::default());
        let kept = cells.add(cell(1));
        memory.visit(Range { start: 64, len: 8 }, |_, state: &mut State| {
            *state = State { cell: kept, count: 1 };
        });
        assert!(!cells.collect(&mut memory));
        (2..=COLLECT).for_each(|story| _ = cells.add(cell(story)));
        assert!(cells.collect(&mut memory));
        assert_eq!(cells.get(kept), &cell(1));
        let before = cells.all.len();
        let other = cells.add(cell(2));
        assert_ne!(other, kept);
        assert_eq!(cells.all.len(), before, "a number is used again");
        assert!(!cells.collect(&mut memory));
    }
}
