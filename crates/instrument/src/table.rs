//! The static table: what the blocks of a module's functions do to values.
//!
//! It stands in a section of the object; the linker puts those of all objects one after the other. Beside it stands a
//! section of bytes, one for each *place*: a block, or an operation whose address or call is recorded. The program
//! hands over the address of that byte, and the host counts from the beginning of the section to find the place. Both
//! sections have the same objects in the same order. The runtime sets the byte to 1 where nothing has to be done but to write
//! a word, which the program then does itself ([`here`](crate::here)).
//!
//! Locals of a function are numbered as its values are in [`ir`](crate::ir); a variable that could be kept in a
//! register is the local of its declaration.
//!
//! Changing anything here: raise [`VERSION`]; a reader refuses another one.

use selvedge_model::Operator;

use crate::ir::Loc;
use crate::statements::{Kind, NONE, Statement};

/// The section of tables.
pub const SECTION: &str = "selvedge_flow";
/// The section of places.
pub const PLACES: &str = "selvedge_places";
/// What a table begins with.
const MAGIC: &[u8; 4] = b"sflw";
/// The form of a table.
pub const VERSION: u32 = 4;

/// A local of the function.
pub type Local = u32;

/// What an operation does to locals.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Op {
    Compute {
        to: Local,
        uses: Vec<Local>,
    },
    /// By the block that control comes from.
    Phi {
        to: Local,
        from: Vec<(u32, Vec<Local>)>,
    },
    /// A load; the address depends on `at`. What is loaded may be `updated` by a store.
    Load {
        to: Local,
        at: Vec<Local>,
        len: u32,
        atomic: bool,
        updated: bool,
    },
    /// A store. It may update what a load found, by an operator.
    Store {
        value: Vec<Local>,
        at: Vec<Local>,
        len: u32,
        atomic: bool,
        updates: Option<(Local, Operator)>,
    },
    /// An atomic read-modify-write.
    Update {
        to: Local,
        value: Vec<Local>,
        at: Vec<Local>,
        len: u32,
        operator: Option<Operator>,
    },
    CompareExchange {
        to: Local,
        expected: Vec<Local>,
        new: Vec<Local>,
        at: Vec<Local>,
        len: u32,
    },
    /// Memory is copied; addresses and length depend on `at`.
    Copy {
        at: Vec<Local>,
    },
    Fill {
        value: Vec<Local>,
        at: Vec<Local>,
    },
    /// Control goes one way or another, or the program ends. If it uses nothing, control is here, and that is all.
    Decide {
        uses: Vec<Local>,
    },
    /// Control goes into a star or past it; by number in the function.
    Choose {
        star: u32,
    },
    /// A function is called. If it leaves, what it does is not in this module.
    Call {
        to: Local,
        callee: Callee,
        arguments: Vec<Vec<Local>>,
        leaves: bool,
    },
    /// The value of a starred condition: it depends on what was evaluated only if it is true.
    StarValue {
        to: Local,
        uses: Vec<Local>,
    },
    Return {
        uses: Vec<Local>,
    },
    /// Control goes to another block, which does not say so itself.
    Jump {
        to: u32,
    },
}

/// Who is called.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Callee {
    Named(String),
    /// The address that the program has computed.
    Computed,
    /// Assembly.
    Assembly(String),
}

impl Op {
    /// Whether the program hands over a place of its own for it.
    pub fn has_place(&self) -> bool {
        match self {
            Op::Load { .. }
            | Op::Store { .. }
            | Op::Update { .. }
            | Op::CompareExchange { .. }
            | Op::Copy { .. }
            | Op::Fill { .. } => true,
            Op::Call { leaves, .. } => *leaves,
            Op::Compute { .. }
            | Op::Phi { .. }
            | Op::Decide { .. }
            | Op::Choose { .. }
            | Op::StarValue { .. }
            | Op::Return { .. }
            | Op::Jump { .. } => false,
        }
    }
}

/// A star of a function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Star {
    pub loc: Loc,
    /// The block that is entered if the star is executed.
    pub enter: u32,
    /// Where control goes at its normal end, and if it is left out.
    pub end: u32,
    /// The blocks inside.
    pub inside: Vec<u32>,
}

/// A function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Function {
    pub name: String,
    pub loc: Loc,
    pub parameters: u32,
    /// How many locals it has.
    pub locals: u32,
    pub blocks: Vec<Vec<(Loc, Op)>>,
    pub stars: Vec<Star>,
    pub statements: Vec<Statement>,
}

/// The table of a module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct Table {
    pub files: Vec<String>,
    pub functions: Vec<Function>,
}

/// Why a table cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unreadable {
    /// It was made by another version.
    #[error("the program was built with another version of selvedge; build it again")]
    Version,
    /// It ends too early, or says what cannot be.
    #[error("the program's table of data flow is damaged; build it again")]
    Damaged,
}

/// What a place is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub struct Place {
    pub function: u32,
    pub block: u32,
    /// The operation; nothing for the block itself.
    pub op: Option<u32>,
}

impl Table {
    /// How many places there are.
    pub fn places(&self) -> u32 {
        self.all_places().count() as u32
    }

    /// All places, by number.
    pub fn all_places(&self) -> impl Iterator<Item = Place> + '_ {
        self.functions.iter().enumerate().flat_map(|(function, f)| {
            f.blocks.iter().enumerate().flat_map(move |(block, ops)| {
                let place = move |op| Place { function: function as u32, block: block as u32, op };
                let placed = ops.iter().enumerate().filter(|(_, (_, op))| op.has_place());
                [place(None)].into_iter().chain(placed.map(move |(i, _)| place(Some(i as u32))))
            })
        })
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.list(&self.files, |out, f| out.text(f));
        out.list(&self.functions, Writer::function);
        let mut all = MAGIC.to_vec();
        all.extend(VERSION.to_le_bytes());
        all.extend((out.0.len() as u32).to_le_bytes());
        all.extend(out.0);
        all
    }

    /// All tables of a section.
    pub fn decode_all(mut bytes: &[u8]) -> Result<Vec<Table>, Unreadable> {
        let mut tables = Vec::new();
        while !bytes.is_empty() {
            // A linker may fill up between objects.
            if bytes[0] == 0 {
                bytes = &bytes[1..];
                continue;
            }
            let word = |at: usize| {
                let four = bytes.get(at..at + 4)?;
                Some(u32::from_le_bytes(four.try_into().ok()?))
            };
            if !bytes.starts_with(MAGIC) {
                return Err(Unreadable::Damaged);
            }
            if word(4) != Some(VERSION) {
                return Err(Unreadable::Version);
            }
            let len = word(8).ok_or(Unreadable::Damaged)? as usize;
            let body = bytes.get(12..12 + len).ok_or(Unreadable::Damaged)?;
            tables.push(decode(body).ok_or(Unreadable::Damaged)?);
            bytes = &bytes[12 + len..];
        }
        Ok(tables)
    }
}

/// Tells tables apart.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3).rotate_left(5)
    })
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut n: u32) {
        while n >= 128 {
            self.0.push(n as u8 | 128);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u32);
        self.0.extend(text.as_bytes());
    }

    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Writer, &T)) {
        self.number(list.len() as u32);
        list.iter().for_each(|item| each(self, item));
    }

    fn locals(&mut self, list: &[Local]) {
        self.list(list, |out, &l| out.number(l));
    }

    fn loc(&mut self, loc: Loc) {
        [loc.file, loc.line, loc.column].into_iter().for_each(|n| self.number(n));
    }

    fn function(&mut self, f: &Function) {
        self.text(&f.name);
        self.loc(f.loc);
        self.number(f.parameters);
        self.number(f.locals);
        self.list(&f.blocks, |out, ops| {
            out.list(ops, |out, (loc, op)| {
                out.loc(*loc);
                out.op(op);
            });
        });
        self.list(&f.stars, |out, star| {
            out.loc(star.loc);
            out.number(star.enter);
            out.number(star.end);
            out.locals(&star.inside);
        });
        self.list(&f.statements, |out, s| {
            // The parent of the outermost is the largest number there is.
            let numbers = [s.kind as u32, s.from.0, s.from.1, s.to.0, s.to.1];
            numbers.into_iter().for_each(|n| out.number(n));
            out.number(s.parent.wrapping_add(1));
        });
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Compute { to, uses } => self.tagged(0, &[*to], &[uses]),
            Op::Phi { to, from } => {
                self.tagged(1, &[*to], &[]);
                self.list(from, |out, (block, uses)| {
                    out.number(*block);
                    out.locals(uses);
                });
            }
            Op::Load { to, at, len, atomic, updated } => {
                self.tagged(2, &[*to, *len, u32::from(*atomic), u32::from(*updated)], &[at]);
            }
            Op::Store { value, at, len, atomic, updates } => {
                let (load, operator) =
                    updates.map_or((0, 0), |(l, o)| (l, operator_number(Some(o))));
                self.tagged(3, &[*len, u32::from(*atomic), operator, load], &[value, at]);
            }
            Op::Update { to, value, at, len, operator } => {
                self.tagged(4, &[*to, *len, operator_number(*operator)], &[value, at]);
            }
            Op::CompareExchange { to, expected, new, at, len } => {
                self.tagged(5, &[*to, *len], &[expected, new, at]);
            }
            Op::Copy { at } => self.tagged(6, &[], &[at]),
            Op::Fill { value, at } => self.tagged(7, &[], &[value, at]),
            Op::Decide { uses } => self.tagged(8, &[], &[uses]),
            Op::Choose { star } => self.tagged(9, &[*star], &[]),
            Op::Call { to, callee, arguments, leaves } => {
                self.tagged(10, &[*to, u32::from(*leaves)], &[]);
                let (kind, text) = match callee {
                    Callee::Named(name) => (0, name.as_str()),
                    Callee::Computed => (1, ""),
                    Callee::Assembly(text) => (2, text.as_str()),
                };
                self.number(kind);
                self.text(text);
                self.list(arguments, |out, a| out.locals(a));
            }
            Op::StarValue { to, uses } => self.tagged(11, &[*to], &[uses]),
            Op::Return { uses } => self.tagged(12, &[], &[uses]),
            Op::Jump { to } => self.tagged(13, &[*to], &[]),
        }
    }

    fn tagged(&mut self, tag: u8, numbers: &[u32], lists: &[&Vec<Local>]) {
        self.0.push(tag);
        numbers.iter().for_each(|&n| self.number(n));
        lists.iter().for_each(|l| self.locals(l));
    }
}

fn decode(bytes: &[u8]) -> Option<Table> {
    let mut input = Reader(bytes);
    let files = input.list(Reader::text)?;
    let functions = input.list(Reader::function)?;
    let whole = input.0.is_empty() && functions.iter().all(is_sound);
    whole.then_some(Table { files, functions })
}

/// Whether everything that a function names is there.
fn is_sound(f: &Function) -> bool {
    let blocks = f.blocks.len() as u32;
    let star =
        |s: &Star| s.enter < blocks && s.end < blocks && s.inside.iter().all(|&b| b < blocks);
    let chosen = |op: &Op| !matches!(op, Op::Choose { star } if *star as usize >= f.stars.len());
    let there = |op: &Op| !matches!(op, Op::Jump { to } if *to >= blocks);
    let before = |(i, s): (usize, &Statement)| s.parent == NONE || (s.parent as usize) < i;
    let placed = f.statements.iter().enumerate().all(before);
    placed
        && blocks > 0
        && f.stars.iter().all(star)
        && f.blocks.iter().flatten().all(|(_, op)| chosen(op) && there(op))
}

fn operator_number(operator: Option<Operator>) -> u32 {
    operator.map_or(0, |o| o as u32 + 1)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u32> {
        let (mut n, mut shift) = (0u32, 0);
        loop {
            let byte = self.byte()?;
            n |= u32::from(byte & 127).checked_shl(shift)?;
            if byte < 128 {
                return Some(n);
            }
            shift += 7;
        }
    }

    fn text(&mut self) -> Option<String> {
        let len = self.number()? as usize;
        let text = String::from_utf8_lossy(self.0.get(..len)?).into_owned();
        self.0 = &self.0[len..];
        Some(text)
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = self.number()?;
        // A damaged length must not take memory.
        let mut list = Vec::with_capacity((len as usize).min(self.0.len()));
        for _ in 0..len {
            list.push(each(self)?);
        }
        Some(list)
    }

    fn locals(&mut self) -> Option<Vec<Local>> {
        self.list(Reader::number)
    }

    fn loc(&mut self) -> Option<Loc> {
        Some(Loc { file: self.number()?, line: self.number()?, column: self.number()? })
    }

    fn function(&mut self) -> Option<Function> {
        Some(Function {
            name: self.text()?,
            loc: self.loc()?,
            parameters: self.number()?,
            locals: self.number()?,
            blocks: self.list(|input| input.list(|input| Some((input.loc()?, input.op()?))))?,
            stars: self.list(|input| {
                Some(Star {
                    loc: input.loc()?,
                    enter: input.number()?,
                    end: input.number()?,
                    inside: input.locals()?,
                })
            })?,
            statements: self.list(|input| {
                let kind = *Kind::ALL.get(input.number()? as usize)?;
                let from = (input.number()?, input.number()?);
                let to = (input.number()?, input.number()?);
                let parent = input.number()?.wrapping_sub(1);
                Some(Statement { kind, from, to, parent })
            })?,
        })
    }

    #[allow(clippy::option_option)]
    fn operator(&mut self) -> Option<Option<Operator>> {
        match self.number()? {
            0 => Some(None),
            n => Some(Some(Operator::ALL.get(n as usize - 1)?.0)),
        }
    }

    fn op(&mut self) -> Option<Op> {
        Some(match self.byte()? {
            0 => Op::Compute { to: self.number()?, uses: self.locals()? },
            1 => Op::Phi {
                to: self.number()?,
                from: self.list(|input| Some((input.number()?, input.locals()?)))?,
            },
            2 => {
                let (to, len, atomic) = (self.number()?, self.number()?, self.number()? != 0);
                Op::Load { to, len, atomic, updated: self.number()? != 0, at: self.locals()? }
            }
            3 => {
                let (len, atomic) = (self.number()?, self.number()? != 0);
                let (operator, load) = (self.operator()?, self.number()?);
                let updates = operator.map(|operator| (load, operator));
                Op::Store { len, atomic, updates, value: self.locals()?, at: self.locals()? }
            }
            4 => {
                let (to, len, operator) = (self.number()?, self.number()?, self.operator()?);
                Op::Update { to, len, operator, value: self.locals()?, at: self.locals()? }
            }
            5 => {
                let (to, len) = (self.number()?, self.number()?);
                let (expected, new, at) = (self.locals()?, self.locals()?, self.locals()?);
                Op::CompareExchange { to, expected, new, at, len }
            }
            6 => Op::Copy { at: self.locals()? },
            7 => Op::Fill { value: self.locals()?, at: self.locals()? },
            8 => Op::Decide { uses: self.locals()? },
            9 => Op::Choose { star: self.number()? },
            10 => {
                let (to, leaves) = (self.number()?, self.number()? != 0);
                let (kind, text) = (self.number()?, self.text()?);
                let callee = match kind {
                    0 => Callee::Named(text),
                    1 => Callee::Computed,
                    2 => Callee::Assembly(text),
                    _ => return None,
                };
                Op::Call { to, callee, leaves, arguments: self.list(Reader::locals)? }
            }
            11 => Op::StarValue { to: self.number()?, uses: self.locals()? },
            12 => Op::Return { uses: self.locals()? },
            13 => Op::Jump { to: self.number()? },
            _ => return None,
        })
    }
}
