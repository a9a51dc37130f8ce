//! A module, as far as decisions need it.
//!
//! Values of a function are numbered: first its parameters, then its instructions, whether they have a value or not.
//! What is constant has no number, and neither has what lies at a fixed place (functions, globals).

use selvedge_model::Operator;

use crate::assembly::Understood;

/// A value of the function, or nothing if it is constant.
pub type Value = Option<u32>;

/// A place in the source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[allow(missing_docs)]
pub struct Loc {
    /// Its file, by number in the module.
    pub file: u32,
    /// 0 if it is not known.
    pub line: u32,
    pub column: u32,
}

/// A sum, modulo 2^64: multiples of values, something that has a fixed address, and a number.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Sum {
    /// Values and their factors, in the order of the values, none of them 0.
    pub terms: Vec<(u32, i64)>,
    /// A global or another constant with an address, by number in the module.
    pub fixed: Option<u32>,
    #[allow(missing_docs)]
    pub offset: i64,
}

impl Sum {
    /// One value.
    pub fn of(value: u32) -> Sum {
        Sum { terms: vec![(value, 1)], ..Sum::default() }
    }

    /// A number.
    pub fn number(offset: i64) -> Sum {
        Sum { offset, ..Sum::default() }
    }

    /// Adds a multiple of another sum. False if that would take two fixed addresses, or a multiple of one.
    #[must_use]
    pub fn add(&mut self, other: &Sum, factor: i64) -> bool {
        if other.fixed.is_some() {
            if self.fixed.is_some() || factor != 1 {
                return false;
            }
            self.fixed = other.fixed;
        }
        self.offset = self.offset.wrapping_add(other.offset.wrapping_mul(factor));
        for &(value, multiple) in &other.terms {
            let multiple = multiple.wrapping_mul(factor);
            match self.terms.binary_search_by_key(&value, |t| t.0) {
                Ok(at) => {
                    self.terms[at].1 = self.terms[at].1.wrapping_add(multiple);
                    if self.terms[at].1 == 0 {
                        self.terms.remove(at);
                    }
                }
                Err(at) if multiple != 0 => self.terms.insert(at, (value, multiple)),
                Err(_) => {}
            }
        }
        true
    }
}

/// What an instruction does.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum What {
    /// A variable of the function, of so many bytes; nothing if that is not fixed.
    Variable(Option<u64>),
    Load {
        at: Value,
        len: u64,
        order: Order,
        volatile: bool,
    },
    Store {
        at: Value,
        value: Value,
        len: u64,
        order: Order,
        volatile: bool,
        /// What is stored is what this load found, combined with something else, and nothing else uses either.
        updates: Option<(u32, Operator)>,
    },
    /// An atomic read-modify-write.
    Update {
        at: Value,
        value: Value,
        len: u64,
        order: u8,
        /// If it is one whose updates commute.
        operator: Option<Operator>,
    },
    CompareExchange {
        at: Value,
        expected: Value,
        new: Value,
        len: u64,
        order: u8,
    },
    /// Memory is copied: to, from, how much.
    Copy([Value; 3]),
    /// Memory is filled: where, with what, how much.
    Fill([Value; 3]),
    /// The value follows from others.
    Compute(Vec<Value>),
    /// It is a sum of others, of 64 bits.
    Sum(Sum),
    /// The compiler's hook for a plain access.
    Access {
        write: bool,
        len: u32,
        at: Sum,
    },
    Fence,
    /// The same, and the program ends if one of them is 0.
    Divide {
        uses: Vec<Value>,
        divisor: Value,
    },
    /// By the block that control comes from.
    Phi(Vec<(u32, Value)>),
    /// Control goes to one of the successors of the block.
    Branch(Value),
    Call {
        callee: Callee,
        arguments: Vec<Value>,
        /// It returns, and neither synchronizes nor frees memory.
        quiet: bool,
    },
    /// A vector access, some lanes of which a mask switches off; each lane has a place of its own if it is scattered.
    Lanes {
        write: bool,
        scattered: bool,
        uses: Vec<Value>,
    },
    /// Assembly that does something.
    Assembly {
        text: String,
        arguments: Vec<Value>,
        understood: Option<Understood>,
    },
    Return(Value),
    /// Nothing that matters.
    Nothing,
}

/// The memory order of an access, if it is atomic, as the compilers' interface for ThreadSanitizer numbers them.
pub type Order = Option<u8>;

/// Who is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Callee {
    /// A function by its name, and whether this module defines it.
    Named(String, bool),
    /// Whatever the value says.
    Computed(Value),
}

/// An instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Instruction {
    pub what: What,
    pub loc: Loc,
}

/// A block: control enters it at the beginning and leaves it at the end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// The number of its first instruction among those of the function.
    pub first: u32,
    #[allow(missing_docs)]
    pub instructions: Vec<Instruction>,
    /// Where control goes; of a branch on a condition first if it holds.
    pub successors: Vec<u32>,
}

/// A function that the module defines.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Function {
    pub name: String,
    pub loc: Loc,
    pub parameters: u32,
    /// The compiler gave hooks to its accesses.
    pub is_checked: bool,
    pub blocks: Vec<Block>,
}

impl Function {
    /// The value of an instruction, by block and position.
    pub fn value(&self, block: usize, at: usize) -> u32 {
        self.parameters + self.blocks[block].first + at as u32
    }

    /// How many values there are.
    pub fn values(&self) -> u32 {
        self.parameters + self.blocks.iter().map(|b| b.instructions.len() as u32).sum::<u32>()
    }
}

/// A module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Module {
    pub name: String,
    pub files: Vec<String>,
    pub functions: Vec<Function>,
}

impl What {
    /// The values that it uses, in whatever way.
    pub fn uses(&self) -> Vec<u32> {
        let all: Vec<Value> = match self {
            What::Variable(_) | What::Nothing | What::Fence => Vec::new(),
            What::Load { at, .. } => vec![*at],
            What::Store { at, value, .. } | What::Update { at, value, .. } => vec![*at, *value],
            What::CompareExchange { at, expected, new, .. } => vec![*at, *expected, *new],
            What::Copy(all) | What::Fill(all) => all.to_vec(),
            What::Sum(sum) | What::Access { at: sum, .. } => {
                sum.terms.iter().map(|t| Some(t.0)).collect()
            }
            What::Compute(uses) | What::Divide { uses, .. } | What::Lanes { uses, .. } => {
                uses.clone()
            }
            What::Phi(from) => from.iter().map(|f| f.1).collect(),
            What::Branch(on) => vec![*on],
            What::Call { callee, arguments, .. } => {
                let computed = match callee {
                    Callee::Computed(value) => *value,
                    Callee::Named(..) => None,
                };
                arguments.iter().copied().chain([computed]).collect()
            }
            What::Assembly { arguments, .. } => arguments.clone(),
            What::Return(value) => vec![*value],
        };
        all.into_iter().flatten().collect()
    }
}
