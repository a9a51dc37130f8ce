//! A failure in words: what happened, the interleaving in thread columns, and how to see it again.

use std::fmt::Write;

use selvedge_model as model;
use selvedge_model::{Finding, Kind, Role, Schedule, SiteId, Status, Subject, Symbols, ThreadId};
use selvedge_report::interleaving::PIECE;
use selvedge_report::{Case, End, Interleaving, Sources, Story, explain, layout};

use crate::exec::worker::Execution;
use crate::failure::{Blocked, Cause};

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

/// A longer schedule does not fit on a command line.
const LONG: usize = 20_000;
/// How wide lines of an interleaving may be.
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
    let mut blocked: Vec<model::Blocked> = Vec::new();
    let mut places: Vec<SiteId> = Vec::new();
    let mut ending = None;
    match cause {
        Cause::Deadlock(list) | Cause::Leak(list) => blocked = waiting(list, &mut symbols),
        Cause::Finding(finding) => places.extend(finding.places.iter().map(|p| p.site)),
        Cause::Panic { thread, .. } => {
            let thread = shown.threads.iter().position(|t| t == thread).unwrap_or(0);
            ending = Some((ThreadId(thread as u32), End::Panics));
        }
        _ => {}
    }
    let explanation = explain(&Story {
        events: &shown.events,
        stops: &shown.stops,
        blocked: &blocked,
        places: &places,
        ending,
    });
    let rows = Interleaving::new(&explanation, shown.stops.len(), &symbols);
    for line in layout(&rows, &mut Sources::new(source), WIDTH) {
        let text: String = line.iter().map(|span| span.text.as_str()).collect();
        let _ = writeln!(out, "  {text}");
    }
}

/// Threads that wait, in terms of findings.
fn waiting(list: &[Blocked], symbols: &mut Symbols) -> Vec<model::Blocked> {
    let one = |b: &Blocked| {
        let (wants, mode) = b.step.awaited();
        model::Blocked {
            thread: b.thread,
            site: SiteId(symbols.sites.intern(b.site.clone())),
            wants,
            mode,
            holds: Vec::new(),
            waits_for: b.holder.as_ref().map(|(thread, _)| *thread),
        }
    };
    list.iter().map(one).collect()
}

/// A deadlock as a case. Threads that wait for the end of others are not why.
pub(crate) fn stuck(list: &[Blocked], symbols: &Symbols) -> Case {
    let mut symbols = symbols.clone();
    let all = waiting(list, &mut symbols);
    let locks = |b: &model::Blocked| b.lock().is_some();
    let alive = |b: &model::Blocked| !matches!(b.wants, Role::Join(_));
    let (part, others) = match (all.iter().any(locks), all.iter().any(alive)) {
        (true, _) => all.into_iter().partition(locks),
        (_, true) => all.into_iter().partition(alive),
        _ => (all, Vec::new()),
    };
    let finding = Finding {
        kind: Kind::Deadlock,
        status: Status::Confirmed,
        verdict: None,
        analyses: Vec::new(),
        places: part.iter().map(model::Blocked::place).collect(),
        subject: Subject::Program(model::Failure::Stuck { part, others }),
        target: None,
        occurrences: 1,
    };
    case(&finding, &symbols)
}

/// A finding with names for what has none: the numbers that interleavings show.
pub(crate) fn case(finding: &Finding, symbols: &Symbols) -> Case {
    let mut symbols = symbols.clone();
    if let Subject::Memory(range) = finding.subject {
        symbols.variables.define(&format!("cell {}", range.start / PIECE), range);
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

/// A source file, whose path is relative to this directory or one above it.
fn source(file: &str) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().take(4).find_map(|dir| std::fs::read_to_string(dir.join(file)).ok())
}
