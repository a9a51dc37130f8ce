//! `cargo xtask bench determinism`: what deterministic blocks say of programs that are meant to be deterministic,
//! beside table 3.1 of Burnim's *Specifying and testing parallelism*.
//!
//! Each program is one block with values. `selvedge test` runs it at a small size, resolves its races both ways, and
//! compares every execution with all others. Harmful is what changes an ensured value: the race of raytracer, whose
//! lock excludes no thread, and the order of two draws in pi; another verdict fails the measurement. The cost of the
//! values is processor time of the
//! instrumented program under `selvedge run`, with and without them.

use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::measure::{Runs, once};
use crate::place::{Place, exit_code, source, wanted};

const ROUNDS: usize = 5;
/// The most that values may cost: processor time with them over that without.
const COST: f64 = 1.05;
const SCHEDULES: &str = "300";

/// A program, and what the paper's table says of it.
struct Program {
    name: &'static str,
    folder: &'static str,
    /// What puts the paper's bug in.
    define: Option<&'static str>,
    /// Data races found, and how many are harmful.
    races: (u32, u32),
    /// High-level races found, and how many are harmful.
    high_level: (u32, u32),
}

const fn grande(name: &'static str, races: u32) -> Program {
    let folder = "noninterference";
    Program { name, folder, define: None, races: (races, 0), high_level: (0, 0) }
}

const fn other(name: &'static str, races: u32) -> Program {
    Program { folder: "determinism", ..grande(name, races) }
}

const PROGRAMS: [Program; 13] = [
    grande("sor", 2),
    grande("sparse", 0),
    grande("series", 0),
    grande("crypt", 0),
    grande("moldyn", 2),
    grande("lufact", 1),
    Program { define: Some("-DBUG"), races: (3, 1), ..grande("raytracer", 3) },
    Program { high_level: (2, 0), ..grande("montecarlo", 1) },
    Program { high_level: (1, 1), ..other("pi", 9) },
    other("keysearch", 3),
    other("mandelbrot", 9),
    other("phylogeny", 4),
    Program { high_level: (2, 0), ..other("tsp", 6) },
];

pub(crate) fn run(args: &[&str]) -> ExitCode {
    exit_code(table(args))
}

fn table(names: &[&str]) -> Result<(), String> {
    let programs = wanted(&PROGRAMS, |p| p.name, names)?;
    let place = Place::new("determinism")?;
    println!("races: found/harmful; differs: schedules until an ensured value differed\n");
    let (none, with) = ("", "CPU with values");
    println!("{none:12} {none:>5} {none:>5} | {:^17} | {:^31} | {with:>15}", "paper", "ours");
    print_row(["program", "lines", "spec", "races", "high-l.", "races", "high-level", "differs"]);
    println!(" | {:>15}", "over without");
    let mut wrong = Vec::new();
    let mut logs = 0.0;
    for program in &programs {
        let text = std::fs::read_to_string(program.source()).map_err(|e| e.to_string())?;
        let spec = text.lines().filter(|l| l.trim_start().starts_with("SELVEDGE_")).count();
        let tested = program.test(&place)?;
        let (best, worst) = program.cost(&place)?;
        let pair = |(a, b): (u32, u32)| format!("{a}/{b}");
        print_row([
            program.name,
            &text.lines().count().to_string(),
            &spec.to_string(),
            &pair(program.races),
            &pair(program.high_level),
            &pair(tested.races),
            &pair(tested.high_level),
            &tested.differs.map_or("-".to_owned(), |n| n.to_string()),
        ]);
        println!(" | {:>15}", format!("{best:.3} ({worst:.3})"));
        logs += best.ln();
        let harmful = |found: (u32, u32), theirs: (u32, u32)| (found.1 > 0) == (theirs.1 > 0);
        if !harmful(tested.races, program.races)
            || !harmful(tested.high_level, program.high_level)
            || tested.differs.is_some() != (program.races.1 + program.high_level.1 > 0)
        {
            wrong.push(program.name);
        }
    }
    let mean = (logs / programs.len() as f64).exp();
    println!("\ncost of the values, geometric mean: {mean:.3} (at most {COST})");
    match wrong[..] {
        [] => Ok(()),
        _ => Err(format!("the verdicts of the paper are others: {}", wrong.join(", "))),
    }
}

fn print_row([name, lines, spec, races, high, ours, ours_high, differs]: [&str; 8]) {
    print!(
        "{name:12} {lines:>5} {spec:>5} | {races:>8} {high:>8} | {ours:>8} {ours_high:>10} {differs:>11}"
    );
}

/// What `selvedge test` says of a program.
struct Tested {
    races: (u32, u32),
    high_level: (u32, u32),
    differs: Option<u64>,
}

impl Program {
    fn source(&self) -> std::path::PathBuf {
        source(self.folder, self.name)
    }

    fn test(&self, place: &Place) -> Result<Tested, String> {
        let mut options = vec!["-O2", "-DBLOCKS", "-DTINY"];
        options.extend(self.define);
        let built = place.ours(&self.source(), "gcc", &options)?;
        let output = Command::new(&place.selvedge)
            .args(["test", "--format", "json", "--schedules", SCHEDULES, "--"])
            .arg(&built)
            .output()
            .map_err(|e| e.to_string())?;
        let document: Value = serde_json::from_slice(&output.stdout).map_err(|e| {
            format!("{}: {e}: {}", self.name, String::from_utf8_lossy(&output.stderr))
        })?;
        let findings = document["findings"].as_array().cloned().unwrap_or_default();
        let count = |kind: &str| {
            let of_kind =
                findings.iter().filter(|f| f["kind"] == kind && f["status"] == "confirmed");
            let harmful = of_kind.clone().filter(|f| f["verdict"] == "harmful").count();
            (of_kind.count() as u32, harmful as u32)
        };
        let differs = findings.iter().find(|f| f["kind"] == "determinism-violation");
        Ok(Tested {
            races: count("data-race"),
            high_level: count("high-level-race"),
            differs: differs.and_then(|f| f["after"].as_u64()),
        })
    }

    /// Processor time with values over that without: the best runs, and the worst with over the best without.
    fn cost(&self, place: &Place) -> Result<(f64, f64), String> {
        let with = place.ours(&self.source(), "gcc", &["-O2", "-DBLOCKS"])?;
        let without = place.ours(&self.source(), "gcc", &["-O2"])?;
        let mut runs = [Runs::default(), Runs::default()];
        for _ in 0..ROUNDS {
            for (runs, built) in runs.iter_mut().zip([&with, &without]) {
                let built = built.to_string_lossy();
                // 1: races that do no harm are there; 3: a first run has nothing to compare itself with.
                runs.add(once(&place.selvedge, &["run", "--", &built], &[0, 1, 3])?);
            }
        }
        let [with, without] = runs;
        Ok((with.best() / without.best(), with.worst() / without.best()))
    }
}
