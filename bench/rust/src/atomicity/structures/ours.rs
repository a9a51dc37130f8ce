//! The structures in our types.

use selvedge::{distinguished, sync};

#[path = "shapes.rs"]
mod shapes;

pub(crate) use shapes::{CopyOnWrite, LazyList, Queue, Sorted};
