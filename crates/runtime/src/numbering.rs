//! Numbers for memory that do not depend on where it lies.
//!
//! Under control the same schedule has to give the same events wherever the program was loaded. So addresses
//! are replaced by numbers in order of first use, in pieces of [`GRANULE`] bytes, because that is how finely
//! the kernel places stacks. A block that is allocated gets consecutive numbers, and loses them when it is
//! freed: memory that is used again is new memory.

use std::collections::BTreeMap;

use selvedge_model::{Access, Range};

/// How finely memory is numbered.
pub(crate) const GRANULE: u64 = 16;

/// A run of granules with consecutive numbers.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// First granule after it.
    end: u64,
    /// Number of its first granule.
    number: u64,
}

/// The numbers of memory.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    /// Runs by their first granule; they do not overlap.
    runs: BTreeMap<u64, Run>,
    /// The first number and the first granule of every run there ever was, by number.
    all: Vec<(u64, u64)>,
    /// Granules numbered so far.
    numbered: u64,
}

impl Numbering {
    /// Numbers granules that have no number.
    fn add(&mut self, first: u64, end: u64) -> Run {
        let run = Run { end, number: self.numbered + 1 };
        self.numbered += end - first;
        self.all.push((run.number, first));
        self.runs.insert(first, run);
        run
    }

    /// The access by number, cut off where the run of its beginning ends.
    pub(crate) fn access(&mut self, access: Access) -> Access {
        let Access { addr, len } = access;
        let first = addr / GRANULE;
        let before = self.runs.range(..=first).next_back().map(|(&start, &run)| (start, run));
        let (start, run) = before.filter(|(_, run)| first < run.end).unwrap_or_else(|| {
            let end = (addr + u64::from(len.max(1)) - 1) / GRANULE + 1;
            let next = self.runs.range(first..).next().map_or(u64::MAX, |(&start, _)| start);
            (first, self.add(first, end.min(next)))
        });
        let offset = addr % GRANULE;
        let room = (run.end - first) * GRANULE - offset;
        let number = run.number + (first - start);
        Access {
            addr: number * GRANULE + offset,
            len: u32::try_from(room).map_or(len, |r| len.min(r)),
        }
    }

    /// A block that was allocated, by number.
    pub(crate) fn allocated(&mut self, block: Range) -> Range {
        self.freed(block);
        let (first, end) = granules(block);
        let run = self.add(first, end);
        Range { start: run.number * GRANULE + block.start % GRANULE, len: block.len }
    }

    /// The numbered parts of memory that is freed, by number. They lose their numbers.
    pub(crate) fn freed(&mut self, memory: Range) -> Vec<Range> {
        let (first, end) = granules(memory);
        let before = self.runs.range(..first).next_back().filter(|(_, run)| run.end > first);
        let from = before.map_or(first, |(&start, _)| start);
        let touched: Vec<(u64, Run)> = self.runs.range(from..end).map(|(&s, &r)| (s, r)).collect();
        let mut gone = Vec::new();
        for (start, run) in touched {
            self.runs.remove(&start);
            if start < first {
                self.runs.insert(start, Run { end: first, ..run });
            }
            if run.end > end {
                self.runs.insert(end, Run { number: run.number + (end - start), ..run });
            }
            let (low, high) = (start.max(first), run.end.min(end));
            let number = run.number + (low - start);
            let bytes = low * GRANULE;
            let skipped = memory.start.saturating_sub(bytes);
            let len = (high * GRANULE).min(memory.end()) - bytes - skipped;
            gone.push(Range { start: number * GRANULE + skipped, len });
        }
        gone
    }

    /// Where the memory with a number lies, or lay.
    pub(crate) fn address(&self, addr: u64) -> Option<u64> {
        let number = addr / GRANULE;
        let after = self.all.partition_point(|&(first, _)| first <= number);
        let (first, granule) = self.all[after.checked_sub(1)?];
        Some((granule + number - first) * GRANULE + addr % GRANULE)
    }
}

/// The first granule of a range and the first one after it.
fn granules(range: Range) -> (u64, u64) {
    let first = range.start / GRANULE;
    (first, range.end().div_ceil(GRANULE).max(first + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(numbering: &mut Numbering, addr: u64, len: u32) -> (u64, u32) {
        let Access { addr, len } = numbering.access(Access { addr, len });
        (addr, len)
    }

    #[test]
    fn memory_is_numbered_in_order_of_use() {
        let mut numbering = Numbering::default();
        assert_eq!(access(&mut numbering, 0x5008, 8), (16 + 8, 8));
        assert_eq!(access(&mut numbering, 0x9000, 20), (32, 20), "a run of two granules");
        assert_eq!(access(&mut numbering, 0x9010, 4), (48, 4));
        assert_eq!(
            access(&mut numbering, 0x9018, 16),
            (56, 8),
            "what is in another run is cut off"
        );
        assert_eq!(numbering.address(56), Some(0x9018));
    }

    #[test]
    fn a_block_has_numbers_until_it_is_freed() {
        let mut numbering = Numbering::default();
        let block = Range { start: 0x8010, len: 40 };
        assert_eq!(numbering.allocated(block), Range { start: 16, len: 40 });
        assert_eq!(access(&mut numbering, 0x8020, 8), (32, 8));
        assert_eq!(numbering.freed(block), [Range { start: 16, len: 40 }]);
        assert_eq!(numbering.freed(block), []);
        assert_eq!(access(&mut numbering, 0x8020, 8), (64, 8), "other memory now");
        assert_eq!(numbering.address(32), Some(0x8020), "still known");
    }

    #[test]
    fn a_part_of_a_run_can_be_freed() {
        let mut numbering = Numbering::default();
        numbering.allocated(Range { start: 0x1000, len: 64 });
        let gone = numbering.freed(Range { start: 0x1010, len: 16 });
        assert_eq!(gone, [Range { start: 32, len: 16 }]);
        assert_eq!(access(&mut numbering, 0x1000, 8), (16, 8));
        assert_eq!(access(&mut numbering, 0x1020, 8), (48, 8));
        assert_eq!(access(&mut numbering, 0x1010, 8), (80, 8));
    }
}
