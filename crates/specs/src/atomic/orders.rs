//! The orders in which the blocks of an execution may be executed alone.
//!
//! Paper: Burnim, §5.3: all orders of the top-level blocks in which blocks that did not overlap keep their order.
//! Hints decide what comes first, never what comes: linearization points (the block that reached its own first comes
//! first), then distinguished accesses (a write or the last read of a variable before a write or the last read of the
//! same, unless both read; contradictions between two blocks cancel), then the order in which blocks ended. If hints
//! and points together have no order, points alone.
//!
//! Guarantee: every such order comes exactly once, the one that hints and ends ask for first. By theorem 16 there are
//! at most (K+1)^R, if R blocks were interrupted and K blocks interrupted others.
//!
//! Cost: O(n²) for the first one, O(n) per block of each further one.

use super::{AtomicBlock, Distinguished};

/// Which order must be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// That of blocks that did not overlap.
    RealTime,
    /// That of the blocks of each thread.
    Threads,
}

/// Orders of blocks, as indices.
#[derive(Debug)]
pub struct Linearizations<'a, S> {
    blocks: &'a [AtomicBlock<S>],
    keep: Keep,
    /// The place of each block in the first order.
    rank: Vec<usize>,
    placed: Vec<bool>,
    order: Vec<usize>,
    /// For each place what is left to try there, the next one last; one more than places are taken.
    untried: Vec<Vec<usize>>,
}

/// All orders of the blocks, which are sorted by their begins, beginning with the likeliest.
pub fn linearizations<S>(blocks: &[AtomicBlock<S>], keep: Keep) -> Linearizations<'_, S> {
    let hinted = hinted(blocks, true).or_else(|| hinted(blocks, false));
    // Points are reached between begin and end, so there always is an order by points alone.
    let first = hinted.unwrap_or_else(|| (0..blocks.len()).collect());
    let mut rank = vec![0; blocks.len()];
    first.iter().enumerate().for_each(|(place, &block)| rank[block] = place);
    let placed = vec![false; blocks.len()];
    let mut all =
        Linearizations { blocks, keep, rank, placed, order: Vec::new(), untried: Vec::new() };
    all.untried.push(all.candidates());
    all
}

impl<S> Linearizations<'_, S> {
    /// What may be next, the likeliest last.
    fn candidates(&self) -> Vec<usize> {
        let left = || (0..self.blocks.len()).filter(|&i| !self.placed[i]);
        let mut next: Vec<usize> = match self.keep {
            Keep::RealTime => {
                let first = left().map(|i| self.blocks[i].end).min().unwrap_or(0);
                left().filter(|&i| self.blocks[i].begin <= first).collect()
            }
            Keep::Threads => {
                let mut seen = rustc_hash::FxHashSet::default();
                left().filter(|&i| seen.insert(self.blocks[i].id.thread)).collect()
            }
        };
        next.sort_by_key(|&i| std::cmp::Reverse(self.rank[i]));
        next
    }
}

impl<S> Iterator for Linearizations<'_, S> {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        loop {
            let Some(block) = self.untried.last_mut()?.pop() else {
                self.untried.pop();
                if self.blocks.is_empty() {
                    return Some(Vec::new());
                }
                let last = self.order.pop();
                last.into_iter().for_each(|i| self.placed[i] = false);
                continue;
            };
            self.order.push(block);
            self.placed[block] = true;
            if self.order.len() == self.blocks.len() {
                let order = self.order.clone();
                self.order.pop();
                self.placed[block] = false;
                return Some(order);
            }
            self.untried.push(self.candidates());
        }
    }
}

/// An order that keeps that of blocks that did not overlap and follows the hints, with or without distinguished
/// accesses; where these say nothing, blocks that ended earlier come first. None if there is none.
fn hinted<S>(blocks: &[AtomicBlock<S>], accesses: bool) -> Option<Vec<usize>> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); blocks.len()];
    for (j, later) in blocks.iter().enumerate() {
        for (i, earlier) in blocks[..j].iter().enumerate().filter(|(_, b)| b.overlaps(later)) {
            match first_of(earlier, later, accesses) {
                Some(true) => before[j].push(i),
                Some(false) => before[i].push(j),
                None => {}
            }
        }
    }
    let mut placed = vec![false; blocks.len()];
    let mut order = Vec::with_capacity(blocks.len());
    for _ in blocks {
        let left = || (0..blocks.len()).filter(|&i| !placed[i]);
        let first = left().map(|i| blocks[i].end).min()?;
        let free = |&i: &usize| blocks[i].begin <= first && before[i].iter().all(|&b| placed[b]);
        let next = left().filter(free).min_by_key(|&i| blocks[i].end)?;
        placed[next] = true;
        order.push(next);
    }
    Some(order)
}

/// Whether hints put the first of two overlapping blocks before the second, or after it.
fn first_of<S>(a: &AtomicBlock<S>, b: &AtomicBlock<S>, accesses: bool) -> Option<bool> {
    if let (Some(a), Some(b)) = (a.point, b.point) {
        return Some(a < b);
    }
    if !accesses {
        return None;
    }
    let ordered = |x: &Distinguished, y: &Distinguished| {
        x.variable == y.variable && (x.writes || y.writes) && x.at < y.at
    };
    let any = |first: &AtomicBlock<S>, second: &AtomicBlock<S>| {
        first.accesses.iter().any(|x| second.accesses.iter().any(|y| ordered(x, y)))
    };
    match (any(a, b), any(b, a)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}
