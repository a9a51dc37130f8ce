//! The heap blocks in use, and where they were allocated.

use std::collections::BTreeMap;

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
}

impl Heap {
    pub(crate) fn allocated(&mut self, range: Range, thread: ThreadId, site: SiteId) {
        self.blocks.insert(range.start, Block { range, thread, site });
    }

    pub(crate) fn freed(&mut self, range: Range) {
        // An unmapped range may contain many blocks; a freed block is one.
        if self.blocks.remove(&range.start).is_none_or(|b| b.range.len < range.len) {
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
        heap.freed(range(100, 20));
        assert_eq!(heap.at(100), None);
        assert!(heap.at(120).is_some());
        heap.freed(range(64, 4096));
        assert_eq!(heap.at(120), None);
    }
}
