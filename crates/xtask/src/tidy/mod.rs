//! Checks of the source tree that no other tool makes: this project's own rules.
//!
//! `tidy-exceptions.txt` lists where the tree does not follow one of the newer rules yet, as
//! `rule path name`. A line that is no longer needed is a problem too, so that the list only shrinks.

mod links;
mod matches;
mod modules;
mod scan;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Outcome, root};
use scan::{Code, Function};

/// A file of code that is longer no longer fits in a head.
const LONGEST_FILE: usize = 800;

/// A function that is longer no longer fits on a screen.
const LONGEST_FUNCTION: usize = 80;

/// Crates that may contain unsafe code; all others forbid it.
const MAY_BE_UNSAFE: [&str; 4] = ["instrument", "runtime", "selvedge", "spmd"];

const EXCEPTIONS: &str = "crates/xtask/tidy-exceptions.txt";

/// A broken rule to which there may be an exception.
struct Breach {
    /// `rule path name`, as in the list of exceptions.
    key: String,
    message: String,
}

/// Checks everything and names every problem.
pub(crate) fn run() -> Outcome {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for path in listed("*.rs")? {
        let text = fs::read_to_string(root().join(&path))
            .map_err(|e| format!("{} could not be read: {e}", path.display()))?;
        files.push((path, text));
    }
    let mut breaches = cycles(&files);
    for (path, text) in &files {
        check_file(path, text, &mut problems);
        check_code(path, &Code::new(text), &mut breaches);
    }
    for path in listed("*.md")? {
        let text = fs::read_to_string(root().join(&path)).map_err(|e| e.to_string())?;
        links::check(&path, &text, &mut problems);
    }
    let exceptions = fs::read_to_string(root().join(EXCEPTIONS)).unwrap_or_default();
    problems.extend(apply(&exceptions, &breaches));
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// The files of this kind that git knows or would add.
fn listed(kind: &str) -> Result<Vec<PathBuf>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", kind])
        .current_dir(root())
        .output()
        .map_err(|e| format!("git could not be run: {e}"))?;
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(listed.lines().map(PathBuf::from).filter(|p| root().join(p).exists()).collect())
}

fn check_file(path: &Path, text: &str, problems: &mut Vec<String>) {
    let mut problem = |what: String| problems.push(format!("{}: {what}", path.display()));
    let lines = text.lines().count();
    if lines > LONGEST_FILE {
        problem(format!("{lines} lines; split it below {LONGEST_FILE}"));
    }
    for word in ["todo!(", "unimplemented!(", "#[ignore"] {
        if text.contains(word) && !path.ends_with("tidy/mod.rs") {
            problem(format!("contains {word}"));
        }
    }
    if text.contains("asm!(") && !path.iter().any(|part| part == "arch" || part == "tidy") {
        problem("contains assembly, which belongs into a folder `arch`".into());
    }
    if path.ends_with("lib.rs") || path.ends_with("main.rs") {
        let name = path.components().nth(1).map(|c| c.as_os_str().to_string_lossy().into_owned());
        let may = name.is_some_and(|n| MAY_BE_UNSAFE.contains(&n.as_str()));
        let is_root = path.components().any(|c| c.as_os_str() == "src");
        if is_root && !may && !text.contains("#![forbid(unsafe_code)]") {
            problem("does not forbid unsafe code".into());
        }
    }
    if path.starts_with("crates/analyses/src")
        && text.contains("impl Analysis for")
        && !path.ends_with("lib.rs")
        && !["//! Guarantee: ", "//! **Guarantee**: "].iter().any(|promise| text.contains(promise))
    {
        problem("an analysis must state its Guarantee: in its head".into());
    }
}

/// Long functions anywhere, and matches on `Op` outside tests that do not name every operation.
fn check_code(path: &Path, code: &Code, breaches: &mut Vec<Breach>) {
    let functions = code.functions();
    let place = path.display();
    for function in &functions {
        let (start, end) = (code.line(function.start), code.line(function.end));
        let (name, lines) = (&function.name, end + 1 - start);
        if lines > LONGEST_FUNCTION {
            breaches.push(Breach {
                key: format!("length {place} {name}"),
                message: format!(
                    "{place}:{start}: `{name}` has {lines} lines; split it below {LONGEST_FUNCTION}"
                ),
            });
        }
    }
    if !path.iter().any(|name| name == "src") {
        return;
    }
    for at in matches::wildcards(code) {
        let (name, line) = (name_around(&functions, at), code.line(at));
        breaches.push(Breach {
            key: format!("wildcard {place} {name}"),
            message: format!(
                "{place}:{line}: a match on `Op` must name every operation (`{name}`)"
            ),
        });
    }
}

/// The name of the innermost function around an offset.
fn name_around(functions: &[Function], at: usize) -> &str {
    let mut around = functions.iter().filter(|f| f.start < at && at < f.end);
    around.next_back().map_or("-", |f| f.name.as_str())
}

fn cycles(files: &[(PathBuf, String)]) -> Vec<Breach> {
    let breach = |cycle: modules::Cycle| {
        let (folder, first, second) = (cycle.folder.display(), cycle.first, cycle.second);
        Breach {
            key: format!("cycle {folder} {first}<->{second}"),
            message: format!("{folder}: the modules `{first}` and `{second}` use each other"),
        }
    };
    modules::cycles(files).into_iter().map(breach).collect()
}

/// What is broken without an exception, and the exceptions that nothing needs.
fn apply(exceptions: &str, breaches: &[Breach]) -> Vec<String> {
    let lines = exceptions.lines().map(str::trim);
    let listed: BTreeSet<&str> = lines.filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let broken: BTreeSet<&str> = breaches.iter().map(|b| b.key.as_str()).collect();
    let unlisted = breaches.iter().filter(|b| !listed.contains(b.key.as_str()));
    let unneeded = listed.difference(&broken);
    unlisted
        .map(|b| b.message.clone())
        .chain(unneeded.map(|line| format!("{EXCEPTIONS}: remove `{line}`: the rule is kept now")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaches_need_an_exception_and_exceptions_a_breach() {
        let breaches = [("length a.rs f", "one"), ("length a.rs g", "two")]
            .map(|(key, message)| Breach { key: key.into(), message: message.into() });
        assert_eq!(apply("# why\nlength a.rs f\n", &breaches), ["two"]);
        let unneeded = apply("length a.rs f\nlength a.rs g\ncycle a b<->c\n", &breaches);
        assert_eq!(unneeded.len(), 1);
        assert!(unneeded[0].contains("remove `cycle a b<->c`"), "{unneeded:?}");
    }

    #[test]
    fn a_function_is_counted_from_its_first_to_its_last_line() {
        let body = |lines: usize| format!("fn f() {{\n{}}}\n", "x();\n".repeat(lines));
        let breaches = |text: &str| {
            let mut breaches = Vec::new();
            check_code(Path::new("crates/a/tests/a.rs"), &Code::new(text), &mut breaches);
            breaches.into_iter().map(|b| b.key).collect::<Vec<_>>()
        };
        assert_eq!(breaches(&body(LONGEST_FUNCTION - 2)), [""; 0]);
        assert_eq!(breaches(&body(LONGEST_FUNCTION - 1)), ["length crates/a/tests/a.rs f"]);
    }
}
