//! Stars: what a sequential execution may leave out.
//!
//! In an [`ndseq`](crate::ndseq) a sequential execution chooses whether a star is executed. Everywhere else these
//! functions evaluate their closure.

#[cfg(feature = "check")]
use std::panic::Location;

/// `true* && condition`: a sequential execution may take the condition for false without evaluating it.
#[track_caller]
pub fn star(condition: impl FnOnce() -> bool) -> bool {
    is_executed() && condition()
}

/// A block that a sequential execution may leave out: then the value is `None`.
#[track_caller]
pub fn star_block<V>(block: impl FnOnce() -> V) -> Option<V> {
    is_executed().then(block)
}

#[cfg(feature = "check")]
#[track_caller]
fn is_executed() -> bool {
    let here = Location::caller();
    crate::exec::fiber::with(|exec| exec.star(here)).unwrap_or(true)
}

#[cfg(not(feature = "check"))]
fn is_executed() -> bool {
    true
}
