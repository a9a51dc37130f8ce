//! Strategies: which thread runs next.
//!
//! An executor runs a program one thread at a time. Whenever more than one thread could take the next
//! step, it asks a [`Strategy`]. Strategies start no threads, do no I/O and know nothing of the executor:
//! the in-process one, the native one and the simulated one of the tests use the same.
//!
//! | strategy | finds by |
//! | --- | --- |
//! | [`RandomWalk`] | luck, uniformly at each step |
//! | [`Pct`] | priorities, a guaranteed chance for bugs of small depth |
//! | [`Pos`] | priorities redrawn at conflicts, uniform over partial orders of simple programs |
//! | [`Surw`] | uniform choice among the interleavings of selected events |
//! | [`ReadsFrom`] | making reads see other writes, and acquisitions follow others |
//! | [`Mix`] | all of these in turn |
//! | [`Dfs`] | trying all schedules, or all within a bound |
//! | [`Dpor`] | trying one schedule of each class whose schedules differ only in independent steps |
//! | [`Interrupt`] | interrupting few atomic blocks, each at every place |
//! | [`Sequential`] | running one task after the other, in every order |
//! | [`RoundRobin`] | nothing; a fair baseline |
//! | [`Replay`] | doing again what was recorded |
//! | [`Prefix`] | doing the beginning again, and then something else |
//! | [`RaceFuzzer`], [`DeadlockFuzzer`], [`AtomFuzzer`] | pausing threads until the target is reached |
//! | [`Led`] | taking the steps of a witness in their order |
//! | [`Serial`] | running atomic blocks one after the other, in a given order |
//! | [`Alone`] | leaving a thread alone in an atomic block |
//! | [`Turned`] | repeating an execution with two steps swapped |
//! | [`Meet`] | pausing threads where a user wants them to meet |
//!
//! An executor asks through a [`Driver`], which keeps the execution fair and records the schedule; a loop over executions has a
//! [`Budget`], which holds the seed. [`Plan`] is a strategy that a user chose by name from the
//! [`registry`]; [`Directed`] chooses one by a target. [`minimise()`] takes preemptions out of a schedule
//! that fails. A [`Witness`] says whether an execution reached a target, whichever strategy made it.

#![forbid(unsafe_code)]

#[macro_use]
extern crate selvedge_model;

pub mod dependence;
pub mod driver;
pub mod entry;
pub mod fairness;
pub mod minimise;
pub mod readings;
pub mod registry;
pub mod rng;
pub mod strategies;

pub use dependence::dependent;
pub use driver::{Budget, Driver};
pub use fairness::Fairness;
pub use minimise::minimise;
pub use registry::{Plan, STRATEGIES, UnknownStrategy};
pub use rng::Rng;
pub use selvedge_model::Divergence;
pub use strategies::alone::Alone;
pub use strategies::atomicity::AtomFuzzer;
pub use strategies::deadlocks::{Abstraction, DeadlockFuzzer, Trivial};
pub use strategies::dfs::{self, Dfs};
pub use strategies::directed::{Directed, Witness};
pub use strategies::dpor::Dpor;
pub use strategies::interrupt::Interrupt;
pub use strategies::led::{Cue, Led};
pub use strategies::meet::Meet;
pub use strategies::mix::Mix;
pub use strategies::pct::Pct;
pub use strategies::pos::Pos;
pub use strategies::prefix::Prefix;
pub use strategies::races::RaceFuzzer;
pub use strategies::random::RandomWalk;
pub use strategies::reads_from::{Flip, ReadsFrom, Share, learn};
pub use strategies::replay::Replay;
pub use strategies::round_robin::RoundRobin;
pub use strategies::sequential::{self, Sequential};
pub use strategies::serial::{Serial, Turn, Unforced};
pub use strategies::surw::Surw;
pub use strategies::turned::Turned;
pub use strategies::{deadlocks, directed};

use selvedge_model::{Event, ThreadId};
pub use selvedge_model::{Pending, Step, Stop};

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
    /// A new execution is about to begin, with random numbers of its own; false if there is none that
    /// this strategy wants to see.
    fn begin(&mut self, rng: Rng) -> bool;

    /// Which of the enabled threads takes the next step.
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId;

    /// A number less than `below`, which is not 0, for a program that asks for one.
    fn number(&mut self, below: u32) -> u32 {
        let _ = below;
        0
    }

    /// The same, for a place in the program; 0 if that does not matter.
    fn number_at(&mut self, below: u32, place: u64) -> u32 {
        let _ = place;
        self.number(below)
    }

    /// Whether a thread gives way only after very many steps that change nothing, because the strategy runs threads
    /// without interruption.
    fn is_patient(&self) -> bool {
        false
    }

    /// Whether the executor must call [`step`](Strategy::step) and [`observe`](Strategy::observe).
    fn follows_steps(&self) -> bool {
        false
    }

    /// `thread` is about to take its next step, chosen or for lack of a choice. `pending` is as in
    /// [`Choice`], before the step.
    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        let _ = (thread, pending);
    }

    /// An event other than a plain access has happened.
    fn observe(&mut self, event: &Event) {
        let _ = event;
    }

    /// Whether executions in which another strategy chooses tell it something: then it is told of their beginning,
    /// steps, events and end as of those in which it chooses.
    fn learns(&self) -> bool {
        false
    }

    /// The execution that began last is over; threads that have not ended are blocked for ever.
    fn end(&mut self, pending: &[Pending]) {
        let _ = pending;
    }

    /// How much of the program's schedules the executions so far have shown.
    fn coverage(&self) -> Coverage {
        Coverage::Sample
    }

    /// What executions have told of pairs of a read and a write since this was last asked, so that a later search can
    /// go on from there.
    fn learnt(&mut self) -> Vec<Flip> {
        Vec::new()
    }

    /// How many classes of schedules have been seen, if the strategy tells them apart.
    fn classes(&self) -> Option<u64> {
        None
    }
}

/// How much of a program's schedules a search has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Coverage {
    /// Some, drawn at random or aimed at something.
    #[default]
    Sample,
    /// Not all of those that a systematic search goes through.
    Partial,
    /// Every schedule, or one of each class, within the bounds that the user chose.
    Complete,
}

impl Coverage {
    fn of_search(complete: bool) -> Coverage {
        if complete { Coverage::Complete } else { Coverage::Partial }
    }
}

/// A strategy that lets another one choose: every method of [`Strategy`] goes to the other.
pub trait Wraps {
    /// The strategy that chooses.
    fn wrapped(&self) -> &dyn Strategy;

    /// The same.
    fn wrapped_mut(&mut self) -> &mut dyn Strategy;

    /// Before the other begins.
    fn on_begin(&mut self, rng: &mut Rng) {
        let _ = rng;
    }

    /// After the other has seen the end of an execution.
    fn on_end(&mut self) {}
}

impl Wraps for Box<dyn Strategy> {
    fn wrapped(&self) -> &dyn Strategy {
        &**self
    }

    fn wrapped_mut(&mut self) -> &mut dyn Strategy {
        &mut **self
    }
}

impl<W: Wraps> Strategy for W {
    fn begin(&mut self, mut rng: Rng) -> bool {
        self.on_begin(&mut rng);
        self.wrapped_mut().begin(rng)
    }
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.wrapped_mut().choose(choice)
    }
    fn number(&mut self, below: u32) -> u32 {
        self.wrapped_mut().number(below)
    }
    fn number_at(&mut self, below: u32, place: u64) -> u32 {
        self.wrapped_mut().number_at(below, place)
    }
    fn is_patient(&self) -> bool {
        self.wrapped().is_patient()
    }
    fn follows_steps(&self) -> bool {
        self.wrapped().follows_steps()
    }
    fn learns(&self) -> bool {
        self.wrapped().learns()
    }
    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.wrapped_mut().step(thread, pending);
    }
    fn observe(&mut self, event: &Event) {
        self.wrapped_mut().observe(event);
    }
    fn end(&mut self, pending: &[Pending]) {
        self.wrapped_mut().end(pending);
        self.on_end();
    }
    fn learnt(&mut self) -> Vec<Flip> {
        self.wrapped_mut().learnt()
    }
    fn coverage(&self) -> Coverage {
        self.wrapped().coverage()
    }
    fn classes(&self) -> Option<u64> {
        self.wrapped().classes()
    }
}
