//! Sources of Debian packages, and builds of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Result, Workshop, succeed};

/// Copies of the machine's lists of packages that name sources instead of binaries. The machine's stay as they are.
fn lists_of_sources(into: &Path) -> Result<()> {
    let apt = Path::new("/etc/apt");
    let mut lists = vec![apt.join("sources.list")];
    let parts = std::fs::read_dir(apt.join("sources.list.d")).into_iter().flatten();
    lists.extend(parts.filter_map(|entry| Some(entry.ok()?.path())));
    std::fs::create_dir_all(into).map_err(|e| e.to_string())?;
    let mut some = false;
    for list in lists {
        let is_list = list.extension().is_some_and(|e| e == "list" || e == "sources");
        let Ok(text) = std::fs::read_to_string(&list) else { continue };
        let (true, Some(name)) = (is_list, list.file_name()) else { continue };
        let lines = text.lines().map(|line| match line.split_once(char::is_whitespace) {
            Some(("deb", rest)) => format!("deb-src {rest}\n"),
            Some(("Types:", _)) => "Types: deb-src\n".to_owned(),
            _ => format!("{line}\n"),
        });
        std::fs::write(into.join(name), lines.collect::<String>()).map_err(|e| e.to_string())?;
        some = true;
    }
    some.then_some(()).ok_or_else(|| "apt knows no package lists: see `man sources.list`".into())
}

/// The unpacked source of a package, downloaded once.
pub(super) fn unpacked(workshop: &Workshop, package: &str) -> Result<PathBuf> {
    let directory = workshop.directory.join("sources").join(package);
    if let Some(there) = only_directory(&directory) {
        return Ok(there);
    }
    let state = workshop.directory.join("apt");
    std::fs::create_dir_all(state.join("partial")).map_err(|e| e.to_string())?;
    std::fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
    let lists = workshop.directory.join("lists");
    lists_of_sources(&lists)?;
    let apt = || {
        let mut command = Command::new("apt-get");
        command.args(["-o", "Dir::Etc::sourcelist=/dev/null"]);
        command.arg("-o").arg(format!("Dir::Etc::sourceparts={}", lists.display()));
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum With {
    /// gcc as it is.
    Nothing,
    /// Selvedge with gcc.
    Selvedge,
    /// gcc's ThreadSanitizer.
    Tsan,
    /// clang as it is.
    Clang,
    /// clang's ThreadSanitizer.
    ClangTsan,
    /// Selvedge with clang, and clang's hooks.
    ClangHooks,
    /// Selvedge with clang, and hooks of its own.
    OwnHooks,
}

impl With {
    fn name(self) -> &'static str {
        match self {
            With::Nothing => "native",
            With::Selvedge => "ours",
            With::Tsan => "tsan",
            With::Clang => "clang",
            With::ClangTsan => "clang-tsan",
            With::ClangHooks => "clang-hooks",
            With::OwnHooks => "own-hooks",
        }
    }

    /// The compilers and the flags that go with them.
    fn variables(self, workshop: &Workshop) -> Vec<(&'static str, String)> {
        let compilers = |cc: &str, cxx: &str, flags: &str| {
            vec![
                ("CC", cc.to_owned()),
                ("CXX", cxx.to_owned()),
                ("MPICC", "mpicc".to_owned()),
                ("OSHCC", "oshcc".to_owned()),
                ("SANITIZE", flags.to_owned()),
            ]
        };
        let tool = workshop.selvedge.display();
        let ours = || {
            let mut all = compilers(&format!("{tool} cc"), &format!("{tool} c++"), "");
            all.retain(|(name, _)| !matches!(*name, "MPICC" | "OSHCC"));
            all.extend([("MPICC", format!("{tool} mpicc")), ("OSHCC", format!("{tool} oshcc"))]);
            all
        };
        let with_clang = |hooks: &str| {
            let mut all = ours();
            all.push(("SELVEDGE_CC", "clang-19".to_owned()));
            all.push(("SELVEDGE_CXX", "clang++-19".to_owned()));
            all.push(("SELVEDGE_HOOKS", hooks.to_owned()));
            all
        };
        match self {
            With::Nothing => compilers("gcc", "g++", ""),
            With::Tsan => compilers("gcc", "g++", "-fsanitize=thread"),
            With::Selvedge => ours(),
            With::Clang => compilers("clang-19", "clang++-19", ""),
            With::ClangTsan => compilers("clang-19", "clang++-19", "-fsanitize=thread"),
            With::ClangHooks => with_clang("compiler"),
            With::OwnHooks => with_clang("own"),
        }
    }
}

/// A copy of a package's source, in which a shell script was run that builds it. The script finds
/// compilers in `CC`, `CXX`, `MPICC` and `OSHCC`, and flags in `SANITIZE`.
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
    // With their times: newer files would make `make` build what others were made of.
    succeed(Command::new("cp").arg("-a").arg(&original).arg(&copy))?;
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).current_dir(&copy).envs(with.variables(workshop));
    succeed(&mut shell)?;
    Ok(copy)
}
