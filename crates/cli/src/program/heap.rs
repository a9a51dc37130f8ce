//! The heap blocks in use, and where they were allocated.

use std::collections::{BTreeMap, VecDeque};

use selvedge_model::{Range, SiteId, ThreadId};

/// A block, and the thread and place that allocated it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    pub(crate) range: Range,
    pub(crate) thread: ThreadId,
    pub(crate) site: SiteId,
}

/// The blocks in use.
#[derive(Default, Debug)]
pub(crate) struct Heap {
    blocks: BTreeMap<u64, Block>,
    /// The last ones that were freed, the latest last.
    freed: VecDeque<Block>,
}

impl Heap {
    /// How many freed blocks are remembered.
    const REMEMBERED: usize = 4096;

    pub(crate) fn allocated(&mut self, range: Range, thread: ThreadId, site: SiteId) {
        self.blocks.insert(range.start, Block { range, thread, site });
    }

    pub(crate) fn freed(&mut self, range: Range) {
        // An unmapped range may contain many blocks; a freed block is one.
        let block = self.blocks.remove(&range.start);
        if let Some(block) = block {
            if self.freed.len() == Heap::REMEMBERED {
                self.freed.pop_front();
            }
            self.freed.push_back(block);
        }
        if block.is_none_or(|b| b.range.len < range.len) {
            let within: Vec<u64> =
                self.blocks.range(range.start..range.end()).map(|(&a, _)| a).collect();
            for start in within {
                self.blocks.remove(&start);
            }
        }
    }

    /// The block around an address.
    pub(crate) fn at(&self, addr: u64) -> Option<&Block> {
        let (_, block) = self.blocks.range(..=addr).next_back()?;
        (addr < block.range.end()).then_some(block)
    }

    /// The block that was around an address until it was freed, if that is not long ago.
    pub(crate) fn was_at(&self, addr: u64) -> Option<&Block> {
        self.freed.iter().rev().find(|b| (b.range.start..b.range.end()).contains(&addr))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_while_they_live() {
        let range = |start, len| Range { start, len };
        let mut heap = Heap::default();
        heap.allocated(range(100, 20), ThreadId(1), SiteId(7));
        heap.allocated(range(120, 8), ThreadId(1), SiteId(8));
        assert_eq!(heap.at(119).map(|b| b.site), Some(SiteId(7)));
        assert_eq!(heap.at(128), None);
        assert_eq!(heap.was_at(100), None);
        heap.freed(range(100, 20));
        assert_eq!(heap.at(100), None);
        assert_eq!(heap.was_at(119).map(|b| b.site), Some(SiteId(7)));
        assert!(heap.at(120).is_some());
        heap.freed(range(64, 4096));
        assert_eq!(heap.at(120), None);
    }
}
