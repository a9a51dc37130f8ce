//! Memory as cells, the largest stretches of bytes that no access touches in part.
//!
//! Memory that is freed and used again is other memory: it gets an address of its own.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use selvedge_model::{CondId, Range, RegionId, SemaphoreId};

/// Something other than memory that tasks write and read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Object {
    Semaphore(SemaphoreId),
    Cond(CondId),
    /// A lazy initialisation.
    Once(RegionId),
}

/// The places that have been accessed.
#[derive(Default, Debug)]
pub(super) struct Memory {
    /// The bytes of each place, at addresses of our own, and as the program knows them.
    places: Vec<Option<(Range, Range)>>,
    ranges: FxHashMap<(u64, u64), u32>,
    objects: FxHashMap<Object, u32>,
    /// Memory that was allocated or freed, by its first byte: its end and its address now.
    renewed: BTreeMap<u64, (u64, u64)>,
    /// How much of the upper half of the address space has been given away.
    given: u64,
}

const UPPER_HALF: u64 = 1 << 63;

impl Memory {
    /// The place of a piece of memory.
    pub(super) fn place(&mut self, range: Range) -> u32 {
        let start = self.address(range.start);
        let places = &mut self.places;
        *self.ranges.entry((start, range.len)).or_insert_with(|| {
            places.push(Some((Range { start, len: range.len }, range)));
            places.len() as u32 - 1
        })
    }

    /// The place of an object.
    pub(super) fn object(&mut self, object: Object) -> u32 {
        let places = &mut self.places;
        *self.objects.entry(object).or_insert_with(|| {
            places.push(None);
            places.len() as u32 - 1
        })
    }

    /// The memory begins anew.
    pub(super) fn renew(&mut self, range: Range) {
        if range.len == 0 {
            return;
        }
        let (start, end) = (range.start, range.end());
        let reaches_in = self.renewed.range(..start).next_back().map(|(&s, &e)| (s, e));
        if let Some((before, (its_end, address))) = reaches_in
            && its_end > start
        {
            self.renewed.insert(before, (start, address));
            if its_end > end {
                self.renewed.insert(end, (its_end, address + (end - before)));
            }
        }
        let inside: Vec<u64> = self.renewed.range(start..end).map(|(&s, _)| s).collect();
        for old in inside {
            if let Some((its_end, address)) = self.renewed.remove(&old)
                && its_end > end
            {
                self.renewed.insert(end, (its_end, address + (end - old)));
            }
        }
        self.renewed.insert(start, (end, UPPER_HALF + self.given));
        self.given = (self.given + range.len.next_multiple_of(64)) & (UPPER_HALF - 1);
    }

    fn address(&self, address: u64) -> u64 {
        if self.renewed.is_empty() {
            return address;
        }
        match self.renewed.range(..=address).next_back() {
            Some((start, (end, now))) if address < *end => now + (address - start),
            _ => address,
        }
    }

    /// The memory of each place, the cells of all places, and where those of each place begin.
    pub(super) fn cells(self) -> (Vec<Option<Range>>, Vec<u32>, Vec<u32>) {
        drop((self.ranges, self.renewed));
        let mut bounds: Vec<u64> =
            self.places.iter().flatten().flat_map(|(r, _)| [r.start, r.end()]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let position = |address: u64| bounds.partition_point(|&b| b < address) as u32;
        let mut objects = bounds.len() as u32;
        let (mut cells, mut starts) = (Vec::with_capacity(self.places.len()), vec![0]);
        for place in &self.places {
            match place {
                Some((range, _)) => cells.extend(position(range.start)..position(range.end())),
                None => {
                    cells.push(objects);
                    objects += 1;
                }
            }
            starts.push(cells.len() as u32);
        }
        (self.places.iter().map(|p| p.map(|(_, known)| known)).collect(), cells, starts)
    }
}
