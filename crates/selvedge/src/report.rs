//! A failure in words: what happened, the interleaving in thread columns, and how to see it again.

use std::collections::HashMap;
use std::fmt::Write;

use selvedge_explore::Pending;
use selvedge_explore::explain::{Story, explain, layout};
use selvedge_model::{Schedule, Site, SiteId, Symbols, ThreadId};

use crate::exec::worker::Execution;
use crate::failure::Cause;

/// What there is to say.
pub(crate) struct Report<'a> {
    pub(crate) test: Option<&'a str>,
    pub(crate) execution: u64,
    pub(crate) options: &'a str,
    pub(crate) words: &'a str,
    pub(crate) schedule: &'a Schedule,
    pub(crate) interleaving: Option<(&'a Execution, &'a Cause, &'a Symbols)>,
    pub(crate) note: Option<&'a str>,
}

/// A longer schedule is no use on a command line.
const LONG: usize = 20_000;
/// Lines of an interleaving are no wider.
const WIDTH: usize = 120;

pub(crate) fn render(report: &Report<'_>) -> String {
    let mut out = String::new();
    let Report { execution, options, words, schedule, .. } = report;
    let _ = writeln!(out, "selvedge: execution {execution} failed ({options})\n{words}");
    if let Some(note) = report.note {
        let _ = writeln!(out, "{note}");
    }
    if let Some((shown, cause, symbols)) = report.interleaving {
        let preemptions = match schedule.preemptions() {
            1 => "1 preemption".to_owned(),
            n => format!("{n} preemptions"),
        };
        let _ = writeln!(out, "\nThe interleaving, with {preemptions}:");
        columns(&mut out, shown, cause, symbols);
    }
    let schedule = schedule.to_string();
    if schedule.len() > LONG {
        let _ = write!(
            out,
            "\nIts schedule is {} characters long: `Explore::run` returns it in `Failure::schedule`.",
            schedule.len()
        );
    } else if !report.schedule.is_empty() || report.interleaving.is_some() {
        let test = report.test.filter(|t| *t != "main").unwrap_or("");
        let _ = write!(
            out,
            "\nTo replay it:\n    SELVEDGE_REPLAY='{schedule}' cargo test {test}\nor in the source:\n    \
             selvedge::replay(body, \"{schedule}\");"
        );
    }
    out
}

/// One column per thread, only what matters.
fn columns(out: &mut String, shown: &Execution, cause: &Cause, symbols: &Symbols) {
    let mut symbols = symbols.clone();
    for name in &shown.threads {
        symbols.threads.push(name.as_str().into());
    }
    let mut blocked: Vec<(ThreadId, Pending)> = Vec::new();
    let mut places: Vec<SiteId> = Vec::new();
    let mut ending = None;
    match cause {
        Cause::Deadlock(list) | Cause::Leak(list) => {
            for b in list {
                let site = SiteId(symbols.sites.intern(Site::parse(&b.at)));
                blocked.push((b.thread, Pending { site, landmark: 0, step: b.step }));
            }
        }
        Cause::Finding(finding) => places.extend(finding.places.iter().map(|p| p.site)),
        Cause::Panic { thread, .. } => {
            let thread = shown.threads.iter().position(|t| t == thread).unwrap_or(0);
            ending = Some((ThreadId(thread as u32), "panics"));
        }
        _ => {}
    }
    let story = Story {
        events: &shown.events,
        stops: &shown.stops,
        blocked: &blocked,
        places: &places,
        ending,
    };
    let mut files: HashMap<String, Option<String>> = HashMap::new();
    let source = |site: SiteId| {
        let frame = symbols.site(site).frame()?.clone();
        let text = files.entry(frame.file.to_string()).or_insert_with(|| source(&frame.file));
        Some(text.as_ref()?.lines().nth(frame.line.checked_sub(1)? as usize)?.to_owned())
    };
    for line in layout(&explain(&story), &symbols, source, WIDTH) {
        let text: String = line.iter().map(|span| span.text.as_str()).collect();
        let _ = writeln!(out, "  {text}");
    }
}

/// A source file, whose path is relative to this directory or one above it.
fn source(file: &str) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().take(4).find_map(|dir| std::fs::read_to_string(dir.join(file)).ok())
}
