//! Replay: chooses what a [`Driver`](crate::Driver) recorded.
//!
//! On the program that was recorded, the replay is exact. On one that was edited, a segment that ended in
//! a preemption is prolonged until its thread is about to take a step of the recorded
//! [`Fingerprint`](selvedge_model::Fingerprint), by at most [`SLACK`] steps, and a segment whose thread
//! cannot run is left out; where that happened first is the [`Divergence`].
//!
//! Guarantee: a program that does the same under the same choices does what it did when recorded, and
//! [`Replay::divergence`] is empty. After the end of the schedule threads run until they block.
//!
//! Cost: O(log n) per choice.

use selvedge_model::{Divergence, Reason, Schedule, Segment, ThreadId};

use crate::{Choice, Rng, Strategy};

/// How many steps a program may have gained within a segment.
pub const SLACK: u32 = 64;

/// Chooses what was recorded.
#[derive(Clone, Debug)]
pub struct Replay {
    segments: Vec<Segment>,
    done: bool,
    /// The segment that runs, and the steps that it has taken.
    at: usize,
    taken: u32,
    /// The numbers that were chosen for the program, and how many it has asked for.
    numbers: Vec<u32>,
    asked: usize,
    divergence: Option<Divergence>,
}

impl Replay {
    /// Replays once.
    pub fn new(schedule: &Schedule) -> Replay {
        let Schedule { segments, numbers, .. } = schedule.clone();
        Replay { segments, done: false, at: 0, taken: 0, numbers, asked: 0, divergence: None }
    }

    /// Where the execution that began last left the schedule, if it did.
    pub fn divergence(&self) -> Option<Divergence> {
        self.divergence
    }

    /// Whether choices are left that the program did not come to.
    pub fn unfinished(&self) -> bool {
        self.segments.get(self.at).is_some_and(|s| self.taken < s.steps)
            || self.at + 1 < self.segments.len()
    }

    fn diverge(&mut self, step: usize, thread: ThreadId, reason: Reason) {
        let segment = self.at;
        self.divergence.get_or_insert(Divergence { step, segment, thread, reason });
    }

    /// Whether the segment that runs should take one more step.
    fn goes_on(&mut self, segment: Segment, choice: &Choice<'_>) -> bool {
        if self.taken < segment.steps {
            return true;
        }
        let Some(expected) = segment.until else { return false };
        if choice.running != Some(segment.thread) || self.at + 1 >= self.segments.len() {
            return false;
        }
        let next = choice.next(segment.thread);
        if next.is_known_by(expected) {
            return false;
        }
        let found = next.fingerprint();
        self.diverge(choice.step, segment.thread, Reason::OtherStep { expected, found });
        self.taken - segment.steps < SLACK
    }
}

impl Strategy for Replay {
    fn begin(&mut self, _: Rng) -> bool {
        self.at = 0;
        self.taken = 0;
        self.asked = 0;
        self.divergence = None;
        !std::mem::replace(&mut self.done, true)
    }

    fn number(&mut self, _: u32) -> u32 {
        let number = self.numbers.get(self.asked).copied().unwrap_or(0);
        self.asked += 1;
        number
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        while let Some(&segment) = self.segments.get(self.at) {
            let enabled = choice.is_enabled(segment.thread);
            if self.goes_on(segment, choice) {
                if enabled {
                    self.taken += 1;
                    return segment.thread;
                }
                if self.taken < segment.steps {
                    self.diverge(choice.step, segment.thread, Reason::NotEnabled);
                }
            }
            self.at += 1;
            self.taken = 0;
        }
        choice.willing().unwrap_or_else(|| choice.candidate(0))
    }
}
