//! Test suites of crates that are made of threads, unmodified, under `cargo selvedge test`.

use std::path::PathBuf;
use std::process::Command;

use super::{Result, Row, Workshop, succeed};

/// Names and versions.
pub(super) const CRATES: [(&str, &str); 8] = [
    ("arc-swap", "1.7.1"),
    ("crossbeam-channel", "0.5.15"),
    ("crossbeam-deque", "0.8.6"),
    ("crossbeam-utils", "0.8.21"),
    ("dashmap", "6.1.0"),
    ("flume", "0.11.1"),
    ("parking_lot", "0.12.4"),
    ("rayon-core", "1.13.0"),
];

/// Longest that one suite may take, for `timeout`.
const LIMIT: &str = "1500";

/// A copy of a crate's source as its registry has it, a workspace of its own, for whatever toolchain is
/// in use.
fn unpacked(workshop: &Workshop, name: &str, version: &str) -> Result<PathBuf> {
    let copy = workshop.directory.join("crate-sources").join(format!("{name}-{version}"));
    if copy.exists() {
        return Ok(copy);
    }
    let original = vendor(workshop, "crates", &CRATES, name, version)?;
    let beside = copy.parent().ok_or("no directory")?;
    std::fs::create_dir_all(beside).map_err(|e| e.to_string())?;
    succeed(Command::new("cp").arg("-r").arg(&original).arg(&copy))?;
    let file = copy.join("Cargo.toml");
    let text = std::fs::read_to_string(&file).map_err(|e| e.to_string())?;
    std::fs::write(&file, text + "\n[workspace]\n").map_err(|e| e.to_string())?;
    for pinned in ["rust-toolchain", "rust-toolchain.toml", "Cargo.lock"] {
        let _ = std::fs::remove_file(copy.join(pinned));
    }
    Ok(copy)
}

/// The source of one crate as its registry has it.
pub(super) fn vendored(workshop: &Workshop, name: &str, version: &str) -> Result<PathBuf> {
    vendor(workshop, name, &[(name, version)], name, version)
}

/// The source of one of some crates that are asked for together, in a directory of that name.
fn vendor(
    workshop: &Workshop,
    directory: &str,
    all: &[(&str, &str)],
    name: &str,
    version: &str,
) -> Result<PathBuf> {
    let home = workshop.directory.join(directory);
    let wanted: String = all.iter().map(|(n, v)| format!("{n} = \"={v}\"\n")).collect();
    let manifest = format!(
        "[package]\nname = \"wanted\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
         [dependencies]\n{wanted}"
    );
    std::fs::create_dir_all(home.join("src")).map_err(|e| e.to_string())?;
    std::fs::write(home.join("src/lib.rs"), "").map_err(|e| e.to_string())?;
    std::fs::write(home.join("Cargo.toml"), manifest).map_err(|e| e.to_string())?;
    succeed(Command::new("cargo").args(["vendor", "--versioned-dirs"]).current_dir(&home))?;
    // A version may have a suffix that says what is packed into the crate.
    let sources = std::fs::read_dir(home.join("vendor")).map_err(|e| e.to_string())?;
    let wanted = format!("{name}-{version}");
    let is_wanted = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.strip_prefix(&wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
    };
    let mut sources = sources.filter_map(|e| Some(e.ok()?.path()));
    sources.find(is_wanted).ok_or_else(|| format!("`cargo vendor` did not make {wanted}"))
}

pub(super) fn test(workshop: &Workshop, name: &str, version: &str) -> Result<Vec<Row>> {
    let source = unpacked(workshop, name, version)?;
    let store = source.join(".selvedge");
    let _ = std::fs::remove_dir_all(&store);
    std::fs::create_dir_all(&store).map_err(|e| e.to_string())?;
    // Optimised, as a suite that is meant to find trouble should be; some take very long otherwise.
    let mut command = Command::new("timeout");
    command.arg(LIMIT).arg(workshop.selvedge.with_file_name("cargo-selvedge"));
    command.args([
        "selvedge",
        "--fail-on",
        "never",
        "test",
        "--release",
        "--tests",
        "--no-fail-fast",
    ]);
    command.current_dir(&source).env("NO_COLOR", "1").env_remove("CARGO");
    command.env("CARGO_TARGET_DIR", workshop.directory.join("crates-target"));
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let passed: usize = text.lines().filter_map(passed).sum();
    let found: Vec<&str> = text.lines().filter(|l| l.starts_with("error[")).collect();
    let mut remarks: Vec<String> = found.iter().map(|l| (*l).to_owned()).collect();
    if !output.status.success() {
        remarks.extend(text.lines().rev().take(8).map(str::to_owned));
    }
    Ok(vec![Row {
        program: format!("{name} {version}"),
        form: "cargo selvedge",
        works: output.status.success() && passed > 0,
        findings: format!("{} in {passed} tests", found.len()),
        tsan: "-".into(),
        remarks,
    }])
}

/// How many tests one summary of the test harness counts.
fn passed(line: &str) -> Option<usize> {
    line.strip_prefix("test result: ")?.split_whitespace().nth(1)?.parse().ok()
}
