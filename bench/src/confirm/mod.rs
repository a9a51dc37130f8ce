//! `cargo xtask bench confirm [--quick] [--seeds=N] [--time=SECONDS] [--minutes=N] [--sizes=N,…] [--columns=NAME,…]
//! [PROGRAM…]`: does active testing work?
//!
//! Three tables about the bundled programs of `programs/`:
//! - how often plain runs show the bug, and how many schedules `selvedge test` needs until it has
//!   confirmed it, beside strategies of `selvedge explore` by themselves: medians and means over seeds, the
//!   geometric mean over the programs that all of them find, and what was confirmed in the fixed twins (nothing,
//!   or this fails), and where `test` takes more than twice the schedules of the best strategy. A program that names
//!   sizes in its head is measured in each of them, with `--quick` in the least and the largest. Executions of several
//!   seeds run side by side; a figure that takes longer than [`Effort::time`] (`--time`) has fewer seeds, and says so. So
//!   has one that takes longer than its part of [`Effort::whole`] (`--minutes`), the time of the whole table.
//!   `--schedules` measures this table only, and of it, `--columns` these columns only;
//! - as in section 6.4 of Park's *Active testing*: how likely each variant of DeadlockFuzzer creates the
//!   predicted deadlocks, how often it thrashes, and what it costs;
//! - schedules per second from the fork server, with one `exec` per schedule, and plain processes of the program
//!   without Selvedge, for few and for many threads.
//!
//! `confirm speed` measures the last table only. `confirm twins [--seeds=100]` measures only that nothing is confirmed in correct programs: the fixed twins, and the
//! programs of `programs/correct`, which poll.

mod schedules;
mod speed;
mod twins;
mod variants;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A problem that keeps something from being measured.
type Result<T> = std::result::Result<T, String>;

/// How much is measured.
#[derive(Clone, Copy)]
struct Effort {
    plain: u32,
    seeds: u64,
    /// Seeds of the fixed twins.
    twins: u64,
    /// Whether programs are measured in every size.
    sizes: bool,
    schedules: u64,
    executions: u64,
    /// How long one figure may take; that of `test` three times as long.
    time: Duration,
    /// How long the table of schedules may take.
    whole: Duration,
}

const FULL: Effort = Effort {
    plain: 100,
    seeds: 20,
    twins: 2,
    sizes: true,
    schedules: 300,
    executions: 100,
    time: Duration::from_secs(6),
    whole: Duration::from_secs(40 * 60),
};
const QUICK: Effort = Effort {
    plain: 20,
    seeds: 3,
    twins: 1,
    sizes: false,
    schedules: 100,
    executions: 20,
    time: Duration::from_secs(4),
    whole: Duration::from_secs(10 * 60),
};
/// Of each seed of a correct program.
const TWIN_SCHEDULES: u64 = 60;

/// Where everything is.
struct Workshop {
    directory: PathBuf,
    selvedge: PathBuf,
}

/// One of the bundled programs, in one of its sizes.
#[derive(Clone)]
struct Program {
    name: String,
    source: PathBuf,
    /// Its argument, if it has sizes.
    size: Option<String>,
}

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let quick = args.contains(&"--quick");
    let mut names: Vec<&str> = args.iter().copied().filter(|a| !a.starts_with("--")).collect();
    let mut effort = if quick { QUICK } else { FULL };
    let value = |option| args.iter().find_map(|a: &&str| a.strip_prefix(option));
    let twins = names.first() == Some(&"twins");
    let speed = names.first() == Some(&"speed");
    if twins {
        names.remove(0);
        effort.seeds = if quick { 3 } else { 100 };
        (effort.schedules, effort.sizes) = (TWIN_SCHEDULES, false);
    }
    effort.seeds = value("--seeds=").and_then(|n| n.parse().ok()).unwrap_or(effort.seeds);
    if let Some(seconds) = value("--time=").and_then(|n| n.parse().ok()) {
        effort.time = Duration::from_secs(seconds);
    }
    if let Some(minutes) = value("--minutes=").and_then(|n| n.parse::<u64>().ok()) {
        effort.whole = Duration::from_secs(60 * minutes);
    }
    let list = |option| value(option).map(|list| list.split(',').collect::<Vec<_>>());
    let (sizes, columns) = (list("--sizes="), list("--columns="));
    let only = args.contains(&"--schedules") || columns.is_some();
    let columns = columns.unwrap_or(schedules::COLUMNS.to_vec());
    let outcome = match (twins, speed) {
        (true, _) => measure_twins(effort, &names),
        (_, true) => measure_speed(effort),
        _ => measure(effort, (&names, sizes.as_deref()), &columns, only),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(
    effort: Effort,
    (names, sizes): (&[&str], Option<&[&str]>),
    columns: &[&str],
    only: bool,
) -> Result<bool> {
    let workshop = Workshop::new()?;
    let all: Vec<Program> = programs(&folder(), names)?
        .into_iter()
        .flat_map(|p| p.in_sizes(sizes, effort.sizes))
        .collect();
    let honest = schedules::measure(&workshop, &all, columns, effort)?;
    if !only {
        variants::measure(&workshop, effort)?;
        speed::measure(&workshop, effort)?;
    }
    let _ = std::fs::remove_dir_all(&workshop.directory);
    Ok(honest)
}

fn measure_speed(effort: Effort) -> Result<bool> {
    let workshop = Workshop::new()?;
    speed::measure(&workshop, effort)?;
    let _ = std::fs::remove_dir_all(&workshop.directory);
    Ok(true)
}

fn measure_twins(effort: Effort, names: &[&str]) -> Result<bool> {
    let workshop = Workshop::new()?;
    let fixed = programs(&folder(), names).unwrap_or_default();
    let fixed = fixed.into_iter().flat_map(|p| p.in_sizes(None, false)).map(|p| (p, true));
    let correct = programs(&folder().join("correct"), names).unwrap_or_default();
    let all: Vec<(Program, bool)> = correct.into_iter().map(|p| (p, false)).chain(fixed).collect();
    if all.is_empty() {
        return Err("no program has that name".into());
    }
    let honest = twins::measure(&workshop, &all, effort)?;
    let _ = std::fs::remove_dir_all(&workshop.directory);
    Ok(honest)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs")
}

fn programs(folder: &Path, names: &[&str]) -> Result<Vec<Program>> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("programs: {e}"))?;
    let mut list: Vec<Program> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "c" || e == "cpp" || e == "rs"))
        .filter_map(|source| {
            let name = source.file_stem()?.to_str()?.to_owned();
            Some(Program { name, source, size: None })
        })
        .filter(|p| names.is_empty() || names.contains(&p.name.as_str()))
        .collect();
    list.sort_by(|a, b| a.name.cmp(&b.name));
    if list.is_empty() { Err("no program has that name".into()) } else { Ok(list) }
}

impl Workshop {
    fn new() -> Result<Workshop> {
        let own = std::env::current_exe().map_err(|e| e.to_string())?;
        let selvedge = own.with_file_name("selvedge");
        if !selvedge.exists() {
            return Err(format!("{} is missing; run `cargo build --release`", selvedge.display()));
        }
        let directory =
            std::env::temp_dir().join(format!("selvedge-confirm-{}", std::process::id()));
        std::fs::create_dir_all(directory.join(".selvedge")).map_err(|e| e.to_string())?;
        Ok(Workshop { directory, selvedge })
    }

    /// What `once` says of each seed, on all cores; fewer seeds if they take too long.
    fn seeds<T: Send>(
        &self,
        effort: Effort,
        once: impl Fn(&Path, u64) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (next, begin) = (AtomicU64::new(0), Instant::now());
        let results = Mutex::new(Vec::new());
        let work = |worker: usize| {
            let directory = self.directory.join(format!("worker-{worker}"));
            while begin.elapsed() < effort.time {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= effort.seeds {
                    break;
                }
                let result = once(&directory, seed);
                results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            (0..cores).for_each(|worker| drop(scope.spawn(move || work(worker))));
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
    }

    /// What a command says of a program, in a store of its own: what one seed has learnt is no help to the next.
    fn report(
        &self,
        (directory, args): (&Path, &[&str]),
        (file, program): (&Path, &Program),
        (seed, schedules): (u64, u64),
    ) -> Result<Value> {
        let store = directory.join(".selvedge");
        let _ = std::fs::remove_dir_all(&store);
        std::fs::create_dir_all(&store).map_err(|e| e.to_string())?;
        let mut command = Command::new(&self.selvedge);
        command.current_dir(directory).args(args).stdin(Stdio::null());
        command.args(["--format", "json", "--fail-on", "never", "--jobs", "1", "--time", "20s"]);
        command.args(["--seed", &seed.to_string(), "--schedules", &schedules.to_string()]);
        command.arg("--").arg(file).args(&program.size);
        let output = command.output().map_err(|e| e.to_string())?;
        serde_json::from_slice(&output.stdout)
            .map_err(|e| format!("{command:?}: {e}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// What is confirmed in a program that has no bug.
    fn confirmed(
        &self,
        directory: &Path,
        program: (&Path, &Program),
        (seed, schedules): (u64, u64),
    ) -> Result<usize> {
        let report = self.report((directory, &["test"]), program, (seed, schedules))?;
        let confirmed = |f: &&Value| f["status"] == "confirmed" || f["status"] == "observed";
        Ok(findings(&report).iter().filter(confirmed).count())
    }

    /// The program without anything of ours.
    fn plain(&self, program: &Program) -> Result<PathBuf> {
        let into = self.directory.join(format!("{}.plain", program.name));
        let mut command = match program.language() {
            "rs" => {
                let mut rustc = Command::new("rustc");
                rustc.args(["--edition", "2024", "-O", "-Awarnings"]);
                rustc
            }
            language => {
                let mut cc = Command::new(if language == "c" { "cc" } else { "c++" });
                cc.args(["-O1", "-pthread", "-DSELVEDGE_DISABLE"]).arg("-I").arg(include());
                cc
            }
        };
        succeed(command.arg(&program.source).arg("-o").arg(&into))?;
        Ok(into)
    }

    /// The program as a user builds it.
    fn instrumented(&self, program: &Program, fixed: bool) -> Result<PathBuf> {
        if program.language() == "rs" {
            return self.instrumented_rust(program, fixed);
        }
        let twin = if fixed { "fixed" } else { "buggy" };
        let into = self.directory.join(format!("{}.{twin}", program.name));
        let compiler = if program.language() == "c" { "cc" } else { "c++" };
        let mut command = Command::new(&self.selvedge);
        command.args([compiler, "-g", "-O1", "-pthread"]).arg("-I").arg(include());
        if fixed {
            command.arg("-DFIXED");
        }
        succeed(command.arg(&program.source).arg("-o").arg(&into))?;
        Ok(into)
    }

    fn instrumented_rust(&self, program: &Program, fixed: bool) -> Result<PathBuf> {
        let twin = if fixed { "fixed" } else { "buggy" };
        let name = format!("{}_{twin}", program.name);
        let package = self.directory.join(&name);
        let write = |path: &str, text: &str| {
            let path = package.join(path);
            let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            folder.and_then(|()| std::fs::write(&path, text)).map_err(|e| e.to_string())
        };
        write(
            "Cargo.toml",
            &format!(
                "[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n[profile.dev]\nopt-level = 1\n"
            ),
        )?;
        let source = std::fs::read_to_string(&program.source).map_err(|e| e.to_string())?;
        write("src/main.rs", &source)?;
        let cfg = if fixed { "println!(\"cargo::rustc-cfg=fixed\");" } else { "" };
        let check = "println!(\"cargo::rustc-check-cfg=cfg(fixed)\");";
        write("build.rs", &format!("fn main() {{ {check} {cfg} }}\n"))?;
        let mut build = Command::new(self.selvedge.with_file_name("cargo-selvedge"));
        let target = package.join("target");
        build.args(["selvedge", "build"]).current_dir(&package).env("CARGO_TARGET_DIR", &target);
        succeed(&mut build)?;
        find(&target, &name).ok_or(format!("{name} was not built"))
    }
}

impl Program {
    /// The program in every size that its head names, of those that are wanted; if `all` is not, in the least and the
    /// largest.
    fn in_sizes(self, wanted: Option<&[&str]>, all: bool) -> Vec<Program> {
        let text = std::fs::read_to_string(&self.source).unwrap_or_default();
        let Some(line) = text.lines().find_map(|line| line.strip_prefix("// Sizes: ")) else {
            return vec![self];
        };
        let sizes = line.split_whitespace().filter(|s| wanted.is_none_or(|w| w.contains(s)));
        let sizes: Vec<&str> = sizes.collect();
        let is_end = |at: usize| at == 0 || at + 1 == sizes.len();
        let chosen = sizes.iter().enumerate().filter(|(at, _)| all || is_end(*at));
        let sized = |size: &str| Program { size: Some(size.to_owned()), ..self.clone() };
        chosen.map(|(_, size)| sized(size)).collect()
    }

    /// What it is called in a table.
    fn title(&self) -> String {
        self.size.as_ref().map_or(self.name.clone(), |size| format!("{} {size}", self.name))
    }

    fn language(&self) -> &str {
        self.source.extension().and_then(|e| e.to_str()).unwrap_or("c")
    }
}

fn findings(report: &Value) -> &[Value] {
    report["findings"].as_array().map_or(&[], Vec::as_slice)
}

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/runtime/include")
}

/// The executable of that name below a directory of cargo's.
fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    let mut open = vec![directory.to_owned()];
    while let Some(at) = open.pop() {
        let profile = at.file_name().is_some_and(|n| n == "debug" || n == "release");
        if profile && at.join(name).is_file() {
            return Some(at.join(name));
        }
        let entries = std::fs::read_dir(&at).ok()?;
        open.extend(entries.flatten().map(|e| e.path()).filter(|p| p.is_dir()));
    }
    None
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// The middle value of a list.
fn median<T: Copy + Ord>(list: &mut [T]) -> Option<T> {
    list.sort_unstable();
    list.get(list.len() / 2).copied()
}
