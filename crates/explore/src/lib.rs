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
//! execution whether it reached a target. [`mod@explain`] says what of an execution matters, and lays it out.

#![forbid(unsafe_code)]

pub mod active;
pub mod atomicity;
pub mod deadlocks;
pub mod dependence;
pub mod dfs;
pub mod directed;
pub mod dpor;
pub mod explain;
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

use selvedge_model::{CondId, Event, Fingerprint, LockId, Mode, Op, SiteId, ThreadId};

/// What a thread does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// It does this and goes on to its next step. An acquisition, join or wait that cannot happen yet
    /// makes its thread not enabled.
    Do(Op),
    /// It tries to acquire and goes on either way.
    TryAcquire(LockId, Mode),
    /// It starts to wait on a condition variable, giving up the lock.
    Enroll(CondId, LockId),
    /// It gives way, by a yield, a spin hint or a sleep.
    Yield,
    /// Not known yet: it is between two steps, in code of its own or in a system call.
    Busy,
    /// Nothing any more.
    Ended,
}

impl Step {
    /// A number for the kind of step, stable across versions, for fingerprints.
    pub fn kind(self) -> u8 {
        match self {
            Step::Do(op) => match op {
                Op::Read(_) => 1,
                Op::Write(_) => 2,
                Op::Atomic(_, op) => 3 + u8::from(op.writes()) + 2 * u8::from(op.reads()),
                Op::Fence(_) => 7,
                Op::Acquire(_, Mode::Exclusive) => 8,
                Op::Acquire(_, Mode::Shared) => 9,
                Op::Release(..) => 10,
                Op::Fork(_) => 11,
                Op::Join(_) => 12,
                Op::Begin => 13,
                Op::End => 14,
                Op::Arrive(..) => 15,
                Op::Leave(..) => 16,
                Op::Post(_) => 17,
                Op::Wait(_) => 18,
                Op::Notify(..) => 19,
                Op::Wake(_) => 20,
                Op::RegionEnter(..) => 21,
                Op::RegionExit(_) => 22,
                Op::Alloc(_) => 23,
                Op::Free(_) => 24,
            },
            Step::TryAcquire(..) => 25,
            Step::Enroll(..) => 26,
            Step::Yield => 27,
            Step::Ended => 28,
            Step::Busy => 29,
        }
    }
}

/// The next step of a thread, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Where in the source.
    pub site: SiteId,
    /// The [`landmark`](selvedge_model::schedule::landmark) of the site.
    pub landmark: u16,
    /// What.
    pub step: Step,
}

impl Pending {
    /// What replay recognises the step by.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::new(self.landmark, self.step.kind())
    }

    /// Whether replay recognises the step by this fingerprint. Older schedules know a lock of Rust only by
    /// the atomic updates, the futexes and the wake-ups that it is made of.
    pub fn is_known_by(&self, fingerprint: Fingerprint) -> bool {
        const UPDATE: u8 = 6;
        const LOAD: u8 = 5;
        const WAKE: u8 = 20;
        let former: &[u8] = match self.step {
            Step::Do(Op::Acquire(..)) => &[UPDATE, LOAD, WAKE],
            Step::Do(Op::Release(..)) | Step::TryAcquire(..) => &[UPDATE],
            _ => &[],
        };
        let mut former = former.iter().map(|&kind| Fingerprint::new(self.landmark, kind));
        self.fingerprint() == fingerprint || former.any(|f| f == fingerprint)
    }
}

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
