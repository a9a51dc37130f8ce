//! `cargo xtask bench noninterference`: what the analyses of non-interference say of programs that are
//! meant to be deterministic, and what it costs.
//!
//! The kernels of `bench/noninterference`, after table 1 of SingleTrack (Sadowski, Freund and Flanagan,
//! ESOP 2009), are built natively and with `selvedge cc`, and run in turn: natively, under `races`, under
//! `determinism` with every function said to be deterministic, and under `atomicity` with every function
//! said to be atomic. Of the work queue only the tasks are. Figures are processor time, of the program and
//! of `selvedge` together, over the native time. Every kernel checks its own result.
//!
//! `views` needs every access recorded, so its verdict is taken at a small size.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::measure::{Runs, once};
use crate::passes;
use crate::place::{Place, exit_code, source, wanted};

const ROUNDS: usize = 3;
const MILLIONS: usize = 20;

struct Kernel {
    name: &'static str,
    /// Its functions that are said to be regions.
    pattern: &'static str,
    /// Whether it has a bug that `-DBUG` puts in.
    twin: bool,
    /// What SingleTrack's table 1 says of the program: slowdown under SingleTrack.
    paper: f64,
}

const fn kernel(name: &'static str, paper: f64) -> Kernel {
    Kernel { name, pattern: "*", twin: false, paper }
}

const KERNELS: [Kernel; 11] = [
    kernel("crypt", 18.5),
    kernel("lufact", 15.3),
    kernel("series", 1.2),
    Kernel { twin: true, ..kernel("sor", 7.7) },
    kernel("sparse", 24.6),
    kernel("moldyn", 18.6),
    kernel("montecarlo", 6.7),
    Kernel { twin: true, ..kernel("raytracer", 19.5) },
    kernel("quicksort", 5.9),
    kernel("matrixmult", 5.8),
    Kernel { pattern: "run", ..kernel("workqueue", 1.3) },
];

const COMPILERS: [&str; 2] = ["gcc", "clang-19"];

/// What is measured beside the native run.
const ANALYSES: [&str; 3] = ["races", "determinism", "atomicity"];

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let outcome = match args {
        ["passes"] => passes_only(MILLIONS),
        ["passes", n] => match n.parse() {
            Ok(n) => passes_only(n),
            Err(_) => return ExitCode::from(2),
        },
        ["pass", millions, pass] => match (millions.parse(), pass.parse()) {
            (Ok(millions), Ok(pass)) => {
                passes::run(millions, Some(pass));
                Ok(())
            }
            _ => return ExitCode::from(2),
        },
        [rounds, names @ ..] if rounds.parse::<usize>().is_ok_and(|n| n > 0) => {
            table(rounds.parse().unwrap_or(ROUNDS), names)
        }
        names => table(ROUNDS, names),
    };
    exit_code(outcome)
}

fn passes_only(millions: usize) -> Result<(), String> {
    passes::run(millions, None);
    Ok(())
}

fn table(rounds: usize, names: &[&str]) -> Result<(), String> {
    let kernels = wanted(&KERNELS, |k| k.name, names)?;
    let place = Place::new("noninterference")?;
    println!("warnings: two bugs are put in, sor's barrier and raytracer's lock (\"+ bug\")\n");
    println!("{:16} {:>12} {:>10} {:>6}", "kernel", "determinism", "atomicity", "views");
    for kernel in &kernels {
        kernel.verdicts(&place, false)?;
        if kernel.twin {
            kernel.verdicts(&place, true)?;
        }
    }
    println!("\nprocessor time over native, best of {rounds} alternating rounds (worst)\n");
    println!("{:12} {:>8} | {:^50} | {:^50}", "", "paper's", COMPILERS[0], COMPILERS[1]);
    let heads = ANALYSES.map(|a| format!("{a:>16}")).join(" ");
    println!("{:12} {:>8} | {heads} | {heads}", "kernel", "determ.");
    let mut logs = [[0.0; ANALYSES.len()]; COMPILERS.len()];
    for kernel in &kernels {
        let ratios = kernel.slowdowns(&place, rounds)?;
        let mut line = format!("{:12} {:>8.1}", kernel.name, kernel.paper);
        for (logs, ratios) in logs.iter_mut().zip(&ratios) {
            line.push_str(" |");
            for (log, (best, worst)) in logs.iter_mut().zip(ratios) {
                *log += best.ln();
                line.push_str(&format!(" {:>16}", format!("{best:.2} ({worst:.2})")));
            }
        }
        println!("{line}");
    }
    let mean = |log: &f64| format!("{:>16.2}", (log / kernels.len() as f64).exp());
    let means = logs.map(|c| c.iter().map(mean).collect::<Vec<_>>().join(" "));
    println!("{:12} {:>8} | {}", "geomean", "", means.join(" | "));
    if names.is_empty() {
        println!();
        passes::run(MILLIONS, None);
    }
    Ok(())
}

impl Kernel {
    fn source(&self) -> PathBuf {
        source("noninterference", self.name)
    }

    /// The words before the program that run it under an analysis.
    fn arguments(&self, analysis: &str) -> Vec<String> {
        let mut words = vec!["run".to_owned(), format!("--analyses={analysis}")];
        words.extend(match analysis {
            "determinism" => Some(format!("--deterministic={}", self.pattern)),
            "atomicity" => Some(format!("--atomic-methods={}", self.pattern)),
            _ => None,
        });
        words.push("--".to_owned());
        words
    }

    /// How many findings an analysis has in the program; an error if the program's result is wrong.
    fn findings(&self, place: &Place, analysis: &str, program: &Path) -> Result<usize, String> {
        let output = Command::new(&place.selvedge)
            .args(self.arguments(analysis))
            .arg(program)
            .env("NO_COLOR", "1")
            .output()
            .map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let counted = text.lines().find_map(|line| match line.split_once(" finding") {
            Some((number, _)) => number.parse().ok(),
            None => line.starts_with("nothing found").then_some(0),
        });
        counted.ok_or_else(|| format!("{}: {text}", program.display()))
    }

    fn verdicts(&self, place: &Place, bug: bool) -> Result<(), String> {
        let options: &[&str] = if bug { &["-O2", "-DBUG"] } else { &["-O2"] };
        let program = place.ours(&self.source(), COMPILERS[0], options)?;
        let tiny = place.ours(&self.source(), COMPILERS[0], &[options, &["-DTINY"]].concat())?;
        let name = format!("{}{}", self.name, if bug { " + bug" } else { "" });
        println!(
            "{name:16} {:>12} {:>10} {:>6}",
            self.findings(place, "determinism", &program)?,
            self.findings(place, "atomicity", &program)?,
            self.findings(place, "views", &tiny)?
        );
        Ok(())
    }

    /// By compiler, for each analysis: the ratio of the best runs, and of the worst to the best native.
    fn slowdowns(&self, place: &Place, rounds: usize) -> Result<Vec<Vec<(f64, f64)>>, String> {
        let programs = COMPILERS.map(|compiler| {
            Ok::<_, String>([
                place.native(&self.source(), compiler, &["-O2"])?,
                place.ours(&self.source(), compiler, &["-O2"])?,
            ])
        });
        let programs = programs.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut runs = vec![vec![Runs::default(); ANALYSES.len() + 1]; COMPILERS.len()];
        for _ in 0..rounds {
            for ([native, ours], runs) in programs.iter().zip(&mut runs) {
                runs[0].add(once(native, &[], &[0])?);
                for (runs, analysis) in runs[1..].iter_mut().zip(ANALYSES) {
                    let mut args = self.arguments(analysis);
                    args.push(ours.to_string_lossy().into_owned());
                    let args: Vec<&str> = args.iter().map(String::as_str).collect();
                    // Findings make it 1; a wrong result of the program would, too, but is checked
                    // where the verdicts are.
                    runs.add(once(&place.selvedge, &args, &[0, 1])?);
                }
            }
        }
        let ratios = |runs: &Vec<Runs>| {
            let native = runs[0].best();
            runs[1..].iter().map(|r| (r.best() / native, r.worst() / native)).collect()
        };
        Ok(runs.iter().map(ratios).collect())
    }
}
