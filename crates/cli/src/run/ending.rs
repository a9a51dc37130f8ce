//! How a program ended, as a type and as an exit code.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use selvedge_model::Ended;

/// How a process ended.
pub(super) fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, signal) => Ended::Signal(signal.unwrap_or(0)),
    }
}

/// Whether a signal is one that a broken program dies of. One that was sent to stop it is not.
pub(super) fn is_crash(signal: i32) -> bool {
    const BROKEN: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];
    BROKEN.contains(&signal)
}

/// The program's own code; after a signal, what a shell would say.
pub(super) fn code(status: ExitStatus) -> ExitCode {
    let number = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(number).unwrap_or(1))
}
