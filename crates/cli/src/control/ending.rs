//! How a controlled execution ended, in terms that outlive it.
//!
//! A failure is recognised by what it leaves behind: a signal, the line that a failed `assert` or a Rust
//! panic writes, threads that all wait, an execution that does not end. Its identity is its kind and its
//! places, or what it says where it has no place.

use selvedge_model::{
    Blocked, Ended, Failure, Finding, FindingId, Frame, Kind, Place, Role, Site, Status, Subject,
    Symbols, ThreadId,
};
use selvedge_report::words;
use selvedge_report::{self as report, Case};
use selvedge_runtime::Execution;
use selvedge_runtime::control::{self, Crash, Outcome, Uncontrolled};

use crate::symbolize;

/// How an execution ended.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Ending {
    /// With an exit code, and nothing that says why if it is not 0.
    Exit(i32),
    /// In a way that no program wants.
    Failed(Box<Case>),
}

const SIGABRT: i32 = 6;
/// How much of a message is worth repeating.
const MESSAGE: usize = 300;

impl Ending {
    /// Of an execution, whose names are `symbols`.
    pub(crate) fn new(execution: &Execution, symbols: &Symbols) -> Ending {
        let stderr = String::from_utf8_lossy(&execution.stderr);
        let case = match &execution.outcome {
            Outcome::Exited(0) => return Ending::Exit(0),
            // Rust's test harness keeps what a test says back, and shows it on standard output.
            Outcome::Exited(code) => match message(&stderr)
                .or_else(|| rust_panic(&String::from_utf8_lossy(&execution.stdout)))
            {
                Some(message) => failed_assertion(message, Ended::Code(*code)),
                None => return Ending::Exit(*code),
            },
            Outcome::Signaled(signal) => match message(&stderr) {
                Some(message) if *signal == SIGABRT => {
                    failed_assertion(message, Ended::Signal(*signal))
                }
                _ => crash(*signal, &stderr, execution.crash.as_ref(), symbols),
            },
            Outcome::Deadlock(waiting) => deadlock(waiting, symbols),
            Outcome::StepLimit => {
                let steps = execution.schedule.len().max(execution.events.len());
                case(Kind::Hang, Failure::Steps(steps as u64), Vec::new(), symbols)
            }
            // The limit is the user's own, and not worth repeating.
            Outcome::TimeLimit => case(Kind::Hang, Failure::Time(0), Vec::new(), symbols),
        };
        Ending::Failed(Box::new(case))
    }

    /// In terms that can be stored.
    pub(crate) fn outcome(&self) -> report::Outcome {
        match self {
            Ending::Exit(code) => report::Outcome::Exit(*code),
            Ending::Failed(case) => {
                report::Outcome::Failed { kind: case.kind, subject: case.subject.clone() }
            }
        }
    }

    /// In a few words: `exit code 1`.
    pub(crate) fn words(&self) -> String {
        words::outcome(&self.outcome())
    }
}

/// A failure as a case.
fn case(kind: Kind, failure: Failure, places: Vec<Place>, symbols: &Symbols) -> Case {
    let finding = Finding {
        kind,
        status: Status::Observed,
        verdict: None,
        analyses: Vec::new(),
        subject: Subject::Program(failure),
        places,
        target: None,
        occurrences: 1,
    };
    Case::new(&finding, symbols)
}

/// An exit code that only some schedules lead to.
pub(crate) fn exit(code: i32, usual: i32) -> Case {
    case(Kind::Assertion, Failure::Exit { code, usual }, Vec::new(), &Symbols::default())
}

/// A failure as a finding.
pub(crate) fn found(case: &Case, status: Status, by: &str) -> Case {
    Case { status, analyses: vec![by.to_owned()], ..case.clone() }
}

/// What a failed assertion or a panic says.
#[derive(PartialEq, Debug)]
struct Message {
    what: String,
    site: Option<Site>,
    thread: Option<String>,
}

/// Finds the line that `assert`, a Rust panic or an uncaught C++ exception leaves behind.
fn message(stderr: &str) -> Option<Message> {
    rust_panic(stderr).or_else(|| stderr.lines().find_map(c_assert)).or_else(|| uncaught(stderr))
}

/// `program: file.c:12: main: Assertion `x == 2' failed.`
fn c_assert(line: &str) -> Option<Message> {
    let (head, rest) = line.split_once(": Assertion `")?;
    let (what, _) = rest.rsplit_once("' failed.")?;
    // From the right: the function, which may have colons in C++, comes after the line number.
    let mut parts = head.split_once(": ")?.1.splitn(3, ':');
    let (file, number, function) = (parts.next()?, parts.next()?, parts.next().unwrap_or(""));
    let frame = Frame {
        file: file.into(),
        line: number.parse().ok()?,
        function: function.trim().into(),
        column: 0,
    };
    let site = Some(Site::Source(frame, Vec::new()));
    Some(Message { what: what.to_owned(), site, thread: None })
}

/// `thread 'name' (7) panicked at src/main.rs:5:9:` and the message in the lines after it.
fn rust_panic(stderr: &str) -> Option<Message> {
    let mut lines = stderr.lines().skip_while(|l| !is_panic(l));
    let line = lines.next()?;
    let (head, place) = line.split_once(" panicked at ")?;
    let name = head.split('\'').nth(1).map(str::to_owned);
    let site = Site::parse(place.trim_end_matches(':'));
    let what: Vec<&str> = lines.take_while(|l| !is_after_panic(l)).map(str::trim).take(4).collect();
    Some(Message { what: what.join(" ").trim().to_owned(), site: Some(site), thread: name })
}

fn is_after_panic(line: &str) -> bool {
    line.starts_with("note: ") || line.starts_with("stack backtrace:") || is_panic(line)
}

fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

/// `terminate called after throwing an instance of 'T'` and perhaps `  what():  message`.
fn uncaught(stderr: &str) -> Option<Message> {
    let mut lines = stderr.lines().skip_while(|l| !l.starts_with("terminate called"));
    let first = lines.next()?;
    let what = lines.next().and_then(|l| l.trim().strip_prefix("what():")).map(str::trim);
    let what = match (first.split('\'').nth(1), what) {
        (Some(of), Some(what)) => format!("uncaught {of}: {what}"),
        (Some(of), None) => format!("uncaught {of}"),
        (None, _) => first.to_owned(),
    };
    Some(Message { what, site: None, thread: None })
}

fn failed_assertion(message: Message, ended: Ended) -> Case {
    let Message { what: mut text, site, thread } = message;
    if text.len() > MESSAGE {
        let end = (0..=MESSAGE).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    let failure = Failure::Message { text, thread: thread.clone(), ended: Some(ended) };
    let mut case = case(Kind::Assertion, failure, Vec::new(), &Symbols::default());
    if let Some(site) = site {
        case.id = FindingId::new(case.kind, [site.to_string()]).to_string();
        let thread = thread.unwrap_or_default();
        case.places.push(report::Place::bare(thread, site, report::Role::Fail));
    }
    case
}

fn crash(number: i32, stderr: &str, known: Option<&Crash>, symbols: &Symbols) -> Case {
    // The last words of the C library or of a sanitizer say more than the signal.
    let said = stderr.lines().map(str::trim).rfind(|l| !l.is_empty()).map(str::to_owned);
    let failure = Failure::Signal { number, address: known.and_then(|c| c.addr), said };
    let place = |c: &Crash| Place {
        thread: c.thread.unwrap_or(ThreadId(0)),
        site: c.site,
        role: Role::Fail,
        held: Vec::new(),
    };
    let places = known.map(place).into_iter().collect();
    let mut case = case(Kind::Crash, failure, places, symbols);
    for (place, known) in case.places.iter_mut().zip(known) {
        (place.held, place.approximate) = (None, known.approximate);
        if known.thread.is_none() {
            place.thread.clear();
        }
    }
    case
}

/// What threads wait for, in terms of findings.
pub(crate) fn blocked(waiting: &[control::Blocked]) -> Vec<Blocked> {
    let one = |b: &control::Blocked| {
        let (wants, mode) = b.pending.step.awaited();
        let (thread, site, waits_for) = (b.thread, b.pending.site, b.waits_for);
        Blocked { thread, site, wants, mode, holds: b.holds.clone(), waits_for }
    };
    waiting.iter().map(one).collect()
}

fn deadlock(waiting: &[control::Blocked], symbols: &Symbols) -> Case {
    let all = blocked(waiting);
    let circle = circle(&all);
    // A thread that joins one that waits is not why it waits, nor is a library that waits for all.
    let matters = |b: &&Blocked| {
        let site = symbols.site(b.site);
        let is_users = site.frame().is_none_or(|f| !symbolize::is_library(f));
        !matches!(b.wants, Role::Join(_)) && is_users
    };
    let part: Vec<Blocked> = match circle.as_slice() {
        [] if all.iter().any(|b| matters(&b)) => all.iter().filter(matters).cloned().collect(),
        [] => all.clone(),
        circle => circle.iter().map(|&b| b.clone()).collect(),
    };
    let takes_part = |b: &Blocked| part.iter().any(|p| p.thread == b.thread);
    let others = all.iter().filter(|b| !takes_part(b)).cloned().collect();
    let places = part.iter().map(Blocked::place).collect();
    case(Kind::Deadlock, Failure::Stuck { part, others }, places, symbols)
}

/// Threads each of which waits for a lock that the next one holds, if there are any.
fn circle(blocked: &[Blocked]) -> Vec<&Blocked> {
    let of = |thread: ThreadId| blocked.iter().find(|b| b.thread == thread);
    let wants = |b: &Blocked| b.lock().is_some();
    for start in blocked.iter().filter(|b| wants(b)) {
        let mut members = vec![start];
        let mut at = start;
        while let Some(next) = at.waits_for.and_then(of).filter(|b| wants(b)) {
            if next.thread == start.thread {
                return members;
            }
            if members.iter().any(|m| m.thread == next.thread) {
                break;
            }
            members.push(next);
            at = next;
        }
    }
    Vec::new()
}

/// To wait in one of these is to be about to end: `exit` and `exit_group`.
const ENDS: [u32; 2] = [60, 231];

/// What was not under control, each once, in words.
pub(crate) fn uncontrolled(execution: &Execution) -> Vec<String> {
    let mut words: Vec<String> = execution
        .uncontrolled
        .iter()
        .filter(
            |u| !matches!(u, Uncontrolled::SystemCall { number: Some(n), .. } if ENDS.contains(n)),
        )
        .map(ToString::to_string)
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(stderr: &str) -> Option<(String, String)> {
        message(stderr).map(|m| (m.what, m.site.map(|s| s.to_string()).unwrap_or_default()))
    }

    #[test]
    fn messages_of_failures_are_understood() {
        let told = |text: &str| told(text).expect("a message");
        assert_eq!(
            told("hello\nprog: src/a.c:12: check: Assertion `x == 2' failed.\n"),
            ("x == 2".into(), "src/a.c:12".into())
        );
        assert_eq!(
            told("prog: a.cpp:3: void S::f(int): Assertion `a::b(1)' failed.\n"),
            ("a::b(1)".into(), "a.cpp:3".into())
        );
        let panic = "\nthread 'main' (12) panicked at src/main.rs:5:9:\nassertion `left == right` failed\n  left: 1\n right: 2\nnote: run with `RUST_BACKTRACE=1`\n";
        assert_eq!(
            told(panic),
            ("assertion `left == right` failed left: 1 right: 2".into(), "src/main.rs:5:9".into())
        );
        assert_eq!(
            told("terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad\n").0,
            "uncaught std::runtime_error: bad"
        );
        assert_eq!(message("usage: prog FILE\n"), None);
    }
}
