//! `selvedge report`: prints what an earlier run found, from the store.

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use selvedge_report::{FORMATS, Format};

use crate::args::{FailOn, Output, Report};
use crate::exit::{Exit, Failure};
use crate::messages::warning_label;
use crate::store::{self, Run, Store};
use crate::terminal;

/// Prints a run's findings, or the list of runs. The exit code does not depend on the findings.
pub(crate) fn run(args: &Report) -> Result<Exit, Failure> {
    let here = std::env::current_dir()?;
    let directory = store::directory(&here);
    let store = Store::open(&directory)?;
    if args.runs {
        list(&store.runs()?)?;
        return Ok(Exit::Clean);
    }
    let run = store.run(args.run)?;
    let report = store.report(&run)?;
    let mut source = args.source.clone();
    source.extend(directory.parent().map(Path::to_owned));
    let short = match (args.json, &args.html) {
        (true, _) => Format::named("json"),
        (false, Some(_)) => Format::named("html"),
        (false, None) => None,
    };
    let format = short.unwrap_or(args.format);
    let output = Output { format, fail_on: FailOn::Never, all: args.all, source };
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
    Ok(Exit::Clean)
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
