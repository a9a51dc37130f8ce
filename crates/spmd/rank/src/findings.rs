//! What a rank tells the `selvedge` process: one JSON object a line, in a file of its own.
//!
//! Ranks write a line as soon as they know it, and the host reads the files after the program has ended, however that
//! was. The host's reader is `selvedge_spmd::findings`; a test there reads what this module writes.

use std::fmt::Write as _;

use crate::board::Announced;
use crate::gather::Lock;
use crate::gather::epochs::Wrong;
use crate::owner::{Place, Record};
use crate::rules::{CALLS, Side};

/// Raised when the meaning of a field changes.
pub const VERSION: u32 = 1;

/// The memory that a race is about.
#[derive(Clone, PartialEq, Debug)]
pub struct Object {
    /// The rank that owns it.
    pub owner: u32,
    /// Number and name of the window, if it is part of one.
    pub window: Option<(u64, String)>,
    /// Bytes from the beginning of the owner's part of the window, or 0.
    pub offset: u64,
    /// The number of bytes.
    pub len: u64,
    /// The static variable that contains it, as a place in the data of a module.
    pub place: Option<Place>,
}

/// A race as a line.
pub fn race(status: &str, phase: u32, object: &Object, sides: [&Record; 2]) -> String {
    let mut line = format!(
        "{{\"version\":{VERSION},\"kind\":\"race\",\"status\":\"{status}\",\"phase\":{phase}"
    );
    let _ = write!(
        line,
        ",\"owner\":{},\"offset\":{},\"len\":{}",
        object.owner, object.offset, object.len
    );
    match &object.window {
        Some(of) => {
            let _ = write!(line, ",\"window\":{}", window(of));
        }
        None => line.push_str(",\"window\":null"),
    }
    let _ = write!(line, ",\"data\":{}", place(object.place.as_ref()));
    let sides = sides.map(side).join(",");
    let _ = write!(line, ",\"sides\":[{sides}]}}");
    line
}

/// Which ranks of a job have the injected runtime, so that their loads and stores are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Seen {
    /// At least one has it.
    pub some: bool,
    /// All have it.
    pub all: bool,
    /// One has the runtime of another version, which is not used.
    pub other_version: bool,
}

/// The job as a line: its size, whose loads and stores are seen, and, at its end, the number of its phases.
pub fn job(ranks: u32, seen: Seen, done: Option<u32>) -> String {
    let mut line = format!(
        "{{\"version\":{VERSION},\"kind\":\"job\",\"ranks\":{ranks},\"instrumented\":{},\"all\":{},\"other_version\":{}",
        seen.some, seen.all, seen.other_version
    );
    if let Some(phases) = done {
        let _ = write!(line, ",\"phases\":{phases},\"finalized\":true");
    }
    line.push('}');
    line
}

/// A rank could not remember this many accesses, as a line.
pub fn dropped(accesses: u64) -> String {
    format!("{{\"version\":{VERSION},\"kind\":\"dropped\",\"accesses\":{accesses}}}")
}

/// Two accesses of a pair that is tested were in flight at once, as a line. `first` was there first.
pub fn met(pair: u32, first: &Announced, second: &Announced) -> String {
    let common = first.bytes.common(second.bytes).unwrap_or_default();
    let side = |a: &Announced| {
        format!("{{\"rank\":{},\"slot\":{},\"side\":{}}}", a.who.0, a.thread, a.side)
    };
    format!(
        "{{\"version\":{VERSION},\"kind\":\"met\",\"pair\":{pair},\"len\":{},\"sides\":[{},{}]}}",
        common.len,
        side(first),
        side(second),
    )
}

/// An order of a pair was forced, as a line: its statement `first` went first.
pub fn ordered(pair: u32, first: u32) -> String {
    format!("{{\"version\":{VERSION},\"kind\":\"ordered\",\"pair\":{pair},\"first\":{first}}}")
}

/// Who uses a window wrongly, where, and by which call.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Misuse<'a> {
    pub wrong: Wrong,
    pub rank: u32,
    pub slot: u32,
    pub call: &'a str,
    pub place: Place,
}

/// Wrong use of a window as a line.
pub fn misuse(of: &Misuse<'_>, object: &Object) -> String {
    let window = object.window.as_ref().map_or("null".to_owned(), window);
    format!(
        "{{\"version\":{VERSION},\"kind\":\"misuse\",\"wrong\":\"{}\",\"rank\":{},\"slot\":{},\"call\":{},\"place\":{},\"owner\":{},\"offset\":{},\"len\":{},\"window\":{window}}}",
        of.wrong.name(),
        of.rank,
        of.slot,
        quoted(of.call),
        place(Some(&of.place)),
        object.owner,
        object.offset,
        object.len,
    )
}

fn window((number, name): &(u64, String)) -> String {
    format!("{{\"number\":{number},\"name\":{}}}", quoted(name))
}

fn side(record: &Record) -> String {
    let which = match record.side {
        Side::Target => "target",
        Side::Origin => "origin",
        Side::Result => "result",
    };
    let lock = |l: &Lock| {
        let target = l.target.map_or("null".to_owned(), |t| t.to_string());
        format!("{{\"window\":{},\"target\":{target},\"exclusive\":{}}}", l.window, l.exclusive)
    };
    let locks: Vec<String> = record.locks.iter().map(lock).collect();
    format!(
        "{{\"rank\":{},\"slot\":{},\"call\":{},\"side\":\"{which}\",\"writes\":{},\"place\":{},\"began\":{},\"ended\":{},\"last\":{},\"open\":{},\"local_only\":{},\"barrier\":{},\"locks\":[{}]}}",
        record.rank,
        record.slot,
        quoted(CALLS[record.call as usize].name),
        record.act.writes(),
        place(Some(&record.place)),
        record.began,
        record.ended,
        record.last,
        record.end.is_none(),
        record.local_only,
        place(record.barrier.as_ref()),
        locks.join(","),
    )
}

fn place(of: Option<&Place>) -> String {
    match of {
        Some(p) => format!("{{\"module\":{},\"offset\":{}}}", quoted(&p.module), p.offset),
        None => "null".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_are_quoted() {
        assert_eq!(super::quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }
}
