//! How findings, names and events are written down and read again, where the plain form of their fields does not do.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer};

use crate::Range;
use crate::symbols::{Table, Variables};

impl<T: Clone + Eq + Hash> From<Table<T>> for Vec<T> {
    fn from(table: Table<T>) -> Vec<T> {
        table.entries().to_vec()
    }
}

impl<T: Clone + Eq + Hash> From<Vec<T>> for Table<T> {
    fn from(entries: Vec<T>) -> Table<T> {
        let mut table = Table::default();
        for entry in entries {
            table.push(entry);
        }
        table
    }
}

impl From<Variables> for Vec<(String, Range)> {
    fn from(variables: Variables) -> Vec<(String, Range)> {
        variables.iter().map(|(name, range)| (name.to_owned(), range)).collect()
    }
}

impl From<Vec<(String, Range)>> for Variables {
    fn from(all: Vec<(String, Range)>) -> Variables {
        let mut variables = Variables::default();
        for (name, range) in all {
            variables.define(&name, range);
        }
        variables
    }
}

/// A map whose keys are no texts, as pairs.
pub(crate) mod pairs {
    use super::{BTreeMap, Deserialize, Deserializer};
    use serde::{Serialize, Serializer};

    pub(crate) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(crate) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// Names of analyses. Each name is kept for the rest of the process, once: there are few.
pub(crate) fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<&'static str>, D::Error> {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let names = Vec::<String>::deserialize(from)?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let name = |name: String| match known.get(&*name) {
        Some(name) => *name,
        None => {
            let name: &'static str = Box::leak(name.into_boxed_str());
            known.insert(name);
            name
        }
    };
    Ok(names.into_iter().map(name).collect())
}
