//! What a program writes when an assertion fails, a Rust thread panics or a C++ exception is not caught.

use selvedge_model::{
    Ended, Failure, Finding, Frame, Kind, Place, Role, Site, SiteId, Symbols, ThreadId,
};

/// The longest part of a message that is repeated in a report.
const LONGEST: usize = 300;

/// What a failed assertion or a panic says.
#[derive(PartialEq, Debug)]
pub(crate) struct Message {
    text: String,
    site: Option<Site>,
    thread: Option<String>,
}

impl Message {
    /// The failure that it tells of. The thread that ran last has failed, unless the message says more.
    pub(crate) fn finding(self, ended: Ended, last: ThreadId, symbols: &mut Symbols) -> Finding {
        let Message { mut text, site, thread } = self;
        if text.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
            text.truncate(end);
            text.push('…');
        }
        let places: Vec<Place> = site
            .map(|site| SiteId(symbols.sites.intern(site)))
            .map(|site| Place { thread: last, site, role: Role::Fail, held: Vec::new() })
            .into_iter()
            .collect();
        let failure = Failure::Message { text, thread, ended: Some(ended), before: None };
        Finding::failure(Kind::Assertion, failure, places)
    }
}

/// Finds the line that `assert`, a Rust panic or an uncaught C++ exception leaves behind.
pub(crate) fn message(errors: &str) -> Option<Message> {
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
pub(crate) fn rust_panic(errors: &str) -> Option<Message> {
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
