//! The data structures of table 5.1, as small as their errors allow, in the types of each library.
//!
//! Nodes lie in arrays and are never reused, so that no structure needs memory reclamation. Where a structure has a hint, it
//! is the access at which an operation takes effect; [`Hint`] says whether it is given.
//!
//! The source is one file that two modules have in common, and no macro: all of a macro is at one place for whoever asks
//! where an access is, and places are what the strategy `interrupt` counts.

pub(crate) mod ours;
pub(crate) mod theirs;

/// Whether accesses at which operations take effect are distinguished.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    Given,
    Withheld,
}
