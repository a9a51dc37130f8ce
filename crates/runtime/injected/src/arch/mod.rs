//! What depends on the processor. Another one needs a folder with the same names beside `x86_64`.

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    across, argument, covered, double, enters, granule, hot, leaves, noted_first, or_next, part,
    perhaps_unaligned, perhaps_unaligned_double, ranges, same_as, variable, weak, whole, with_pc,
    with_pc_behind_seven, with_pc_behind_six,
};

#[cfg(not(target_arch = "x86_64"))]
compile_error!("the runtime inside programs knows x86-64 only");
