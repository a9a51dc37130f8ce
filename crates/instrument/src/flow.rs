//! What is recorded of the flow of data, and what the host can know without.
//!
//! Recorded are which blocks are executed if that does not follow from the blocks before, the addresses of loads and stores, ranges of copies, whether a
//! compare-exchange succeeded, and where calls leave the module. Everything else follows from the static
//! [`table`](mod@crate::table): which values an operation uses.
//!
//! A variable whose address is not taken is a local: its loads and stores stand in the table and cost nothing. A value
//! that is used only in its block, and that few locals flow into, has no operation of its own: whoever uses it uses
//! these locals. Before one of them changes, such values are computed after all.
//!
//! A star is the blocks that the true edge of the branch on `selvedge_star_enter()` dominates. Its normal end is the
//! edge to the false successor.
//!
//! Source: Burnim, "Specifying and Checking Correctness of Parallel Programs" (2012), sections 6.4 and 6.5 say what
//! flows; what is recorded is our own.
//!
//! *Guarantee*: from the records and the table the host knows every value that an operation of the module used, as of
//! bitcode that was not optimised. Assembly that is not [understood](crate::assembly) is only known to have been executed.

use crate::assembly::{Does, Understood};
use crate::dominance;
use crate::hooks::{Argument, Hook, Insertion, Side};
use crate::ir::{self, Callee, Function, Loc, Module, What};
use crate::table::{self, Op, Table};

/// More locals than these are put together in one of their own.
const FEW: usize = 6;

/// The functions of the runtime that stars are made of.
const STAR_ENTER: &str = "selvedge_star_enter";
const STAR_VALUE: &str = "selvedge_star_value";
/// Other functions of the runtime begin with this, and are seen by it.
const OURS: &str = "selvedge_";

/// What was decided for a module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Decided {
    pub table: Table,
    pub insertions: Vec<Insertion>,
}

/// What cannot be followed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// A star that is not the condition of a statement by itself.
    #[error(
        "{file}:{line}: this star is part of a condition that control comes to in several ways; put SELVEDGE_STAR_BLOCK around a statement of its own, or SELVEDGE_STAR around the whole condition"
    )]
    #[allow(missing_docs)]
    Star { file: String, line: u32 },
}

/// Decides for a module.
pub fn decide(module: &Module) -> Result<Decided, Refused> {
    let mut decided = Decided::default();
    decided.table.files.clone_from(&module.files);
    let mut places = 0;
    for (number, function) in module.functions.iter().enumerate() {
        let mut deciding = Deciding::new(module, function, number as u32, places);
        deciding.blocks()?;
        places = deciding.places;
        decided.table.functions.push(deciding.known);
        decided.insertions.extend(deciding.insertions);
    }
    Ok(decided)
}

struct Deciding<'a> {
    module: &'a Module,
    function: &'a Function,
    number: u32,
    places: u32,
    insertions: Vec<Insertion>,
    known: table::Function,
    /// By value, whether it is a variable that is a local.
    local: Vec<bool>,
    /// By value, its block and whether another block uses it.
    elsewhere: Vec<bool>,
    /// By value, the last position in its block at which it is used.
    last_use: Vec<u32>,
    /// By value, the locals that flow into it.
    flows: Vec<Vec<u32>>,
    /// By value, whether it is a load that a store updates.
    updated: Vec<bool>,
    /// Values that say whether a star is executed.
    chooses: Vec<bool>,
    ops: Vec<(Loc, Op)>,
}

impl<'a> Deciding<'a> {
    fn new(module: &'a Module, function: &'a Function, number: u32, places: u32) -> Deciding<'a> {
        let values = function.values() as usize;
        let mut deciding = Deciding {
            module,
            function,
            number,
            places,
            insertions: Vec::new(),
            known: table::Function {
                name: function.name.clone(),
                loc: function.loc,
                parameters: function.parameters,
                locals: function.values(),
                ..table::Function::default()
            },
            local: locals(function),
            elsewhere: vec![false; values],
            last_use: vec![0; values],
            flows: vec![Vec::new(); values],
            updated: vec![false; values],
            chooses: vec![false; values],
            ops: Vec::new(),
        };
        for parameter in 0..function.parameters {
            deciding.flows[parameter as usize] = vec![parameter];
        }
        deciding.find_uses();
        deciding
    }

    fn find_uses(&mut self) {
        let mut block_of = vec![u32::MAX; self.function.values() as usize];
        for (b, block) in self.function.blocks.iter().enumerate() {
            for at in 0..block.instructions.len() {
                block_of[self.function.value(b, at) as usize] = b as u32;
            }
        }
        for (b, block) in self.function.blocks.iter().enumerate() {
            for (at, instruction) in block.instructions.iter().enumerate() {
                let phi = matches!(instruction.what, What::Phi(_));
                if let What::Store { updates: Some((load, _)), .. } = instruction.what {
                    self.updated[load as usize] = true;
                }
                for used in instruction.what.uses() {
                    let used = used as usize;
                    if block_of[used] != b as u32 || phi {
                        self.elsewhere[used] = true;
                    } else {
                        self.last_use[used] = self.last_use[used].max(at as u32);
                    }
                }
            }
        }
    }

    fn blocks(&mut self) -> Result<(), Refused> {
        let follows = follows(self.function);
        for b in 0..self.function.blocks.len() {
            let place = self.place();
            let hook = if b == 0 { Hook::Enter } else { Hook::Block };
            if !follows[b] {
                self.insert((b, 0), Side::Before, hook, vec![Argument::Place(place)]);
            }
            for at in 0..self.function.blocks[b].instructions.len() {
                self.instruction(b, at)?;
            }
            if let &[to] = &self.function.blocks[b].successors[..]
                && follows[to as usize]
            {
                self.op(Loc::default(), Op::Jump { to });
            }
            self.known.blocks.push(std::mem::take(&mut self.ops));
        }
        Ok(())
    }

    fn place(&mut self) -> u32 {
        self.places += 1;
        self.places - 1
    }

    fn insert(
        &mut self,
        (b, at): (usize, usize),
        side: Side,
        hook: Hook,
        arguments: Vec<Argument>,
    ) {
        let at = (self.number, b as u32, at as u32);
        self.insertions.push(Insertion { at, side, hook, arguments });
    }

    /// The locals that flow into a value.
    fn uses(&self, value: ir::Value) -> Vec<u32> {
        value.map_or(Vec::new(), |v| self.flows[v as usize].clone())
    }

    fn all_uses(&self, values: &[ir::Value]) -> Vec<u32> {
        let mut all: Vec<u32> = values.iter().flat_map(|&v| self.uses(v)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn op(&mut self, loc: Loc, op: Op) {
        self.ops.push((loc, op));
    }

    fn decide(&mut self, loc: Loc, uses: Vec<u32>) {
        if !uses.is_empty() {
            self.op(loc, Op::Decide { uses });
        }
    }

    /// Control is here: the only trace of `break;`, and of a loop without a condition.
    fn step(&mut self, loc: Loc) {
        if loc.line > 0 && self.ops.last().is_none_or(|(before, _)| *before != loc) {
            self.op(loc, Op::Decide { uses: Vec::new() });
        }
    }

    /// The value follows from these locals.
    fn compute(&mut self, to: u32, uses: Vec<u32>, loc: Loc) {
        if self.elsewhere[to as usize] || uses.len() > FEW {
            self.op(loc, Op::Compute { to, uses });
            self.flows[to as usize] = vec![to];
        } else {
            self.flows[to as usize] = uses;
        }
    }

    fn instruction(&mut self, b: usize, at: usize) -> Result<(), Refused> {
        let function = self.function;
        let to = function.value(b, at);
        let ir::Instruction { what, loc } = &function.blocks[b].instructions[at];
        let loc = *loc;
        match what {
            // Hooks of the compiler are not asked for.
            What::Variable(_) | What::Nothing | What::Fence | What::Access { .. } => {}
            What::Load { .. }
            | What::Store { .. }
            | What::Update { .. }
            | What::CompareExchange { .. }
            | What::Copy(_)
            | What::Fill(_) => self.memory((b, at), what, loc),
            What::Compute(_) | What::Lanes { .. } | What::Sum(_) => {
                let values: Vec<ir::Value> = what.uses().into_iter().map(Some).collect();
                let chooses = values.iter().flatten().any(|&v| self.chooses[v as usize]);
                self.chooses[to as usize] = chooses;
                let uses = self.all_uses(&values);
                self.compute(to, uses, loc);
            }
            What::Divide { uses, divisor } => {
                let divisor = self.uses(*divisor);
                self.decide(loc, divisor);
                let uses = self.all_uses(uses);
                self.compute(to, uses, loc);
            }
            What::Phi(from) => {
                let from =
                    from.iter().map(|(block, value)| (*block, value.iter().copied().collect()));
                let op = Op::Phi { to, from: from.collect() };
                self.op(loc, op);
                self.flows[to as usize] = vec![to];
            }
            What::Branch(on) => {
                if on.is_some_and(|v| self.chooses[v as usize]) {
                    self.choose(b, loc)?;
                } else if on.is_none() {
                    self.step(loc);
                } else {
                    let uses = self.uses(*on);
                    self.decide(loc, uses);
                }
            }
            What::Call { callee, arguments, .. } => self.call((b, at), loc, callee, arguments),
            What::Assembly { text, arguments, understood: None } => {
                self.assembly((b, at), loc, text, arguments);
            }
            What::Assembly { arguments, understood: Some(known), .. } => {
                self.understood((b, at), loc, arguments, known);
            }
            What::Return(value) => {
                let uses = self.uses(*value);
                self.op(loc, Op::Return { uses });
            }
        }
        Ok(())
    }

    /// An instruction that accesses memory, or a variable that is a local.
    fn memory(&mut self, (b, at): (usize, usize), what: &What, loc: Loc) {
        let to = self.function.value(b, at);
        match what {
            What::Load { at: from, len, order, .. } => {
                if let Some(variable) = from.filter(|&v| self.local[v as usize]) {
                    self.compute(to, vec![variable], loc);
                } else {
                    let uses = self.uses(*from);
                    self.access((b, at), 0, *len, *order, [Hook::Read, Hook::Load]);
                    let (len, atomic) = (*len as u32, order.is_some());
                    let updated = self.updated[to as usize];
                    self.op(loc, Op::Load { to, at: uses, len, atomic, updated });
                    self.flows[to as usize] = vec![to];
                }
            }
            What::Store { at: where_, value, len, order, updates, .. } => {
                let value = self.uses(*value);
                if let Some(variable) = where_.filter(|&v| self.local[v as usize]) {
                    self.settle(b, at, variable);
                    self.op(loc, Op::Compute { to: variable, uses: value });
                } else {
                    let uses = self.uses(*where_);
                    self.access((b, at), 1, *len, *order, [Hook::Write, Hook::Store]);
                    let (len, atomic) = (*len as u32, order.is_some());
                    let updates = *updates;
                    self.op(loc, Op::Store { value, at: uses, len, atomic, updates });
                }
            }
            What::Update { at: where_, value, len, order, operator } => {
                let (value, uses) = (self.uses(*value), self.uses(*where_));
                self.access((b, at), 0, *len, Some(*order), [Hook::Update; 2]);
                let (len, operator) = (*len as u32, *operator);
                self.op(loc, Op::Update { to, value, at: uses, len, operator });
                self.flows[to as usize] = vec![to];
            }
            What::CompareExchange { at: where_, expected, new, len, order } => {
                let [expected, new, uses] = [expected, new, where_].map(|v| self.uses(*v));
                self.access((b, at), 0, *len, Some(*order), [Hook::Update; 2]);
                self.insert((b, at), Side::After, Hook::Flag, vec![Argument::Part(1)]);
                let len = *len as u32;
                self.op(loc, Op::CompareExchange { to, expected, new, at: uses, len });
                self.flows[to as usize] = vec![to];
            }
            What::Copy(parts) => {
                let arguments = vec![
                    self.next_place(),
                    Argument::Operand(0),
                    Argument::Operand(1),
                    Argument::Operand(2),
                ];
                self.insert((b, at), Side::Before, Hook::Copy, arguments);
                let uses = self.all_uses(parts);
                self.op(loc, Op::Copy { at: uses });
            }
            What::Fill(parts) => {
                let arguments = vec![self.next_place(), Argument::Operand(0), Argument::Operand(2)];
                self.insert((b, at), Side::Before, Hook::Fill, arguments);
                let (value, uses) = (self.uses(parts[1]), self.all_uses(&[parts[0], parts[2]]));
                self.op(loc, Op::Fill { value, at: uses });
            }
            _ => {}
        }
    }

    fn next_place(&mut self) -> Argument {
        Argument::Place(self.place())
    }

    fn access(
        &mut self,
        at: (usize, usize),
        operand: u32,
        len: u64,
        order: ir::Order,
        [plain, atomic]: [Hook; 2],
    ) {
        let place = self.next_place();
        let mut arguments = vec![place, Argument::Operand(operand), Argument::Number(len)];
        let hook = match order {
            None => plain,
            Some(order) => {
                arguments.push(Argument::Number(u64::from(order)));
                atomic
            }
        };
        self.insert(at, Side::Before, hook, arguments);
    }

    /// A local is about to change: values that it flows into, and that are used later, are computed now.
    fn settle(&mut self, b: usize, at: usize, variable: u32) {
        for earlier in 0..at {
            let value = self.function.value(b, earlier);
            let v = value as usize;
            let pending = self.flows[v].contains(&variable) && self.flows[v] != [value];
            if pending && self.last_use[v] > at as u32 {
                let uses = std::mem::replace(&mut self.flows[v], vec![value]);
                let loc = self.function.blocks[b].instructions[earlier].loc;
                self.op(loc, Op::Compute { to: value, uses });
            }
        }
    }

    fn choose(&mut self, b: usize, loc: Loc) -> Result<(), Refused> {
        let successors = &self.function.blocks[b].successors;
        let (enter, end) = (successors[0], successors[1]);
        if enter == end || dominance::edges_to(self.function, enter) != 1 {
            let file = self.module.files.get(loc.file as usize).cloned().unwrap_or_default();
            return Err(Refused::Star { file, line: loc.line });
        }
        let dominators = dominance::Dominators::of(self.function);
        let blocks = 0..self.function.blocks.len() as u32;
        let inside = blocks.filter(|&b| dominators.is_reached(b) && dominators.dominates(enter, b));
        let inside = inside.collect();
        let star = self.known.stars.len() as u32;
        self.known.stars.push(table::Star { loc, enter, end, inside });
        self.op(loc, Op::Choose { star });
        Ok(())
    }

    fn call(
        &mut self,
        (b, at): (usize, usize),
        loc: Loc,
        callee: &Callee,
        arguments: &[ir::Value],
    ) {
        let to = self.function.value(b, at);
        let uses: Vec<Vec<u32>> = arguments.iter().map(|&a| self.uses(a)).collect();
        let (callee, leaves) = match callee {
            Callee::Named(name, _) if name == STAR_ENTER => {
                self.chooses[to as usize] = true;
                return;
            }
            Callee::Named(name, _) if name == STAR_VALUE => {
                let uses = self.all_uses(arguments);
                self.op(loc, Op::StarValue { to, uses });
                self.flows[to as usize] = vec![to];
                return;
            }
            Callee::Named(name, _) if name.starts_with(OURS) => return,
            Callee::Named(name, defined) => (table::Callee::Named(name.clone()), !defined),
            Callee::Computed(value) => {
                let target = self.uses(*value);
                self.decide(loc, target);
                (table::Callee::Computed, true)
            }
        };
        self.leave((b, at), leaves);
        self.op(loc, Op::Call { to, callee, arguments: uses, leaves });
        self.flows[to as usize] = vec![to];
    }

    fn leave(&mut self, at: (usize, usize), leaves: bool) {
        if leaves {
            let place = self.next_place();
            self.insert(at, Side::Before, Hook::Leave, vec![place]);
            self.insert(at, Side::After, Hook::Back, vec![place]);
        }
    }

    /// Assembly that is an access to memory.
    fn understood(
        &mut self,
        (b, at): (usize, usize),
        loc: Loc,
        arguments: &[ir::Value],
        known: &Understood,
    ) {
        /// The strongest order.
        const ORDER: u8 = 5;
        let to = self.function.value(b, at);
        let Some(&operand) = known.memory.first() else {
            let uses = self.all_uses(arguments);
            return self.compute(to, uses, loc);
        };
        let uses = self.uses(arguments[operand as usize]);
        let others = (0..arguments.len()).filter(|n| !known.memory.contains(&(*n as u32)));
        let others: Vec<ir::Value> = others.map(|n| arguments[n]).collect();
        let (value, len) = (self.all_uses(&others), known.len);
        let hook = match known.does {
            Does::Nothing => return,
            Does::Load => Hook::Load,
            Does::Store => Hook::Store,
            Does::Update(_) => Hook::Update,
            Does::CompareExchange => Hook::Exchange,
        };
        self.access((b, at), operand, u64::from(len), Some(ORDER), [hook; 2]);
        let (at_uses, atomic) = (uses, true);
        let op = match known.does {
            Does::Nothing | Does::Load => Op::Load { to, at: at_uses, len, atomic, updated: false },
            Does::Store => Op::Store { value, at: at_uses, len, atomic, updates: None },
            Does::Update(operator) => Op::Update { to, value, at: at_uses, len, operator },
            Does::CompareExchange => {
                let behind = vec![Argument::Operand(operand), Argument::Number(u64::from(len))];
                self.insert((b, at), Side::After, Hook::Exchanged, behind);
                let expected = value.clone();
                Op::CompareExchange { to, expected, new: value, at: at_uses, len }
            }
        };
        self.op(loc, op);
        self.flows[to as usize] = vec![to];
    }

    fn assembly(&mut self, at: (usize, usize), loc: Loc, text: &str, arguments: &[ir::Value]) {
        let to = self.function.value(at.0, at.1);
        // Without instructions it only keeps the compiler from moving others.
        if text.trim().is_empty() {
            let uses = self.all_uses(arguments);
            return self.compute(to, uses, loc);
        }
        let uses: Vec<Vec<u32>> = arguments.iter().map(|&a| self.uses(a)).collect();
        self.leave(at, true);
        let callee = table::Callee::Assembly(text.to_owned());
        self.op(loc, Op::Call { to, callee, arguments: uses, leaves: true });
        self.flows[to as usize] = vec![to];
    }
}

/// By block, whether that control came there follows from the blocks before: all of them always go there. Then nothing is
/// recorded. What is marked and which functions are called has no words of its own behind it, so that a block behind such
/// a call says when control is there.
fn follows(function: &Function) -> Vec<bool> {
    let mut follows = vec![true; function.blocks.len()];
    let mut reached = vec![false; function.blocks.len()];
    for block in &function.blocks {
        let silent = |i: &ir::Instruction| {
            let What::Call { callee: Callee::Named(name, defined), .. } = &i.what else {
                return false;
            };
            *defined || name.starts_with(OURS)
        };
        let jumps = matches!(block.instructions.last().map(|i| &i.what), Some(What::Branch(_)));
        let always = jumps && block.successors.len() == 1 && !block.instructions.iter().any(silent);
        for &to in &block.successors {
            follows[to as usize] &= always;
            reached[to as usize] = true;
        }
    }
    follows[0] = false;
    for b in 0..follows.len() {
        follows[b] &= reached[b];
        // A loop without a condition has a block that says that control is there again.
        let mut at = b;
        for _ in 0..follows.len() {
            match &function.blocks[at].successors[..] {
                &[to] if follows[to as usize] => at = to as usize,
                _ => break,
            }
            if at == b {
                follows[b] = false;
                break;
            }
        }
    }
    follows
}

/// By value, whether it is a variable of which only whole loads and stores are made.
fn locals(function: &Function) -> Vec<bool> {
    let mut len: Vec<Option<u64>> = vec![None; function.values() as usize];
    for (b, block) in function.blocks.iter().enumerate() {
        for (at, instruction) in block.instructions.iter().enumerate() {
            if let What::Variable(known) = instruction.what {
                len[function.value(b, at) as usize] = known;
            }
        }
    }
    for instruction in function.blocks.iter().flat_map(|b| &b.instructions) {
        let whole = match &instruction.what {
            What::Load { at, len: l, order: None, volatile: false } => at.map(|v| (v, *l)),
            What::Store { at, value, len: l, order: None, volatile: false, .. } if at != value => {
                at.map(|v| (v, *l))
            }
            _ => None,
        };
        for used in instruction.what.uses() {
            // The value that is stored is used, too.
            let stored =
                matches!(instruction.what, What::Store { value, .. } if value == Some(used));
            if stored || whole != len[used as usize].map(|l| (used, l)) {
                len[used as usize] = None;
            }
        }
    }
    len.into_iter().map(|l| l.is_some()).collect()
}
