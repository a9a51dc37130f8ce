//! Directed executions try to make a prediction happen, and show what each order leads to.
//!
//! Guarantee: a prediction is confirmed only if the strategy itself saw the target's state in an execution
//! and that state was there again when the execution's schedule was replayed. A deadlock is confirmed
//! only if the threads that wait for each other at the end do so at the places that were predicted.

use selvedge_explore::rng::derive;
use selvedge_explore::{Abstraction, Directed, Divergence, Rng, Trivial};
use selvedge_model::{FindingId, Kind, Schedule, Site, Target};

use crate::ending::Ending;
use crate::executor::{Ask, Executor, execute};
use crate::harm::{Harm, Left};
use crate::replay::{Sought, follow};
use crate::run::Run;

/// The number of further executions that look for harm after a target is confirmed.
const JUDGED: u64 = 4;

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
}

impl<N, P> Prediction<N, P> {
    /// What an execution must show for the prediction to have happened in it.
    pub fn sought(&self) -> Sought {
        match self.target {
            Target::Deadlock(_) => Sought { failure: Some(self.id), ..Sought::default() },
            Target::Race { .. } | Target::Split { .. } => {
                Sought { target: Some(self.target.clone()), ..Sought::default() }
            }
        }
    }

    /// Whether only harm can confirm it, because it rests on the guess that two regions belong together.
    pub fn is_suspicion(&self) -> bool {
        matches!(self.target, Target::Split { region: None, .. })
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
}

/// One attempt with its executions.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Its executions, the directed one first.
    pub runs: Vec<Run>,
    /// The number of replays besides these executions.
    pub replays: u64,
    /// Its result.
    pub attempt: Attempt,
}

/// The result of an attempt.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// The target's state was not reached.
    Missed,
    /// The state was reached, but not in the replay; where the replay diverged, if it did.
    Unstable(Option<Divergence>),
    /// The state was reached, and reached again in the replay.
    Confirmed(Box<Confirmed>),
}

/// A target that was reached.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// The schedule that reaches the target with the most harm that was seen.
    pub schedule: Schedule,
    /// What each order led to.
    pub orders: Vec<Order>,
    /// The most harm that was seen.
    pub harm: Harm,
}

/// One order of the parts of a confirmed finding, and what it led to.
#[derive(Clone, Debug)]
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

/// One execution that aims at the target.
struct Aimed {
    reached: bool,
    first: Option<(String, Site)>,
    left: Left,
    run: Run,
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
        let seed = derive(derive(self.seed ^ 0x7e57, number), attempt);
        let first = self.aim(executor, prediction, seed, false)?;
        let mut trial = Trial { runs: Vec::new(), replays: 0, attempt: Attempt::Missed };
        if !first.reached {
            trial.runs.push(first.run);
            return Ok(trial);
        }
        trial.replays = 1;
        if let Some(divergence) = self.unstable(executor, prediction, &first)? {
            trial.runs.push(first.run);
            trial.attempt = Attempt::Unstable(divergence);
            return Ok(trial);
        }
        let mut seen = vec![first];
        self.judge(executor, prediction, seed, &mut seen)?;
        let (orders, harm) = self.orders(&seen);
        // The execution to show is the one with the most harm, if it replays.
        let mut schedule = seen[0].run.schedule.clone();
        let worst = seen.iter().position(|a| a.reached && self.harm(a) == harm);
        if let Some(worst) = worst.filter(|&i| i > 0) {
            trial.replays += 1;
            if self.unstable(executor, prediction, &seen[worst])?.is_none() {
                schedule = seen[worst].run.schedule.clone();
            }
        }
        trial.runs.extend(seen.into_iter().map(|a| a.run));
        trial.attempt = Attempt::Confirmed(Box::new(Confirmed { schedule, orders, harm }));
        Ok(trial)
    }

    fn ask<P: Clone>(&self, points: &P) -> Ask<P> {
        Ask {
            seed: self.input,
            releases: self.releases,
            noted: Default::default(),
            points: points.clone(),
            time: None,
        }
    }

    fn aim<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        seed: u64,
        swapped: bool,
    ) -> Result<Aimed, X::Error> {
        let target = prediction.target.map(|site| executor.site(site));
        let trivial: (&dyn Abstraction, Box<dyn Abstraction>) = (&Trivial, Box::new(Trivial));
        let (then, now) = match &prediction.names {
            Some(names) => (names as &dyn Abstraction, Box::new(executor.names_now()) as Box<_>),
            None => trivial,
        };
        let directed = Directed::new(&target, then, now);
        let mut directed = if swapped { directed.swapped() } else { directed };
        let ask = self.ask(&prediction.points);
        let execution = execute(executor, &mut directed, Rng::new(seed), &ask)?
            .expect("a directed strategy always begins");
        let first = directed.order().map(|[(thread, site), _]| {
            let symbols = executor.named(&execution);
            (symbols.thread(thread), symbols.site(site))
        });
        let run = Run::new(executor, execution);
        let left = Left::new(run.ending.clone(), &run.output);
        // In a deadlock, the threads that wait for each other must do so at the predicted places.
        let is_predicted = match prediction.target {
            Target::Deadlock(_) => run.ending.is(prediction.id, None),
            Target::Race { .. } | Target::Split { .. } => true,
        };
        Ok(Aimed { reached: directed.reached() && is_predicted, first, left, run })
    }

    /// Replays the schedule. `None` if it reaches the target again, else where the replay diverged, if it did.
    fn unstable<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        aimed: &Aimed,
    ) -> Result<Option<Option<Divergence>>, X::Error> {
        let ask = self.ask(&prediction.points);
        let again = follow(executor, &aimed.run.schedule, &prediction.sought(), &ask)?;
        Ok((!again.shown).then_some(again.divergence))
    }

    /// Looks at the other order of a race, and at further executions until one does harm.
    fn judge<X: Executor>(
        &self,
        executor: &mut X,
        prediction: &Prediction<X::Names, X::Points>,
        seed: u64,
        seen: &mut Vec<Aimed>,
    ) -> Result<(), X::Error> {
        let orders: &[bool] = if matches!(prediction.target, Target::Race { .. }) {
            &[false, true]
        } else {
            &[false]
        };
        for more in 0..=JUDGED {
            for &swapped in orders {
                let is_known = more == 0 && !swapped;
                if is_known || !executor.is_usable() {
                    continue;
                }
                let seed = if more == 0 { seed } else { derive(seed, more) };
                seen.push(self.aim(executor, prediction, seed, swapped)?);
            }
            if self.orders(seen).1 > Harm::Nothing {
                break;
            }
        }
        Ok(())
    }

    fn harm(&self, aimed: &Aimed) -> Harm {
        self.usual.as_ref().map_or(Harm::Nothing, |usual| aimed.left.harm(usual))
    }

    /// The worst result of each order, and the worst harm of all orders.
    fn orders(&self, seen: &[Aimed]) -> (Vec<Order>, Harm) {
        let mut orders: Vec<Order> = Vec::new();
        for aimed in seen.iter().filter(|a| a.reached) {
            let order = Order {
                first: aimed.first.clone(),
                ending: aimed.left.ending.clone(),
                harm: self.harm(aimed),
                schedule: aimed.run.schedule.clone(),
            };
            match orders.iter_mut().find(|o| o.first == order.first) {
                None => orders.push(order),
                Some(known) if known.harm < order.harm => *known = order,
                Some(_) => {}
            }
        }
        let worst = orders.iter().map(|o| o.harm).max().unwrap_or(Harm::Nothing);
        (orders, worst)
    }
}
