//! `selvedge history`: are recorded operations on an object linearizable?

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use selvedge_specs::Value;
use selvedge_specs::history::{BadRecord, Part, Prefix, Record, Spent, Verdict};
use serde::Serialize;

use crate::args::{History, InferFormat};
use crate::exit::{Exit, Failure};
use crate::input::for_each_line;

/// Decides over each history. The worst verdict decides over the exit code.
pub(crate) fn run(args: &History) -> Result<Exit, Failure> {
    let judged: Vec<Judged> =
        args.files.iter().map(|path| judge(path, args)).collect::<Result<_, _>>()?;
    let any = |name| judged.iter().any(|j| j.verdict == name);
    let exit = match () {
        () if any(NOT) => Exit::Findings,
        () if any(UNDECIDED) => Exit::NotRun,
        () => Exit::Clean,
    };
    let text = match args.format {
        InferFormat::Text => judged.iter().map(|j| shown(j, args)).collect(),
        InferFormat::Json => json(judged),
    };
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(exit)
}

const LINEARIZABLE: &str = "linearizable";
const NOT: &str = "not-linearizable";
const UNDECIDED: &str = "undecided";

/// What was decided over a history.
#[derive(Serialize)]
struct Judged {
    file: String,
    verdict: &'static str,
    operations: usize,
    processes: usize,
    /// The part that is not linearizable.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Value>,
    /// The longest prefix of it that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<Longest>,
}

/// The longest linearizable prefix, by lines of the file.
#[derive(Serialize)]
struct Longest {
    /// How many operations returned in it.
    returned: usize,
    /// An order of it.
    order: Vec<usize>,
    /// The operation at which it ends.
    operation: Line,
}

#[derive(Serialize)]
struct Line {
    line: usize,
    process: Value,
    op: Box<str>,
    arg: Value,
    ret: Value,
    call: i64,
    #[serde(rename = "return")]
    returned: Option<i64>,
}

fn judge(path: &Path, args: &History) -> Result<Judged, Failure> {
    let mut records: Vec<Record> = Vec::new();
    let lines = for_each_line(path, |record| {
        records.push(record);
        Ok(())
    })?;
    let history =
        selvedge_specs::history::History::new(args.model, args.initial.as_ref(), &records);
    let history = history.map_err(|bad| {
        let (path, why) = (path.to_owned(), bad.to_string());
        if matches!(bad.why, BadRecord::Initial { .. }) {
            return Failure::Usage(why);
        }
        Failure::Line { path, line: lines.get(bad.place).copied().unwrap_or(1), why }
    })?;
    let begun = Instant::now();
    let parts =
        history.check(&mut |spent: Spent| spent.bytes < args.memory && begun.elapsed() < args.time);
    let mut judged = Judged {
        file: path.display().to_string(),
        verdict: LINEARIZABLE,
        operations: history.operations(),
        processes: history.processes(),
        key: None,
        prefix: None,
    };
    for Part { key, verdict } in parts {
        match verdict {
            Verdict::Linearizable(_) => {}
            Verdict::Undecided => judged.verdict = UNDECIDED,
            Verdict::NotLinearizable(prefix) => {
                judged.verdict = NOT;
                judged.key = key;
                judged.prefix = prefix.map(|prefix| longest(prefix, &records, &lines));
            }
        }
    }
    Ok(judged)
}

fn longest(prefix: Prefix, records: &[Record], lines: &[usize]) -> Longest {
    let Prefix { order, returned, next } = prefix;
    let Record { process, op, arg, ret, call, returned: at, .. } = records[next].clone();
    let line = lines[next];
    Longest {
        returned,
        order: order.into_iter().map(|place| lines[place]).collect(),
        operation: Line { line, process, op, arg, ret, call, returned: at },
    }
}

#[derive(Serialize)]
struct Document {
    version: u32,
    tool: &'static str,
    histories: Vec<Judged>,
}

fn json(histories: Vec<Judged>) -> String {
    let document = Document { version: 1, tool: "selvedge", histories };
    let mut text = serde_json::to_string_pretty(&document).expect("keys are text");
    text.push('\n');
    text
}

fn shown(judged: &Judged, args: &History) -> String {
    let Judged { file, operations, processes, key, prefix, .. } = judged;
    let size = format!("{operations} operations, {processes} processes");
    if judged.verdict == LINEARIZABLE {
        return format!("{file}: linearizable as a {} ({size})\n", args.model);
    }
    if judged.verdict == UNDECIDED {
        return format!("{file}: not decided within the limits of --memory and --time ({size})\n");
    }
    let mut text = format!("{file}: not linearizable as a {} ({size})\n", args.model);
    let of_key = key.as_ref().map_or_else(String::new, |key| format!(" with key {key}"));
    let Some(Longest { returned, order, operation }) = prefix else {
        text += "  the operation at which it fails was not found within the limits of --memory and --time\n";
        return text;
    };
    let _ = writeln!(
        text,
        "  the first {returned} operations{of_key} to return have an order; the next one has none:"
    );
    let Line { line, process, op, arg, ret, call, returned } = operation;
    let value = |value: &Value| serde_json::to_string(value).unwrap_or_default();
    let arg = if *arg == Value::None { String::new() } else { value(arg) };
    let returned = returned.map_or_else(String::new, |time| format!(", returned at {time}"));
    let (process, ret) = (value(process), value(ret));
    let _ = writeln!(
        text,
        "  line {line}: process {process}: {op}({arg}) gives {ret}, called at {call}{returned}"
    );
    let last: Vec<String> = order.iter().rev().take(8).rev().map(ToString::to_string).collect();
    if !last.is_empty() {
        let _ = writeln!(
            text,
            "  an order of the operations before it ends with lines {}",
            last.join(", ")
        );
    }
    text
}
