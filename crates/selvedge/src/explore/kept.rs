//! States of deterministic blocks in a file, so that a block is compared with what it ensured before an edit.
//!
//! A line for each execution that can contradict a later one: its block, calls and schedule as a value of
//! [`selvedge_specs`], in hexadecimal digits, after a first line that names the form. The file is replaced as a whole,
//! so that a killed test leaves the old one or the new one.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use selvedge_engine::{InMemory, Origin, States, Wrong};
use selvedge_model::{Schedule, Site};
use selvedge_specs::states::{Checked, ExecutionId};
use selvedge_specs::{BlockExecution, Call, Judge, Kept, Key, Predicate, ThreadName, Value, Word};
use serde::{Deserialize, Serialize};

/// The first line.
const FORM: &str = "selvedge states 1";

#[derive(Serialize, Deserialize)]
struct Record {
    block: Box<str>,
    site: String,
    schedule: String,
    calls: Vec<Said>,
}

#[derive(Serialize, Deserialize)]
struct Said {
    word: Word,
    name: Box<str>,
    thread: u64,
    nth: u32,
    predicate: Predicate,
    /// The stored form of the value.
    value: String,
    site: String,
}

impl Record {
    fn new(execution: &BlockExecution<Site>, schedule: &Schedule) -> Option<Record> {
        let said = |call: &Call<Site>| {
            Some(Said {
                word: call.key.word,
                name: call.key.name.clone(),
                thread: call.key.thread.0,
                nth: call.key.nth,
                predicate: call.predicate.clone(),
                value: hexadecimal(&call.value.value.as_ref()?.encode()),
                site: call.site.to_string(),
            })
        };
        Some(Record {
            block: execution.block.clone(),
            site: execution.site.to_string(),
            schedule: schedule.to_string(),
            calls: execution.calls.iter().map(said).collect::<Option<_>>()?,
        })
    }

    fn execution(&self) -> Result<(BlockExecution<Site>, Schedule), String> {
        let call = |said: &Said| {
            let value = Value::decode(&bytes(&said.value)?).map_err(|e| e.to_string())?;
            let (word, name, nth) = (said.word, said.name.clone(), said.nth);
            Ok(Call {
                key: Key { word, name, thread: ThreadName(said.thread), nth },
                predicate: said.predicate.clone(),
                value: Kept::from(value),
                site: Site::parse(&said.site),
            })
        };
        let calls = self.calls.iter().map(call).collect::<Result<_, String>>()?;
        let (block, site) = (self.block.clone(), Site::parse(&self.site));
        let schedule = self.schedule.parse().map_err(|e| format!("{e}"))?;
        Ok((BlockExecution { block, site, calls }, schedule))
    }

    fn line(&self) -> Result<String, String> {
        let value = Value::of(self).map_err(|e| e.to_string())?;
        Ok(hexadecimal(&value.encode()))
    }

    fn parse(line: &str) -> Result<Record, String> {
        let value = Value::decode(&bytes(line)?).map_err(|e| e.to_string())?;
        value.to().map_err(|e| e.to_string())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    };
    let pairs = text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>();
    pairs.filter(|_| text.len().is_multiple_of(2)).ok_or_else(|| "it is damaged".to_owned())
}

/// States that are kept in a file.
pub(super) struct File {
    path: PathBuf,
    states: InMemory,
    lines: Vec<String>,
    /// How many executions were in the file.
    stored: u64,
    added: u64,
}

impl File {
    /// Reads the file, if there is one.
    pub(super) fn open(path: &Path) -> Result<File, Box<Wrong>> {
        let failed = |why: String| Box::new(Wrong::Storage(format!("{}: {why}", path.display())));
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => format!("{FORM}\n"),
            Err(error) => return Err(failed(error.to_string())),
        };
        let mut lines = text.lines();
        if lines.next() != Some(FORM) {
            return Err(failed(format!("the first line must be `{FORM}`")));
        }
        let path = path.to_owned();
        let (states, lines) = (InMemory::default(), lines.map(ToOwned::to_owned).collect());
        let mut file = File { path, states, lines, stored: 0, added: 0 };
        for line in &file.lines {
            let record = Record::parse(line).and_then(|record| record.execution());
            let (execution, schedule) = record.map_err(failed)?;
            // Whether stored executions differ was told when they were stored; predicates of the program are
            // not known yet.
            file.states.add(&execution, &schedule, &mut Agreeing)?;
            file.stored += 1;
        }
        file.added = file.stored;
        Ok(file)
    }

    fn write(&self) -> std::io::Result<()> {
        let beside = self.path.with_extension(format!("new-{}", std::process::id()));
        let mut file = fs::File::create(&beside)?;
        writeln!(file, "{FORM}")?;
        for line in &self.lines {
            writeln!(file, "{line}")?;
        }
        file.sync_all()?;
        fs::rename(&beside, &self.path)
    }
}

/// Takes all values for the same.
struct Agreeing;

impl Judge for Agreeing {
    fn same(&mut self, callback: &str, a: &Value, b: &Value) -> Result<bool, String> {
        let _ = (callback, a, b);
        Ok(true)
    }
}

impl States for File {
    fn add(
        &mut self,
        execution: &BlockExecution<Site>,
        schedule: &Schedule,
        judge: &mut dyn Judge,
    ) -> Result<Checked<Site>, Box<Wrong>> {
        self.added += 1;
        let checked = self.states.add(execution, schedule, judge)?;
        if self.states.origin(ExecutionId(self.added)).schedule.is_some() {
            let line = Record::new(execution, schedule).map(|record| record.line());
            self.lines.extend(line.transpose().map_err(|why| Box::new(Wrong::Storage(why)))?);
        }
        Ok(checked)
    }

    fn origin(&mut self, id: ExecutionId) -> Origin {
        let origin = self.states.origin(id);
        let stored = (id.0 <= self.stored).then(|| format!("kept in {}", self.path.display()));
        Origin { build: stored, ..origin }
    }

    fn finish(&mut self) -> Result<(), Box<Wrong>> {
        if self.lines.len() as u64 == self.stored {
            return Ok(());
        }
        let path = self.path.display();
        self.write().map_err(|error| Box::new(Wrong::Storage(format!("{path}: {error}"))))
    }
}
