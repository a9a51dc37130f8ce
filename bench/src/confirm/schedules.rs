//! How many schedules it takes.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Effort, Program, Result, Workshop, median};

const STRATEGIES: [&str; 3] = ["random", "pct", "pos"];

/// Kinds of findings that are failures of the program, whatever led to them.
const FAILURES: [&str; 4] = ["assertion", "crash", "hang", "deadlock"];

/// Prints the table; whether every bug was confirmed, no twin was, and no plain run failed.
pub(super) fn measure(workshop: &Workshop, programs: &[Program], effort: Effort) -> Result<bool> {
    let Effort { plain, seeds, schedules, .. } = effort;
    println!(
        "Schedules until the bug is confirmed: median over {seeds} seeds, and how many of them found it \
         within {schedules}.\nplain: failures of {plain} runs without Selvedge. twin: findings confirmed in \
         the fixed program.\n"
    );
    println!(
        "{:16} {:>6} {:>12} {:>12} {:>12} {:>12} {:>6}",
        "program", "plain", "test", "random", "pct-3", "pos", "twin"
    );
    let mut honest = true;
    for program in programs {
        let failures = plain_failures(workshop, program, plain)?;
        let buggy = workshop.instrumented(program, false)?;
        let mut cells = vec![cell(seeds, |seed| test(workshop, &buggy, seed, schedules))?];
        for strategy in STRATEGIES {
            cells.push(cell(seeds, |seed| explore(workshop, &buggy, strategy, seed, schedules))?);
        }
        let fixed = workshop.instrumented(program, true)?;
        let twin = (0..seeds.min(3))
            .map(|seed| twin(workshop, &fixed, seed, schedules))
            .sum::<Result<usize>>()?;
        honest &= failures == 0 && twin == 0 && cells[0].found > 0;
        let text: Vec<String> =
            cells.iter().map(|c| format!("{:>12}", c.text(seeds, schedules))).collect();
        println!("{:16} {failures:>6} {} {twin:>6}", program.name, text.join(" "));
    }
    println!("\n(the command: cargo xtask bench confirm [--quick] [PROGRAM…])\n");
    Ok(honest)
}

struct Cell {
    median: Option<u64>,
    found: usize,
}

impl Cell {
    fn text(&self, seeds: u64, schedules: u64) -> String {
        let median = self.median.map_or(format!(">{schedules}"), |m| m.to_string());
        if self.found as u64 == seeds { median } else { format!("{median} ({})", self.found) }
    }
}

/// Seeds that find nothing count as more than all others.
fn cell(seeds: u64, once: impl Fn(u64) -> Result<Option<u64>>) -> Result<Cell> {
    let mut all: Vec<u64> = Vec::new();
    for seed in 0..seeds {
        all.push(once(seed)?.unwrap_or(u64::MAX));
    }
    let found = all.iter().filter(|&&n| n < u64::MAX).count();
    Ok(Cell { median: median(&mut all).filter(|&n| n < u64::MAX), found })
}

fn plain_failures(workshop: &Workshop, program: &Program, runs: u32) -> Result<usize> {
    let file = workshop.plain(program)?;
    let mut failures = 0;
    for _ in 0..runs {
        // A program that hangs is ended by timeout.
        let mut command = Command::new("timeout");
        command.arg("10").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        failures += usize::from(!command.status().map_err(|e| e.to_string())?.success());
    }
    Ok(failures)
}

fn report(
    workshop: &Workshop,
    args: &[&str],
    seed: u64,
    schedules: u64,
    program: &Path,
) -> Result<Value> {
    let mut command = Command::new(&workshop.selvedge);
    command.current_dir(&workshop.directory).args(args).stdin(Stdio::null());
    command.args(["--format", "json", "--fail-on", "never"]);
    command.args(["--seed", &seed.to_string(), "--schedules", &schedules.to_string()]);
    let output = command.arg("--").arg(program).output().map_err(|e| e.to_string())?;
    serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{command:?}: {e}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn findings(report: &Value) -> &[Value] {
    report["findings"].as_array().map_or(&[], Vec::as_slice)
}

/// Schedules until a finding is confirmed that does harm.
fn test(workshop: &Workshop, program: &Path, seed: u64, schedules: u64) -> Result<Option<u64>> {
    let report = report(workshop, &["test"], seed, schedules, program)?;
    let harms = |f: &&Value| {
        let failure = FAILURES.iter().any(|kind| f["kind"] == *kind);
        f["status"] == "confirmed" && (f["verdict"] == "harmful" || failure)
    };
    Ok(findings(&report).iter().filter(harms).filter_map(|f| f["after"].as_u64()).min())
}

fn explore(
    workshop: &Workshop,
    program: &Path,
    strategy: &str,
    seed: u64,
    schedules: u64,
) -> Result<Option<u64>> {
    let args = ["explore", "--strategy", strategy, "--until-failure"];
    let report = report(workshop, &args, seed, schedules, program)?;
    let confirmed = findings(&report).iter().filter(|f| f["status"] == "confirmed");
    Ok(confirmed.filter_map(|f| f["after"].as_u64()).min())
}

/// What is confirmed in a program that has no bug.
fn twin(workshop: &Workshop, program: &Path, seed: u64, schedules: u64) -> Result<usize> {
    let report = report(workshop, &["test"], seed, schedules, program)?;
    let confirmed = |f: &&Value| f["status"] == "confirmed" || f["status"] == "observed";
    Ok(findings(&report).iter().filter(confirmed).count())
}
