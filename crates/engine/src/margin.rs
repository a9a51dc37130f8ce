//! The moment of no return: how likely a failure is after each beginning of an execution that shows it.
//!
//! Each beginning of the failing schedule is followed again and again, each time with a random rest. The
//! share of these executions that fail says how much of the bug has happened by then; the step where the
//! share jumps is the bug's place in time.
//!
//! Guarantee: the samples of a beginning are independent, so [`Share::interval`] covers the true
//! probability under a random walk with 95% confidence. Beginnings between two sampled ones are sampled as
//! well if the two shares differ by more than chance explains.

use selvedge_explore::rng::derive;
use selvedge_explore::{Prefix, RandomWalk, Rng};
use selvedge_model::Schedule;

use crate::executor::{Ask, Executor};
use crate::replay::{Sought, watch};

/// How often executions with one beginning showed the failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// How many choices of the schedule were followed.
    pub choices: usize,
    /// How many executions showed the failure.
    pub shown: u64,
    /// Of how many.
    pub of: u64,
}

/// The quantile of the normal distribution for 95% confidence on two sides.
const Z: f64 = 1.959_964;

impl Share {
    /// The share itself.
    pub fn share(&self) -> f64 {
        self.shown as f64 / self.of.max(1) as f64
    }

    /// Wilson's interval for the probability, with 95% confidence.
    pub fn interval(&self) -> (f64, f64) {
        let (n, p) = (self.of.max(1) as f64, self.share());
        let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        let (middle, scale) = (p + Z * Z / (2.0 * n), 1.0 + Z * Z / n);
        (((middle - spread) / scale).max(0.0), ((middle + spread) / scale).min(1.0))
    }

    fn differs(&self, other: &Share) -> bool {
        let (a, b) = (self.interval(), other.interval());
        a.1 < b.0 || b.1 < a.0
    }
}

/// Samples beginnings of `schedule`, `samples` executions each, shortest first in the result. `go_on` is
/// asked before each beginning; if it says no, the beginnings so far are the result.
pub fn margin<X: Executor>(
    executor: &mut X,
    schedule: &Schedule,
    sought: &Sought,
    ask: &Ask<X::Points>,
    samples: u64,
    mut go_on: impl FnMut(&[Share]) -> bool,
) -> Result<Vec<Share>, X::Error> {
    let ask = ask.clone().following(schedule);
    let mut shares: Vec<Share> = Vec::new();
    let mut ends: Vec<usize> = vec![0];
    for segment in &schedule.segments {
        ends.push(ends[ends.len() - 1] + segment.steps as usize);
    }
    ends.reverse();
    loop {
        let next = ends.pop().or_else(|| between(&shares));
        let Some(choices) = next.filter(|_| executor.is_usable() && go_on(&shares)) else {
            return Ok(shares);
        };
        let mut share = Share { choices, shown: 0, of: 0 };
        let seed = derive(schedule.seed ^ 0x3a46, choices as u64);
        for number in 0..samples {
            let strategy = Prefix::new(schedule, choices, RandomWalk::default());
            let rng = Rng::of_execution(seed, number);
            let (seen, _) = watch(executor, strategy, rng, sought, &ask)?;
            share.of += 1;
            share.shown += u64::from(seen.shown);
            if !executor.is_usable() {
                break;
            }
        }
        let at = shares.partition_point(|s| s.choices < choices);
        shares.insert(at, share);
    }
}

/// The middle of the first gap across which the share changes.
fn between(shares: &[Share]) -> Option<usize> {
    let gap = shares.windows(2).find(|w| w[1].choices - w[0].choices > 1 && w[0].differs(&w[1]))?;
    Some(gap[0].choices.midpoint(gap[1].choices))
}

/// The choice that raises the probability most, if one does by more than chance explains: the two
/// beginnings around it.
pub fn jump(shares: &[Share]) -> Option<(Share, Share)> {
    let pairs = shares.windows(2).filter(|w| w[0].differs(&w[1]) && w[0].share() < w[1].share());
    let rise = |w: &&[Share]| ((w[1].share() - w[0].share()) * 1e6) as u64;
    pairs.max_by_key(rise).map(|w| (w[0], w[1]))
}

/// The largest probability per execution that `executions` executions without the failure leave open, with
/// 95% confidence.
pub fn at_most(executions: u64) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / executions.max(1) as f64)
}
