//! Random walk: at each choice every enabled thread is equally likely.
//!
//! Deviation from a plain walk: a thread that yields is not chosen while another is enabled, so that
//! spin loops make way.
//!
//! Guarantee: every schedule of k choices among at most n threads has probability at least 1/n^k, save
//! those in which a yielding thread goes on at once. That is little: a schedule that keeps one of n
//! threads from its next step for m choices has probability about (1 − 1/n)^m.
//!
//! Cost: O(1) per choice.

use selvedge_model::ThreadId;

use crate::rng::derive;
use crate::{Choice, Rng, Strategy};

/// Chooses uniformly among the enabled threads.
#[derive(Clone, Debug)]
pub struct RandomWalk {
    seed: u64,
    executions: u64,
    limit: u64,
    rng: Rng,
}

impl RandomWalk {
    /// A walk for each of `limit` executions.
    pub fn new(seed: u64, limit: u64) -> RandomWalk {
        RandomWalk { seed, executions: 0, limit, rng: Rng::new(seed) }
    }
}

impl Strategy for RandomWalk {
    fn begin(&mut self) -> bool {
        if self.executions == self.limit {
            return false;
        }
        self.rng = Rng::new(derive(self.seed, self.executions));
        self.executions += 1;
        true
    }

    #[inline]
    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        choice.candidate(self.rng.below(choice.candidates()))
    }
}
