//! Leaves a thread alone in an atomic block, to see whether the block ends.
//!
//! An operation is *obstruction-free* if it ends when all other threads stand still, wherever they stand (Herlihy,
//! Luchangco and Moir, ICDCS 2003). Threads run at random up to a random step; from then on only a thread that is in a
//! block runs, until the block ends.
//!
//! Guarantee: [`Alone::obstructed`] names a thread that had to wait, or that took so many steps without a change that
//! [`Fairness`](crate::Fairness) made it give way. After that, threads run at random again, so that the execution ends.
//!
//! Cost: O(n) per choice.

use selvedge_model::{Event, Nesting, Op, RegionId, Step, ThreadId};

use crate::{Choice, Pending, Rng, Strategy};

/// Leaves a thread alone.
#[derive(Clone, Debug, Default)]
pub struct Alone {
    rng: Rng,
    nesting: Nesting,
    steps: usize,
    /// Steps of the longest execution so far.
    longest: usize,
    /// After so many steps a thread is left alone.
    after: usize,
    alone: Option<(ThreadId, RegionId)>,
    is_over: bool,
    obstructed: Option<(ThreadId, RegionId)>,
}

impl Alone {
    /// The thread that could not end its block alone, and the block, if there is one.
    pub fn obstructed(&self) -> Option<(ThreadId, RegionId)> {
        self.obstructed
    }

    /// When it is time, one of the threads that are in blocks is left alone. One that has not opened its block yet may
    /// wait for its first step.
    fn pick(&mut self, threads: usize, counts: impl Fn(ThreadId) -> bool) {
        if self.alone.is_some() || self.is_over || self.steps < self.after {
            return;
        }
        let threads = (0..threads as u32).map(ThreadId).filter(|&t| counts(t));
        let inside: Vec<_> =
            threads.filter_map(|t| self.nesting.block(t).map(|region| (t, region))).collect();
        if !inside.is_empty() {
            self.alone = Some(inside[self.rng.below(inside.len())]);
        }
    }

    fn fail(&mut self) {
        self.obstructed = self.alone.take();
        self.is_over = true;
    }
}

/// Whether a thread may have to wait before it can do this.
fn may_wait(op: Op) -> bool {
    matches!(op, Op::Acquire(..) | Op::Join(_) | Op::Leave(..) | Op::Wait(_) | Op::Wake(_))
}

impl Strategy for Alone {
    fn begin(&mut self, mut rng: Rng) -> bool {
        self.longest = self.longest.max(self.steps);
        self.after = rng.below(self.longest.max(1));
        self.rng = rng;
        self.nesting.clear();
        self.steps = 0;
        (self.alone, self.is_over, self.obstructed) = (None, false, None);
        true
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.pick(choice.pending.len(), |_| true);
        if let Some((thread, _)) = self.alone {
            if choice.is_enabled(thread) {
                return thread;
            }
            self.fail();
        }
        choice.candidate(self.rng.below(choice.candidates()))
    }

    fn number(&mut self, below: u32) -> u32 {
        self.rng.number(below)
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        // Where only one thread can run, there was no choice: the others wait.
        let waits = |t: ThreadId| matches!(pending[t.index()].step, Step::Do(op) if may_wait(op));
        self.pick(pending.len(), |t| t == thread || waits(t));
        self.steps += 1;
        if self.alone.is_some_and(|(alone, _)| alone != thread) {
            self.fail();
        }
        self.nesting.step(thread);
    }

    fn observe(&mut self, event: &Event) {
        if self.nesting.observe(event).is_some()
            && self.alone.is_some_and(|(alone, _)| alone == event.thread)
        {
            (self.alone, self.is_over) = (None, true);
        }
    }
}
