//! `selvedge report`: prints what an earlier run found, from the store.

mod baseline;

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use selvedge_report::{Baseline, Case, FORMATS, Format, Since, escape, words};

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
        list(&store)?;
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
        writeln!(out, "observed: {}\n", escape::harmless(&run.instrumented))?;
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
    let command = run.command.join(" ");
    format!("run {}: {} ({}; {ending})", run.id, escape::harmless(&command), run.mode)
}

/// The runs, the last one first: what ran and how it ended, when, and how many findings there are.
fn list(store: &Store) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for run in store.runs()? {
        let findings = store.report(&run)?.cases.len() as u64;
        let (when, findings) = (utc(run.started), words::count(findings, "finding"));
        writeln!(out, "{}, {when}: {findings}", heading(&run))?;
    }
    Ok(())
}

/// Seconds since 1970 as a date and a time. The date is Howard Hinnant's `civil_from_days`.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (rest / 3600, rest / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(super::utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(super::utc(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(super::utc(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(super::utc(1_000_000_000), "2001-09-09 01:46 UTC");
        assert_eq!(super::utc(4_107_542_400), "2100-03-01 00:00 UTC");
    }
}
