//! `cargo xtask bench tsan`: what the two ThreadSanitizers say about the corpus.
//!
//! The corpus (`crates/runtime/tests/corpus`) marks the lines of every race, and its test demands that
//! we report exactly those. Here the same programs run with each compiler's own ThreadSanitizer. A race
//! that it reports in a buggy program and that is not marked is one that we miss, and fails. What it
//! reports in a fixed twin is a false alarm of its own, and is listed; so are marked races that it does
//! not see in the runs it gets.
//!
//! OpenMP programs run with clang's ThreadSanitizer and Archer, which tells it what OpenMP orders. How many of
//! them it judges rightly is counted; its false alarms do not fail, because the corpus test says what is true.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const COMPILERS: [(&str, &str, &str); 2] =
    [("gcc", "gcc", "g++"), ("clang", "clang-19", "clang++-19")];

/// Clang's tool for OpenMP programs.
const ARCHER: &str = "/usr/lib/llvm-19/lib/libarcher.so";

/// What was reported of pairs of programs.
#[derive(Default)]
struct Verdicts {
    /// Buggy programs of which every marked race was reported, and all.
    found: [usize; 2],
    /// Fixed programs of which anything was reported.
    alarms: usize,
}

impl Verdicts {
    fn print(&self, what: &str) {
        let [found, all] = self.found;
        let ratio = |a: usize, b: usize| a as f64 / b.max(1) as f64;
        println!(
            "{what}: {all} pairs, precision {:.2}, recall {:.2}",
            ratio(found, found + self.alarms),
            ratio(found, all)
        );
    }
}

/// What was seen of one program in all its runs.
#[derive(Default)]
struct Seen {
    marked: BTreeSet<String>,
    /// Pairs of lines that no mark explains.
    other: BTreeSet<String>,
}

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let runs = args.first().and_then(|n| n.parse().ok()).unwrap_or(3);
    let (mut beyond, mut alarms, mut openmp) = (0, 0, Verdicts::default());
    println!("{:24} {:8} {:>6} {:>8}  remarks", "program", "compiler", "marked", "reported");
    for source in sources() {
        for (name, c, cpp) in COMPILERS {
            let openmp = is_openmp(&source).then_some(&mut openmp);
            if openmp.is_some() && (name != "clang" || !Path::new(ARCHER).exists()) {
                continue;
            }
            match check(&source, name, if is_cpp(&source) { cpp } else { c }, runs, openmp) {
                Ok([in_buggy, in_fixed]) => {
                    beyond += in_buggy;
                    alarms += in_fixed;
                }
                Err(problem) => {
                    eprintln!("{problem}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    println!("\nreported by ThreadSanitizer in buggy programs and not marked: {beyond}");
    println!("reported by ThreadSanitizer in fixed programs: {alarms}");
    openmp.print("OpenMP, ThreadSanitizer with Archer");
    if beyond == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn sources() -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/runtime/tests/corpus");
    let files = std::fs::read_dir(&corpus).into_iter().flatten().flatten().map(|e| e.path());
    let mut list: Vec<PathBuf> =
        files.filter(|p| p.extension().is_some_and(|e| e == "c" || e == "cpp")).collect();
    list.sort();
    list
}

fn is_openmp(source: &Path) -> bool {
    source.file_name().is_some_and(|n| n.to_string_lossy().starts_with("omp_"))
}

fn is_cpp(source: &Path) -> bool {
    source.extension().is_some_and(|e| e == "cpp")
}

/// Prints a row for the buggy program and one for the fixed one if anything was reported there. Returns
/// how many races have no mark, in the one and in the other; of an OpenMP program they are only counted in
/// `openmp`.
fn check(
    source: &Path,
    name: &str,
    compiler: &str,
    runs: usize,
    mut openmp: Option<&mut Verdicts>,
) -> Result<[usize; 2], String> {
    let text = std::fs::read_to_string(source).map_err(|e| e.to_string())?;
    let file = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let directory = std::env::temp_dir().join(format!("selvedge-tsan-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
    let marked = marks(&text);
    let mut beyond = [0; 2];
    for fixed in [false, true] {
        let program = directory.join("program");
        build(source, compiler, fixed, &program)?;
        let mut seen = Seen::default();
        for _ in 0..runs {
            let mut command = Command::new("timeout");
            command.arg("60").arg(&program);
            if openmp.is_some() {
                command.env("OMP_TOOL_LIBRARIES", ARCHER);
                command.env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
            }
            let output = command.output().map_err(|e| e.to_string())?;
            reports(&String::from_utf8_lossy(&output.stderr), &file, &text, &mut seen);
        }
        let expected = if fixed { 0 } else { marked.len() };
        let missed: Vec<&String> = marked.difference(&seen.marked).filter(|_| !fixed).collect();
        let other: Vec<&String> =
            seen.other.iter().chain(seen.marked.iter().filter(|_| fixed)).collect();
        let mut remarks = Vec::new();
        if !missed.is_empty() {
            remarks.push(format!("not seen: {missed:?}"));
        }
        if !other.is_empty() {
            remarks.push(format!("not marked: {other:?}"));
        }
        match openmp.as_deref_mut() {
            Some(verdicts) if fixed => verdicts.alarms += usize::from(!other.is_empty()),
            Some(verdicts) => {
                verdicts.found[0] += usize::from(missed.is_empty());
                verdicts.found[1] += 1;
            }
            None => beyond[usize::from(fixed)] += other.len(),
        }
        if !fixed || !remarks.is_empty() {
            let twin = if fixed { " (fixed)" } else { "" };
            println!(
                "{:24} {name:8} {expected:>6} {:>8}  {}",
                format!("{file}{twin}"),
                seen.marked.len(),
                remarks.join("; ")
            );
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
    Ok(beyond)
}

fn build(source: &Path, compiler: &str, fixed: bool, program: &Path) -> Result<(), String> {
    let mut command = Command::new(compiler);
    command.args(["-O1", "-g", "-fsanitize=thread"]).arg(source).arg("-o").arg(program);
    if fixed {
        command.arg("-DFIXED");
    }
    if is_openmp(source) {
        command.arg("-fopenmp");
    }
    let text = std::fs::read_to_string(source).map_err(|e| e.to_string())?;
    let options = text.lines().next().and_then(|l| l.strip_prefix("// options: "));
    command.args(options.unwrap_or_default().split_whitespace());
    // What only our runtime has is annotations, and without it they are nothing.
    let output = command.output().map_err(|e| format!("{compiler}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn names_in(line: &str) -> impl Iterator<Item = String> + '_ {
    line.match_indices("race(").filter_map(|(i, _)| {
        let rest = &line[i + 5..];
        rest.find(')').map(|end| rest[..end].to_owned())
    })
}

fn marks(text: &str) -> BTreeSet<String> {
    text.lines().filter(|l| !l.contains("optional")).flat_map(names_in).collect()
}

/// Adds what one run reported. The accesses of a report are its first two stacks; the place of each is
/// its first frame in the program.
fn reports(log: &str, file: &str, text: &str, seen: &mut Seen) {
    for report in log.split("WARNING: ThreadSanitizer: ").skip(1) {
        if !report.starts_with("data race") && !report.starts_with("heap-use-after-free") {
            continue;
        }
        let stacks: Vec<&str> = report
            .split("\n\n")
            .filter(|part| part.lines().any(|l| l.trim_start().starts_with("#0")))
            .collect();
        let places: Vec<Option<usize>> = stacks.iter().take(2).map(|s| line_in(s, file)).collect();
        let names = |line: &Option<usize>| -> BTreeSet<String> {
            let line = line.and_then(|l| text.lines().nth(l.checked_sub(1)?));
            line.into_iter().flat_map(names_in).collect()
        };
        let common = match places.as_slice() {
            [a, b] => names(a).intersection(&names(b)).next().cloned(),
            _ => None,
        };
        match common {
            Some(name) => seen.marked.insert(name),
            None => seen.other.insert(format!("{places:?}")),
        };
    }
}

/// The line of the first frame that is in `file`.
fn line_in(stack: &str, file: &str) -> Option<usize> {
    let marker = format!("/{file}:");
    stack.lines().filter(|l| l.trim_start().starts_with('#')).find_map(|l| {
        let rest = &l[l.find(&marker)? + marker.len()..];
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    })
}
