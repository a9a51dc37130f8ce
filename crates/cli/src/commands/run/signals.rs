//! Signals that mean "stop" are for the program: we keep running, to report.
//!
//! Ctrl-C at a terminal reaches the program without us, because the terminal signals the whole process
//! group; forwarding it would deliver it twice. A signal that another process sends to us is forwarded.

use std::io;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

/// Signals that no longer end this process.
pub(crate) struct Held(SignalsInfo<WithOrigin>);

/// Holds signals back until [`Held::forward_to`].
pub(crate) fn hold() -> io::Result<Held> {
    SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT]).map(Held)
}

impl Held {
    /// Forwards the signals to a process for as long as this process runs.
    pub(crate) fn forward_to(mut self, process: u32) {
        let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return };
        thread::spawn(move || {
            for origin in self.0.forever() {
                let signal = match origin.signal {
                    SIGINT => Signal::INT,
                    SIGTERM => Signal::TERM,
                    SIGHUP => Signal::HUP,
                    _ => Signal::QUIT,
                };
                if matches!(origin.cause, Cause::Sent(_)) {
                    // It may have ended in the meantime, and that is what was wanted.
                    let _ = kill_process(process, signal);
                }
            }
        });
    }
}
