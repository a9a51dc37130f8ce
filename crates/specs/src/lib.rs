//! Specifications of parallelism: what a program promises beyond "no data race".
//!
//! [`value`] is what a program hands over, [`predicate`] says when two values count as the same, [`block`] is one
//! execution of a deterministic block and how two of them are compared, [`states`] finds the stored executions that one
//! differs from, [`determin`] infers what a block promises. [`atomic`] is what an execution says of its atomic blocks, and
//! the orders in which they may be executed alone. [`history`] decides whether
//! operations on an object are linearizable.
//!
//! *Guarantee*: everything here is pure: no I/O, no threads, no clock. Results depend only on the arguments.

#![forbid(unsafe_code)]

pub mod atomic;
pub mod block;
pub mod determin;
pub mod discipline;
pub mod history;
pub mod ndseq;
pub mod predicate;
pub mod states;
pub mod value;

pub use block::{
    BlockExecution, Call, Comparison, Difference, Kept, Key, Misuse, Recorder, Said, ThreadName,
    Token, Trouble, Unclosed, Word, compare,
};
pub use predicate::{Judge, NoCallbacks, Predicate, Unfit};
pub use states::{ExecutionId, Index, Memory, Storage};
pub use value::{Digest, Value};
