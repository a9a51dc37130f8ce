//! `cargo xtask bench determinism`: what deterministic blocks say of programs that are meant to be deterministic,
//! beside tables 3.1 and 4.1 of Burnim's *Specifying and testing parallelism*.
//!
//! Each program is one block with values. `selvedge test` runs it at a small size, resolves its races both ways, and
//! compares every execution with all others. Harmful is what changes an ensured value: the race of raytracer, whose
//! lock excludes no thread, and the order of two draws in pi; another verdict fails the measurement. Four of the
//! programs are also there in Rust. The cost of the values is processor time of `selvedge run`, with and without them.
//! It is one executable that hands them over or not, so that its code lies in the same places either way.

mod inferred;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::measure::{Runs, once};
use crate::place::{Place, exit_code, source, wanted};

const ROUNDS: usize = 9;
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
    println!("races: found/harmful; differs: schedules until an ensured value differed");
    println!(
        "CPU: the best of {ROUNDS} runs with values over the best without (the worst without over the best)\n"
    );
    let (none, with) = ("", "CPU with values");
    println!("{none:17} {none:>5} {none:>5} | {:^17} | {:^31} | {with:>15}", "paper", "ours");
    print_row(["program", "lines", "spec", "races", "high-l.", "races", "high-level", "differs"]);
    println!(" | {:>15}", "over without");
    let mut wrong = Vec::new();
    let mut logs = 0.0;
    for program in &programs {
        let text = std::fs::read_to_string(program.source()).map_err(|e| e.to_string())?;
        let spec = text.lines().filter(|l| l.trim_start().starts_with("SELVEDGE_")).count();
        let tested = program.test(&place)?;
        let (cost, noise) = program.cost(&place)?;
        program.print(program.name, &text, spec, &tested);
        println!(" | {:>15}", format!("{cost:.3} ({noise:.3})"));
        logs += cost.ln();
        wrong.extend(program.differs(&tested).then_some(program.name));
    }
    wrong.extend(in_rust(&place, names)?);
    let mean = (logs / programs.len() as f64).exp();
    println!("\ncost of the values, geometric mean: {mean:.3} (at most {COST})");
    let mut wrong: Vec<String> =
        wrong.into_iter().map(|p| format!("{p}: another verdict")).collect();
    if mean > COST {
        wrong.push(format!("values cost {mean:.3}"));
    }
    wrong.extend(inferred::table(&place, names)?);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("not as it should be: {}", wrong.join("; ")))
    }
}

/// The programs that are also there in Rust. Returns those with another verdict than the paper's.
fn in_rust(place: &Place, names: &[&str]) -> Result<Vec<&'static str>, String> {
    const RUST: [&str; 4] = ["raytracer", "montecarlo", "pi", "tsp"];
    let is_rust = |p: &&Program| RUST.contains(&p.name);
    let programs: Vec<&Program> = PROGRAMS.iter().filter(is_rust).collect();
    let programs = programs.into_iter().filter(|p| names.is_empty() || names.contains(&p.name));
    let mut wrong = Vec::new();
    for program in programs {
        let source = source("determinism", program.name).with_extension("rs");
        let text = std::fs::read_to_string(&source).map_err(|e| e.to_string())?;
        let says = |l: &&str| l.contains("selvedge::") && !l.trim_start().starts_with("use ");
        let spec = text.lines().filter(says).count();
        let tested = program.tested(place, &place.rust(&source)?)?;
        program.print(&format!("{} (Rust)", program.name), &text, spec, &tested);
        println!(" |");
        wrong.extend(program.differs(&tested).then_some(program.name));
    }
    Ok(wrong)
}

fn print_row([name, lines, spec, races, high, ours, ours_high, differs]: [&str; 8]) {
    print!(
        "{name:17} {lines:>5} {spec:>5} | {races:>8} {high:>8} | {ours:>8} {ours_high:>10} {differs:>11}"
    );
}

/// What `selvedge test` says of a program.
struct Tested {
    races: (u32, u32),
    high_level: (u32, u32),
    differs: Option<u64>,
}

impl Program {
    fn source(&self) -> PathBuf {
        source(self.folder, self.name)
    }

    fn print(&self, name: &str, text: &str, spec: usize, tested: &Tested) {
        let pair = |(a, b): (u32, u32)| format!("{a}/{b}");
        print_row([
            name,
            &text.lines().count().to_string(),
            &spec.to_string(),
            &pair(self.races),
            &pair(self.high_level),
            &pair(tested.races),
            &pair(tested.high_level),
            &tested.differs.map_or("-".to_owned(), |n| n.to_string()),
        ]);
    }

    /// Whether other races are harmful than the paper's.
    fn differs(&self, tested: &Tested) -> bool {
        let other = |ours: (u32, u32), theirs: (u32, u32)| (ours.1 > 0) != (theirs.1 > 0);
        other(tested.races, self.races)
            || other(tested.high_level, self.high_level)
            || tested.differs.is_some() != (self.races.1 + self.high_level.1 > 0)
    }

    fn test(&self, place: &Place) -> Result<Tested, String> {
        let mut options = vec!["-O2", "-DBLOCKS", "-DTINY"];
        options.extend(self.define);
        self.tested(place, &place.ours(&self.source(), "gcc", &options)?)
    }

    /// What `selvedge test` says of the program that was built.
    fn tested(&self, place: &Place, built: &Path) -> Result<Tested, String> {
        let output = Command::new(&place.selvedge)
            .args(["test", "--format", "json", "--schedules", SCHEDULES, "--"])
            .arg(built)
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

    /// Processor time with values over that without, of the best runs; and how far runs without values are apart,
    /// the worst over the best. All run on one processor: what threads on two pay for shared lines of the cache
    /// varies more than values cost.
    fn cost(&self, place: &Place) -> Result<(f64, f64), String> {
        let built = place.ours(&self.source(), "gcc", &["-O2", "-DBLOCKS", "-DCOST"])?;
        let (selvedge, built) = (place.selvedge.to_string_lossy(), built.to_string_lossy());
        let mut runs = [Runs::default(), Runs::default()];
        for _ in 0..ROUNDS {
            for (runs, blocks) in runs.iter_mut().zip(["BLOCKS=1", "-uBLOCKS"]) {
                let run = ["--cpu-list", "1", "env", blocks, &*selvedge, "run", "--", &*built];
                // 1: races that do no harm are there; 3: a first run has nothing to compare itself with.
                runs.add(once(Path::new("taskset"), &run, &[0, 1, 3])?);
            }
        }
        let [with, without] = runs;
        Ok((with.best() / without.best(), without.worst() / without.best()))
    }
}
