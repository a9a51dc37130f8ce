//! Controlled executions whose events go through analyses.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selvedge_analyses::Analysis;
use selvedge_explore::rng::derive;
use selvedge_explore::{RandomWalk, Replay};
use selvedge_model::{Finding, Findings, Schedule, Site, Status, Symbols, Target};
use selvedge_report::{Bound, Case, Watched};
use selvedge_runtime::Execution;
use selvedge_runtime::control::{NameTable, Outcome};

use super::ending::Ending;
use super::stage::{Stage, Subject, Wishes, in_order};
use crate::check;
use crate::exit::Failure;

/// What observed executions let expect.
pub(crate) struct Observation {
    /// What the ids of sites in the predictions stand for.
    pub(crate) symbols: Symbols,
    pub(crate) predictions: Vec<Prediction>,
    /// The code behind sites, as far as it was executed.
    pub(crate) code: HashMap<Site, Vec<Watched>>,
    pub(crate) baseline: Option<Baseline>,
    /// Whether a thread tried to acquire a lock without waiting for ever.
    pub(crate) releases: bool,
    pub(crate) executions: u64,
    pub(crate) events: u64,
    pub(crate) threads: usize,
    /// What kept the analyses from seeing everything.
    pub(crate) bounds: Vec<Bound>,
}

/// A finding of an analysis, with what a directed execution needs.
#[derive(Clone)]
pub(crate) struct Prediction {
    pub(crate) finding: Finding,
    pub(crate) reported: Case,
    /// The names of the execution that it comes from; nothing if that was not a controlled one.
    pub(crate) names: Option<NameTable>,
    /// The code of its accesses.
    pub(crate) watched: Arc<Vec<Watched>>,
}

/// How the program ends if threads run until they block.
#[derive(Clone)]
pub(crate) struct Baseline {
    pub(crate) ending: Ending,
    pub(crate) schedule: Schedule,
    pub(crate) stdout: Vec<u8>,
}

/// Runs the program so many times under control, seeing every access that can be seen. The first time
/// threads run until they block, after that at random.
pub(crate) fn observe(
    subject: &Subject,
    seed: u64,
    executions: u64,
    interrupt: &Arc<AtomicBool>,
    analyses: impl Fn() -> Vec<Box<dyn Analysis>>,
) -> Result<Observation, Failure> {
    let wishes = Wishes { accesses: true, seed, ..Wishes::default() };
    let mut stage = Stage::new(subject, wishes, interrupt)?;
    let mut observation = Observation {
        symbols: Symbols::default(),
        predictions: Vec::new(),
        code: HashMap::new(),
        baseline: None,
        releases: false,
        executions: 0,
        events: 0,
        threads: 0,
        bounds: Vec::new(),
    };
    for number in 0..executions {
        let execution = match number {
            0 => stage.controlled.run(&mut Replay::new(&Schedule::default()))?,
            n => stage.controlled.run(&mut RandomWalk::new(derive(seed ^ 0x0b5e, n), 1))?,
        };
        let Some(execution) = execution else { break };
        observation.take(&mut stage, &execution, analyses());
        // One that is too long to be seen to its end is so the next time, too.
        if execution.outcome == Outcome::StepLimit {
            break;
        }
    }
    for site in stage.sites() {
        let code = stage.code_of([&site]);
        observation.code.insert(site, code);
    }
    observation.symbols = stage.controlled.symbols.clone();
    Ok(observation)
}

impl Observation {
    fn take(
        &mut self,
        stage: &mut Stage,
        execution: &Execution,
        mut analyses: Vec<Box<dyn Analysis>>,
    ) {
        self.executions += 1;
        self.events += execution.events.len() as u64;
        self.releases |= execution.releases_matter;
        let threads = execution.events.iter().map(|e| e.thread.index() + 1).max().unwrap_or(0);
        self.threads = self.threads.max(threads);
        let mut findings = Findings::default();
        for analysis in &mut analyses {
            analysis.on_events(&execution.events, &mut findings);
            analysis.finish(&mut findings);
        }
        analyses.iter().filter_map(|a| check::bound(&**a, None)).for_each(|b| self.bound(b));
        if execution.outcome == Outcome::StepLimit {
            self.bound(Bound::Beginning(execution.events.len() as u64));
        }
        let names = stage.controlled.names().snapshot();
        let symbols = stage.controlled.named(&execution.events);
        for finding in findings {
            let reported = Case::new(&finding, &symbols);
            let accesses = reported.target.as_ref().map(Target::accesses).unwrap_or_default();
            let watched = Arc::new(stage.code_of(accesses));
            self.add(Prediction { finding, reported, names: Some(names.clone()), watched });
        }
        if self.baseline.is_none() {
            self.baseline = Some(Baseline {
                ending: Ending::new(execution, &symbols),
                schedule: execution.schedule.clone(),
                stdout: execution.stdout.clone(),
            });
        }
    }

    fn bound(&mut self, bound: Bound) {
        if !self.bounds.contains(&bound) {
            self.bounds.push(bound);
        }
    }

    /// Folds what several executions show.
    pub(crate) fn add(&mut self, new: Prediction) {
        match self.predictions.iter_mut().find(|p| p.reported.id == new.reported.id) {
            None => self.predictions.push(new),
            Some(known) => {
                let occurrences = known.reported.occurrences + new.reported.occurrences;
                for analysis in new.reported.analyses {
                    if !known.reported.analyses.contains(&analysis) {
                        known.reported.analyses.push(analysis);
                    }
                }
                // The target stays, with the names of its own execution.
                known.reported.status = known.reported.status.max(new.reported.status);
                known.reported.occurrences = occurrences;
            }
        }
    }

    /// The code of all accesses that may race.
    pub(crate) fn racing(&self) -> Vec<Watched> {
        let races = self.predictions.iter().filter(|p| {
            matches!(p.finding.target, Some(Target::Race { .. }))
                && p.finding.status >= Status::Predicted
        });
        in_order(races.flat_map(|p| p.watched.iter().cloned()).collect())
    }
}
