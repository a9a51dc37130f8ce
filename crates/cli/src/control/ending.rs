//! How a controlled execution ended, in terms that outlive it.
//!
//! A failure is recognised by what it leaves behind: a signal, the line that a failed `assert` or a Rust
//! panic writes, threads that all wait, an execution that does not end. Its identity is its kind and its
//! places, or what it says where it has no place.

use selvedge_explore::Step;
use selvedge_model::{FindingId, Frame, Kind, Op, Site, Status, Symbols, ThreadId};
use selvedge_runtime::Execution;
use selvedge_runtime::control::{Blocked, Crash, Outcome, Uncontrolled};

use crate::report::{ReportedFinding, ReportedPlace, ReportedRole};
use crate::run::ending::name as signal_name;
use crate::symbolize;

/// How an execution ended.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Ending {
    /// With an exit code, and nothing that says why if it is not 0.
    Exit(i32),
    /// In a way that no program wants.
    Failed(Box<Fault>),
}

/// A failure of an execution.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Fault {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) subject: Vec<String>,
    pub(crate) places: Vec<ReportedPlace>,
    pub(crate) notes: Vec<String>,
    /// The execution was cut off because it took too long, which another machine may see otherwise.
    pub(crate) limit: bool,
}

const SIGABRT: i32 = 6;
const SIGSEGV: i32 = 11;
/// Addresses below this are a null pointer's, or those of fields behind one.
const NULL_PAGE: u64 = 4096;
/// How much of a message is worth repeating.
const MESSAGE: usize = 300;

impl Ending {
    /// Of an execution, whose names are `symbols`.
    pub(crate) fn new(execution: &Execution, symbols: &Symbols) -> Ending {
        let stderr = String::from_utf8_lossy(&execution.stderr);
        match &execution.outcome {
            Outcome::Exited(0) => Ending::Exit(0),
            // Rust's test harness keeps what a test says back, and shows it on standard output.
            Outcome::Exited(code) => match message(&stderr)
                .or_else(|| rust_panic(&String::from_utf8_lossy(&execution.stdout)))
            {
                Some(message) => failed_assertion(message, &format!("exit code {code}")),
                None => Ending::Exit(*code),
            },
            Outcome::Signaled(signal) => match message(&stderr) {
                Some(message) if *signal == SIGABRT => {
                    failed_assertion(message, &signal_name(*signal))
                }
                _ => crash(*signal, &stderr, execution.crash.as_ref(), symbols),
            },
            Outcome::Deadlock(blocked) => deadlock(blocked, symbols),
            Outcome::StepLimit => endless(format!(
                "no end after {} steps",
                execution.schedule.len().max(execution.events.len())
            )),
            Outcome::TimeLimit => endless("no end within the time for one execution".to_owned()),
        }
    }

    /// In a few words, for comparisons of executions: `exit code 1`.
    pub(crate) fn words(&self) -> String {
        match self {
            Ending::Exit(code) => format!("exit code {code}"),
            Ending::Failed(fault) => fault.finding(Status::Observed, "explore").summary(),
        }
    }
}

impl Fault {
    /// As a finding.
    pub(crate) fn finding(&self, status: Status, by: &str) -> ReportedFinding {
        ReportedFinding {
            id: self.id.clone(),
            kind: self.kind,
            status,
            verdict: None,
            analyses: vec![by.to_owned()],
            subject: self.subject.clone(),
            notes: self.notes.clone(),
            places: self.places.clone(),
            occurrences: 1,
            control: None,
        }
    }

    /// An exit code that only some schedules lead to.
    pub(crate) fn exit(code: i32, usual: i32) -> Fault {
        let subject = vec![format!("exit code {code}, where other schedules exit with {usual}")];
        Fault::new(Kind::Assertion, subject, Vec::new(), &[format!("exit code {code}")])
    }

    /// `says` is what tells it from others if it has no places.
    fn new(kind: Kind, subject: Vec<String>, places: Vec<ReportedPlace>, says: &[String]) -> Fault {
        let sites: Vec<String> = match places.as_slice() {
            [] => says.to_vec(),
            places => places.iter().map(|p| p.site.to_string()).collect(),
        };
        let id = FindingId::new(kind, sites).to_string();
        Fault { id, kind, subject, places, notes: Vec::new(), limit: false }
    }
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

fn failed_assertion(message: Message, how: &str) -> Ending {
    let Message { mut what, site, thread } = message;
    if what.len() > MESSAGE {
        let end = (0..=MESSAGE).rev().find(|&i| what.is_char_boundary(i)).unwrap_or(0);
        what.truncate(end);
        what.push('…');
    }
    let place = site.map(|site| failing(thread.unwrap_or_default(), site));
    let says = [what.clone()];
    let mut fault = Fault::new(Kind::Assertion, vec![what], place.into_iter().collect(), &says);
    fault.notes.push(format!("the program ended with {how}"));
    Ending::Failed(Box::new(fault))
}

fn failing(thread: String, site: Site) -> ReportedPlace {
    ReportedPlace::new(thread, site, ReportedRole { name: "fail".into(), object: None })
}

/// Where a signal met the program.
fn place(crash: &Crash, symbols: &Symbols) -> ReportedPlace {
    let thread = crash.thread.map(|t| symbols.thread(t)).unwrap_or_default();
    let place = failing(thread, symbols.site(crash.site));
    ReportedPlace { approximate: crash.approximate, ..place }
}

fn crash(signal: i32, stderr: &str, known: Option<&Crash>, symbols: &Symbols) -> Ending {
    let name = signal_name(signal);
    // The last words of the C library or of a sanitizer say more than the signal.
    let last = stderr.lines().map(str::trim).rfind(|l| !l.is_empty());
    let places = known.map(|c| place(c, symbols)).into_iter().collect();
    let mut fault = Fault::new(Kind::Crash, vec![name.clone()], places, &[name]);
    if signal == SIGSEGV && known.and_then(|c| c.addr).is_some_and(|addr| addr < NULL_PAGE) {
        fault.notes.push("it used a null pointer".to_owned());
    }
    fault.notes.extend(last.map(|line| format!("it said: {line}")));
    Ending::Failed(Box::new(fault))
}

fn endless(what: String) -> Ending {
    let mut fault = Fault::new(Kind::Hang, vec![what], Vec::new(), &["limit".to_owned()]);
    fault.limit = true;
    Ending::Failed(Box::new(fault))
}

fn deadlock(blocked: &[Blocked], symbols: &Symbols) -> Ending {
    let circle = circle(blocked);
    let is_join = |b: &&Blocked| matches!(b.pending.step, Step::Do(Op::Join(_)));
    // Who joins a thread that waits is not why it waits, nor is a library that waits for all of them.
    let is_users = |b: &&Blocked| {
        let site = symbols.site(b.pending.site);
        site.frame().is_none_or(|f| !symbolize::is_library(&f.file))
    };
    let matters = |b: &&Blocked| !is_join(b) && is_users(b);
    let part: Vec<&Blocked> = match circle.as_slice() {
        [] if blocked.iter().any(|b| matters(&b)) => blocked.iter().filter(matters).collect(),
        [] => blocked.iter().collect(),
        circle => circle.to_vec(),
    };
    let wanted = |b: &&Blocked| match b.pending.step {
        Step::Do(Op::Acquire(lock, _)) => Some(symbols.lock(lock)),
        _ => None,
    };
    let subject: Vec<String> = part.iter().filter_map(wanted).collect();
    let places: Vec<ReportedPlace> = part.iter().map(|b| waiting(b, symbols)).collect();
    let mut fault = Fault::new(Kind::Deadlock, subject, places, &["nobody".to_owned()]);
    let others = blocked.iter().filter(|b| part.iter().all(|p| p.thread != b.thread));
    fault.notes = others.map(|b| waits(b, symbols)).collect();
    Ending::Failed(Box::new(fault))
}

/// Threads each of which waits for a lock that the next one holds, if there are any.
fn circle(blocked: &[Blocked]) -> Vec<&Blocked> {
    let of = |thread: ThreadId| blocked.iter().find(|b| b.thread == thread);
    let wants = |b: &Blocked| matches!(b.pending.step, Step::Do(Op::Acquire(..)));
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

fn waiting(b: &Blocked, symbols: &Symbols) -> ReportedPlace {
    let (name, object) = waited_for(b, symbols);
    let role = ReportedRole { name: name.into(), object };
    let place = ReportedPlace::new(symbols.thread(b.thread), symbols.site(b.pending.site), role);
    place.holding(&b.holds, symbols)
}

/// What a thread is about to do, as a role, and to what.
fn waited_for(b: &Blocked, symbols: &Symbols) -> (&'static str, Option<String>) {
    match b.pending.step {
        Step::Do(Op::Acquire(lock, _)) => ("acquire", Some(symbols.lock(lock))),
        Step::Do(Op::Join(thread)) => ("join", Some(symbols.thread(thread))),
        // Without a name it may as well be the inside of a lock.
        Step::Do(Op::Wake(cond)) if symbols.cond(cond).starts_with("condition ") => ("sleep", None),
        Step::Do(Op::Wake(cond)) => ("await", Some(symbols.cond(cond))),
        Step::Do(Op::Wait(semaphore)) => ("wait", Some(symbols.semaphore(semaphore))),
        Step::Do(Op::Leave(barrier, _) | Op::Arrive(barrier, _)) => {
            ("leave", Some(symbols.barrier(barrier)))
        }
        _ => ("sleep", None),
    }
}

fn waits(b: &Blocked, symbols: &Symbols) -> String {
    let (_, object) = waited_for(b, symbols);
    let what = match (b.pending.step, object) {
        (Step::Do(Op::Join(_)), Some(thread)) => format!("thread {thread} to end"),
        (Step::Do(Op::Wake(_)), Some(cond)) => format!("a notification on `{cond}`"),
        (_, Some(object)) => format!("`{object}`"),
        (_, None) => "somebody to wake it".to_owned(),
    };
    let holder = match b.waits_for {
        Some(t) if t == b.thread => ", which it holds itself".to_owned(),
        Some(t) if !matches!(b.pending.step, Step::Do(Op::Join(_))) => {
            format!(", which thread {} holds", symbols.thread(t))
        }
        _ => String::new(),
    };
    let site = symbols.site(b.pending.site);
    format!("thread {} waits for {what}{holder}, at {site}", symbols.thread(b.thread))
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
