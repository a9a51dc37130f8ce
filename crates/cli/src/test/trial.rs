//! One directed execution, and if it reaches its target, what each order leads to.
//!
//! Guarantee: a trial is confirmed only if the strategy itself saw the target's state in an execution
//! and saw it again when that execution's schedule was replayed. A deadlock is confirmed only if the
//! threads that wait for each other at the end do so at the places that were predicted.

use std::sync::Arc;

use selvedge_explore::deadlocks::Trivial;
use selvedge_explore::rng::derive;
use selvedge_explore::{Abstraction, Directed};
use selvedge_model::{Kind, Schedule, Site, Target};
use selvedge_report::{Harm, NotReplayed, Order, Which};
use selvedge_runtime::Execution;

use super::verdict::Result as Left;
use crate::control::ending::Ending;
use crate::control::lanes::Done;
use crate::control::observe::Prediction;
use crate::control::stage::Stage;
use crate::exit::Failure;
use crate::replay;

/// Further executions that look for harm once a target is confirmed.
const JUDGED: u64 = 4;

/// What all trials have in common.
pub(super) struct Court {
    pub(super) seed: u64,
    /// Releasing a lock is a step.
    pub(super) releases: bool,
    /// What an undisturbed execution leaves behind.
    pub(super) usual: Option<Left>,
}

/// What became of a trial.
pub(super) struct Trial {
    /// Its executions, the attempt first.
    pub(super) runs: Vec<Done>,
    /// Executions besides, which are replays.
    pub(super) replays: u64,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    Missed,
    /// The target was reached, but the replay did not show it.
    Unstable(NotReplayed),
    Confirmed(Box<Confirmed>),
}

/// A target that was reached.
pub(super) struct Confirmed {
    /// Shows it, and the most harm that was seen.
    pub(super) schedule: Schedule,
    /// What each order led to.
    pub(super) orders: Vec<Order>,
    pub(super) harm: Harm,
}

/// One execution that aims at the target.
struct Aimed {
    reached: bool,
    /// Which order was taken.
    which: Which,
    left: Left,
    schedule: Schedule,
    done: Done,
}

impl Court {
    /// The attempt of the given number at a prediction.
    pub(super) fn hold(
        &self,
        stage: &mut Stage,
        prediction: &Prediction,
        number: u64,
        attempt: u64,
    ) -> Result<Trial, Failure> {
        stage.watch(&prediction.watched)?;
        let seed = derive(derive(self.seed ^ 0x7e57, number), attempt);
        let first = self.aim(stage, prediction, seed, false)?;
        let mut trial = Trial { runs: Vec::new(), replays: 0, outcome: Outcome::Missed };
        if !first.reached {
            trial.runs.push(first.done);
            return Ok(trial);
        }
        trial.replays = 1;
        if let Err(why) = again(stage, prediction, &first)? {
            trial.runs.push(first.done);
            trial.outcome = Outcome::Unstable(why);
            return Ok(trial);
        }
        let mut seen = vec![first];
        self.judge(stage, prediction, seed, &mut seen)?;
        let (orders, harm) = self.orders(&seen);
        // The execution to show is the one that did the most harm, if it can be had again.
        let mut schedule = seen[0].schedule.clone();
        let worst = seen.iter().position(|a| a.reached && self.harm(a) == harm);
        if let Some(worst) = worst.filter(|&i| i > 0) {
            trial.replays += 1;
            if again(stage, prediction, &seen[worst])?.is_ok() {
                schedule = seen[worst].schedule.clone();
            }
        }
        trial.runs.extend(seen.into_iter().map(|a| a.done));
        trial.outcome = Outcome::Confirmed(Box::new(Confirmed { schedule, orders, harm }));
        Ok(trial)
    }

    fn aim(
        &self,
        stage: &mut Stage,
        prediction: &Prediction,
        seed: u64,
        swapped: bool,
    ) -> Result<Aimed, Failure> {
        let target = prediction.finding.target.as_ref().expect("predictions have targets");
        stage.controlled.releases = self.releases;
        let now = stage.controlled.names();
        // Without the names of its execution, a target is recognised by its sites alone.
        match &prediction.names {
            Some(names) => {
                let directed = Directed::new(target, names, now, seed, 1);
                run(stage, directed, swapped, prediction)
            }
            None => {
                run(stage, Directed::new(target, &Trivial, Trivial, seed, 1), swapped, prediction)
            }
        }
    }

    /// Looks at the other order of a race, and at further executions until one does harm.
    fn judge(
        &self,
        stage: &mut Stage,
        prediction: &Prediction,
        seed: u64,
        seen: &mut Vec<Aimed>,
    ) -> Result<(), Failure> {
        let is_race = prediction.finding.kind == Kind::DataRace;
        for more in 0..=JUDGED {
            for swapped in [false, true] {
                let known = more == 0 && !swapped;
                if known || swapped && !is_race {
                    continue;
                }
                let seed = if more == 0 { seed } else { derive(seed, more) };
                let aimed = self.aim(stage, prediction, seed, swapped)?;
                seen.push(aimed);
            }
            let (_, harm) = self.orders(seen);
            if harm > Harm::Nothing {
                break;
            }
        }
        Ok(())
    }

    fn harm(&self, aimed: &Aimed) -> Harm {
        self.usual.as_ref().map_or(Harm::Nothing, |usual| aimed.left.harm(usual))
    }

    /// What each order led to at worst, and the worst of all.
    fn orders(&self, seen: &[Aimed]) -> (Vec<Order>, Harm) {
        let mut orders: Vec<Order> = Vec::new();
        for aimed in seen.iter().filter(|a| a.reached) {
            let harm = self.harm(aimed);
            let order = Order {
                which: aimed.which.clone(),
                harm,
                outcome: aimed.left.ending.outcome(),
                schedule: aimed.schedule.to_string(),
            };
            match orders.iter_mut().find(|o| o.which == order.which) {
                None => orders.push(order),
                Some(known) if known.harm < harm => *known = order,
                Some(_) => {}
            }
        }
        let worst = orders.iter().map(|o| o.harm).max().unwrap_or(Harm::Nothing);
        (orders, worst)
    }
}

fn run<A: Abstraction>(
    stage: &mut Stage,
    directed: Directed<A>,
    swapped: bool,
    prediction: &Prediction,
) -> Result<Aimed, Failure> {
    let mut directed = if swapped { directed.swapped() } else { directed };
    let execution = stage.controlled.run(&mut directed)?;
    let execution = execution.ok_or(selvedge_runtime::Error::NotControlled)?;
    let symbols = stage.controlled.named(&execution.events);
    let which = match directed.order() {
        Some([(thread, site), _]) => {
            Which::First { thread: symbols.thread(thread), site: symbols.site(site) }
        }
        None => Which::Only,
    };
    let Execution { schedule, stdout, .. } = &execution;
    let (schedule, stdout) = (schedule.clone(), stdout.clone());
    let done = Done::new(stage, execution);
    let left = Left::new(done.ending.clone(), &stdout);
    let reached = directed.reached() && is_predicted(&done.ending, prediction);
    Ok(Aimed { reached, which, left, schedule, done })
}

/// Whether an execution that was in the target's state shows the prediction: of a deadlock, that the
/// threads that wait for each other are those of the prediction.
fn is_predicted(ending: &Ending, prediction: &Prediction) -> bool {
    match prediction.finding.target {
        Some(Target::Deadlock(_)) => {
            matches!(ending, Ending::Failed(fault) if fault.id == prediction.reported.id)
        }
        _ => true,
    }
}

/// Whether the schedule shows it once more; if not, why.
fn again(
    stage: &mut Stage,
    prediction: &Prediction,
    aimed: &Aimed,
) -> Result<Result<(), NotReplayed>, Failure> {
    let (witnessed, divergence) = match aim_of(stage, prediction) {
        Some(aim) => {
            let (_, divergence, witnessed) = replay::watched(stage, &aimed.schedule, &aim)?;
            (witnessed, divergence)
        }
        None => {
            let (execution, divergence) = stage.controlled.replay(&aimed.schedule)?;
            let done = Done::new(stage, execution);
            (is_predicted(&done.ending, prediction), divergence)
        }
    };
    Ok(match witnessed {
        true => Ok(()),
        false => Err(NotReplayed::Once { diverged: divergence.map(|d| d.to_string()) }),
    })
}

/// The target in terms that outlive the execution; nothing for a deadlock, which shows by itself.
fn aim_of(stage: &Stage, prediction: &Prediction) -> Option<Target<Site>> {
    let target = prediction.finding.target.as_ref()?;
    let aim = target.map(|&id| stage.controlled.symbols.site(id));
    (!matches!(aim, Target::Deadlock(_))).then_some(aim)
}

/// Shared by those who hold trials.
pub(super) type SharedCourt = Arc<Court>;
