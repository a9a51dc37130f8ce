//! Dynamic analyses of concurrent executions, one file per algorithm.
//!
//! An [`Analysis`] sees the events of one execution in order and reports findings. It does no I/O,
//! starts no thread and cannot fail: its findings and bounds are data. It does not know whether the events
//! come from a running program, an in-process executor or a file.
//!
//! [`registry`] lists them; a [`Pipeline`] shows them the events of an execution.
//!
//! The events are those of an execution (see [`selvedge_model::wellformed`]). On other streams of events
//! an analysis may report nonsense but does not panic.

#![forbid(unsafe_code)]

#[macro_use]
extern crate selvedge_model;

use selvedge_model::{Event, Findings, FirstRace};

mod common;

pub mod aerodrome;
pub mod atomizer;
pub mod contention;
pub mod discipline;
pub mod entry;
pub mod fasttrack;
pub mod goodlock;
pub mod hominy;
pub mod hybrid;
pub mod lockregions;
pub mod lockset;
pub mod ndseq;
pub mod pipeline;
pub mod predictive;
pub mod racefree;
pub mod registry;
pub mod singletrack;
pub mod velodrome;
pub mod views;

pub use common::witness::Witness;
pub use common::{conflicts, devices, held, order, paths, shadow};
pub use pipeline::Pipeline;
pub use registry::{ANALYSES, Entry};

/// An algorithm over the events of one execution.
pub trait Analysis {
    /// Takes in the next event.
    fn on_event(&mut self, event: &Event, out: &mut Findings);

    /// Takes in several events; the same as taking them in one by one.
    fn on_events(&mut self, events: &[Event], out: &mut Findings) {
        events.iter().for_each(|e| self.on_event(e, out));
    }

    /// The front end keeps accesses back to memory that is used without races, and the next event is
    /// the later access of the first race on some bytes.
    fn on_first_race(&mut self, race: &FirstRace, out: &mut Findings) {
        let _ = (race, out);
    }

    /// The execution is over: reports what could not be known before.
    fn finish(&mut self, out: &mut Findings) {
        let _ = out;
    }

    /// Forgets the execution: the next event is the first of another one, and whatever is found in it is
    /// what a new analysis would find. Memory that was allocated is kept, so that many short executions
    /// cost their events and not the making of analyses.
    fn restart(&mut self);

    /// The orders of events that show what it has found, where it knows them.
    fn witnesses(&self) -> &[Witness] {
        &[]
    }

    /// The bound that kept the analysis from finding all that it promises, if one did. Every report shows
    /// it beside the findings: a bound is never reached silently.
    fn bound(&self) -> Option<Bound> {
        None
    }
}

/// A bound that an analysis has reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// What is bounded, to be read after the limit: "*256* past accesses to one byte are remembered".
    pub what: &'static str,
    /// How many.
    pub limit: u64,
    /// How often there would have been more.
    pub exceeded: u64,
}

/// Decides which events reach an analysis.
pub trait Filter {
    /// Whether to pass `event` on.
    fn keep(&mut self, event: &Event) -> bool;

    /// Forgets the execution, as [`Analysis::restart`] does.
    fn restart(&mut self);
}
