//! The analyses by name.
//!
//! What users read about analyses (`--help`, error messages), how they choose some, and what each command
//! runs by default follows from [`ANALYSES`]. To add an analysis, write one file that ends with its
//! [`Entry`], and add a line here.

use std::fmt;

pub use crate::entry::{Accesses, Contents, Entry, Make, Needs, Purpose, Settings};

/// All analyses. The first one that needs regions of a kind is the one that claims about functions (`--atomic-methods`,
/// `--deterministic`) add, if none that was chosen looks at them.
pub const ANALYSES: &[Entry] = &[
    crate::fasttrack::ENTRY,
    crate::hybrid::ENTRY,
    crate::predictive::ENTRY,
    crate::lockset::ENTRY,
    crate::goodlock::ENTRY,
    crate::aerodrome::ENTRY,
    crate::velodrome::ENTRY,
    crate::atomizer::ENTRY,
    crate::singletrack::ENTRY,
    crate::views::ENTRY,
    crate::ndseq::ENTRY,
];

/// A name that is not that of an analysis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownAnalysis(String);

impl fmt::Display for UnknownAnalysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = ANALYSES.iter().map(|e| e.name).collect();
        write!(f, "`{}` is not an analysis; there are {}", self.0, all.join(", "))
    }
}

impl std::error::Error for UnknownAnalysis {}

/// The analyses of these names, each once, in the order of the registry. `all` is every one except other
/// engines of the same.
pub fn select<S: AsRef<str>>(names: &[S]) -> Result<Vec<&'static Entry>, UnknownAnalysis> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let known = |name: &&str| *name == "all" || ANALYSES.iter().any(|e| e.name == *name);
    if let Some(unknown) = names.iter().find(|n| !known(n)) {
        return Err(UnknownAnalysis((*unknown).to_owned()));
    }
    let all = names.contains(&"all");
    let wanted = |e: &&Entry| names.contains(&e.name) || all && e.engine_of.is_none();
    Ok(ANALYSES.iter().filter(wanted).collect())
}

/// The analyses that a command runs unless the user chooses.
pub fn defaults(purpose: Purpose) -> Vec<&'static Entry> {
    ANALYSES.iter().filter(|e| e.default_in.contains(&purpose)).collect()
}

/// What each analysis finds, one line each, for `--help`. Those that `purpose` runs by default are marked.
pub fn help(purpose: Purpose) -> String {
    let line = |entry: &Entry| {
        let mark = if entry.default_in.contains(&purpose) { "*" } else { " " };
        format!("{mark} {:<12} {}\n", entry.name, entry.about)
    };
    let lines: String = ANALYSES.iter().map(line).collect();
    format!("Analyses:\n{lines}* runs by default")
}
