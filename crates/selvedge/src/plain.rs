//! The crate without controlled executions: the standard library under our names.

/// See [`std::sync`].
pub mod sync {
    pub use std::sync::*;
}

/// See [`std::thread`].
pub mod thread {
    pub use std::thread::*;
    pub use std::thread_local;
}

pub use std::thread_local;

/// See [`std::hint`].
pub mod hint {
    pub use std::hint::*;
}

/// See [`std::time`].
pub mod time {
    pub use std::time::*;
}

pub mod cell;
pub mod rand;
