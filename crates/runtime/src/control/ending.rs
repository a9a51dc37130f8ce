//! What an execution of a process leaves behind becomes an [`Outcome`](engine::Outcome).
//!
//! A failure is recognised by a signal, the line that a failed `assert` or a Rust panic writes, threads
//! that all wait, or a fair execution in which nothing changes any more. One that was cut off is undecided.

use selvedge_engine::{self as engine, Limit};
use selvedge_model::{
    Blocked, Ended, Failure, Finding, Frame, Kind, Place, Role, Site, SiteId, ThreadId,
};

use super::{Controlled, Execution, Outcome};

const SIGABRT: i32 = 6;
/// The longest part of a message that is repeated in a report.
const MESSAGE: usize = 300;

impl Controlled {
    /// How the execution that ran last ended.
    pub(super) fn outcome(&mut self, execution: &Execution) -> engine::Outcome {
        let errors = String::from_utf8_lossy(&execution.stderr);
        let finding = match &execution.outcome {
            Outcome::Exited(0) => return engine::Outcome::Exited(0),
            // Rust's test harness holds back what a test says, and shows it on standard output.
            Outcome::Exited(code) => match message(&errors)
                .or_else(|| rust_panic(&String::from_utf8_lossy(&execution.stdout)))
            {
                Some(message) => self.assertion(message, Ended::Code(*code), execution.last),
                None => return engine::Outcome::Exited(*code),
            },
            Outcome::Signaled(signal) => match message(&errors) {
                Some(message) if *signal == SIGABRT => {
                    self.assertion(message, Ended::Signal(*signal), execution.last)
                }
                _ => crash(*signal, &errors, execution),
            },
            Outcome::Deadlock(blocked) => self.stuck(blocked),
            Outcome::NoProgress => {
                Finding::failure(Kind::Hang, Failure::Steps(execution.steps), Vec::new())
            }
            Outcome::StepLimit => {
                return engine::Outcome::Undecided(Limit::Steps(execution.steps));
            }
            Outcome::TimeLimit => {
                return engine::Outcome::Undecided(Limit::Time(self.settings.time));
            }
        };
        engine::Outcome::Failed(Box::new(finding))
    }

    fn assertion(&mut self, message: Message, ended: Ended, last: ThreadId) -> Finding {
        let Message { mut text, site, thread } = message;
        if text.len() > MESSAGE {
            let end = (0..=MESSAGE).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        let places: Vec<Place> = site
            .map(|site| SiteId(self.symbols.sites.intern(site)))
            .map(|site| Place { thread: last, site, role: Role::Fail, held: Vec::new() })
            .into_iter()
            .collect();
        Finding::failure(
            Kind::Assertion,
            Failure::Message { text, thread, ended: Some(ended) },
            places,
        )
    }

    fn stuck(&mut self, blocked: &[super::Blocked]) -> Finding {
        let blocked: Vec<Blocked> = blocked.iter().map(|b| self.waiting(b)).collect();
        let circle = circle(&blocked);
        // That a thread joins one that waits is not why that one waits, and a library waits for all of
        // its threads.
        let matters = |b: &Blocked| {
            !matches!(b.wants, Role::Join(_))
                && !self.resolver.is_library(&self.symbols.site(b.site))
        };
        let part: Vec<ThreadId> = match circle.as_slice() {
            [] if blocked.iter().any(matters) => {
                blocked.iter().filter(|b| matters(b)).map(|b| b.thread).collect()
            }
            [] => blocked.iter().map(|b| b.thread).collect(),
            circle => circle.to_vec(),
        };
        let of = |&thread: &ThreadId| blocked.iter().find(|b| b.thread == thread).cloned();
        let others = blocked.iter().filter(|b| !part.contains(&b.thread)).cloned().collect();
        let part: Vec<Blocked> = part.iter().filter_map(of).collect();
        let places = part.iter().map(Blocked::place).collect();
        Finding::failure(Kind::Deadlock, Failure::Stuck { part, others }, places)
    }

    fn waiting(&mut self, b: &super::Blocked) -> Blocked {
        let (wants, mode) = match b.pending.step.awaited() {
            // Without a name it may as well be the inside of a lock.
            (Role::Await(cond), mode) if !self.is_named(cond) => (Role::Sleep, mode),
            awaited => awaited,
        };
        Blocked {
            thread: b.thread,
            site: b.pending.site,
            wants,
            mode,
            holds: b.holds.clone(),
            waits_for: b.waits_for,
        }
    }
}

fn crash(signal: i32, errors: &str, execution: &Execution) -> Finding {
    // The last words of the C library or of a sanitizer say more than the signal.
    let said = errors.lines().map(str::trim).rfind(|l| !l.is_empty()).map(str::to_owned);
    let address = execution.crash.and_then(|c| c.addr);
    let place = execution.crash.map(|c| Place {
        thread: c.thread.unwrap_or(execution.last),
        site: c.site,
        role: Role::Fail,
        held: Vec::new(),
    });
    let approximate = execution.crash.is_some_and(|c| c.approximate);
    let failure = Failure::Signal { number: signal, address, said, approximate };
    Finding::failure(Kind::Crash, failure, place.into_iter().collect())
}

/// Threads each of which waits for a lock that the next one holds, if there are any.
fn circle(blocked: &[Blocked]) -> Vec<ThreadId> {
    let of = |thread: ThreadId| blocked.iter().find(|b| b.thread == thread);
    for start in blocked.iter().filter(|b| b.lock().is_some()) {
        let mut members = vec![start.thread];
        let mut at = start;
        while let Some(next) = at.waits_for.and_then(of).filter(|b| b.lock().is_some()) {
            if next.thread == start.thread {
                return members;
            }
            if members.contains(&next.thread) {
                break;
            }
            members.push(next.thread);
            at = next;
        }
    }
    Vec::new()
}

/// What a failed assertion or a panic says.
#[derive(PartialEq, Debug)]
struct Message {
    text: String,
    site: Option<Site>,
    thread: Option<String>,
}

/// Finds the line that `assert`, a Rust panic or an uncaught C++ exception leaves behind.
fn message(errors: &str) -> Option<Message> {
    rust_panic(errors).or_else(|| errors.lines().find_map(c_assert)).or_else(|| uncaught(errors))
}

/// `program: file.c:12: main: Assertion `x == 2' failed.`
fn c_assert(line: &str) -> Option<Message> {
    let (head, rest) = line.split_once(": Assertion `")?;
    let (text, _) = rest.rsplit_once("' failed.")?;
    // The function, which may have colons in C++, comes after the line number.
    let mut parts = head.split_once(": ")?.1.splitn(3, ':');
    let (file, number, function) = (parts.next()?, parts.next()?, parts.next().unwrap_or(""));
    let frame = Frame {
        file: file.into(),
        line: number.parse().ok()?,
        function: function.trim().into(),
        column: 0,
    };
    let site = Some(Site::Source(frame, Vec::new()));
    Some(Message { text: text.to_owned(), site, thread: None })
}

/// `thread 'name' (7) panicked at src/main.rs:5:9:` and the message in the lines after it.
fn rust_panic(errors: &str) -> Option<Message> {
    let mut lines = errors.lines().skip_while(|l| !is_panic(l));
    let line = lines.next()?;
    let (head, place) = line.split_once(" panicked at ")?;
    let thread = head.split('\'').nth(1).map(str::to_owned);
    let site = Site::parse(place.trim_end_matches(':'));
    let text: Vec<&str> = lines.take_while(|l| !is_after_panic(l)).map(str::trim).take(4).collect();
    Some(Message { text: text.join(" ").trim().to_owned(), site: Some(site), thread })
}

fn is_after_panic(line: &str) -> bool {
    line.starts_with("note: ") || line.starts_with("stack backtrace:") || is_panic(line)
}

fn is_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(" panicked at ")
}

/// `terminate called after throwing an instance of 'T'` and perhaps `  what():  message`.
fn uncaught(errors: &str) -> Option<Message> {
    let mut lines = errors.lines().skip_while(|l| !l.starts_with("terminate called"));
    let first = lines.next()?;
    let what = lines.next().and_then(|l| l.trim().strip_prefix("what():")).map(str::trim);
    let text = match (first.split('\'').nth(1), what) {
        (Some(of), Some(what)) => format!("uncaught {of}: {what}"),
        (Some(of), None) => format!("uncaught {of}"),
        (None, _) => first.to_owned(),
    };
    Some(Message { text, site: None, thread: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(errors: &str) -> Option<(String, String)> {
        message(errors).map(|m| (m.text, m.site.map(|s| s.to_string()).unwrap_or_default()))
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
