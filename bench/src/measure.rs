//! Timing alternatives against each other.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Times of one alternative over several rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// The least disturbed run.
    pub(crate) fn best(&self) -> Duration {
        self.0.iter().min().copied().unwrap_or_default()
    }

    /// How much longer the worst run took than the best, in percent.
    pub(crate) fn spread(&self) -> f64 {
        let worst = self.0.iter().max().copied().unwrap_or_default();
        (worst.as_secs_f64() / self.best().as_secs_f64() - 1.0) * 100.0
    }
}

/// Something to time, and its name.
pub(crate) type Alternative<'a> = (&'static str, Box<dyn FnMut() + 'a>);

/// Runs the alternatives in turn, `rounds` times.
pub(crate) fn alternate<const N: usize>(
    rounds: usize,
    mut alternatives: [Alternative<'_>; N],
) -> [Times; N] {
    let mut times = std::array::from_fn(|_| Times::default());
    let terminal = std::io::stderr().is_terminal();
    for round in 0..rounds {
        for ((name, run), times) in alternatives.iter_mut().zip(&mut times) {
            if terminal {
                eprint!("\r\x1b[Kround {} of {rounds}: {name}", round + 1);
            }
            let start = Instant::now();
            run();
            times.0.push(start.elapsed());
        }
    }
    if terminal {
        eprint!("\r\x1b[K");
    }
    times
}

/// The most memory that this process has had, in MiB.
pub(crate) fn peak_memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0);
    kib / 1024.0
}
