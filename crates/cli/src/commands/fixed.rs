//! `selvedge fixed`: is a finding gone after an edit?
//!
//! The schedule of the finding is followed again, as far as it still fits. Then the program is observed again,
//! and every prediction of the same kind about the same object is aimed at, wherever in the source it is now.
//! Then come executions that begin like the finding's and go on at random. An execution that shows the finding
//! decides that it is still there; otherwise the answer bounds how likely it can still be.

use std::time::Duration;

use selvedge_analyses::registry::{self, Purpose, Settings};
use selvedge_engine::margin::at_most;
use selvedge_engine::observe::observe;
use selvedge_engine::replay::{follow, watch};
use selvedge_engine::{Attempt, Before, Confirmer, Executor, JUDGED, Points, Replayed};
use selvedge_explore::rng::derive;
use selvedge_explore::strategies::directed::ATTEMPTS;
use selvedge_explore::{Pos, Prefix, RandomWalk, Rng, Strategy};
use selvedge_report::{Case, format, words};

use crate::args::Fixed;
use crate::control::again::{self, Prepared, is_same_bug};
use crate::control::cases;
use crate::control::program::ControlledProgram;
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure};
use crate::messages::{named, warning_label};
use crate::progress::Schedules;
use crate::terminal;

/// The number of executions to observe.
const OBSERVED: u64 = 3;

/// What was tried so far.
#[derive(Default)]
struct Tried {
    replays: u64,
    directed: u64,
    neighbours: u64,
}

impl Tried {
    fn executions(&self) -> u64 {
        self.replays + self.directed + self.neighbours
    }
}

/// Tries to make the finding happen, and says whether it is still there.
pub(crate) fn run(args: &Fixed) -> Result<Exit, Failure> {
    let deadline = Deadline::new(Some(args.time))?;
    let mut again = again::stored(&args.id, args.run, args.store.as_deref())?;
    if !args.command.is_empty() {
        let patience = Duration::from_millis(again.program.setup.patience);
        again.program = ControlledProgram::find(&args.command, patience)?;
        again.is_other = true;
    }
    let mut ready = again.prepare(&deadline)?;
    let case = ready.case.clone().expect("a stored finding is a case");
    if !ready.edited {
        anstream::eprintln!(
            "{}: the program has not changed since the finding was stored",
            warning_label()
        );
    }
    let mut tried = Tried::default();
    let seen = search(args, &mut ready, &case, &deadline, &mut tried)?;
    tell(&case, seen.as_ref(), &tried, &ready);
    if seen.is_some() {
        return Ok(Exit::Findings);
    }
    Ok(if deadline.signal().is_some() { Exit::Interrupted } else { Exit::Clean })
}

/// The first execution that shows the finding.
fn search(
    args: &Fixed,
    ready: &mut Prepared,
    case: &Case,
    deadline: &Deadline,
    tried: &mut Tried,
) -> Result<Option<Replayed>, Failure> {
    let mut progress = Schedules::new("fixed", args.executions);
    let sought = ready.sought();
    let replayed = follow(&mut ready.executor, &ready.schedule, &sought, &ready.ask)?;
    tried.replays += 1;
    progress.advance(tried.executions(), 0, deadline);
    let seen = if shows(ready, case, &replayed) {
        Some(replayed)
    } else if let Some(seen) = directed(args, ready, case, deadline, (&mut *tried, &mut progress))?
    {
        Some(seen)
    } else {
        neighbours(args, ready, case, deadline, (tried, &mut progress))?
    };
    progress.clear();
    Ok(seen)
}

/// Whether an execution shows the finding, perhaps elsewhere in the source.
fn shows(ready: &Prepared, case: &Case, replayed: &Replayed) -> bool {
    let ending = &replayed.ending;
    let ended = ending.finding().map(|finding| Case::new(finding, &ending.symbols));
    ready.is_shown(replayed) || ended.is_some_and(|now| is_same_bug(case, &now))
}

/// Observes the program and aims at every prediction that is the finding's, wherever it is now.
fn directed(
    args: &Fixed,
    ready: &mut Prepared,
    case: &Case,
    deadline: &Deadline,
    (tried, progress): (&mut Tried, &mut Schedules),
) -> Result<Option<Replayed>, Failure> {
    let analyses = registry::defaults(Purpose::Test);
    let analyses = (&analyses[..], Settings::default());
    let observation =
        observe(&mut ready.executor, ready.schedule.seed, OBSERVED, analyses, &Before::default())?;
    ready.ask.points.add(&observation.racing());
    let confirmer = Confirmer {
        seed: args.seed,
        input: ready.schedule.seed,
        releases: observation.releases,
        usual: observation.baseline.clone().map(|(left, _)| left),
        judged: JUDGED,
    };
    let same =
        |s: &&selvedge_engine::Seen<_, _>| is_same_bug(case, &Case::new(&s.finding, &s.symbols));
    let predictions: Vec<_> =
        observation.seen.iter().filter(same).filter_map(|s| s.prediction.clone()).collect();
    for attempt in 0..ATTEMPTS {
        for (number, prediction) in predictions.iter().enumerate() {
            if tried.executions() >= args.executions / 2 || deadline.stopped().is_some() {
                return Ok(None);
            }
            let trial =
                confirmer.attempt(&mut ready.executor, prediction, number as u64, attempt)?;
            tried.directed += 1;
            progress.advance(tried.executions(), 0, deadline);
            if let Attempt::Confirmed(confirmed) = trial.attempt {
                ready.ask.points.add(&prediction.points);
                let sought = prediction.sought();
                let seen = follow(&mut ready.executor, &confirmed.schedule, &sought, &ready.ask)?;
                if seen.shown {
                    return Ok(Some(seen));
                }
            }
        }
    }
    Ok(None)
}

/// Runs executions that begin like the finding's.
fn neighbours(
    args: &Fixed,
    ready: &mut Prepared,
    case: &Case,
    deadline: &Deadline,
    (tried, progress): (&mut Tried, &mut Schedules),
) -> Result<Option<Replayed>, Failure> {
    let sought = ready.sought();
    let ask = ready.ask.clone().following(&ready.schedule);
    while tried.executions() < args.executions && deadline.stopped().is_none() {
        let number = tried.neighbours;
        let mut rng = Rng::of_execution(derive(args.seed, 0xf1ed), number);
        let choices = rng.below(ready.schedule.len() + 1);
        let rest: Box<dyn Strategy> = match number % 2 {
            0 => Box::<RandomWalk>::default(),
            _ => Box::<Pos>::default(),
        };
        let strategy = Prefix::new(&ready.schedule, choices, rest);
        let (seen, _) = watch(&mut ready.executor, strategy, rng, &sought, &ask)?;
        tried.neighbours += 1;
        progress.advance(tried.executions(), 0, deadline);
        if shows(ready, case, &seen) {
            return Ok(Some(seen));
        }
        if !ready.executor.is_usable() {
            break;
        }
    }
    Ok(None)
}

fn tell(case: &Case, seen: Option<&Replayed>, tried: &Tried, ready: &Prepared) {
    let what = named(case);
    let executions = words::count(tried.executions(), "execution");
    match seen {
        Some(seen) => {
            println!("still there: {what}, seen after {executions}");
            let rows = cases::interleaving(seen, &ready.critical());
            let root = [ready.root.clone()];
            let mut sources = terminal::sources(&root);
            anstream::eprint!("{}", format::interleaving(&rows, &mut sources, terminal::width()));
            anstream::eprintln!("its schedule: {}", seen.execution.schedule);
        }
        None => {
            let percent = at_most(tried.executions()) * 100.0;
            println!("not seen: {what}");
            println!(
                "tried: its schedule, {}, {} that begin like it",
                words::count(tried.directed, "directed execution"),
                words::count(tried.neighbours, "execution"),
            );
            println!(
                "not seen in {executions}: at most {percent:.2}% per execution with 95% confidence"
            );
        }
    }
}
