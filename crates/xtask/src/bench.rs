//! Measurements, and the record of them in `docs/benchmarks.md`.
//!
//! `--record` puts what a benchmark printed into the section of its name, with the commit, the compilers and
//! the machine: a figure without them says little.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::setup;
use crate::shell::{Outcome, cargo, root};

const RECORD: &str = "docs/benchmarks.md";

/// Benchmarks that also draw what they measure, into `docs/pictures`.
const DRAWN: [&str; 2] = ["programs", "races"];

const HEAD: &str = "\
# Benchmarks

What `cargo xtask bench NAME --record` printed last, one section for each benchmark. Ratios compare things
that were measured in the same run, in turns; times of different sections do not compare.
";

/// Runs a benchmark and, with `--record` anywhere among the arguments, records what it prints.
pub(crate) fn run(args: &[&str]) -> Outcome {
    setup::run()?;
    let record = args.contains(&"--record");
    let args: Vec<&str> = args.iter().copied().filter(|arg| *arg != "--record").collect();
    let measures_the_tool = [
        "campaigns",
        "confirm",
        "determinism",
        "discipline",
        "ndseq",
        "noninterference",
        "programs",
        "specs",
        "spmd",
    ];
    if args.first() == Some(&"programs") {
        setup::for_real_programs()?;
        setup::for_comparisons()?;
    }
    if args.first().is_some_and(|name| measures_the_tool.contains(name)) {
        // The tool itself is what is measured.
        cargo(&["build", "--release", "--package", "selvedge-cli"])?;
    }
    // The comparison with shuttle and loom is a package of its own, so that nothing else builds them.
    let (package, rest) = match args.as_slice() {
        ["rust", rest @ ..] => ("selvedge-bench-rust", rest),
        ["atomicity", ..] => ("selvedge-bench-rust", args.as_slice()),
        all => ("selvedge-bench", all),
    };
    cargo(&["build", "--release", "--package", package])?;
    let mut command = [&["run", "--quiet", "--release", "--package", package, "--"], rest].concat();
    let picture = args.first().filter(|name| record && DRAWN.contains(name));
    let picture = picture.map(|name| root().join(format!("docs/pictures/{name}.svg")));
    if let Some(path) = picture.as_ref().and_then(|path| path.to_str()) {
        command.extend(["--svg", path]);
    }
    match args.first().filter(|_| record) {
        Some(name) => {
            // `spmd --growth` and `spmd --store` measure other things than `spmd`.
            let flags = args.iter().filter(|arg| arg.starts_with("--"));
            let names: Vec<&str> = [name].into_iter().chain(flags).copied().collect();
            recorded(&names.join(" "), &args, &command)?;
        }
        None => cargo(&command)?,
    }
    // The same of structures that others wrote.
    if args == ["atomicity"] { real(&["structures"]) } else { Ok(()) }
}

/// Runs a benchmark's command and records what it prints, also if it fails: what it measured is as true then.
fn recorded(name: &str, args: &[&str], command: &[&str]) -> Outcome {
    // Before the benchmark adds to the machine's load.
    let circumstances = circumstances();
    let (mut printed, outcome) = printed_by(command)?;
    if let Err(why) = &outcome {
        printed.push_str(&format!("{why}\n"));
    }
    let section = section(&args.join(" "), &circumstances, &printed);
    let path = root().join(RECORD);
    let before = fs::read_to_string(&path).unwrap_or_else(|_| HEAD.to_owned());
    fs::write(&path, with_section(&before, name, &section))
        .map_err(|e| format!("{RECORD}: {e}"))?;
    println!("recorded in {RECORD}");
    outcome
}

/// Programs and crates that people use, under the tool.
pub(crate) fn real(args: &[&str]) -> Outcome {
    setup::run()?;
    setup::for_real_programs()?;
    cargo(&["build", "--release", "--package", "selvedge-cli", "--package", "selvedge-bench"])?;
    let run = ["run", "--quiet", "--release", "--package", "selvedge-bench", "--", "real"];
    cargo(&[&run, args].concat())
}

/// Runs cargo, showing what it prints and keeping it, with whether it succeeded.
fn printed_by(args: &[&str]) -> Result<(String, Outcome), String> {
    let mut child = Command::new(env!("CARGO"))
        .args(args)
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cargo could not be run: {e}"))?;
    let mut printed = String::new();
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line.map_err(|e| format!("the benchmark's output: {e}"))?;
        println!("{line}");
        printed.push_str(line.trim_end());
        printed.push('\n');
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    let failed = || format!("the benchmark failed ({status})");
    Ok((printed, if status.success() { Ok(()) } else { Err(failed()) }))
}

/// When, of which source, with which compilers, on which machine and how busy that was.
fn circumstances() -> String {
    let modified =
        if said("git", &["status", "--porcelain"]).is_empty() { "" } else { ", modified" };
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!(
        "{}, commit {}{modified}; {}, gcc {}, clang {}; {}, {} cores, load {}, Linux {}",
        said("date", &["-u", "+%F"]),
        said("git", &["rev-parse", "--short", "HEAD"]),
        said("rustc", &["--version"]),
        said("gcc", &["-dumpfullversion"]),
        said("clang-19", &["-dumpversion"]),
        model.map_or("unknown processor", |(_, name)| name),
        std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        load.split(' ').next().unwrap_or_default(),
        said("uname", &["-r"]),
    )
}

/// What a program prints, or that it is not there.
fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(root()).output();
    match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(_) => "not installed".to_owned(),
    }
}

fn section(command: &str, circumstances: &str, printed: &str) -> String {
    let name = command.split(' ').next().unwrap_or_default();
    let picture = if DRAWN.contains(&name) {
        format!("\n![Processor time over native](pictures/{name}.svg)\n")
    } else {
        String::new()
    };
    format!("`cargo xtask bench {command}` ({circumstances}):\n\n```text\n{printed}```\n{picture}")
}

/// The document with this section in place of the one of the same name, or in its place by name.
fn with_section(document: &str, name: &str, section: &str) -> String {
    let (head, sections) = document.split_once("\n## ").unwrap_or((document, ""));
    let mut sections: Vec<(&str, &str)> =
        sections.split("\n## ").filter_map(|s| s.split_once("\n\n")).collect();
    sections.retain(|(title, _)| *title != name);
    sections.push((name, section));
    sections.sort_unstable();
    let mut result = head.trim_end().to_owned();
    for (title, body) in sections {
        result.push_str(&format!("\n\n## {title}\n\n{}", body.trim_end()));
    }
    result + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_replaces_the_one_of_its_name_and_no_other() {
        let one = with_section(HEAD, "trace", &section("trace", "here", "a | 1\n\nb | 2\n"));
        let two = with_section(&one, "races", &section("races 3", "there", "c\n"));
        assert!(two.starts_with("# Benchmarks\n\n"), "{two}");
        assert!(two.find("## races") < two.find("## trace"), "{two}");
        assert!(two.contains("`cargo xtask bench races 3` (there):\n\n```text\nc\n```\n"), "{two}");
        let again = with_section(&two, "trace", &section("trace", "later", "d\n"));
        assert!(
            !again.contains("(here)") && again.contains("(there)") && again.contains("(later)")
        );
        assert_eq!(again.matches("\n## ").count(), 2);
        assert_eq!(with_section(&again, "trace", &section("trace", "later", "d\n")), again);
    }
}
