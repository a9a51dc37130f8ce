//! The sweeps that a thread remembers, see `fasttrack::sweeps`.

/// How many.
pub const SWEPT: usize = 1024;

/// A sweep that a thread has made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// The first address.
    pub start: usize,
    /// Stride, number, length and strength.
    pub shape: u64,
    /// The thread's epoch.
    pub epoch: u64,
    /// How often the thread had got or given back memory by then.
    pub memory: u64,
}
