//! Round robin: every enabled thread in turn, `quantum` choices each.
//!
//! Guarantee: one schedule, always the same, so it asks for one execution only; no enabled thread waits
//! longer than `quantum` choices of each other thread. Finds only what every fair schedule shows. It is
//! the baseline, and the schedule of the first observation because it is fair and reproducible.
//!
//! Cost: O(log n) per choice.

use selvedge_model::ThreadId;

use crate::entry::{Argument, Entry};
use crate::{Choice, Rng, Strategy};

/// Lets each enabled thread run in turn.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    quantum: usize,
    left: usize,
    done: bool,
}

impl RoundRobin {
    /// `quantum` choices for each thread, at least one.
    pub fn new(quantum: usize) -> RoundRobin {
        RoundRobin { quantum: quantum.max(1), left: 0, done: false }
    }
}

impl Strategy for RoundRobin {
    fn begin(&mut self, _: Rng) -> bool {
        self.left = self.quantum;
        !std::mem::replace(&mut self.done, true)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        if let Some(running) = choice.willing()
            && self.left > 0
        {
            self.left -= 1;
            return running;
        }
        self.left = self.quantum - 1;
        let after = choice.running.map_or(0, |r| choice.enabled.partition_point(|&t| t <= r));
        choice.enabled[after % choice.enabled.len()]
    }
}

/// The strategy of `round-robin`.
pub const ENTRY: Entry = Entry {
    name: "round-robin",
    about: "one schedule: every thread in turn",
    argument: Some(Argument {
        name: "STEPS",
        about: "how many choices in a row each thread has",
        default: Some(1),
        further: &[],
    }),
    systematic: true,
    new: |[steps, ..]| Box::new(RoundRobin::new(steps.unwrap_or(1))),
};
