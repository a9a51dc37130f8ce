//! `selvedge report`: prints what an earlier run found, from the store.

mod baseline;

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use selvedge_report::{Baseline, Case, FORMATS, Format, Since};

use crate::args::{Output, Report, ReportFailOn};
use crate::exit::{Exit, Failure};
use crate::messages::warning_label;
use crate::store::{self, Run, Store};
use crate::terminal;

/// Prints a run's findings, or the list of runs.
pub(crate) fn run(args: &Report) -> Result<Exit, Failure> {
    let here = std::env::current_dir()?;
    let directory = store::directory(&here);
    let store = Store::open(&directory)?;
    if args.runs {
        list(&store.runs()?)?;
        return Ok(Exit::Clean);
    }
    if args.fail_on == ReportFailOn::New && args.baseline.is_none() && args.diff.is_empty() {
        let why =
            "`--fail-on new` needs something to compare with: --baseline FILE or --diff RUN RUN";
        return Err(Failure::Usage(why.to_owned()));
    }
    let run = store.run(args.diff.last().copied().or(args.run))?;
    let mut report = store.report(&run)?;
    report.baseline = match (args.diff.first(), &args.baseline) {
        (Some(&earlier), _) => Some(Baseline::of(&store.report(&store.run(Some(earlier))?)?)),
        (None, Some(file)) => Some(baseline::read(file)?),
        (None, None) => None,
    };
    let mut source = args.source.clone();
    source.extend(directory.parent().map(Path::to_owned));
    let short = match (args.json, &args.html) {
        (true, _) => Format::named("json"),
        (false, Some(_)) => Format::named("html"),
        (false, None) => None,
    };
    let format = short.unwrap_or(args.format);
    let output = Output { format, fail_on: args.fail_on.status(), all: args.all, source };
    if format.name == FORMATS[0].name {
        let mut out = anstream::stdout();
        writeln!(out, "{}", heading(&run))?;
        writeln!(out, "observed: {}\n", run.instrumented)?;
    }
    match &args.html {
        None => terminal::print(&report, &output)?,
        Some(file) => write_page(file, &terminal::rendered(&report, &output), args.open)?,
    }
    if run.ending.is_none() {
        anstream::eprintln!(
            "{}: run {} has not ended, or was killed: the list may be incomplete",
            warning_label(),
            run.id
        );
    }
    let fails = |case: &&Case| {
        let counts = match args.fail_on {
            ReportFailOn::New => report.since(case) == Some(Since::New),
            _ => true,
        };
        counts && output.fail_on.fails(case.status)
    };
    Ok(if report.cases.iter().any(|c| fails(&c)) { Exit::Findings } else { Exit::Clean })
}

/// Writes a page, and shows it if asked to.
fn write_page(file: &Path, page: &str, open: bool) -> Result<(), Failure> {
    std::fs::write(file, page).map_err(|error| Failure::Write { path: file.to_owned(), error })?;
    anstream::eprintln!("wrote {}", file.display());
    if open {
        let shown = Command::new("xdg-open").arg(file).stdout(Stdio::null()).status();
        if !shown.as_ref().is_ok_and(ExitStatus::success) {
            let why = shown.map_or_else(|e| e.to_string(), |s| s.to_string());
            anstream::eprintln!(
                "{}: xdg-open could not show it ({why}): open {} in a browser",
                warning_label(),
                file.display()
            );
        }
    }
    Ok(())
}

fn heading(run: &Run) -> String {
    let ending = run.ending.as_deref().unwrap_or("not finished");
    format!("run {}: {} ({}; {ending})", run.id, run.command.join(" "), run.mode)
}

fn list(runs: &[Run]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for run in runs {
        writeln!(out, "{}", heading(run))?;
    }
    Ok(())
}
