//! One directed execution, and if it reaches its target, what each order leads to.
//!
//! Guarantee: a trial is confirmed only if the strategy itself saw the target's state in an execution
//! and saw it again when that execution's schedule was replayed. A deadlock is confirmed only if the
//! threads that wait for each other at the end do so at the places that were predicted.

use std::sync::Arc;

use selvedge_explore::rng::derive;
use selvedge_explore::{Abstraction, Directed, Rng, Strategy, Trivial};
use selvedge_model::{Kind, Schedule, Target};
use selvedge_runtime::Execution;

use super::verdict::{Harm, Result as Left};
use crate::control::ending::Ending;
use crate::control::lanes::Done;
use crate::control::observe::Prediction;
use crate::control::stage::Stage;
use crate::exit::Failure;
use crate::replay;
use crate::report::{Aim, Order};

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
    Unstable(String),
    Confirmed(Box<Confirmed>),
}

/// A target that was reached.
pub(super) struct Confirmed {
    /// Shows it, and the most harm that was seen.
    pub(super) schedule: Schedule,
    /// What each order led to.
    pub(super) orders: Vec<Order>,
    pub(super) harm: Harm,
    pub(super) aim: Option<Aim>,
}

/// One execution that aims at the target.
struct Aimed {
    reached: bool,
    /// Which order was taken, in words.
    order: String,
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
        let aim = aim_of(stage, prediction);
        trial.outcome = Outcome::Confirmed(Box::new(Confirmed { schedule, orders, harm, aim }));
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
                let directed = Directed::new(target, names, now);
                run(stage, directed, seed, swapped, prediction)
            }
            None => {
                let directed = Directed::new(target, &Trivial, Trivial);
                run(stage, directed, seed, swapped, prediction)
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
        let mut orders: Vec<(Harm, Order)> = Vec::new();
        for aimed in seen.iter().filter(|a| a.reached) {
            let harm = self.harm(aimed);
            let order = Order {
                order: aimed.order.clone(),
                outcome: aimed.left.words(harm),
                schedule: aimed.schedule.to_string(),
            };
            match orders.iter_mut().find(|(_, o)| o.order == order.order) {
                None => orders.push((harm, order)),
                Some(known) if known.0 < harm => *known = (harm, order),
                Some(_) => {}
            }
        }
        let worst = orders.iter().map(|(h, _)| *h).max().unwrap_or(Harm::Nothing);
        (orders.into_iter().map(|(_, o)| o).collect(), worst)
    }
}

fn run<A: Abstraction>(
    stage: &mut Stage,
    directed: Directed<A>,
    seed: u64,
    swapped: bool,
    prediction: &Prediction,
) -> Result<Aimed, Failure> {
    let mut directed = if swapped { directed.swapped() } else { directed };
    directed.begin(Rng::of_execution(seed, 0));
    let execution = stage.controlled.run(&mut directed)?;
    let symbols = stage.controlled.named(&execution.events);
    let order = match directed.order() {
        Some([(thread, site), _]) => {
            format!("thread {} first, at {}", symbols.thread(thread), symbols.site(site))
        }
        None => "when it happens".to_owned(),
    };
    let Execution { schedule, stdout, .. } = &execution;
    let (schedule, stdout) = (schedule.clone(), stdout.clone());
    let done = Done::new(stage, execution);
    let left = Left::new(done.ending.clone(), &stdout);
    let reached = directed.reached() && is_predicted(&done.ending, prediction);
    Ok(Aimed { reached, order, left, schedule, done })
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
) -> Result<Result<(), String>, Failure> {
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
    Ok(match (witnessed, divergence) {
        (true, _) => Ok(()),
        (false, Some(divergence)) => Err(format!(
            "it happened once, but its schedule does not replay it: it diverged {divergence}"
        )),
        (false, None) => Err("it happened once, but its schedule does not replay it".to_owned()),
    })
}

/// The target in terms that outlive the execution.
fn aim_of(stage: &Stage, prediction: &Prediction) -> Option<Aim> {
    let site = |id| stage.controlled.symbols.site(id);
    match prediction.finding.target.as_ref()? {
        Target::Race { first, second } => {
            Some(Aim::Race { first: site(*first), second: site(*second) })
        }
        Target::Split { first, second, between, .. } => Some(Aim::Split {
            first: site(*first),
            second: site(*second),
            between: between.map(site),
        }),
        Target::Deadlock(_) => None,
    }
}

/// Shared by those who hold trials.
pub(super) type SharedCourt = Arc<Court>;
