//! Races across ranks: the half of Selvedge that runs inside each rank of an MPI program.
//!
//! It knows no type of MPI. A thin layer in C (`crates/spmd/c`) wraps the program's calls, tells this crate what they
//! mean, and carries what ranks send each other.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`rules`] | what calls do to memory, what completes them, which accesses conflict |
//! | [`phases`], [`segments`], [`order`] | what barriers, threads and messages order |
//! | [`store`], [`gather`] | the accesses of this rank |
//! | [`owner`] | pairs of accesses to the memory of this rank |
//! | [`wire`] | what ranks send each other |
//! | [`board`], [`confirm`] | two accesses that were predicted to race are made to happen at once |
//! | [`sampling`] | which accesses are looked at |
//! | [`findings`] | what the `selvedge` process reads |
//! | [`figures`] | what the analysis itself costs |
//! | [`rank`] | all of these together |
//! | `ffi` | the interface to C, to the injected runtime and to the loader; unsafe code is only there and in [`heap`] |
//! | [`heap`] | memory for all this, apart from the program's |
//!
//! It is compiled twice: as an ordinary crate, for tests and for the names that the host needs, and by `rustc` alone
//! as the shared library that is preloaded into ranks. So it depends on nothing but the standard library.

#![deny(unsafe_code)]

pub mod board;
pub mod confirm;
#[cfg(selvedge_rank)]
#[allow(unsafe_code)]
pub mod ffi;
pub mod figures;
pub mod findings;
pub mod gather;
pub mod hash;
#[allow(unsafe_code)]
pub mod heap;
pub mod order;
pub mod owner;
pub mod phases;
pub mod rank;
pub mod rules;
pub mod sampling;
pub mod segments;
pub mod store;
pub mod wire;
