//! Lists and sets that many variables share, as numbers: a million variables with the same history cost one.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use selvedge_model::{SiteId, ThreadId};

use crate::common::candidates::Candidates;
use crate::common::paths::Edge;

/// Places of one variable that are remembered.
const PLACES: u32 = 200;

/// Values as numbers; the default one is 0.
#[derive(Debug)]
pub(super) struct Numbers<T> {
    all: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T: Copy + Default + Eq + Hash> Default for Numbers<T> {
    fn default() -> Numbers<T> {
        Numbers { all: vec![T::default()], numbers: FxHashMap::from_iter([(T::default(), 0)]) }
    }
}

impl<T: Copy + Eq + Hash> Numbers<T> {
    pub(super) fn get(&self, number: u32) -> T {
        self.all[number as usize]
    }

    pub(super) fn number(&mut self, value: T) -> u32 {
        *self.numbers.entry(value).or_insert_with(|| {
            self.all.push(value);
            self.all.len() as u32 - 1
        })
    }
}

/// Lists of transitions, as numbers.
#[derive(Debug)]
pub(super) struct Transitions {
    // invariant: the first one is empty.
    lists: Vec<Vec<Edge>>,
    numbers: FxHashMap<Vec<Edge>, u32>,
}

impl Default for Transitions {
    fn default() -> Transitions {
        Transitions { lists: vec![Vec::new()], numbers: FxHashMap::from_iter([(Vec::new(), 0)]) }
    }
}

impl Transitions {
    pub(super) const NONE: u32 = 0;

    pub(super) fn number(&mut self, edges: &[Edge]) -> u32 {
        if let Some(&known) = self.numbers.get(edges) {
            return known;
        }
        let number = self.lists.len() as u32;
        self.lists.push(edges.to_vec());
        self.numbers.insert(edges.to_vec(), number);
        number
    }

    pub(super) fn edges(&self, number: u32) -> &[Edge] {
        &self.lists[number as usize]
    }
}

/// Sets of places, as numbers: a set is another one and one place more. Zero is the empty one.
#[derive(Debug, Default)]
pub(super) struct Places {
    // The set numbered `i + 1`.
    sets: Vec<(u32, PlaceOf)>,
    sizes: Vec<u32>,
    with: FxHashMap<(u32, PlaceOf), u32>,
}

/// A place, with the locks that guard the access there.
pub(super) type PlaceOf = (ThreadId, SiteId, Candidates);

impl Places {
    pub(super) fn with(
        &mut self,
        set: u32,
        thread: ThreadId,
        site: SiteId,
        locks: Candidates,
    ) -> u32 {
        let place = (thread, site, locks);
        if let Some(&known) = self.with.get(&(set, place)) {
            return known;
        }
        let size = if set == 0 { 0 } else { self.sizes[set as usize - 1] };
        let next = if size >= PLACES || self.all(set).contains(&place) {
            set
        } else {
            self.sets.push((set, place));
            self.sizes.push(size + 1);
            self.sets.len() as u32
        };
        self.with.insert((set, place), next);
        next
    }

    pub(super) fn all(&self, mut set: u32) -> Vec<PlaceOf> {
        let mut places = Vec::new();
        while set > 0 {
            let (before, place) = self.sets[set as usize - 1];
            places.push(place);
            set = before;
        }
        places.reverse();
        places
    }
}
