//! Shorter schedules that show the same: replaying and minimising until nothing more can be left out.

use std::time::{Duration, Instant};

use selvedge_explore::minimise::Minimised;
use selvedge_explore::{Divergence, Replay, Rng, Strategy, Trivial, Witness, minimise};
use selvedge_model::{Schedule, SiteId, Target};

use super::{Controlled, Execution, Outcome};
use crate::session::Error;

/// A candidate may take this much longer than the execution that it is to replace.
const PATIENCE: u32 = 20;
/// A candidate may take at least this long.
const LEAST_TIME: Duration = Duration::from_millis(500);

/// What an execution has to show to be as good as another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sought<'a> {
    /// The state that it reaches, if any.
    pub target: Option<&'a Target>,
    /// How it ends, if that matters: see [`Outcome::is_like`].
    pub outcome: Option<&'a Outcome>,
}

impl Sought<'_> {
    fn is_shown(&self, execution: &Execution, reached: bool) -> bool {
        (self.target.is_none() || reached)
            && self.outcome.is_none_or(|o| execution.outcome.is_like(o))
    }
}

impl Outcome {
    /// Whether two executions ended in the same way: with the same code, by the same signal, over the
    /// same limit, or with threads that wait at the same places.
    pub fn is_like(&self, other: &Outcome) -> bool {
        let places = |blocked: &[super::Blocked]| {
            let mut sites: Vec<SiteId> = blocked.iter().map(|b| b.pending.site).collect();
            sites.sort_unstable();
            sites
        };
        match (self, other) {
            (Outcome::Deadlock(a), Outcome::Deadlock(b)) => places(a) == places(b),
            _ => self == other,
        }
    }
}

impl Controlled {
    /// The execution of a schedule, where it could not be followed, and whether it was in the target's
    /// state. The accesses of a race have to be [watched](Controlled::watch).
    pub fn replay_to(
        &mut self,
        schedule: &Schedule,
        target: &Target,
    ) -> Result<(Execution, Option<Divergence>, bool), Error> {
        let former = (self.seed, self.releases);
        (self.seed, self.releases) = (schedule.seed, schedule.releases);
        let mut witness = Witness::new(Replay::new(schedule), target, &Trivial, Trivial);
        witness.begin(Rng::default());
        let result = self.run(&mut witness);
        (self.seed, self.releases) = former;
        Ok((result?, witness.strategy.divergence(), witness.witnessed()))
    }

    /// Looks for a schedule with fewer preemptions that shows what is sought, in at most `budget`
    /// executions; see [`mod@minimise`]. The schedule given has shown it.
    pub fn minimise(
        &mut self,
        schedule: &Schedule,
        budget: usize,
        sought: Sought<'_>,
    ) -> Result<Minimised, Error> {
        let whole = self.settings.time;
        let begin = Instant::now();
        let mut failed = None;
        let mut limited = false;
        let result = minimise(schedule.clone(), budget, |candidate| {
            if failed.is_some() {
                return None;
            }
            let shown = match sought.target {
                Some(target) => self
                    .replay_to(candidate, target)
                    .map(|(e, _, r)| sought.is_shown(&e, r).then_some(e)),
                None => {
                    self.replay(candidate).map(|(e, _)| sought.is_shown(&e, false).then_some(e))
                }
            };
            if !std::mem::replace(&mut limited, true) {
                // A candidate that hangs must not take the time of all the others.
                self.settings.time = whole.min((begin.elapsed() * PATIENCE).max(LEAST_TIME));
            }
            shown
                .unwrap_or_else(|error| {
                    failed = Some(error);
                    None
                })
                .map(|execution| execution.schedule)
        });
        self.settings.time = whole;
        failed.map_or(Ok(result), Err)
    }
}
