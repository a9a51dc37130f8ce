//! How many schedules it takes.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Effort, Program, Result, Workshop, median};

const STRATEGIES: [&str; 5] = ["random", "pct", "pos", "surw", "reads-from"];

/// Kinds of findings that are failures of the program, whatever led to them.
const FAILURES: [&str; 5] = ["assertion", "crash", "hang", "deadlock", "misuse"];

/// Prints the table; whether every bug was confirmed, no twin was, and no plain run failed.
pub(super) fn measure(workshop: &Workshop, programs: &[Program], effort: Effort) -> Result<bool> {
    let Effort { plain, seeds, twins, schedules, .. } = effort;
    println!(
        "Schedules until the bug is confirmed: median and mean over {seeds} seeds, and how many of them found it \
         within {schedules}.\nplain: failures of {plain} runs without Selvedge. twin: findings confirmed in \
         the fixed program.\n"
    );
    let heads: String = STRATEGIES.iter().map(|s| format!(" {s:>16}")).collect();
    println!("{:18} {:>6} {:>16}{heads} {:>6}", "program", "plain", "test", "twin");
    let mut honest = true;
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for program in programs {
        let failures = plain_failures(workshop, program, plain)?;
        let buggy = workshop.instrumented(program, false)?;
        let mut cells =
            vec![cell(seeds, |seed| test(workshop, (&buggy, program), seed, schedules))?];
        for strategy in STRATEGIES {
            let once = |seed| explore(workshop, (&buggy, program), strategy, seed, schedules);
            cells.push(cell(seeds, once)?);
        }
        let fixed = workshop.instrumented(program, true)?;
        let twin = (0..twins.min(seeds))
            .map(|seed| twin(workshop, (&fixed, program), seed, schedules))
            .sum::<Result<usize>>()?;
        honest &= failures == 0 && twin == 0 && cells[0].found > 0;
        let text: String =
            cells.iter().map(|c| format!(" {:>16}", c.text(seeds, schedules))).collect();
        println!("{:18} {failures:>6}{text} {twin:>6}", program.title());
        rows.push(cells);
    }
    geometric_means(&rows, seeds);
    worse_than_a_part(programs, &rows);
    println!(
        "\n(the command: cargo xtask bench confirm [--quick] [--seeds=N] [--sizes=N,…] [PROGRAM…])\n"
    );
    Ok(honest)
}

/// Prints the geometric means of the medians, over the programs that every column found with every seed.
fn geometric_means(rows: &[Vec<Cell>], seeds: u64) {
    let common: Vec<&Vec<Cell>> =
        rows.iter().filter(|row| row.iter().all(|c| c.found as u64 == seeds)).collect();
    if common.is_empty() {
        return;
    }
    let mean = |column: usize| {
        let logs = common.iter().filter_map(|row| row[column].median).map(|m| (m as f64).ln());
        (logs.sum::<f64>() / common.len() as f64).exp()
    };
    let means: String = (0..=STRATEGIES.len()).map(|c| format!(" {:>16.1}", mean(c))).collect();
    println!("geometric mean over {:<3}   {means}", common.len());
}

/// Names the programs on which `test` takes more than twice the schedules of the best strategy by itself.
fn worse_than_a_part(programs: &[Program], rows: &[Vec<Cell>]) {
    let medians = |row: &[Cell]| row.iter().filter_map(|c| c.median).min();
    let mut worse = Vec::new();
    for (program, row) in programs.iter().zip(rows) {
        let Some(best) = medians(&row[1..]) else { continue };
        match row[0].median {
            Some(test) if test <= 2 * best => {}
            Some(test) => worse.push(format!("{} ({test} against {best})", program.title())),
            None => worse.push(format!("{} (never against {best})", program.title())),
        }
    }
    if worse.is_empty() {
        println!("`test` never takes more than twice the schedules of the best strategy by itself");
    } else {
        println!("more than twice the best strategy by itself: {}", worse.join(", "));
    }
}

struct Cell {
    median: Option<u64>,
    /// Of the seeds that found it.
    mean: f64,
    found: usize,
}

impl Cell {
    fn text(&self, seeds: u64, schedules: u64) -> String {
        let median = self.median.map_or(format!(">{schedules}"), |m| m.to_string());
        let mean = if self.found > 0 { format!(" {:.1}", self.mean) } else { String::new() };
        let found =
            if self.found as u64 == seeds { String::new() } else { format!(" ({})", self.found) };
        format!("{median}{mean}{found}")
    }
}

/// Seeds that find nothing count as more than all others.
fn cell(seeds: u64, once: impl Fn(u64) -> Result<Option<u64>>) -> Result<Cell> {
    let mut all: Vec<u64> = Vec::new();
    for seed in 0..seeds {
        all.push(once(seed)?.unwrap_or(u64::MAX));
    }
    let shown: Vec<u64> = all.iter().copied().filter(|&n| n < u64::MAX).collect();
    let (found, mean) = (shown.len(), shown.iter().sum::<u64>() as f64 / shown.len().max(1) as f64);
    Ok(Cell { median: median(&mut all).filter(|&n| n < u64::MAX), mean, found })
}

fn plain_failures(workshop: &Workshop, program: &Program, runs: u32) -> Result<usize> {
    let file = workshop.plain(program)?;
    let mut failures = 0;
    for _ in 0..runs {
        // A program that hangs is ended by timeout.
        let mut command = Command::new("timeout");
        command
            .arg("10")
            .arg(&file)
            .args(&program.size)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        failures += usize::from(!command.status().map_err(|e| e.to_string())?.success());
    }
    Ok(failures)
}

fn report(
    workshop: &Workshop,
    args: &[&str],
    seed: u64,
    schedules: u64,
    (file, program): (&Path, &Program),
) -> Result<Value> {
    let mut command = Command::new(&workshop.selvedge);
    command.current_dir(&workshop.directory).args(args).stdin(Stdio::null());
    command.args(["--format", "json", "--fail-on", "never"]);
    command.args(["--seed", &seed.to_string(), "--schedules", &schedules.to_string()]);
    // What one seed has learnt is no help to the next.
    let _ = std::fs::remove_dir_all(workshop.directory.join(".selvedge"));
    std::fs::create_dir(workshop.directory.join(".selvedge")).map_err(|e| e.to_string())?;
    command.arg("--").arg(file).args(&program.size);
    let output = command.output().map_err(|e| e.to_string())?;
    serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{command:?}: {e}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn findings(report: &Value) -> &[Value] {
    report["findings"].as_array().map_or(&[], Vec::as_slice)
}

/// Schedules until a finding is confirmed that does harm.
fn test(
    workshop: &Workshop,
    program: (&Path, &Program),
    seed: u64,
    schedules: u64,
) -> Result<Option<u64>> {
    let report = report(workshop, &["test"], seed, schedules, program)?;
    let harms = |f: &&Value| {
        let failure = FAILURES.iter().any(|kind| f["kind"] == *kind);
        f["status"] == "confirmed" && (f["verdict"] == "harmful" || failure)
    };
    Ok(findings(&report).iter().filter(harms).filter_map(|f| f["after"].as_u64()).min())
}

fn explore(
    workshop: &Workshop,
    program: (&Path, &Program),
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
fn twin(
    workshop: &Workshop,
    program: (&Path, &Program),
    seed: u64,
    schedules: u64,
) -> Result<usize> {
    let report = report(workshop, &["test"], seed, schedules, program)?;
    let confirmed = |f: &&Value| f["status"] == "confirmed" || f["status"] == "observed";
    Ok(findings(&report).iter().filter(confirmed).count())
}
