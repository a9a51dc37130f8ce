//! Running programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A task that worked, or a message.
pub(crate) type Outcome = Result<(), String>;

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Runs cargo at the root of the project.
pub(crate) fn cargo(args: &[&str]) -> Outcome {
    run(Command::new(env!("CARGO")).args(args))
}

/// Runs cargo with an environment variable.
pub(crate) fn cargo_with(name: &str, value: &str, args: &[&str]) -> Outcome {
    run(Command::new(env!("CARGO")).args(args).env(name, value))
}

/// Runs a program at the root of the project, showing what it prints.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|w| w.to_string_lossy().into_owned())
        .collect();
    let shown = words.join(" ");
    let shown = shown.replacen(env!("CARGO"), "cargo", 1);
    eprintln!("\x1b[2m$ {shown}\x1b[0m");
    match command.current_dir(root()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed ({status})")),
        Err(error) => Err(format!("`{shown}` could not be run: {error}")),
    }
}

/// Whether a program runs and succeeds, quietly.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|s| s.success())
}
