//! The commands `selvedge` and `cargo selvedge`.
//!
//! [`selvedge`] parses arguments, hands over to a command, and turns its outcome into an exit code; nothing
//! else decides one. Standard output carries what was asked for, standard error everything else.

#![forbid(unsafe_code)]

mod args;
mod catalogue;
mod check;
mod compiler;
mod demo;
mod elf;
mod exit;
mod input;
mod progress;
mod recall;
mod report;
mod store;
mod toolbox;
mod trace;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Command};
use crate::compiler::Driver;
use crate::exit::{Exit, Failure};

/// The command `selvedge`: does what the arguments of the process say, and returns its exit code.
pub fn selvedge() -> ExitCode {
    run(std::env::args_os().collect())
}

fn run(words: Vec<OsString>) -> ExitCode {
    // A compiler's options are its own business, also `--help` and `--version`.
    if let Some(driver) = driver(&words) {
        return ended(compiler::run(driver, words.into_iter().skip(2).collect()));
    }
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come as errors too, and are none.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Clean };
            let _ = error.print();
            return code.into();
        }
    };
    let outcome = match arguments.command {
        Command::Cc { .. } | Command::Cxx { .. } => unreachable!("was recognised before"),
        Command::Check(check) => check::run(&check),
        Command::Trace(trace) => trace::run(&trace),
        Command::Report(recall) => recall::run(&recall),
        Command::Demo(demo) => demo::run(&demo),
    };
    ended(outcome.map(ExitCode::from))
}

fn driver(words: &[OsString]) -> Option<Driver> {
    match words.get(1)?.to_str()? {
        "cc" => Some(Driver::C),
        "c++" => Some(Driver::Cxx),
        _ => None,
    }
}

fn ended(outcome: Result<ExitCode, Failure>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(failure) if failure.is_closed_pipe() => Exit::Clean.into(),
        Err(failure) => {
            anstream::eprintln!("{}: {failure}", exit::error_label());
            failure.exit().into()
        }
    }
}

/// The command `cargo-selvedge`, which Cargo calls with `selvedge` as the first argument.
pub fn cargo_selvedge() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|w| w == "selvedge") {
        words.remove(1);
    }
    run(words)
}
