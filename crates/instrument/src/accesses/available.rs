//! Hooks that other hooks cover on every path.
//!
//! A forward analysis over sets of accesses: an access is available behind its hook, until something synchronizes. That a
//! value in its address gets a new definition in the next round of a loop needs no rule: a path that comes to the definition
//! for the first time goes on in the same way without having passed the hook, so that the access is not available there.

use std::collections::BTreeMap;

use super::{Access, synchronizes};
use crate::dominance::Dominators;
use crate::ir::Function;

/// The hooks that need not be.
pub(super) fn covered(
    function: &Function,
    dominators: &Dominators,
    hooks: &BTreeMap<(u32, u32), Access>,
) -> Vec<(u32, u32)> {
    let all: Vec<(&(u32, u32), &Access)> = hooks.iter().collect();
    let mut analysis = Analysis { function, all, end: vec![None; function.blocks.len()] };
    let order = dominators.in_order();
    loop {
        let changes = order.iter().map(|&b| analysis.block(b, dominators).0);
        if changes.filter(|changed| *changed).count() == 0 {
            break;
        }
    }
    order.into_iter().flat_map(|b| analysis.block(b, dominators).1).collect()
}

struct Analysis<'a> {
    function: &'a Function,
    all: Vec<(&'a (u32, u32), &'a Access)>,
    /// By block, which accesses are available at its end; all of them as long as that is not known.
    end: Vec<Option<Vec<bool>>>,
}

impl Analysis<'_> {
    /// Whether the end of the block has changed, and which of its hooks are covered.
    fn block(&mut self, b: u32, dominators: &Dominators) -> (bool, Vec<(u32, u32)>) {
        let mut available = self.start(b, dominators);
        let mut covered = Vec::new();
        let block = &self.function.blocks[b as usize];
        for (at, instruction) in (0..).zip(&block.instructions) {
            if synchronizes(&instruction.what) {
                available.fill(false);
            }
            let Ok(own) = self.all.binary_search_by_key(&(b, at), |h| *h.0) else { continue };
            let access = self.all[own].1;
            let by = |(i, is): (usize, &bool)| *is && i != own && self.all[i].1.covers(access);
            // One that is available by itself was passed in an earlier round, at the same address.
            if available[own] || available.iter().enumerate().any(by) {
                covered.push((b, at));
            }
            available[own] = true;
        }
        let before = self.end[b as usize].replace(available);
        (before != self.end[b as usize], covered)
    }

    fn start(&self, b: u32, dominators: &Dominators) -> Vec<bool> {
        let none = vec![false; self.all.len()];
        if b == 0 {
            return none;
        }
        let ends = dominators.predecessors(b).iter().filter(|&&p| dominators.is_reached(p));
        let known = ends.filter_map(|&p| self.end[p as usize].clone());
        known
            .reduce(|a, b| a.iter().zip(&b).map(|(a, b)| *a && *b).collect())
            .unwrap_or_else(|| vec![true; self.all.len()])
    }
}
