//! `selvedge check`: analyses over recorded traces, in one pass for all of them.

use std::io::Write;
use std::path::Path;

use crate::args::{Check, Output, ReportFormat};
use crate::catalogue;
use crate::claims::Renamed;
use crate::exit::{Exit, Failure};
use crate::input::Input;
use crate::report::{self, Report};

/// Analyses the traces and prints what was found. A trace that turns out to be unreadable half-way is
/// a failure, after the findings up to there have been printed.
pub(crate) fn run(args: &Check) -> Result<Exit, Failure> {
    let mut report = Report::default();
    let outcome = analyse_into(args, &mut report);
    if outcome.is_ok() || !report.findings.is_empty() {
        print(&report, &args.output)?;
    }
    outcome?;
    let failed = report.findings.iter().any(|f| args.output.fail_on.fails(f.status));
    Ok(if failed { Exit::Findings } else { Exit::Clean })
}

/// Analyses the traces.
pub(crate) fn analyse_all(args: &Check) -> Result<Report, Failure> {
    let mut report = Report::default();
    analyse_into(args, &mut report)?;
    Ok(report)
}

fn analyse_into(args: &Check, report: &mut Report) -> Result<(), Failure> {
    args.traces.iter().try_for_each(|path| analyse(path, args, report))
}

fn analyse(path: &Path, args: &Check, report: &mut Report) -> Result<(), Failure> {
    let mut pipeline = catalogue::select(&args.analyses, &args.regions)?;
    let mut renamed = Renamed::new(args.regions.claims());
    let mut input = Input::open(path)?;
    let mut batch = Vec::new();
    let mut events = 0;
    let outcome = loop {
        let outcome = input.read(&mut batch);
        events += batch.len() as u64;
        renamed.change(&mut batch, input.reader().symbols());
        pipeline.on_events(&batch);
        if outcome.is_err() || batch.is_empty() {
            break outcome;
        }
    };
    pipeline.finish();
    let symbols = input.reader().symbols();
    report.stats.events += events;
    report.stats.threads += symbols.threads.entries().len();
    report.stats.traces += 1;
    report.stats.analyses = pipeline.names().map(ToOwned::to_owned).collect();
    let bounds = catalogue::bounds(&pipeline).map(|bound| format!("{}: {bound}", path.display()));
    report.stats.bounds.extend(bounds);
    let findings = pipeline.take_findings();
    findings.into_iter().for_each(|f| report.add(report::ReportedFinding::new(&f, symbols)));
    outcome
}

/// Prints a report to standard output.
pub(crate) fn print(report: &Report, output: &Output) -> Result<(), Failure> {
    match output.format {
        ReportFormat::Text => {
            let text = report::text::render(report, output);
            anstream::stdout().write_all(text.as_bytes())?;
        }
        ReportFormat::Json => {
            let mut out = std::io::stdout().lock();
            out.write_all(report::json::render(report).as_bytes())?;
        }
    }
    Ok(())
}
