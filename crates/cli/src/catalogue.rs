//! The analyses by name.

use selvedge_analyses::aerodrome::AeroDrome;
use selvedge_analyses::atomizer::Atomizer;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_analyses::hybrid::Hybrid;
use selvedge_analyses::lockregions::LockRegions;
use selvedge_analyses::lockset::Lockset;
use selvedge_analyses::singletrack::SingleTrack;
use selvedge_analyses::views::Views;
use selvedge_analyses::{Analysis, singletrack};

use crate::claims::RegionOptions;
use crate::exit::Failure;

/// What runs unless the user says otherwise: what needs no annotation and repeats no other, and what
/// annotations ask for, which is silent where there are none.
pub(crate) const DEFAULT: [&str; 5] = ["races", "hybrid", "deadlocks", "atomicity", "determinism"];

/// What runs beside a native program unless the user says otherwise: its races are looked for inside
/// it, and recording its accesses for other analyses costs much.
pub(crate) const DEFAULT_FOR_RUN: [&str; 2] = ["races", "deadlocks"];

/// The analyses of a native run.
pub(crate) struct ForRun {
    /// Those that see the recorded events.
    pub(crate) recorded: Vec<Box<dyn Analysis>>,
    /// The program looks for races by itself.
    pub(crate) races: bool,
    /// What they need to see of accesses.
    pub(crate) accesses: Accesses,
}

/// The accesses that an analysis needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Accesses {
    /// None.
    None,
    /// Those to memory that is used with races: the others are ordered by synchronization, which
    /// says as much.
    Racy,
    /// The first of each thread after it synchronized.
    All,
}

struct Entry {
    name: &'static str,
    about: &'static str,
    accesses: Accesses,
    new: fn() -> Box<dyn Analysis>,
    /// The same, taking code that holds a lock for atomic, if it looks at atomic regions.
    locked: Option<fn() -> Box<dyn Analysis>>,
}

const ENTRIES: [Entry; 8] = [
    Entry {
        name: "races",
        about: "data races of this very execution, by happens-before (FastTrack)",
        accesses: Accesses::All,
        new: || Box::new(FastTrack::new()),
        locked: None,
    },
    Entry {
        name: "hybrid",
        about: "data races that another schedule may show: no common lock, no signal between",
        accesses: Accesses::All,
        new: || Box::new(Hybrid::default()),
        locked: None,
    },
    Entry {
        name: "lockset",
        about: "memory that no lock protects consistently (Eraser); also what is ordered otherwise",
        accesses: Accesses::All,
        new: || Box::new(Lockset::default()),
        locked: None,
    },
    Entry {
        name: "deadlocks",
        about: "locks that threads may wait for in a circle (iGoodlock)",
        accesses: Accesses::None,
        new: || Box::new(Goodlock::default()),
        locked: None,
    },
    Entry {
        name: "atomicity",
        about: "atomic regions that were not executed atomically (AeroDrome)",
        accesses: Accesses::Racy,
        new: || Box::new(AeroDrome::new()),
        locked: Some(|| Box::new(LockRegions::new(AeroDrome::new()))),
    },
    Entry {
        name: "reduction",
        about: "atomic regions that another schedule may break up (Atomizer)",
        accesses: Accesses::All,
        new: || Box::new(Atomizer::new()),
        locked: Some(|| Box::new(LockRegions::new(Atomizer::new()))),
    },
    Entry {
        name: "determinism",
        about: "deterministic regions that depend on the schedule (SingleTrack)",
        accesses: Accesses::Racy,
        new: || Box::new(singletrack::Filtered::default()),
        locked: None,
    },
    Entry {
        name: "views",
        about: "variables that belong together but are locked apart (view consistency)",
        accesses: Accesses::All,
        new: || Box::new(Views::new()),
        locked: None,
    },
];

/// The analyses of the given names and those that regions ask for, each once, in the order of the
/// catalogue.
pub(crate) fn select(
    names: &[String],
    regions: &RegionOptions,
) -> Result<Vec<Box<dyn Analysis>>, Failure> {
    let entries = entries(names, regions)?;
    Ok(entries.iter().map(|e| e.make(regions)).collect())
}

impl Entry {
    fn make(&self, regions: &RegionOptions) -> Box<dyn Analysis> {
        match self.locked {
            Some(locked) if regions.lock_regions => locked(),
            _ => (self.new)(),
        }
    }
}

fn entries(names: &[String], regions: &RegionOptions) -> Result<Vec<&'static Entry>, Failure> {
    let names = regions.with_analyses(names);
    let known = |name: &String| name == "all" || ENTRIES.iter().any(|e| e.name == name);
    if let Some(unknown) = names.iter().find(|n| !known(n)) {
        let all: Vec<_> = ENTRIES.iter().map(|e| e.name).collect();
        return Err(Failure::Usage(format!(
            "there is no analysis {unknown:?}; there are {}",
            all.join(", ")
        )));
    }
    let wanted = |e: &&Entry| names.iter().any(|n| n == "all" || n == e.name);
    Ok(ENTRIES.iter().filter(wanted).collect())
}

/// The analyses of the given names for a native run.
pub(crate) fn for_run(names: &[String], regions: &RegionOptions) -> Result<ForRun, Failure> {
    let mut entries = entries(names, regions)?;
    let all = entries.len();
    entries.retain(|e| e.name != "races");
    let races = entries.len() < all;
    let accesses = entries.iter().map(|e| e.accesses).max().unwrap_or(Accesses::None);
    let recorded = entries.iter().map(|e| match e.name {
        // The program keeps accesses without races back by itself.
        "determinism" if accesses == Accesses::Racy => Box::new(SingleTrack::new()),
        _ => e.make(regions),
    });
    Ok(ForRun { recorded: recorded.collect(), races, accesses })
}

/// A list for the help text.
pub(crate) fn help() -> String {
    let mut text = String::from("Analyses:\n");
    for entry in &ENTRIES {
        let mark = if DEFAULT.contains(&entry.name) { "*" } else { " " };
        text.push_str(&format!("{mark} {:<12} {}\n", entry.name, entry.about));
    }
    text.push_str("* runs by default");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_analyses() {
        for entry in &ENTRIES {
            assert_eq!((entry.new)().name(), entry.name);
        }
    }

    #[test]
    fn every_default_exists() {
        let names: Vec<String> = DEFAULT.iter().map(ToString::to_string).collect();
        assert_eq!(select(&names, &RegionOptions::default()).unwrap().len(), DEFAULT.len());
    }
}
