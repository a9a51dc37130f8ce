//! The interface to the executors, which run the program, and the result of one execution.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use selvedge_explore::{Abstraction, Rng, Strategy};
use selvedge_model::{
    Cause, Event, Finding, Schedule, Site, SiteId, Stop, Symbols, ThreadId, Uncontrolled,
};
use selvedge_specs::{Judge, NoCallbacks};

use crate::blocks::Blocks;

/// What an executor records of an execution.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Noted {
    /// How it ended, and the findings of the executor's own analyses.
    #[default]
    Ending,
    /// Also every event; of the plain accesses, those that are scheduling points.
    Events,
    /// Also every plain access that the executor can see.
    Accesses,
    /// Every event, and how data flows between them, if the executor can see that.
    Flow,
}

/// How to run one execution.
#[derive(Clone, Debug, Default)]
pub struct Ask<P> {
    /// Seed of the random numbers that the program draws.
    pub seed: u64,
    /// Releasing a lock is a step, because another thread could observe whether it has happened.
    pub releases: bool,
    /// What to record.
    pub noted: Noted,
    /// The accesses that are scheduling points.
    pub points: P,
    /// The time limit; `None` for the executor's own limit.
    pub time: Option<Duration>,
    /// The strategy chooses which stars are executed, by numbers: 0 if one is, 1 if it is left out.
    pub stars: bool,
}

impl<P> Ask<P> {
    /// The same request, with the seed and the releases of a recorded schedule.
    pub fn following(self, schedule: &Schedule) -> Ask<P> {
        Ask { seed: schedule.seed, releases: schedule.releases, ..self }
    }
}

/// How an execution ended.
#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Outcome {
    /// It ended normally, with an exit code.
    Exited(i32),
    /// It crashed, hung or failed an assertion, or an analysis observed a bug in it.
    Failed(Box<Finding>),
    /// It was cut off, so how it would have ended is not known.
    Undecided(Limit),
}

/// The limit at which an execution was cut off.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, serde::Deserialize,
)]
pub enum Limit {
    /// The largest number of steps.
    Steps(u64),
    /// The time that one execution may take.
    Time(Duration),
}

/// One execution.
#[derive(Clone, Debug)]
pub struct Execution {
    /// How it ended.
    pub outcome: Outcome,
    /// Which thread ran when; enough to replay it.
    pub schedule: Schedule,
    /// The events, as far as they were recorded.
    pub events: Vec<Event>,
    /// Where threads were stopped although they could have gone on.
    pub stops: Vec<Stop>,
    /// How many events had happened before each choice, if events were recorded.
    pub times: Vec<usize>,
    /// The thread that ran last.
    pub last: ThreadId,
    /// The predictions of the executor's own analyses.
    pub findings: Vec<Finding>,
    /// The executor's analyses that had events to analyse.
    pub analyses: Vec<&'static str>,
    /// What it wrote to standard output.
    pub output: Vec<u8>,
    /// What it wrote to standard error.
    pub errors: Vec<u8>,
    /// Whether a thread could observe when another thread releases a lock.
    pub releases_matter: bool,
    /// The execution was cut off, so later events are missing.
    pub cut_off: bool,
    /// What was not controlled, each once.
    pub uncontrolled: Vec<Uncontrolled>,
    /// How many choices there were.
    pub choices: usize,
    /// How many steps there were.
    pub steps: usize,
    /// The deterministic blocks that it executed.
    pub blocks: Arc<Blocks>,
}

impl Execution {
    /// The first event that differs from those of another execution.
    pub fn difference(&self, other: &Execution) -> Option<Difference> {
        Difference::between(&self.events, &other.events)
    }
}

/// The first difference between two executions of the same schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The number of the event, from 0.
    pub index: usize,
    /// What happened the first time.
    pub expected: Option<Event>,
    /// What happened the second time.
    pub found: Option<Event>,
}

impl Difference {
    /// The first event that differs.
    pub fn between(first: &[Event], second: &[Event]) -> Option<Difference> {
        let len = first.len().max(second.len());
        (0..len).find(|&i| first.get(i) != second.get(i)).map(|index| Difference {
            index,
            expected: first.get(index).copied(),
            found: second.get(index).copied(),
        })
    }
}

/// A difference between two executions of the same schedule, with its probable cause.
#[derive(Clone, Debug)]
pub struct Nondeterminism {
    /// The first difference.
    pub difference: Difference,
    /// The most probable cause.
    pub cause: Cause,
    /// The names of what happened.
    pub symbols: Arc<Symbols>,
}

/// Which accesses are scheduling points.
pub trait Points: Clone + Default + Send + Sync + 'static {
    /// Makes these accesses scheduling points as well.
    fn add(&mut self, more: &Self);
}

/// For an executor that treats every visible access as a scheduling point.
impl Points for () {
    fn add(&mut self, (): &()) {}
}

/// Runs a program again and again, one thread at a time.
pub trait Executor {
    /// Why an execution could not be run.
    type Error: Send + 'static;
    /// Names of the threads and locks of an execution, by which they are recognised in another execution.
    type Names: Abstraction + Clone + Send + Sync + 'static;
    /// The names of the threads and locks of the running execution.
    type NamesNow: Abstraction + 'static;
    /// The type that selects the accesses that are scheduling points.
    type Points: Points;

    /// Runs one execution. The strategy's `begin` was called before.
    fn run(
        &mut self,
        strategy: &mut dyn Strategy,
        ask: &Ask<Self::Points>,
    ) -> Result<Execution, Self::Error>;

    /// The names of everything in the execution that ran last. To ask again is cheap.
    fn named(&mut self, execution: &Execution) -> Arc<Symbols>;

    /// The names of the threads and locks of the execution that ran last.
    fn names(&self) -> Self::Names;

    /// The names of the threads and locks of the next execution, to be used while it runs.
    fn names_now(&self) -> Self::NamesNow;

    /// The id of a place that is known from another executor or from another build of the program.
    fn site(&mut self, site: &Site) -> SiteId;

    /// The place of an id.
    fn place(&self, site: SiteId) -> Site;

    /// The places executed so far, each with what makes the accesses there scheduling points.
    fn points(&self) -> HashMap<Site, Self::Points>;

    /// Repeats an execution and returns how the repetition differs, if it does.
    fn repeat(
        &mut self,
        execution: &Execution,
        ask: &Ask<Self::Points>,
    ) -> Result<Option<Nondeterminism>, Self::Error>;

    /// Calls the predicates that are the program's own.
    fn judge(&self) -> Box<dyn Judge> {
        Box::new(NoCallbacks)
    }

    /// Whether further executions may run on this executor and its thread.
    fn is_usable(&self) -> bool {
        true
    }
}

/// Begins an execution and runs it. `None` if the strategy has no more schedules to try.
pub fn execute<X: Executor>(
    executor: &mut X,
    strategy: &mut dyn Strategy,
    rng: Rng,
    ask: &Ask<X::Points>,
) -> Result<Option<Execution>, X::Error> {
    if !strategy.begin(rng) {
        return Ok(None);
    }
    executor.run(strategy, ask).map(Some)
}

/// Counts the steps of a worker, to show that it makes progress.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat(pub Arc<AtomicU64>);

impl Heartbeat {
    /// Counts one step.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of steps so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes executors, on the threads that use them.
pub trait Factory: Send + Sync + 'static {
    /// What it makes.
    type Executor: Executor;

    /// Makes an executor that counts its steps in `heartbeat`.
    fn make(
        &self,
        heartbeat: Heartbeat,
    ) -> Result<Self::Executor, <Self::Executor as Executor>::Error>;

    /// True makes all running executions end early with an error, because the caller needs no more results.
    /// False lets new executions run.
    fn interrupt(&self, on: bool);
}
