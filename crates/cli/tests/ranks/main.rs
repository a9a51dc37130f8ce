//! Every program of the MPI corpus and of the OpenSHMEM corpus, buggy and fixed, gives exactly the marked findings.
//!
//! `// race(NAME)` marks the two lines of an observed race (or the one line that races with itself),
//! `// predicted(NAME)` those of a predicted one, and `// ranks N` says how many ranks to start. The fixed twin
//! (`-DFIXED`) must have no finding and succeed.
//!
//! Each program and twin is a test of its own, named `put_load.c::fixed`. `CORPUS_RUNS=10` runs each of them ten times
//! (`cargo xtask corpus 10`), from the second run on with random delays in ranks, and every run must give the same.
//!
//! `put_load.c::confirmed` tests the program: `selvedge test` must confirm every marked race, except one with the mark
//! `// race(NAME) unmet`, which it must not, and one with `// race(NAME) chance`, which it may: a loop that polls a
//! flag soon stops waiting, and whether the put comes before that is chance. `put_load.c::unmet` runs the twin, and
//! there every access waits for every other one: no two may be in flight at once. These take many executions, so only
//! the programs in [`DIRECTED`] have them, and all have them if `CORPUS_RUNS` is set.
//!
//! Where Debian's MPICH is installed, the programs in [`SAMPLE`] are run under it as well.

mod faults;
mod kernels;
mod sampled;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;

use libtest_mimic::{Arguments, Failed, Trial};
use selvedge_spmd::layer::{self, Interface};
use selvedge_spmd::{Plan, findings};
use serde_json::Value;

/// Status and lines of a finding.
type Found = BTreeSet<(String, Vec<u64>)>;

fn main() -> ExitCode {
    let args = Arguments::from_args();
    let asked = std::env::var("CORPUS_RUNS").ok();
    let runs = asked.as_ref().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut corpora = vec![MPI, SHMEM];
    match Command::new(MPICH.compiler).arg("-show").output() {
        Ok(_) => corpora.push(MPICH),
        Err(_) => eprintln!("there is no {}: MPICH is not tested", MPICH.compiler),
    }
    let sources = corpora.iter().flat_map(sources);
    let mut trials: Vec<Trial> = Vec::new();
    for (of, source) in sources {
        let file = source.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{}{file}", of.prefix);
        for fixed in [false, true] {
            let twin = if fixed { "fixed" } else { "buggy" };
            let source = source.clone();
            let check = move || check(of, &source, fixed, runs).map_err(Failed::from);
            trials.push(Trial::test(format!("{name}::{twin}"), check));
        }
        if of.only.is_some() || asked.is_none() && !DIRECTED.contains(&&*name) {
            continue;
        }
        let buggy = source.clone();
        let check = move || confirmed(of, &buggy, runs).map_err(Failed::from);
        trials.push(Trial::test(format!("{name}::confirmed"), check));
        let check = move || unmet(of, &source, runs).map_err(Failed::from);
        trials.push(Trial::test(format!("{name}::unmet"), check));
    }
    trials.push(Trial::test("a_confirmed_race_is_replayed", || replayed().map_err(Failed::from)));
    trials.push(Trial::test("flattened_types_are_what_mpi_packs", || {
        flattened().map_err(Failed::from)
    }));
    trials.extend(faults::trials());
    trials.extend(sampled::trials());
    trials.extend(kernels::trials(asked.is_some()));
    libtest_mimic::run(&args, trials).exit_code()
}

/// The programs whose races are always confirmed: of two calls, of a call and a load, of a buffer, under locks, between
/// post and wait, after a flag.
const DIRECTED: [&str; 10] = [
    "accumulate_and_load.c",
    "accumulate_and_put.c",
    "isend_buffer.c",
    "lock_then_load.c",
    "polling.c",
    "pscw_wait.c",
    "shmem_flag_without_fence.c",
    "shmem_get_nbi_result.c",
    "shmem_put_nbi_and_load.c",
    "shmem_two_locks.c",
];

/// The programs that are run under MPICH, too: what implementations differ in (handles, types, shared and dynamic
/// windows, requests).
const SAMPLE: [&str; 6] = [
    "accumulate_types.c",
    "dynamic_window.c",
    "pscw_wait.c",
    "put_load.c",
    "rput_wait.c",
    "shared_window.c",
];

/// A corpus: how its programs are called, where they are, and what compiles and starts them.
#[derive(Clone, Copy)]
struct Corpus {
    prefix: &'static str,
    directory: &'static str,
    compiler: &'static str,
    launcher: &'static str,
    /// The launcher starts more ranks than there are processors.
    options: &'static [&'static str],
    interface: Interface,
    /// Its programs, if not all that are there.
    only: Option<&'static [&'static str]>,
}

const MPI: Corpus = Corpus {
    prefix: "",
    directory: "../spmd/tests/corpus",
    compiler: "mpicc",
    launcher: "mpirun",
    options: &["--oversubscribe"],
    interface: Interface::Mpi,
    only: None,
};

const MPICH: Corpus = Corpus {
    prefix: "mpich_",
    compiler: "mpicc.mpich",
    launcher: "mpirun.mpich",
    options: &[],
    only: Some(&SAMPLE),
    ..MPI
};

const SHMEM: Corpus = Corpus {
    prefix: "shmem_",
    directory: "../spmd/tests/shmem",
    compiler: "oshcc",
    launcher: "oshrun",
    interface: Interface::Shmem,
    ..MPI
};

fn sources(of: &Corpus) -> Vec<(Corpus, PathBuf)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join(of.directory);
    let files = std::fs::read_dir(&corpus).expect("the corpus is there");
    let mut sources: Vec<PathBuf> = files
        .map(|f| f.expect("a file").path())
        .filter(|p| p.extension().is_some_and(|e| e == "c"))
        .filter(|p| of.only.is_none_or(|only| only.iter().any(|name| p.ends_with(name))))
        .collect();
    sources.sort();
    sources.into_iter().map(|source| (*of, source)).collect()
}

/// A directory of its own, which is deleted at the end, and one for the launcher: launchers that start at the same
/// time fail if they find each other's directories half made. Its path is short, because sockets are in it.
struct Place(PathBuf, PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ranks-{name}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the target directory is writable");
        let launchers = std::env::temp_dir().join(format!("sv{}-{name}", std::process::id()));
        std::fs::create_dir_all(&launchers).expect("the temporary directory is writable");
        Place(path, launchers)
    }

    fn selvedge(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.args(args).current_dir(&self.0);
        self.surround(&mut command);
        command
    }

    fn surround(&self, command: &mut Command) {
        command.env("OMPI_MCA_orte_tmpdir_base", &self.1);
        // Containers run tests as root, which Open MPI refuses unless told twice.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }

    fn compile(&self, compiler: &[&str], source: &Path, fixed: bool) -> Result<(), String> {
        let include = source.parent().unwrap_or(Path::new("."));
        let mut command = match compiler {
            ["selvedge", rest @ ..] => self.selvedge(rest),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).current_dir(&self.0);
                command
            }
            [] => return Err("no compiler".into()),
        };
        command.args(["-g", "-O1", "-pthread", "-I"]).arg(include).arg(source).args(["-o", "prog"]);
        command.args(fixed.then_some("-DFIXED"));
        let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{command:?}:\n{}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn run(&self, of: Corpus, ranks: &str, delays: Option<usize>) -> Result<Output, String> {
        let mut command = self.selvedge(&["run", "--format", "json", "--", of.launcher]);
        command.args(of.options).args(["-n", ranks, "./prog"]);
        if let Some(seed) = delays {
            command.env("CORPUS_DELAYS", seed.to_string());
        }
        command.output().map_err(|e| format!("{command:?}: {e}"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        let _ = std::fs::remove_dir_all(&self.1);
    }
}

fn check(of: Corpus, source: &Path, fixed: bool, runs: usize) -> Result<(), String> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let place = Place::new(&format!("{}{name}-{fixed}", of.prefix));
    let text = std::fs::read_to_string(source).map_err(|e| e.to_string())?;
    let ranks = ranks_of(&text);
    let expected = if fixed { Found::new() } else { marked(&text) };
    place.compile(&["selvedge", of.compiler], source, fixed)?;
    for number in 1..=runs {
        let output = place.run(of, &ranks, (number > 1).then_some(number))?;
        let found = found(&output)?;
        if found != expected {
            return Err(format!(
                "expected {expected:?} and found {found:?} in run {number} of {runs}"
            ));
        }
        if fixed && !output.status.success() {
            return Err(format!("ended with {}", output.status));
        }
    }
    Ok(())
}

fn ranks_of(text: &str) -> String {
    text.split_whitespace().nth(2).unwrap_or("3").to_owned()
}

impl Place {
    /// Tests the program that was compiled here.
    fn test(&self, of: Corpus, ranks: &str, seed: usize) -> Result<Output, String> {
        let seed = seed.to_string();
        let test =
            ["test", "--format", "json", "--seed", &seed, "--attempts", "8", "--time", "10m"];
        let mut command = self.selvedge(&test);
        command.args(["--", of.launcher]).args(of.options).args(["-n", ranks, "./prog"]);
        command.output().map_err(|e| format!("{command:?}: {e}"))
    }
}

/// Every marked race is confirmed, or, if it cannot be, not.
fn confirmed(of: Corpus, source: &Path, runs: usize) -> Result<(), String> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let place = Place::new(&format!("{}{name}-test", of.prefix));
    let text = std::fs::read_to_string(source).map_err(|e| e.to_string())?;
    place.compile(&["selvedge", of.compiler], source, false)?;
    let has = |lines: &[u64], word: &str| {
        let line = |n: &u64| text.lines().nth(*n as usize - 1).unwrap_or_default();
        lines.iter().any(|n| line(n).contains(word))
    };
    let expected: Found = marked(&text)
        .into_iter()
        .map(|(status, lines)| {
            let status = match (status.as_str(), has(&lines, ") unmet")) {
                ("predicted", true) => "unconfirmed".to_owned(),
                (_, true) => status,
                (_, false) => "confirmed".to_owned(),
            };
            (status, lines)
        })
        .collect();
    for seed in 1..=runs {
        let output = place.test(of, &ranks_of(&text), seed)?;
        let found: Found = found(&output)?
            .into_iter()
            .map(|(status, lines)| match status.as_str() {
                "observed" if has(&lines, ") chance") => ("confirmed".to_owned(), lines),
                _ => (status, lines),
            })
            .collect();
        if found != expected {
            return Err(format!("expected {expected:?} and found {found:?} with seed {seed}"));
        }
    }
    Ok(())
}

/// In the twin no two accesses that conflict are ever in flight at once, whoever waits for whom.
fn unmet(of: Corpus, source: &Path, runs: usize) -> Result<(), String> {
    let name = source.file_stem().unwrap_or_default().to_string_lossy();
    let place = Place::new(&format!("{}{name}-unmet", of.prefix));
    let text = std::fs::read_to_string(source).map_err(|e| e.to_string())?;
    place.compile(&["selvedge", of.compiler], source, true)?;
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = {
        // Tests run at the same time in one process, and each would build it in the same directory.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _held = ONE_AT_A_TIME.lock();
        layer::library(cache, of.compiler, of.interface).map_err(|e| e.to_string())?
    };
    for seed in 1..=runs as u64 {
        let plan = Plan { seed, pause: 5_000, all: true, ..Plan::default() };
        let file = place.0.join("plan");
        std::fs::write(&file, plan.text()).map_err(|e| e.to_string())?;
        let lines = place.0.join(format!("lines-{seed}"));
        std::fs::create_dir(&lines).map_err(|e| e.to_string())?;
        let mut command = Command::new(of.launcher);
        command.args(of.options).args(["-n", &ranks_of(&text), "./prog"]).current_dir(&place.0);
        place.surround(&mut command);
        command.env("LD_PRELOAD", &library).env("OMPI_MCA_memory", "^patcher");
        command.env("SELVEDGE_SPMD_DIR", &lines).env("SELVEDGE_SPMD_PLAN", &file);
        let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
        let told = findings::read(&[&lines]).map_err(|e| e.to_string())?;
        if !output.status.success() || !told.job.is_some_and(|job| job.finalized) {
            return Err(format!("ended with {}", output.status));
        }
        if !told.met.is_empty() {
            return Err(format!("seed {seed}: {:?}", told.met));
        }
    }
    Ok(())
}

/// The layer takes derived types apart as MPI does: a program of the layer's own part compares them.
fn flattened() -> Result<(), String> {
    let place = Place::new("flattened");
    let spmd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spmd");
    let types = spmd.join("c/types.c");
    let types = types.to_str().ok_or("a path that is no text")?;
    place.compile(&["mpicc", types], &spmd.join("tests/types.c"), false)?;
    let mut command = Command::new("mpirun");
    command.args(["-n", "1", "./prog"]).current_dir(&place.0);
    place.surround(&mut command);
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stdout).into_owned()),
    }
}

/// A race that `selvedge test` has confirmed happens again.
fn replayed() -> Result<(), String> {
    let place = Place::new("replayed");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spmd/tests/corpus/put_load.c");
    place.compile(&["selvedge", "mpicc"], &source, false)?;
    let output = place.test(MPI, "3", 1)?;
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    let id = report["findings"][0]["id"].as_str().unwrap_or("none").to_owned();
    let output = place.selvedge(&["replay", &id]).output().map_err(|e| e.to_string())?;
    says(&output, 1, "the finding happened again: data race")?;
    // Built again without the race, it does not happen.
    place.compile(&["selvedge", "mpicc"], &source, true)?;
    let output = place.selvedge(&["replay", &id]).output().map_err(|e| e.to_string())?;
    says(&output, 0, "the finding did not happen")
}

/// The findings that the marks in a source call for.
fn marked(text: &str) -> Found {
    let mut lines: BTreeMap<(&str, &str), Vec<u64>> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        for (mark, status) in [("// race(", "observed"), ("// predicted(", "predicted")] {
            if let Some(name) = line.split(mark).nth(1).and_then(|rest| rest.split(')').next()) {
                lines.entry((status, name)).or_default().push(number);
            }
        }
    }
    let pair = |mut lines: Vec<u64>| {
        if let [line] = lines[..] {
            lines.push(line);
        }
        lines
    };
    lines.into_iter().map(|((status, _), lines)| (status.to_owned(), pair(lines))).collect()
}

fn found(output: &Output) -> Result<Found, String> {
    let broken = || format!("no report:\n{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|_| broken())?;
    let findings = report["findings"].as_array().ok_or_else(broken)?;
    let finding = |f: &Value| {
        let sites = f["sites"].as_array().cloned().unwrap_or_default();
        let mut lines: Vec<u64> = sites.iter().filter_map(|s| s["line"].as_u64()).collect();
        lines.sort_unstable();
        (f["status"].as_str().unwrap_or("").to_owned(), lines)
    };
    Ok(findings.iter().map(finding).collect())
}

/// Whether a command ended with a code and said something.
fn says(output: &Output, code: i32, text: &str) -> Result<(), String> {
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() == Some(code) && said.contains(text) {
        true => Ok(()),
        false => Err(format!("ended with {}, and said:\n{said}", output.status)),
    }
}
