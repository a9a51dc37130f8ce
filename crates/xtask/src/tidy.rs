//! Checks of the source tree that no other tool makes: the rules of the house.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Outcome, root};

/// A file of code that is longer no longer fits in a head.
const LONGEST_FILE: usize = 800;

/// Crates that may contain unsafe code; all others forbid it.
const MAY_BE_UNSAFE: [&str; 2] = ["runtime", "selvedge"];

/// Checks everything and names every problem.
pub(crate) fn run() -> Outcome {
    let mut problems = Vec::new();
    for path in sources()? {
        let text = fs::read_to_string(root().join(&path)).unwrap_or_default();
        check_file(&path, &text, &mut problems);
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// The Rust files that git knows or would add.
fn sources() -> Result<Vec<PathBuf>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])
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
        if text.contains(word) && !path.ends_with("tidy.rs") {
            problem(format!("contains {word}"));
        }
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
