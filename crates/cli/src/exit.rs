//! Exit codes, and the failures that lead to them.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use selvedge_model::trace::TraceError;
use thiserror::Error;

use crate::elf::ProgramError;
use crate::run::HOW_TO_BUILD;
use crate::store::StoreError;

/// How the command ends. The numbers are part of the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Nothing at or above `--fail-on`.
    Clean = 0,
    /// Findings.
    Findings = 1,
    /// The command line or an input file is wrong.
    Usage = 2,
    /// The program could not be run, or there was nothing in it to observe.
    NotRun = 3,
    /// A signal stopped the command before it found anything: 128 + SIGINT, as in a shell.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("{name}: {error}")]
    Trace { name: String, error: TraceError },
    #[error("{}: this is a directory; name the trace files in it", .0.display())]
    Directory(PathBuf),
    #[error("{}: cannot open: {}", path.display(), describe(error))]
    Open { path: PathBuf, error: io::Error },
    #[error("{}: cannot write: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    #[error("there is no compiler {name}; set {variable} to the compiler to use")]
    NoCompiler { name: String, variable: &'static str },
    #[error("{}: {wrong}, so Selvedge could not observe it", output.display())]
    Link { output: PathBuf, wrong: String },
    #[error("{0}")]
    Program(ProgramError),
    #[error("{}: this program cannot be observed: {why}\nTo build it with instrumentation:\n{HOW_TO_BUILD}", path.display())]
    Unobservable { path: PathBuf, why: String },
    #[error("interrupted before there was anything to report")]
    Interrupted,
    #[error("{0}")]
    Session(selvedge_runtime::Error),
    #[error("{}: the directory in which the program ran no longer exists", .0.display())]
    Gone(PathBuf),
    #[error("{}: no controlled execution ended within {patience} (--patience); {advice}", path.display())]
    Endless { path: PathBuf, patience: String, advice: &'static str },
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// The exit code of the failure.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::NoCompiler { .. }
            | Failure::Program(_)
            | Failure::Unobservable { .. }
            | Failure::Endless { .. }
            | Failure::Gone(_)
            | Failure::Session(_) => Exit::NotRun,
            Failure::Interrupted => Exit::Interrupted,
            _ => Exit::Usage,
        }
    }

    /// Whether the reader of our output has closed the pipe, as `head` does. That is not an error.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Output(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The result, or `None` if a signal interrupted the work. The caller then reports what it knows so far.
pub(crate) fn unless_interrupted<T, E: Into<Failure>>(
    outcome: Result<T, E>,
) -> Result<Option<T>, Failure> {
    match outcome.map_err(Into::into) {
        Ok(result) => Ok(Some(result)),
        Err(Failure::Interrupted) => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl From<selvedge_runtime::Error> for Failure {
    fn from(error: selvedge_runtime::Error) -> Failure {
        match error {
            selvedge_runtime::Error::Interrupted => Failure::Interrupted,
            other => Failure::Session(other),
        }
    }
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

/// The word that introduces a failure.
pub(crate) fn error_label() -> String {
    label("error", AnsiColor::Red)
}

/// The word that introduces something that went less than well.
pub(crate) fn warning_label() -> String {
    label("warning", AnsiColor::Yellow)
}

fn label(word: &str, color: AnsiColor) -> String {
    let style = Style::new().bold().fg_color(Some(color.into()));
    format!("{style}{word}{style:#}")
}
