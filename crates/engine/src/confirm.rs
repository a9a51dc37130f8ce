//! Directed executions try to make a prediction happen, and show what each order leads to.
//!
//! The order of a race is judged by itself: the execution that reached the race is repeated with the two sides
//! swapped and everything else as it was ([`Turned`]), and the two results are compared with each other. So a
//! program whose result depends on the schedule for another reason does not make every race harmful. (Burnim
//! and Sen, *Asserting and checking determinism*, compare a few runs with each other by chance.) Other
//! findings have no order to swap: their executions are compared with an undisturbed one.
//!
//! Guarantee: a prediction is confirmed only if the strategy itself saw the target's state in an execution
//! and that state was there again when the execution's schedule was replayed. A deadlock is confirmed
//! only if the threads that wait for each other at the end do so at the places that were predicted. Harm counts
//! only if the replay shows it again.

use selvedge_explore::rng::derive;
use selvedge_explore::{
    Abstraction, Cue, Directed, Divergence, Led, Rng, Strategy, Trivial, Turned,
};
use selvedge_model::{FindingId, Kind, Schedule, Site, SiteId, Target};

use crate::ending::{Ending, Key};
use crate::executor::{Ask, Execution, Executor, execute};
use crate::harm::{Harm, Left};
use crate::replay::{Sought, follow};
use crate::run::Run;

/// The number of further executions that look for harm after a target is confirmed.
pub const JUDGED: u64 = 4;

/// A finding that may be made to happen, with what a directed execution needs.
#[derive(Clone, Debug)]
pub struct Prediction<N, P> {
    /// Its identity.
    pub id: FindingId,
    /// What kind of bug it is.
    pub kind: Kind,
    /// The state to aim at.
    pub target: Target<Site>,
    /// The names of the execution that it comes from; without them it is recognised by its sites alone.
    pub names: Option<N>,
    /// The accesses before which threads have to be stopped.
    pub points: P,
    /// The order of steps that is known to lead to the target, if one is. The first attempt follows it.
    pub lead: Option<Lead>,
}

/// Steps that lead to a target, in their order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lead {
    /// The places of the steps, each once.
    pub sites: Vec<Site>,
    /// The steps; their places are numbers of `sites`.
    pub cues: Vec<Cue<usize>>,
}

impl<N, P> Prediction<N, P> {
    /// What an execution must show for the prediction to have happened in it.
    pub fn sought(&self) -> Sought {
        match self.target {
            Target::Deadlock(_) => Sought { failure: Some(self.id), ..Sought::default() },
            Target::Race { .. } | Target::Contention { .. } | Target::Split { .. } => {
                Sought { target: Some(self.target.clone()), ..Sought::default() }
            }
        }
    }

    /// Whether only harm can confirm it: it rests on the guess that two regions belong together, or it is the
    /// order of two acquisitions or atomics, which is no bug by itself.
    pub fn is_suspicion(&self) -> bool {
        matches!(self.target, Target::Split { region: None, .. } | Target::Contention { .. })
    }
}

/// The settings that all attempts share.
#[derive(Clone, Debug)]
pub struct Confirmer {
    /// Seed of the directed strategies.
    pub seed: u64,
    /// Seed of the random numbers that the program draws.
    pub input: u64,
    /// Releasing a lock is a step.
    pub releases: bool,
    /// The results of an undisturbed execution.
    pub usual: Option<Left>,
    /// How many further executions of an attempt that reached the target look for harm.
    pub judged: u64,
}

/// One attempt with its executions.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Trial {
    /// Its executions, the directed one first.
    pub runs: Vec<Run>,
    /// The number of replays besides these executions.
    pub replays: u64,
    /// Its result.
    pub attempt: Attempt,
}

/// The result of an attempt.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub enum Attempt {
    /// The target's state was not reached.
    Missed,
    /// The state was reached, but not in the replay; where the replay diverged, if it did.
    Unstable(Option<Divergence>),
    /// The state was reached, and reached again in the replay.
    Confirmed(Box<Confirmed>),
}

/// A target that was reached.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Confirmed {
    /// The schedule that reaches the target with the most harm that was seen.
    pub schedule: Schedule,
    /// What each order led to.
    pub orders: Vec<Order>,
    /// The most harm that was seen.
    pub harm: Harm,
    /// The value that turning it round changes, if harm is that: the names of its block and of itself.
    pub changes: Option<(Box<str>, Box<str>)>,
}

impl Confirmed {
    /// Takes in what another attempt showed; true if it did more harm.
    pub fn merge(&mut self, other: Confirmed) -> bool {
        let worse = other.harm > self.harm;
        if worse {
            self.schedule = other.schedule;
            self.harm = other.harm;
            self.changes = other.changes;
        }
        other.orders.into_iter().for_each(|order| add(&mut self.orders, order));
        worse
    }
}

/// One order of the parts of a confirmed finding, and what it led to.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Order {
    /// For a race: the name of the thread whose access came first, and the place of the access.
    pub first: Option<(String, Site)>,
    /// How the program ended then.
    pub ending: Ending,
    /// The harm, compared with an undisturbed execution.
    pub harm: Harm,
    /// The schedule that shows it.
    pub schedule: Schedule,
}

impl Order {
    /// The least of several says most: it does the most harm, it fails, and it has the fewest preemptions.
    pub fn rank(&self) -> impl Ord + use<> {
        let passes = self.ending.key == Key::Exited(0);
        (std::cmp::Reverse(self.harm), passes, self.schedule.preemptions())
    }
}

/// One execution that reached the target or tried to.
#[derive(Clone, Debug)]
pub(crate) struct Aimed {
    /// Whether it saw the target's state.
    pub(crate) reached: bool,
    first: Option<(String, Site)>,
    left: Left,
    /// What it did.
    pub(crate) run: Run,
    /// Selected its random numbers.
    seed: u64,
    /// Repeats it with the two sides swapped.
    turned: Option<Turned>,
    harm: Harm,
    /// The value that differs from the execution with the two sides swapped.
    changes: Option<(Box<str>, Box<str>)>,
}

impl Aimed {
    fn order(&self) -> Order {
        Order {
            first: self.first.clone(),
            ending: self.left.ending.clone(),
            harm: self.harm,
            schedule: self.run.schedule.clone(),
        }
    }
}

impl Confirmer {
    /// Makes one attempt at a prediction. `number` and `attempt` select the random numbers.
    pub fn attempt<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        number: u64,
        attempt: u64,
    ) -> Result<Trial, X::Error> {
        let first = self.first(executor, prediction, number, attempt)?;
        self.settle(executor, prediction, first)
    }

    /// The directed execution of an attempt.
    pub(crate) fn first<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        number: u64,
        attempt: u64,
    ) -> Result<Aimed, X::Error> {
        let seed = derive(derive(self.seed ^ 0x7e57, number), attempt);
        let lead = prediction.lead.as_ref().filter(|_| attempt == 0);
        self.aim(executor, prediction, lead, seed)
    }

    /// The rest of an attempt: whether what its directed execution reached is reached again, and what it leads to.
    pub(crate) fn settle<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        first: Aimed,
    ) -> Result<Trial, X::Error> {
        let mut trial = Trial { runs: Vec::new(), replays: 0, attempt: Attempt::Missed };
        if !first.reached {
            trial.runs.push(first.run);
            return Ok(trial);
        }
        trial.replays = 1;
        if let Err(divergence) = self.again(executor, prediction, &first)? {
            trial.runs.push(first.run);
            trial.attempt = Attempt::Unstable(divergence);
            return Ok(trial);
        }
        let seed = first.seed;
        let mut seen = vec![first];
        self.judge(executor, prediction, seed, &mut seen)?;
        // The execution to show is the one that says most, if it replays.
        let reached = (0..seen.len()).filter(|&i| seen[i].reached);
        let worst = reached.min_by_key(|&i| seen[i].order().rank()).unwrap_or(0);
        if seen[worst].harm > Harm::Nothing {
            trial.replays += 1;
            let shown = self.again(executor, prediction, &seen[worst])?;
            let judge = &mut *executor.judge();
            let same = |left: Left| left.differs(&seen[worst].left, judge) == Harm::Nothing;
            if !shown.is_ok_and(same) {
                let harmful = seen.iter_mut().filter(|aimed| aimed.harm > Harm::Nothing);
                harmful.for_each(|aimed| aimed.harm = Harm::Unknown);
            }
        }
        let orders = orders(&seen);
        let harm = orders.iter().map(|o| o.harm).max().unwrap_or(Harm::Unknown);
        let shown = if harm > Harm::Nothing { worst } else { 0 };
        let schedule = seen[shown].run.schedule.clone();
        let changes = seen[shown].changes.clone().filter(|_| harm == Harm::State);
        trial.runs.extend(seen.into_iter().map(|a| a.run));
        trial.attempt = Attempt::Confirmed(Box::new(Confirmed { schedule, orders, harm, changes }));
        Ok(trial)
    }

    fn ask<P: Clone>(&self, points: &P) -> Ask<P> {
        Ask {
            seed: self.input,
            releases: self.releases,
            noted: Default::default(),
            points: points.clone(),
            time: None,
            stars: false,
        }
    }

    fn aim<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        lead: Option<&Lead>,
        seed: u64,
    ) -> Result<Aimed, X::Error> {
        let target = prediction.target.map(|site| executor.site(site));
        let trivial: (&dyn Abstraction, Box<dyn Abstraction>) = (&Trivial, Box::new(Trivial));
        let (then, now) = match &prediction.names {
            Some(names) => (names as &dyn Abstraction, Box::new(executor.names_now()) as Box<_>),
            None => trivial,
        };
        let directed = Directed::new(&target, then, now);
        let lead = lead.cloned().unwrap_or_default();
        let sites: Vec<SiteId> = lead.sites.iter().map(|site| executor.site(site)).collect();
        let cues = lead.cues.iter().map(|cue| cue.map(|&site| sites[site])).collect();
        let mut led = Led::new(directed, cues, target.accesses().into_iter().copied().collect());
        let execution = self.run(executor, prediction, &mut led, seed)?;
        let directed = led.then;
        let first = directed.order().map(|[(thread, site), _]| {
            let symbols = executor.named(&execution);
            (symbols.thread(thread), symbols.site(site))
        });
        let run = Run::new(executor, execution);
        let left = Left::of(&run);
        // In a deadlock, the threads that wait for each other must do so at the predicted places.
        let is_predicted = match prediction.target {
            Target::Deadlock(_) => run.ending.is(prediction.id, None),
            Target::Race { .. } | Target::Contention { .. } | Target::Split { .. } => true,
        };
        let reached = directed.reached() && is_predicted;
        let turned = directed.turned();
        let harm = Harm::Unknown;
        Ok(Aimed { reached, first, left, run, seed, turned, harm, changes: None })
    }

    fn run<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        strategy: &mut dyn Strategy,
        seed: u64,
    ) -> Result<Execution, X::Error> {
        let ask = self.ask(&prediction.points);
        let execution = execute(executor, strategy, Rng::new(seed), &ask)?;
        Ok(execution.expect("a directed strategy always begins"))
    }

    /// Replays the schedule. The results, if it reaches the target again, else where the replay diverged, if it
    /// did.
    #[allow(clippy::type_complexity)] // A result of a result: the replay ran, and it showed the target.
    fn again<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        aimed: &Aimed,
    ) -> Result<Result<Left, Option<Divergence>>, X::Error> {
        let ask = self.ask(&prediction.points);
        let again = follow(executor, &aimed.run.schedule, &prediction.sought(), &ask)?;
        Ok(match again.shown {
            true => {
                let Execution { output, blocks, .. } = &again.execution;
                Ok(Left::new(again.ending, output, blocks))
            }
            false => Err(again.divergence),
        })
    }

    /// Turns a race round, in this execution and in further ones until one does harm. Of other findings, looks
    /// at further executions.
    fn judge<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        seed: u64,
        seen: &mut Vec<Aimed>,
    ) -> Result<(), X::Error> {
        for more in 0..=self.judged {
            if more > 0 && executor.is_usable() {
                seen.push(self.aim(executor, prediction, None, derive(seed, more))?);
            }
            let Some(last) = seen.last_mut().filter(|a| a.reached && executor.is_usable()) else {
                continue;
            };
            match last.turned.take() {
                Some(turned) => {
                    let turned = self.turn(executor, prediction, last, turned)?;
                    seen.extend(turned);
                }
                None => {
                    let usual = self.usual.as_ref();
                    let judge = &mut *executor.judge();
                    let harm = usual.map_or(Harm::Unknown, |usual| last.left.harm(usual, judge));
                    let is_known = harm > Harm::Nothing || last.left.is_sound(usual);
                    last.harm = if is_known { harm } else { Harm::Unknown };
                }
            }
            if seen.iter().any(|aimed| aimed.harm > Harm::Nothing) {
                break;
            }
        }
        Ok(())
    }

    /// Repeats an execution with the two sides of its race swapped, and says which of the two did harm.
    fn turn<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        aimed: &mut Aimed,
        mut turned: Turned,
    ) -> Result<Option<Aimed>, X::Error> {
        let execution = self.run(executor, prediction, &mut turned, self.input)?;
        let Some([(thread, site), _]) = turned.order() else { return Ok(None) };
        let symbols = executor.named(&execution);
        let first = Some((symbols.thread(thread), symbols.site(site)));
        let run = Run::new(executor, execution);
        let left = Left::of(&run);
        let mut other = Aimed {
            reached: true,
            first,
            left,
            run,
            seed: aimed.seed,
            turned: None,
            harm: Harm::Unknown,
            changes: None,
        };
        let judge = &mut *executor.judge();
        let harm = aimed.left.differs(&other.left, judge);
        if harm == Harm::State {
            let changes = aimed.left.blocks.changed(&other.left.blocks, judge);
            (aimed.changes, other.changes) = (changes.clone(), changes);
        }
        let usual = self.usual.as_ref();
        // Two that fail alike say nothing: another finding, or this one once more, may be what they fail of.
        let sound = [&aimed.left, &other.left].map(|left| left.is_sound(usual));
        let harmless = |is_sound: bool, all: bool| match is_sound && all {
            true => Harm::Nothing,
            false => Harm::Unknown,
        };
        let all = harm > Harm::Nothing || sound == [true, true];
        aimed.harm = aimed.harm.max(harmless(sound[0], all));
        other.harm = harmless(sound[1], all);
        if aimed.left.did_it(&other.left, usual, judge) {
            aimed.harm = aimed.harm.max(harm);
        } else if harm > Harm::Nothing {
            other.harm = harm;
        }
        Ok(Some(other))
    }
}

/// Of each order, the execution that says most.
fn orders(seen: &[Aimed]) -> Vec<Order> {
    let mut orders: Vec<Order> = Vec::new();
    let reached = seen.iter().filter(|a| a.reached).map(Aimed::order);
    reached.for_each(|order| add(&mut orders, order));
    orders
}

fn add(orders: &mut Vec<Order>, order: Order) {
    match orders.iter_mut().find(|o| o.first == order.first) {
        None => orders.push(order),
        Some(known) if order.rank() < known.rank() => *known = order,
        Some(_) => {}
    }
}
