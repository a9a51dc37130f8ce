//! Which blocks a block dominates: control cannot come to them without coming to it.
//!
//! A block is dominated if it cannot be reached from the entry without the dominating one. Stars are few, so one
//! search for each is cheaper than a tree for all.

use crate::ir::Function;

/// The blocks that `head` dominates, itself among them, by block.
pub fn dominated(function: &Function, head: u32) -> Vec<bool> {
    let all = reachable(function, None);
    let without = reachable(function, Some(head));
    all.iter().zip(&without).map(|(&a, &b)| a && !b).collect()
}

/// How many edges lead to a block.
pub fn edges_to(function: &Function, block: u32) -> usize {
    function.blocks.iter().flat_map(|b| &b.successors).filter(|&&s| s == block).count()
}

fn reachable(function: &Function, without: Option<u32>) -> Vec<bool> {
    let mut seen = vec![false; function.blocks.len()];
    let mut open = vec![0u32];
    while let Some(block) = open.pop() {
        if Some(block) == without || std::mem::replace(&mut seen[block as usize], true) {
            continue;
        }
        open.extend(&function.blocks[block as usize].successors);
    }
    seen
}
