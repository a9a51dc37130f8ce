//! Follows schedules again, and searches for shorter ones that show the same.

use std::sync::Arc;
use std::time::{Duration, Instant};

use selvedge_explore::{Divergence, Replay, Rng, Strategy, Trivial, Witness, minimise};
use selvedge_model::{FindingId, Schedule, Site, Symbols, Target};
use selvedge_specs::Judge;

use crate::blocks::Contrast;
use crate::ending::{Ending, Key};
use crate::executor::{Ask, Execution, Executor, Noted, execute};
use crate::harm::{Harm, Left};
use crate::witness::Unserial;

/// The time limit of a candidate: this many times the original execution's time, but at least this long.
const PATIENCE: (u32, Duration) = (20, Duration::from_millis(500));

/// What a replayed execution must show.
#[derive(Clone, Debug, Default)]
pub struct Sought {
    /// The state that it must reach, if any.
    pub target: Option<Target<Site>>,
    /// The failure that it must end with, if any.
    pub failure: Option<FindingId>,
    /// The usual exit code; any other is a failure.
    pub usual_exit: Option<i32>,
    /// The value in which it must differ from another execution, if any.
    pub contrast: Option<Arc<Contrast>>,
    /// It must be as no serial execution, if this is asked.
    pub unserial: Option<Arc<Unserial>>,
    /// A shorter schedule must also lead to the same output and the same ensured values: they are what is wrong.
    pub same_result: bool,
}

/// The execution of a replayed schedule.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What happened.
    pub execution: Execution,
    /// How it ended.
    pub ending: Ending,
    /// What everything in it is called, if its events were noted.
    pub symbols: Arc<Symbols>,
    /// Where the execution left the schedule, if it did.
    pub divergence: Option<Divergence>,
    /// Whether it showed what was sought or, if nothing was sought, whether it failed.
    pub shown: bool,
}

/// Follows a schedule and checks whether the execution shows what is sought.
pub fn follow<X: Executor>(
    executor: &mut X,
    schedule: &Schedule,
    sought: &Sought,
    ask: &Ask<X::Points>,
) -> Result<Replayed, X::Error> {
    let ask = ask.clone().following(schedule);
    let (seen, replay) = watch(executor, Replay::new(schedule), Rng::new(ask.seed), sought, &ask)?;
    Ok(Replayed { divergence: replay.divergence(), ..seen })
}

/// Runs an execution under a strategy and checks whether it shows what is sought.
pub fn watch<X: Executor, S: Strategy>(
    executor: &mut X,
    mut strategy: S,
    rng: Rng,
    sought: &Sought,
    ask: &Ask<X::Points>,
) -> Result<(Replayed, S), X::Error> {
    let (execution, strategy, witnessed) = match &sought.target {
        Some(target) => {
            let target = target.map(|site| executor.site(site));
            let mut witness = Witness::new(strategy, &target, &Trivial, Trivial);
            let execution = run(executor, &mut witness, rng, ask)?;
            let witnessed = witness.witnessed();
            (execution, witness.strategy, witnessed)
        }
        None => {
            let execution = run(executor, &mut strategy, rng, ask)?;
            (execution, strategy, true)
        }
    };
    // The executor knows the names of the execution that ran last only.
    let symbols = match ask.noted >= Noted::Events {
        true => executor.named(&execution),
        false => Arc::default(),
    };
    let ending = Ending::of(executor, &execution);
    let fails = match sought.failure {
        Some(id) => ending.is(id, sought.usual_exit),
        None => {
            sought.target.is_some()
                || sought.contrast.is_some()
                || sought.unserial.is_some()
                || !matches!(ending.key, Key::Exited(0) | Key::Undecided)
        }
    };
    let differs = match &sought.contrast {
        Some(contrast) => contrast.shows(&execution.blocks, &mut *executor.judge()).is_some(),
        None => true,
    };
    let unserial = match &sought.unserial {
        Some(unserial) if matches!(ending.key, Key::Exited(_)) => {
            let of = (&execution.blocks.atomic, &execution.schedule);
            unserial.judge(executor, of, &ask.points)?.verdict.violates()
        }
        Some(_) => false,
        None => true,
    };
    let shown = witnessed && fails && differs && unserial;
    Ok((Replayed { execution, ending, symbols, divergence: None, shown }, strategy))
}

fn run<X: Executor>(
    executor: &mut X,
    strategy: &mut dyn Strategy,
    rng: Rng,
    ask: &Ask<X::Points>,
) -> Result<Execution, X::Error> {
    strategy.begin(rng);
    executor.run(strategy, ask)
}

/// The limits for making a schedule shorter.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The largest number of executions.
    pub executions: usize,
    /// The longest time.
    pub time: Duration,
}

/// Follows a schedule that shows what is sought, and then searches for one with fewer preemptions that also
/// shows it and ends in the same way, with the same result if that is sought. `None` if the given schedule does not show it.
///
/// Guarantee: the returned execution showed it.
pub fn shortened<X: Executor>(
    executor: &mut X,
    schedule: &Schedule,
    sought: &Sought,
    effort: Effort,
    ask: &Ask<X::Points>,
) -> Result<Option<Replayed>, X::Error> {
    let begin = Instant::now();
    let first = follow(executor, schedule, sought, ask)?;
    if !first.shown {
        return Ok(None);
    }
    let time = (begin.elapsed() * PATIENCE.0).max(PATIENCE.1);
    let left =
        |of: &Replayed| Left::new(of.ending.clone(), &of.execution.output, &of.execution.blocks);
    let result = left(&first);
    let same = |other: &Replayed, judge: &mut dyn Judge| {
        other.ending.key == first.ending.key
            && (!sought.same_result || left(other).differs(&result, judge) == Harm::Nothing)
    };
    let quick = Ask { noted: Default::default(), time: Some(time), ..ask.clone() };
    let mut failed = None;
    let shortest = minimise(schedule.clone(), effort.executions, |candidate| {
        if failed.is_some() || begin.elapsed() > effort.time || !executor.is_usable() {
            return None;
        }
        match follow(executor, candidate, sought, &quick) {
            Ok(other) if other.shown && same(&other, &mut *executor.judge()) => {
                Some(other.execution.schedule)
            }
            Ok(_) => None,
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if shortest.schedule == *schedule || !executor.is_usable() {
        return Ok(Some(first));
    }
    let shorter = follow(executor, &shortest.schedule, sought, ask)?;
    let shows = shorter.shown && same(&shorter, &mut *executor.judge());
    Ok(Some(if shows { shorter } else { first }))
}

/// Runs the execution in which no thread is stopped before it blocks.
pub fn unforced<X: Executor>(
    executor: &mut X,
    ask: &Ask<X::Points>,
) -> Result<Execution, X::Error> {
    let schedule = Schedule { seed: ask.seed, releases: ask.releases, ..Schedule::default() };
    let mut replay = Replay::new(&schedule);
    let execution = execute(executor, &mut replay, Rng::new(ask.seed), ask)?;
    Ok(execution.expect("a replay always begins"))
}
