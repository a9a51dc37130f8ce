//! A line on the terminal while something takes long.

use std::cell::Cell;
use std::io::{self, IsTerminal, Read, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::deadline::Deadline;

const FIRST: Duration = Duration::from_millis(700);
const THEN: Duration = Duration::from_millis(200);

/// Shows how far a trace has been read, if standard error is a terminal and it takes a while.
pub(crate) struct Progress {
    name: String,
    size: Option<u64>,
    consumed: Rc<Cell<u64>>,
    events: u64,
    next: Option<Instant>,
    shown: bool,
}

impl Progress {
    /// Begins with no event read; `size` is the size of the file, if known.
    pub(crate) fn new(name: &str, size: Option<u64>) -> Progress {
        Progress {
            name: name.to_owned(),
            size: size.filter(|&n| n > 0),
            consumed: Rc::default(),
            events: 0,
            next: io::stderr().is_terminal().then(|| Instant::now() + FIRST),
            shown: false,
        }
    }

    /// Counts what is read from `input`.
    pub(crate) fn counting(&self, input: Box<dyn Read>) -> impl Read + use<> {
        Counting { input, consumed: Rc::clone(&self.consumed) }
    }

    /// Counts `events` more events.
    pub(crate) fn advance(&mut self, events: usize) {
        self.events += events as u64;
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = Some(now + THEN);
            self.shown = true;
            let percent = self.size.map(|size| format!(", {}%", self.consumed.get() * 100 / size));
            let millions = self.events as f64 / 1e6;
            let name = &self.name;
            eprint!("\r\x1b[K{name}: {millions:.1} million events{}", percent.unwrap_or_default());
            let _ = io::stderr().flush();
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprint!("\r\x1b[K");
            let _ = io::stderr().flush();
        }
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

/// Shows how many schedules have been tried, if standard error is a terminal and it takes a while.
pub(crate) struct Schedules {
    most: u64,
    next: Option<Instant>,
    shown: bool,
}

impl Schedules {
    /// Counts up to `most` schedules.
    pub(crate) fn new(most: u64) -> Schedules {
        let next = io::stderr().is_terminal().then(|| Instant::now() + FIRST);
        Schedules { most, next, shown: false }
    }

    /// Updates the line: `done` schedules were tried and `findings` findings are known.
    pub(crate) fn advance(&mut self, done: u64, findings: usize, deadline: &Deadline) {
        let now = Instant::now();
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        self.next = Some(now + THEN);
        self.shown = true;
        let spent = deadline.elapsed().as_secs_f64();
        let by_count = spent / done.max(1) as f64 * self.most.saturating_sub(done) as f64;
        let left = deadline.left().map_or(by_count, |left| by_count.min(left.as_secs_f64()));
        let rate = done as f64 / spent.max(0.001);
        let most = self.most;
        let found = if findings == 1 { "1 finding" } else { &format!("{findings} findings") };
        eprint!(
            "\r\x1b[K{done} of {most} schedules, {rate:.0} per second, {found}, {left:.0} s left at most"
        );
        let _ = io::stderr().flush();
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprint!("\r\x1b[K");
            let _ = io::stderr().flush();
        }
    }
}
