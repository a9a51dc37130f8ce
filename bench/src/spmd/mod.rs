//! Races across ranks: the kernels of table 8.1 of the thesis, with 4 ranks, and what the analysis sends and keeps
//! ([`growth`]), what sampling saves ([`sampling`]), and how fast its store is ([`store`]).
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
use crate::place::{Place, exit_code, source};

mod growth;
mod sampling;
mod store;

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
    // Memory and time of a phase grow with every lock in it: with a scale of 6 it did not end within five minutes.
    row("psearch", 1, (3, 2), (1.018, Some(1.038))),
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

const RANKS: u32 = 4;

/// `spmd [ROUNDS] [KERNEL…]`, `spmd [ROUNDS] --sampling [KERNEL…]`, `spmd --growth`, `spmd --store`.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    if args == ["--store"] {
        return exit_code(store::measure());
    }
    let (rounds, rest) = match args.split_first() {
        Some((first, rest)) if first.parse::<usize>().is_ok() => (first.parse().unwrap_or(5), rest),
        _ => (5, args),
    };
    exit_code(with_library(|place, here, library| match rest {
        ["--growth"] => growth::measure(place, here, library),
        ["--sampling", names @ ..] => sampling::measure(rounds, names, place, here, library),
        names => measure(rounds, names, place, here, library),
    }))
}

/// Does something in a directory of its own, with the library that is preloaded into ranks.
fn with_library(f: impl FnOnce(&Place, &Path, &Path) -> Result<(), String>) -> Result<(), String> {
    let place = Place::new("spmd")?;
    let here = std::env::current_dir().map_err(|e| e.to_string())?;
    let library =
        layer::library(&here, "mpicc", Interface::Mpi).map_err(|error| error.to_string())?;
    f(&place, &here, &library)
}

fn measure(
    rounds: usize,
    names: &[&str],
    place: &Place,
    here: &Path,
    library: &Path,
) -> Result<(), String> {
    println!(
        "{:<9} {:>11} {:>11}  {:>18} {:>10} {:>11}  {:>8} {:>8}",
        "kernel", "predicted", "confirmed", "verdicts", "calls", "and memory", "(thesis)", "native"
    );
    let wanted = |row: &&Row| names.is_empty() || names.contains(&row.kernel);
    let mut wrong = Vec::new();
    for row in TABLE.iter().filter(wanted) {
        let built = Built::new(place, here, row.kernel)?;
        let counted = built.count(place)?;
        if (counted.predicted, counted.confirmed) != row.pairs {
            wrong.push(row.kernel);
        }
        let timed = built.time(row, rounds, here, library)?;
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
    fn new(place: &Place, here: &Path, name: &str) -> Result<Built, String> {
        let source = kernel(name);
        Ok(Built {
            native: build(place, here, &source, Form::Native)?,
            ours: build(place, here, &source, Form::Ours)?,
        })
    }

    fn count(&self, place: &Place) -> Result<Counted, String> {
        let mut command = Command::new(&place.selvedge);
        command.args(["test", "--format", "json", "--seed", "1", "--attempts", "8"]);
        // On a busy machine an execution may take longer than the usual patience.
        command.args(["--time", "20m", "--patience", "5m"]);
        command.args(["--", "mpirun", "--oversubscribe", "-n"]);
        surround(command.arg(RANKS.to_string()).arg(&self.ours));
        let output = command.output().map_err(|e| e.to_string())?;
        let report: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let confirmed = findings.iter().filter(|f| f["status"] == "confirmed").count();
        let verdicts: Vec<&str> = findings.iter().filter_map(|f| f["verdict"].as_str()).collect();
        Ok(Counted { predicted: findings.len(), confirmed, verdicts: verdicts.join(" ") })
    }

    fn time(&self, row: &Row, rounds: usize, here: &Path, library: &Path) -> Result<Timed, String> {
        let plan = here.join("plan");
        let ranks = Observed { ranks: RANKS, scale: row.scale, library, here };
        let observed = |program: &Path, plan: Option<&Path>| {
            let plan = plan.and_then(Path::to_str).map(|plan| ("SELVEDGE_SPMD_PLAN", plan));
            ranks.run(program, plan.as_slice())
        };
        let first = observed(&self.ours, None)?;
        let told = findings::read(&[&ranks.lines()]).map_err(|e| e.to_string())?;
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
            timed.native.add((took(&mut launch(&self.native, RANKS, row.scale))?, 0.0));
            timed.calls.add((observed(&self.native, None)?, 0.0));
            timed.observed.add((observed(&self.ours, None)?, 0.0));
            if let Some(confirming) = &mut timed.confirming {
                confirming.add((observed(&self.ours, Some(&plan))?, 0.0));
            }
        }
        Ok(timed)
    }
}

/// How a program is built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// By `mpicc`: only calls are seen.
    Native,
    /// By `selvedge mpicc`.
    Ours,
}

/// A kernel of table 8.1.
fn kernel(name: &str) -> PathBuf {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/spmd/tests/kernels");
    kernels.join(format!("{name}.c"))
}

fn build(place: &Place, here: &Path, source: &Path, form: Form) -> Result<PathBuf, String> {
    let (mut compiler, extension) = match form {
        Form::Native => (Command::new("mpicc"), "native"),
        Form::Ours => (Command::new(&place.selvedge), "ours"),
    };
    if form == Form::Ours {
        compiler.arg("mpicc");
    }
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let program = here.join(format!("{name}.{extension}"));
    succeeded(compiler.args(["-g", "-O2"]).arg(source).arg("-o").arg(&program)).map(|_| program)
}

/// Executions under observation, without the `selvedge` process.
struct Observed<'a> {
    ranks: u32,
    scale: u32,
    library: &'a Path,
    here: &'a Path,
}

impl Observed<'_> {
    /// The directory in which ranks leave what they find.
    fn lines(&self) -> PathBuf {
        self.here.join("lines")
    }

    /// Runs a program; returns the seconds that it says it took.
    fn run(&self, program: &Path, variables: &[(&str, &str)]) -> Result<f64, String> {
        // What an earlier execution left.
        let _ = std::fs::remove_dir_all(self.lines());
        std::fs::create_dir(self.lines()).map_err(|e| e.to_string())?;
        let mut command = launch(program, self.ranks, self.scale);
        // The C library's functions that Open MPI would patch are interposed.
        command.env("LD_PRELOAD", self.library).env("OMPI_MCA_memory", "^patcher");
        command.env("SELVEDGE_SPMD_DIR", self.lines()).envs(variables.iter().copied());
        took(&mut command)
    }
}

fn launch(program: &Path, ranks: u32, scale: u32) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n"]).arg(ranks.to_string());
    command.arg(program).arg(scale.to_string());
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
