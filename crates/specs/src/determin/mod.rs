//! DETERMIN: infers what a deterministic block promises from executions of it.
//!
//! Paper: Burnim, chapter 4. A specification is a precondition and a postcondition, each a conjunction of "the value of
//! this location is the same by that predicate in both executions" ([`Conjunct`]). The postcondition is the strongest
//! that holds for every two executions which begin alike (algorithms 1 and 2); the precondition is a weakest one that
//! implies it: of those that occur between two executions (algorithm 4, the default) or of all (algorithm 3).
//! [`Study`] has these algorithms, `simplify` the three heuristics of §4.5, [`Promise`] what later executions are held to.
//!
//! We deviate in four points. Line 11 of algorithm 4 needs a strict subset, or it returns nothing. By definition 8 a
//! precondition occurs between two *different* executions. Without two executions that begin alike nothing is inferred
//! ([`NotInferred::NoInputTwice`]), where the letter of the definition would infer everything. And pairs are not
//! enumerated: executions fall into classes, and numbers are sorted.
//!
//! *Guarantee*: no two of the executions satisfy the precondition and break the postcondition. The postcondition is the
//! strongest of this form. The precondition is a weakest one unless a remark says that the search was cut short.
//!
//! Cost: O(executions × locations), and O(executions × locations) more for each precondition that is tried.

mod columns;
mod pairs;
mod promise;
mod set;
mod simplify;
mod study;
mod table;
mod weakest;

use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

pub use promise::Promise;
pub use set::Set;
pub use study::Study;
pub use table::{BadRow, Row, Table};
pub use weakest::Found;

use crate::Predicate;

/// "The value of this location is the same by this predicate in both executions."
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Conjunct {
    /// The location.
    pub name: Box<str>,
    /// When its values count as the same.
    pub predicate: Predicate,
}

/// A conjunct with its evidence.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Supported {
    /// The conjunct.
    #[serde(flatten)]
    pub conjunct: Conjunct,
    /// How many pairs of executions could have refuted it. For a postcondition: the pairs that satisfy the
    /// precondition. For a precondition: the pairs that satisfy the rest of it and not this.
    pub pairs: u64,
}

/// Which condition of a specification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// What two executions must have in common.
    Precondition,
    /// What they then have in common.
    Postcondition,
}

/// Why a conjunct was left out although it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The block changed the location in no execution.
    NeverChanged,
    /// It holds for every pair of executions, also for those that do not satisfy the precondition.
    AlwaysHolds,
    /// Another conjunct implies it.
    Implied,
}

/// A conjunct that was left out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Dropped {
    /// Where it was left out.
    pub condition: Condition,
    /// What was left out.
    #[serde(flatten)]
    pub conjunct: Conjunct,
    /// The reason.
    pub why: Why,
}

/// What the executions do not show.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Remark {
    /// These inputs have the same value in all executions: whether the result depends on them is not known.
    NeverVaried {
        /// The locations.
        names: Vec<Box<str>>,
    },
    /// These inputs only ever changed together: which of them matters is not known.
    NeverApart {
        /// The locations.
        names: Vec<Box<str>>,
    },
    /// The search for preconditions was cut short: there may be weaker or other ones.
    CutShort,
}

/// Which weakest preconditions are sought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Weakest {
    /// Those that occur between two executions (WLOP): conservative where inputs are few.
    #[default]
    Occurring,
    /// All (WLP).
    Any,
}

/// What was inferred of a block.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Specification {
    /// The block.
    pub block: Box<str>,
    /// How many executions it was inferred from.
    pub executions: usize,
    /// How many different inputs they had.
    pub inputs: usize,
    /// What two executions must have in common.
    pub precondition: Vec<Supported>,
    /// What they then have in common.
    pub postcondition: Vec<Supported>,
    /// Other weakest preconditions of the same postcondition.
    #[serde(serialize_with = "plain")]
    pub alternatives: Vec<Vec<Conjunct>>,
    /// What holds too and was left out.
    pub dropped: Vec<Dropped>,
    /// What the executions do not show.
    pub remarks: Vec<Remark>,
}

fn plain<S: Serializer>(alternatives: &[Vec<Conjunct>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(alternatives)
}

/// Why nothing was inferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NotInferred {
    /// There are no two executions that begin alike.
    #[error("no input was run twice")]
    NoInputTwice,
}

/// Infers a specification of the block (algorithm 1, and the heuristics).
pub fn infer(table: &Table, weakest: Weakest) -> Result<Specification, NotInferred> {
    let study = Study::new(table);
    if !study.input_run_twice() {
        return Err(NotInferred::NoInputTwice);
    }
    let mut dropped = Vec::new();
    let strongest = study.strongest_postcondition();
    let post = simplify::changed(&study, strongest, &mut dropped);
    let found = match weakest {
        Weakest::Occurring => study.weakest_occurring_preconditions(&post),
        Weakest::Any => study.weakest_preconditions(&post),
    };
    let mut remarks = study.remarks();
    remarks.extend(found.cut_short.then_some(Remark::CutShort));
    Ok(simplify::specification(&study, &found.preconditions, &post, dropped, remarks))
}
