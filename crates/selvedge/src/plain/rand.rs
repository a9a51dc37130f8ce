//! Random numbers, differently seeded in every process.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0u8));
}

/// A number.
pub fn next_u64() -> u64 {
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number less than `bound`.
///
/// # Panics
/// If `bound` is zero.
pub fn below(bound: u64) -> u64 {
    assert!(bound > 0, "`bound` must be greater than zero");
    ((u128::from(next_u64()) * u128::from(bound)) >> 64) as u64
}

/// True as often as false.
pub fn coin() -> bool {
    next_u64() >> 63 == 1
}

/// Puts the elements in random order.
pub fn shuffle<T>(items: &mut [T]) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(i as u64 + 1) as usize);
    }
}
