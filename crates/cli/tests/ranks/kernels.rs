//! The kernels of table 8.1 of the thesis: exactly the marked pairs of statements race, those that can meet are
//! confirmed, and where the thesis says whether they do harm, no verdict says otherwise.
//!
//! To confirm races takes many executions, so only [`QUICK`] kernels are always tested, and all if `CORPUS_RUNS` is set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;

use super::{Corpus, MPI, Place, ranks_of, sources};

const KERNELS: Corpus = Corpus { prefix: "kernel_", directory: "../spmd/tests/kernels", ..MPI };

/// Those without a race, and one that is soon confirmed.
const QUICK: [&str; 7] = ["cg.c", "ep.c", "guppie.c", "is.c", "laplace.c", "lu.c", "mcop.c"];

pub(super) fn trials(all: bool) -> Vec<Trial> {
    let trial = |(_, source): (Corpus, PathBuf)| {
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (all || QUICK.contains(&&*name)).then(|| {
            Trial::test(format!("kernel_{name}"), move || check(&source).map_err(Failed::from))
        })
    };
    sources(&KERNELS).into_iter().filter_map(trial).collect()
}

/// What is known of a race.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Known {
    confirmed: bool,
    /// What its orders lead to, if that is marked.
    verdict: Option<String>,
}

type Races = BTreeMap<BTreeSet<u64>, Known>;

/// The races that the marks in a source call for, by their lines.
fn marked(text: &str) -> Races {
    let mut lines: BTreeMap<&str, (BTreeSet<u64>, Known)> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some((_, marks)) = line.split_once("// race(") else { continue };
        for mark in marks.split("race(") {
            let Some((name, rest)) = mark.split_once(')') else { continue };
            let verdict = ["harmful", "benign"].into_iter().find(|v| rest.contains(v));
            let known =
                Known { confirmed: !rest.contains("unmet"), verdict: verdict.map(str::to_owned) };
            lines.entry(name).or_insert((BTreeSet::new(), known)).0.insert(number);
        }
    }
    lines.into_values().collect()
}

fn check(source: &Path) -> Result<(), String> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let place = Place::new(&format!("kernel-{name}"));
    let text = std::fs::read_to_string(source).map_err(|e| e.to_string())?;
    place.compile(&["selvedge", KERNELS.compiler], source, false)?;
    let output = place.test(KERNELS, &ranks_of(&text), 1)?;
    let broken = || format!("no report:\n{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|_| broken())?;
    let expected = marked(&text);
    let mut found = Races::new();
    for finding in report["findings"].as_array().ok_or_else(broken)? {
        let sites = finding["sites"].as_array().cloned().unwrap_or_default();
        let lines: BTreeSet<u64> = sites.iter().filter_map(|s| s["line"].as_u64()).collect();
        // A verdict counts where it is marked.
        let wanted = expected.get(&lines).and_then(|known| known.verdict.as_ref());
        // That nothing is wrong is only known if both orders could be forced.
        let verdict = wanted.map(|wanted| match finding["verdict"].as_str() {
            None if wanted == "benign" => wanted.clone(),
            verdict => verdict.unwrap_or_default().to_owned(),
        });
        found.insert(lines, Known { confirmed: finding["status"] == "confirmed", verdict });
    }
    match found == expected {
        true => Ok(()),
        false => Err(format!("expected {expected:?} and found {found:?}")),
    }
}
