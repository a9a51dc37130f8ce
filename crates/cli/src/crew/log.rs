//! What one process of a campaign tells, in a file.
//!
//! Each line is written at once, so that a process that is killed leaves whole lines and perhaps the beginning of one.
//! It is a plain file because the processes of a campaign often share a network file system, where several writers of a
//! database do not get on.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use selvedge_engine::ranks::Log;
use selvedge_report::{Case, Report, path};
use serde::{Deserialize, Serialize};

use crate::args::Part;
use crate::control::program::ControlledProgram;
use crate::exit::Failure;
use crate::messages::warning_label;
use crate::store::{self, Learnt};

/// The version of the file.
const VERSION: u32 = 1;
const FILE: &str = "turns.log";

/// What a campaign begins with.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
pub(crate) struct Preamble {
    /// What native runs have shown.
    pub(crate) native: Report,
    /// What earlier campaigns leave to this one.
    pub(crate) learnt: Learnt,
    /// What failed in earlier campaigns.
    pub(crate) failed: Vec<Case>,
}

/// The first line.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Header {
    pub(crate) version: u32,
    /// The arguments of `selvedge`, without those that say which part this is.
    pub(crate) arguments: Vec<OsString>,
    #[serde(with = "path")]
    pub(crate) directory: PathBuf,
    /// Identifies the build of the program.
    pub(crate) build: String,
    pub(crate) part: Part,
    /// Whether the part was chosen by the user. Otherwise it is a rank.
    pub(crate) by_hand: bool,
    pub(crate) preamble: Preamble,
}

impl Header {
    /// The header of a process that runs this part.
    pub(crate) fn new(
        program: &ControlledProgram,
        part: Part,
        by_hand: bool,
        preamble: &Preamble,
    ) -> Header {
        Header {
            version: VERSION,
            arguments: arguments(std::env::args_os().skip(1)),
            directory: program.setup.directory.clone(),
            build: program.setup.build.clone(),
            part,
            by_hand,
            preamble: preamble.clone(),
        }
    }

    /// The command line that runs a part.
    pub(crate) fn command(&self, part: Part) -> String {
        let words = self.arguments.iter().map(|word| word.to_string_lossy().into_owned());
        let mut words: Vec<String> = std::iter::once("selvedge".to_owned()).chain(words).collect();
        words.splice(2..2, ["--shard".to_owned(), part.to_string()]);
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
    }
}

/// Command line arguments without `--shard` and `--store`. What comes after `--` is the program's.
fn arguments(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut all = all.peekable();
    while let Some(word) = all.next() {
        let text = word.to_string_lossy().into_owned();
        if text == "--" {
            kept.push(word);
            kept.extend(all);
            break;
        }
        match text.as_str() {
            "--shard" | "--store" => drop(all.next()),
            _ if text.starts_with("--shard=") || text.starts_with("--store=") => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// Where a part keeps what it finds, unless the user says where.
pub(crate) fn place(program: &ControlledProgram, part: Part) -> PathBuf {
    let name = program.setup.program.file_name().unwrap_or_default().to_string_lossy();
    let Part { number, of } = part;
    let directory = store::directory(&program.setup.directory);
    directory.join("shards").join(format!("{name}-{number}-of-{of}"))
}

/// A file that is written.
pub(crate) struct FileLog {
    path: PathBuf,
    /// Nothing more is written after the first error.
    file: Option<File>,
}

impl FileLog {
    /// Begins a file, in place of an earlier one.
    pub(crate) fn create(directory: &Path, header: &Header) -> Result<FileLog, Failure> {
        let path = directory.join(FILE);
        let failed = |error| Failure::Write { path: path.clone(), error };
        fs::create_dir_all(directory).map_err(failed)?;
        let mut log = FileLog { file: Some(File::create(&path).map_err(failed)?), path };
        log.write(&serde_json::to_string(header).expect("names and numbers serialise"));
        Ok(log)
    }
}

impl Log for FileLog {
    fn write(&mut self, message: &str) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = file.write_all(format!("{message}\n").as_bytes()) {
            let path = self.path.display();
            anstream::eprintln!(
                "{}: {path}: what is found from here on is not kept: {error}",
                warning_label()
            );
            self.file = None;
        }
    }
}

/// Deletes the file of a part that is not needed any more.
pub(crate) fn remove(directory: &Path) {
    // What cannot be deleted does no harm.
    let _ = fs::remove_file(directory.join(FILE));
    let _ = fs::remove_dir(directory);
    let _ = directory.parent().map(fs::remove_dir);
}

/// A file that was read.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    /// The messages, as far as they were written.
    pub(crate) messages: Vec<String>,
    /// Whether the process came to its end.
    pub(crate) complete: bool,
}

impl Record {
    /// Reads the store of a part.
    pub(crate) fn read(directory: &Path) -> Result<Record, Failure> {
        let path = directory.join(FILE);
        let text = fs::read(&path).map_err(|error| Failure::Open { path: path.clone(), error })?;
        let text = String::from_utf8_lossy(&text);
        let wrong = |line: usize, why: &str| Failure::Line {
            path: path.clone(),
            line,
            why: why.to_owned(),
        };
        // The last line may have been cut off when the process was killed.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let mut lines = whole.split('\n').filter(|line| !line.is_empty());
        let first = lines.next().ok_or_else(|| {
            wrong(1, "nothing was written before the process ended; run the part again")
        })?;
        let version = serde_json::from_str::<serde_json::Value>(first).ok();
        let version = version.as_ref().and_then(|header| header.get("version")?.as_u64());
        match version {
            None => return Err(wrong(1, "this is not what `--shard` writes")),
            Some(version) if version > u64::from(VERSION) => {
                return Err(wrong(1, "a newer selvedge wrote it; use that one"));
            }
            Some(_) => {}
        }
        let header = serde_json::from_str(first)
            .map_err(|error| wrong(1, &format!("this is not what `--shard` writes: {error}")))?;
        let messages: Vec<String> = lines.map(str::to_owned).collect();
        for (number, message) in (2..).zip(&messages) {
            if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(message) {
                return Err(wrong(number, &format!("it is damaged; run the part again: {error}")));
            }
        }
        let complete = messages.last().is_some_and(|last| last.starts_with("{\"Complete\""));
        Ok(Record { path: directory.to_owned(), header, messages, complete })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_the_part_is_left_out() {
        let of = |words: &[&str]| -> Vec<String> {
            let all = arguments(words.iter().map(Into::into));
            all.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let kept = ["test", "--seed", "7", "--", "./prog", "--shard", "x"];
        let given = ["test", "--shard", "0/4", "--seed", "7", "--store=a", "--", "./prog"];
        assert_eq!(of(&[&given[..], &["--shard", "x"]].concat()), kept);
    }
}
