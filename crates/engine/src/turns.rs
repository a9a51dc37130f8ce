//! Whose turn it is: an attempt to confirm a prediction, or an undirected execution.
//!
//! The work is divided among the shards of the undirected search; each prediction belongs to one of them. In a
//! shard, attempts and undirected executions alternate as long as predictions are open: an attempt is followed by as
//! many undirected executions as it took executions. Every prediction of the shard is attempted once before any is
//! attempted twice; whether a target that was reached without a failure is reached again, and what the other order leads
//! to, waits until then. After that those come first whose target was reached before: a further attempt may show harm, or
//! that the schedule can be repeated after all.
//!
//! Guarantee: what a shard does depends on its own results alone, so the same seed gives the same results on any
//! number of cores.

use std::ops::ControlFlow;
use std::sync::Arc;

use selvedge_specs::Digest;

use crate::confirm::{Aimed, Attempt, Confirmer, JUDGED, Prediction, Trial};
use crate::deal::Deal;
use crate::ending::Key;
use crate::executor::{Executor, Factory, Points};
use crate::harm::Harm;
use crate::run::Run;
use crate::search::{Search, Searched, Shard, Step};
use crate::shards::{Error, Halt, Others, Shards};

/// What to confirm, and how.
#[derive(Debug)]
pub struct Aims<N, P> {
    /// The predictions.
    pub predictions: Arc<Vec<Prediction<N, P>>>,
    /// The settings of the attempts.
    pub confirmer: Confirmer,
    /// What earlier campaigns have tried, for each prediction; empty if there were none.
    pub past: Vec<Past>,
}

/// The attempts at a prediction in earlier campaigns on the same program. Attempts are numbered, and the number
/// selects the random numbers, so a later campaign goes on with other ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Past {
    /// How many there were.
    pub made: u64,
    /// The one that confirmed the prediction, if one did. It is the first to be made again.
    pub confirmed: Option<u64>,
}

/// The aims of an executor.
type AimsOf<X> = Aims<<X as Executor>::Names, <X as Executor>::Points>;

/// What was done in one turn.
#[derive(Debug)]
pub(crate) enum Turn {
    /// An undirected execution.
    Searched(Box<Step>),
    /// The directed execution of an attempt at the prediction with this index. It reached the target, and the rest of the
    /// attempt comes later.
    Reached(usize, Box<Run>),
    /// An attempt at the prediction with this index, and the number of the attempt.
    Tried(usize, u64, Trial),
}

/// What is known of a prediction.
#[derive(Debug)]
struct Visits {
    index: usize,
    /// Attempts so far, earlier campaigns included, unless one of them confirmed it.
    made: u64,
    /// The number of the next attempt.
    number: u64,
    /// How many more are worth it.
    left: u64,
    /// Whether an attempt reached its target or failed.
    earned: bool,
    /// The execution of an attempt that is not over, and the number of the attempt.
    reached: Option<(Box<Aimed>, u64)>,
}

/// A part of the work.
struct Part<P> {
    shard: Shard<P>,
    open: Vec<Visits>,
    /// How many undirected executions come before the next attempt.
    owed: u64,
    /// Whether the undirected search has ended.
    exhausted: bool,
}

/// What tells two searches apart: the results of one are of no use to another.
pub(crate) fn identity<N, P: Points>(
    search: &Search<P>,
    aims: Option<&Aims<N, P>>,
    (attempts, besides): (u64, &str),
) -> String {
    let settings = (search.seed, search.schedules, search.systematic, search.releases);
    let aimed = aims.map(|aims| {
        let past: Vec<_> = aims.past.iter().map(|p| (p.made, p.confirmed)).collect();
        let Confirmer { seed, input, releases, judged, usual } = &aims.confirmer;
        let usual = usual.as_ref().map(|usual| usual.ending.key);
        let predictions: Vec<_> =
            aims.predictions.iter().map(|p| (p.id, &p.target, p.lead.is_some())).collect();
        ((seed, input, releases, judged, usual), past, predictions)
    });
    let all = serde_json::to_vec(&(settings, attempts, aimed, besides));
    Digest::of([&all.expect("names and numbers serialise")[..]]).to_string()
}

/// Passes the result of each turn to `each`, in order, until `each` breaks or `stop` returns true.
pub(crate) fn run<F, P>(
    factory: &Arc<F>,
    search: Search<P>,
    (aims, attempts): (Option<AimsOf<F::Executor>>, u64),
    crew: &mut dyn Others<Turn>,
    stop: impl Fn() -> bool,
    mut each: impl FnMut(Turn) -> ControlFlow<()>,
) -> Result<Searched, Halt<Error<F>>>
where
    F: Factory,
    P: Points,
    F::Executor: Executor<Points = P>,
{
    let search = Arc::new(search);
    let (workers, stall) = (search.jobs, search.stall);
    let past = aims.as_ref().map_or(Vec::new(), |a| {
        let mut past = a.past.clone();
        past.resize(a.predictions.len(), Past::default());
        past
    });
    let aims = aims.map(Arc::new);
    let parts = Arc::clone(&search);
    let pool = Shards {
        factory: Arc::clone(factory),
        deal: search.deal(Deal::many),
        begin: Box::new(move |number| part(&parts, number, &past, attempts)),
        workers,
        pinned: true,
        stall,
        work: Arc::new(move |executor: &mut F::Executor, part: &mut Part<P>, _| {
            part.turn(executor, aims.as_deref())
        }),
    };
    let exhausted = pool.run(crew, stop, |_, turn| each(turn))?;
    Ok(exhausted.first().map(|part| part.shard.searched()).unwrap_or_default())
}

/// The part of a shard. Predictions are dealt out to the shards with early numbers, so that neighbours in the order of numbers take different turns.
fn part<P: Points>(search: &Arc<Search<P>>, number: u64, past: &[Past], attempts: u64) -> Part<P> {
    let count = search.deal(Deal::many).early();
    // First the shards that begin with an attempt.
    let order: Vec<u64> = (0..count).step_by(2).chain((1..count).step_by(2)).collect();
    let mine = (0..past.len()).filter(|i| order[i % order.len()] == number);
    let visits = |index: usize| {
        let Past { made, confirmed } = past[index];
        let (made, number) = confirmed.map_or((made, made), |number| (0, number));
        let earned = confirmed.is_some();
        Visits { index, made, number, left: attempts, earned, reached: None }
    };
    let open = mine.map(visits).collect();
    Part { shard: search.shard(number, Deal::many), open, owed: number % 2, exhausted: false }
}

impl<P: Points> Part<P> {
    fn turn<X: Executor<Points = P>>(
        &mut self,
        executor: &mut X,
        aims: Option<&Aims<X::Names, P>>,
    ) -> Result<Option<Turn>, X::Error> {
        if (self.owed == 0 || self.exhausted)
            && let Some(aims) = aims
            && let Some(turn) = self.attempt(executor, aims)?
        {
            return Ok(Some(turn));
        }
        self.owed = self.owed.saturating_sub(1);
        if !self.exhausted
            && let Some(step) = self.shard.step(executor)?
        {
            return Ok(Some(Turn::Searched(Box::new(step))));
        }
        self.exhausted = true;
        match aims {
            Some(aims) => self.attempt(executor, aims),
            None => Ok(None),
        }
    }

    /// Attempts the prediction whose turn it is. `None` if there is none.
    fn attempt<X: Executor<Points = P>>(
        &mut self,
        executor: &mut X,
        aims: &Aims<X::Names, P>,
    ) -> Result<Option<Turn>, X::Error> {
        let open = self.open.iter_mut().filter(|v| v.left > 0 || v.reached.is_some());
        let Some(visits) = open.min_by_key(|v| v.rank()) else {
            return Ok(None);
        };
        let index = visits.index;
        let (prediction, confirmer) = (&aims.predictions[index], &aims.confirmer);
        if let Some((first, number)) = visits.reached.take() {
            let trial = confirmer.settle(executor, prediction, *first)?;
            visits.judge(&trial);
            self.owed = trial.runs.len() as u64 - 1 + trial.replays;
            return Ok(Some(Turn::Tried(index, number, trial)));
        }
        let number = visits.number;
        let first = confirmer.first(executor, prediction, index as u64, number)?;
        let fails = matches!(first.run.ending.key, Key::Failed(_));
        visits.learn(fails || first.reached);
        if first.reached && !fails {
            let run = Box::new(first.run.clone());
            visits.reached = Some((Box::new(first), number));
            self.owed = 1;
            return Ok(Some(Turn::Reached(index, run)));
        }
        let trial = confirmer.settle(executor, prediction, first)?;
        visits.judge(&trial);
        self.owed = trial.runs.len() as u64 + trial.replays;
        Ok(Some(Turn::Tried(index, number, trial)))
    }
}

impl Visits {
    /// The prediction with the least is attempted next.
    fn rank(&self) -> impl Ord + use<> {
        let round = match self.made {
            0 => 0,
            _ if self.reached.is_some() => 1,
            made => made.saturating_add(1),
        };
        (round, !self.earned)
    }

    /// The directed execution of an attempt was run.
    fn learn(&mut self, earned: bool) {
        self.made += 1;
        self.number += 1;
        self.left -= 1;
        self.earned |= earned;
    }

    /// An attempt is over.
    fn judge(&mut self, trial: &Trial) {
        if let Attempt::Confirmed(confirmed) = &trial.attempt {
            let more = match confirmed.harm {
                // Another bug may have hidden what it does.
                Harm::Unknown => self.left,
                // What is confirmed may still turn out to be harmful.
                Harm::Nothing => JUDGED,
                _ => 0,
            };
            self.left = self.left.min(more);
        }
    }
}
