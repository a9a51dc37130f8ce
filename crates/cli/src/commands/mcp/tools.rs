//! The tools: what they take, and what they do.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use selvedge_report::{FORMATS, Format, Report};
use serde_json::{Map, Value, json};

use super::allowed::Allowed;
use crate::args::{FailOn, Output as Shown};
use crate::store::{self, Store};
use crate::terminal;

/// Runs a tool; an error is for the client to read.
type Run = fn(&Allowed, &Value) -> Result<Value, String>;

/// One tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    parameters: &'static [Parameter],
    pub(super) run: Run,
}

/// A parameter: its name, its type in a schema, what it is, and whether it is required.
type Parameter = (&'static str, &'static str, &'static str, bool);

const ID: Parameter = ("id", "string", "The id of the finding, or the beginning of the id", true);
const DIRECTORY: Parameter = (
    "directory",
    "string",
    "The directory of the project; findings are kept in its .selvedge. Default: the server's first directory",
    false,
);
const ARGUMENTS: Parameter = ("arguments", "strings", "The arguments of the program", false);

/// All tools.
pub(super) const TOOLS: [Tool; 5] = [
    Tool {
        name: "test",
        about: "Observe a program, predict its concurrency bugs, and confirm them by making them happen. \
            The result is Selvedge's JSON report: each finding has an id, places, a verdict and the interleaving.",
        parameters: &[
            ("program", "string", "The program, relative to the directory or absolute", true),
            ARGUMENTS,
            DIRECTORY,
            ("schedules", "integer", "The most executions (default 1000)", false),
            ("time", "string", "The longest time, such as 30s (default 60s)", false),
            ("seed", "integer", "The seed of all random choices (default 0)", false),
        ],
        run: test,
    },
    Tool {
        name: "explain",
        about: "Show a finding: what it is, why, what helps, and the interleaving step by step with values.",
        parameters: &[ID, DIRECTORY],
        run: explain,
    },
    Tool {
        name: "replay",
        about: "Run the program again with the schedule of a finding, and say whether it happened again.",
        parameters: &[ID, DIRECTORY, ("times", "integer", "How many times (default 1)", false)],
        run: replay,
    },
    Tool {
        name: "margin",
        about: "Measure how likely the finding is from each step of its interleaving on: where the share of \
            failing executions jumps is the bug's place in time.",
        parameters: &[
            ID,
            DIRECTORY,
            ("samples", "integer", "Executions for each beginning (default 100)", false),
        ],
        run: margin,
    },
    Tool {
        name: "fixed",
        about: "After an edit and a build: is the finding gone? The answer says what was tried, and bounds the \
            chance that it is still there.",
        parameters: &[
            ID,
            DIRECTORY,
            ("program", "string", "The program to try instead of the one that was tested", false),
            ARGUMENTS,
            ("executions", "integer", "The most executions (default 500)", false),
        ],
        run: fixed,
    },
];

impl Tool {
    /// The JSON schema of the parameters.
    pub(super) fn schema(&self) -> Map<String, Value> {
        let property = |&(name, kind, about, _): &Parameter| {
            let schema = match kind {
                "strings" => json!({ "type": "array", "items": { "type": "string" } }),
                "integer" => json!({ "type": "integer", "minimum": 0 }),
                kind => json!({ "type": kind }),
            };
            let mut schema = schema;
            schema["description"] = json!(about);
            (name.to_owned(), schema)
        };
        let properties: Map<String, Value> = self.parameters.iter().map(property).collect();
        let required: Vec<&str> = self.parameters.iter().filter(|p| p.3).map(|p| p.0).collect();
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        match schema {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}

fn text<'a>(arguments: &'a Value, name: &str) -> Result<Option<&'a str>, String> {
    match &arguments[name] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(format!("`{name}` is a text")),
    }
}

fn required<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, String> {
    text(arguments, name)?.ok_or_else(|| format!("`{name}` is missing"))
}

fn number(arguments: &Value, name: &str) -> Result<Option<u64>, String> {
    match &arguments[name] {
        Value::Null => Ok(None),
        value => value.as_u64().map(Some).ok_or_else(|| format!("`{name}` is a number")),
    }
}

/// Options as words of a command line.
fn options(arguments: &Value, names: &[&str]) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for name in names {
        let value = match &arguments[*name] {
            Value::String(_) => text(arguments, name)?.map(str::to_owned),
            _ => number(arguments, name)?.map(|n| n.to_string()),
        };
        words.extend(value.map(|value| format!("--{name}={value}")));
    }
    Ok(words)
}

fn directory(allowed: &Allowed, arguments: &Value) -> Result<PathBuf, String> {
    match text(arguments, "directory")? {
        Some(directory) => allowed.path(directory.as_ref()),
        None => Ok(allowed.first().to_owned()),
    }
}

/// The words after `--`, if a program is named.
fn program(allowed: &Allowed, arguments: &Value, directory: &Path) -> Result<Vec<String>, String> {
    let Some(program) = text(arguments, "program")? else { return Ok(Vec::new()) };
    let program = allowed.path(&directory.join(program))?;
    let word = program.to_str().ok_or("the path of the program is not UTF-8")?.to_owned();
    let more = match &arguments["arguments"] {
        Value::Null => Vec::new(),
        Value::Array(list) => list
            .iter()
            .map(|v| v.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or("`arguments` is a list of texts")?,
        _ => return Err("`arguments` is a list of texts".to_owned()),
    };
    Ok(["--".to_owned(), word].into_iter().chain(more).collect())
}

/// Runs a command of ours in a process of its own.
fn selvedge(directory: &Path, words: &[String]) -> Result<Output, String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new(own)
        .args(words)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output();
    output.map_err(|e| e.to_string())
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn test(allowed: &Allowed, arguments: &Value) -> Result<Value, String> {
    required(arguments, "program")?;
    let directory = directory(allowed, arguments)?;
    let mut words: Vec<String> =
        ["test", "--format=json", "--fail-on=never"].map(str::to_owned).to_vec();
    words.extend(options(arguments, &["schedules", "time", "seed"])?);
    words.extend(program(allowed, arguments, &directory)?);
    let output = selvedge(&directory, &words)?;
    serde_json::from_slice(&output.stdout).map_err(|_| said(&output.stderr))
}

/// A stored finding whose program may be run: where it is stored, and itself.
fn stored(
    allowed: &Allowed,
    arguments: &Value,
) -> Result<(PathBuf, selvedge_report::Case), String> {
    let id = required(arguments, "id")?;
    let place = store::directory(&directory(allowed, arguments)?);
    let place = allowed.path(&place)?;
    let store = Store::open(&place).map_err(|e| e.to_string())?;
    let mut found = store.find(id, None).map_err(|e| e.to_string())?;
    let (run, case) = match found.len() {
        0 => return Err(format!("there is no finding `{id}`; `test` finds some")),
        1 => found.remove(0),
        n => return Err(format!("{n} findings begin with `{id}`")),
    };
    let run = store.run(Some(run)).map_err(|e| e.to_string())?;
    if let Some(setup) = run.setup {
        allowed.path(&setup.program)?;
        allowed.path(&setup.directory)?;
    }
    Ok((place, case))
}

fn explain(allowed: &Allowed, arguments: &Value) -> Result<Value, String> {
    let (place, case) = stored(allowed, arguments)?;
    let report = Report { cases: vec![case], ..Report::default() };
    let source = place.parent().map(ToOwned::to_owned).into_iter().collect();
    let shown = |format: &'static Format| Shown {
        format,
        fail_on: FailOn::Never,
        all: true,
        source: Vec::clone(&source),
    };
    let json = Format::named("json").unwrap_or(&FORMATS[0]);
    let document: Value = serde_json::from_str(&terminal::rendered(&report, &shown(json)))
        .map_err(|e| e.to_string())?;
    let text =
        anstream::adapter::strip_str(&terminal::rendered(&report, &shown(&FORMATS[0]))).to_string();
    Ok(json!({ "finding": document["findings"][0], "text": text }))
}

/// The words of a command about a stored finding.
fn about(
    command: &str,
    allowed: &Allowed,
    arguments: &Value,
) -> Result<(PathBuf, Vec<String>), String> {
    let (place, case) = stored(allowed, arguments)?;
    let store = place.to_str().ok_or("the path of the store is not UTF-8")?;
    let words = vec![command.to_owned(), case.id.to_string(), format!("--store={store}")];
    Ok((directory(allowed, arguments)?, words))
}

/// Whether the finding was seen: exit code 1. Anything but 0 and 1 is an error.
fn seen(output: &Output) -> Result<bool, String> {
    match output.status.code() {
        Some(0) => Ok(false),
        Some(1) => Ok(true),
        _ => Err(said(&output.stderr)),
    }
}

fn replay(allowed: &Allowed, arguments: &Value) -> Result<Value, String> {
    let (directory, mut words) = about("replay", allowed, arguments)?;
    words.extend(options(arguments, &["times"])?);
    let output = selvedge(&directory, &words)?;
    Ok(json!({
        "happened": seen(&output)?,
        "output": said(&output.stdout),
        "text": said(&output.stderr),
    }))
}

fn margin(allowed: &Allowed, arguments: &Value) -> Result<Value, String> {
    let (directory, mut words) = about("replay", allowed, arguments)?;
    words.push(match number(arguments, "samples")? {
        Some(samples) => format!("--margin={samples}"),
        None => "--margin".to_owned(),
    });
    let output = selvedge(&directory, &words)?;
    let happened = seen(&output)?;
    // The shares are kept with the finding.
    let mut explained = explain(allowed, arguments)?;
    explained["happened"] = json!(happened);
    explained["text"] = json!(said(&output.stderr));
    Ok(explained)
}

fn fixed(allowed: &Allowed, arguments: &Value) -> Result<Value, String> {
    let (directory, mut words) = about("fixed", allowed, arguments)?;
    words.extend(options(arguments, &["executions"])?);
    words.extend(program(allowed, arguments, &directory)?);
    let output = selvedge(&directory, &words)?;
    let still_there = seen(&output)?;
    Ok(json!({
        "still_there": still_there,
        "text": said(&output.stdout),
        "details": said(&output.stderr),
    }))
}
