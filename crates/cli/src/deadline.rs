//! When to stop early: on a signal, or at the time limit.
//!
//! The first signal stops the executions, and the command still reports. The second signal ends the command
//! and all executions at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use selvedge_report::Stopped;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The time limit of a command, and the signals that stop it.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    /// Set when executions shall stop.
    pub(crate) interrupt: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    begun: Instant,
    time: Option<Duration>,
}

impl Deadline {
    /// Installs signal handlers: from now on the first signal no longer ends the process.
    pub(crate) fn new(time: Option<Duration>) -> io::Result<Deadline> {
        let deadline = Deadline {
            interrupt: Arc::default(),
            signal: Arc::default(),
            begun: Instant::now(),
            time,
        };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the first signal finds the flag unset and sets it, the second one finds it
            // set and ends the process.
            let twice = Arc::clone(&deadline.interrupt);
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, twice)?;
            signal_hook::flag::register(signal, Arc::clone(&deadline.interrupt))?;
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, Arc::clone(&deadline.signal), number)?;
        }
        Ok(deadline)
    }

    /// Without a time limit or signal handlers: gdb, which shares our terminal, handles the signals.
    pub(crate) fn under_gdb() -> Deadline {
        Deadline {
            interrupt: Arc::default(),
            signal: Arc::default(),
            begun: Instant::now(),
            time: None,
        }
    }

    /// The signal that was received, if any.
    pub(crate) fn signal(&self) -> Option<i32> {
        i32::try_from(self.signal.load(Ordering::Relaxed)).ok().filter(|&number| number != 0)
    }

    /// How long the command has run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The part of the time limit that is used up; 0 without a limit.
    pub(crate) fn share(&self) -> f64 {
        self.time.map_or(0.0, |time| self.elapsed().as_secs_f64() / time.as_secs_f64())
    }

    /// How long the command may still run, if there is a limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.time.map(|t| t.saturating_sub(self.elapsed()))
    }

    /// Whether the time limit is reached.
    pub(crate) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Why the command has to stop, if it has to.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        let time = || self.time.filter(|_| self.is_over());
        let out_of_time = || time().map(|time| Stopped::Time(time.as_secs_f64()));
        self.signal().map(Stopped::Signal).or_else(out_of_time)
    }
}
