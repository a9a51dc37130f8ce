//! Partial order sampling: a random priority for every step, redrawn when a conflicting step is taken.
//!
//! Source: Yuan, Yang and Gu, *Partial order aware concurrency sampling*, CAV 2018, algorithm 1. The
//! enabled step of highest priority is taken; then every pending step that races with it draws anew.
//! Without that, the steps that lose one race would tend to lose the next one too.
//!
//! Deviations: a step that is not enabled keeps its priority, like one that waits. A thread that yields
//! is not chosen while another is enabled.
//!
//! Guarantee: where steps are independent throughout, priorities are never redrawn and every order of
//! them is equally likely; a schedule class of a program with n threads and k steps has probability at
//! least 1/k! and is sampled with far less variance than by a random walk (theorem 1 of the paper).
//!
//! Cost: O(n) per step.

use selvedge_model::ThreadId;

use crate::entry::Entry;
use crate::{Choice, Pending, Rng, Strategy, dependent};

/// Random priorities for steps.
#[derive(Clone, Debug, Default)]
pub struct Pos {
    rng: Rng,
    /// The priority of the pending step of each thread.
    priorities: Vec<u64>,
}

impl Pos {
    fn know(&mut self, threads: usize) {
        while self.priorities.len() < threads {
            self.priorities.push(self.rng.next_u64());
        }
    }
}

impl Strategy for Pos {
    fn begin(&mut self, rng: Rng) -> bool {
        self.rng = rng;
        self.priorities.clear();
        true
    }

    fn number(&mut self, below: u32) -> u32 {
        self.rng.number(below)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.know(choice.pending.len());
        (0..choice.candidates())
            .map(|i| choice.candidate(i))
            .max_by_key(|t| self.priorities[t.index()])
            .expect("a choice has threads")
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.know(pending.len());
        let taken = (thread, pending[thread.index()].step);
        for (i, other) in pending.iter().enumerate() {
            if dependent(taken, (ThreadId(i as u32), other.step)) {
                self.priorities[i] = self.rng.next_u64();
            }
        }
    }
}

/// The strategy of `pos`.
pub const ENTRY: Entry = Entry {
    name: "pos",
    about: "random priorities for steps, redrawn at conflicts",
    argument: None,
    systematic: false,
    new: |_| Box::<Pos>::default(),
};
