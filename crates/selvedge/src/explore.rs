//! Checks: a test body under many schedules.
//!
//! How a check runs is in [`running`]: the engine shares its executions out over a fixed number of shards,
//! each with a strategy and a seed of its own, and takes results in the order of their numbers. So the
//! same seed gives the same answer on any number of cores.

mod alone;
mod kept;
mod ndseq;
mod running;
mod unserial;
mod violation;

use std::collections::BTreeSet;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use selvedge_analyses::Entry;
use selvedge_analyses::registry::{self, Purpose};
use selvedge_engine::Criterion;
use selvedge_explore::Plan;
use selvedge_explore::directed::ATTEMPTS;
use selvedge_explore::strategies::{dfs, pct, random};
use selvedge_model::{Schedule, ScheduleError};
use selvedge_specs::atomic::Interleavings;

use crate::exec::Limits;
use crate::exec::worker::{Bodies, Body};
use crate::failure::Failure;
pub use ndseq::ndseq;
pub use violation::Undecided;

/// What to check and how; the methods set options, [`Explore::check`] runs.
#[derive(Clone, Debug)]
pub struct Explore {
    plan: Plan,
    /// The plan is the user's.
    chosen: bool,
    schedules: u64,
    seed: u64,
    time: Option<Duration>,
    analyses: Vec<&'static Entry>,
    jobs: usize,
    max_steps: usize,
    stack_size: usize,
    attempts: u64,
    sequential: u64,
    minimise: usize,
    stall: Duration,
    states: Option<PathBuf>,
    criterion: Criterion,
    replay: Option<Result<Vec<Schedule>, ScheduleError>>,
}

impl Default for Explore {
    fn default() -> Explore {
        Explore {
            plan: Plan::default(),
            chosen: false,
            schedules: 1_000,
            seed: 0,
            time: None,
            analyses: registry::defaults(Purpose::Crate),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            max_steps: 1_000_000,
            stack_size: 512 << 10,
            attempts: ATTEMPTS,
            sequential: 1_000,
            minimise: 400,
            stall: Duration::from_secs(30),
            states: None,
            criterion: Criterion::default(),
            replay: None,
        }
    }
}

/// A check that runs.
struct Check {
    options: Explore,
    bodies: Arc<Bodies>,
    test: Option<String>,
    /// The strategy that runs, if it is not the one of the options.
    phase: Option<Plan>,
}

/// What a check that did not fail has seen.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many executions there were, including those that confirm predictions.
    pub executions: u64,
    /// Whether every schedule (`dfs`) or class of schedules (`dpor`) was seen.
    pub complete: bool,
    /// How many classes a search by `dpor` has seen.
    pub classes: Option<u64>,
    /// Choices of the longest execution.
    pub longest: usize,
    /// Steps of all executions together.
    pub steps: u64,
    /// The analyses that saw at least one execution. An analysis that needs tracked cells, nested locks or
    /// regions does not see executions without them.
    pub analyses: Vec<&'static str>,
    /// In words, what analyses predicted and no directed schedule made happen.
    pub unconfirmed: Vec<String>,
    /// Executions that were cut off, deterministic blocks whose results could not be compared, and that atomic
    /// blocks could not be judged.
    pub undecided: Vec<Undecided>,
    /// How many atomic blocks, by name, are not conflict-serializable, where something is observed: that decides, so
    /// these are no failures.
    pub conflicts: u64,
    /// The names of these blocks.
    pub(crate) conflicting: BTreeSet<Box<str>>,
    /// How many executions were cut off.
    cut_off: u64,
    /// How executions with atomic blocks were judged, where something is observed.
    pub interleavings: Interleavings,
}

/// What [`Explore::survey`] counts.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// How executions were judged.
    pub interleavings: Interleavings,
    /// For each violation the names of what no serial execution observes. Violations differ by the places of these
    /// calls.
    pub violations: Vec<Vec<String>>,
    /// The names of the atomic blocks that are not conflict-serializable.
    pub conflicts: Vec<String>,
    /// How many executions there were, with the serial ones.
    pub executions: u64,
    /// Whether the strategy has seen everything that it looks for.
    pub complete: bool,
}

impl Explore {
    /// The default options.
    pub fn new() -> Explore {
        Explore::default()
    }

    /// As [`Explore::new`], with the options that environment variables set: `SELVEDGE_SEED`,
    /// `SELVEDGE_SCHEDULES`, `SELVEDGE_STRATEGY`, `SELVEDGE_JOBS` and `SELVEDGE_REPLAY`. Methods called
    /// later override them, except for the replay.
    ///
    /// # Panics
    /// If a variable has an invalid value.
    pub fn from_env() -> Explore {
        fn number(name: &str) -> Option<u64> {
            let text = std::env::var(name).ok()?;
            let digits = text.replace('_', "");
            let parsed = match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            Some(parsed.unwrap_or_else(|_| panic!("{name}: `{text}` is not a number")))
        }
        let mut explore = Explore::new();
        if let Some(seed) = number("SELVEDGE_SEED") {
            explore.seed = seed;
        }
        if let Some(schedules) = number("SELVEDGE_SCHEDULES") {
            explore.schedules = schedules;
        }
        if let Some(jobs) = number("SELVEDGE_JOBS") {
            assert!(jobs > 0, "SELVEDGE_JOBS: at least 1 execution must run at a time");
            explore.jobs = jobs as usize;
        }
        if let Ok(name) = std::env::var("SELVEDGE_STRATEGY") {
            explore.plan = name.parse().unwrap_or_else(|e| panic!("SELVEDGE_STRATEGY: {e}"));
            explore.chosen = true;
        }
        if let Ok(text) = std::env::var("SELVEDGE_REPLAY") {
            let schedules = schedules(&text);
            explore.replay = Some(Ok(schedules.unwrap_or_else(|e| panic!("SELVEDGE_REPLAY: {e}"))));
        }
        explore
    }

    /// How schedules are chosen: a [`Plan`] or its name.
    pub fn strategy(mut self, plan: impl Into<Plan>) -> Explore {
        self.plan = plan.into();
        self.chosen = true;
        self
    }

    /// Which serial executions explain what is [observed](crate::observe): `linearizable` (the default: the same
    /// blocks, and those that did not overlap keep their order), `serializable` (the same blocks) or `atomic` (any).
    ///
    /// # Panics
    /// If the name is none of these.
    pub fn witness(mut self, name: &str) -> Explore {
        self.criterion.witness = name.parse().unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// What decides about what is observed.
    pub(crate) fn criterion(mut self, criterion: Criterion) -> Explore {
        self.criterion = criterion;
        self
    }

    /// At most so many executions.
    pub fn schedules(mut self, schedules: u64) -> Explore {
        self.schedules = schedules;
        self
    }

    /// The seed of everything random.
    pub fn seed(mut self, seed: u64) -> Explore {
        self.seed = seed;
        self
    }

    /// Stops after so much time, even if schedules are left.
    pub fn time(mut self, time: Duration) -> Explore {
        self.time = Some(time);
        self
    }

    /// The analyses to run on each execution: names separated by commas, `all` or `none`.
    ///
    /// # Panics
    /// If a name is not that of an analysis.
    pub fn analyses(mut self, names: &str) -> Explore {
        let names = names.split(',').map(str::trim).filter(|n| !n.is_empty() && *n != "none");
        let names: Vec<&str> = names.collect();
        self.analyses = registry::select(&names).unwrap_or_else(|error| panic!("{error}"));
        self
    }

    /// On how many OS threads executions run. A test body that uses statics needs 1.
    pub fn jobs(mut self, jobs: usize) -> Explore {
        self.jobs = jobs.max(1);
        self
    }

    /// At most so many steps in an execution. A longer one is a livelock if nothing changes any more; otherwise
    /// it is cut off, and the check is [undecided](Undecided::CutOff).
    pub fn max_steps(mut self, steps: usize) -> Explore {
        self.max_steps = steps;
        self
    }

    /// The size of each thread's stack. Memory is used as it is touched.
    pub fn stack_size(mut self, bytes: usize) -> Explore {
        self.stack_size = bytes;
        self
    }

    /// How many directed executions try to confirm a prediction.
    pub fn attempts(mut self, attempts: u64) -> Explore {
        self.attempts = attempts;
        self
    }

    /// How many executions minimisation may use; 0 to leave a failing schedule as it is.
    pub fn minimise(mut self, budget: usize) -> Explore {
        self.minimise = budget;
        self
    }

    /// For how long a test body may run without a scheduling point before the check fails.
    pub fn stall(mut self, limit: Duration) -> Explore {
        self.stall = limit;
        self
    }

    /// Replays one schedule instead of choosing schedules; or two, separated by a space, to compare what
    /// deterministic blocks ensure.
    pub fn replay(mut self, schedule: &str) -> Explore {
        self.replay = Some(schedules(schedule));
        self
    }

    /// Keeps what deterministic blocks assume and ensure in a file, and compares with what is there: so a block
    /// is a regression test. What differs from the file fails the check, and the file stays as it is; delete it if
    /// the new results are the right ones.
    pub fn states(mut self, path: impl Into<PathBuf>) -> Explore {
        self.states = Some(path.into());
        self
    }

    /// Runs the check.
    ///
    /// # Panics
    /// If it fails, with the failure in words. If deterministic blocks are not used as they should be, or their
    /// results could not be compared. Predictions that could not be confirmed are printed.
    #[track_caller]
    pub fn check<F: Fn() + Send + Sync + 'static>(self, body: F) {
        match self.run_body(Arc::new(body), Location::caller()) {
            Ok(summary) => {
                for prediction in &summary.unconfirmed {
                    eprintln!("selvedge: not confirmed: {prediction}");
                }
                if let Some(undecided) = summary.undecided.first() {
                    panic!("selvedge: {undecided}");
                }
            }
            Err(failure) => panic!("{failure}"),
        }
    }

    /// The most sequential executions that an [`ndseq`](Explore::ndseq) runs.
    pub fn sequential(self, executions: u64) -> Explore {
        Explore { sequential: executions, ..self }
    }

    /// Runs the check, and returns a summary or the failure.
    ///
    /// # Panics
    /// If deterministic blocks are not used as they should be.
    #[track_caller]
    pub fn run<F: Fn() + Send + Sync + 'static>(self, body: F) -> Result<Summary, Box<Failure>> {
        self.run_body(Arc::new(body), Location::caller())
    }

    /// Judges the atomic blocks of all executions, also after one that no serial execution explains, and only counts:
    /// how much of a program is not linearizable, and what it costs to know.
    ///
    /// # Panics
    /// If an execution fails in another way, or blocks are not used as they should be.
    #[track_caller]
    pub fn survey<F: Fn() + Send + Sync + 'static>(self, body: F) -> Survey {
        self.check_of(Arc::new(body), Location::caller()).survey()
    }

    /// Runs the body in so many executions in which a thread is left alone in an atomic block: the first one that
    /// does not end its block.
    pub(crate) fn obstructed(
        self,
        body: Body,
        here: &'static Location<'static>,
        executions: u64,
    ) -> Option<Box<Failure>> {
        self.check_of(body, here).obstructed(executions)
    }

    fn check_of(self, body: Body, here: &'static Location<'static>) -> Check {
        let bodies = Bodies {
            selected: self.analyses.iter().copied().collect(),
            limits: Limits { steps: self.max_steps, stack_size: self.stack_size },
            body,
            here,
        };
        let test = std::thread::current().name().map(ToOwned::to_owned);
        Check { options: self, bodies: Arc::new(bodies), test, phase: None }
    }

    pub(crate) fn run_body(
        self,
        body: Body,
        here: &'static Location<'static>,
    ) -> Result<Summary, Box<Failure>> {
        let mut check = self.check_of(body, here);
        match check.options.replay.clone() {
            Some(replay) => {
                let schedules = replay.unwrap_or_else(|error| panic!("{error}"));
                match &schedules[..] {
                    [first, second] => check.replay_two(first, second),
                    [schedule] => check.replay_only(schedule),
                    _ => panic!("a replay is of one schedule or of two"),
                }
            }
            None => check.explore(),
        }
    }
}

/// One schedule or several, separated by spaces.
fn schedules(text: &str) -> Result<Vec<Schedule>, ScheduleError> {
    match text.split_whitespace().count() {
        0 => text.parse().map(|schedule| vec![schedule]),
        _ => text.split_whitespace().map(str::parse).collect(),
    }
}

/// Runs a test body under many schedules, with the options of the environment.
///
/// # Panics
/// If one of them fails.
#[track_caller]
pub fn check<F: Fn() + Send + Sync + 'static>(body: F) {
    Explore::from_env().check(body);
}

/// [`check`] under loom's name, so that a crate with tests for loom can be given this crate in its place:
/// `loom = { package = "selvedge", … }`.
///
/// # Panics
/// If a schedule fails.
#[track_caller]
pub fn model<F: Fn() + Send + Sync + 'static>(body: F) {
    check(body);
}

/// Runs a test body under `iterations` random schedules, as shuttle's function of this name does.
///
/// # Panics
/// If one of them fails.
#[track_caller]
pub fn check_random<F: Fn() + Send + Sync + 'static>(body: F, iterations: usize) {
    let plan = Plan::new(&random::ENTRY, None);
    Explore::from_env().strategy(plan).schedules(iterations as u64).check(body);
}

/// Runs a test body under `iterations` schedules by PCT, for bugs of the given depth, as shuttle's
/// function of this name does.
///
/// # Panics
/// If one of them fails.
#[track_caller]
pub fn check_pct<F: Fn() + Send + Sync + 'static>(body: F, iterations: usize, depth: usize) {
    let plan = Plan::new(&pct::ENTRY, Some(depth));
    Explore::from_env().strategy(plan).schedules(iterations as u64).check(body);
}

/// Runs a test body under all its schedules, or at most `max_iterations` of them, as shuttle's function
/// of this name does.
///
/// # Panics
/// If one of them fails.
#[track_caller]
pub fn check_dfs<F: Fn() + Send + Sync + 'static>(body: F, max_iterations: Option<usize>) {
    let plan = Plan::new(&dfs::ENTRY, None);
    let schedules = max_iterations.map_or(u64::MAX, |n| n as u64);
    Explore::from_env().strategy(plan).schedules(schedules).check(body);
}

/// Replays a schedule that a failure has printed.
///
/// # Panics
/// If the execution fails, as it is expected to; and if the text is not a schedule.
#[track_caller]
pub fn replay<F: Fn() + Send + Sync + 'static>(body: F, schedule: &str) {
    Explore::new().replay(schedule).check(body);
}
