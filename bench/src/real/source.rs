//! Sources of Debian packages, and builds of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Result, Workshop, succeed};

const LIST: &str = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
    http://deb.debian.org/debian bookworm main\n";

/// The unpacked source of a package, downloaded once. Lists of sources are apt's own business: it gets
/// one of ours, and the machine's stay as they are.
fn unpacked(workshop: &Workshop, package: &str) -> Result<PathBuf> {
    let directory = workshop.directory.join("sources").join(package);
    if let Some(there) = only_directory(&directory) {
        return Ok(there);
    }
    let state = workshop.directory.join("apt");
    std::fs::create_dir_all(state.join("partial")).map_err(|e| e.to_string())?;
    std::fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
    let list = workshop.directory.join("sources.list");
    std::fs::write(&list, LIST).map_err(|e| e.to_string())?;
    let apt = || {
        let mut command = Command::new("apt-get");
        command.arg("-o").arg(format!("Dir::Etc::sourcelist={}", list.display()));
        command.args(["-o", "Dir::Etc::sourceparts=/dev/null"]);
        command.arg("-o").arg(format!("Dir::State::lists={}", state.display()));
        command
    };
    succeed(apt().arg("update"))?;
    succeed(apt().args(["source", package]).current_dir(&directory))?;
    only_directory(&directory)
        .ok_or_else(|| format!("`apt-get source {package}` did not make a directory"))
}

fn only_directory(within: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(within).ok()?;
    entries.filter_map(|e| Some(e.ok()?.path())).find(|p| p.is_dir())
}

/// With what a source is built.
#[derive(Clone, Copy)]
pub(super) enum With {
    Nothing,
    Selvedge,
    Tsan,
}

impl With {
    fn name(self) -> &'static str {
        match self {
            With::Nothing => "native",
            With::Selvedge => "ours",
            With::Tsan => "tsan",
        }
    }

    /// The compilers and the flags that go with them.
    fn variables(self, workshop: &Workshop) -> [(&'static str, String); 3] {
        let tool = workshop.selvedge.display();
        match self {
            With::Selvedge => [
                ("CC", format!("{tool} cc")),
                ("CXX", format!("{tool} c++")),
                ("SANITIZE", String::new()),
            ],
            With::Nothing | With::Tsan => [
                ("CC", "gcc".into()),
                ("CXX", "g++".into()),
                (
                    "SANITIZE",
                    if let With::Tsan = self { "-fsanitize=thread".into() } else { String::new() },
                ),
            ],
        }
    }
}

/// A copy of a package's source, in which a shell script was run that builds it. The script finds
/// compilers in `CC` and `CXX`, and flags in `SANITIZE`.
pub(super) fn build(
    workshop: &Workshop,
    package: &str,
    with: With,
    script: &str,
) -> Result<PathBuf> {
    let original = unpacked(workshop, package)?;
    let builds = workshop.directory.join("builds");
    let copy = builds.join(format!("{package}.{}", with.name()));
    let _ = std::fs::remove_dir_all(&copy);
    std::fs::create_dir_all(&builds).map_err(|e| e.to_string())?;
    succeed(Command::new("cp").arg("-r").arg(&original).arg(&copy))?;
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).current_dir(&copy).envs(with.variables(workshop));
    succeed(&mut shell)?;
    Ok(copy)
}
