//! How far long work is: a line on the terminal, or lines of JSON for other tools.
//!
//! On a terminal the line appears when work takes a while, and goes away when it ends. In pipes and files nothing is
//! shown. `--progress json` writes a line to standard error when work begins, while it goes on and when it ends:
//! `{"progress":{"what":"explore","unit":"schedules","done":120,"of":1000,"seconds":1.5,"seconds_left":11.0,"findings":1}}`.

use std::cell::Cell;
use std::io::{self, IsTerminal, Read, Write};
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde_json::json;

use crate::deadline::Deadline;

const FIRST: Duration = Duration::from_millis(700);
const THEN: Duration = Duration::from_millis(200);

/// How to show progress.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Show {
    /// A line, if standard error is a terminal
    Auto,
    /// Lines of JSON on standard error
    Json,
    /// Not at all
    Never,
}

static SHOW: OnceLock<Show> = OnceLock::new();

impl Show {
    /// Makes all work from now on follow it.
    pub(crate) fn apply(self) {
        let _ = SHOW.set(self);
    }
}

/// How far something is.
#[derive(Clone, Copy, Default)]
struct State {
    done: u64,
    of: Option<u64>,
    findings: Option<usize>,
    /// The longest that it may still take, if there is a limit.
    limit: Option<Duration>,
}

/// Writes a line of JSON to standard error, if other tools read it there.
pub(crate) fn tell(line: &serde_json::Value) {
    if SHOW.get() == Some(&Show::Json) {
        eprintln!("{line}");
    }
}

/// Something that may take long.
struct Work {
    what: String,
    unit: &'static str,
    show: Show,
    begin: Instant,
    next: Instant,
    shown: bool,
    state: State,
}

impl Work {
    fn new(what: &str, unit: &'static str, of: Option<u64>) -> Work {
        let show = match SHOW.get().copied().unwrap_or(Show::Auto) {
            Show::Auto if !io::stderr().is_terminal() => Show::Never,
            show => show,
        };
        let begin = Instant::now();
        let state = State { of, ..State::default() };
        let work = Work {
            what: what.to_owned(),
            unit,
            show,
            begin,
            next: begin + FIRST,
            shown: false,
            state,
        };
        work.tell_tools();
        work
    }

    fn advance(&mut self, state: State) {
        self.state = state;
        let now = Instant::now();
        if self.show == Show::Never || now < self.next {
            return;
        }
        self.next = now + THEN;
        match self.show {
            Show::Json => self.tell_tools(),
            Show::Auto => {
                self.shown = true;
                eprint!("\r\x1b[K{}", self.line());
                let _ = io::stderr().flush();
            }
            Show::Never => {}
        }
    }

    fn seconds_left(&self) -> Option<f64> {
        let State { done, of, limit, .. } = self.state;
        let spent = self.begin.elapsed().as_secs_f64();
        let by_count = of.filter(|_| done > 0).map(|of| {
            let rest = of.saturating_sub(done) as f64;
            spent / done as f64 * rest
        });
        let limit = limit.map(|l| l.as_secs_f64());
        match (by_count, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn line(&self) -> String {
        let State { done, of, findings, .. } = self.state;
        let (what, unit) = (&self.what, self.unit);
        let mut line = match of {
            Some(of) => format!("{what}: {done} of {of} {unit}"),
            None => format!("{what}: {done} {unit}"),
        };
        let rate = done as f64 / self.begin.elapsed().as_secs_f64().max(0.001);
        line.push_str(&format!(", {rate:.0} per second"));
        match findings {
            Some(1) => line.push_str(", 1 finding"),
            Some(n) => line.push_str(&format!(", {n} findings")),
            None => {}
        }
        if let Some(left) = self.seconds_left() {
            line.push_str(&format!(", {left:.0} s left at most"));
        }
        line
    }

    fn tell_tools(&self) {
        if self.show != Show::Json {
            return;
        }
        let State { done, of, findings, .. } = self.state;
        let tenths = |seconds: f64| (seconds * 10.0).round() / 10.0;
        let line = json!({ "progress": {
            "what": self.what,
            "unit": self.unit,
            "done": done,
            "of": of,
            "seconds": tenths(self.begin.elapsed().as_secs_f64()),
            "seconds_left": self.seconds_left().map(tenths),
            "findings": findings,
        }});
        eprintln!("{line}");
    }

    fn clear(&mut self) {
        self.tell_tools();
        if std::mem::take(&mut self.shown) {
            eprint!("\r\x1b[K");
            let _ = io::stderr().flush();
        }
    }
}

/// How far a trace has been read.
pub(crate) struct Progress {
    work: Work,
    size: Option<u64>,
    consumed: Rc<Cell<u64>>,
    events: u64,
}

impl Progress {
    /// Begins with no event read; `size` is the size of the file, if known.
    pub(crate) fn new(name: &str, size: Option<u64>) -> Progress {
        let work = Work::new(name, "events", None);
        Progress { work, size: size.filter(|&n| n > 0), consumed: Rc::default(), events: 0 }
    }

    /// Counts what is read from `input`.
    pub(crate) fn counting(&self, input: Box<dyn Read>) -> impl Read + use<> {
        Counting { input, consumed: Rc::clone(&self.consumed) }
    }

    /// Counts `events` more events.
    pub(crate) fn advance(&mut self, events: usize) {
        self.events += events as u64;
        // The rest of the file is taken to be like what has been read.
        let consumed = self.consumed.get().max(1);
        let of = self.size.map(|size| {
            let events = u128::from(self.events) * u128::from(size) / u128::from(consumed);
            u64::try_from(events).unwrap_or(u64::MAX).max(self.events)
        });
        self.work.advance(State { done: self.events, of, ..State::default() });
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        self.work.clear();
    }
}

struct Counting {
    input: Box<dyn Read>,
    consumed: Rc<Cell<u64>>,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.consumed.set(self.consumed.get() + n as u64);
        Ok(n)
    }
}

/// How far a program is that runs freely. It has the terminal to itself: only other tools are told.
pub(crate) struct Observing(Work);

impl Observing {
    /// Begins with no event seen.
    pub(crate) fn new() -> Observing {
        let mut work = Work::new("observe", "events", None);
        if work.show == Show::Auto {
            work.show = Show::Never;
        }
        Observing(work)
    }

    /// There have been `events` events and `findings` findings so far.
    pub(crate) fn advance(&mut self, events: u64, findings: usize) {
        self.0.advance(State { done: events, findings: Some(findings), ..State::default() });
    }

    /// Says that it has ended.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// How many executions there have been.
pub(crate) struct Schedules {
    most: u64,
    work: Work,
}

impl Schedules {
    /// Counts up to `most` executions.
    pub(crate) fn new(what: &str, most: u64) -> Schedules {
        Schedules { most, work: Work::new(what, "schedules", Some(most)) }
    }

    /// Updates the line: `done` schedules were tried and `findings` findings are known.
    pub(crate) fn advance(&mut self, done: u64, findings: usize, deadline: &Deadline) {
        let (of, findings) = (Some(self.most), Some(findings));
        self.work.advance(State { done, of, findings, limit: deadline.left() });
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        self.work.clear();
    }
}
