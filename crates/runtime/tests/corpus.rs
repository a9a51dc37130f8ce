//! Every program of the corpus, buggy and fixed, built with gcc and with clang, gives exactly the
//! expected findings.
//!
//! A buggy program marks the lines of a race with `race(name)`. Every name must be found, every
//! finding must be between two lines of one name. The fixed twin (`-DFIXED`) must have no finding and
//! succeed. A line with `unseen` is part of a race by what the language says, both sides of which happen to run
//! in one thread: it may be found, and counts as missed if it is not.
//!
//! Each program, compiler and twin is a test of its own, named `mutex.c::gcc::fixed`. Choose by a part
//! of the name: `cargo test -p selvedge-runtime --test corpus -- mutex`. `CORPUS_RUNS=10` runs each of
//! them ten times (`cargo xtask corpus 10`), and every run must give the same findings. At the end a line says how
//! many runs of OpenMP programs were judged rightly.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Built, Compiler, Lines, observe, programs, workspace};
use libtest_mimic::{Arguments, Failed, Trial};
use selvedge_runtime::Form;

/// What is wrong with one program, if anything.
fn check(source: &Path, compiler: Compiler, fixed: bool, runs: usize) -> Result<(), String> {
    let built = Built::new(source, compiler, fixed, &workspace("corpus"))?;
    let text = std::fs::read_to_string(source).map_err(|e| e.to_string())?;
    let names = |with| if fixed { BTreeSet::new() } else { names_with(&text, with) };
    let (expected, unseen) = (names(""), names("unseen"));
    let openmp = common::is_openmp(source).then_some(&OPENMP);
    for number in 1..=runs {
        let found = run(&built, &text, fixed).inspect_err(|_| count(openmp, |v| &v.alarms))?;
        let missed: Vec<&String> = expected.difference(&found).collect();
        if !fixed {
            let all = missed.is_empty() && unseen.is_subset(&found);
            count(openmp, |v| if all { &v.found } else { &v.missed });
        }
        if !missed.is_empty() {
            return Err(format!("missed the races {missed:?} in run {number} of {runs}"));
        }
    }
    Ok(())
}

/// How runs were judged.
#[derive(Default)]
struct Verdicts {
    /// Every marked race of a buggy program was found, or not.
    found: AtomicUsize,
    missed: AtomicUsize,
    /// Something was found that is not marked, or the program failed.
    alarms: AtomicUsize,
}

static OPENMP: Verdicts = Verdicts {
    found: AtomicUsize::new(0),
    missed: AtomicUsize::new(0),
    alarms: AtomicUsize::new(0),
};

fn count(
    verdicts: Option<&'static Verdicts>,
    which: impl Fn(&'static Verdicts) -> &'static AtomicUsize,
) {
    if let Some(verdicts) = verdicts {
        which(verdicts).fetch_add(1, Ordering::Relaxed);
    }
}

impl Verdicts {
    fn print(&self, what: &str) {
        let [found, missed, alarms] =
            [&self.found, &self.missed, &self.alarms].map(|n| n.load(Ordering::Relaxed));
        let ratio = |other: usize| found as f64 / (found + other).max(1) as f64;
        if found + missed + alarms > 0 {
            let buggy = found + missed;
            println!(
                "{what}: {buggy} runs of buggy programs, precision {:.2}, recall {:.2}",
                ratio(alarms),
                ratio(missed)
            );
        }
    }
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

/// The names on lines with one of the words `optional` and `unseen`, or with neither. A name that stands on one line
/// only is a race of two threads in one statement, or, if the program says `optional`, one that this compiler may not
/// have.
fn names_with(text: &str, word: &str) -> BTreeSet<String> {
    let words = ["optional", "unseen"];
    let has = |line: &str| words.into_iter().find(|w| line.contains(w)).unwrap_or("");
    let lines = text.lines().filter(|l| has(l) == word);
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
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    OPENMP.print("OpenMP");
    conclusion.exit_code()
}
