//! Undirected executions under a strategy, on all cores.
//!
//! If the executor analyses executions while they run, the shard that sees a prediction attempts it at once, so
//! that its further executions do not depend on other shards.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use selvedge_explore::rng::derive;
use selvedge_explore::{Coverage, Flip, Rng, Share, Strategy};
use selvedge_model::{Finding, FindingId, Schedule, Site, SiteId, Status, Symbols};

use crate::confirm::{Attempt, Confirmer, JUDGED, Prediction, Trial};
use crate::deal::Deal;
use crate::ending::Key;
use crate::executor::{
    Ask, Execution, Executor, Factory, Nondeterminism, Noted, Outcome, Points, execute,
};
use crate::harm::Left;
use crate::run::Run;
use crate::shards::{Alone, Error, Halt, Shards};
use crate::witness::{Criterion, Judged, Question, Serials, judge};

/// The results of a shard for one number.
#[derive(Debug)]
pub struct Step {
    /// The execution.
    pub run: Run,
    /// How a repetition of the execution differed, if it was repeated and differed.
    pub nondeterminism: Option<Nondeterminism>,
    /// Whether a serial execution observes the same, if anything was observed.
    pub judged: Option<Judged>,
    /// The predictions of the execution that are new to this shard, with their attempts.
    pub tried: Vec<Tried>,
    /// What it told of pairs of a read and a write.
    pub learnt: Vec<Flip<Site>>,
}

/// A prediction that was attempted at once.
#[derive(Debug)]
pub struct Tried {
    /// The prediction.
    pub finding: Finding,
    /// The names in it.
    pub symbols: Arc<Symbols>,
    /// All attempts, in order; only the last one can have confirmed it.
    pub trials: Vec<Trial>,
}

impl Tried {
    /// The result of the attempt that confirmed it, if one did.
    pub fn confirmed(&self) -> Option<&crate::confirm::Confirmed> {
        match self.trials.last().map(|t| &t.attempt) {
            Some(Attempt::Confirmed(confirmed)) => Some(confirmed),
            _ => None,
        }
    }

    /// The first directed execution that failed.
    pub fn failed(&self) -> Option<&Run> {
        self.trials
            .iter()
            .flat_map(|t| &t.runs)
            .find(|run| matches!(run.ending.key, Key::Failed(_)))
    }
}

/// Looks up the id of a place on the strategy's executor.
pub type SiteOf<'a> = &'a mut dyn FnMut(&Site) -> SiteId;

/// Makes the strategies of a search, one for each shard.
pub type NewStrategy = Arc<dyn Fn(SiteOf<'_>, Share) -> Box<dyn Strategy + Send> + Send + Sync>;

/// The settings of a search.
#[derive(Clone)]
pub struct Search<P> {
    /// Makes the strategies.
    pub strategy: NewStrategy,
    /// Whether the strategy enumerates schedules, so that it cannot be divided among shards.
    pub systematic: bool,
    /// Seed of all random choices.
    pub seed: u64,
    /// Whether the program gets different random numbers in each execution.
    pub vary_input: bool,
    /// The largest number of executions.
    pub schedules: u64,
    /// The largest number of executions at the same time.
    pub jobs: usize,
    /// The accesses that are scheduling points.
    pub points: P,
    /// Releasing a lock is a step from the first execution on.
    pub releases: bool,
    /// How often to attempt each prediction of an execution.
    pub attempts: u64,
    /// Whether the first execution is repeated, to see whether the program is deterministic.
    pub repeat: bool,
    /// How long a thread may run without a scheduling point.
    pub stall: Option<Duration>,
    /// What decides about what was observed; none if that is not asked.
    pub witness: Option<Criterion>,
}

/// A strategy, and the state of its part of the search.
pub(crate) struct Shard<P> {
    number: u64,
    /// Its part of what is known before.
    share: Share,
    seed: u64,
    /// Made when the shard first runs, because it uses ids of the shard's executor.
    strategy: Option<Box<dyn Strategy + Send>>,
    begun: u64,
    releases: bool,
    /// Predictions that have been attempted.
    known: HashSet<FindingId>,
    /// Serial executions that have been run.
    serials: Serials,
    search: Arc<Search<P>>,
}

/// The end of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Searched {
    /// Whether all schedules were seen.
    pub coverage: Coverage,
    /// The number of classes of schedules, if the strategy counts them.
    pub classes: Option<u64>,
}

impl<P: Points> Search<P> {
    /// Searches, and passes the results of each number to `each`, from 0 and without gaps, until `each` breaks
    /// or `stop` returns true.
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
        let parts = Arc::clone(&search);
        let pool = Shards {
            factory: Arc::clone(factory),
            deal: search.deal(Deal::few),
            begin: Box::new(move |number| parts.shard(number, Deal::few)),
            workers: search.jobs,
            pinned: true,
            stall: search.stall,
            work: Arc::new(|executor: &mut F::Executor, shard: &mut Shard<P>, _| {
                shard.step(executor)
            }),
        };
        let exhausted = pool.run(&mut Alone, stop, each)?;
        Ok(exhausted.first().map(Shard::searched).unwrap_or_default())
    }

    /// The parts of the search: one if it cannot be divided, else those of `divided`.
    pub(crate) fn deal(&self, divided: fn(u64) -> Deal) -> Deal {
        if self.systematic { Deal::one(self.schedules) } else { divided(self.schedules) }
    }

    /// A part of the search. Parts that begin late have other suggestions to share.
    pub(crate) fn shard(self: &Arc<Self>, number: u64, divided: fn(u64) -> Deal) -> Shard<P> {
        let deal = self.deal(divided);
        let (early, all) = (deal.early(), deal.shards());
        let (nth, of) = match number < early {
            true => (number, early),
            false => (number - early, all - early),
        };
        Shard {
            number,
            share: Share { number: nth as usize, of: of as usize },
            seed: if all == 1 { self.seed } else { derive(self.seed, number) },
            strategy: None,
            begun: 0,
            releases: self.releases,
            known: HashSet::new(),
            serials: Serials::default(),
            search: Arc::clone(self),
        }
    }
}

impl<P: Points> Shard<P> {
    /// How much its strategy has seen, if it is exhausted.
    pub(crate) fn searched(&self) -> Searched {
        match &self.strategy {
            Some(strategy) if self.search.systematic => {
                Searched { coverage: strategy.coverage(), classes: strategy.classes() }
            }
            _ => Searched::default(),
        }
    }

    /// Runs the next execution. `None` if there is none.
    pub(crate) fn step<X: Executor<Points = P>>(
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
            stars: false,
        };
        let share = self.share;
        let strategy = self
            .strategy
            .get_or_insert_with(|| (search.strategy)(&mut |site| executor.site(site), share));
        let Some(execution) = execute(executor, &mut **strategy, rng, &ask)? else {
            return Ok(None);
        };
        let learnt = learnt(&mut **strategy, executor);
        if execution.releases_matter && !self.releases {
            self.releases = true;
            if search.systematic {
                // The schedules seen so far lack scheduling points, so the enumeration starts again.
                self.strategy = None;
            }
        }
        let predicted = self.predicted(executor, &execution);
        let nondeterminism = match &execution.outcome {
            Outcome::Exited(_) if repeat => executor.repeat(&execution, &ask)?,
            _ => None,
        };
        let mut run = Run::new(executor, execution);
        let judged = self.judged(executor, &run)?;
        let matters = run.blocks.ensures() || run.blocks.observes();
        if run.ending.key == Key::Exited(0) && nondeterminism.is_none() && !matters {
            // Replay is not needed for it, and memory is best freed by the thread that allocated it.
            run.schedule = Schedule::default();
        }
        let mut step = Step { run, nondeterminism, judged, tried: Vec::new(), learnt };
        let fails = matches!(step.run.ending.key, Key::Failed(_));
        let violated = step.judged.as_ref().is_some_and(|j| j.verdict.violates());
        if fails || violated || step.nondeterminism.is_some() || predicted.is_empty() {
            return Ok(Some(step));
        }
        let usual = Left::of(&step.run);
        let confirmer = Confirmer {
            seed: derive(self.seed, 0x0d1e_c7ed),
            input,
            releases: self.releases,
            usual: Some(usual),
            judged: JUDGED,
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

    /// Looks for a serial execution that observes the same.
    fn judged<X: Executor<Points = P>>(
        &mut self,
        executor: &mut X,
        run: &Run,
    ) -> Result<Option<Judged>, X::Error> {
        let search = Arc::clone(&self.search);
        let said = &run.blocks.atomic;
        let ended = matches!(run.ending.key, Key::Exited(_)) && said.unclosed.is_empty();
        let asked = search.witness.clone().filter(|_| ended && run.blocks.observes());
        let Some(criterion) = asked else {
            return Ok(None);
        };
        let left = search.schedules.saturating_sub(self.begun);
        let question = Question { criterion, left, points: search.points.clone() };
        judge(executor, (said, &run.schedule), &question, &mut self.serials).map(Some)
    }

    /// The predictions of an execution that this shard has not attempted yet.
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
        let symbols = executor.named(execution);
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
                lead: None,
            };
            predictions.push((finding.clone(), Arc::clone(&symbols), prediction));
        }
        predictions
    }
}

/// What an execution told of pairs of a read and a write, with places that outlive the executor.
fn learnt<X: Executor>(strategy: &mut dyn Strategy, executor: &X) -> Vec<Flip<Site>> {
    let news = strategy.learnt();
    news.iter().map(|flip| flip.map(|&site| executor.place(site))).collect()
}
