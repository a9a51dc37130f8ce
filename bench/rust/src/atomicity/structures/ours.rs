//! The structures in our types.

use selvedge::{distinguished, sync};

#[path = "shapes.rs"]
mod shapes;

pub(crate) use shapes::{Best, CopyOnWrite, LazyList, Points, Queue, Sorted};
