//! Instructions of small kernels under our runtime, counted by callgrind and compared with a record.
//!
//! Times vary with the machine and with what else it does; the number of instructions does not (valgrind
//! runs one thread at a time, in turns, so that repeated counts differ by less than a hundredth). So a change that
//! makes an access more expensive is noticed on any machine. The whole program is counted: the kernels do
//! little besides accesses and synchronization.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, Outcome, cargo, root};

const RECORD: &str = "bench/instructions.txt";

/// Growth beyond this fails, in percent.
const ALLOWED: u64 = 5;

/// Kernels of `bench/kernels` and how much each does, chosen to take a few seconds under callgrind. Those
/// that wait for locks are left out: how often they wait depends on the moments at which valgrind switches.
const KERNELS: [(&str, &str); 5] =
    [("atomics", "20000"), ("fib", "25"), ("memory", "1"), ("sor", "3"), ("unaligned", "5")];

/// Compilers, each with the option that makes it print its whole version.
const COMPILERS: [(&str, &str); 2] = [("gcc", "-dumpfullversion"), ("clang-19", "-dumpversion")];

/// One line of the record.
#[derive(Clone, PartialEq, Debug)]
struct Count {
    /// Kernel and how much it does.
    kernel: String,
    /// Compiler and its version.
    compiler: String,
    instructions: u64,
}

/// Builds the tool, counts, and compares with the record or writes it.
pub(crate) fn run(record: bool) -> Outcome {
    cargo(&["build", "--release", "--package", "selvedge-cli", "--bins"])?;
    let tool = root().join("target/release/selvedge");
    if record { write(&count_all(&tool)?) } else { check(&tool) }
}

/// Compares what programs that this tool builds need with the record.
pub(crate) fn check(tool: &Path) -> Outcome {
    let counts = count_all(tool)?;
    let text = fs::read_to_string(root().join(RECORD)).map_err(|e| format!("{RECORD}: {e}"))?;
    compare(&parse(&text)?, &counts)
}

fn count_all(tool: &Path) -> Result<Vec<Count>, String> {
    let folder = root().join("target/instructions");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut counts = Vec::new();
    for (compiler, option) in COMPILERS {
        let version = output(Command::new(compiler).arg(option))?;
        for (kernel, work) in KERNELS {
            let program = folder.join(format!("{kernel}.{compiler}"));
            output(
                Command::new(tool)
                    // Valgrind cannot read all the debug information that compilers write.
                    .args(["cc", "-O2", "-Wl,--strip-debug"])
                    .arg(root().join(format!("bench/kernels/{kernel}.c")))
                    .arg("-lm")
                    .arg("-o")
                    .arg(&program)
                    .env("SELVEDGE_CC", compiler)
                    // What is counted is the runtime, whichever hooks call it.
                    .env("SELVEDGE_HOOKS", "compiler"),
            )?;
            counts.push(Count {
                kernel: format!("{kernel} {work}"),
                compiler: format!("{compiler} {}", version.trim()),
                instructions: count(&program, work)?,
            });
        }
    }
    Ok(counts)
}

/// The instructions of one run, from callgrind's file.
fn count(program: &Path, work: &str) -> Result<u64, String> {
    let profile = PathBuf::from(format!("{}.callgrind", program.display()));
    output(
        Command::new("valgrind")
            .args(["--quiet", "--tool=callgrind", "--fair-sched=yes"])
            .arg(format!("--callgrind-out-file={}", profile.display()))
            .arg(program)
            .arg(work),
    )?;
    let text = fs::read_to_string(&profile).map_err(|e| format!("{}: {e}", profile.display()))?;
    let totals = text.lines().find_map(|line| line.strip_prefix("totals: "));
    totals
        .and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| format!("{} has no totals", profile.display()))
}

/// What a program prints, if it succeeds.
fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = command.output().map_err(|e| format!("{shown}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{shown}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

fn write(counts: &[Count]) -> Outcome {
    let mut text = String::from(
        "# Instructions of small kernels under our runtime, counted by callgrind.\n\
         # Written by `cargo xtask instructions --record`: kernel, work, compiler, version, count.\n",
    );
    for Count { kernel, compiler, instructions } in counts {
        let _ = writeln!(text, "{kernel} {compiler} {instructions}");
    }
    fs::write(root().join(RECORD), text).map_err(|e| format!("{RECORD}: {e}"))?;
    shell::run(Command::new("git").args(["diff", "--stat", "--", RECORD]))
}

fn parse(text: &str) -> Result<Vec<Count>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parse_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [kernel, work, compiler, version, count] = words[..] else { return None };
        Some(Count {
            kernel: format!("{kernel} {work}"),
            compiler: format!("{compiler} {version}"),
            instructions: count.parse().ok()?,
        })
    };
    let counts = lines.map(|l| parse_line(l).ok_or_else(|| format!("{RECORD}: not a count: {l}")));
    counts.collect()
}

/// Prints every count beside its record. A count without one is said to be incomparable, because another
/// compiler, or another version of it, makes other instructions of the kernels themselves.
fn compare(recorded: &[Count], counts: &[Count]) -> Outcome {
    let mut grown = Vec::new();
    for now in counts {
        let Count { kernel, compiler, instructions } = now;
        let same = |r: &&Count| r.kernel == *kernel && r.compiler == *compiler;
        let Some(before) = recorded.iter().find(same).map(|r| r.instructions) else {
            println!(
                "{kernel:<14} {compiler:<16} {instructions:>12}  no record of this compiler: not compared"
            );
            continue;
        };
        let growth = 100.0 * (*instructions as f64 / before as f64 - 1.0);
        println!(
            "{kernel:<14} {compiler:<16} {instructions:>12}  recorded {before:>12}  {growth:+.2}%"
        );
        if *instructions * 100 > before * (100 + ALLOWED) {
            grown.push(format!(
                "{kernel} ({compiler}): {before} instructions became {instructions}, {growth:+.1}%"
            ));
        }
    }
    if grown.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the runtime has become more expensive by more than {ALLOWED}%:\n  {}\n\
         If that is intended, run `cargo xtask instructions --record` and say why in the commit.",
        grown.join("\n  ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(count: u64) -> Vec<Count> {
        parse(&format!("# kernel\nsor 3 gcc 12.2.0 {count}\n")).expect("a record")
    }

    #[test]
    fn growth_beyond_what_is_allowed_fails_with_both_figures() {
        assert_eq!(compare(&one(1000), &one(1050)), Ok(()));
        assert_eq!(compare(&one(1000), &one(500)), Ok(()));
        let said = compare(&one(1000), &one(1051)).expect_err("more than 5%");
        assert!(said.contains("sor 3 (gcc 12.2.0): 1000 instructions became 1051"), "{said}");
    }

    #[test]
    fn another_version_of_the_compiler_is_not_compared() {
        let mut now = one(9000);
        now[0].compiler = "gcc 13.1.0".into();
        assert_eq!(compare(&one(1000), &now), Ok(()));
    }

    #[test]
    fn a_record_that_cannot_be_read_is_an_error() {
        assert!(parse("sor 3 gcc 12.2.0\n").is_err());
        assert!(parse("sor 3 gcc 12.2.0 many\n").is_err());
    }
}
