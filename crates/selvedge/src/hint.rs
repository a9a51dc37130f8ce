//! Hints: the API of [`std::hint`].

use std::panic::Location;

use crate::exec::ops;

pub use std::hint::{assert_unchecked, black_box, unreachable_unchecked};

/// See [`std::hint::spin_loop`]. Inside a check it lets other threads run, so that the loop can end.
#[track_caller]
pub fn spin_loop() {
    if !ops::yield_now(Location::caller()) {
        std::hint::spin_loop();
    }
}
