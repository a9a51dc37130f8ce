//! Who runs the program, and what comes of one execution.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use selvedge_explore::{Abstraction, Rng, Strategy};
use selvedge_model::Stop;
use selvedge_model::{Event, Finding, Schedule, Site, SiteId, Symbols, ThreadId};

/// What an execution is to note down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Noted {
    /// How it ended, and whatever the executor's own analyses find.
    #[default]
    Ending,
    /// Also every event, as far as accesses are scheduling points.
    Events,
    /// Also every plain access that can be seen.
    Accesses,
}

/// How to run one execution.
#[derive(Clone, Debug, Default)]
pub struct Ask<P> {
    /// Seed of the random numbers that the program draws.
    pub seed: u64,
    /// Releasing a lock is a step, because a thread could notice.
    pub releases: bool,
    /// What to note down.
    pub noted: Noted,
    /// The accesses that are scheduling points.
    pub points: P,
    /// The longest that it may take; nothing for the executor's own limit.
    pub time: Option<Duration>,
}

impl<P> Ask<P> {
    /// The same, for a schedule that was recorded.
    pub fn following(self, schedule: &Schedule) -> Ask<P> {
        Ask { seed: schedule.seed, releases: schedule.releases, ..self }
    }
}

/// How an execution ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// By itself, with an exit code.
    Exited(i32),
    /// In a way that no program wants, or with something that an analysis saw happen.
    Failed(Box<Finding>),
}

/// One execution.
#[derive(Clone, Debug)]
pub struct Execution {
    /// How it ended.
    pub outcome: Outcome,
    /// Who ran; what replay needs.
    pub schedule: Schedule,
    /// What happened, as far as it was noted.
    pub events: Vec<Event>,
    /// Where threads were stopped although they could have gone on.
    pub stops: Vec<Stop>,
    /// Whose turn it was last.
    pub last: ThreadId,
    /// What the executor's own analyses predict.
    pub findings: Vec<Finding>,
    /// Those of its analyses that had anything to look at.
    pub analyses: Vec<&'static str>,
    /// What it wrote to standard output.
    pub output: Vec<u8>,
    /// What it wrote to standard error.
    pub errors: Vec<u8>,
    /// Whether a thread could notice when others release a lock.
    pub releases_matter: bool,
    /// The events are not all: the execution was cut off.
    pub cut_off: bool,
    /// What was not under control, in words, each once.
    pub uncontrolled: Vec<String>,
    /// How many choices there were.
    pub choices: usize,
    /// How many steps there were.
    pub steps: usize,
}

impl Execution {
    /// The first event that differs from those of another execution.
    pub fn difference(&self, other: &Execution) -> Option<Difference> {
        let len = self.events.len().max(other.events.len());
        (0..len).find(|&i| self.events.get(i) != other.events.get(i)).map(|index| Difference {
            index,
            expected: self.events.get(index).copied(),
            found: other.events.get(index).copied(),
        })
    }
}

/// Where two executions that should be the same are not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Which event, from 0.
    pub index: usize,
    /// What happened the first time.
    pub expected: Option<Event>,
    /// What happened the second time.
    pub found: Option<Event>,
}

/// Two executions of one schedule that differ, and why as far as the executor can tell.
#[derive(Clone, Debug)]
pub struct Nondeterminism {
    /// Where it shows first.
    pub difference: Difference,
    /// The most probable cause, in words.
    pub cause: String,
    /// The names of what happened.
    pub symbols: Arc<Symbols>,
}

/// Which accesses are scheduling points.
pub trait Points: Clone + Default + Send + Sync + 'static {
    /// Makes these accesses scheduling points as well.
    fn add(&mut self, more: &Self);
}

/// For an executor to which every access that it can see is one.
impl Points for () {
    fn add(&mut self, (): &()) {}
}

/// Runs a program again and again, one thread at a time.
pub trait Executor {
    /// Why an execution could not be run.
    type Error: Send + 'static;
    /// Names of threads and locks of one execution, by which another one is compared with it.
    type Names: Abstraction + Clone + Send + Sync + 'static;
    /// The same of the execution that runs.
    type NamesNow: Abstraction + 'static;
    /// Which accesses are scheduling points, in terms of this kind of executor.
    type Points: Points;

    /// One execution under a strategy that has begun.
    fn run(
        &mut self,
        strategy: &mut dyn Strategy,
        ask: &Ask<Self::Points>,
    ) -> Result<Execution, Self::Error>;

    /// What everything in the execution that ran last is called.
    fn named(&mut self, execution: &Execution) -> Symbols;

    /// The names of the execution that ran last.
    fn names(&self) -> Self::Names;

    /// The names of the execution that runs next, while it runs.
    fn names_now(&self) -> Self::NamesNow;

    /// The id of a place that is known from another executor, or from another build of the program.
    fn site(&mut self, site: &Site) -> SiteId;

    /// The places that have been executed so far, and what makes accesses there scheduling points.
    fn points(&self) -> HashMap<Site, Self::Points>;

    /// Repeats an execution and says how that differs, if it does.
    fn repeat(
        &mut self,
        execution: &Execution,
        ask: &Ask<Self::Points>,
    ) -> Result<Option<Nondeterminism>, Self::Error>;

    /// Whether further executions may run on this executor and its thread.
    fn is_usable(&self) -> bool {
        true
    }
}

/// Begins an execution and runs it; none if the strategy has seen everything it wants.
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

/// Shows that a worker is alive: it counts steps.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat(pub Arc<AtomicU64>);

impl Heartbeat {
    /// The worker has done something.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it has.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Makes executors, on the threads that use them.
pub trait Factory: Send + Sync + 'static {
    /// What it makes.
    type Executor: Executor;

    /// An executor that ticks `heartbeat` while it makes progress.
    fn make(
        &self,
        heartbeat: Heartbeat,
    ) -> Result<Self::Executor, <Self::Executor as Executor>::Error>;

    /// Makes the executions that run now end early with an error, because no result is wanted any more;
    /// false lets new ones run.
    fn interrupt(&self, on: bool);
}
