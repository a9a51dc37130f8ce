//! Repeats an execution with the order of two steps swapped, and nothing else.
//!
//! What an order of two steps does to the result shows only if everything else stays as it was. Two threads
//! were about to take a step each, and one went first. This strategy lets the other one go first, and before
//! and after that chooses as in the recorded execution: of the threads that can run, the one whose next step
//! came earliest there. Each step counts, also those at which there was no choice, so that a thread that has
//! to wait now for a lock or takes a step more does not shift the steps of the others. A thread that asks for numbers
//! gets those that it got there.
//!
//! Guarantee: up to the swap the execution is the recorded one, if the program does the same under the same
//! choices. After it, steps keep the order that they had, unless a thread cannot run or does something else
//! because of the swap.
//!
//! Cost: O(enabled threads) per choice.

use selvedge_model::{SiteId, ThreadId};

use crate::{Choice, Pending, Rng, Strategy};

/// Repeats an execution with two steps swapped.
#[derive(Clone, Debug)]
pub struct Turned {
    /// For each thread, when it took each of its steps, the latest first.
    left: Vec<Vec<u32>>,
    /// How many steps come before the swap.
    before: usize,
    /// The thread that went second, and goes first now.
    first: ThreadId,
    taken: usize,
    /// The numbers that each thread got, the latest first.
    numbers: Vec<Vec<u32>>,
    /// The thread that took the last step.
    running: ThreadId,
    /// The two and where they are, the one that goes first first.
    order: Option<[(ThreadId, SiteId); 2]>,
}

impl Turned {
    /// Follows an execution whose steps were `taken` by these threads, which got these numbers; after `before` steps,
    /// `first` goes first.
    pub fn new(
        taken: &[ThreadId],
        got: &[(ThreadId, u32)],
        before: usize,
        first: ThreadId,
    ) -> Turned {
        let threads = taken.iter().map(|t| t.index() + 1).max().unwrap_or(0);
        let mut left = vec![Vec::new(); threads];
        for (at, thread) in taken.iter().enumerate().rev() {
            left[thread.index()].push(at as u32);
        }
        let mut numbers = vec![Vec::new(); threads];
        for (thread, number) in got.iter().rev().filter(|(thread, _)| thread.index() < threads) {
            numbers[thread.index()].push(*number);
        }
        let running = ThreadId(0);
        Turned { left, before, first, taken: 0, numbers, running, order: None }
    }

    /// The thread that went first now and the one that did in the recorded execution, each with its place, if
    /// the two steps were swapped.
    pub fn order(&self) -> Option<[(ThreadId, SiteId); 2]> {
        self.order
    }

    fn next(&self, thread: ThreadId) -> u32 {
        let left = self.left.get(thread.index()).and_then(|steps| steps.last());
        left.copied().unwrap_or(u32::MAX)
    }
}

impl Strategy for Turned {
    fn begin(&mut self, _: Rng) -> bool {
        true
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        let earliest = choice.enabled.iter().copied().min_by_key(|&t| self.next(t));
        let earliest = earliest.filter(|&t| self.next(t) < u32::MAX);
        if self.taken == self.before
            && let Some(second) = earliest.filter(|&t| t != self.first)
            && choice.is_enabled(self.first)
        {
            self.order = Some([self.first, second].map(|t| (t, choice.next(t).site)));
            return self.first;
        }
        earliest.unwrap_or_else(|| choice.willing().unwrap_or_else(|| choice.candidate(0)))
    }

    fn number(&mut self, _: u32) -> u32 {
        self.numbers.get_mut(self.running.index()).and_then(Vec::pop).unwrap_or(0)
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, _: &[Pending]) {
        self.taken += 1;
        self.running = thread;
        if let Some(steps) = self.left.get_mut(thread.index()) {
            steps.pop();
        }
    }
}
