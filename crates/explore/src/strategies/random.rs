//! Random walk: at each choice every enabled thread is equally likely.
//!
//! Deviation from a plain walk: a thread that yields is not chosen while another is enabled, so that
//! spin loops let other threads run.
//!
//! Guarantee: every schedule of k choices among at most n threads has probability at least 1/n^k, except
//! those in which a yielding thread goes on at once. That is little: a schedule that keeps one of n
//! threads from its next step for m choices has probability about (1 − 1/n)^m.
//!
//! Cost: O(1) per choice.

use selvedge_model::ThreadId;

use crate::entry::Entry;
use crate::{Choice, Rng, Strategy};

/// Chooses uniformly among the enabled threads.
#[derive(Clone, Debug, Default)]
pub struct RandomWalk {
    rng: Rng,
}

impl Strategy for RandomWalk {
    fn begin(&mut self, rng: Rng) -> bool {
        self.rng = rng;
        true
    }

    #[inline]
    fn number(&mut self, below: u32) -> u32 {
        self.rng.number(below)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        choice.candidate(self.rng.below(choice.candidates()))
    }
}

/// The strategy of `random`.
pub const ENTRY: Entry = Entry {
    name: "random",
    about: "every thread is equally likely at each step",
    argument: None,
    systematic: false,
    new: |_| Box::<RandomWalk>::default(),
};
