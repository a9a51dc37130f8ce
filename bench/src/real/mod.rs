//! `cargo xtask real [NAME…]`: programs and crates that people use, under Selvedge.
//!
//! Plain binaries of the distribution must do what they do without us. The same programs built from
//! source with `selvedge cc` must do their work as well, and what is found in them stands beside what
//! gcc's ThreadSanitizer says under the same load, race by race. Test suites of crates must pass, with
//! nothing found in safe code. What is needed is downloaded by apt and cargo into `target/real`.

mod atomicity;
mod compressors;
mod crates;
mod determinism;
mod lincheck;
mod memcached;
mod ndseq;
pub(crate) mod programs;
mod ranks;
mod source;
mod structures;
mod suites;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

/// A problem that keeps a row from being measured.
type Result<T> = std::result::Result<T, String>;

/// One line of the table.
struct Row {
    program: String,
    form: &'static str,
    /// Whether the program did what it does by itself.
    works: bool,
    findings: String,
    tsan: String,
    /// Differences and whatever else is worth a line of its own.
    remarks: Vec<String>,
}

/// Where everything is.
struct Workshop {
    directory: PathBuf,
    selvedge: PathBuf,
}

impl Workshop {
    fn new() -> Result<Workshop> {
        let own = std::env::current_exe().map_err(|e| e.to_string())?;
        let target = own.parent().ok_or("no directory")?;
        let selvedge = target.join("selvedge");
        if !selvedge.exists() {
            return Err(format!("{} is missing; use `cargo xtask real`", selvedge.display()));
        }
        let directory = target.join("../real");
        std::fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
        let directory = directory.canonicalize().map_err(|e| e.to_string())?;
        Ok(Workshop { directory, selvedge })
    }

    /// An empty directory with a store of its own.
    fn fresh(&self, name: &str) -> Result<PathBuf> {
        let directory = self.directory.join("runs").join(name);
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory.join(".selvedge")).map_err(|e| e.to_string())?;
        Ok(directory)
    }

    /// The command of the tool, in a directory.
    fn selvedge(&self, directory: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.selvedge);
        command.args(args).current_dir(directory).env("NO_COLOR", "1");
        command
    }

    /// What the last run in a directory found, as pairs of places.
    fn found(&self, directory: &Path) -> Result<BTreeSet<Pair>> {
        let output = self.selvedge(directory, &["report", "--json"]).output();
        let text = output.map_err(|e| e.to_string())?.stdout;
        let report: serde_json::Value =
            serde_json::from_slice(&text).map_err(|e| format!("selvedge report: {e}"))?;
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        Ok(findings
            .iter()
            .filter(|f| f["kind"] == "data-race")
            .map(|f| {
                let place = |i: usize| {
                    let site = &f["sites"][i];
                    let file = site["file"].as_str().unwrap_or("?").rsplit('/').next();
                    format!("{}:{}", file.unwrap_or("?"), site["line"])
                };
                pair(place(0), place(1))
            })
            .collect())
    }
}

/// Two places, the lesser first.
type Pair = (String, String);

fn pair(a: String, b: String) -> Pair {
    if a <= b { (a, b) } else { (b, a) }
}

/// The pairs in what a ThreadSanitizer printed: of each report the first two stacks, of each stack the
/// first frame in the program's own sources.
fn pairs_of_tsan(log: &str, sources: &Path) -> BTreeSet<Pair> {
    let marker = format!("{}/", sources.display());
    let place = |stack: &str| {
        stack.lines().find_map(|l| {
            let rest = &l[l.find(&marker)? + marker.len()..];
            let mut words = rest.split_whitespace().next()?.rsplit('/').next()?.split(':');
            Some(format!("{}:{}", words.next()?, words.next()?))
        })
    };
    let reports = log.split("WARNING: ThreadSanitizer: data race").skip(1);
    reports
        .filter_map(|report| {
            let stacks = report.split("\n\n").filter(|p| p.contains("    #0 "));
            let mut places = stacks.take(2).map(|s| place(s).unwrap_or_else(|| "?".into()));
            Some(pair(places.next()?, places.next()?))
        })
        .collect()
}

/// Both counts, and a remark for every pair that only one side has.
fn compare(ours: &BTreeSet<Pair>, tsan: &BTreeSet<Pair>) -> (String, String, Vec<String>) {
    let list = |who: &str, a: &BTreeSet<Pair>, b: &BTreeSet<Pair>| -> Vec<String> {
        a.difference(b).map(|(x, y)| format!("only {who}: {x} and {y}")).collect()
    };
    let mut remarks = list("ours", ours, tsan);
    remarks.extend(list("TSan", tsan, ours));
    let both = ours.intersection(tsan).count();
    (format!("{} ({both} in common)", ours.len()), tsan.len().to_string(), remarks)
}

/// Runs a command that must succeed.
fn succeed(command: &mut Command) -> Result<Output> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let end: Vec<&str> = text.lines().rev().take(20).collect();
    let end: Vec<&str> = end.into_iter().rev().collect();
    Err(format!("{command:?}: {}\n{}", output.status, end.join("\n")))
}

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let workshop = match Workshop::new() {
        Ok(workshop) => workshop,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let wanted = |name: &str| args.is_empty() || args.iter().any(|a| name.contains(a));
    println!("{:28} {:18} {:6} {:22} {:8}", "program", "form", "works", "findings", "TSan");
    let mut good = true;
    for (name, measure) in tasks() {
        if !wanted(&name) {
            continue;
        }
        match measure(&workshop) {
            Ok(rows) => {
                for row in rows {
                    good &= row.works;
                    let works = if row.works { "yes" } else { "NO" };
                    println!(
                        "{:28} {:18} {works:6} {:22} {:8}",
                        row.program, row.form, row.findings, row.tsan
                    );
                    for remark in row.remarks {
                        println!("    {remark}");
                    }
                }
            }
            Err(problem) => {
                good = false;
                println!("{name:28} could not be measured:\n{problem}");
            }
        }
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

type Task = (String, Box<dyn Fn(&Workshop) -> Result<Vec<Row>>>);

fn tasks() -> Vec<Task> {
    let mut list: Vec<Task> = Vec::new();
    for program in compressors::PLAIN {
        list.push((program.name.into(), Box::new(move |w| compressors::plain(w, program))));
    }
    list.push(("memcached".into(), Box::new(memcached::plain)));
    for program in compressors::BUILT {
        list.push((
            format!("{} from source", program.name),
            Box::new(move |w| compressors::built(w, program)),
        ));
    }
    list.push(("memcached from source".into(), Box::new(memcached::built)));
    list.push(("memcached discipline".into(), Box::new(memcached::discipline)));
    for suite in suites::SUITES {
        list.push((suite.name.into(), Box::new(move |w| suites::measure(w, suite))));
    }
    for suite in ranks::SUITES {
        list.push((suite.name.into(), Box::new(move |w| ranks::measure(w, suite))));
    }
    for packer in determinism::PACKERS {
        let name = format!("{} output", packer.name);
        list.push((name, Box::new(move |w| determinism::packer(w, packer))));
    }
    list.push(("zstd 1.3.4 output".into(), Box::new(determinism::old_zstd)));
    list.push(("ck_stack".into(), Box::new(atomicity::ck_stack)));
    for harness in ndseq::HARNESSES {
        let name = format!("{} as if sequential", harness.name);
        list.push((name, Box::new(move |w| ndseq::harness(w, harness))));
    }
    list.push(("minimap2 as if sequential".into(), Box::new(ndseq::minimap2)));
    list.push(("structures, known errors".into(), Box::new(structures::known)));
    list.push(("structures of today".into(), Box::new(structures::today)));
    list.push(("structures, open".into(), Box::new(structures::open)));
    list.push(("structures, known errors, by lincheck".into(), Box::new(lincheck::known)));
    list.push(("rayon sum".into(), Box::new(determinism::rayon_sum)));
    for (name, version) in crates::CRATES {
        list.push((name.into(), Box::new(move |w| crates::test(w, name, version))));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_tsan_is_a_pair_of_places() {
        let log = "WARNING: ThreadSanitizer: data race (pid=1)\n  Write of size 4 at 0x1 by thread T1:\n    \
            #0 memcpy <null>\n    #1 f /src/p/a.c:12 (p+0x1)\n\n  Previous read of size 4 by main thread:\n    \
            #0 g /src/p/lib/b.c:7:3 (p+0x2)\n\n  Thread T1 created by main thread at:\n    #0 x /src/p/c.c:1\n";
        let pairs = pairs_of_tsan(log, Path::new("/src/p"));
        assert_eq!(pairs, BTreeSet::from([("a.c:12".to_owned(), "b.c:7".to_owned())]));
    }
}
