//! The calls to insert: where, which function of the runtime, and with which arguments.

/// A function of the runtime (`crates/runtime/injected/src/flow.rs`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Hook {
    /// A function begins.
    Enter,
    /// A block begins.
    Block,
    /// A plain read: place, address, length.
    Read,
    Write,
    /// Atomic accesses: place, address, length, order.
    Load,
    Store,
    Update,
    /// The result of the compare-exchange before.
    Flag,
    /// Assembly that compares and exchanges: place, address, length, order; and behind it address and length.
    Exchange,
    Exchanged,
    /// Memory is copied: place, to, from, length.
    Copy,
    /// Memory is filled: place, to, length.
    Fill,
    /// A call leaves what is followed: its place.
    Leave,
    /// It has come back: the same place.
    Back,
}

impl Hook {
    /// The function's name.
    pub fn name(self) -> &'static str {
        match self {
            Hook::Enter => "selvedge_flow_enter",
            Hook::Block => "selvedge_flow_block",
            Hook::Read => "selvedge_flow_read",
            Hook::Write => "selvedge_flow_write",
            Hook::Load => "selvedge_flow_load",
            Hook::Store => "selvedge_flow_store",
            Hook::Update => "selvedge_flow_update",
            Hook::Flag => "selvedge_flow_flag",
            Hook::Exchange => "selvedge_flow_exchange",
            Hook::Exchanged => "selvedge_flow_exchanged",
            Hook::Copy => "selvedge_flow_copy",
            Hook::Fill => "selvedge_flow_fill",
            Hook::Leave => "selvedge_flow_leave",
            Hook::Back => "selvedge_flow_back",
        }
    }

    /// Whether the program itself can do what it does ([`here`](crate::here)).
    pub fn is_here(self) -> bool {
        match self {
            Hook::Enter | Hook::Block | Hook::Read | Hook::Write | Hook::Leave | Hook::Back => true,
            Hook::Load
            | Hook::Store
            | Hook::Update
            | Hook::Flag
            | Hook::Exchange
            | Hook::Exchanged
            | Hook::Copy
            | Hook::Fill => false,
        }
    }
}

/// An argument of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// The address of a byte of the module's own, by number: what the host knows the place by.
    Place(u32),
    /// An operand of the instruction, by number: a pointer or an integer.
    Operand(u32),
    /// A part of the instruction's own value, which has several.
    Part(u32),
    /// A number.
    Number(u64),
}

/// On which side of the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// In front of it; of the first instruction of a block behind what has to come first there.
    Before,
    /// Behind it.
    After,
}

/// A call to insert.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Insertion {
    /// Function, block and instruction, by number.
    pub at: (u32, u32, u32),
    #[allow(missing_docs)]
    pub side: Side,
    #[allow(missing_docs)]
    pub hook: Hook,
    #[allow(missing_docs)]
    pub arguments: Vec<Argument>,
}
