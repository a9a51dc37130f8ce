//! What is known of a variable: how the program keeps it free of races.

use selvedge_model::Site;

/// A variable of the source, and its inferred discipline. Disciplines are in the language of specifications.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Variable {
    /// Its name.
    pub variable: String,
    /// What most of its instances do; `None` if there was a race.
    pub discipline: Option<String>,
    /// How many instances were seen.
    pub instances: u64,
    /// How many accesses were seen.
    pub accesses: u64,
    /// By how many threads one instance was accessed, at most.
    pub threads: usize,
    /// The locks that the disciplines name.
    pub locks: Vec<String>,
    /// The attribute of clang that says the same.
    pub clang: Option<String>,
    /// The finding that ended the inference.
    pub race: Option<String>,
    /// What other instances do.
    pub others: Vec<Other>,
    /// Places without a lock that nearly all others hold.
    pub exceptions: Vec<Exception>,
    /// Where it is accessed.
    pub sites: Vec<Site>,
}

/// A discipline that some instances follow.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Other {
    pub discipline: String,
    pub instances: u64,
}

/// A place without a lock that nearly all other places hold.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs)]
pub struct Exception {
    pub lock: String,
    pub site: Site,
}
