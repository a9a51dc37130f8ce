//! Random functions are executed as they are and with fewer hooks: in each stretch without synchronization the same bytes
//! must have been told, with the same strengths.

use std::collections::{BTreeMap, BTreeSet};

use super::{Edit, Rule, Rules, Sweep, decide};
use crate::ir::{Block, Callee, Function, Instruction, Loc, Module, Sum, Value, What};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn one_of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize].clone()
    }
}

const PARAMETERS: u32 = 3;

/// Builds a function out of ifs and loops.
struct Building<'r> {
    random: &'r mut Random,
    blocks: Vec<Vec<What>>,
    successors: Vec<Vec<u32>>,
    /// The values that are known at this place, by block and instruction; parameters by their number.
    known: Vec<Known>,
    /// Where a `break` goes.
    exits: Vec<u32>,
}

#[derive(Clone, Copy)]
enum Known {
    Parameter(u32),
    Made(u32, u32),
}

/// Values are numbered when all blocks are there; until then an instruction has this number.
fn provisional(known: Known) -> u32 {
    match known {
        Known::Parameter(n) => n,
        Known::Made(block, at) => 1_000 + block * 1_000 + at,
    }
}

impl Building<'_> {
    fn block(&mut self) -> u32 {
        self.blocks.push(Vec::new());
        self.successors.push(Vec::new());
        self.blocks.len() as u32 - 1
    }

    fn emit(&mut self, block: u32, what: What) -> Known {
        self.blocks[block as usize].push(what);
        Known::Made(block, self.blocks[block as usize].len() as u32 - 1)
    }

    fn jump(&mut self, from: u32, on: Value, to: &[u32]) {
        self.emit(from, What::Branch(on));
        self.successors[from as usize] = to.to_vec();
    }

    fn condition(&mut self, block: u32) -> Value {
        let mut uses: Vec<Value> = vec![Some(0)];
        for _ in 0..2 {
            uses.push(Some(provisional(self.random.one_of(&self.known))));
        }
        Some(provisional(self.emit(block, What::Compute(uses))))
    }

    fn sum(&mut self) -> Sum {
        let mut sum = Sum::of(self.random.below(u64::from(PARAMETERS)) as u32);
        sum.offset = 4 * self.random.below(6) as i64;
        for _ in 0..self.random.below(3) {
            let value = provisional(self.random.one_of(&self.known));
            let factor = self.random.one_of(&[1, 4, 8, 16, -8]);
            assert!(sum.add(&Sum::of(value), factor));
        }
        sum
    }

    /// Some statements, from a block on; returns the block where they end.
    fn statements(&mut self, mut block: u32, depth: u32) -> u32 {
        for _ in 0..1 + self.random.below(4) {
            block = self.statement(block, depth);
        }
        block
    }

    fn statement(&mut self, block: u32, depth: u32) -> u32 {
        match self.random.below(if depth == 0 { 7 } else { 11 }) {
            0..=3 => {
                let (write, len) = (self.random.below(2) == 0, self.random.one_of(&[1, 4, 8, 16]));
                let at = if self.random.below(2) == 0 {
                    self.sum()
                } else {
                    Sum::of(provisional(self.random.one_of(&self.known)))
                };
                self.emit(block, What::Access { write, len, at });
                block
            }
            4 => {
                let sum = self.sum();
                let made = self.emit(block, What::Sum(sum));
                self.known.push(made);
                block
            }
            5 => {
                let uses = vec![Some(provisional(self.random.one_of(&self.known)))];
                let made = self.emit(block, What::Compute(uses));
                self.known.push(made);
                block
            }
            6 if self.random.below(3) == 0 => {
                let synchronizing = self.synchronizing();
                self.emit(block, synchronizing);
                block
            }
            6 => block,
            7 | 8 => self.branch(block, depth),
            _ => self.repeat(block, depth),
        }
    }

    /// Something that synchronizes, or a call that does not.
    fn synchronizing(&mut self) -> What {
        let (at, value, len) = (None, None, 4);
        let call = |quiet| What::Call {
            callee: Callee::Named("other".into(), false),
            arguments: Vec::new(),
            quiet,
        };
        match self.random.below(8) {
            0 => call(true),
            1..3 => call(false),
            3 => What::Load { at, len, order: Some(2), volatile: false },
            4 => What::Load { at, len, order: None, volatile: true },
            5 => What::Update { at, value, len, order: 3, operator: None },
            6 => What::Assembly { text: String::new(), arguments: Vec::new(), understood: None },
            _ => What::Fence,
        }
    }

    fn branch(&mut self, block: u32, depth: u32) -> u32 {
        let condition = self.condition(block);
        let [one, other, behind] = [0; 3].map(|_| self.block());
        self.jump(block, condition, &[one, other]);
        let known = self.known.len();
        let leaves = self.random.below(4) == 0;
        for side in [one, other] {
            let end = self.statements(side, depth - 1);
            let to = if leaves && side == one { self.exits.last().copied() } else { None };
            self.jump(end, None, &[to.unwrap_or(behind)]);
            self.known.truncate(known);
        }
        behind
    }

    /// A loop, which asks at its end, and perhaps in the middle, whether it goes on.
    fn repeat(&mut self, block: u32, depth: u32) -> u32 {
        let [header, behind] = [0; 2].map(|_| self.block());
        let before = if self.random.below(2) == 0 {
            let before = self.block();
            self.jump(block, None, &[before]);
            before
        } else {
            block
        };
        let known = self.known.len();
        let skips = self.random.below(3) == 0;
        let condition = if skips { self.condition(before) } else { None };
        let to: &[u32] = if skips { &[header, behind] } else { &[header] };
        self.jump(before, condition, to);
        let counters = 1 + self.random.below(2);
        let mut phis = Vec::new();
        for _ in 0..counters {
            let from = self.random.one_of(&self.known[..known]);
            let init = if self.random.below(2) == 0 { None } else { Some(provisional(from)) };
            let phi = self.emit(header, What::Phi(vec![(before, init)]));
            phis.push(phi);
        }
        self.known.extend(&phis);
        self.exits.push(behind);
        let end = self.statements(header, depth - 1);
        self.exits.pop();
        for phi in phis {
            let mut next = Sum::of(provisional(phi));
            next.offset = self.random.one_of(&[1, 2, 8, -1]);
            let next = self.emit(end, What::Sum(next));
            let Known::Made(b, at) = phi else { continue };
            if let What::Phi(from) = &mut self.blocks[b as usize][at as usize] {
                from.push((end, Some(provisional(next))));
            }
        }
        let condition = self.condition(end);
        self.jump(end, condition, &[header, behind]);
        self.known.truncate(known);
        behind
    }
}

fn function(random: &mut Random) -> Function {
    let known = (0..PARAMETERS).map(Known::Parameter).collect();
    let mut building =
        Building { random, blocks: Vec::new(), successors: Vec::new(), known, exits: Vec::new() };
    let entry = building.block();
    let end = building.statements(entry, 3);
    building.emit(end, What::Return(None));
    let mut first = Vec::new();
    let mut count = 0;
    for block in &building.blocks {
        first.push(count);
        count += block.len() as u32;
    }
    let final_ = |value: u32| match value {
        0..PARAMETERS => value,
        made => PARAMETERS + first[(made / 1_000 - 1) as usize] + made % 1_000,
    };
    let number = |value: &mut Value| *value = value.map(final_);
    let renumber = |sum: &mut Sum| {
        let mut terms: Vec<(u32, i64)> = sum.terms.iter().map(|t| (final_(t.0), t.1)).collect();
        terms.sort_unstable();
        sum.terms = terms;
    };
    let mut blocks = Vec::new();
    for (b, list) in building.blocks.iter().enumerate() {
        let mut instructions = Vec::new();
        for what in list {
            let mut what = what.clone();
            match &mut what {
                What::Sum(sum) | What::Access { at: sum, .. } => renumber(sum),
                What::Compute(uses) => uses.iter_mut().for_each(number),
                What::Phi(from) => from.iter_mut().for_each(|f| number(&mut f.1)),
                What::Branch(on) => number(on),
                _ => {}
            }
            instructions.push(Instruction { what, loc: Loc::default() });
        }
        let successors = building.successors[b].clone();
        blocks.push(Block { first: first[b], instructions, successors });
    }
    Function { parameters: PARAMETERS, blocks, ..Function::default() }
}

/// Bytes that were told in a stretch: read, and written.
type Told = [BTreeSet<i64>; 2];

/// An execution.
struct Running<'a> {
    function: &'a Function,
    edits: &'a [Edit],
    values: Vec<i64>,
    /// By hook, where it was last.
    last: BTreeMap<(u32, u32), i64>,
    stretches: Vec<Told>,
}

impl<'a> Running<'a> {
    /// What is told, of an execution that ends.
    fn run(function: &'a Function, edits: &'a [Edit], parameters: [i64; 3]) -> Option<Vec<Told>> {
        let mut values = vec![0; function.values() as usize];
        values[..3].copy_from_slice(&parameters);
        let (last, stretches) = (BTreeMap::new(), vec![Told::default()]);
        let mut running = Running { function, edits, values, last, stretches };
        let (mut from, mut block) = (0, 0);
        for _ in 0..300 {
            let Some(slot) = running.block(from, block) else { return Some(running.stretches) };
            running.leave(block, slot);
            from = block;
            block = function.blocks[block as usize].successors[slot as usize];
        }
        None
    }

    fn sum(&self, sum: &Sum) -> i64 {
        let terms = sum.terms.iter().map(|t| self.values[t.0 as usize].wrapping_mul(t.1));
        terms.fold(sum.offset, i64::wrapping_add)
    }

    fn tell(&mut self, write: bool, at: i64, len: i64) {
        let told = &mut self.stretches.last_mut().expect("one is open")[usize::from(write)];
        told.extend((0..len).map(|i| at.wrapping_add(i)));
    }

    /// Which successor follows; none behind a return.
    fn block(&mut self, from: u32, b: u32) -> Option<u32> {
        let block = &self.function.blocks[b as usize];
        let phis = (0..).zip(&block.instructions).filter_map(|(at, i)| match &i.what {
            What::Phi(all) => {
                let value = all.iter().find(|f| f.0 == from).and_then(|f| f.1);
                Some((at, value.map_or(0, |v| self.values[v as usize])))
            }
            _ => None,
        });
        for (at, value) in phis.collect::<Vec<_>>() {
            self.values[self.function.value(b as usize, at) as usize] = value;
        }
        for (at, instruction) in (0..).zip(&block.instructions) {
            let own = self.function.value(b as usize, at as usize) as usize;
            match &instruction.what {
                What::Sum(sum) => self.values[own] = self.sum(sum),
                What::Compute(uses) => {
                    let mixed = uses.iter().flatten().fold(7_i64, |all, &v| {
                        all.wrapping_mul(31).wrapping_add(self.values[v as usize]) ^ all >> 5
                    });
                    self.values[own] = (mixed >> 2) % 3;
                }
                What::Access { write, len, at: place } => {
                    let address = self.sum(place);
                    self.last.insert((b, at), address);
                    if !self.is_gone((0, b, at)) {
                        self.tell(*write, address, i64::from(*len));
                    }
                }
                What::Call { quiet: true, .. } => {}
                What::Fence
                | What::Call { .. }
                | What::Load { .. }
                | What::Update { .. }
                | What::Assembly { .. } => self.stretches.push(Told::default()),
                What::Branch(on) => {
                    self.early(b);
                    return Some(on.map_or(0, |v| u32::from(self.values[v as usize] == 0)));
                }
                _ => {}
            }
        }
        None
    }

    fn is_gone(&self, hook: super::Place) -> bool {
        self.edits.iter().any(|e| match e {
            Edit::Remove(gone) => *gone == hook,
            Edit::Early { hook: moved, .. } => *moved == hook,
            Edit::Sweep(_) => false,
        })
    }

    /// Hooks that moved to the end of a block.
    fn early(&mut self, b: u32) {
        for edit in self.edits {
            let Edit::Early { hook, to } = edit else { continue };
            let what = &self.function.blocks[hook.1 as usize].instructions[hook.2 as usize].what;
            if let What::Access { write, len, at } = what
                && *to == b
            {
                self.tell(*write, self.sum(at), i64::from(*len));
            }
        }
    }

    fn leave(&mut self, from: u32, slot: u32) {
        for edit in self.edits {
            if let Edit::Sweep(sweep) = edit
                && sweep.edge == (from, slot)
            {
                self.sweep(sweep);
            }
        }
    }

    fn sweep(&mut self, sweep: &Sweep) {
        let (b, at) = sweep.counter.phi;
        let What::Phi(all) = &self.function.blocks[b as usize].instructions[at as usize].what
        else {
            panic!("the counter is no merged value")
        };
        let init = all.iter().find(|f| f.0 == sweep.counter.before).and_then(|f| f.1);
        let init = init.map_or(0, |v| self.values[v as usize]);
        let moved = self.values[sweep.counter.value as usize].wrapping_sub(init);
        assert_eq!(moved % sweep.counter.step, 0, "it counts");
        let earlier = moved / sweep.counter.step;
        let start = self.last[&sweep.hook] + sweep.offset - sweep.back * earlier;
        for i in 0..sweep.each * (earlier + 1) {
            self.tell(sweep.write, start + i * sweep.stride, sweep.len);
        }
    }
}

/// How many edits of each kind were executed: removed, early, swept.
fn check(seed: u64, rules: Rules) -> [usize; 3] {
    let mut random = Random(seed);
    let function = function(&mut random);
    let module = Module { functions: vec![function], ..Module::default() };
    let edits = decide(&module, rules);
    for round in 0..4_i64 {
        let parameters = [1_000 + round, 5_000 + 8 * round, 9_000 + seed as i64 % 5];
        let all = Running::run(&module.functions[0], &[], parameters);
        let few = Running::run(&module.functions[0], &edits, parameters);
        let (Some(all), Some(few)) = (all, few) else { continue };
        assert_eq!(all.len(), few.len());
        for ([reads, writes], [few_reads, few_writes]) in all.iter().zip(&few) {
            let shown = || format!("seed {seed}\n{:#?}\n{edits:#?}", module.functions[0]);
            assert_eq!(writes, few_writes, "{}", shown());
            let told: BTreeSet<i64> = few_reads.union(few_writes).copied().collect();
            assert!(reads.is_subset(&told), "a read is lost: {}", shown());
            let happened: BTreeSet<i64> = reads.union(writes).copied().collect();
            assert!(few_reads.is_subset(&happened), "a read was invented: {}", shown());
        }
    }
    let count = |of: fn(&Edit) -> bool| edits.iter().filter(|e| of(e)).count();
    [
        count(|e| matches!(e, Edit::Remove(_))),
        count(|e| matches!(e, Edit::Early { .. })),
        count(|e| matches!(e, Edit::Sweep(_))),
    ]
}

#[test]
fn the_same_bytes_are_told_between_synchronizations() {
    let mut total = [0; 3];
    for seed in 0..10_000 {
        let edits = check(seed, Rules::ALL);
        total.iter_mut().zip(edits).for_each(|(sum, n)| *sum += n);
    }
    assert!(
        total.iter().all(|&n| n > 300),
        "random functions have too little to leave out: {total:?}"
    );
}

#[test]
fn each_rule_can_be_switched_off() {
    for rule in [Rule::Covered, Rule::Followed, Rule::Early, Rule::Sweep] {
        let (mut all, mut without) = ([0; 3], [0; 3]);
        for seed in 0..500 {
            all.iter_mut().zip(check(seed, Rules::ALL)).for_each(|(sum, n)| *sum += n);
            let some = check(seed, Rules::ALL.without(rule));
            without.iter_mut().zip(some).for_each(|(sum, n)| *sum += n);
        }
        assert!(all != without, "{rule:?} does nothing");
    }
}
