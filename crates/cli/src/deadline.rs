//! Why to stop early: the user wants to, or the time is over.
//!
//! The first signal stops what runs and lets the report come; the second one ends us at once, and with
//! us everything that we have started.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Watches over the end of a command.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    /// Set as soon as executions are not wanted any more.
    pub(crate) interrupt: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    begun: Instant,
    time: Option<Duration>,
}

impl Deadline {
    /// From now on signals stop the command instead of ending it.
    pub(crate) fn new(time: Option<Duration>) -> io::Result<Deadline> {
        let deadline = Deadline {
            interrupt: Arc::default(),
            signal: Arc::default(),
            begun: Instant::now(),
            time,
        };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the second signal finds the flag set, and ends us.
            let twice = Arc::clone(&deadline.interrupt);
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, twice)?;
            signal_hook::flag::register(signal, Arc::clone(&deadline.interrupt))?;
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, Arc::clone(&deadline.signal), number)?;
        }
        Ok(deadline)
    }

    /// Signals are left to gdb, which shares our terminal.
    pub(crate) fn under_gdb() -> Deadline {
        Deadline {
            interrupt: Arc::default(),
            signal: Arc::default(),
            begun: Instant::now(),
            time: None,
        }
    }

    /// The signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<&'static str> {
        match i32::try_from(self.signal.load(Ordering::Relaxed)) {
            Ok(SIGINT) => Some("SIGINT"),
            Ok(SIGTERM) => Some("SIGTERM"),
            Ok(SIGHUP) => Some("SIGHUP"),
            _ => None,
        }
    }

    /// How long the command has run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Which part of the time is over; none of an unlimited one ever is.
    pub(crate) fn share(&self) -> f64 {
        self.time.map_or(0.0, |time| self.elapsed().as_secs_f64() / time.as_secs_f64())
    }

    /// How long the command may still run.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.time.map(|t| t.saturating_sub(self.elapsed()))
    }

    /// Whether the time is over; if so, what runs is interrupted.
    pub(crate) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Why nothing more should be begun, in words.
    pub(crate) fn reason(&self) -> Option<String> {
        if let Some(signal) = self.signal() {
            return Some(format!("stopped by {signal}"));
        }
        let time = self.time.filter(|_| self.is_over())?;
        Some(format!("stopped after {} s (--time)", time.as_secs_f64()))
    }
}
