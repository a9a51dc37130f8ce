//! Races across the ranks of MPI programs: what the `selvedge` process does around them.
//!
//! The analysis itself runs inside the ranks ([`selvedge_spmd_rank`]). This crate has it embedded as a shared library,
//! with a layer in C that the user's own `mpicc` compiles on first use ([`layer`]), so that one `selvedge` works with
//! every MPI. It knows which commands start ranks ([`launcher`]), and reads what ranks have found ([`findings`]).

#![forbid(unsafe_code)]

pub use selvedge_spmd_rank::confirm::Plan;
pub use selvedge_spmd_rank::owner::Place;
pub use selvedge_spmd_rank::sampling::Sampling;

pub mod findings;
pub mod launcher;
pub mod layer;
