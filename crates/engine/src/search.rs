//! Undirected executions under a plan, on all cores.
//!
//! Where the executor analyses executions as they run, what it predicts is attempted at once, by the
//! shard that saw it, so that which executions follow does not depend on the other shards.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use selvedge_explore::rng::derive;
use selvedge_explore::{Coverage, Rng, Strategy};
use selvedge_model::{Finding, FindingId, Site, SiteId, Status, Symbols};

use crate::confirm::{Attempt, Confirmer, Prediction, Trial};
use crate::ending::Key;
use crate::executor::{
    Ask, Execution, Executor, Factory, Nondeterminism, Noted, Outcome, Points, execute,
};
use crate::harm::Left;
use crate::run::Run;
use crate::shards::{Error, Halt, SHARDS, Shards};

/// What a shard reports of one number.
#[derive(Debug)]
pub struct Step {
    /// The execution.
    pub run: Run,
    /// The same schedule does not always do the same, if it was asked for.
    pub nondeterminism: Option<Nondeterminism>,
    /// What the execution's analyses predicted for the first time in this shard, and what came of it.
    pub tried: Vec<Tried>,
}

/// A prediction that was attempted at once.
#[derive(Debug)]
pub struct Tried {
    /// What was predicted.
    pub finding: Finding,
    /// The names in it.
    pub symbols: Arc<Symbols>,
    /// All attempts, in turn; only the last may be confirmed.
    pub trials: Vec<Trial>,
}

impl Tried {
    /// The trial that confirmed it, if one did.
    pub fn confirmed(&self) -> Option<&crate::confirm::Confirmed> {
        match self.trials.last().map(|t| &t.attempt) {
            Some(Attempt::Confirmed(confirmed)) => Some(confirmed),
            _ => None,
        }
    }

    /// The first failure of a directed execution that was not what was aimed at.
    pub fn failed(&self) -> Option<&Run> {
        self.trials
            .iter()
            .flat_map(|t| &t.runs)
            .find(|run| matches!(run.ending.key, Key::Failed(_)))
    }
}

/// The id of a place on the executor that a strategy is for.
pub type SiteOf<'a> = &'a mut dyn FnMut(&Site) -> SiteId;

/// Makes the strategies of a search, one for each shard.
pub type NewStrategy = Arc<dyn Fn(SiteOf<'_>) -> Box<dyn Strategy + Send> + Send + Sync>;

/// What to search, and how.
pub struct Search<P> {
    /// Makes the strategies.
    pub strategy: NewStrategy,
    /// Whether it goes through schedules one by one, so that it cannot be shared out.
    pub systematic: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// Each execution draws other random numbers.
    pub vary_input: bool,
    /// The most executions.
    pub schedules: u64,
    /// The most at the same time.
    pub jobs: usize,
    /// The accesses that are scheduling points.
    pub points: P,
    /// Releasing a lock is a step from the first execution on.
    pub releases: bool,
    /// How often to attempt what executions predict.
    pub attempts: u64,
    /// Whether the first execution is repeated, to see whether the program is deterministic.
    pub repeat: bool,
    /// For how long a thread may come to no scheduling point.
    pub stall: Option<Duration>,
}

/// One of the strategies.
struct Shard<P> {
    number: u64,
    seed: u64,
    /// Made when the shard first runs, in terms of its executor.
    strategy: Option<Box<dyn Strategy + Send>>,
    begun: u64,
    releases: bool,
    /// Predictions that have been attempted.
    known: HashSet<FindingId>,
    search: Arc<Search<P>>,
}

/// The end of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Searched {
    /// How much was seen.
    pub coverage: Coverage,
    /// How many classes of schedules, if the strategy tells them apart.
    pub classes: Option<u64>,
}

impl<P: Points> Search<P> {
    /// Searches, and hands what became of each number to `each`, from 0 and without gaps, until that
    /// breaks or `stop` says so.
    pub fn run<F>(
        self,
        factory: &Arc<F>,
        stop: impl Fn() -> bool,
        each: impl FnMut(u64, Step) -> ControlFlow<()>,
    ) -> Result<Searched, Halt<Error<F>>>
    where
        F: Factory,
        F::Executor: Executor<Points = P>,
    {
        let search = Arc::new(self);
        let shards = if search.systematic { 1 } else { SHARDS.min(search.schedules.max(1)) };
        let shard = |number: u64| Shard {
            number,
            seed: if shards == 1 { search.seed } else { derive(search.seed, number) },
            strategy: None,
            begun: 0,
            releases: search.releases,
            known: HashSet::new(),
            search: Arc::clone(&search),
        };
        let states: Vec<Shard<P>> = (0..shards).map(shard).collect();
        let pool = Shards {
            factory: Arc::clone(factory),
            states,
            numbers: search.schedules,
            workers: search.jobs,
            pinned: true,
            stall: search.stall,
            work: Arc::new(|executor: &mut F::Executor, shard: &mut Shard<P>, _| {
                shard.step(executor)
            }),
        };
        let exhausted = pool.run(stop, each)?;
        let searched = match &exhausted[..] {
            [Shard { strategy: Some(strategy), .. }] if search.systematic => {
                Searched { coverage: strategy.coverage(), classes: strategy.classes() }
            }
            _ => Searched::default(),
        };
        Ok(searched)
    }
}

impl<P: Points> Shard<P> {
    fn step<X: Executor<Points = P>>(
        &mut self,
        executor: &mut X,
    ) -> Result<Option<Step>, X::Error> {
        let search = Arc::clone(&self.search);
        let rng = Rng::new(derive(self.seed, self.begun));
        let input =
            if search.vary_input { derive(self.seed ^ 0xda7a, self.begun) } else { search.seed };
        let repeat = search.repeat && self.number == 0 && self.begun == 0;
        self.begun += 1;
        let ask = Ask {
            seed: input,
            releases: self.releases,
            noted: if repeat { Noted::Events } else { Noted::Ending },
            points: search.points.clone(),
            time: None,
        };
        let strategy =
            self.strategy.get_or_insert_with(|| (search.strategy)(&mut |site| executor.site(site)));
        let Some(execution) = execute(executor, &mut **strategy, rng, &ask)? else {
            return Ok(None);
        };
        if execution.releases_matter && !self.releases {
            self.releases = true;
            if search.systematic {
                // There are more points now than in the schedules seen so far: from the start.
                self.strategy = None;
            }
        }
        let predicted = self.predicted(executor, &execution);
        let nondeterminism = match &execution.outcome {
            Outcome::Exited(_) if repeat => executor.repeat(&execution, &ask)?,
            _ => None,
        };
        let run = Run::new(executor, execution);
        let mut step = Step { run, nondeterminism, tried: Vec::new() };
        let fails = matches!(step.run.ending.key, Key::Failed(_));
        if fails || step.nondeterminism.is_some() || predicted.is_empty() {
            return Ok(Some(step));
        }
        let usual = Left::new(step.run.ending.clone(), &step.run.output);
        let confirmer = Confirmer {
            seed: derive(self.seed, 0x0d1e_c7ed),
            input,
            releases: self.releases,
            usual: Some(usual),
        };
        for (finding, symbols, prediction) in predicted {
            let mut tried = Tried { finding, symbols, trials: Vec::new() };
            for attempt in 0..search.attempts {
                let number = self.known.len() as u64;
                let trial = confirmer.attempt(executor, &prediction, number, attempt)?;
                let missed = matches!(trial.attempt, Attempt::Missed | Attempt::Unstable(_));
                tried.trials.push(trial);
                if !missed || tried.failed().is_some() || !executor.is_usable() {
                    break;
                }
            }
            let over = tried.confirmed().is_some() || tried.failed().is_some();
            step.tried.push(tried);
            if over || !executor.is_usable() {
                break;
            }
        }
        Ok(Some(step))
    }

    /// What the execution predicts that this shard has not attempted.
    #[allow(clippy::type_complexity)] // The parts of one prediction, used once.
    fn predicted<X: Executor<Points = P>>(
        &mut self,
        executor: &mut X,
        execution: &Execution,
    ) -> Vec<(Finding, Arc<Symbols>, Prediction<X::Names, P>)> {
        let is_new = |f: &&Finding| f.status == Status::Predicted && f.target.is_some();
        let findings: Vec<&Finding> = execution.findings.iter().filter(is_new).collect();
        if findings.is_empty() {
            return Vec::new();
        }
        let symbols = Arc::new(executor.named(execution));
        let names = executor.names();
        let mut predictions = Vec::new();
        for finding in findings {
            let id = finding.id(&symbols);
            let Some(target) = finding.target.as_ref().filter(|_| self.known.insert(id)) else {
                continue;
            };
            let prediction = Prediction {
                id,
                kind: finding.kind,
                target: target.map(|&site| symbols.site(site)),
                names: Some(names.clone()),
                points: self.search.points.clone(),
            };
            predictions.push((finding.clone(), Arc::clone(&symbols), prediction));
        }
        predictions
    }
}
