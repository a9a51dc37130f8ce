//! Programs that are meant to be deterministic, and one that was not: `selvedge test --ensure stdout`.
//!
//! Compressors by two threads must write the same bytes under every schedule. zstd did not before version 1.3.5: its
//! contexts kept tables of earlier jobs, and which context gets a job depends on the schedule (its issue 1077).
//! A sum of floating-point numbers by rayon is the same only up to rounding.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::source::{self, With};
use super::{Result, Row, Workshop, compressors, succeed};

/// A compressor, its arguments, and how many bytes it gets: enough for a few jobs.
#[derive(Clone, Copy)]
pub(super) struct Packer {
    pub(super) name: &'static str,
    /// Where it is built, or Debian's own.
    built: Option<usize>,
    arguments: &'static [&'static str],
    bytes: usize,
}

pub(super) const PACKERS: [Packer; 3] = [
    Packer { name: "pbzip2", built: Some(0), arguments: &["-p2", "-b1", "-c"], bytes: 300_000 },
    Packer {
        name: "zstd",
        built: Some(1),
        arguments: &["-T2", "-1", "-B512K", "-q", "-c"],
        bytes: 3 << 19,
    },
    Packer {
        name: "xz",
        built: None,
        arguments: &["-T2", "-0", "--block-size=64KiB", "-c"],
        bytes: 300_000,
    },
];

/// Text that compresses, the same on every machine.
fn text(bytes: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let words: Vec<Vec<u8>> = (0..500)
        .map(|_| {
            let len = 3 + next(7);
            (0..len).map(|_| b'a' + next(10) as u8).chain([b' ']).collect()
        })
        .collect();
    let mut made = Vec::with_capacity(bytes);
    while made.len() < bytes {
        made.extend_from_slice(&words[next(500) as usize]);
    }
    made.truncate(bytes);
    made
}

/// The program ensures its output, in so many schedules.
const ENSURED: [&str; 4] = ["--ensure", "stdout", "--schedules", "40"];

/// What `selvedge test` reports in a directory.
pub(super) fn tested(
    workshop: &Workshop,
    directory: &Path,
    options: &[&str],
    program: &[&str],
) -> Result<Value> {
    let budget = ["test", "--format", "json", "--time", "180s"];
    let mut command = workshop.selvedge(directory, &[&budget, options, &["--"], program].concat());
    let output = command.output().map_err(|e| e.to_string())?;
    serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{command:?}: {e}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The row of a program that ensures its output.
fn row(program: &str, form: &'static str, report: &Value, differs: bool) -> Row {
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let differing = findings.iter().find(|f| f["kind"] == "determinism-violation");
    let schedules = report["stats"]["schedules"].as_u64().unwrap_or(0);
    let confirmed = differing.is_some_and(|f| f["status"] == "confirmed");
    let after = differing.and_then(|f| f["after"].as_u64()).unwrap_or(0);
    Row {
        program: format!("{program}, output"),
        form,
        works: schedules > 0 && confirmed == differs && differing.is_some() == differs,
        findings: match differing {
            Some(_) => format!("differs after {after}"),
            None => format!("the same in {schedules}"),
        },
        tsan: "-".into(),
        remarks: Vec::new(),
    }
}

pub(super) fn packer(workshop: &Workshop, packer: Packer) -> Result<Vec<Row>> {
    let directory = workshop.fresh(&format!("{}-output", packer.name))?;
    fs::write(directory.join("data"), text(packer.bytes)).map_err(|e| e.to_string())?;
    let (program, form) = match packer.built {
        Some(number) => (compressors::BUILT[number].ours(workshop)?, "from source"),
        None => (PathBuf::from(packer.name), "Debian's, plain"),
    };
    let program = program.to_string_lossy();
    let command = [&[&*program], packer.arguments, &["data"]].concat();
    let report = tested(workshop, &directory, &ENSURED, &command)?;
    Ok(vec![row(packer.name, form, &report, false)])
}

/// The version of the crate that has the sources of zstd 1.3.4.
const OLD_ZSTD: &str = "1.4.3";

/// zstd 1.3.4, built with jobs that are smaller than it would have them.
pub(super) fn old_zstd(workshop: &Workshop) -> Result<Vec<Row>> {
    let directory = workshop.fresh("zstd-1.3.4")?;
    let vendored = super::crates::vendored(workshop, "zstd-sys", OLD_ZSTD)?;
    let library = vendored.join("zstd/lib");
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("determinism/zstdmt.c");
    fs::write(directory.join("data"), text(1 << 18)).map_err(|e| e.to_string())?;
    let script = "exec \"$CC\" cc -O1 -g -w -DZSTD_MULTITHREAD -DZSTDMT_JOBSIZE_MIN=32768 -I\"$LIB\" \
        -I\"$LIB/common\" -I\"$LIB/compress\" \"$DRIVER\" \"$LIB\"/common/*.c \"$LIB\"/compress/*.c \
        -lpthread -o zstdmt";
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).current_dir(&directory);
    succeed(shell.env("CC", &workshop.selvedge).env("LIB", &library).env("DRIVER", &driver))?;
    let report = tested(workshop, &directory, &ENSURED, &["./zstdmt", "1", "data"])?;
    Ok(vec![row("zstd 1.3.4", "from source", &report, true)])
}

/// A sum of floating-point numbers by rayon: `ensure` breaks, `same::relative(1e-12)` holds.
pub(super) fn rayon_sum(workshop: &Workshop) -> Result<Vec<Row>> {
    const PROGRAM: &str = "use rayon::prelude::*;\n\nfn main() {\n    \
        let by = std::env::args().nth(1).unwrap_or_default();\n    \
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();\n    \
        let numbers: Vec<f64> = (0..64).map(|i| 1.0 / (1.0 + f64::from(i))).collect();\n    \
        selvedge::deterministic(&by, || {\n        \
        let sum: f64 = pool.install(|| numbers.par_iter().sum());\n        \
        match &*by {\n            \"equal\" => selvedge::ensure(\"sum\", &sum),\n            \
        _ => selvedge::ensure_by(\"sum\", &sum, selvedge::same::relative(1e-12)),\n        }\n    \
        });\n}\n";
    let directory = workshop.fresh("rayon-sum")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize();
    let selvedge = root.map_err(|e| e.to_string())?.join("crates/selvedge");
    let manifest = format!(
        "[package]\nname = \"sum\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nrayon = \"1.10\"\n\
         selvedge = {{ path = {selvedge:?}, default-features = false }}\n\n[profile.dev]\nopt-level = 1\n\n\
         [workspace]\n"
    );
    fs::create_dir_all(directory.join("src")).map_err(|e| e.to_string())?;
    fs::write(directory.join("Cargo.toml"), manifest).map_err(|e| e.to_string())?;
    fs::write(directory.join("src/main.rs"), PROGRAM).map_err(|e| e.to_string())?;
    let mut cargo = Command::new(workshop.selvedge.with_file_name("cargo-selvedge"));
    cargo.args(["selvedge", "build", "--quiet"]).current_dir(&directory);
    succeed(cargo.env_remove("CARGO").env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS"))?;
    let program = "target/selvedge/x86_64-unknown-linux-gnu/debug/sum";
    let mut rows = Vec::new();
    for (by, differs) in [("equal", true), ("relative", false)] {
        let report = tested(workshop, &directory, &ENSURED[2..], &[program, by])?;
        let name = format!("rayon's sum by `{by}`");
        rows.push(Row { program: name.clone(), ..row(&name, "cargo selvedge", &report, differs) });
    }
    Ok(rows)
}

impl compressors::Built {
    /// The program, built by `selvedge cc`.
    fn ours(&self, workshop: &Workshop) -> Result<PathBuf> {
        let built = source::build(workshop, self.package, With::Selvedge, self.script)?;
        Ok(built.join(self.program))
    }
}
