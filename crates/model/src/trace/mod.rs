//! Trace files: executions as text or in the compact binary format.
//!
//! [`Reader::new`] recognises the format by its first bytes. Both formats are streamed in bounded
//! memory, in both directions: a reader hands out events in batches, and names and sites collect in
//! its [`Symbols`].

use std::io::{self, BufRead};

use thiserror::Error;

use crate::wellformed::{Checker, Malformed};
use crate::{Event, Symbols};

#[cfg(feature = "trace")]
pub mod binary;
mod flow;
pub mod text;

/// Why a trace cannot be read, and where.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The bytes could not be read.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// There is nothing in it.
    #[error("the trace is empty")]
    Empty,
    /// It was cut off before anything that can be read.
    #[error("the trace is cut off before its first event: nothing can be read from it")]
    NothingLeft,
    /// Something in it makes no sense.
    #[error("{at}: {problem}")]
    Invalid {
        /// Where.
        at: Position,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// It was written by a newer version.
    #[error(
        "the trace has format version {found}, this build reads versions up to {supported}: use a newer selvedge"
    )]
    Version {
        /// The version in the file.
        found: u8,
        /// The newest version that can be read.
        supported: u8,
    },
}

impl TraceError {
    fn invalid(at: Position, problem: impl Into<String>) -> TraceError {
        TraceError::Invalid { at, problem: problem.into() }
    }
}

/// A place in a trace file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Line of a text trace, from 1.
    Line(u64),
    /// Byte offset in a binary trace.
    Offset(u64),
    /// The n-th event of a binary trace, from 1, in the block at a byte offset.
    Event {
        /// Which event.
        number: u64,
        /// Where its block starts.
        block: u64,
    },
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Position::Line(n) => write!(f, "line {n}"),
            Position::Offset(n) => write!(f, "offset {n}"),
            Position::Event { number, block } => {
                write!(f, "event {number} (block at offset {block})")
            }
        }
    }
}

/// How a trace ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// As its writer meant it to.
    Whole,
    /// In the middle: the writer was killed or the file was cut. Everything before `offset` is intact.
    CutOff {
        /// Where the incomplete part starts.
        offset: u64,
    },
}

/// The format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One event a line, `thread|op|site`.
    Text,
    /// Compressed blocks.
    Binary,
}

/// A trace of either format, checked as it is read: every event handed out continues an execution.
pub struct Reader<R> {
    format: AnyReader<R>,
    checker: Checker,
}

enum AnyReader<R> {
    Text(text::TextReader<R>),
    #[cfg(feature = "trace")]
    Binary(binary::BinaryReader<R>),
}

impl<R: BufRead> Reader<R> {
    /// Recognises the format and reads what comes before the first event.
    pub fn new(mut input: R) -> Result<Reader<R>, TraceError> {
        let start = input.fill_buf()?;
        if start.is_empty() {
            return Err(TraceError::Empty);
        }
        #[cfg(feature = "trace")]
        if start[0] == binary::MAGIC[0] {
            let reader = binary::BinaryReader::new(input)?;
            return Ok(Reader { format: AnyReader::Binary(reader), checker: Checker::default() });
        }
        let reader = text::TextReader::new(input);
        Ok(Reader { format: AnyReader::Text(reader), checker: Checker::default() })
    }

    /// Which format it is.
    pub fn format(&self) -> Format {
        match self.format {
            AnyReader::Text(_) => Format::Text,
            #[cfg(feature = "trace")]
            AnyReader::Binary(_) => Format::Binary,
        }
    }

    /// Replaces `batch` by the next events. An empty batch means that the trace is over.
    ///
    /// On an error, `batch` holds the events that came before it.
    pub fn read(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        batch.clear();
        let outcome = match &mut self.format {
            AnyReader::Text(r) => r.read(batch),
            #[cfg(feature = "trace")]
            AnyReader::Binary(r) => r.read(batch),
        };
        for (i, event) in batch.iter().enumerate() {
            if let Err(malformed) = self.checker.check(event) {
                batch.truncate(i);
                return Err(self.malformed(i, malformed));
            }
        }
        outcome
    }

    /// The names and sites of everything read so far.
    pub fn symbols(&self) -> &Symbols {
        match &self.format {
            AnyReader::Text(r) => r.symbols(),
            #[cfg(feature = "trace")]
            AnyReader::Binary(r) => r.symbols(),
        }
    }

    /// How the trace ended, once it is over.
    pub fn ending(&self) -> Ending {
        match &self.format {
            AnyReader::Text(_) => Ending::Whole,
            #[cfg(feature = "trace")]
            AnyReader::Binary(r) => r.ending(),
        }
    }

    fn malformed(&self, index: usize, malformed: Malformed) -> TraceError {
        let at = match &self.format {
            AnyReader::Text(r) => Position::Line(r.line_of(index)),
            #[cfg(feature = "trace")]
            AnyReader::Binary(r) => r.position_of(index),
        };
        TraceError::invalid(at, malformed.describe(self.symbols()))
    }
}

/// Reads a whole text trace from memory; for tests and small traces.
pub fn parse(text: &str) -> Result<(Vec<Event>, Symbols), TraceError> {
    let mut reader = Reader::new(text.as_bytes())?;
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    loop {
        reader.read(&mut batch)?;
        if batch.is_empty() {
            return Ok((all, reader.symbols().clone()));
        }
        all.append(&mut batch);
    }
}
