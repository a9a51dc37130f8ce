//! Selects and starts the analyses of `check` and `run`.

use selvedge_analyses::registry::{self, Accesses, Purpose, Settings};
use selvedge_analyses::{Entry, Pipeline};
use selvedge_runtime::Options;

use crate::exit::Failure;
use crate::program::claims::RegionOptions;

/// The analyses of a native run.
pub(crate) struct ForRun {
    /// The analyses that run here, on recorded events.
    pub(crate) recorded: Pipeline,
    /// The analyses that the runtime runs inside the program.
    pub(crate) in_program: Vec<&'static str>,
    /// Which accesses the recorded analyses need.
    accesses: Accesses,
    /// Whether accesses may be held back that change nothing.
    hold_back: bool,
    /// Whether they look at atomic operations.
    atomics: bool,
}

impl ForRun {
    /// The same, beside `discipline` if that checks something. It needs every access that may break a rule; if nothing
    /// else needs accesses, those that change nothing are held back.
    pub(crate) fn beside_discipline(self, checks: bool) -> ForRun {
        if !checks {
            return self;
        }
        ForRun { hold_back: self.accesses == Accesses::None, accesses: Accesses::All, ..self }
    }

    /// What has to be observed for them.
    pub(crate) fn options(&self, function_regions: bool) -> Options {
        Options {
            synchronization: true,
            atomics: self.atomics,
            accesses: self.accesses == Accesses::All,
            hold_back: self.hold_back,
            racy_accesses: self.accesses == Accesses::Racy,
            function_regions,
            races: !self.in_program.is_empty(),
            ..Options::default()
        }
    }
}

/// The names of the analyses that a command runs by default.
pub(crate) fn defaults(purpose: Purpose) -> Vec<&'static str> {
    registry::defaults(purpose).iter().map(|e| e.name).collect()
}

/// The analyses in `names`, and those that check `regions`.
pub(crate) fn select(names: &[String], regions: &RegionOptions) -> Result<Pipeline, Failure> {
    Ok(started(entries(names, regions)?, settings(regions)))
}

/// The same for a native run.
pub(crate) fn for_run(names: &[String], regions: &RegionOptions) -> Result<ForRun, Failure> {
    Ok(beside_program(entries(names, regions)?, settings(regions)))
}

/// Separates the analyses that run inside the program from those that need recorded events.
pub(crate) fn beside_program(entries: Vec<&'static Entry>, settings: Settings) -> ForRun {
    let (inside, recorded): (Vec<&Entry>, Vec<&Entry>) =
        entries.into_iter().partition(|e| e.in_program);
    let accesses = recorded.iter().map(|e| e.accesses).max().unwrap_or(Accesses::None);
    let atomics = recorded.iter().any(|e| e.atomics);
    let settings = Settings { filtered: accesses == Accesses::Racy, ..settings };
    ForRun {
        recorded: started(recorded, settings),
        in_program: inside.iter().map(|e| e.name).collect(),
        accesses,
        hold_back: false,
        atomics,
    }
}

fn started(entries: Vec<&'static Entry>, settings: Settings) -> Pipeline {
    let mut pipeline = Pipeline::new(settings);
    pipeline.start(entries);
    pipeline
}

fn settings(regions: &RegionOptions) -> Settings {
    Settings { lock_regions: regions.lock_regions, ..Settings::default() }
}

fn entries(names: &[String], regions: &RegionOptions) -> Result<Vec<&'static Entry>, Failure> {
    registry::select(&regions.with_analyses(names)).map_err(|e| Failure::Usage(e.to_string()))
}
