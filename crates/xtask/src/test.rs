//! `cargo xtask test`, its quick form, and the renewal of snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::shell::{self, Outcome, cargo, root};
use crate::{instructions, setup, tidy};

/// What every build of tests selects. Always the same, so that cargo never builds a crate twice for
/// different sets of features. Tools of others, for comparison, are measured but not tested.
const SELECTION: [&str; 4] = ["test", "--workspace", "--exclude", "selvedge-bench-rust"];

/// Integration tests that `--quick` leaves out: they build and run many native programs, or wait for a
/// compiler.
const SLOW: [&str; 7] =
    ["auto_traits", "control", "corpus", "native", "programs", "stopping", "test"];

/// The part of the native corpus that `--quick` runs.
const SAMPLE: &str = "mutex";

/// Property tests draw the same cases here each time, so that the result depends on the change alone. `cargo test` by
/// hand draws new ones unless this variable is set.
const PROPERTY_SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20");

/// The tool as the tests have it. The runtime in it is optimised in every profile.
const TESTED: &str = "target/debug/selvedge";

/// Everything that CI checks. One build serves the demo, the count of instructions and the tests. A release build has
/// fewer features than these have together, so it is checked that it would compile.
pub(crate) fn all() -> Outcome {
    setup::run()?;
    checks()?;
    cargo(&["check", "--package", "selvedge-cli"])?;
    cargo(&[&SELECTION[..], &["--no-run"]].concat())?;
    shell::run(Command::new(TESTED).arg("demo"))?;
    instructions::check(&root().join(TESTED))?;
    let (seed, value) = PROPERTY_SEED;
    let seed_value = std::env::var(seed).unwrap_or_else(|_| value.to_owned());
    shell::cargo_with(seed, &seed_value, &[&SELECTION[..], &["--no-fail-fast"]].concat())?;
    shell::cargo_with("RUSTDOCFLAGS", "--deny warnings", &["doc", "--workspace", "--no-deps"])?;
    if shell::succeeds("cargo", &["deny", "--version"]) {
        cargo(&["deny", "--all-features", "check", "licenses", "bans", "sources"])?;
    } else {
        println!(
            "cargo-deny is not installed: dependencies were not checked (cargo install cargo-deny)"
        );
    }
    println!("all checks passed");
    Ok(())
}

/// Runs the checks and tests for every change, and says what it leaves out.
pub(crate) fn quick() -> Outcome {
    let start = Instant::now();
    checks()?;
    let tests = targets()?;
    let quick = tests.keys().map(String::as_str).filter(|name| !SLOW.contains(name));
    let named = quick.flat_map(|name| ["--test", name]);
    let args: Vec<&str> = SELECTION.into_iter().chain(["--lib", "--bins"]).chain(named).collect();
    cargo(&args)?;
    cargo(&[&SELECTION[..], &["--test", "corpus", "--", SAMPLE]].concat())?;
    println!("quick checks passed in {} s", start.elapsed().as_secs());
    println!(
        "left out: the tests {}, all of the corpus but {SAMPLE}*, doc tests, examples,\n\
         the demo, the count of instructions, the documentation and cargo-deny; `cargo xtask test` runs everything",
        SLOW.join(", ")
    );
    Ok(())
}

/// Runs the tests that have snapshots and accepts what they show now.
pub(crate) fn bless(filter: &[&str]) -> Outcome {
    let tests = targets()?;
    let with_snapshots = tests.iter().filter(|(_, files)| files.iter().any(|f| has_snapshots(f)));
    let named = with_snapshots.flat_map(|(name, _)| ["--test", name.as_str()]);
    let args = SELECTION.into_iter().chain(["--no-fail-fast", "--lib"]).chain(named);
    let args: Vec<&str> = args.chain(["--"]).chain(filter.iter().copied()).collect();
    let tested = shell::cargo_with("INSTA_UPDATE", "always", &args);
    println!("these snapshots changed; read them before you commit them:");
    shell::run(Command::new("git").args(["status", "--short", "--", "*.snap"]))?;
    tested
}

/// The checks that run nothing of ours.
fn checks() -> Outcome {
    tidy::run()?;
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"])
}

/// Integration tests by name, with their source files; a name may stand for tests of several crates.
fn targets() -> Result<BTreeMap<String, BTreeSet<PathBuf>>, String> {
    let mut targets: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for crate_folder in folder(&root().join("crates"))? {
        let Ok(tests) = folder(&crate_folder.join("tests")) else { continue };
        for path in tests {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if path.join("main.rs").exists() {
                targets.entry(name).or_default().extend(folder(&path)?);
            } else if path.extension().is_some_and(|e| e == "rs") {
                targets.entry(name).or_default().insert(path);
            }
        }
    }
    Ok(targets)
}

fn folder(path: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(entries.filter_map(|e| Some(e.ok()?.path())).collect())
}

fn has_snapshots(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.contains("insta::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_quick_leaves_out_exists() {
        let targets = targets().expect("the crates are there");
        for slow in SLOW {
            assert!(targets.contains_key(slow), "{slow}");
        }
        assert!(targets["interleavings"].iter().any(|f| has_snapshots(f)));
        assert!(targets["strategies"].len() > 1, "a folder with a main.rs is one test");
    }
}
