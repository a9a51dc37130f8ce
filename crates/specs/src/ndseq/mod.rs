//! Nondeterministic sequential specifications: does an execution of a parallel program have a sequential twin?
//!
//! A *task* is a piece of the parallel work, a *star* is code that a sequential execution may leave out, the
//! *focus* is the memory that holds the result. An execution conforms if some sequential execution, one task
//! after the other in any order and with any stars left out, has the same focus at the end.
//!
//! Source: Burnim, "Specifying and Checking Correctness of Parallel Programs" (2012), chapters 6 and 7: the
//! dependences D1 and D2, definitions 17 to 19 and 23, figure 6.8.
//!
//! | module | what |
//! | --- | --- |
//! | [`execution`] | an execution as nodes of data flow in pieces of tasks |
//! | [`record`] | makes one from events |
//! | [`spec`] | a specification as a file |
//! | `updates` | which updates commute |
//! | [`stars`] | which stars nodes are in |
//! | [`relevance`] | which nodes matter for the focus and for the way that the program goes |
//! | [`graph`] | which piece must come before which |
//! | [`check`](mod@check) | circles in that graph, or a sequential order |
//! | [`runs`] | where stars could be put |
//! | [`infer`] | the fewest stars with which executions conform |
//!
//! Deviations from the source. The stretches of a thread that starts others and goes on are pieces of their
//! own, so that what it does beside them is checked too. A barrier ends all tasks and begins new ones. Code that
//! commutes by declaration makes no conflicts with its like, and an initialisation that the first task does for
//! all is a piece of its own unless something of its task flows into it (both are on the list of what is missing
//! in section 6.5). So do updates by one operator whose steps cannot interleave.
//!
//! *Guarantee*: an execution that passes has a sequential twin, if the data flow was recorded completely and
//! what is declared to commute does. One that does not pass may still have one.
//!
//! Cost: one pass of a worklist, with a logarithm of the writes to one location for each read; at most 64 bytes
//! for each node.

pub mod check;
pub mod execution;
pub mod graph;
pub mod infer;
mod memory;
pub mod record;
pub mod relevance;
pub mod runs;
pub mod spec;
pub mod stars;
mod updates;

pub use check::{Check, Circle, Edge, check};
pub use execution::{Act, Execution, NodeId, PieceId};
pub use record::Recorder;
pub use relevance::Relevance;
pub use spec::Specification;
pub use stars::Stars;
