//! Accesses that the compiler's pass for ThreadSanitizer gives no hook: those of 3, 10, 12, 24, 32, 64 … bytes, and vector
//! accesses of which a mask switches lanes off or which go to a place for each lane.
//!
//! They get hooks before anything else is decided, so that all rules hold for them, and so that both bodies of a function
//! have them. A variable of the function that nothing outside can know needs none. Escape is decided without regard to
//! order: a variable has escaped if its address is used for anything but accesses and addresses near it.

use crate::ir::{Function, Sum, What};

/// An access that lacks a hook: block and instruction, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wide {
    #[allow(missing_docs)]
    pub at: (u32, u32),
    /// What hook it needs.
    pub hook: WideHook,
}

/// The hook that an access needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum WideHook {
    /// For so many bytes.
    Range { write: bool, len: u64 },
    /// For the lanes of neighbouring memory that a mask names.
    Lanes { write: bool },
    /// For lanes each at its own place, where a mask names them.
    Scattered { write: bool },
}

/// The accesses of a function that lack hooks.
pub fn wide(function: &Function) -> Vec<Wide> {
    let mut found = Vec::new();
    if !function.is_checked {
        return found;
    }
    let variables = Variables::of(function);
    for (b, block) in (0..).zip(&function.blocks) {
        for (at, instruction) in (0..).zip(&block.instructions) {
            let hook = match instruction.what {
                What::Load { at, len, order: None, .. } if lacks(len) && variables.shared(at) => {
                    WideHook::Range { write: false, len }
                }
                What::Store { at, len, order: None, .. } if lacks(len) && variables.shared(at) => {
                    WideHook::Range { write: true, len }
                }
                What::Lanes { write, scattered: false, .. } => WideHook::Lanes { write },
                What::Lanes { write, scattered: true, .. } => WideHook::Scattered { write },
                _ => continue,
            };
            found.push(Wide { at: (b, at), hook });
        }
    }
    found
}

/// Whether the compiler's pass has no hook for accesses of so many bytes.
fn lacks(len: u64) -> bool {
    len != 0 && ![1, 2, 4, 8, 16].contains(&len)
}

/// The variables of a function, as far as values are addresses in them.
struct Variables {
    /// By value the variable that it points into.
    of: Vec<Option<u32>>,
    /// By value that is a variable, whether others may know its address.
    escaped: Vec<bool>,
}

impl Variables {
    fn of(function: &Function) -> Variables {
        let values = function.values() as usize;
        let mut variables = Variables { of: vec![None; values], escaped: vec![false; values] };
        // An address may be computed in a block that stands before the one of its base, so until nothing changes.
        let mut changed = true;
        while changed {
            changed = false;
            for (value, what) in instructions(function) {
                let into = match what {
                    What::Variable(_) => Some(value),
                    What::Sum(sum) => variables.base(sum),
                    _ => None,
                };
                changed |= variables.of[value as usize] != into;
                variables.of[value as usize] = into;
            }
        }
        for (_, what) in instructions(function) {
            for used in variables.given_away(what) {
                if let Some(variable) = variables.of[used as usize] {
                    variables.escaped[variable as usize] = true;
                }
            }
        }
        variables
    }

    /// The variable that a sum points into: it has that address once, and otherwise numbers.
    fn base(&self, sum: &Sum) -> Option<u32> {
        let mut bases = sum.terms.iter().filter_map(|&(v, f)| Some((self.of[v as usize]?, f)));
        match (bases.next(), bases.next()) {
            (Some((variable, 1)), None) => Some(variable),
            _ => None,
        }
    }

    /// The values that an instruction may tell others, or that it uses in a way that is not followed.
    fn given_away(&self, what: &What) -> Vec<u32> {
        let at_of = |at: &Option<u32>| *at;
        let harmless: Vec<u32> = match what {
            What::Load { at, .. } => at_of(at).into_iter().collect(),
            What::Store { at, value, .. } if at != value => at_of(at).into_iter().collect(),
            What::Copy([to, from, _]) => [*to, *from].into_iter().flatten().collect(),
            What::Fill([to, ..]) => at_of(to).into_iter().collect(),
            What::Sum(sum) if self.base(sum).is_some() => sum.terms.iter().map(|t| t.0).collect(),
            What::Access { .. } => return Vec::new(),
            _ => Vec::new(),
        };
        what.uses().into_iter().filter(|used| !harmless.contains(used)).collect()
    }

    /// Whether others may know what an address points to.
    fn shared(&self, at: Option<u32>) -> bool {
        let variable = at.and_then(|value| self.of[value as usize]);
        variable.is_none_or(|variable| self.escaped[variable as usize])
    }
}

fn instructions(function: &Function) -> impl Iterator<Item = (u32, &What)> {
    (0..).zip(&function.blocks).flat_map(move |(b, block)| {
        let value = move |at| function.value(b, at);
        (0..).zip(&block.instructions).map(move |(at, i)| (value(at), &i.what))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Block, Callee, Instruction, Loc};

    fn load(at: u32, len: u64) -> What {
        What::Load { at: Some(at), len, order: None, volatile: false }
    }

    fn store(at: u32, value: u32, len: u64) -> What {
        let (at, value) = (Some(at), Some(value));
        What::Store { at, value, len, order: None, volatile: false, updates: None }
    }

    fn near(value: u32, offset: i64) -> What {
        What::Sum(Sum { terms: vec![(value, 1)], fixed: None, offset })
    }

    /// A function of one parameter, value 0; its instructions are values from 1 on.
    fn found(instructions: Vec<What>) -> Vec<(u32, WideHook)> {
        let instruction = |what| Instruction { what, loc: Loc::default() };
        let instructions = instructions.into_iter().map(instruction).collect();
        let block = Block { first: 0, instructions, successors: Vec::new() };
        let function = Function {
            parameters: 1,
            is_checked: true,
            blocks: vec![block],
            ..Function::default()
        };
        wide(&function).into_iter().map(|w| (w.at.1 + 1, w.hook)).collect()
    }

    fn range(write: bool, len: u64) -> WideHook {
        WideHook::Range { write, len }
    }

    #[test]
    fn widths_that_the_compiler_leaves_out_are_found() {
        let widths = [1, 2, 3, 4, 8, 10, 12, 16, 24, 32, 64];
        let expected = widths.into_iter().zip(1..).filter(|(w, _)| ![1, 2, 4, 8, 16].contains(w));
        let expected: Vec<_> = expected.map(|(w, at)| (at, range(false, w))).collect();
        assert_eq!(found(widths.map(|w| load(0, w)).to_vec()), expected);
        assert_eq!(found(vec![store(0, 0, 32)]), [(1, range(true, 32))]);
    }

    #[test]
    fn variables_that_only_the_function_knows_need_no_hook() {
        let variable = What::Variable(Some(64));
        let private = vec![variable.clone(), near(1, 32), load(2, 32), store(1, 3, 32)];
        assert_eq!(found(private.clone()), []);
        let call = |argument| What::Call {
            callee: Callee::Named("other".into(), false),
            arguments: vec![Some(argument)],
            quiet: false,
        };
        for gives_away in [
            call(2),
            store(0, 2, 8),
            What::Return(Some(2)),
            What::Compute(vec![Some(1)]),
            What::Phi(vec![(0, Some(2))]),
            What::Sum(Sum { terms: vec![(1, -1)], fixed: None, offset: 0 }),
            What::Sum(Sum { terms: vec![(1, 1), (2, 1)], fixed: None, offset: 0 }),
            store(2, 2, 8),
        ] {
            let shared = [private.clone(), vec![gives_away.clone()]].concat();
            let both = [(3, range(false, 32)), (4, range(true, 32))];
            assert_eq!(found(shared), both, "{gives_away:?}");
        }
        // That its content goes elsewhere tells nothing of its address.
        let content = [private, vec![What::Return(Some(3)), store(0, 3, 8)]].concat();
        assert_eq!(found(content), []);
    }

    #[test]
    fn masked_accesses_are_found() {
        let lanes = |write, scattered| What::Lanes { write, scattered, uses: vec![Some(0)] };
        let all = vec![lanes(false, false), lanes(true, false), lanes(false, true)];
        let hooks = [
            WideHook::Lanes { write: false },
            WideHook::Lanes { write: true },
            WideHook::Scattered { write: false },
        ];
        let hooks: Vec<_> = (1..).zip(hooks).collect();
        assert_eq!(found(all), hooks);
    }
}
