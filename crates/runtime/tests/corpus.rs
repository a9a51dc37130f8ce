//! Every program of the corpus, buggy and fixed, built with gcc and with clang, gives exactly the
//! expected findings.
//!
//! A buggy program marks the lines of a race with `race(name)`. Every name must be found, every
//! finding must be between two lines of one name. The fixed twin (`-DFIXED`) must have no finding and
//! succeed.
//!
//! Each program, compiler and twin is a test of its own, named `mutex.c::gcc::fixed`. Choose by a part
//! of the name: `cargo test -p selvedge-runtime --test corpus -- mutex`. `CORPUS_RUNS=10` runs each of
//! them ten times (`cargo xtask corpus 10`), and every run must give the same findings.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use common::{Built, Compiler, Lines, observe, programs, workspace};
use libtest_mimic::{Arguments, Failed, Trial};
use selvedge_runtime::Form;

/// What is wrong with one program, if anything.
fn check(source: &Path, compiler: Compiler, fixed: bool, runs: usize) -> Result<(), String> {
    let built = Built::new(source, compiler, fixed, &workspace("corpus"))?;
    let text = std::fs::read_to_string(source).map_err(|e| e.to_string())?;
    let expected = if fixed { BTreeSet::new() } else { all_names(&text) };
    for number in 1..=runs {
        let found = run(&built, &text, fixed)?;
        let missed: Vec<&String> = expected.difference(&found).collect();
        if !missed.is_empty() {
            return Err(format!("missed the races {missed:?} in run {number} of {runs}"));
        }
    }
    Ok(())
}

/// The names of the races that one run found.
fn run(built: &Built, text: &str, fixed: bool) -> Result<BTreeSet<String>, String> {
    let seen = observe(&built.program, Form::Linked)?;
    if fixed && !seen.status.success() {
        return Err(format!("ended with {}", seen.status));
    }
    if seen.status.code().is_none() {
        return Err(format!("crashed: {}", seen.status));
    }
    let lines = Lines::new(&built.program)?;
    let mut found = BTreeSet::new();
    for race in &seen.races {
        let [a, b] = [race.earlier.as_ref().unwrap_or(&race.later), &race.later]
            .map(|s| lines.of(s.pc, &seen.modules));
        let names = |line: Option<u32>| names_on(text, line.unwrap_or(0));
        let common: Vec<String> = names(a).intersection(&names(b)).cloned().collect();
        match common.first() {
            Some(name) if !fixed => found.insert(name.clone()),
            _ => return Err(format!("unexpected race between lines {a:?} and {b:?}: {race:x?}")),
        };
    }
    Ok(found)
}

fn names_in(line: &str) -> impl Iterator<Item = String> + '_ {
    line.match_indices("race(").filter_map(|(i, _)| {
        let rest = &line[i + 5..];
        rest.find(')').map(|end| rest[..end].to_owned())
    })
}

fn names_on(text: &str, line: u32) -> BTreeSet<String> {
    let line = (line as usize).checked_sub(1).and_then(|i| text.lines().nth(i));
    line.into_iter().flat_map(|l| names_in(l).collect::<Vec<_>>()).collect()
}

/// A name that stands on one line only is a race of two threads in one statement, or, if the program
/// says `optional`, one that this compiler may not have.
fn all_names(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|l| !l.contains("optional"));
    lines.flat_map(|l| names_in(l).collect::<Vec<_>>()).collect()
}

/// One named test: a program, its compiler and whether it is the fixed twin.
fn trial(source: PathBuf, compiler: Compiler, fixed: bool, runs: usize) -> Trial {
    let program = source.file_name().unwrap_or_default().to_string_lossy();
    let compiler_name = format!("{compiler:?}").to_lowercase();
    let twin = if fixed { "fixed" } else { "buggy" };
    let name = format!("{program}::{compiler_name}::{twin}");
    Trial::test(name, move || check(&source, compiler, fixed, runs).map_err(Failed::from))
}

fn main() -> ExitCode {
    let runs = match std::env::var("CORPUS_RUNS").map(|n| n.parse()) {
        Err(_) => 1,
        Ok(Ok(runs)) if runs > 0 => runs,
        Ok(_) => {
            eprintln!("CORPUS_RUNS must be a positive number");
            return ExitCode::FAILURE;
        }
    };
    let mut trials = Vec::new();
    for source in programs("corpus") {
        for compiler in Compiler::for_source(&source) {
            trials.extend([false, true].map(|fixed| trial(source.clone(), compiler, fixed, runs)));
        }
    }
    assert!(!trials.is_empty(), "the folder of the corpus has no programs");
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
