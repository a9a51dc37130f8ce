//! The `selvedge` command.
//!
//! `main` parses arguments, hands over to a command, and turns its outcome into an exit code; nothing
//! else decides one. Standard output carries what was asked for, standard error everything else.

#![forbid(unsafe_code)]

mod args;
mod catalogue;
mod check;
mod demo;
mod exit;
mod input;
mod progress;
mod report;
mod trace;

use clap::Parser;

use crate::args::{Arguments, Command};
use crate::exit::Exit;

fn main() -> std::process::ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come as errors too, and are none.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Clean };
            let _ = error.print();
            return code.into();
        }
    };
    let outcome = match arguments.command {
        Command::Check(check) => check::run(&check),
        Command::Trace(trace) => trace::run(&trace),
        Command::Demo(demo) => demo::run(&demo),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_closed_pipe() => Exit::Clean.into(),
        Err(failure) => {
            anstream::eprintln!("{}: {failure}", exit::error_label());
            failure.exit().into()
        }
    }
}
