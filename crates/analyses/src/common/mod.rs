//! What algorithms share.
//!
//! | module | what |
//! | --- | --- |
//! | [`order`] | which events happened before which |
//! | [`held`] | which thread holds which locks |
//! | [`shadow`] | something remembered for every byte of memory |
//! | [`conflicts`] | which operations conflict with which earlier ones |
//! | [`devices`], [`paths`] | what ordered two events, by itself or together |
//! | `candidates` | the locks held at all accesses so far |
//! | `accesses` | the last accesses to some memory, as FastTrack keeps them |
//! | `past` | the accesses to some memory that may still race |
//! | `transactions` | which transactions come before which |
//! | `cycles` | circles of threads that hold locks and want more |
//! | `witness` | orders of events that show a race or a deadlock |
//! | `bits`, `role` | small sets of bits, what an operation does |

pub(crate) mod accesses;
pub(crate) mod bits;
pub(crate) mod candidates;
pub mod conflicts;
pub(crate) mod cycles;
pub mod devices;
pub mod held;
pub mod order;
pub(crate) mod past;
pub mod paths;
pub(crate) mod role;
pub mod shadow;
pub(crate) mod transactions;
pub(crate) mod witness;
