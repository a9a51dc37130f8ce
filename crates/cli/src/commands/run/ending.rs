//! How a program ended, as a type and as an exit code.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use selvedge_model::Ended;

/// How a process ended.
pub(crate) fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, signal) => Ended::Signal(signal.unwrap_or(0)),
    }
}

/// Whether a signal means that the program crashed, rather than that it was stopped.
pub(super) fn is_crash(signal: i32) -> bool {
    const BROKEN: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];
    BROKEN.contains(&signal)
}

/// The program's own exit code; after a signal, 128 + its number, as in a shell.
pub(super) fn code(status: ExitStatus) -> ExitCode {
    let number = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(number).unwrap_or(1))
}
