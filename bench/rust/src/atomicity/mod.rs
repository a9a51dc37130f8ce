//! `cargo xtask bench atomicity`: table 5.1 (Burnim, §5.5) with ours beside it, linearizability checks beside the crate
//! `lincheck`, and histories beside `todc-utils` and beside the same search without memory.

mod histories;
mod peers;
mod programs;
mod structures;

use std::collections::BTreeSet;
use std::process::ExitCode;

use programs::{PROGRAMS, Program};
use selvedge::{Explore, Survey};
use selvedge_specs::atomic::Looked;
use structures::Hint;

/// So many serial executions for a linearizable interleaving, on average over all programs with hints.
const WITH_HINTS: f64 = 1.2;
/// Each place is interrupted once in a search, at whatever the other threads have done by then; other seeds find them at
/// something else.
const SEARCHES: u64 = 10;
/// More executions than any of the programs has within the bounds of the strategy.
const EXECUTIONS: u64 = 100_000;

pub(crate) fn run(parts: &[&str]) -> ExitCode {
    if let ["one", library, subject, seed] = parts {
        peers::one(library, subject, seed.parse().expect("a seed"));
        return ExitCode::SUCCESS;
    }
    let wanted = |part: &str| parts.is_empty() || parts.contains(&part);
    let mut wrong: Vec<String> = Vec::new();
    if wanted("table") {
        wrong.extend(table());
    }
    if wanted("peers") {
        wrong.extend(peers::compare());
    }
    if wanted("histories") {
        wrong.extend(histories::compare());
    }
    if wrong.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("not as it should be: {}", wrong.join("; "));
    ExitCode::FAILURE
}

/// What the searches of a program with different seeds counted together.
#[derive(Default)]
struct Counted {
    explained: Looked,
    unexplained: Looked,
    undecided: u64,
    /// The names in each error.
    errors: BTreeSet<Vec<String>>,
    conflicts: BTreeSet<String>,
    /// Searches that did not end by themselves.
    unfinished: u64,
}

impl Counted {
    fn of(program: &Program, hint: Hint) -> Counted {
        let mut counted = Counted::default();
        for seed in 0..SEARCHES {
            let body = program.body;
            let explore = Explore::new().strategy("interrupt").schedules(EXECUTIONS).seed(seed);
            let Survey { interleavings, violations, conflicts, complete, .. } =
                explore.survey(move || body(hint));
            counted.explained.add(interleavings.explained);
            counted.unexplained.add(interleavings.unexplained);
            counted.undecided += interleavings.unforced + interleavings.too_many;
            counted.errors.extend(violations);
            counted.conflicts.extend(conflicts);
            counted.unfinished += u64::from(!complete);
        }
        counted
    }

    /// What is not as it should be.
    fn wrong(&self, program: &Program) -> Option<String> {
        let names: BTreeSet<&str> = self.errors.iter().flatten().map(String::as_str).collect();
        let expected: BTreeSet<&str> = program.errors.iter().copied().collect();
        if self.unfinished > 0 {
            Some(format!("{}: a search did not end", program.name))
        } else if names != expected {
            Some(format!("{}: errors of {names:?} instead of {expected:?}", program.name))
        } else if self.undecided > 0 {
            Some(format!("{}: {} interleavings without a verdict", program.name, self.undecided))
        } else {
            None
        }
    }
}

/// Prints the table and returns what is not as it should be.
fn table() -> Vec<String> {
    println!(
        "blocks | interleavings | not linearizable | errors | serial executions for one interleaving: linearizable / \
         with hints / not | blocks that are not conflict-serializable"
    );
    println!("ours: {SEARCHES} searches by the strategy interrupt, each to its end");
    let mut with_hints = Looked::default();
    let mut wrong = Vec::new();
    for program in &PROGRAMS {
        let without = Counted::of(program, Hint::Withheld);
        let with = program.has_hints.then(|| Counted::of(program, Hint::Given));
        let average = |of: Option<f64>| of.map_or("-".to_owned(), |n| format!("{n:.2}"));
        println!("{}", program.name);
        println!("    theirs {}", program.theirs);
        println!(
            "    ours   {} | {} | {} | {} | {} / {} / {} | {}",
            program.blocks,
            without.explained.interleavings + without.unexplained.interleavings,
            without.unexplained.interleavings,
            program.errors.len(),
            average(without.explained.average()),
            average(with.as_ref().and_then(|counted| counted.explained.average())),
            average(without.unexplained.average()),
            without.conflicts.len(),
        );
        wrong.extend(without.wrong(program));
        wrong.extend(with.as_ref().and_then(|counted| counted.wrong(program)));
        with_hints.add(with.map(|counted| counted.explained).unwrap_or_default());
    }
    let mean = with_hints.average().unwrap_or(0.0);
    println!(
        "serial executions for a linearizable interleaving of the programs with hints: {mean:.2} (at most {WITH_HINTS})"
    );
    if mean > WITH_HINTS {
        wrong.push(format!("{mean:.2} serial executions with hints"));
    }
    wrong
}
