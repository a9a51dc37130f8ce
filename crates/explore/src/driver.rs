//! What every executor does at a choice: keeps it fair, asks the strategy, and records the answer.
//!
//! A choice that [`Fairness`] leaves no choice in is neither asked nor recorded, like one at which only one
//! thread can run: in a replay it is made in the same way.
//!
//! Guarantee: the [`Schedule`] that a driver records makes [`Replay`](crate::Replay) choose the same
//! again.
//!
//! Cost: O(1) per choice, O(log n) where another thread runs than before.

use selvedge_model::{Schedule, Stop, ThreadId};

use crate::fairness::Fairness;
use crate::{Choice, Pending, Rng, Strategy};

/// Asks a strategy at each choice of one execution, and records what it says.
#[derive(Clone, Debug, Default)]
pub struct Driver {
    /// What was chosen. The executor fills in the seed and whether releases are steps.
    pub schedule: Schedule,
    /// Where threads were stopped, if the executor says how many events had happened.
    pub stops: Vec<Stop>,
    /// Who has to give way. The executor says what each step changed.
    pub fairness: Fairness,
    /// How many events had happened before each choice, if the executor says.
    pub times: Vec<usize>,
    choices: usize,
    /// The threads that may be chosen, if not all may.
    few: Vec<ThreadId>,
}

impl Driver {
    /// Forgets the execution before.
    pub fn clear(&mut self) {
        self.schedule.segments.clear();
        self.schedule.numbers.clear();
        self.stops.clear();
        self.fairness.clear();
        self.times.clear();
        self.choices = 0;
    }

    /// How many choices there have been; the [`Choice::step`] of the next one.
    #[inline]
    pub fn choices(&self) -> usize {
        self.choices
    }

    /// Asks `strategy`. `events` is how many events have happened; stops are recorded only if it is given.
    #[inline]
    pub fn choose(
        &mut self,
        strategy: &mut dyn Strategy,
        choice: &Choice<'_>,
        events: Option<usize>,
    ) -> ThreadId {
        let mut few = std::mem::take(&mut self.few);
        if strategy.is_patient() && !self.fairness.tries_patience(choice.running) {
            few.clear();
        } else {
            self.fairness.select(choice.enabled, &mut few);
        }
        let thread = match few[..] {
            [] => self.ask(strategy, choice, events),
            [only] => only,
            _ => self.ask(strategy, &Choice { enabled: &few, ..*choice }, events),
        };
        self.few = few;
        self.fairness.runs(thread);
        thread
    }

    #[inline]
    fn ask(
        &mut self,
        strategy: &mut dyn Strategy,
        choice: &Choice<'_>,
        events: Option<usize>,
    ) -> ThreadId {
        let thread = strategy.choose(choice);
        self.choices += 1;
        if let Some(events) = events {
            self.times.push(events);
        }
        match self.schedule.segments.last_mut() {
            // The common case, without looking at what would be preempted.
            Some(last) if last.thread == thread => last.steps += 1,
            _ => {
                let preempted = choice.preempted_by(thread);
                self.schedule.push(thread, preempted.map(Pending::fingerprint));
                if let (Some(at), Some(next), Some(stopped)) = (events, preempted, choice.running) {
                    self.stops.push(Stop { at, thread: stopped, next: *next });
                }
            }
        }
        thread
    }

    /// Asks `strategy` for a number less than `below` that the program wants, and records it.
    pub fn number(&mut self, strategy: &mut dyn Strategy, below: u32) -> u32 {
        self.number_at(strategy, below, 0)
    }

    /// The same, for a place in the program.
    pub fn number_at(&mut self, strategy: &mut dyn Strategy, below: u32, place: u64) -> u32 {
        let number = strategy.number_at(below, place).min(below.saturating_sub(1));
        self.schedule.numbers.push(number);
        number
    }
}

/// How many executions a search may use, and the seed of its random numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    seed: u64,
    limit: u64,
    begun: u64,
}

impl Budget {
    /// At most `limit` executions.
    pub fn new(seed: u64, limit: u64) -> Budget {
        Budget { seed, limit, begun: 0 }
    }

    /// How many executions have begun.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Begins the next execution; false if the budget is used up or the strategy wants no more.
    pub fn begin(&mut self, strategy: &mut dyn Strategy) -> bool {
        let begins =
            self.begun < self.limit && strategy.begin(Rng::of_execution(self.seed, self.begun));
        self.begun += u64::from(begins);
        begins
    }
}
