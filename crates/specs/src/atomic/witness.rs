//! Which serial executions explain an execution: the conditions of definition 15 (Burnim, §5.2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Keep;

/// Which serial executions count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// Those of the same blocks that keep the order of blocks which did not overlap.
    #[default]
    Linearizable,
    /// Those of the same blocks.
    Serializable,
    /// All.
    Atomic,
}

impl Witness {
    const ALL: [Witness; 3] = [Witness::Linearizable, Witness::Serializable, Witness::Atomic];

    /// What users write.
    pub fn name(self) -> &'static str {
        match self {
            Witness::Linearizable => "linearizable",
            Witness::Serializable => "serializable",
            Witness::Atomic => "atomic",
        }
    }

    /// The order that such a serial execution keeps.
    pub fn keep(self) -> Keep {
        match self {
            Witness::Linearizable => Keep::RealTime,
            Witness::Serializable | Witness::Atomic => Keep::Threads,
        }
    }
}

/// A text that names no witness.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownWitness(String);

impl fmt::Display for UnknownWitness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Witness::ALL.map(Witness::name).join(", ");
        write!(f, "`{}` is not a witness; there are {names}", self.0)
    }
}

impl std::error::Error for UnknownWitness {}

impl FromStr for Witness {
    type Err = UnknownWitness;

    fn from_str(text: &str) -> Result<Witness, UnknownWitness> {
        let named = Witness::ALL.into_iter().find(|w| w.name() == text);
        named.ok_or_else(|| UnknownWitness(text.to_owned()))
    }
}
