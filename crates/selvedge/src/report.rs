//! A failure in words: what happened, the interleaving in thread columns, and how to see it again.

use std::fmt::Write;

use crate::exec::made::source;
use selvedge_engine::Replayed;
use selvedge_model as model;
use selvedge_model::symbols::Nameless;
use selvedge_model::{Finding, Role, Schedule, Site, Subject, Symbols};
use selvedge_report::{
    Case, Executed, Interleaving, Line, Sources, beside, explain_execution, layout,
};

/// What a report of a failure is made from.
pub(crate) struct Report<'a> {
    pub(crate) test: Option<&'a str>,
    pub(crate) execution: u64,
    /// How the execution came about.
    pub(crate) how: &'a str,
    pub(crate) words: &'a str,
    /// One, or those of two executions that differ.
    pub(crate) schedules: &'a [Schedule],
    /// The replays, if they showed it.
    pub(crate) shown: Vec<&'a Replayed>,
    /// The places that make the failure.
    pub(crate) critical: &'a [Site],
    pub(crate) note: Option<&'a str>,
}

/// The longest schedule, in characters, that is shown for use on a command line.
const LONG: usize = 20_000;
/// How wide lines of an interleaving may be.
const WIDTH: usize = 120;

pub(crate) fn render(report: &Report<'_>) -> String {
    let mut out = String::new();
    let Report { execution, how, words, schedules, .. } = report;
    let _ = writeln!(out, "selvedge: execution {execution} failed ({how})\n{words}");
    if let Some(note) = report.note {
        let _ = writeln!(out, "{note}");
    }
    match report.shown[..] {
        [] => {}
        [shown] => {
            let preemptions = match schedules.iter().map(Schedule::preemptions).sum() {
                1 => "1 preemption".to_owned(),
                n => format!("{n} preemptions"),
            };
            let _ = writeln!(out, "\nThe interleaving, with {preemptions}:");
            let rows = rows(shown, report.critical);
            print(&mut out, layout(&rows, &mut Sources::new(source), WIDTH));
        }
        [first, second, ..] => {
            let _ = writeln!(out, "\nThe two executions:");
            let [first, second] = [first, second].map(|shown| rows(shown, report.critical));
            print(&mut out, beside(&first, &second, &mut Sources::new(source), WIDTH));
        }
    }
    let all: Vec<String> = schedules.iter().map(ToString::to_string).collect();
    let schedule = all.join(" ");
    if schedule.len() > LONG {
        let _ = write!(
            out,
            "\nIts schedule is {} characters long: `Explore::run` returns it in `Failure::schedule`.",
            schedule.len()
        );
    } else if schedules.iter().any(|s| !s.is_empty()) || !report.shown.is_empty() {
        let test = report.test.filter(|t| *t != "main").unwrap_or("");
        let _ = write!(
            out,
            "\nTo replay it:\n    SELVEDGE_REPLAY='{schedule}' cargo test {test}\nor in the source:\n    \
             selvedge::replay(body, \"{schedule}\");"
        );
    }
    out
}

/// What matters of an execution.
fn rows(shown: &Replayed, critical: &[Site]) -> Interleaving {
    let execution = &shown.execution;
    let executed = Executed {
        events: &execution.events,
        stops: &execution.stops,
        last: execution.last,
        failed: shown.ending.finding(),
        exited: None,
        like: &[],
    };
    let explanation = explain_execution(&executed, critical, &shown.symbols);
    Interleaving::new(&explanation, execution.stops.len(), &shown.symbols)
}

/// One column per thread.
fn print(out: &mut String, lines: Vec<Line>) {
    for line in lines {
        let text: String = line.iter().map(|span| span.text.as_str()).collect();
        let _ = writeln!(out, "  {text}");
    }
}

/// A finding with names for what has none: the numbers that interleavings show.
pub(crate) fn case(finding: &Finding, symbols: &Symbols) -> Case {
    let mut symbols = symbols.clone();
    if let Subject::Memory(range) = finding.subject {
        symbols.variables.define(&format!("cell {}", range.start / Nameless::PIECE), range);
    }
    let mut locks: Vec<u32> = Vec::new();
    for place in &finding.places {
        locks.extend(place.held.iter().map(|h| h.lock.0));
        match place.role {
            Role::Acquire(lock) | Role::Release(lock) => locks.push(lock.0),
            Role::Await(cond) => fill(&mut symbols.conds, cond.0, "condition "),
            _ => {}
        }
        fill(&mut symbols.threads, place.thread.0, "");
    }
    if let Subject::Locks(wanted) = &finding.subject {
        locks.extend(wanted.iter().map(|l| l.0));
    }
    locks.into_iter().for_each(|id| fill(&mut symbols.locks, id, "lock "));
    Case::new(finding, &symbols)
}

/// Names everything up to an id by its number.
fn fill(names: &mut model::symbols::Names, id: u32, kind: &str) {
    for next in names.entries().len() as u32..=id {
        names.push(format!("{kind}{next}").into());
    }
}
