//! The commands `selvedge` and `cargo selvedge`.
//!
//! [`selvedge`] parses the arguments, calls a command, and turns its outcome into an exit code; no other code
//! decides exit codes. Reports go to standard output, and everything else goes to standard error.

#![forbid(unsafe_code)]

mod args;
mod catalogue;
mod checking;
mod commands;
mod config;
mod control;
mod crew;
mod deadline;
mod exit;
mod input;
mod messages;
mod program;
mod progress;
mod ranks;
mod store;
mod terminal;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use selvedge_report::escape;

use crate::args::{Arguments, CargoArguments, Command};
use crate::exit::{Exit, Failure};
use crate::program::compiler::Driver;

/// The command `selvedge`: does what the arguments of the process say, and returns its exit code.
pub fn selvedge() -> ExitCode {
    command(std::env::args_os().collect())
}

fn command(words: Vec<OsString>) -> ExitCode {
    // As a compiler we pass all options on, also `--help` and `--version`.
    if is_called(&words, program::toolbox::RUSTC) {
        return ended(commands::cargo::rustc(&words[1..]));
    }
    if let Some((driver, args)) = driver(&words) {
        return ended(program::compiler::run(driver, args));
    }
    if let Some((name, args)) = mpi_compiler(&words) {
        return ended(program::compiler::mpi::run(name, args));
    }
    let command_line = match config::with_defaults(Arguments::command()) {
        Ok(command_line) => command_line,
        Err(failure) => return ended(Err(failure)),
    };
    let parsed = command_line.try_get_matches_from(words);
    let arguments = match parsed.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => return refused(&error),
    };
    arguments.color.apply();
    arguments.progress.apply();
    let outcome = match arguments.command {
        Command::Run(args) => return ended(commands::run::run(&args)),
        Command::Cc { .. } | Command::Cxx { .. } => unreachable!("handled above"),
        Command::Mpicc { .. } | Command::Mpicxx { .. } => unreachable!("handled above"),
        Command::Oshcc { .. } | Command::Oshcxx { .. } => unreachable!("handled above"),
        Command::Test(args) => commands::test::run(&args),
        Command::Explore(args) => commands::explore::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Fixed(args) => commands::fixed::run(&args),
        Command::Check(check) => commands::check::run(&check),
        Command::History(history) => commands::history::run(&history),
        Command::Infer(infer) => commands::infer::run(&infer),
        Command::Trace(trace) => commands::trace::run(&trace),
        Command::Report(report) => commands::report::run(&report),
        Command::States(states) => commands::states::run(&states),
        Command::Mcp(mcp) => commands::mcp::run(&mcp),
        Command::Completions { shell } => commands::manual::completions(shell),
        Command::Man { directory } => commands::manual::pages(directory.as_deref()),
        Command::Demo(demo) => commands::demo::run(&demo),
    };
    ended(outcome.map(ExitCode::from))
}

/// Prints an error of the argument parser. Help and version are such errors too, but exit with 0.
fn refused(error: &clap::Error) -> ExitCode {
    let code = if error.use_stderr() { Exit::Usage } else { Exit::Clean };
    let _ = error.print();
    code.into()
}

fn is_called(words: &[OsString], name: &str) -> bool {
    words.first().and_then(|w| Path::new(w).file_name()).is_some_and(|n| n == name)
}

/// Whether we are called as a compiler, by our name or by the first argument, and as which one.
fn driver(words: &[OsString]) -> Option<(Driver, Vec<OsString>)> {
    let name = Path::new(words.first()?).file_name()?.to_str()?;
    let (word, rest) = match name {
        program::toolbox::CC | program::toolbox::CXX => (name, &words[1..]),
        _ => (words.get(1)?.to_str()?, &words[2..]),
    };
    match word {
        "cc" | program::toolbox::CC => Some((Driver::C, rest.to_vec())),
        "c++" | program::toolbox::CXX => Some((Driver::Cxx, rest.to_vec())),
        _ => None,
    }
}

/// Whether we are called as a compiler of MPI, and as which one.
fn mpi_compiler(words: &[OsString]) -> Option<(&str, &[OsString])> {
    let name = words.get(1)?.to_str()?;
    program::compiler::mpi::is_compiler(name).then(|| (name, &words[2..]))
}

fn ended(outcome: Result<ExitCode, Failure>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(failure) if failure.is_closed_pipe() => Exit::Clean.into(),
        Err(failure) => {
            let message = failure.to_string();
            anstream::eprintln!("{}: {}", messages::error_label(), escape::visible(&message));
            failure.exit().into()
        }
    }
}

/// The command `cargo-selvedge`, which Cargo calls with `selvedge` as the first argument. Without that
/// argument it is the command `selvedge`, so that Cargo can use the same file as linker and runner.
pub fn cargo_selvedge() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_none_or(|w| w != "selvedge") {
        return command(words);
    }
    words.remove(1);
    let command_line = match config::with_defaults_of_run(CargoArguments::command()) {
        Ok(command_line) => command_line,
        Err(failure) => return ended(Err(failure)),
    };
    let parsed = command_line.try_get_matches_from(words);
    match parsed.and_then(|matches| CargoArguments::from_arg_matches(&matches)) {
        Ok(arguments) => {
            arguments.color.apply();
            ended(commands::cargo::run(&arguments))
        }
        Err(error) => refused(&error),
    }
}
