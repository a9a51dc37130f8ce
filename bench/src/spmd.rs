//! Races across ranks: the kernels of table 8.1 of the thesis, with 4 ranks.
//!
//! For each kernel: how many pairs of statements `selvedge test` predicts and how many it confirms, beside the thesis'
//! figures, and what observing (phase I) and confirming (phase II) cost. The times are the kernels' own, without the
//! start of the ranks, and the alternatives are measured in turn; a figure is the ratio of the best times.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use selvedge_spmd::layer::{self, Interface};
use selvedge_spmd::{Place as At, Plan, findings};
use serde_json::Value;

use crate::measure::Runs;
use crate::place::{Place, exit_code};

/// A row of table 8.1: the kernel, how much work is measured, pairs of statements predicted and confirmed, and the
/// overheads of the two phases.
struct Row {
    kernel: &'static str,
    scale: u32,
    pairs: (usize, usize),
    overhead: (f64, Option<f64>),
}

const fn row(
    kernel: &'static str,
    scale: u32,
    pairs: (usize, usize),
    overhead: (f64, Option<f64>),
) -> Row {
    Row { kernel, scale, pairs, overhead }
}

const TABLE: [Row; 14] = [
    row("guppie", 100, (2, 2), (1.120, Some(1.017))),
    row("knapsack", 40_000, (2, 2), (1.149, Some(1.018))),
    row("laplace", 400, (0, 0), (1.163, None)),
    row("mcop", 20, (0, 0), (1.007, None)),
    row("psearch", 6, (3, 2), (1.018, Some(1.038))),
    row("ft_lock", 3_000, (2, 2), (1.061, Some(1.048))),
    row("cg", 500, (0, 0), (1.005, None)),
    row("ep", 5_000, (0, 0), (1.009, None)),
    row("ft_init", 1_000, (1, 1), (1.001, Some(1.042))),
    row("is", 100, (0, 0), (1.011, None)),
    row("mg", 500, (2, 2), (1.031, Some(1.012))),
    row("bt", 100, (8, 0), (1.005, Some(1.008))),
    row("lu", 500, (0, 0), (1.005, None)),
    row("sp", 100, (8, 0), (1.002, Some(1.030))),
];

const RANKS: &str = "4";

/// `spmd [ROUNDS] [KERNEL…]`.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let (rounds, names) = match args.split_first() {
        Some((first, rest)) if first.parse::<usize>().is_ok() => (first.parse().unwrap_or(5), rest),
        _ => (5, args),
    };
    exit_code(measure(rounds, names))
}

fn measure(rounds: usize, names: &[&str]) -> Result<(), String> {
    let place = Place::new("spmd")?;
    let here = std::env::current_dir().map_err(|e| e.to_string())?;
    let library =
        layer::library(&here, "mpicc", Interface::Mpi).map_err(|error| error.to_string())?;
    println!(
        "{:<9} {:>11} {:>11}  {:>18} {:>10} {:>11}  {:>8} {:>8}",
        "kernel", "predicted", "confirmed", "verdicts", "calls", "and memory", "(thesis)", "native"
    );
    let wanted = |row: &&Row| names.is_empty() || names.contains(&row.kernel);
    let mut wrong = Vec::new();
    for row in TABLE.iter().filter(wanted) {
        let built = Built::new(&place, &here, row.kernel)?;
        let counted = built.count(&place)?;
        if (counted.predicted, counted.confirmed) != row.pairs {
            wrong.push(row.kernel);
        }
        let timed = built.time(row, rounds, &here, &library)?;
        print(row, &counted, &timed);
    }
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(format!("other pairs than in the thesis: {}", wrong.join(", "))),
    }
}

fn print(row: &Row, counted: &Counted, timed: &Timed) {
    let ratio = |runs: &Runs| format!("{:.3}", runs.best() / timed.native.best());
    println!(
        "{:<9} {:>5} ({:>2}) {:>6} ({:>2})  {:>18} {:>10} {:>11}  {:>8.3} {:>6.2} s",
        row.kernel,
        counted.predicted,
        row.pairs.0,
        counted.confirmed,
        row.pairs.1,
        counted.verdicts,
        ratio(&timed.calls),
        ratio(&timed.observed),
        row.overhead.0,
        timed.native.best(),
    );
    if let (Some(confirming), Some(thesis)) = (&timed.confirming, row.overhead.1) {
        println!("{:>64} {:>11}  {thesis:>8.3}", "phase II", ratio(confirming));
    }
}

/// What `selvedge test` says of a kernel.
struct Counted {
    predicted: usize,
    confirmed: usize,
    verdicts: String,
}

/// The kernel's own times: as it is, with its calls observed, with loads and stores observed, and with its races
/// confirmed.
struct Timed {
    native: Runs,
    calls: Runs,
    observed: Runs,
    confirming: Option<Runs>,
}

struct Built {
    native: PathBuf,
    ours: PathBuf,
}

impl Built {
    fn new(place: &Place, here: &Path, kernel: &str) -> Result<Built, String> {
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/spmd/tests/kernels");
        let source = kernels.join(format!("{kernel}.c"));
        let build = |mut compiler: Command, name: String| {
            let program = here.join(name);
            compiler.args(["-g", "-O2"]).arg(&source).arg("-o").arg(&program);
            succeeded(&mut compiler).map(|_| program)
        };
        let mut ours = Command::new(&place.selvedge);
        ours.arg("mpicc");
        Ok(Built {
            native: build(Command::new("mpicc"), format!("{kernel}.native"))?,
            ours: build(ours, format!("{kernel}.ours"))?,
        })
    }

    fn count(&self, place: &Place) -> Result<Counted, String> {
        let mut command = Command::new(&place.selvedge);
        command.args(["test", "--format", "json", "--seed", "1", "--attempts", "8"]);
        command.args(["--time", "10m", "--", "mpirun", "--oversubscribe", "-n", RANKS]);
        surround(command.arg(&self.ours));
        let output = command.output().map_err(|e| e.to_string())?;
        let report: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let confirmed = findings.iter().filter(|f| f["status"] == "confirmed").count();
        let verdicts: Vec<&str> = findings.iter().filter_map(|f| f["verdict"].as_str()).collect();
        Ok(Counted { predicted: findings.len(), confirmed, verdicts: verdicts.join(" ") })
    }

    fn time(&self, row: &Row, rounds: usize, here: &Path, library: &Path) -> Result<Timed, String> {
        let lines = here.join("lines");
        let plan = here.join("plan");
        let observed = |program: &Path, plan: Option<&Path>| {
            // What an earlier execution left.
            let _ = std::fs::remove_dir_all(&lines);
            std::fs::create_dir(&lines).map_err(|e| e.to_string())?;
            let mut command = launch(program, row.scale);
            // The C library's functions that Open MPI would patch are interposed.
            command.env("LD_PRELOAD", library).env("OMPI_MCA_memory", "^patcher");
            command.env("SELVEDGE_SPMD_DIR", &lines);
            command.envs(plan.map(|plan| ("SELVEDGE_SPMD_PLAN", plan)));
            took(&mut command)
        };
        let first = observed(&self.ours, None)?;
        let told = findings::read(&[&lines]).map_err(|e| e.to_string())?;
        let pairs: Vec<[At; 2]> = told
            .races
            .iter()
            .map(|race| {
                race.sides.each_ref().map(|side| At {
                    module: side.place.module.as_str().into(),
                    offset: side.place.offset,
                })
            })
            .collect();
        let confirms = !pairs.is_empty();
        let text = Plan { pairs, pause: 10_000, seed: 1, ..Plan::default() }.text();
        std::fs::write(&plan, text).map_err(|e| e.to_string())?;
        let mut timed = Timed {
            native: Runs::default(),
            calls: Runs::default(),
            observed: Runs::default(),
            confirming: confirms.then(Runs::default),
        };
        timed.observed.add((first, 0.0));
        for _ in 0..rounds {
            timed.native.add((took(&mut launch(&self.native, row.scale))?, 0.0));
            timed.calls.add((observed(&self.native, None)?, 0.0));
            timed.observed.add((observed(&self.ours, None)?, 0.0));
            if let Some(confirming) = &mut timed.confirming {
                confirming.add((observed(&self.ours, Some(&plan))?, 0.0));
            }
        }
        Ok(timed)
    }
}

fn launch(program: &Path, scale: u32) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n", RANKS]).arg(program).arg(scale.to_string());
    surround(&mut command);
    command
}

fn surround(command: &mut Command) {
    // Containers run as root, which Open MPI refuses unless told twice.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
}

fn succeeded(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// The seconds that a kernel says it took. It may end with a failure: some have harmful races.
fn took(command: &mut Command) -> Result<f64, String> {
    let output =
        command.env("KERNEL_TIME", "1").output().map_err(|e| format!("{command:?}: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let seconds = said.lines().find_map(|line| line.strip_prefix("kernel ")?.parse().ok());
    seconds.ok_or_else(|| format!("{command:?} ended with {}: {said}", output.status))
}
