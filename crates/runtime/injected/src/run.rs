//! The part so far of an access to many bytes, as `memset` makes them.

/// Bytes that are told a library of ranks together. The shadow is looked at granule by granule, and the library would
/// search what it knows for each of them.
#[derive(Clone, Copy, Default)]
pub struct Run {
    /// Such an access is being looked at.
    pub is_open: bool,
    /// Whether it writes.
    pub write: bool,
    /// Its place.
    pub pc: usize,
    /// Its first byte.
    pub start: usize,
    /// The first byte after it.
    // invariant: `start` if there is nothing to tell.
    pub end: usize,
}
