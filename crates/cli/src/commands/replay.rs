//! `selvedge replay`: runs the interleaving of a finding again.
//!
//! A crash, a failed assertion or a deadlock happened again if the execution ends with it. A race or an
//! atomicity violation happened again if the replay reaches the state that the directed execution reached:
//! the replay is watched for that state.

use std::io::Write;
use std::path::Path;

use selvedge_engine::Replayed;
use selvedge_engine::replay::follow;
use selvedge_model::Kind;
use selvedge_report::{Case, Interleaving, escape, format, words};
use selvedge_runtime::control::WatchList;

use crate::args::Replay;
use crate::control::again::{self, Again};
use crate::control::cases;
use crate::control::debug;
use crate::control::margin;
use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure};
use crate::messages::{named, warning_label};
use crate::progress::Schedules;
use crate::ranks;
use crate::terminal;

mod parallelism;

/// Replays the schedule and prints what happened.
pub(crate) fn run(args: &Replay) -> Result<Exit, Failure> {
    let found = match &args.schedule {
        Some(_) => None,
        None => {
            let prefix = args.id.as_deref().unwrap_or_default();
            Some(again::find(prefix, args.run, args.store.as_deref())?)
        }
    };
    if let Some(found) = found.as_ref().filter(|found| found.is_of_ranks()) {
        return ranks::replay::replay(args, &found.directory, &found.run, &found.case);
    }
    let deadline = if args.gdb { Deadline::under_gdb() } else { Deadline::new(None)? };
    let again = match found {
        Some(found) => found.again()?,
        None => literal(args, args.schedule.as_deref().unwrap_or_default(), &deadline)?,
    };
    if again.case.as_ref().is_some_and(|case| case.kind == Kind::ParallelismViolation) {
        return parallelism::run(args, again, &deadline);
    }
    if args.sequential {
        return Err(Failure::Usage(
            "--sequential: only a parallelism-violation has a sequential execution to compare with"
                .to_owned(),
        ));
    }
    let stored = again.stored.clone();
    let program = again.program.setup.program.clone();
    let mut ready = again.prepare(&deadline)?;
    if ready.edited {
        anstream::eprintln!(
            "{}: {} has changed since the schedule was recorded; the replay follows it as far as it still fits",
            warning_label(),
            program.display()
        );
    }
    let mut happened = 0;
    let mut progress = (args.times > 1).then(|| Schedules::new("replay", args.times));
    for round in 0..args.times.max(1) {
        let sought = ready.sought();
        let replayed = follow(&mut ready.executor, &ready.schedule, &sought, &ready.ask)?;
        let again = ready.is_shown(&replayed);
        if round == 0 {
            std::io::stdout().write_all(&replayed.execution.output)?;
            std::io::stderr().write_all(&replayed.execution.errors)?;
        }
        if round == 0 || again != (happened == round) {
            tell(&replayed, ready.case.as_ref(), again);
            let rows = match args.margin.filter(|_| again) {
                Some(samples) => margin::measure(&mut ready, &replayed, samples, &deadline)?,
                None => cases::interleaving(&replayed, &ready.critical()),
            };
            show(&rows, &ready.root);
            if args.margin.is_some() && again {
                margin::keep(&rows, ready.case.as_ref(), stored.as_ref())?;
            }
        }
        happened += u64::from(again);
        if let Some(progress) = &mut progress {
            progress.advance(round + 1, usize::from(happened > 0), &deadline);
        }
        if args.gdb {
            let points = debug::breakpoints(&replayed, &ready.critical());
            debug::run(ready.native, &ready.schedule, &points, &args.gdb_command, &ready.ask)?;
            break;
        }
    }
    if let Some(mut progress) = progress {
        progress.clear();
        anstream::eprintln!("the finding happened in {happened} of {} executions", args.times);
    }
    Ok(if happened > 0 { Exit::Findings } else { Exit::Clean })
}

fn literal(args: &Replay, schedule: &str, deadline: &Deadline) -> Result<Again, Failure> {
    let schedule = again::parsed(schedule)?;
    let program = ControlledProgram::find(&args.command, std::time::Duration::from_secs(60))?;
    // A schedule does not list the accesses that were scheduling points. Observing the same program with
    // the same seed finds the same accesses again.
    let points = match program.is_instrumented() {
        true => {
            let native = Native::new(&program, deadline);
            crate::commands::explore::points(&native, schedule.seed)?
        }
        false => WatchList::default(),
    };
    Ok(Again { program, schedule, case: None, points, is_other: false, stored: None })
}

/// Prints the interleaving.
fn show(rows: &Interleaving, root: &Path) {
    let root = [root.to_owned()];
    let mut sources = terminal::sources(&root);
    anstream::eprint!("{}", format::interleaving(rows, &mut sources, terminal::width()));
}

fn tell(replayed: &Replayed, case: Option<&Case>, again: bool) {
    let ending = words::outcome(&cases::outcome(&replayed.ending));
    let ending = escape::harmless(&ending);
    match case {
        Some(case) if again => {
            anstream::eprintln!("the finding happened again: {}", named(case));
            if case.aim().is_some() {
                anstream::eprintln!("the program ended with {ending}");
            }
        }
        Some(case) => {
            anstream::eprintln!("the finding did not happen: {}", named(case));
            anstream::eprintln!("the program ended with {ending}");
        }
        None => anstream::eprintln!("the program ended with {ending}"),
    }
    if let Some(divergence) = replayed.divergence {
        anstream::eprintln!(
            "{}: the replay diverged {}",
            warning_label(),
            words::divergence(&divergence)
        );
    }
    if replayed.execution.cut_off {
        anstream::eprintln!("{}: the execution was cut off", warning_label());
    }
}
