//! How many schedules it takes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::{Effort, Program, Result, Workshop, findings, median};

/// What is measured: `selvedge test`, and strategies of `selvedge explore`.
pub(super) const COLUMNS: [&str; 6] = ["test", "random", "pct", "pos", "surw", "reads-from"];

/// Kinds of findings that are failures of the program, whatever led to them.
const FAILURES: [&str; 5] = ["assertion", "crash", "hang", "deadlock", "misuse"];

/// Prints the table; whether every bug was confirmed, no twin was, and no plain run failed.
pub(super) fn measure(
    workshop: &Workshop,
    programs: &[Program],
    columns: &[&str],
    effort: Effort,
) -> Result<bool> {
    let Effort { plain, seeds, twins, schedules, time, whole, .. } = effort;
    let begin = Instant::now();
    println!(
        "Schedules until the bug is confirmed: median and mean over {seeds} seeds, and how many of them found it within \
         {schedules}, if not all did;\nof how many, if not all were tried within {} s (test: three times that), or less, so that all of this \
         takes {} minutes.\nplain: failures of {plain} runs without Selvedge. twin: findings confirmed in the fixed program.\n",
        time.as_secs(),
        whole.as_secs() / 60
    );
    let heads: String = columns.iter().map(|s| format!(" {s:>16}")).collect();
    println!("{:18} {:>6}{heads} {:>6}", "program", "plain", "twin");
    let mut honest = true;
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (done, program) in programs.iter().enumerate() {
        // The figure of `test` has three parts, and the twin has one.
        let parts = (programs.len() - done) * (columns.len() + 3);
        let part = whole.saturating_sub(begin.elapsed()) / u32::try_from(parts).unwrap_or(u32::MAX);
        let time = time.min(part);
        let failures = plain_failures(workshop, program, plain)?;
        let buggy = workshop.instrumented(program, false)?;
        let mut cells = Vec::new();
        for column in columns {
            let once = |directory: &Path, seed| match *column {
                "test" => test(workshop, directory, (&buggy, program), (seed, schedules)),
                strategy => {
                    explore((workshop, strategy), directory, (&buggy, program), (seed, schedules))
                }
            };
            let times = if *column == "test" { 3 } else { 1 };
            let effort = Effort { time: time * times, ..effort };
            cells.push(Cell::of(workshop.seeds(effort, once)?));
        }
        let fixed = workshop.instrumented(program, true)?;
        let few = Effort { seeds: twins.min(seeds), time, ..effort };
        let twin: usize = workshop
            .seeds(few, |directory, seed| {
                workshop.confirmed(directory, (&fixed, program), (seed, schedules))
            })?
            .into_iter()
            .sum();
        honest &= failures == 0 && twin == 0 && cells[0].found > 0;
        let text: String =
            cells.iter().map(|c| format!(" {:>16}", c.text(seeds, schedules))).collect();
        println!("{:18} {failures:>6}{text} {twin:>6}", program.title());
        rows.push(cells);
    }
    geometric_means(&rows);
    if columns.first() == Some(&"test") {
        found_by_all(programs, &rows);
        if columns.len() > 1 {
            worse_than_a_part(programs, &rows);
        }
    }
    println!(
        "\n(the command: cargo xtask bench confirm [--quick] [--seeds=N] [--time=SECONDS] [--minutes=N] [--sizes=N,…] [--columns=NAME,…] [PROGRAM…])\n"
    );
    Ok(honest)
}

/// Prints the geometric means of the medians, over the programs that every column found with every seed, and of the
/// first column, over all that it found with every seed.
fn geometric_means(rows: &[Vec<Cell>]) {
    let mean = |rows: &[&Vec<Cell>], column: usize| {
        let logs = rows.iter().filter_map(|row| row[column].median).map(|m| (m as f64).ln());
        (logs.sum::<f64>() / rows.len() as f64).exp()
    };
    let common: Vec<&Vec<Cell>> =
        rows.iter().filter(|row| row.iter().all(Cell::is_certain)).collect();
    if let Some(first) = common.first() {
        let means: String =
            (0..first.len()).map(|c| format!(" {:>16.1}", mean(&common, c))).collect();
        println!("geometric mean over {:<3}  {means}", common.len());
    }
    let certain: Vec<&Vec<Cell>> = rows.iter().filter(|row| row[0].is_certain()).collect();
    if !certain.is_empty() {
        println!("geometric mean over {:<3}   {:>16.1}", certain.len(), mean(&certain, 0));
    }
}

/// Names the programs that `test` does not find with every seed.
fn found_by_all(programs: &[Program], rows: &[Vec<Cell>]) {
    let missed = programs.iter().zip(rows).filter(|(_, row)| !row[0].is_certain());
    let missed: Vec<String> = missed
        .map(|(p, row)| format!("{} ({} of {})", p.title(), row[0].found, row[0].tried))
        .collect();
    if missed.is_empty() {
        println!("`test` finds every bug with every seed");
    } else {
        println!("not found with every seed: {}", missed.join(", "));
    }
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
    tried: usize,
}

impl Cell {
    /// Seeds that find nothing count as more than all others.
    fn of(results: Vec<Option<u64>>) -> Cell {
        let mut all: Vec<u64> = results.into_iter().map(|n| n.unwrap_or(u64::MAX)).collect();
        let shown: Vec<u64> = all.iter().copied().filter(|&n| n < u64::MAX).collect();
        let found = shown.len();
        let mean = shown.iter().sum::<u64>() as f64 / found.max(1) as f64;
        let median = median(&mut all).filter(|&n| n < u64::MAX);
        Cell { median, mean, found, tried: all.len() }
    }

    fn is_certain(&self) -> bool {
        self.found == self.tried && self.found > 0
    }

    fn text(&self, seeds: u64, schedules: u64) -> String {
        let median = self.median.map_or(format!(">{schedules}"), |m| m.to_string());
        let mean = if self.found > 0 { format!(" {:.1}", self.mean) } else { String::new() };
        let found = match self.tried as u64 == seeds {
            true if self.found == self.tried => String::new(),
            true => format!(" ({})", self.found),
            false => format!(" ({}/{})", self.found, self.tried),
        };
        format!("{median}{mean}{found}")
    }
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

/// Schedules until a finding is confirmed that does harm.
fn test(
    workshop: &Workshop,
    directory: &Path,
    program: (&Path, &Program),
    what: (u64, u64),
) -> Result<Option<u64>> {
    let report = workshop.report((directory, &["test", "--until-failure"]), program, what)?;
    let harms = |f: &&serde_json::Value| {
        let failure = FAILURES.iter().any(|kind| f["kind"] == *kind);
        f["status"] == "confirmed" && (f["verdict"] == "harmful" || failure)
    };
    Ok(findings(&report).iter().filter(harms).filter_map(|f| f["after"].as_u64()).min())
}

fn explore(
    (workshop, strategy): (&Workshop, &str),
    directory: &Path,
    program: (&Path, &Program),
    what: (u64, u64),
) -> Result<Option<u64>> {
    let args = ["explore", "--strategy", strategy, "--until-failure"];
    let report = workshop.report((directory, &args), program, what)?;
    let confirmed = findings(&report).iter().filter(|f| f["status"] == "confirmed");
    Ok(confirmed.filter_map(|f| f["after"].as_u64()).min())
}
