//! The analyses by name.

use selvedge_analyses::aerodrome::AeroDrome;
use selvedge_analyses::atomizer::Atomizer;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_analyses::hybrid::Hybrid;
use selvedge_analyses::lockset::Lockset;
use selvedge_analyses::views::Views;
use selvedge_analyses::{Analysis, singletrack};

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
    /// Some of them need the accesses.
    pub(crate) accesses: bool,
}

struct Entry {
    name: &'static str,
    about: &'static str,
    new: fn() -> Box<dyn Analysis>,
}

const ENTRIES: [Entry; 8] = [
    Entry {
        name: "races",
        about: "data races of this very execution, by happens-before (FastTrack)",
        new: || Box::new(FastTrack::new()),
    },
    Entry {
        name: "hybrid",
        about: "data races that another schedule may show: no common lock, no signal between",
        new: || Box::new(Hybrid::default()),
    },
    Entry {
        name: "lockset",
        about: "memory that no lock protects consistently (Eraser); also what is ordered otherwise",
        new: || Box::new(Lockset::default()),
    },
    Entry {
        name: "deadlocks",
        about: "locks that threads may wait for in a circle (iGoodlock)",
        new: || Box::new(Goodlock::default()),
    },
    Entry {
        name: "atomicity",
        about: "atomic regions that were not executed atomically (AeroDrome)",
        new: || Box::new(AeroDrome::new()),
    },
    Entry {
        name: "reduction",
        about: "atomic regions that another schedule may break up (Atomizer)",
        new: || Box::new(Atomizer::new()),
    },
    Entry {
        name: "determinism",
        about: "deterministic regions that depend on the schedule (SingleTrack)",
        new: || Box::new(singletrack::Filtered::default()),
    },
    Entry {
        name: "views",
        about: "variables that belong together but are locked apart (view consistency)",
        new: || Box::new(Views::new()),
    },
];

/// The analyses of the given names, each once, in the order of the catalogue.
pub(crate) fn select(names: &[String]) -> Result<Vec<Box<dyn Analysis>>, Failure> {
    let known = |name: &String| name == "all" || ENTRIES.iter().any(|e| e.name == name);
    if let Some(unknown) = names.iter().find(|n| !known(n)) {
        let all: Vec<_> = ENTRIES.iter().map(|e| e.name).collect();
        return Err(Failure::Usage(format!(
            "there is no analysis {unknown:?}; there are {}",
            all.join(", ")
        )));
    }
    let wanted = |e: &&Entry| names.iter().any(|n| n == "all" || n == e.name);
    Ok(ENTRIES.iter().filter(wanted).map(|e| (e.new)()).collect())
}

/// The analyses of the given names for a native run.
pub(crate) fn for_run(names: &[String]) -> Result<ForRun, Failure> {
    let mut recorded = select(names)?;
    let inline = |a: &Box<dyn Analysis>| a.name() == "races";
    let races = recorded.iter().any(inline);
    recorded.retain(|a| !inline(a));
    let accesses = recorded.iter().any(|a| a.name() != "deadlocks");
    Ok(ForRun { recorded, races, accesses })
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
        assert_eq!(select(&names).unwrap().len(), DEFAULT.len());
    }
}
