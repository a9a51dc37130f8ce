//! How a program ended, in words and as an exit code.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// As the store and the report say it.
pub(super) fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => format!("killed by {}", name(signal)),
        (None, None) => status.to_string(),
    }
}

/// The signal that a broken program died of. One that somebody sent to stop it is none.
pub(super) fn crash(status: ExitStatus) -> Option<String> {
    const BROKEN: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];
    status.signal().filter(|s| BROKEN.contains(s)).map(name)
}

/// The program's own code; after a signal, what a shell would say.
pub(super) fn code(status: ExitStatus) -> ExitCode {
    let number = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(number).unwrap_or(1))
}

/// A signal by name.
pub(crate) fn name(signal: i32) -> String {
    let known = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL (illegal instruction)",
        5 => "SIGTRAP",
        6 => "SIGABRT (abort)",
        7 => "SIGBUS (bus error)",
        8 => "SIGFPE (arithmetic error)",
        9 => "SIGKILL",
        11 => "SIGSEGV (segmentation fault)",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        31 => "SIGSYS (bad system call)",
        other => return format!("signal {other}"),
    };
    known.to_owned()
}
