//! Round robin: every enabled thread in turn, `quantum` choices each.
//!
//! Guarantee: one schedule, always the same; no enabled thread waits longer than `quantum` choices of
//! each other thread. Finds nothing but what every fair schedule shows; a baseline, and the schedule of
//! the first observation because it is fair and reproducible.
//!
//! Cost: O(log n) per choice.

use selvedge_model::ThreadId;

use crate::{Choice, Strategy};

/// Lets each enabled thread run in turn.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    executions: u64,
    quantum: u32,
    left: u32,
}

impl RoundRobin {
    /// The same schedule `executions` times.
    pub fn new(quantum: u32, executions: u64) -> RoundRobin {
        RoundRobin { executions, quantum: quantum.max(1), left: 0 }
    }
}

impl Strategy for RoundRobin {
    fn begin(&mut self) -> bool {
        let more = self.executions > 0;
        self.executions -= u64::from(more);
        self.left = self.quantum;
        more
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
