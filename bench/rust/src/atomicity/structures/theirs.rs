//! The structures in the types of the loom that `lincheck` runs them in.

use loom06::sync;

#[path = "shapes.rs"]
#[allow(clippy::duplicate_mod, dead_code)] // The same structures in other types; not all are run.
mod shapes;

pub(crate) use shapes::{Best, Points, Queue, Sorted};

/// There are no hints.
fn distinguished<R>(f: impl FnOnce() -> R) -> R {
    f()
}
