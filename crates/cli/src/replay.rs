//! `selvedge replay`: the same interleaving once more.
//!
//! Of a finding that shows by itself (a crash, a failed assertion, a deadlock) it is the ending that
//! tells whether it happened again. Of a race or a broken atomic block it is the state that a directed
//! execution had reached: the replay is watched for it.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selvedge_explore::Divergence;
use selvedge_model::{Object, Range, Schedule, Site, SiteId, Symbols, Target};
use selvedge_report::{Case, Watched, format, words};
use selvedge_runtime::Execution;

use crate::args::Replay;
use crate::control::ending::{self, Ending};
use crate::control::halt::Halt;
use crate::control::stage::{RECORDS, Stage, Subject, Wishes, in_order, relocated};
use crate::control::{account, debug};
use crate::exit::{Exit, Failure, warning_label};
use crate::store::{self, Store};
use crate::terminal;

/// Replays, and says what happened.
pub(crate) fn run(args: &Replay) -> Result<Exit, Failure> {
    let halt = if args.gdb { Halt::under_gdb() } else { Halt::new(None)? };
    let again = match &args.schedule {
        Some(schedule) => literal(args, schedule)?,
        None => stored(args)?,
    };
    let Again { subject, schedule, finding, watched } = again;
    if !subject.setup.directory.is_dir() {
        return Err(Failure::Gone(subject.setup.directory));
    }
    let changed = finding.is_some() && !subject.is_unchanged();
    if changed {
        anstream::eprintln!(
            "{}: {} has changed since: the schedule is followed as far as it still fits",
            warning_label(),
            subject.setup.program.display()
        );
    }
    let wishes = Wishes { seed: schedule.seed, ..Wishes::default() };
    let watched =
        if changed { found_again(&subject, &schedule, &watched, &halt)? } else { watched };
    let with_points = Wishes { watched, ..wishes };
    let mut stage = Stage::new(&subject, with_points.clone(), &Arc::clone(&halt.interrupt))?;
    stage.edited = changed;
    if changed {
        // Shows which sites there are now.
        stage.controlled.replay(&schedule)?;
    }
    let mut happened = 0;
    for round in 0..args.times.max(1) {
        let replayed = follow(&mut stage, &schedule, finding.as_ref())?;
        if round == 0 {
            std::io::stdout().write_all(&replayed.execution.stdout)?;
            std::io::stderr().write_all(&replayed.execution.stderr)?;
        }
        if round == 0 || replayed.again != (happened == round) {
            tell(&replayed, finding.as_ref());
            let Replayed { execution, symbols, .. } = &replayed;
            let rows = account::interleaving(execution, symbols, finding.as_ref());
            let root = std::slice::from_ref(&subject.root);
            let mut sources = terminal::sources(root);
            anstream::eprint!("{}", format::interleaving(&rows, &mut sources, terminal::width()));
        }
        happened += u64::from(replayed.again);
        if args.gdb {
            let commands = &args.gdb_command;
            debug::run(&subject, with_points, &schedule, &replayed, finding.as_ref(), commands)?;
            break;
        }
    }
    if args.times > 1 {
        anstream::eprintln!("it happened in {happened} of {} executions", args.times);
    }
    Ok(if happened > 0 { Exit::Findings } else { Exit::Clean })
}

/// What to do again.
struct Again {
    subject: Subject,
    schedule: Schedule,
    finding: Option<Case>,
    watched: Vec<Watched>,
}

fn parsed(schedule: &str) -> Result<Schedule, Failure> {
    schedule.parse().map_err(|e| Failure::Usage(format!("{e}")))
}

fn literal(args: &Replay, schedule: &str) -> Result<Again, Failure> {
    let schedule = parsed(schedule)?;
    let subject = Subject::find(&args.command, std::time::Duration::from_secs(60))?;
    // Which accesses were scheduling points is not part of a schedule. They are found as they were
    // found then: the same program with the same seed shows the same.
    let watched =
        crate::explore::points(&subject, schedule.seed, &Arc::new(AtomicBool::new(false)))?;
    Ok(Again { subject, schedule, finding: None, watched })
}

fn stored(args: &Replay) -> Result<Again, Failure> {
    let here = std::env::current_dir()?;
    let directory = args.store.clone().unwrap_or_else(|| store::directory(&here));
    let store = Store::open(&directory)?;
    let prefix = args.id.as_deref().unwrap_or_default();
    let mut found = store.find(prefix, args.run)?;
    if let Some(exact) = found.iter().position(|(_, f)| f.id == prefix) {
        found = vec![found.swap_remove(exact)];
    }
    let (run, finding) = match found.as_slice() {
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
                "{prefix} is the beginning of several ids:\n{}",
                lines.join("\n")
            )));
        }
    };
    let run = store.run(Some(run))?;
    let control = finding.control.clone().unwrap_or_default();
    let (Some(setup), Some(schedule)) = (&run.setup, &control.schedule) else {
        return Err(Failure::Usage(format!(
            "{} is {} and has no schedule: `selvedge test` looks for one",
            finding.id,
            finding.status.name()
        )));
    };
    let root = directory.parent().unwrap_or(Path::new("/"));
    Ok(Again {
        subject: Subject::again(setup, root, &run.command)?,
        schedule: parsed(schedule)?,
        watched: control.watched,
        finding: Some(finding),
    })
}

/// The accesses that were scheduling points, in a program that was built anew: by their sites, from an
/// execution that shows all accesses.
fn found_again(
    subject: &Subject,
    schedule: &Schedule,
    watched: &[Watched],
    halt: &Halt,
) -> Result<Vec<Watched>, Failure> {
    if watched.is_empty() {
        return Ok(Vec::new());
    }
    let wishes = Wishes { accesses: true, seed: schedule.seed, ..Wishes::default() };
    let mut stage = Stage::new(subject, wishes, &Arc::clone(&halt.interrupt))?;
    let mut places = Vec::new();
    // What a schedule avoids may be what another one executes.
    for schedule in [schedule.clone(), Schedule::new(schedule.seed)] {
        stage.controlled.replay(&schedule)?;
        let known = stage.sites();
        let sites: Vec<Site> =
            watched.iter().filter_map(|w| relocated(&w.site, &known)).cloned().collect();
        places.extend(stage.code_of(&sites));
    }
    Ok(in_order(places))
}

/// A replay, and whether it shows what it should.
pub(crate) struct Replayed {
    pub(crate) execution: Execution,
    /// The names of everything in it.
    pub(crate) symbols: Symbols,
    pub(crate) ending: Ending,
    pub(crate) divergence: Option<Divergence>,
    /// The finding happened again; without one, the program failed.
    pub(crate) again: bool,
}

/// Follows a schedule once, watching for the finding.
pub(crate) fn follow(
    stage: &mut Stage,
    schedule: &Schedule,
    finding: Option<&Case>,
) -> Result<Replayed, Failure> {
    let Some(aim) = finding.and_then(Case::aim) else {
        let (execution, divergence) = stage.controlled.replay(schedule)?;
        let edited = stage.edited;
        return Ok(judged(stage, execution, divergence, |ending| match finding {
            Some(finding) => is_of(ending, finding, edited),
            None => !matches!(ending, Ending::Exit(0)),
        }));
    };
    let (execution, divergence, witnessed) = watched(stage, schedule, aim)?;
    Ok(judged(stage, execution, divergence, |_| witnessed))
}

fn judged(
    stage: &mut Stage,
    execution: Execution,
    divergence: Option<Divergence>,
    again: impl FnOnce(&Ending) -> bool,
) -> Replayed {
    let symbols = stage.controlled.named(&execution.events);
    let ending = Ending::new(&execution, &symbols);
    let again = again(&ending);
    Replayed { execution, symbols, ending, divergence, again }
}

/// Whether an ending is the failure that a finding tells of, in a program that may be edited.
fn is_of(ending: &Ending, finding: &Case, edited: bool) -> bool {
    match ending {
        Ending::Failed(fault) => fault.id == finding.id || edited && has_moved(fault, finding),
        Ending::Exit(code) => ending::exit(*code, 0).id == finding.id,
    }
}

/// Whether a failure is the one of a finding, at lines that an edit has moved.
fn has_moved(fault: &Case, finding: &Case) -> bool {
    let now: Vec<&Site> = fault.places.iter().map(|p| &p.site).collect();
    fault.kind == finding.kind
        && fault.subject == finding.subject
        && now.len() == finding.places.len()
        && !now.is_empty()
        && finding.places.iter().all(|p| relocated(&p.site, now.iter().copied()).is_some())
}

/// Follows a schedule, and says whether the target's state was there.
pub(crate) fn watched(
    stage: &mut Stage,
    schedule: &Schedule,
    aim: &Target<Site>,
) -> Result<(Execution, Option<Divergence>, bool), Failure> {
    let target = target(stage, aim);
    Ok(stage.controlled.replay_to(schedule, &target)?)
}

/// A stored target in terms of a stage.
fn target(stage: &mut Stage, aim: &Target<Site>) -> Target {
    let known = stage.sites();
    let mut target = aim.map(|site| {
        let site = relocated(site, &known).unwrap_or(site).clone();
        SiteId(stage.controlled.symbols.sites.intern(site))
    });
    // Regions and objects have other ids in every execution; the strategy goes by sites.
    if let Target::Split { region, object, .. } = &mut target {
        (*region, *object) = (None, Object::Memory(Range { start: 0, len: 0 }));
    }
    target
}

fn tell(replayed: &Replayed, finding: Option<&Case>) {
    let ending = replayed.ending.words();
    match finding {
        Some(finding) if replayed.again => {
            anstream::eprintln!("it happened again: {} ({})", words::summary(finding), finding.id);
            if finding.aim().is_some() {
                anstream::eprintln!("the program ended with {ending}");
            }
        }
        Some(finding) => {
            anstream::eprintln!("it did not happen: {} ({})", words::summary(finding), finding.id);
            anstream::eprintln!("the program ended with {ending}");
        }
        None => anstream::eprintln!("the program ended with {ending}"),
    }
    if let Some(divergence) = replayed.divergence {
        anstream::eprintln!("{}: the replay diverged {divergence}", warning_label());
    }
    if replayed.execution.events.len() as u64 >= u64::from(RECORDS) {
        anstream::eprintln!("{}: the execution was cut off", warning_label());
    }
}
