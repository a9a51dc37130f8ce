//! Controlled executions whose events go through analyses.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selvedge_analyses::registry::Settings;
use selvedge_analyses::{Entry, Pipeline};
use selvedge_explore::rng::derive;
use selvedge_explore::{RandomWalk, Replay, Rng, Strategy};
use selvedge_model::{Finding, Schedule, Site, Status, Symbols, Target};
use selvedge_runtime::Execution;
use selvedge_runtime::control::{NameTable, Outcome};

use super::ending::Ending;
use super::stage::{Stage, Subject, Watched, Wishes, in_order};
use crate::catalogue;
use crate::exit::Failure;
use crate::report::ReportedFinding;

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
    /// What kept the analyses from seeing everything, in words.
    pub(crate) bounds: Vec<String>,
}

/// A finding of an analysis, with what a directed execution needs.
#[derive(Clone)]
pub(crate) struct Prediction {
    pub(crate) finding: Finding,
    pub(crate) reported: ReportedFinding,
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
    analyses: &[&'static Entry],
    settings: Settings,
) -> Result<Observation, Failure> {
    let wishes = Wishes { accesses: true, seed, ..Wishes::default() };
    let mut stage = Stage::new(subject, wishes, interrupt)?;
    let mut pipeline = Pipeline::new(settings);
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
        let mut strategy: Box<dyn Strategy> = match number {
            0 => Box::new(Replay::new(&Schedule::default())),
            _ => Box::new(RandomWalk::default()),
        };
        strategy.begin(Rng::of_execution(derive(seed ^ 0x0b5e, number), 0));
        let execution = stage.controlled.run(&mut *strategy)?;
        pipeline.restart();
        pipeline.start(analyses.iter().copied());
        observation.take(&mut stage, &execution, &mut pipeline);
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
    fn take(&mut self, stage: &mut Stage, execution: &Execution, pipeline: &mut Pipeline) {
        self.executions += 1;
        self.events += execution.events.len() as u64;
        self.releases |= execution.releases_matter;
        let threads = execution.events.iter().map(|e| e.thread.index() + 1).max().unwrap_or(0);
        self.threads = self.threads.max(threads);
        pipeline.on_events(&execution.events);
        pipeline.finish();
        catalogue::bounds(pipeline).for_each(|bound| self.bound(bound));
        if execution.outcome == Outcome::StepLimit {
            self.bound(format!(
                "only the first {} events of an observed execution could be looked at",
                execution.events.len()
            ));
        }
        let names = stage.controlled.names().snapshot();
        let symbols = stage.controlled.named(&execution.events);
        for finding in pipeline.take_findings() {
            let reported = ReportedFinding::new(&finding, &symbols);
            let sites: Vec<Site> =
                accesses(&finding).into_iter().map(|s| symbols.site(s)).collect();
            let watched = Arc::new(stage.code_of(&sites));
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

    fn bound(&mut self, text: String) {
        if !self.bounds.contains(&text) {
            self.bounds.push(text);
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

/// The sites at which a target wants threads to stop before an access.
fn accesses(finding: &Finding) -> Vec<selvedge_model::SiteId> {
    match &finding.target {
        Some(Target::Race { first, second }) => vec![*first, *second],
        Some(Target::Split { first, second, between, .. }) => {
            [Some(*first), Some(*second), *between].into_iter().flatten().collect()
        }
        Some(Target::Deadlock(_)) | None => Vec::new(),
    }
}
