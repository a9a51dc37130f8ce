//! Fewer entries for accesses that are alike.
//!
//! A call that is repeated has a new entry each time, because what is in flight is completed on its own. Once such
//! accesses are over, those that began and ended in the same segments, under the same locks, at one place, differ in
//! nothing that decides about races. The first few keep entries of their own, whose times are exact; the rest share
//! one. Only then does pruning (definition 7.1) apply to them: what is in flight makes nothing redundant.
//!
//! Guarantee: the same pairs of places race in the same memory as without it (a property in `rank/tests.rs`). Cost: linear in
//! entries and fragments. It is done when there are twice as many entries, or accesses to one byte, as after the last time,
//! and as much was inserted as it costs; and before entries are distributed. So a phase that never ends needs as much memory as it has
//! different accesses.

use super::{Act, Attributes, End, Gather, Lock, Side, Space, covers};
use crate::hash::Map;
use std::sync::Arc;

/// So many entries are few,
const FEW_ENTRIES: usize = 4096;
/// and so many accesses to one byte.
const FEW_TO_A_BYTE: usize = 32;

/// What was left when entries were merged, and what has happened since then.
#[derive(Default, Debug)]
pub(super) struct Compacted {
    entries: usize,
    to_a_byte: usize,
    cost: usize,
    inserted: usize,
}

/// What decides about races.
#[derive(PartialEq, Eq, Hash)]
struct Kind {
    call: u8,
    side: Side,
    act: Act,
    phase: u64,
    pc: u64,
    segments: (u32, End),
    locks: Arc<[Lock]>,
    memory: (Space, u64, u32),
    told: (bool, u64, Option<u32>),
}

impl Kind {
    fn of(access: &Attributes, space: Space) -> Kind {
        Kind {
            call: access.call,
            side: access.side,
            act: access.act,
            phase: access.phase(),
            pc: access.pc,
            segments: (access.begin, access.end),
            locks: access.locks.clone(),
            memory: (space, access.window, access.target),
            told: (access.local_only, access.barrier, access.fenced),
        }
    }
}

impl Gather {
    /// Merges entries that are alike, and drops those that are nowhere.
    pub fn compact(&mut self) {
        if self.keeps_all {
            return;
        }
        let mut spaces: Vec<Option<Space>> = vec![None; self.attributes.len()];
        for (&space, store) in &self.stores {
            store.iter().flat_map(|(_, ids)| ids).for_each(|&id| spaces[id as usize] = Some(space));
        }
        let mut kept: Vec<Attributes> = Vec::new();
        let mut renamed: Vec<Option<u32>> = Vec::with_capacity(spaces.len());
        // How many of a kind there were, and the entry of those that share one.
        let mut kinds: Map<Kind, (usize, u32)> = Map::default();
        for (access, space) in std::mem::take(&mut self.attributes).into_iter().zip(spaces) {
            if access.end != End::Open {
                let Some(space) = space else {
                    renamed.push(None);
                    continue;
                };
                let (seen, shared) = kinds.entry(Kind::of(&access, space)).or_default();
                *seen += 1;
                if *seen > self.exact + 1 {
                    let of_all = &mut kept[*shared as usize];
                    of_all.last = of_all.last.max(access.last);
                    renamed.push(Some(*shared));
                    continue;
                }
                *shared = kept.len() as u32;
            }
            renamed.push(Some(kept.len() as u32));
            kept.push(access);
        }
        self.attributes = kept;
        self.rename(|id| renamed[id as usize]);
        let all = &self.attributes;
        // The read of a statement that another one's write makes redundant stays: the pair of statements is of interest.
        let covers = |old: u32, new: u32| {
            let (old, new) = (&all[old as usize], &all[new as usize]);
            old.pc == new.pc && covers(old, new)
        };
        self.stores.values_mut().for_each(|store| store.prune(covers));
        let fragments: usize = self.stores.values().map(|store| store.len()).sum();
        self.compacted = Compacted {
            entries: self.attributes.len(),
            to_a_byte: self.stores.values().map(|store| store.most()).max().unwrap_or(0),
            cost: self.attributes.len() + fragments,
            inserted: 0,
        };
    }

    /// The same, if there is enough to be merged; `to_a_byte` is the most accesses to a byte of the last one.
    pub(super) fn compact_if_worth_while(&mut self, to_a_byte: usize) {
        let last = &mut self.compacted;
        last.inserted += 1;
        let many = self.attributes.len() >= (2 * last.entries).max(FEW_ENTRIES);
        let crowded = to_a_byte >= (2 * last.to_a_byte).max(FEW_TO_A_BYTE);
        if many || crowded {
            self.compact_if_paid();
        }
    }

    /// The same, if as much was inserted as it costs.
    pub(super) fn compact_if_paid(&mut self) {
        if self.compacted.inserted >= self.compacted.cost {
            self.compact();
        }
    }

    /// Entries have other numbers from now on, or none.
    pub(super) fn rename(&mut self, new: impl Fn(u32) -> Option<u32>) {
        self.stores.retain(|_, store| {
            store.retain(&new);
            !store.is_empty()
        });
        for ids in
            self.in_flight.values_mut().chain(self.requests.values_mut().map(|r| &mut r.accesses))
        {
            *ids = ids.iter().filter_map(|&id| new(id)).collect();
        }
        self.in_flight.retain(|_, ids| !ids.is_empty());
        let buffers = std::mem::take(&mut self.buffers);
        self.buffers = buffers.into_iter().filter_map(|(id, b)| Some((new(id)?, b))).collect();
        let attributes = &self.attributes;
        // Accesses that are to come may share an entry only as long as it is that of no others.
        self.alike.retain(|_, id| {
            new(*id).is_some_and(|to| {
                *id = to;
                attributes[to as usize].last == attributes[to as usize].began
            })
        });
    }
}
