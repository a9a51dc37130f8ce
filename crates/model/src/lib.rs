//! The joint of Selvedge: what front ends produce and back ends consume.
//!
//! An execution of a concurrent program is a sequence of [`Event`]s. Front ends (the native runtime,
//! the in-process executor, trace files) produce it; analyses consume it and produce [`Finding`]s;
//! a finding's [`Target`] tells a directed strategy which state to steer a further execution into.
//! Everything else in the project meets here, so this crate depends on none of the others, does no
//! I/O beyond the readers and writers of [`trace`], and holds no policy.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`event`] | [`Event`], [`Op`], the ids |
//! | [`step`] | [`Step`], [`Pending`], [`Stop`]: what a thread is about to do |
//! | [`scalar`] | [`Scalar`], [`Values`]: what accesses find and leave |
//! | [`symbols`] | names and source places of the ids: [`Symbols`], [`Site`] |
//! | [`clock`] | [`Epoch`], [`VectorClock`], and [`Slots`], which recycles their components |
//! | [`ops`] | patterns for groups of operations |
//! | [`mod@merge`] | what becomes of two reports of one finding |
//! | [`nesting`] | [`Nesting`]: which threads are in atomic blocks |
//! | [`outside`] | what is not controlled: [`Uncontrolled`], [`Cause`], [`Divergence`] |
//! | [`finding`] | [`Finding`], its identity, [`Findings`] |
//! | [`failure`] | [`Failure`]: how an execution failed, where that is what a finding is about |
//! | [`misuse`] | [`Misuse`]: what a program does with something and must not |
//! | [`target`] | [`Target`]: the state in which a finding happens |
//! | [`schedule`] | [`Schedule`]: which thread ran, at which points |
//! | [`wellformed`] | which event sequences are executions at all |
//! | [`trace`] | the text and binary trace formats |

#![forbid(unsafe_code)]

#[macro_use]
pub mod ops;

pub mod clock;
pub mod event;
pub mod failure;
pub mod finding;
pub mod held_back;
pub mod merge;
pub mod misuse;
pub mod nesting;
pub mod outside;
pub mod scalar;
pub mod schedule;
pub mod step;
#[cfg(feature = "serde")]
mod stored;
pub mod symbols;
pub mod target;
pub mod trace;
pub mod wellformed;

pub use clock::{Clock, Epoch, Slot, Slots, VectorClock};
pub use event::{
    About, Access, AtomicOp, BarrierId, CondId, Event, Flow, LoadOrder, LocalId, LockId, Mode, Op,
    Operator, Range, RegionId, SemaphoreId, SiteId, StoreOrder, ThreadId, UpdateOrder, Wakes,
};
pub use failure::{Blocked, Ended, Failure, Panic};
pub use finding::{
    Finding, FindingId, Findings, FirstRace, Harm, Held, Kind, Party, Place, Role, Status, Subject,
    Verdict,
};
pub use held_back::HeldBack;
pub use merge::{Keep, Reported, merge};
pub use misuse::{Misuse, ObjectKind, Part};
pub use nesting::{Nesting, Position};
pub use outside::{Cause, Descriptor, Divergence, Reason, Uncontrolled};
pub use scalar::{Scalar, Values};
pub use schedule::{Fingerprint, Schedule, ScheduleError, Segment};
pub use step::{Pending, Step, Stop};
pub use symbols::{Calls, Frame, Region, RegionKind, Site, Symbols};
pub use target::{Object, Target, Waiter};
