//! Exit codes, and the failures that lead to them.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use selvedge_model::trace::TraceError;
use thiserror::Error;

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
    #[error("{}, line {line}: {why}", path.display())]
    Line { path: PathBuf, line: usize, why: String },
    #[error("{}: cannot write: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    #[error("there is no compiler {name}; set {variable} to the compiler to use")]
    NoCompiler { name: String, variable: &'static str },
    #[error(
        "there is no {0}; on Debian or Ubuntu: sudo apt-get install openmpi-bin libopenmpi-dev (or mpich libmpich-dev)"
    )]
    NoMpi(String),
    #[error("{0}")]
    Mpi(selvedge_spmd::layer::LayerError),
    #[error(
        "{} uses {theirs}, and {compiler} is of {ours}; to say which MPI it is: SELVEDGE_MPICC=… names the mpicc that built it",
        program.display()
    )]
    OtherMpi { program: PathBuf, theirs: String, compiler: String, ours: String },
    #[error(
        "`selvedge {0}` cannot control the ranks of an MPI program; `selvedge run` observes them, and `selvedge test` confirms their races"
    )]
    RanksNotControlled(&'static str),
    #[error(
        "nothing was observed: no rank called MPI_Init, or the launcher does not pass its environment on to ranks ({0})"
    )]
    NoRanks(String),
    #[error(
        "this is one of several ranks, but they cannot reach each other by MPI: is the launcher of another MPI than mpicc (SELVEDGE_MPICC), or has a rank died? Without MPI, start each part with --shard K/N"
    )]
    NoExchange,
    #[error("rank 0 ended before the campaign began")]
    NoHead,
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
    #[error("{0}")]
    Undecided(String),
}

/// Why a file is not a program that can be observed.
#[derive(Debug, Error)]
pub(crate) enum ProgramError {
    #[error("{}: cannot read: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{name}: there is no such program in the directories of PATH{}", if *here { format!("; to run the one in this directory: ./{name}") } else { String::new() })]
    NotInPath { name: String, here: bool },
    #[error("{}: this is a directory, not a program", .0.display())]
    Directory(PathBuf),
    #[error("{}: the file is not executable", .0.display())]
    NotExecutable(PathBuf),
    #[error(
        "{}: this is a script; run its interpreter with it: `selvedge run -- {interpreter} {}`",
        path.display(), path.display()
    )]
    Script { path: PathBuf, interpreter: String },
    #[error("{}: this is not a program for 64-bit x86 Linux", .0.display())]
    Foreign(PathBuf),
}

/// How to build a program with instrumentation.
pub(crate) const HOW_TO_BUILD: &str =
    "  C and C++:  make CC=\"selvedge cc\" CXX=\"selvedge c++\"   (also for ./configure and cmake)
  Rust:       cargo selvedge run|test|build";

impl Failure {
    /// The exit code of the failure.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::NoCompiler { .. }
            | Failure::NoMpi(_)
            | Failure::Mpi(_)
            | Failure::OtherMpi { .. }
            | Failure::NoRanks(_)
            | Failure::NoExchange
            | Failure::NoHead
            | Failure::RanksNotControlled(_)
            | Failure::Program(_)
            | Failure::Unobservable { .. }
            | Failure::Endless { .. }
            | Failure::Gone(_)
            | Failure::Undecided(_)
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
