//! Writes what happens in a run into a file that `selvedge check` reads.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use selvedge_model::trace::binary::BinaryWriter;
use selvedge_model::trace::text::TextWriter;
use selvedge_model::wellformed::Checker;
use selvedge_model::{Event, Symbols};

use crate::exit::Failure;

/// A trace that is being written.
pub(super) struct Recording {
    path: PathBuf,
    writer: Writer,
    /// A trace has only events that continue an execution: a misused lock does not.
    checker: Checker,
    left_out: u64,
    failed: Option<io::Error>,
}

enum Writer {
    Text(TextWriter<BufWriter<File>>),
    Binary(Box<BinaryWriter<BufWriter<File>>>),
}

impl Recording {
    /// Creates the file.
    pub(super) fn create(path: &Path) -> Result<Recording, Failure> {
        let wrong = |error| Failure::Write { path: path.to_owned(), error };
        let file = BufWriter::new(File::create(path).map_err(wrong)?);
        let writer = match path.extension().is_some_and(|e| e == "svt") {
            true => Writer::Binary(Box::new(BinaryWriter::new(file).map_err(wrong)?)),
            false => Writer::Text(TextWriter::new(file)),
        };
        let (checker, path) = (Checker::default(), path.to_owned());
        Ok(Recording { path, writer, checker, left_out: 0, failed: None })
    }

    /// Appends an event.
    pub(super) fn event(&mut self, event: &Event, symbols: &Symbols) {
        if self.failed.is_some() {
            return;
        }
        if self.checker.check(event).is_err() {
            self.left_out += 1;
            return;
        }
        let written = match &mut self.writer {
            Writer::Text(writer) => writer.write(event, symbols),
            Writer::Binary(writer) => writer.write(event, symbols),
        };
        self.failed = written.err();
    }

    /// Writes the end. What to tell the user.
    pub(super) fn finish(self, symbols: &Symbols) -> Vec<String> {
        let ended = match self.writer {
            Writer::Text(writer) => writer.finish().map(drop),
            Writer::Binary(writer) => writer.finish(symbols).map(drop),
        };
        let mut told = Vec::new();
        if let Some(error) = self.failed.or(ended.err()) {
            told.push(format!("{}: the trace is not complete: {error}", self.path.display()));
        }
        if self.left_out > 0 {
            let (path, n) = (self.path.display(), self.left_out);
            told.push(format!("{path}: {n} events do not continue an execution and were left out"));
        }
        told
    }
}
