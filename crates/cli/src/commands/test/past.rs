//! What earlier tests of the program leave to this one.
//!
//! A test of the same build goes on where the last one stopped: it knows which pairs of a read and a write were tried,
//! draws other random numbers, and makes other attempts at what is not confirmed. A test of any build first follows
//! the schedules that failed before, so that a bug that is still there is reported again at once.

use selvedge_engine::{Before, Observation, Past, SoFar};
use selvedge_explore::rng::derive;
use selvedge_model::{FindingId, Schedule};
use selvedge_report::{Case, Remark};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::WatchList;

use crate::control::again::{points_again, watch_list};
use crate::control::cases::Predicted;
use crate::control::program::ControlledProgram;
use crate::store::{Journal, Learnt};

/// What is known from before.
pub(super) struct Known {
    learnt: Learnt,
    failed: Vec<Case>,
}

impl Known {
    /// What a campaign begins with.
    pub(super) fn new(learnt: Learnt, failed: Vec<Case>) -> Known {
        Known { learnt, failed }
    }

    /// For the executions to observe.
    pub(super) fn before(&self) -> Before {
        Before { executions: self.learnt.executions, flips: self.learnt.flips.clone() }
    }

    /// The seed of the executions that look for bugs.
    pub(super) fn seed(&self, seed: u64) -> u64 {
        match self.learnt.executions {
            0 => seed,
            executions => derive(seed, executions),
        }
    }

    /// The attempts at these predictions.
    pub(super) fn attempts(&self, predicted: &[Predicted]) -> Vec<Past> {
        predicted.iter().map(|p| self.attempts_at(p.prediction.id)).collect()
    }

    fn attempts_at(&self, id: FindingId) -> Past {
        let known = self.learnt.attempts.iter().find(|a| a.0 == id);
        known.map(|a| a.1).unwrap_or_default()
    }

    /// The schedules that failed before, with the accesses that are scheduling points in them, wherever these are in
    /// this build.
    pub(super) fn schedules(
        &self,
        observation: &Observation<Controlled>,
    ) -> Vec<(Schedule, WatchList)> {
        let one = |case: &Case| {
            let control = case.control.as_ref()?;
            let schedule: Schedule = control.schedule.as_ref()?.parse().ok()?;
            let points = watch_list(control.watched.clone());
            Some((schedule, points_again(&points, &observation.points)))
        };
        self.failed.iter().filter_map(one).collect()
    }

    /// What to tell the user.
    pub(super) fn remark(&self) -> Option<Remark> {
        let schedules = self.learnt.executions;
        (schedules > 0).then_some(Remark::GoesOn { schedules })
    }

    /// Stores what is known now.
    pub(super) fn store(
        &self,
        program: &ControlledProgram,
        so_far: &SoFar<'_>,
        predicted: &[Predicted],
        journal: &mut Journal,
    ) {
        let mut learnt = self.learnt.clone();
        learnt.executions += so_far.executions;
        learnt.flips = so_far.learnt.to_vec();
        for (prediction, attempted) in predicted.iter().zip(so_far.attempted) {
            let id = prediction.prediction.id;
            learnt.attempts.retain(|known| known.0 != id);
            learnt.attempts.push((id, attempted.past));
        }
        journal.learn(&program.setup, &learnt);
    }
}
