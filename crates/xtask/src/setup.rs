//! System packages that a fresh machine may lack.

use std::process::Command;

use crate::shell::{self, Outcome, succeeds};

/// A program that must run, and the Debian package that brings it.
const NEEDED: [(&str, &[&str], &str); 4] = [
    ("cc", &["--version"], "gcc"),
    ("c++", &["--version"], "g++"),
    ("objcopy", &["--version"], "binutils"),
    ("clang-19", &["--version"], "clang-19"),
];

/// Installs what is missing with apt-get where that is allowed, and otherwise says what to run.
pub(crate) fn run() -> Outcome {
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(program, args, _)| !succeeds(program, args))
        .map(|&(_, _, package)| package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("sudo apt-get install -y {}", missing.join(" "));
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0");
    if !root || !succeeds("apt-get", &["--version"]) {
        return Err(format!(
            "missing system packages: {}\nInstall them and try again; on Debian or Ubuntu:\n\n  {by_hand}\n",
            missing.join(", ")
        ));
    }
    shell::run(Command::new("apt-get").arg("update"))?;
    shell::run(
        Command::new("apt-get")
            .args(["install", "-y", "--no-install-recommends"])
            .args(&missing)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}
