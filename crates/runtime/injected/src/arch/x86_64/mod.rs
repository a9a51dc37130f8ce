//! x86-64 with the C library of GNU.
//!
//! All assembly of the runtime is here, and what follows from the processor or from how the C library and the kernel
//! lay out their structures.

mod check;
mod entries;
pub mod glibc;
mod memory;
pub mod system;
pub mod words;

pub use check::GRANULE;
pub(crate) use check::{
    across, covered, double, enters, granule, hot, leaves, part, perhaps_unaligned,
    perhaps_unaligned_double, ranges, whole,
};
pub(crate) use entries::{
    argument, entry, noted_first, or_next, same_as, variable, weak, with_pc, with_pc_behind_seven,
    with_pc_behind_six,
};
pub use memory::{compare_exchange_16, copy_up, fill, opaque, renew_16};
