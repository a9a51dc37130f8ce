//! `selvedge run`: observes one execution of a native program.
//!
//! The program runs at its own pace and keeps its standard output, input and arguments. We drain what it
//! records, run the analyses beside it, and store each finding when it is made. If the program crashes, is
//! killed or exits early, the report still comes.

pub(crate) mod ending;
mod held_before;
mod misuse;
pub(crate) mod observe;
mod ranks;
mod record;
pub(crate) mod signals;
mod waiting;
mod watch;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use selvedge_model::Symbols;
use selvedge_report::{Bound, FORMATS};
use selvedge_runtime::{Form, Judges, Outcome, Session};
use selvedge_spmd::launcher::is_launcher;

use crate::args::{Output, Run};
use crate::catalogue;
use crate::checking::{Checking, NativeChecking};
use crate::control::program::build;
use crate::exit::{Exit, Failure};
use crate::program::elf::Program;
use crate::program::form::{form, mode, only_synchronization, sight};
use crate::program::suppress::Suppressions;
use crate::program::symbolize::SharedSymbolizer;
use crate::program::toolbox::Toolbox;
use crate::ranks::unknown_launcher;
use crate::store::states::About;
use crate::store::{self, Journal};
use crate::terminal;
use record::Recording;
use watch::Watch;

/// Runs the program and reports. The exit code is 1 if there are findings, else the program's own.
pub(crate) fn run(args: &Run) -> Result<ExitCode, Failure> {
    if is_launcher(&args.command[0], args.ranks.launcher.as_deref()) {
        return ranks::run(args);
    }
    let analyses = catalogue::for_run(&args.options.analyses, &args.options.regions)?;
    let suppressions = Suppressions::load(&args.options.suppressions)?;
    let checking = args.options.discipline.as_deref().map(Checking::load).transpose()?;
    let program = Program::find(Path::new(&args.command[0])).map_err(Failure::Program)?;
    let form = form(&program)?;
    let here = std::env::current_dir()?;
    let directory = store::directory(&here);
    let root = directory.parent().unwrap_or(&here).to_owned();
    let toolbox = Toolbox::unpack()?;

    let sight = sight(&program, form);
    let journal =
        Journal::begin(store::open(&directory), &words(&args.command), mode(form), &sight);
    let claims = args.options.regions.claims();
    let analyses = analyses.beside_discipline(checking.is_some());
    let mut options = analyses.options(!claims.is_empty());
    options.linger = args.options.linger;
    let record = args.record.as_deref().map(Recording::create).transpose()?;
    if record.is_some() {
        (options.accesses, options.atomics, options.hold_back) = (true, true, false);
    }
    let symbolizer = SharedSymbolizer::new(&root).claiming(claims.clone());
    let mut source = args.options.source.clone();
    source.push(root);
    let checking = checking.map(|c| NativeChecking::new(c, symbolizer.clone(), &source));
    let about = About {
        build: build(&program.path),
        across_builds: args.options.across_builds,
        ..About::default()
    };
    let judges = Judges::default();
    let mut watch = Watch::new(analyses.recorded, symbolizer.clone(), suppressions, journal)
        .checking(checking)
        .comparing(about, judges.clone())
        .recording(record)
        .live();

    let mut command = Command::new(&program.path);
    command.args(&args.command[1..]);
    let is_text = args.options.format.name == FORMATS[0].name;
    if !is_text {
        // Standard output carries only the report.
        command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
    }
    let signals = signals::hold().map_err(Failure::Output)?;
    let session = Session::start(command, form, &toolbox.libraries, options)
        .inspect_err(|_| watch.was_not_observed())?;
    let session = session.judged(judges);
    signals.forward_to(session.pid());
    let mut symbols = Symbols::default();
    let mut resolver = symbolizer.clone();
    let outcome = session
        .finish(&mut symbols, &mut resolver, &mut watch)
        .map_err(Failure::from)
        .and_then(|outcome| unobserved(&program, &outcome, &watch).map(|()| outcome));
    let outcome = outcome.inspect_err(|_| watch.was_not_observed())?;
    if outcome.instrumented {
        analyses.in_program.iter().for_each(|name| watch.count_analysis(name));
    }
    watch.ended(&program.path, &outcome, &mut symbols);
    claims.unmatched().chain(bounds(&outcome)).for_each(|bound| watch.bound(bound));
    let undecided = watch.undecided(&outcome.blocks, &symbols);
    let report = watch.finish(&symbols, &outcome);
    let undecided = undecided.map_err(|wrong| Failure::Usage(wrong.to_string()))?;

    let seen = Seen { report, undecided, outcome };
    conclude(args, &program, form, source, &seen)
}

/// What there is to tell of a run.
struct Seen {
    report: watch::Watched,
    undecided: Vec<String>,
    outcome: Outcome,
}

/// Prints the report and returns the exit code.
fn conclude(
    args: &Run,
    program: &Program,
    form: Form,
    source: Vec<PathBuf>,
    seen: &Seen,
) -> Result<ExitCode, Failure> {
    let Seen { report, undecided, outcome } = seen;
    let output = Output {
        format: args.options.format,
        fail_on: args.options.fail_on,
        all: args.options.all,
        source,
    };
    if args.options.format.name == FORMATS[0].name {
        anstream::eprint!("{}", terminal::rendered(&report.report, &output));
    } else {
        terminal::print(&report.report, &output)?;
    }
    for line in report.remarks.iter().chain(undecided) {
        anstream::eprintln!("{line}");
    }
    if form == Form::Preloaded && !outcome.instrumented {
        anstream::eprintln!("{}", only_synchronization(program));
    }
    let failed = report.report.cases.iter().any(|f| args.options.fail_on.fails(f.status));
    let children = outcome.children;
    if children.ranks > 0 {
        anstream::eprintln!("{}", unknown_launcher(&args.command[0]));
    }
    let unseen = children.running > 0 || children.beyond > 0 || children.ranks > 0;
    Ok(match () {
        () if failed => Exit::Findings.into(),
        () if unseen || !undecided.is_empty() => Exit::NotRun.into(),
        () => ending::code(outcome.status),
    })
}

/// The limits that were reached.
fn bounds(outcome: &Outcome) -> Vec<Bound> {
    let mut bounds = Vec::new();
    if outcome.lost > 0 {
        bounds.push(Bound::Events(outcome.lost));
    }
    if outcome.lost_functions > 0 {
        bounds.push(Bound::Functions(outcome.lost_functions as u64));
    }
    if outcome.races_seen as usize > outcome.races.len() {
        let (seen, kept) = (u64::from(outcome.races_seen), outcome.races.len() as u64);
        bounds.push(Bound::Races { seen, kept });
    }
    bounds
}

/// Fails if nothing could be observed: such a run must not pass as clean.
fn unobserved(program: &Program, outcome: &Outcome, watch: &Watch) -> Result<(), Failure> {
    let why = if !outcome.attached {
        "the runtime did not start in it (does it change its user or clear its environment?)"
    } else if !outcome.instrumented && !watch.saw_synchronization() {
        "it is not instrumented, and it called no synchronization function"
    } else {
        return Ok(());
    };
    Err(Failure::Unobservable { path: program.path.clone(), why: why.into() })
}

fn words(command: &[OsString]) -> Vec<String> {
    command.iter().map(|w| w.to_string_lossy().into_owned()).collect()
}
