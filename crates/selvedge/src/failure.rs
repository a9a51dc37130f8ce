//! What a failed check reports.

use std::fmt;

use selvedge_model::Failure as Failing;
use selvedge_model::{Blocked, Finding, Kind, Mode, Role, Schedule, Status, Subject, Symbols};
use selvedge_report::{Act, Case, advice, words};

use crate::report;

/// The analysis whose races [`ownership`](crate::exec) may make predictions of.
const RACES: &str = selvedge_analyses::fasttrack::ENTRY.name;

/// A failed check.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What went wrong, where, and in which threads.
    pub case: Case,
    /// In which execution, counted from 1.
    pub execution: u64,
    /// The schedule that fails, with few preemptions.
    pub schedule: Schedule,
    /// The schedules that show it: two, if two executions came to different results.
    pub schedules: Vec<Schedule>,
    /// The failure in words: what happened, the interleaving, and how to replay it.
    pub(crate) text: String,
}

impl Failure {
    /// What kind of bug it is.
    pub fn kind(&self) -> Kind {
        self.case.kind
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// Whether a thread waits to read because another one waits to write.
fn waits_behind(reader: &Blocked, list: &[Blocked]) -> bool {
    let writer = reader.waits_for.and_then(|whom| list.iter().find(|b| b.thread == whom));
    writer.is_some_and(|writer| {
        (reader.mode, writer.mode) == (Mode::Shared, Mode::Exclusive)
            && reader.lock().is_some()
            && reader.lock() == writer.lock()
    })
}

/// Each thread that waits, in a line of its own.
fn waiting(list: &[Blocked], symbols: &Symbols) -> String {
    let line = |b: &Blocked| {
        let name = |thread| symbols.thread(thread);
        let holder = match b.waits_for {
            Some(t) if waits_behind(b, list) => {
                format!(", behind {}, which waits to write", name(t))
            }
            Some(t) if t == b.thread => ", which it holds itself".to_owned(),
            // The thread to join is named already.
            Some(_) if matches!(b.wants, Role::Join(_)) => String::new(),
            Some(t) => format!(", held by {}", name(t)),
            None => String::new(),
        };
        let waits = Act::of_blocked(b, symbols).waiting();
        format!("\n  {} {waits} at {}{holder}", name(b.thread), symbols.site(b.site))
    };
    list.iter().map(line).collect()
}

/// A finding in words: what, where, why and what helps.
pub(crate) fn in_words(finding: &Finding, symbols: &Symbols) -> String {
    match &finding.subject {
        Subject::Program(failure) => failed(failure, finding, symbols),
        Subject::Memory(_)
        | Subject::Locks(_)
        | Subject::Region(_)
        | Subject::Value { .. }
        | Subject::Observed(_)
        | Subject::Misused(..) => found(finding, symbols),
    }
}

fn failed(failure: &Failing, finding: &Finding, symbols: &Symbols) -> String {
    let place = finding.places.first();
    let thread = place.map_or_else(|| "a thread".to_owned(), |p| symbols.thread(p.thread));
    let at = place.map(|p| symbols.site(p.site).to_string()).unwrap_or_default();
    match failure {
        Failing::Message { text, .. } => format!("{thread} panicked at {at}:\n  {text}"),
        Failing::Stuck { part, others } if part.iter().any(|b| waits_behind(b, part)) => {
            let circle = waiting(part, symbols);
            let others = waiting(others, symbols);
            format!("deadlock: threads wait in a circle, readers behind writers{circle}{others}")
        }
        Failing::Stuck { part, others } => {
            let all = [&part[..], others].concat();
            let help = help(&report::case(finding, symbols));
            let waiting = waiting(&all, symbols);
            format!("deadlock: every thread is waiting, and no thread can wake them{waiting}{help}")
        }
        Failing::Left(list) => format!(
            "threads leaked: the test body returned, and these wait for ever{}",
            waiting(list, symbols)
        ),
        Failing::Steps(steps) => format!(
            "livelock: the test did not end after {steps} steps, and nothing changes any more although every \
             thread that can run has run"
        ),
        Failing::Unwinding(text) => format!(
            "{thread} panicked:\n  {text}\nand then a destructor had to wait for another thread at \
             {at}; that cannot be followed further"
        ),
        Failing::Stall(seconds) => format!(
            "stalled: no scheduling point for {seconds} s. The test body loops without one, or it \
             blocks on something that is not controlled, such as a lock of std::sync"
        ),
        Failing::NoStack { threads, error } => {
            format!(
                "no memory for the stack of thread {threads}: {error}; lower `Explore::stack_size`"
            )
        }
        Failing::Shared(made) => format!(
            "the object made at {} is used by two executions at a time. A static is shared by the \
             executions that run on several cores: use `Explore::jobs(1)`",
            symbols.site(*made)
        ),
        Failing::Unrepeatable { .. } | Failing::Signal { .. } | Failing::Exit { .. } => {
            words::summary(&report::case(finding, symbols))
        }
    }
}

fn found(finding: &Finding, symbols: &Symbols) -> String {
    let case = report::case(finding, symbols);
    // `races` predicts nothing by itself: see `exec::ownership`.
    let perhaps = match finding.analyses[..] {
        [RACES] if finding.status < Status::Observed => {
            "\n  unless the later access is made by the owner of the last `Arc`, which orders it"
        }
        _ => "",
    };
    told(&case, perhaps)
}

/// A case in words: what, where, how it differs, why and what helps.
pub(crate) fn case_in_words(case: &Case) -> String {
    told(case, "")
}

fn told(case: &Case, perhaps: &str) -> String {
    let places: String = case
        .places
        .iter()
        .map(|p| format!("\n  {}: {}", p.site, words::sentence(case.kind, p)))
        .collect();
    let facts = case.states.iter().map(words::state).chain(case.notes.iter().map(words::note));
    let facts: String = facts.map(|fact| format!("\n  {fact}")).collect();
    let verdict = case.verdict.map(|v| format!(", {}", v.name())).unwrap_or_default();
    format!(
        "{}: {} ({}{verdict}), found by {}{places}{facts}{perhaps}{}",
        case.id,
        words::summary(case),
        case.status.name(),
        case.analyses.join(", "),
        advised(case)
    )
}

/// Why it is a bug, and what helps.
fn advised(case: &Case) -> String {
    let why = advice::why(case).map(|why| format!("\n  why: {why}"));
    format!("{}{}", why.unwrap_or_default(), help(case))
}

/// What helps.
fn help(case: &Case) -> String {
    advice::missing(case).map(|help| format!("\n  help: {help}")).unwrap_or_default()
}
