//! Random numbers that a replay repeats.
//!
//! A test that draws from another source behaves differently when its schedule is replayed. Numbers from
//! here are part of the schedule: its string has their seed. Outside a check they are seeded by the
//! standard library's hasher, differently in every process.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

use selvedge_explore::Rng;

use crate::exec::fiber::with;

thread_local! {
    static OUTSIDE: RefCell<Rng> = RefCell::new(Rng::new(RandomState::new().hash_one(0u8)));
}

/// A random number of 64 bits.
pub fn next_u64() -> u64 {
    with(|e| e.rng.next_u64()).unwrap_or_else(|| OUTSIDE.with_borrow_mut(Rng::next_u64))
}

/// A random number less than `bound`.
///
/// # Panics
/// If `bound` is zero.
pub fn below(bound: u64) -> u64 {
    assert!(bound > 0, "`bound` must be greater than zero");
    ((u128::from(next_u64()) * u128::from(bound)) >> 64) as u64
}

/// True or false, with equal probability.
pub fn coin() -> bool {
    next_u64() >> 63 == 1
}

/// Puts the elements in random order.
pub fn shuffle<T>(items: &mut [T]) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(i as u64 + 1) as usize);
    }
}
