//! Strategies: who runs next.
//!
//! An executor runs a program one thread at a time. Whenever more than one thread could take the next
//! step, it asks a [`Strategy`]. Strategies start no threads, do no I/O and know nothing of the executor:
//! the in-process one, the native one and the simulated one of the tests use the same.
//!
//! | module | strategy | finds by |
//! | --- | --- | --- |
//! | [`random`] | [`RandomWalk`] | luck, uniformly at each step |
//! | [`pct`] | [`Pct`] | priorities, a guaranteed chance for bugs of small depth |
//! | [`pos`] | [`Pos`] | priorities redrawn at conflicts, uniform over partial orders of simple programs |
//! | [`surw`] | [`Surw`] | uniform choice among the interleavings of selected events |
//! | [`dfs`] | [`Dfs`] | trying all schedules, or all within a bound |
//! | [`dpor`] | [`Dpor`] | trying one schedule of each class that differs in nothing but independent steps |
//! | [`round_robin`] | [`RoundRobin`] | nothing; a fair baseline |
//! | [`replay`] | [`Replay`] | doing again what was recorded by a [`Recorder`] |
//! | [`races`], [`deadlocks`], [`atomicity`] | [`RaceFuzzer`], [`DeadlockFuzzer`], [`AtomFuzzer`] | pausing threads until the target is reached |
//! | [`meet`] | [`Meet`] | pausing threads where a user wants them to meet |
//!
//! [`Directed`] chooses among the last three by the target, [`Plan`] among the others by name.
//! [`minimise()`] takes preemptions out of a schedule that fails. A [`Witness`] tells of any strategy's
//! execution whether it reached a target.

#![forbid(unsafe_code)]

pub mod active;
pub mod atomicity;
pub mod deadlocks;
pub mod dependence;
pub mod dfs;
pub mod directed;
pub mod dpor;
pub mod driver;
pub mod meet;
pub mod minimise;
pub mod pct;
pub mod plan;
pub mod pos;
pub mod races;
pub mod random;
pub mod replay;
pub mod rng;
pub mod round_robin;
pub mod shared;
pub mod surw;

pub use atomicity::AtomFuzzer;
pub use deadlocks::{Abstraction, DeadlockFuzzer};
pub use dependence::dependent;
pub use dfs::Dfs;
pub use directed::{Directed, Witness};
pub use dpor::Dpor;
pub use driver::Stop;
pub use meet::Meet;
pub use minimise::minimise;
pub use pct::Pct;
pub use plan::{Plan, Planned};
pub use pos::Pos;
pub use races::RaceFuzzer;
pub use random::RandomWalk;
pub use replay::{Divergence, Recorder, Replay};
pub use rng::Rng;
pub use round_robin::RoundRobin;
pub use shared::Shared;
pub use surw::Surw;

use selvedge_model::{Event, ThreadId};
pub use selvedge_model::{Pending, Step};

/// A point at which more than one thread could run.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// How many such points came before in this execution.
    pub step: usize,
    /// The threads that can run, in ascending order.
    // invariant: at least two.
    pub enabled: &'a [ThreadId],
    /// The thread that took the last step, if any did. It need not be enabled.
    pub running: Option<ThreadId>,
    /// The running thread asks that others run: it yielded, slept, or gave a spin hint.
    pub yielding: bool,
    /// The next step of every thread, by its index, enabled or not.
    pub pending: &'a [Pending],
}

impl Choice<'_> {
    /// The next step of a thread.
    pub fn next(&self, thread: ThreadId) -> &Pending {
        &self.pending[thread.index()]
    }

    /// Whether a thread can run.
    pub fn is_enabled(&self, thread: ThreadId) -> bool {
        self.enabled.binary_search(&thread).is_ok()
    }

    /// The running thread, if it can go on and does not ask that others run.
    pub fn willing(&self) -> Option<ThreadId> {
        self.running.filter(|&t| !self.yielding && self.is_enabled(t))
    }

    /// The step that the running thread is kept from, if choosing `thread` preempts it.
    pub fn preempted_by(&self, thread: ThreadId) -> Option<&Pending> {
        self.willing().filter(|&t| t != thread).map(|t| self.next(t))
    }

    /// The number of threads to choose from if yielding means giving way.
    pub fn candidates(&self) -> usize {
        self.enabled.len() - usize::from(self.gives_way().is_some())
    }

    /// The `i`th of the [`candidates`](Choice::candidates).
    pub fn candidate(&self, i: usize) -> ThreadId {
        match self.gives_way() {
            Some(position) if i >= position => self.enabled[i + 1],
            _ => self.enabled[i],
        }
    }

    /// Where in `enabled` the running thread stands, if it yields.
    fn gives_way(&self) -> Option<usize> {
        let running = self.running.filter(|_| self.yielding && self.enabled.len() > 1)?;
        self.enabled.binary_search(&running).ok()
    }
}

/// Decides who runs, execution after execution.
pub trait Strategy {
    /// A new execution is about to begin; false if there is none that this strategy wants to see.
    fn begin(&mut self) -> bool;

    /// Which of the enabled threads takes the next step.
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId;

    /// Whether the strategy wants to be told of each [`step`](Strategy::step) and of the
    /// [events](Strategy::observe).
    fn follows_steps(&self) -> bool {
        false
    }

    /// `thread` is about to take its next step, chosen or for lack of a choice. `pending` is as in
    /// [`Choice`], before the step.
    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        let _ = (thread, pending);
    }

    /// An event that is no plain access has happened.
    fn observe(&mut self, event: &Event) {
        let _ = event;
    }

    /// The execution that began last is over; threads that have not ended are blocked for good.
    fn end(&mut self, pending: &[Pending]) {
        let _ = pending;
    }
}

impl<S: Strategy + ?Sized> Strategy for &mut S {
    fn begin(&mut self) -> bool {
        (**self).begin()
    }
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        (**self).choose(choice)
    }
    fn follows_steps(&self) -> bool {
        (**self).follows_steps()
    }
    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        (**self).step(thread, pending);
    }
    fn observe(&mut self, event: &Event) {
        (**self).observe(event);
    }
    fn end(&mut self, pending: &[Pending]) {
        (**self).end(pending);
    }
}

impl<S: Strategy + ?Sized> Strategy for Box<S> {
    fn begin(&mut self) -> bool {
        (**self).begin()
    }
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        (**self).choose(choice)
    }
    fn follows_steps(&self) -> bool {
        (**self).follows_steps()
    }
    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        (**self).step(thread, pending);
    }
    fn observe(&mut self, event: &Event) {
        (**self).observe(event);
    }
    fn end(&mut self, pending: &[Pending]) {
        (**self).end(pending);
    }
}
