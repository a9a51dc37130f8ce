//! The whole search for bugs of one program: observe, predict, confirm, judge, explore.
//!
//! Attempts to confirm predictions and undirected executions take turns from the beginning ([`crate::turns`]), so
//! that neither waits for the other: a bug that no prediction names is found as early as one that is predicted.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use selvedge_explore::{Coverage, Divergence, Flip, learn};
use selvedge_model::{FindingId, Schedule, Site, Status, Target, Uncontrolled, Verdict};
use selvedge_specs::NoCallbacks;

use crate::blocks::Blocks;
use crate::confirm::{Attempt, Confirmed, Order, Prediction, Trial};
use crate::deal::Deal;
use crate::determinism::{Determinism, InMemory, Violation};
use crate::ending::{Ending, Key};
use crate::executor::{Ask, Executor, Factory, Heartbeat, Nondeterminism, Noted, Points};
use crate::failures::{Failures, Found};
use crate::harm::Harm;
use crate::linearity::Linearity;
use crate::observe::Observation;
use crate::ranks::Crew;
use crate::replay::{Effort, Replayed, Sought, follow, shortened, unforced};
use crate::run::Run;
use crate::search::Search;
use crate::shards::{Alone, Error, Halt, Others};
use crate::turns::{self, Aims, Past, Turn};
use crate::witness::Judged;

/// If the first executions, this many, do not end, the campaign gives up.
const HOPELESS: u64 = 3;

/// The limits of a campaign.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Seed of all random choices.
    pub seed: u64,
    /// The largest number of executions.
    pub schedules: u64,
    /// The largest number of executions at the same time.
    pub jobs: usize,
    /// The largest number of directed executions for one prediction.
    pub attempts: u64,
}

/// Receives results while the campaign runs, and can stop it.
pub trait Host<P> {
    /// Whether to stop, because of the time limit or because the user wants to.
    fn is_over(&self) -> bool;
    /// The prediction `index` was attempted once more.
    fn attempted(&mut self, index: usize, attempted: &Attempted);
    /// A failure turned out to depend on the schedule. Called once for each failure.
    fn found(&mut self, found: &Found<P>);
    /// Two executions of a deterministic block differ. Called once for each violation, before it is replayed.
    fn violated(&mut self, violation: &Violation<P>) {
        let _ = violation;
    }
    /// The numbers of executions and findings so far.
    fn progress(&mut self, executions: u64, found: usize);
    /// What a later campaign has to know of this one. Called after each turn.
    fn learnt(&mut self, so_far: &SoFar<'_>) {
        let _ = so_far;
    }
}

/// What a campaign has taught so far.
#[derive(Clone, Copy, Debug)]
pub struct SoFar<'a> {
    /// Executions.
    pub executions: u64,
    /// What they have told of pairs of a read and a write.
    pub learnt: &'a [Flip<Site>],
    /// The results for each prediction.
    pub attempted: &'a [Attempted],
}

/// The results of the attempts at a prediction so far.
#[derive(Clone, Debug, Default)]
pub struct Attempted {
    /// Attempts that were made.
    pub attempts: u64,
    /// The target was reached, but the replay did not reach it; where the replay diverged, if it did.
    pub unstable: Option<Option<Divergence>>,
    /// It happened.
    pub confirmed: Option<Confirmed>,
    /// The number of the campaign's execution that confirmed it.
    pub after: Option<u64>,
    /// What a later campaign has to know of the attempts.
    pub past: Past,
    /// The number of the execution that reached the target, while the rest of its attempt is not made.
    reached: Option<u64>,
}

impl Attempted {
    /// The status of a prediction that had the status `before`.
    pub fn status<N, P>(&self, prediction: &Prediction<N, P>, before: Status) -> Status {
        match &self.confirmed {
            // That two regions belong together is a suspicion, and only harm confirms it.
            Some(c) if prediction.is_suspicion() && c.harm <= Harm::Nothing => Status::Unconfirmed,
            Some(_) => Status::Confirmed,
            None if before == Status::Predicted && self.attempts > 0 => Status::Unconfirmed,
            None => before,
        }
    }

    /// Whether it is harmful, if it happened.
    pub fn verdict(&self) -> Option<Verdict> {
        self.confirmed.as_ref().and_then(|c| c.harm.verdict())
    }
}

/// The undirected part of a campaign.
pub struct Undirected<P> {
    /// The strategy, and what to search with it.
    pub search: Search<P>,
    /// Stop at the first failure, or when a prediction is confirmed that does harm.
    pub until_failure: bool,
    /// Failures that are confirmed already, and need not be found again.
    pub known: Vec<FindingId>,
}

/// A search for the bugs of one program.
pub struct Campaign<F: Factory> {
    /// Makes the executors.
    pub factory: Arc<F>,
    /// How much it may use.
    pub budget: Budget,
    /// How executions ended.
    pub failures: Failures<PointsOf<F>>,
    /// Executions that `failures` does not count: observed ones and replays.
    pub besides: u64,
    /// What was not under control, each once.
    pub uncontrolled: Vec<Uncontrolled>,
    /// A difference between two executions of the same schedule, if one was seen.
    pub nondeterminism: Option<Nondeterminism>,
    /// What executions say of their deterministic blocks.
    pub determinism: Determinism<PointsOf<F>>,
    /// What executions say of their atomic blocks.
    pub linearity: Linearity<PointsOf<F>>,
    /// The processes that share the campaign.
    pub crew: Crew,
    /// What has to be the same in all of them, besides predictions and settings.
    pub identity: String,
    /// What executions have told of pairs of a read and a write.
    pub learnt: Vec<Flip<Site>>,
    /// How many violations the host knows.
    told: usize,
}

/// The scheduling points of a factory's executors.
pub type PointsOf<F> = <<F as Factory>::Executor as Executor>::Points;
/// The names of a factory's executors.
pub type NamesOf<F> = <<F as Factory>::Executor as Executor>::Names;
/// A prediction for a factory's executors.
pub type PredictionOf<F> = Prediction<NamesOf<F>, PointsOf<F>>;

/// Why a campaign ended without an answer.
#[derive(Debug)]
pub enum Problem<E> {
    /// An execution could not be run, or stalled.
    Halt(Halt<E>),
    /// No execution ended within its limits.
    Endless,
}

impl<E> From<Halt<E>> for Problem<E> {
    fn from(halt: Halt<E>) -> Problem<E> {
        Problem::Halt(halt)
    }
}

impl<F: Factory> Campaign<F> {
    /// A campaign that has not begun.
    pub fn new(factory: Arc<F>, budget: Budget) -> Campaign<F> {
        Campaign {
            factory,
            budget,
            failures: Failures::default(),
            besides: 0,
            uncontrolled: Vec::new(),
            nondeterminism: None,
            determinism: Determinism::new(Box::<InMemory>::default(), Box::new(NoCallbacks)),
            linearity: Linearity::default(),
            crew: Crew::default(),
            identity: String::new(),
            learnt: Vec::new(),
            told: 0,
        }
    }

    /// Executions so far.
    pub fn executions(&self) -> u64 {
        self.besides + self.failures.executions()
    }

    /// Whether an execution ended, or no execution was tried.
    pub fn has_ended(&self) -> bool {
        self.failures.executions() == 0 || !self.failures.never_ends()
    }

    /// Makes an executor on this thread.
    pub fn executor(&self) -> Result<F::Executor, Error<F>> {
        self.factory.make(Heartbeat::default())
    }

    /// Counts an execution and returns its number, from 1.
    pub fn count(&mut self, run: &Run, points: &PointsOf<F>) -> u64 {
        for what in &run.uncontrolled {
            if !self.uncontrolled.contains(what) {
                self.uncontrolled.push(what.clone());
            }
        }
        let number = self.executions() + 1;
        self.failures.add(number, &run.ending, &run.schedule, points);
        let said = (&*run.blocks, run.ending.key);
        self.determinism.add(number, said, (&run.schedule, points));
        self.linearity.add(number, said, None, (&run.schedule, points));
        number
    }

    /// Takes in how an execution was judged. The serial executions that this took count as executions.
    fn judged(
        &mut self,
        number: u64,
        said: (&Blocks, Key),
        judged: Judged,
        at: (&Schedule, &PointsOf<F>),
    ) {
        self.besides += judged.executions;
        self.linearity.add(number, said, Some(judged), at);
    }

    /// Tells the host of violations that are new.
    fn tell(&mut self, host: &mut dyn Host<PointsOf<F>>) {
        self.determinism.violations.iter().skip(self.told).for_each(|v| host.violated(v));
        self.told = self.determinism.violations.len();
    }

    /// Counts the observed executions like all others: what they show happened.
    pub fn count_observed(&mut self, observation: &Observation<F::Executor>) {
        for (run, points) in &observation.runs {
            self.count(run, points);
        }
    }

    fn take(
        &mut self,
        attempted: &mut Attempted,
        (number, trial): (u64, Trial),
        points: &PointsOf<F>,
    ) {
        attempted.past.made = attempted.past.made.max(number + 1);
        let first = match attempted.reached.take() {
            Some(first) => first,
            None => {
                attempted.attempts += 1;
                self.count(&trial.runs[0], points)
            }
        };
        for run in &trial.runs[1..] {
            self.count(run, points);
        }
        self.besides += trial.replays;
        match trial.attempt {
            Attempt::Missed => {}
            Attempt::Unstable(divergence) => attempted.unstable = Some(divergence),
            Attempt::Confirmed(confirmed) => {
                let more = match &mut attempted.confirmed {
                    Some(known) => known.merge(*confirmed),
                    None => {
                        attempted.confirmed = Some(*confirmed);
                        true
                    }
                };
                if more {
                    attempted.after = Some(first);
                    attempted.past.confirmed = Some(number);
                }
            }
        }
    }

    /// Follows schedules that failed earlier, perhaps in another build of the program. What happens counts like what
    /// happens in all other executions.
    pub fn follow_again(
        &mut self,
        earlier: &[(Schedule, PointsOf<F>)],
        host: &mut dyn Host<PointsOf<F>>,
    ) -> Result<(), Error<F>> {
        if earlier.is_empty() {
            return Ok(());
        }
        let mut executor = self.executor()?;
        for (schedule, points) in earlier {
            if host.is_over() || self.executions() >= self.budget.schedules {
                break;
            }
            if !executor.is_usable() {
                executor = self.executor()?;
            }
            let ask = Ask { points: points.clone(), ..Ask::default() };
            let again = follow(&mut executor, schedule, &Sought::default(), &ask)?;
            let run = Run::new(&mut executor, again.execution);
            self.count(&run, points);
            host.progress(self.executions(), self.found(&[]).len());
        }
        Ok(())
    }

    /// Runs undirected executions, after a first one in which no thread is stopped before it blocks.
    pub fn explore(
        &mut self,
        undirected: Undirected<PointsOf<F>>,
        host: &mut dyn Host<PointsOf<F>>,
    ) -> Result<Coverage, Problem<Error<F>>> {
        let first = self.first(&undirected.search).map_err(Halt::Failed)?;
        let mut watch = Watch::new(&undirected);
        if watch.take(self, &first, None, host).is_break() {
            return if watch.hopeless { Err(Problem::Endless) } else { Ok(Coverage::default()) };
        }
        self.search(None, &mut Vec::new(), undirected.search, watch, host)
    }

    /// Tries to confirm all predictions, in turn with undirected executions, until the budget is used up. The
    /// results for each prediction are in `attempted`, also if this ends with a problem.
    pub fn hunt(
        &mut self,
        aims: Aims<NamesOf<F>, PointsOf<F>>,
        attempted: &mut Vec<Attempted>,
        undirected: Undirected<PointsOf<F>>,
        host: &mut dyn Host<PointsOf<F>>,
    ) -> Result<Coverage, Problem<Error<F>>> {
        attempted.resize_with(aims.predictions.len(), Attempted::default);
        attempted.iter_mut().zip(&aims.past).for_each(|(attempted, past)| attempted.past = *past);
        let watch = Watch::new(&undirected);
        self.search(Some(aims), attempted, undirected.search, watch, host)
    }

    fn search(
        &mut self,
        aims: Option<Aims<NamesOf<F>, PointsOf<F>>>,
        attempted: &mut [Attempted],
        search: Search<PointsOf<F>>,
        mut watch: Watch<PointsOf<F>>,
        host: &mut dyn Host<PointsOf<F>>,
    ) -> Result<Coverage, Problem<Error<F>>> {
        let (factory, most) = (Arc::clone(&self.factory), self.budget.schedules);
        let predictions = aims.as_ref().map(|a| Arc::clone(&a.predictions)).unwrap_or_default();
        let is_directed = aims.is_some();
        let host = RefCell::new(host);
        let mut crew = self.begin(&search, aims.as_ref());
        let searched = turns::run(
            &factory,
            search,
            (aims, self.budget.attempts),
            others(&mut crew, &mut Alone),
            || host.borrow().is_over(),
            |done| {
                let host = &mut **host.borrow_mut();
                let flow = match done {
                    Turn::Searched(step) => {
                        learn(&mut self.learnt, step.learnt);
                        watch.take(self, &step.run, step.judged, host)
                    }
                    Turn::Reached(index, run) => {
                        let number = self.count(&run, &predictions[index].points);
                        attempted[index].attempts += 1;
                        attempted[index].reached = Some(number);
                        watch.look(self, host)
                    }
                    Turn::Tried(index, number, trial) => {
                        let prediction = &predictions[index];
                        self.take(&mut attempted[index], (number, trial), &prediction.points);
                        host.attempted(index, &attempted[index]);
                        if attempted[index].status(prediction, Status::Predicted)
                            == Status::Confirmed
                        {
                            watch.know(prediction.id);
                            watch.harmful |= attempted[index].verdict() == Some(Verdict::Harmful)
                                || matches!(prediction.target, Target::Deadlock(_));
                        }
                        watch.look(self, host)
                    }
                };
                let executions = self.executions();
                host.learnt(&SoFar { executions, learnt: &self.learnt, attempted });
                // An attempt may take more than one execution.
                let spent = is_directed && executions >= most;
                if spent { ControlFlow::Break(()) } else { flow }
            },
        );
        if let Crew::Head(head) = &mut crew {
            head.over();
        }
        self.crew = crew;
        let searched = searched?;
        if watch.hopeless { Err(Problem::Endless) } else { Ok(searched.coverage) }
    }

    /// The processes that share the campaign, when a search begins.
    fn begin(
        &mut self,
        search: &Search<PointsOf<F>>,
        aims: Option<&Aims<NamesOf<F>, PointsOf<F>>>,
    ) -> Crew {
        let mut crew = std::mem::take(&mut self.crew);
        let identity = || turns::identity(search, aims, (self.budget.attempts, &self.identity));
        match &mut crew {
            Crew::Alone => {}
            Crew::Head(head) => head.begin(identity(), search.deal(Deal::many)),
            Crew::Member(member) => member.begin(identity(), search.deal(Deal::many)),
        }
        crew
    }

    /// Runs the numbers that are this process's, as a member of a campaign that another one holds. Ends when the other
    /// one needs no more, or when `stop` returns true.
    pub fn serve(
        &mut self,
        aims: Option<Aims<NamesOf<F>, PointsOf<F>>>,
        search: Search<PointsOf<F>>,
        stop: impl Fn() -> bool,
    ) -> Result<(), Halt<Error<F>>> {
        let mut crew = self.begin(&search, aims.as_ref());
        let (factory, attempts) = (Arc::clone(&self.factory), self.budget.attempts);
        let served = turns::run(
            &factory,
            search,
            (aims, attempts),
            others(&mut crew, &mut Alone),
            &stop,
            |_| ControlFlow::Continue(()),
        );
        if let Crew::Member(member) = &mut crew {
            member.over(served.is_ok() && !stop());
        }
        self.crew = crew;
        served.map(drop)
    }

    /// Checks that an execution can be repeated. The executions that this takes look for nothing, and do not count.
    pub fn check_repeats(&mut self, search: &Search<PointsOf<F>>) -> Result<(), Error<F>> {
        self.first(search).map(drop)
    }

    /// Runs the execution in which no thread is stopped before it blocks, and checks that it can be repeated.
    fn first(&mut self, search: &Search<PointsOf<F>>) -> Result<Run, Error<F>> {
        let mut executor = self.executor()?;
        let ask = Ask {
            seed: search.seed,
            releases: search.releases,
            noted: Noted::Events,
            points: search.points.clone(),
            time: None,
            stars: false,
        };
        let execution = unforced(&mut executor, &ask)?;
        if search.repeat {
            self.nondeterminism = executor.repeat(&execution, &ask)?;
        }
        Ok(Run::new(&mut executor, execution))
    }

    /// The failures that depend on the schedule and are not known from elsewhere.
    pub fn found(&self, known: &[FindingId]) -> Vec<Found<PointsOf<F>>> {
        let mut found = self.failures.found();
        found.retain(|f| !known.contains(&f.id));
        found
    }

    /// Replays the schedule of a failure. If the failure happens again, looks for a shorter schedule.
    pub fn settle(
        &self,
        executor: &mut F::Executor,
        found: &Found<PointsOf<F>>,
        effort: Effort,
    ) -> Result<Settled, Error<F>> {
        let sought = Sought {
            failure: Some(found.id),
            usual_exit: self.failures.usual_exit(),
            ..Sought::default()
        };
        let ask =
            Ask { noted: Noted::Events, points: found.times.points.clone(), ..Ask::default() };
        let schedule = &found.times.schedule;
        if let Some(shown) = shortened(executor, schedule, &sought, effort, &ask)? {
            return Ok(Settled::Shown(Box::new(shown)));
        }
        let again = follow(executor, schedule, &sought, &ask)?;
        Ok(if again.shown {
            Settled::Shown(Box::new(again))
        } else {
            Settled::Otherwise(Box::new(again.ending), again.divergence)
        })
    }
}

/// The other processes of a campaign.
fn others<'a>(crew: &'a mut Crew, alone: &'a mut Alone) -> &'a mut dyn Others<Turn> {
    match crew {
        Crew::Alone => alone,
        Crew::Head(head) => &mut **head,
        Crew::Member(member) => &mut **member,
    }
}

/// Looks at what a campaign has shown after each execution, and says when it is enough.
struct Watch<P> {
    points: P,
    until_failure: bool,
    /// Failures that are confirmed already.
    known: Vec<FindingId>,
    /// Failures that the host knows.
    told: Vec<FindingId>,
    /// A prediction was confirmed that does harm.
    harmful: bool,
    /// No execution ends.
    hopeless: bool,
}

impl<P: Points> Watch<P> {
    fn new(undirected: &Undirected<P>) -> Watch<P> {
        Watch {
            points: undirected.search.points.clone(),
            until_failure: undirected.until_failure,
            known: undirected.known.clone(),
            told: Vec::new(),
            harmful: false,
            hopeless: false,
        }
    }

    fn know(&mut self, id: FindingId) {
        if !self.known.contains(&id) {
            self.known.push(id);
        }
    }

    /// Counts an undirected execution.
    fn take<F: Factory>(
        &mut self,
        campaign: &mut Campaign<F>,
        run: &Run,
        judged: Option<Judged>,
        host: &mut dyn Host<P>,
    ) -> ControlFlow<()>
    where
        F::Executor: Executor<Points = P>,
    {
        let number = campaign.count(run, &self.points);
        if let Some(judged) = judged {
            let said = (&*run.blocks, run.ending.key);
            campaign.judged(number, said, judged, (&run.schedule, &self.points));
        }
        self.look(campaign, host)
    }

    fn look<F: Factory>(
        &mut self,
        campaign: &mut Campaign<F>,
        host: &mut dyn Host<P>,
    ) -> ControlFlow<()>
    where
        F::Executor: Executor<Points = P>,
    {
        let found = campaign.found(&self.known);
        for new in found.iter().filter(|f| !self.told.contains(&f.id)) {
            host.found(new);
        }
        self.told = found.iter().map(|f| f.id).collect();
        campaign.tell(host);
        let Campaign { determinism, linearity, failures, .. } = campaign;
        let violations = determinism.violations.len() + linearity.violations.len();
        let wrong = determinism.wrong.is_some() || linearity.wrong.is_some();
        self.hopeless = failures.executions() >= HOPELESS && failures.never_ends();
        host.progress(campaign.executions(), found.len() + violations + self.known.len());
        let failed = !found.is_empty() || violations > 0 || self.harmful;
        let enough = self.until_failure && failed || wrong;
        if enough || self.hopeless { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// What replaying the schedule of a failure led to.
#[derive(Debug)]
pub enum Settled {
    /// It happened again, by this schedule.
    Shown(Box<Replayed>),
    /// Something else happened, and where the schedule could not be followed.
    Otherwise(Box<Ending>, Option<Divergence>),
}

/// Follows the schedule that shows a confirmed prediction with the most harm, after making it shorter. `None`
/// if no schedule shows it any more.
pub fn explain<X: Executor>(
    executor: &mut X,
    prediction: &Prediction<X::Names, X::Points>,
    confirmed: &Confirmed,
    effort: Effort,
) -> Result<Option<Replayed>, X::Error> {
    let ask = Ask { noted: Noted::Events, points: prediction.points.clone(), ..Ask::default() };
    let sought = Sought { same_result: confirmed.harm > Harm::Nothing, ..prediction.sought() };
    let mut orders: Vec<&Order> = confirmed.orders.iter().collect();
    orders.sort_by_key(|order| order.rank());
    let schedules = orders.into_iter().map(|o| &o.schedule);
    for schedule in std::iter::once(&confirmed.schedule).chain(schedules) {
        if let Some(shown) = shortened(executor, schedule, &sought, effort, &ask)? {
            return Ok(Some(shown));
        }
    }
    Ok(None)
}
