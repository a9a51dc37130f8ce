//! `cargo xtask bench atomicity`: table 5.1 (Burnim, §5.5) with ours beside it, linearizability checks beside the crate
//! `lincheck`, and histories beside `todc-utils` and beside the same search without memory.

mod histories;
mod peers;
mod programs;
mod structures;

use std::process::ExitCode;

use programs::{PROGRAMS, Program};
use selvedge::{Explore, Survey};
use structures::Hint;

/// So many serial executions for a linearizable interleaving with hints, on average over all.
const WITH_HINTS: f64 = 1.2;
/// More executions than any of the programs has within the bounds of the strategy.
const EXECUTIONS: u64 = 100_000;

pub(crate) fn run(parts: &[&str]) -> ExitCode {
    if let ["one", library, subject] = parts {
        peers::one(library, subject);
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

/// Prints the table and returns what is not as it should be.
fn table() -> Vec<String> {
    println!(
        "blocks | interleavings | not linearizable | errors | serial executions for one interleaving: linearizable / \
         with hints / not | blocks that are not conflict-serializable"
    );
    let (mut with_hints, mut interleavings) = (0.0, 0.0);
    let mut wrong = Vec::new();
    for program in &PROGRAMS {
        let without = survey(program, Hint::Withheld);
        let with = if program.has_hints { survey(program, Hint::Given) } else { without.clone() };
        let counts = without.interleavings;
        let average = |of: Option<f64>| of.map_or("-".to_owned(), |n| format!("{n:.2}"));
        let hinted = if program.has_hints {
            average(with.interleavings.explained.average())
        } else {
            "-".to_owned()
        };
        println!("{}", program.name);
        println!("    theirs {}", program.theirs);
        println!(
            "    ours   {} | {} | {} | {} | {} / {hinted} / {} | {}",
            program.blocks,
            counts.overlapping(),
            counts.unexplained.interleavings,
            without.violations,
            average(counts.explained.average()),
            average(counts.unexplained.average()),
            without.conflicts,
        );
        let linearizable = with.interleavings.explained;
        with_hints += linearizable.orders as f64;
        interleavings += linearizable.interleavings as f64;
        if !without.complete || !with.complete {
            wrong.push(format!("{}: the search did not end", program.name));
        }
        if [&without, &with].iter().any(|s| s.violations != program.errors) {
            wrong.push(format!("{}: {} errors", program.name, without.violations));
        }
        if counts.unforced + counts.too_many > 0 {
            wrong.push(format!("{}: interleavings without a verdict", program.name));
        }
    }
    let mean = with_hints / interleavings;
    println!(
        "serial executions for a linearizable interleaving, with hints where there are any: {mean:.2} (at most \
         {WITH_HINTS})"
    );
    if mean > WITH_HINTS {
        wrong.push(format!("{mean:.2} serial executions with hints"));
    }
    wrong
}

fn survey(program: &Program, hint: Hint) -> Survey {
    let body = program.body;
    Explore::new().strategy("interrupt").schedules(EXECUTIONS).survey(move || body(hint))
}
