//! `cargo xtask bench determinism`: what deterministic blocks say of programs that are meant to be deterministic,
//! beside table 3.1 of Burnim's *Specifying and testing parallelism*.
//!
//! Each program is one block with values. `selvedge test` runs it at a small size, resolves its races both ways, and
//! compares every execution with all others. Harmful is what changes an ensured value: the race of raytracer, whose
//! lock excludes no thread, and the order of two draws in pi. The cost of the values is processor time of the
//! instrumented program under `selvedge run`, with and without them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::measure::{Runs, once, succeed};

const ROUNDS: usize = 3;
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
    match table(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn table(names: &[&str]) -> Result<(), String> {
    let wanted = |p: &&Program| names.is_empty() || names.contains(&p.name);
    let programs: Vec<&Program> = PROGRAMS.iter().filter(wanted).collect();
    if programs.is_empty() {
        let all: Vec<&str> = PROGRAMS.iter().map(|p| p.name).collect();
        return Err(format!("programs: {}", all.join(" ")));
    }
    let place = Place::new()?;
    println!("races: found/harmful; differs: schedules until an ensured value differed\n");
    println!(
        "{:12} {:>5} {:>5} | {:^17} | {:^31} | {:>14}",
        "", "", "", "paper", "ours", "CPU with values"
    );
    println!(
        "{:12} {:>5} {:>5} | {:>8} {:>8} | {:>8} {:>10} {:>11} | {:>14}",
        "program",
        "lines",
        "spec",
        "races",
        "high-l.",
        "races",
        "high-level",
        "differs",
        "over without"
    );
    for program in programs {
        let source = std::fs::read_to_string(program.source()).map_err(|e| e.to_string())?;
        let spec = source.lines().filter(|l| l.trim_start().starts_with("SELVEDGE_")).count();
        let tested = place.test(program)?;
        let (best, worst) = place.cost(program)?;
        let pair = |(a, b): (u32, u32)| format!("{a}/{b}");
        println!(
            "{:12} {:>5} {:>5} | {:>8} {:>8} | {:>8} {:>10} {:>11} | {:>14}",
            program.name,
            source.lines().count(),
            spec,
            pair(program.races),
            pair(program.high_level),
            pair(tested.races),
            pair(tested.high_level),
            tested.differs.map_or("-".to_owned(), |n| n.to_string()),
            format!("{best:.3} ({worst:.3})"),
        );
    }
    Ok(())
}

/// What `selvedge test` says of a program.
struct Tested {
    races: (u32, u32),
    high_level: (u32, u32),
    differs: Option<u64>,
}

impl Program {
    fn source(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.folder);
        folder.join(format!("{}.c", self.name))
    }
}

/// Where everything is built and run.
struct Place {
    directory: PathBuf,
    selvedge: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Place {
    fn new() -> Result<Place, String> {
        let own = std::env::current_exe().map_err(|e| e.to_string())?;
        let selvedge = own.with_file_name("selvedge");
        if !selvedge.exists() {
            let build = "`cargo build --release -p selvedge-cli`";
            return Err(format!("the tool is not built; run {build}"));
        }
        let name = format!("selvedge-determinism-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(directory.join(".selvedge")).map_err(|e| e.to_string())?;
        std::env::set_current_dir(&directory).map_err(|e| e.to_string())?;
        Ok(Place { directory, selvedge })
    }

    fn build(&self, program: &Program, defines: &[&str]) -> Result<PathBuf, String> {
        let built = self.directory.join(format!("{}{}", program.name, defines.concat()));
        let mut command = Command::new(&self.selvedge);
        command.args(["cc", "-O2", "-g"]).args(defines).arg(program.source());
        succeed(command.args(["-lm", "-lpthread", "-o"]).arg(&built))?;
        Ok(built)
    }

    fn test(&self, program: &Program) -> Result<Tested, String> {
        let defines: Vec<&str> = ["-DBLOCKS", "-DTINY"].into_iter().chain(program.define).collect();
        let built = self.build(program, &defines)?;
        let output = Command::new(&self.selvedge)
            .args(["test", "--format", "json", "--schedules", SCHEDULES, "--"])
            .arg(&built)
            .output()
            .map_err(|e| e.to_string())?;
        let document: Value = serde_json::from_slice(&output.stdout).map_err(|e| {
            format!("{}: {e}: {}", program.name, String::from_utf8_lossy(&output.stderr))
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
    fn cost(&self, program: &Program) -> Result<(f64, f64), String> {
        let with = self.build(program, &["-DBLOCKS"])?;
        let without = self.build(program, &[])?;
        let mut runs = [Runs::default(), Runs::default()];
        for _ in 0..ROUNDS {
            for (runs, built) in runs.iter_mut().zip([&with, &without]) {
                let built = built.to_string_lossy();
                // 1: races that do no harm are there; 3: a first run has nothing to compare itself with.
                runs.add(once(&self.selvedge, &["run", "--", &built], &[0, 1, 3])?);
            }
        }
        let [with, without] = runs;
        Ok((with.best() / without.best(), with.worst() / without.best()))
    }
}
