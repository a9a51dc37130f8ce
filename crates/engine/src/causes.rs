//! Which races a difference between two executions comes from.
//!
//! Every pair of accesses, acquisitions or atomics of the two executions whose order the schedule may decide is
//! tried: a directed execution brings two threads to it, and is repeated with the two sides swapped
//! ([`Confirmer`]). A pair is a cause if that, and nothing else, changes the value.
//!
//! Guarantee: a cause changed the value, and the replay showed it again. Pairs that no directed execution reached,
//! and those beyond [`TRIED`], may be missed.

use std::sync::Arc;

use selvedge_analyses::pipeline::Pipeline;
use selvedge_analyses::registry::Settings;
use selvedge_analyses::{contention, hybrid};
use selvedge_explore::rng::derive;
use selvedge_model::{Finding, Site, Status, Symbols, Verdict};

use crate::confirm::{Attempt, Confirmed, Confirmer, JUDGED, Prediction};
use crate::determinism::{Shown, Violation};
use crate::executor::Executor;
use crate::harm::Left;

/// How many pairs are tried.
pub const TRIED: usize = 32;
/// How many directed executions try to reach a pair.
const ATTEMPTS: u64 = 3;

/// A race whose order decides over a value.
#[derive(Clone, Debug)]
pub struct Cause {
    /// The race: confirmed and harmful.
    pub finding: Finding,
    /// The names in it.
    pub symbols: Arc<Symbols>,
    /// What each order led to.
    pub confirmed: Confirmed,
}

impl Cause {
    /// The places of the race.
    pub fn sites(&self) -> Vec<Site> {
        self.finding.places.iter().map(|p| self.symbols.site(p.site)).collect()
    }
}

/// The races that a violation comes from.
pub fn causes<X: Executor>(
    executor: &mut X,
    violation: &Violation<X::Points>,
    shown: &Shown,
) -> Result<Vec<Cause>, X::Error> {
    let [usual, other] = &shown.sides;
    let schedule = &other.execution.schedule;
    let (ending, output) = (usual.ending.clone(), &usual.execution.output);
    let confirmer = Confirmer {
        seed: derive(schedule.seed, 0xca05e),
        input: schedule.seed,
        releases: schedule.releases,
        usual: Some(Left::new(ending, output, &usual.execution.blocks)),
        judged: JUDGED,
    };
    let value = (violation.block.clone(), shown.differing.first.key.name.clone());
    let mut causes = Vec::new();
    for (number, (finding, symbols)) in (0..).zip(pairs(shown)) {
        let Some(target) = finding.target.as_ref().filter(|_| executor.is_usable()) else {
            continue;
        };
        let prediction = Prediction {
            id: finding.id(&symbols),
            kind: finding.kind,
            target: target.map(|&site| symbols.site(site)),
            names: None,
            points: violation.points.clone(),
            lead: None,
        };
        for attempt in 0..ATTEMPTS {
            let trial = confirmer.attempt(executor, &prediction, number, attempt)?;
            if let Attempt::Confirmed(confirmed) = trial.attempt {
                if confirmed.changes.as_ref() == Some(&value) {
                    let (status, verdict) = (Status::Confirmed, Some(Verdict::Harmful));
                    let finding = Finding { status, verdict, ..finding };
                    causes.push(Cause { finding, symbols, confirmed: *confirmed });
                }
                break;
            }
        }
    }
    Ok(causes)
}

/// The pairs whose order the schedule may decide, each once.
fn pairs(shown: &Shown) -> Vec<(Finding, Arc<Symbols>)> {
    let mut pipeline = Pipeline::new(Settings::default());
    let mut pairs: Vec<(Finding, Arc<Symbols>)> = Vec::new();
    for side in &shown.sides {
        pipeline.restart();
        pipeline.start([&hybrid::ENTRY, &contention::ENTRY]);
        pipeline.on_events(&side.execution.events);
        pipeline.finish();
        for finding in pipeline.take_findings() {
            let id = finding.id(&side.symbols);
            if pairs.len() < TRIED && pairs.iter().all(|(f, symbols)| f.id(symbols) != id) {
                pairs.push((finding, Arc::clone(&side.symbols)));
            }
        }
    }
    pairs
}
