//! `cargo xtask port [NAME…]`: changes the imports of crates from the registry, and runs their concurrency
//! tests under the `selvedge` crate.
//!
//! [`PORTS`] lists what changes: lines of `use`, and in the manifest the dependencies; anything else is
//! refused. A port ends with the tests of the crate under many schedules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, Outcome};

struct Port {
    name: &'static str,
    version: &'static str,
    /// Tells two ports of one crate apart.
    flavour: &'static str,
    /// The edition and features, and the dependencies instead of its own.
    manifest: &'static str,
    /// A condition that the crate itself has for such tests.
    cfg: Option<&'static str>,
    /// In which file which lines become which others.
    imports: &'static [(&'static str, &'static str, &'static str)],
    /// What is given to `cargo test`.
    tests: &'static [&'static str],
    schedules: u32,
}

const PORTS: &[Port] = &[
    Port {
        name: "oneshot",
        version: "0.1.13",
        flavour: "loom",
        manifest: r#"
            edition = "2021"
            features = { default = ["std", "async"], std = [], async = [] }
            dependencies.loom = { package = "selvedge", path = "SELVEDGE", features = ["async"] }
        "#,
        cfg: Some("oneshot_loom"),
        imports: &[("src/loombox.rs", "use loom::alloc;", "use std::alloc;")],
        tests: &["--test", "loom"],
        schedules: 1_000,
    },
    Port {
        name: "oneshot",
        version: "0.1.13",
        flavour: "std",
        manifest: r#"
            edition = "2021"
            features = { default = ["std", "async"], std = [], async = [] }
            dependencies.selvedge = { path = "SELVEDGE" }
        "#,
        cfg: None,
        imports: &[
            (
                "src/lib.rs",
                "use core::{\n    cell::UnsafeCell,",
                "use selvedge::{\n    cell::UnsafeCell,",
            ),
            ("src/lib.rs", "use core::hint;", "use selvedge::hint;"),
            (
                "src/lib.rs",
                "use std::time::{Duration, Instant};",
                "use selvedge::time::{Duration, Instant};",
            ),
            ("src/lib.rs", "    pub use std::thread::{", "    pub use selvedge::thread::{"),
            ("tests/sync.rs", "use std::time::{", "use selvedge::test;\nuse selvedge::time::{"),
            ("tests/sync.rs", "    pub use std::thread::{", "    pub use selvedge::thread::{"),
            ("tests/helpers/mod.rs", "use core::sync::atomic::", "use selvedge::sync::atomic::"),
        ],
        tests: &["--test", "sync"],
        schedules: 1_000,
    },
    Port {
        name: "concurrent-queue",
        version: "2.5.0",
        flavour: "loom",
        manifest: r#"
            edition = "2021"
            features = { default = ["std"], std = [], portable-atomic = [] }
            dependencies.crossbeam-utils = { version = "0.8", default-features = false }
            dependencies.loom = { package = "selvedge", path = "SELVEDGE" }
        "#,
        cfg: Some("loom"),
        imports: &[],
        tests: &["--test", "loom"],
        schedules: 1_000,
    },
    Port {
        name: "parking",
        version: "2.2.1",
        flavour: "loom",
        manifest: r#"
            edition = "2018"
            features = { default = ["loom"], loom = [] }
            dependencies.loom = { package = "selvedge", path = "SELVEDGE" }
        "#,
        cfg: Some("loom"),
        imports: &[],
        tests: &["--test", "loom"],
        schedules: 1_000,
    },
    Port {
        name: "flume",
        version: "0.11.1",
        flavour: "std",
        manifest: r#"
            edition = "2018"
            features = { select = [], async = [], spin = [], eventual-fairness = [] }
            dependencies.selvedge = { path = "SELVEDGE", features = ["parking_lot"] }
        "#,
        cfg: None,
        imports: &[
            (
                "src/lib.rs",
                "use std::{\n    collections::VecDeque,",
                "use selvedge::std;\nuse std::{\n    collections::VecDeque,",
            ),
            ("src/signal.rs", "use std::{thread", "use selvedge::std;\nuse std::{thread"),
            (
                "src/select.rs",
                "use spin1::Mutex as Spinlock;",
                "use selvedge::parking_lot::Mutex as Spinlock;",
            ),
            (
                "tests/basic.rs",
                "use std::time::{Instant, Duration};",
                "use selvedge::{std, test};\nuse std::time::{Instant, Duration};",
            ),
        ],
        // Two tests take more than a million steps, and one asserts that a sleep lasts.
        tests: &[
            "--test",
            "basic",
            "--",
            "--skip=hydra",
            "--skip=send_bounded",
            "--skip=rendezvous",
        ],
        schedules: 10,
    },
];

pub(crate) fn run(names: &[&str]) -> Outcome {
    let known = |n: &&&str| PORTS.iter().all(|p| p.name != **n);
    if let Some(unknown) = names.iter().find(known) {
        let all: Vec<_> = PORTS.iter().map(|p| p.name).collect();
        return Err(format!("no port of `{unknown}`; there are {}", all.join(", ")));
    }
    let ports = || PORTS.iter().filter(|p| names.is_empty() || names.contains(&p.name));
    let place = shell::root().join("target/ports");
    fetch(&place, ports())?;
    let mut failed = Vec::new();
    for port in ports() {
        let changed = prepare(&place, port)?;
        let Port { name, version, flavour, .. } = port;
        println!("{name} {version}, {flavour}: {changed} lines of imports changed");
        if let Err(problem) = test(&place, port) {
            eprintln!("{problem}");
            failed.push(port.name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("tests failed: {}", failed.join(", "))) }
}

/// Gets the sources of all ports into `vendor`.
fn fetch<'a>(place: &Path, ports: impl Iterator<Item = &'a Port>) -> Outcome {
    let mut dependencies: Vec<String> =
        ports.map(|p| format!("{} = \"={}\"\n", p.name, p.version)).collect();
    dependencies.dedup();
    let dependencies = dependencies.concat();
    let manifest = format!(
        "[package]\nname = \"fetch\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{dependencies}"
    );
    write(&place.join("fetch/Cargo.toml"), &manifest)?;
    write(&place.join("fetch/src/lib.rs"), "")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["vendor", "--quiet", "--manifest-path"]).arg(place.join("fetch/Cargo.toml"));
    cargo.arg(place.join("vendor")).stdout(std::process::Stdio::null());
    shell::run(&mut cargo)
}

fn folder(place: &Path, port: &Port) -> PathBuf {
    place.join(format!("{}-{}", port.name, port.flavour))
}

/// Makes a copy of the crate with its imports changed. How many lines were.
fn prepare(place: &Path, port: &Port) -> Result<usize, String> {
    let (from, to) = (place.join("vendor").join(port.name), folder(place, port));
    for folder in ["src", "tests"] {
        let _ = fs::remove_dir_all(to.join(folder));
        copy(&from.join(folder), &to.join(folder))?;
    }
    let selvedge = shell::root().join("crates/selvedge");
    let manifest = port.manifest.replace("SELVEDGE", &selvedge.to_string_lossy());
    let (name, version) = (port.name, port.version);
    let (edition, rest) = manifest.trim().split_once('\n').expect("the edition comes first");
    let manifest = format!(
        "{rest}\nworkspace = {{}}\n[package]\nname = \"{name}\"\nversion = \"{version}\"\n{edition}\n"
    );
    write(&to.join("Cargo.toml"), &manifest)?;
    let mut changed = 0;
    for (file, before, after) in port.imports {
        let path = to.join(file);
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        if text.matches(before).count() != 1 {
            return Err(format!("{}: `{before}` must occur exactly once", path.display()));
        }
        let new = || after.lines().filter(|l| !before.contains(*l));
        if let Some(line) = new()
            .find(|l| !["use ", "pub use "].iter().any(|use_| l.trim_start().starts_with(use_)))
        {
            return Err(format!("{}: `{line}` is not an import", path.display()));
        }
        changed += new().count();
        write(&path, text.replace(before, after))?;
    }
    Ok(changed)
}

fn test(place: &Path, port: &Port) -> Outcome {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--quiet", "--release", "--manifest-path"]);
    cargo.arg(folder(place, port).join("Cargo.toml")).args(port.tests);
    cargo.env("CARGO_TARGET_DIR", place.join("target"));
    let schedules = || std::env::var("SELVEDGE_SCHEDULES").ok();
    cargo.env("SELVEDGE_SCHEDULES", schedules().unwrap_or(port.schedules.to_string()));
    if let Some(cfg) = port.cfg {
        cargo.env("RUSTFLAGS", format!("--cfg {cfg} -Awarnings"));
    } else {
        cargo.env("RUSTFLAGS", "-Awarnings");
    }
    shell::run(&mut cargo)
}

fn copy(from: &Path, to: &Path) -> Outcome {
    let problem = |e: std::io::Error| format!("{}: {e}", from.display());
    for entry in fs::read_dir(from).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        let target: PathBuf = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            let bytes = fs::read(entry.path()).map_err(problem)?;
            write(&target, &bytes)?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: impl AsRef<[u8]>) -> Outcome {
    let problem = |e: std::io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(problem)?;
    fs::write(path, text).map_err(problem)
}
