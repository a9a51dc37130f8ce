//! The analyses that a user chooses, as `check` and `run` use them.

use selvedge_analyses::registry::{self, Accesses, Purpose, Settings};
use selvedge_analyses::{Entry, Pipeline};

use crate::claims::RegionOptions;
use crate::exit::Failure;

/// The analyses of a native run.
pub(crate) struct ForRun {
    /// Those that see the recorded events.
    pub(crate) recorded: Pipeline,
    /// Those that the program runs by itself.
    pub(crate) in_program: Vec<&'static str>,
    /// What they need to see of accesses.
    pub(crate) accesses: Accesses,
}

/// The names of what a command runs unless the user chooses.
pub(crate) fn defaults(purpose: Purpose) -> Vec<&'static str> {
    registry::defaults(purpose).iter().map(|e| e.name).collect()
}

/// The analyses of the given names and those that regions ask for.
pub(crate) fn select(names: &[String], regions: &RegionOptions) -> Result<Pipeline, Failure> {
    Ok(started(entries(names, regions)?, settings(regions)))
}

/// The analyses of the given names and those that regions ask for, for a native run.
pub(crate) fn for_run(names: &[String], regions: &RegionOptions) -> Result<ForRun, Failure> {
    Ok(beside_program(entries(names, regions)?, settings(regions)))
}

/// Sorts out what the program does by itself and what has to be recorded.
pub(crate) fn beside_program(entries: Vec<&'static Entry>, settings: Settings) -> ForRun {
    let (inside, recorded): (Vec<&Entry>, Vec<&Entry>) =
        entries.into_iter().partition(|e| e.in_program);
    let accesses = recorded.iter().map(|e| e.accesses).max().unwrap_or(Accesses::None);
    let settings = Settings { filtered: accesses == Accesses::Racy, ..settings };
    ForRun {
        recorded: started(recorded, settings),
        in_program: inside.iter().map(|e| e.name).collect(),
        accesses,
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
