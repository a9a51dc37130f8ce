//! `selvedge replay`: runs the interleaving of a finding again.
//!
//! A crash, a failed assertion or a deadlock happened again if the execution ends with it. A race or an
//! atomicity violation happened again if the replay reaches the state that the directed execution reached:
//! the replay is watched for that state.

use std::io::Write;
use std::path::Path;

use selvedge_engine::replay::follow;
use selvedge_engine::{Ask, Executor, Noted, Points, Replayed, Sought};
use selvedge_model::{Schedule, Site};
use selvedge_report::{Case, Watched as ReportedAccess, format, words};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::{CodePlace, WatchList, Watched};

use crate::args::Replay;
use crate::control::cases;
use crate::control::debug;
use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure};
use crate::messages::warning_label;
use crate::store::{self, Store};
use crate::terminal;

/// Replays the schedule and prints what happened.
pub(crate) fn run(args: &Replay) -> Result<Exit, Failure> {
    let deadline = if args.gdb { Deadline::under_gdb() } else { Deadline::new(None)? };
    let again = match &args.schedule {
        Some(schedule) => literal(args, schedule, &deadline)?,
        None => stored(args)?,
    };
    let Again { program, schedule, case, points } = again;
    if !program.setup.directory.is_dir() {
        return Err(Failure::Gone(program.setup.directory));
    }
    let edited = case.is_some() && !program.is_unchanged();
    if edited {
        anstream::eprintln!(
            "{}: {} has changed since the schedule was recorded; the replay follows it as far as it still fits",
            warning_label(),
            program.setup.program.display()
        );
    }
    let native = Native::new(&program, &deadline);
    let points = if edited { found_again(&native, &schedule, &points)? } else { points };
    let ask = Ask { noted: Noted::Events, points, ..Ask::default() };
    let mut executor = native.executor()?;
    if edited {
        // Lets the executor see the sites of the edited program.
        follow(&mut executor, &schedule, &Sought::default(), &ask)?;
    }
    let mut happened = 0;
    for round in 0..args.times.max(1) {
        let (replayed, again) = replay(&mut executor, &schedule, case.as_ref(), edited, &ask)?;
        if round == 0 {
            std::io::stdout().write_all(&replayed.execution.output)?;
            std::io::stderr().write_all(&replayed.execution.errors)?;
        }
        if round == 0 || again != (happened == round) {
            tell(&replayed, case.as_ref(), again);
            show(&replayed, case.as_ref(), &program.root);
        }
        happened += u64::from(again);
        if args.gdb {
            let critical = case.as_ref().map(Case::critical).unwrap_or_default();
            let lines = debug::breakpoints(&replayed, &critical);
            debug::run(native, &schedule, lines, &args.gdb_command, &ask)?;
            break;
        }
    }
    if args.times > 1 {
        anstream::eprintln!("the finding happened in {happened} of {} executions", args.times);
    }
    Ok(if happened > 0 { Exit::Findings } else { Exit::Clean })
}

/// A program, and the schedule to replay in it.
struct Again {
    program: ControlledProgram,
    schedule: Schedule,
    case: Option<Case>,
    points: WatchList,
}

fn parsed(schedule: &str) -> Result<Schedule, Failure> {
    schedule.parse().map_err(|e| Failure::Usage(format!("{e}")))
}

fn literal(args: &Replay, schedule: &str, deadline: &Deadline) -> Result<Again, Failure> {
    let schedule = parsed(schedule)?;
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
    Ok(Again { program, schedule, case: None, points })
}

fn stored(args: &Replay) -> Result<Again, Failure> {
    let here = std::env::current_dir()?;
    let directory = args.store.clone().unwrap_or_else(|| store::directory(&here));
    let store = Store::open(&directory)?;
    let prefix = args.id.as_deref().unwrap_or_default();
    let mut found = store.find(prefix, args.run)?;
    if let Some(exact) = found.iter().position(|(_, f)| f.id.to_string() == prefix) {
        found = vec![found.swap_remove(exact)];
    }
    let (run, case) = match found.as_slice() {
        [] => {
            return Err(Failure::Usage(format!(
                "there is no finding {prefix} in {}",
                directory.display()
            )));
        }
        [one] => one.clone(),
        several => {
            let lines: Vec<String> = several
                .iter()
                .map(|(run, f)| format!("  {} {} (run {run})", f.id, words::summary(f)))
                .collect();
            return Err(Failure::Usage(format!(
                "several ids begin with {prefix}:\n{}",
                lines.join("\n")
            )));
        }
    };
    let run = store.run(Some(run))?;
    let control = case.control.clone().unwrap_or_default();
    let (Some(setup), Some(schedule)) = (&run.setup, &control.schedule) else {
        return Err(Failure::Usage(format!(
            "{} is {} and has no schedule; `selvedge test` searches for one",
            case.id,
            case.status.name()
        )));
    };
    let root = directory.parent().unwrap_or(Path::new("/"));
    Ok(Again {
        program: ControlledProgram::again(setup, root, &run.command)?,
        schedule: parsed(schedule)?,
        points: watch_list(control.watched),
        case: Some(case),
    })
}

fn watch_list(accesses: Vec<ReportedAccess>) -> WatchList {
    let watched = |a: ReportedAccess| Watched {
        code: CodePlace { module: a.module, offset: a.offset },
        site: a.site,
    };
    WatchList::new(accesses.into_iter().map(watched).collect())
}

/// Finds the accesses that were scheduling points in a program that was rebuilt: executions that note all
/// accesses show where their sites are now.
fn found_again(
    native: &Native,
    schedule: &Schedule,
    points: &WatchList,
) -> Result<WatchList, Failure> {
    let mut found = WatchList::default();
    if points.list().is_empty() {
        return Ok(found);
    }
    let mut executor = native.executor()?;
    let ask = Ask { noted: Noted::Accesses, ..Ask::default() };
    // One schedule may execute code that the other does not.
    for schedule in [schedule.clone(), Schedule::new(schedule.seed)] {
        follow(&mut executor, &schedule, &Sought::default(), &ask)?;
    }
    let now = executor.points();
    for watched in points.list() {
        if let Some(points) = watched.site.relocated(now.keys()).and_then(|s| now.get(s)) {
            found.add(points);
        }
    }
    Ok(found)
}

/// Follows the schedule once. True if the finding happened or, without a finding, if the program failed.
fn replay(
    executor: &mut Controlled,
    schedule: &Schedule,
    case: Option<&Case>,
    edited: bool,
    ask: &Ask<WatchList>,
) -> Result<(Replayed, bool), Failure> {
    let target = case.and_then(Case::aim).cloned();
    let failure = case.filter(|_| target.is_none()).map(Case::failure);
    let sought = Sought { target, failure, usual_exit: Some(0) };
    let replayed = follow(executor, schedule, &sought, ask)?;
    let again = replayed.shown || edited && failure.is_some() && has_moved(&replayed, case);
    Ok((replayed, again))
}

/// Whether an execution ended with the failure of a case, except for lines that an edit has moved.
fn has_moved(replayed: &Replayed, case: Option<&Case>) -> bool {
    let ending = &replayed.ending;
    let (Some(case), Some(finding)) = (case, ending.finding()) else { return false };
    let now = Case::new(finding, &ending.symbols);
    let sites: Vec<&Site> = now.places.iter().map(|p| &p.site).collect();
    now.kind == case.kind
        && now.subject == case.subject
        && sites.len() == case.places.len()
        && !sites.is_empty()
        && case.places.iter().all(|p| p.site.relocated(sites.iter().copied()).is_some())
}

/// Prints the interleaving.
fn show(replayed: &Replayed, case: Option<&Case>, root: &Path) {
    let critical = case.map(Case::critical).unwrap_or_default();
    let rows = cases::interleaving(replayed, &critical);
    let root = [root.to_owned()];
    let mut sources = terminal::sources(&root);
    anstream::eprint!("{}", format::interleaving(&rows, &mut sources, terminal::width()));
}

fn tell(replayed: &Replayed, case: Option<&Case>, again: bool) {
    let ending = words::outcome(&cases::outcome(&replayed.ending));
    match case {
        Some(case) if again => {
            anstream::eprintln!(
                "the finding happened again: {} ({})",
                words::summary(case),
                case.id
            );
            if case.aim().is_some() {
                anstream::eprintln!("the program ended with {ending}");
            }
        }
        Some(case) => {
            anstream::eprintln!(
                "the finding did not happen: {} ({})",
                words::summary(case),
                case.id
            );
            anstream::eprintln!("the program ended with {ending}");
        }
        None => anstream::eprintln!("the program ended with {ending}"),
    }
    if let Some(divergence) = replayed.divergence {
        anstream::eprintln!("{}: the replay diverged {divergence}", warning_label());
    }
    if replayed.execution.cut_off {
        anstream::eprintln!("{}: the execution was cut off", warning_label());
    }
}
