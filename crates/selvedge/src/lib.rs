//! Concurrency testing for Rust.
//!
//! Write a test with the types of this crate instead of those of `std::sync` and `std::thread`, and run
//! it under many schedules:
//!
//! ```should_panic
//! use selvedge::sync::{Arc, Mutex, atomic::{AtomicUsize, Ordering}};
//! use selvedge::thread;
//!
//! selvedge::check(|| {
//!     let counter = Arc::new(AtomicUsize::new(0));
//!     let other = Arc::clone(&counter);
//!     let thread = thread::spawn(move || {
//!         let n = other.load(Ordering::SeqCst);
//!         other.store(n + 1, Ordering::SeqCst);
//!     });
//!     let n = counter.load(Ordering::SeqCst);
//!     counter.store(n + 1, Ordering::SeqCst);
//!     thread.join().unwrap();
//!     assert_eq!(counter.load(Ordering::SeqCst), 2, "an update was lost");
//! });
//! ```
//!
//! A failure shows what happened, the interleaving, and a schedule that replays it.
//!
//! The feature `async` adds the module `future`: tasks, and types that synchronize them. The feature
//! `parking_lot` adds a module with the API of that crate.
//!
//! Outside a check the types behave like those of the standard library. With `default-features = false`
//! they are those of the standard library, so that production builds cost nothing.

#![allow(unexpected_cfgs)] // `selvedge_native` is set by `cargo selvedge` alone.

/// The examples of the guide, compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
mod guide {}
#[cfg(doctest)]
#[doc = include_str!("../../../docs/linearizability.md")]
mod linearizability {}

mod blocks;
#[cfg(feature = "check")]
pub mod cell;
#[cfg(feature = "check")]
mod exec;
#[cfg(feature = "check")]
mod explore;
#[cfg(feature = "check")]
pub mod failure;
#[cfg(feature = "async")]
pub mod future;
#[cfg(feature = "check")]
pub mod hint;
#[cfg(feature = "check")]
pub mod linearizable;
#[cfg(selvedge_native)]
mod native;
#[cfg(feature = "check")]
#[doc(hidden)]
pub mod outcome;
#[cfg(all(feature = "check", feature = "parking_lot"))]
pub mod parking_lot;
#[cfg(feature = "check")]
pub mod rand;
mod regions;
#[cfg(feature = "check")]
mod report;
pub mod same;
mod stars;
#[cfg(any(feature = "check", selvedge_native))]
#[doc(hidden)]
pub mod values;
/// The standard library with our modules in place of its own: `use selvedge::std;` at the head of a file
/// makes every `std::sync`, `std::thread`, `std::time`, `std::cell` and `std::hint` in it ours.
#[cfg(feature = "check")]
pub mod std {
    pub use ::std::*;

    pub use crate::{cell, hint, sync, thread, thread_local, time};
}
#[cfg(feature = "check")]
pub mod sync;
#[cfg(feature = "check")]
pub mod thread;
#[cfg(feature = "check")]
pub mod time;

#[cfg(feature = "check")]
pub use explore::{
    Explore, Summary, Survey, Undecided, check, check_dfs, check_pct, check_random, model, ndseq,
    replay,
};
#[cfg(feature = "check")]
pub use failure::Failure;
#[cfg(feature = "check")]
pub use selvedge_explore::{Plan, UnknownStrategy};
#[cfg(feature = "check")]
pub use selvedge_macros::test;
/// Events, findings, schedules and their ids: what a [`Failure`] is made of.
#[cfg(feature = "check")]
pub use selvedge_model as events;
#[cfg(feature = "check")]
pub use selvedge_report as cases;
#[cfg(feature = "check")]
pub use selvedge_specs::atomic::{Interleavings, Looked};

pub use blocks::{
    AtomicBlock, BlockToken, DeterministicBlock, JoinedBlock, Value, assume, assume_by,
    block_token, deterministic_with, distinguished, ensure, ensure_by, linearization_point,
    observe, observe_by,
};
pub use regions::{atomic, deterministic};
pub use same::Same;
pub use stars::{star, star_block};

/// The `parking_lot` crate.
#[cfg(all(not(feature = "check"), feature = "parking_lot"))]
pub use ::parking_lot;

#[cfg(not(feature = "check"))]
mod plain;
#[cfg(not(feature = "check"))]
pub use plain::*;
