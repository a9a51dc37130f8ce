//! When to stop early: on a signal, or at the time limit.
//!
//! The first signal stops the executions, and the command still reports. The second signal ends the command
//! and all executions at once.
//!
//! What a command does after its executions, such as explaining the findings, takes time as well: each phase ends
//! at a part of the time limit, and at the limit itself every execution that still runs is ended.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use selvedge_report::Stopped;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The part of the time limit at which the executions that look for bugs end.
pub(crate) const EXPLORED: f64 = 0.75;
/// The part at which what they confirmed is explained.
pub(crate) const EXPLAINED: f64 = 0.9;

/// The time limit of a command, and the signals that stop it.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    /// Set when executions shall stop.
    pub(crate) interrupt: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    begun: Instant,
    time: Option<Duration>,
    /// Set when the time limit is reached.
    expired: Arc<AtomicBool>,
    /// Set when executions were ended because of the time limit.
    cut: Arc<AtomicBool>,
}

impl Deadline {
    /// Installs signal handlers: from now on the first signal no longer ends the process.
    pub(crate) fn new(time: Option<Duration>) -> io::Result<Deadline> {
        let deadline = Deadline { time, ..Deadline::under_gdb() };
        if let Some(time) = time {
            let expired = Arc::clone(&deadline.expired);
            std::thread::spawn(move || {
                std::thread::sleep(time);
                expired.store(true, Ordering::Relaxed);
            });
        }
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
            expired: Arc::default(),
            cut: Arc::default(),
        }
    }

    /// What ends executions that run: a signal, or the time limit.
    pub(crate) fn interrupts(&self) -> [Arc<AtomicBool>; 2] {
        [Arc::clone(&self.interrupt), Arc::clone(&self.expired)]
    }

    /// The signal that was received, if any.
    pub(crate) fn signal(&self) -> Option<i32> {
        i32::try_from(self.signal.load(Ordering::Relaxed)).ok().filter(|&number| number != 0)
    }

    /// How long the command has run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How much time is left until a part of the time limit is used up.
    pub(crate) fn until(&self, part: f64) -> Duration {
        self.time.map_or(Duration::MAX, |time| time.mul_f64(part).saturating_sub(self.elapsed()))
    }

    /// Whether the executions that look for bugs have to end.
    pub(crate) fn ends_exploring(&self) -> bool {
        let ends = self.until(EXPLORED).is_zero();
        if ends {
            self.cut.store(true, Ordering::Relaxed);
        }
        ends || self.signal().is_some()
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
        let is_over = || self.is_over() || self.cut.load(Ordering::Relaxed);
        let out_of_time = || Some(Stopped::Time(self.time.filter(|_| is_over())?.as_secs_f64()));
        self.signal().map(Stopped::Signal).or_else(out_of_time)
    }
}
