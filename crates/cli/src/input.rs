//! Opening traces, and files of JSON lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use selvedge_model::Event;
use selvedge_model::trace::{Ending, Reader, TraceError};
use serde::de::DeserializeOwned;

use crate::exit::Failure;
use crate::messages::warning_label;
use crate::progress::Progress;

const BUFFER: usize = 1 << 18;

/// An open trace, with its name for messages.
pub(crate) struct Input {
    name: String,
    reader: Reader<Box<dyn BufRead>>,
    progress: Progress,
    /// Whether an event was read.
    is_read: bool,
}

impl Input {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> Result<Input, Failure> {
        let (name, progress, input): (String, Progress, Box<dyn Read>) = if path == Path::new("-") {
            let name = "standard input".to_owned();
            (name.clone(), Progress::new(&name, None), Box::new(io::stdin().lock()))
        } else {
            let open = |error| Failure::Open { path: path.to_owned(), error };
            let file = File::open(path).map_err(open)?;
            let metadata = file.metadata().map_err(open)?;
            if metadata.is_dir() {
                return Err(Failure::Directory(path.to_owned()));
            }
            let name = path.display().to_string();
            (name.clone(), Progress::new(&name, Some(metadata.len())), Box::new(file))
        };
        let counted = progress.counting(input);
        let input: Box<dyn BufRead> = Box::new(BufReader::with_capacity(BUFFER, counted));
        match Reader::new(input) {
            Ok(reader) => Ok(Input { name, reader, progress, is_read: false }),
            Err(error) => Err(Failure::Trace { name, error }),
        }
    }

    /// Reads the next events; none at the end. On a failure, `batch` holds the events before it.
    pub(crate) fn read(&mut self, batch: &mut Vec<Event>) -> Result<(), Failure> {
        let outcome = self.reader.read(batch);
        self.progress.advance(batch.len());
        if outcome.is_err() || batch.is_empty() {
            self.progress.clear();
        }
        let outcome = match (outcome, self.reader.ending()) {
            (Ok(()), Ending::CutOff { offset }) if batch.is_empty() => self.cut_off(offset),
            (outcome, _) => outcome,
        };
        self.is_read |= !batch.is_empty();
        outcome.map_err(|error| Failure::Trace { name: self.name.clone(), error })
    }

    /// The trace ends in the middle: a warning, unless that is all that there is.
    fn cut_off(&self, offset: u64) -> Result<(), TraceError> {
        if !self.is_read {
            return Err(TraceError::NothingLeft);
        }
        anstream::eprintln!(
            "{}: {}: the trace is cut off at offset {offset}; everything before it was read",
            warning_label(),
            self.name
        );
        Ok(())
    }

    /// The reader, which has the symbols read so far.
    pub(crate) fn reader(&self) -> &Reader<Box<dyn BufRead>> {
        &self.reader
    }
}

/// Reads a file of JSON objects, one a line. Empty lines are skipped; what is wrong with a line is told with its number.
pub(crate) fn for_each_line<T: DeserializeOwned>(
    path: &Path,
    mut take: impl FnMut(T) -> Result<(), String>,
) -> Result<Vec<usize>, Failure> {
    let open = |error| Failure::Open { path: path.to_owned(), error };
    let input: Box<dyn BufRead> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(path).map_err(open)?))
    };
    let mut numbers = Vec::new();
    for (number, line) in (1..).zip(input.lines()) {
        let bad = |why: String| Failure::Line { path: path.to_owned(), line: number, why };
        let line = line.map_err(|e| bad(e.to_string()))?;
        if !line.trim().is_empty() {
            let item = serde_json::from_str(&line).map_err(|e| bad(e.to_string()))?;
            take(item).map_err(bad)?;
            numbers.push(number);
        }
    }
    Ok(numbers)
}
