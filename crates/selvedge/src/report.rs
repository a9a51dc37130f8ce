//! A failure in words: what happened, the interleaving in thread columns, and how to see it again.

use std::fmt::Write;

use selvedge_model::{Event, Op, Schedule, Symbols};

use crate::exec::worker::Execution;
use crate::failure::op_in_words;

/// What there is to say.
pub(crate) struct Report<'a> {
    pub(crate) test: Option<&'a str>,
    pub(crate) execution: u64,
    pub(crate) options: &'a str,
    pub(crate) words: &'a str,
    pub(crate) schedule: &'a Schedule,
    pub(crate) interleaving: Option<(&'a Execution, &'a Symbols)>,
    pub(crate) note: Option<&'a str>,
}

/// The most lines of an interleaving; of a longer one the beginning is left out.
const LINES: usize = 80;
/// The widest column.
const WIDEST: usize = 44;

pub(crate) fn render(report: &Report<'_>) -> String {
    let mut out = String::new();
    let Report { execution, options, words, schedule, .. } = report;
    let _ = writeln!(out, "selvedge: execution {execution} failed ({options})\n{words}");
    if let Some(note) = report.note {
        let _ = writeln!(out, "{note}");
    }
    if let Some((shown, symbols)) = report.interleaving {
        let preemptions = match schedule.preemptions() {
            1 => "1 preemption".to_owned(),
            n => format!("{n} preemptions"),
        };
        let _ = writeln!(out, "\nThe interleaving, with {preemptions}:");
        columns(&mut out, shown, symbols);
    }
    if !schedule.is_empty() || report.interleaving.is_some() {
        let test = report.test.filter(|t| *t != "main").unwrap_or("");
        let _ = write!(
            out,
            "\nTo replay it:\n    SELVEDGE_REPLAY='{schedule}' cargo test {test}\nor in the source:\n    \
             selvedge::replay(body, \"{schedule}\");"
        );
    }
    out
}

/// One column per thread, one line per event.
fn columns(out: &mut String, shown: &Execution, symbols: &Symbols) {
    let cell = |event: &Event| {
        let site = symbols.site(event.site).to_string();
        let file = site.rsplit(['/', '\\']).next().unwrap_or(&site).to_owned();
        format!("{}  {file}", op_in_words(event.op))
    };
    let events: Vec<&Event> =
        shown.events.iter().filter(|e| !matches!(e.op, Op::Begin | Op::End)).collect();
    let skipped = events.len().saturating_sub(LINES);
    let events = &events[skipped..];
    let mut used: Vec<usize> = events.iter().map(|e| e.thread.index()).collect();
    used.sort_unstable();
    used.dedup();
    let width = |t: usize| {
        let name = shown.threads.get(t).map_or(0, String::len);
        let cells = events.iter().filter(|e| e.thread.index() == t).map(|e| cell(e).len());
        cells.max().unwrap_or(0).max(name).min(WIDEST)
    };
    let widths: Vec<usize> = used.iter().map(|&t| width(t)).collect();
    let mut line = |cells: &mut dyn FnMut(usize) -> String| {
        let mut text = String::from("   ");
        for (&t, width) in used.iter().zip(&widths) {
            let _ = write!(text, " {:<width$} |", cells(t));
        }
        let _ = writeln!(out, "{}", text.trim_end_matches([' ', '|']));
    };
    line(&mut |t| shown.threads.get(t).cloned().unwrap_or_default());
    if skipped > 0 {
        line(&mut |_| format!("({skipped} before)"));
    }
    for event in events {
        line(&mut |t| if t == event.thread.index() { cell(event) } else { String::new() });
    }
}
