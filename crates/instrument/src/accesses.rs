//! Fewer hooks: which of the compiler's hooks for plain accesses a race detector can do without.
//!
//! ThreadSanitizer's pass puts a hook in front of every plain access that it cannot show to be local. A stretch of
//! execution in which a thread neither synchronizes nor frees memory has one vector clock: all its accesses have the same
//! relation to every access of another thread. So of such a stretch the detector need only know, of each byte, whether it was
//! read and whether it was written, at any time before the stretch ends. All rules rest on this:
//!
//! - **covered**: on every path to the hook, and since the last synchronization, a hook of the same bytes has been passed that
//!   is at least as strong (a write covers a read). Available expressions, over all paths, back edges included.
//! - **followed**: in the same block, with nothing that synchronizes between, a write of the same bytes follows a read.
//! - **early**: in a loop without synchronization, the same address in every round, and every round makes the access: one
//!   hook in front of the loop.
//! - **sweep**: likewise, but the address moves by a constant in every round: one hook behind the loop for all of them,
//!   on each edge that leaves it, with the number of rounds that there were. The loop remains what the compiler made of
//!   it. Accesses of one round that lie side by side, or at equal distances, are one sweep.
//!
//! The idea of checking ranges behind loops is that of BigFoot (Rhodes, Flanagan, Freund, PLDI 2017); it moves checks in a
//! language with its own analysis, we move the hooks of a compiler, after all its optimisations.
//!
//! *Guarantee*: in every execution that goes on to the end of the loops it has entered, the detector gets, for each stretch
//! without synchronization, the same bytes with the same strengths, so it reports a race on the same bytes. What differs is
//! which of several accesses of a stretch it names, and that a program which crashes within a loop has not told that loop's
//! sweeps. Under control, and where accesses are recorded, all hooks are wanted, so
//! that each function keeps a second body with all of them (`crate::ffi`, `bodies`).
//!
//! *Cost*: a pass over the function for each round of the availability analysis, which takes few.

mod available;
mod sweeps;
#[cfg(test)]
mod tests;
mod wide;

use std::collections::BTreeMap;

use crate::dominance::{Dominators, Loop, loops};
use crate::ir::{Function, Module, Sum, What};

pub use sweeps::{Counter, Sweep};
pub use wide::{Wide, WideHook, wide};

/// A rule, so that each can be switched off and measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Rule {
    Covered,
    Followed,
    Early,
    Sweep,
}

/// Which rules are applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules(u8);

impl Rules {
    #[allow(missing_docs)]
    pub const ALL: Rules = Rules(0b1111);
    #[allow(missing_docs)]
    pub const NONE: Rules = Rules(0);

    /// All but one.
    pub fn without(self, rule: Rule) -> Rules {
        Rules(self.0 & !(1 << rule as u8))
    }

    fn has(self, rule: Rule) -> bool {
        self.0 >> rule as u8 & 1 == 1
    }
}

/// A hook: function, block and instruction, by number.
pub type Place = (u32, u32, u32);

/// A change of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Edit {
    /// The hook goes.
    Remove(Place),
    /// The hook moves to the end of a block.
    Early { hook: Place, to: u32 },
    /// A sweep is told on an edge.
    Sweep(Sweep),
}

impl Edit {
    /// The function that it changes.
    pub fn function(&self) -> u32 {
        match self {
            Edit::Remove(hook) | Edit::Early { hook, .. } => hook.0,
            Edit::Sweep(sweep) => sweep.function,
        }
    }
}

/// What can be done without in a module.
pub fn decide(module: &Module, rules: Rules) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (number, function) in (0..).zip(&module.functions) {
        edits.extend(Deciding::new(function, number, rules).decide());
    }
    edits
}

/// An access: the bytes from `at` on.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Access {
    /// Without its offset.
    base: Sum,
    offset: i64,
    len: i64,
    write: bool,
    /// The operand, as it stands in the hook.
    operand: Sum,
}

impl Access {
    /// Whether the hook of the other one need not be.
    fn covers(&self, other: &Access) -> bool {
        self.base == other.base
            && self.offset <= other.offset
            && self.offset.wrapping_add(self.len) >= other.offset.wrapping_add(other.len)
            && (self.write || !other.write)
    }
}

struct Deciding<'a> {
    function: &'a Function,
    number: u32,
    rules: Rules,
    dominators: Dominators,
    /// By value the sum of values that are no sums, which it is.
    sums: Vec<Sum>,
    /// By value the block and the place of its definition; parameters have none.
    defined: Vec<Option<(u32, u32)>>,
    /// The hooks that are left, in order.
    hooks: BTreeMap<(u32, u32), Access>,
    edits: Vec<Edit>,
}

impl<'a> Deciding<'a> {
    fn new(function: &'a Function, number: u32, rules: Rules) -> Deciding<'a> {
        let dominators = Dominators::of(function);
        let values = function.values();
        let mut deciding = Deciding {
            function,
            number,
            rules,
            dominators,
            sums: (0..values).map(Sum::of).collect(),
            defined: vec![None; values as usize],
            hooks: BTreeMap::new(),
            edits: Vec::new(),
        };
        for b in deciding.dominators.in_order() {
            for (at, instruction) in (0..).zip(&function.blocks[b as usize].instructions) {
                let value = function.value(b as usize, at as usize) as usize;
                deciding.defined[value] = Some((b, at));
                match &instruction.what {
                    What::Sum(sum) => deciding.sums[value] = deciding.whole(sum, value as u32),
                    What::Access { write, len, at: operand } => {
                        let base = deciding.whole(operand, value as u32);
                        let access = Access {
                            offset: base.offset,
                            base: Sum { offset: 0, ..base },
                            len: i64::from(*len),
                            write: *write,
                            operand: operand.clone(),
                        };
                        deciding.hooks.insert((b, at), access);
                    }
                    _ => {}
                }
            }
        }
        deciding
    }

    /// The sum with those in it written out; the value itself where that is not possible. Definitions come before uses,
    /// because the order of blocks follows dominance.
    fn whole(&self, sum: &Sum, value: u32) -> Sum {
        let mut whole = Sum { fixed: sum.fixed, offset: sum.offset, ..Sum::default() };
        for &(term, factor) in &sum.terms {
            if !whole.add(&self.sums[term as usize], factor) {
                return Sum::of(value);
            }
        }
        whole
    }

    fn decide(mut self) -> Vec<Edit> {
        if self.hooks.is_empty() {
            return Vec::new();
        }
        if self.rules.has(Rule::Followed) {
            self.followed();
        }
        if self.rules.has(Rule::Covered) {
            for hook in available::covered(self.function, &self.dominators, &self.hooks) {
                self.remove(hook);
            }
        }
        for around in loops(self.function, &self.dominators) {
            if self.is_quiet(&around) {
                self.in_loop(&around);
            }
        }
        self.edits
    }

    fn remove(&mut self, hook: (u32, u32)) {
        self.hooks.remove(&hook);
        self.edits.push(Edit::Remove((self.number, hook.0, hook.1)));
    }

    /// Reads that a write follows in their block.
    fn followed(&mut self) {
        let mut gone = Vec::new();
        for (&(b, at), read) in self.hooks.iter().filter(|(_, a)| !a.write) {
            let instructions = &self.function.blocks[b as usize].instructions;
            let ends = (at + 1..).zip(&instructions[at as usize + 1..]);
            let end = ends.into_iter().find(|(_, i)| synchronizes(&i.what)).map(|(at, _)| at);
            let until = (b, end.unwrap_or(u32::MAX));
            if self
                .hooks
                .range((b, at + 1)..until)
                .any(|(_, later)| later.write && later.covers(read))
            {
                gone.push((b, at));
            }
        }
        for hook in gone {
            self.remove(hook);
        }
    }

    /// Whether nothing in a loop synchronizes.
    fn is_quiet(&self, around: &Loop) -> bool {
        let blocks =
            self.function.blocks.iter().zip(&around.contains).filter(|(_, inside)| **inside);
        !blocks.flat_map(|(block, _)| &block.instructions).any(|i| synchronizes(&i.what))
    }

    fn in_loop(&mut self, around: &Loop) {
        let Some(before) = around.before else { return };
        let ends: Vec<u32> =
            around.exits.iter().map(|e| e.0).chain(around.latches.iter().copied()).collect();
        let each_round = |b: u32| ends.iter().all(|&end| self.dominators.dominates(b, end));
        let inside = |b: u32| around.contains[b as usize];
        let hooks: Vec<(u32, u32)> =
            self.hooks.keys().copied().filter(|&(b, _)| inside(b) && each_round(b)).collect();
        let counters = sweeps::counters(self.function, around, before, &self.sums);
        let mut moving = Vec::new();
        for hook in hooks {
            let access = &self.hooks[&hook];
            match sweeps::step(access, around, &counters, &self.defined) {
                Some(0)
                    if self.rules.has(Rule::Early) && self.may_be_early(access, around, before) =>
                {
                    self.hooks.remove(&hook);
                    let hook = (self.number, hook.0, hook.1);
                    self.edits.push(Edit::Early { hook, to: before });
                }
                Some(0) | None => {}
                Some(step) => moving.push((hook, step)),
            }
        }
        if !self.rules.has(Rule::Sweep) || around.exits.is_empty() || !self.can_split(around) {
            return;
        }
        let moving: Vec<_> =
            moving.into_iter().map(|(at, step)| (at, step, &self.hooks[&at])).collect();
        let sweeps = sweeps::sweeps(self.number, around, before, &counters, &moving);
        let gone: Vec<(u32, u32)> = moving.iter().map(|m| m.0).collect();
        self.edits.extend(sweeps.into_iter().map(Edit::Sweep));
        gone.into_iter().for_each(|hook| self.remove(hook));
    }

    /// Whether the address is known before the loop, and the block before it leads nowhere else.
    fn may_be_early(&self, access: &Access, around: &Loop, before: u32) -> bool {
        let known = |&(value, _): &(u32, i64)| {
            self.defined[value as usize].is_none_or(|(b, _)| !around.contains[b as usize])
        };
        access.operand.terms.iter().all(known)
            && self.function.blocks[before as usize].successors.len() == 1
    }

    /// Whether each edge that leaves the loop is the only one between its blocks, and made by a branch.
    fn can_split(&self, around: &Loop) -> bool {
        around.exits.iter().all(|&(from, slot)| {
            let block = &self.function.blocks[from as usize];
            let to = block.successors[slot as usize];
            block.successors.iter().filter(|&&s| s == to).count() == 1
                && matches!(block.instructions.last().map(|i| &i.what), Some(What::Branch(_)))
        })
    }
}

/// Whether the relation to other threads may be another one behind an instruction.
fn synchronizes(what: &What) -> bool {
    match what {
        What::Load { order, volatile, .. } | What::Store { order, volatile, .. } => {
            order.is_some() || *volatile
        }
        What::Update { .. }
        | What::CompareExchange { .. }
        | What::Fence
        | What::Assembly { .. } => true,
        What::Call { quiet, .. } => !quiet,
        What::Variable(_)
        | What::Copy(_)
        | What::Fill(_)
        | What::Compute(_)
        | What::Lanes { .. }
        | What::Sum(_)
        | What::Access { .. }
        | What::Divide { .. }
        | What::Phi(_)
        | What::Branch(_)
        | What::Return(_)
        | What::Nothing => false,
    }
}
