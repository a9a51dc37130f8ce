//! Signals to processes that run a program under test.

/// Kills a process, or with a negative number a group; whether there was one.
pub(crate) fn kill(process: i32) -> bool {
    // SAFETY: no memory involved. 0, 1 and -1 mean something else.
    process.unsigned_abs() > 1 && unsafe { libc::kill(process, libc::SIGKILL) } == 0
}

/// Interrupts a process, as the user would at a terminal.
pub(crate) fn interrupt(process: i32) {
    if process > 1 {
        // SAFETY: no memory involved.
        unsafe { libc::kill(process, libc::SIGINT) };
    }
}
