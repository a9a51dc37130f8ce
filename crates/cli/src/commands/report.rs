//! `selvedge report`: prints what an earlier run found, from the store.

use std::io::Write;
use std::path::Path;

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
    let json = Format::named("json").filter(|_| args.json);
    let format = json.unwrap_or(args.format);
    let output = Output { format, fail_on: FailOn::Never, all: args.all, source };
    if format.name == FORMATS[0].name {
        let mut out = anstream::stdout();
        writeln!(out, "{}", heading(&run))?;
        writeln!(out, "observed: {}\n", run.instrumented)?;
    }
    terminal::print(&report, &output)?;
    if run.ending.is_none() {
        anstream::eprintln!(
            "{}: run {} has not ended, or was killed: the list may be incomplete",
            warning_label(),
            run.id
        );
    }
    Ok(Exit::Clean)
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
