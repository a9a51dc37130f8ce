//! The beginning of a recorded execution, and then another strategy.
//!
//! Guarantee: on the program that was recorded, the first choices are the recorded ones, as many as asked
//! for; all later ones are the other strategy's.
//!
//! Cost: that of [`Replay`], then that of the other strategy.

use selvedge_model::{Event, Schedule, ThreadId};

use crate::{Choice, Pending, Replay, Rng, Strategy};

/// Follows the beginning of a schedule, then another strategy.
#[derive(Clone, Debug)]
pub struct Prefix<S> {
    schedule: Schedule,
    replay: Replay,
    choices: usize,
    then: S,
}

impl<S: Strategy> Prefix<S> {
    /// Follows `schedule` for `choices` choices, then `then`.
    pub fn new(schedule: &Schedule, choices: usize, then: S) -> Prefix<S> {
        Prefix { schedule: schedule.clone(), replay: Replay::new(schedule), choices, then }
    }
}

impl<S: Strategy> Strategy for Prefix<S> {
    fn begin(&mut self, rng: Rng) -> bool {
        self.replay = Replay::new(&self.schedule);
        self.replay.begin(rng.clone()) && self.then.begin(rng)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        match choice.step < self.choices {
            true => self.replay.choose(choice),
            false => self.then.choose(choice),
        }
    }

    fn follows_steps(&self) -> bool {
        self.then.follows_steps()
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.then.step(thread, pending);
    }

    fn observe(&mut self, event: &Event) {
        self.then.observe(event);
    }

    fn end(&mut self, pending: &[Pending]) {
        self.then.end(pending);
    }
}
