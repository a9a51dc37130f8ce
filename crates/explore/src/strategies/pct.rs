//! Probabilistic concurrency testing: random priorities, lowered at a few random points.
//!
//! Source: Burckhardt, Kothari, Musuvathi and Nagarakatte, *A randomized scheduler with probabilistic
//! guarantees of finding bugs*, ASPLOS 2010. The enabled thread of highest priority runs; at each of
//! d − 1 random steps the running thread falls below all others.
//!
//! Deviations: the number of steps k is not given but the largest seen in earlier executions, so the
//! first execution of a program has its change points in the first [`FIRST_GUESS`] choices. Steps are
//! counted where there is a choice at all, which makes k smaller and the bound better. A thread that
//! yields falls to the lowest priority. The [`Driver`](crate::Driver) keeps spin loops, which priorities would
//! let run for ever, from starving others.
//!
//! Guarantee: a bug of depth d in a program of n threads and k choices is found by one execution with
//! probability at least 1/(n·k^(d−1)), provided that k is known from an earlier execution and no thread
//! spins.
//!
//! Cost: O(n) per choice.

use selvedge_model::ThreadId;

use crate::entry::{Argument, Entry};
use crate::{Choice, Rng, Strategy};

/// The depth unless the user says otherwise.
pub const DEPTH: usize = 3;
/// The k of the first execution.
pub const FIRST_GUESS: usize = 64;

/// Priorities of change points lie above this, those of threads that yielded below.
const CHANGED: u64 = 1 << 32;

/// Random priorities with random change points.
#[derive(Clone, Debug)]
pub struct Pct {
    depth: usize,
    /// k: choices of the longest execution so far, 0 before the first.
    longest: usize,
    rng: Rng,
    /// By thread.
    // invariant: at least 2^63 at first, a little above `CHANGED` after a change point, below it after a
    // yield; distinct, except with negligible probability.
    priorities: Vec<u64>,
    /// At which choice the running thread falls to which priority, latest first. Which of two change
    /// points gives the lower priority does not depend on which comes first: the proof needs that.
    change_points: Vec<(usize, u64)>,
    lowest: u64,
}

impl Pct {
    /// Looks for bugs of the given depth, at least 1.
    pub fn new(depth: usize) -> Pct {
        Pct {
            depth: depth.max(1),
            longest: 0,
            rng: Rng::default(),
            priorities: Vec::new(),
            change_points: Vec::new(),
            lowest: 0,
        }
    }

    fn lower(&mut self, thread: ThreadId) {
        self.lowest -= 1;
        self.priorities[thread.index()] = self.lowest;
    }

    fn highest(&self, choice: &Choice<'_>) -> ThreadId {
        let priority = |t: &&ThreadId| self.priorities[t.index()];
        *choice.enabled.iter().max_by_key(priority).expect("a choice has threads")
    }
}

impl Default for Pct {
    fn default() -> Pct {
        Pct::new(DEPTH)
    }
}

impl Strategy for Pct {
    fn begin(&mut self, rng: Rng) -> bool {
        self.rng = rng;
        self.priorities.clear();
        self.lowest = CHANGED;
        let k = if self.longest == 0 { FIRST_GUESS } else { self.longest };
        self.change_points.clear();
        for i in 1..self.depth {
            self.change_points.push((self.rng.below(k), CHANGED + i as u64));
        }
        self.change_points.sort_unstable_by(|a, b| b.cmp(a));
        true
    }

    fn number(&mut self, below: u32) -> u32 {
        self.rng.number(below)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.longest = self.longest.max(choice.step + 1);
        while self.priorities.len() < choice.pending.len() {
            self.priorities.push(self.rng.next_u64() | 1 << 63);
        }
        if choice.yielding
            && let Some(running) = choice.running
        {
            self.lower(running);
        }
        let mut thread = self.highest(choice);
        while let Some(&(_, priority)) = self.change_points.last().filter(|p| p.0 <= choice.step) {
            self.change_points.pop();
            self.priorities[thread.index()] = priority;
            thread = self.highest(choice);
        }
        thread
    }
}

/// The strategy of `pct`.
pub const ENTRY: Entry = Entry {
    name: "pct",
    about: "random priorities for threads, lowered at a few random points",
    argument: Some(Argument {
        name: "DEPTH",
        about: "how many orderings of steps a bug needs",
        default: Some(DEPTH),
        further: &[],
    }),
    systematic: false,
    new: |[depth, ..]| Box::new(Pct::new(depth.unwrap_or(DEPTH))),
};
