//! Which libLLVM belongs to a compiler.
//!
//! The compiler says its version and where its files are; libraries of that version are looked for there and where the
//! loader looks. Bitcode of one version is not always readable by another, so the version has to be the same.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::ffi::Functions;

/// A loaded libLLVM.
#[derive(Debug)]
pub struct Library {
    /// Where it was found.
    pub path: PathBuf,
    pub(crate) functions: Functions,
}

impl Library {
    /// Loads the library of a compiler, which is called by these words.
    pub fn of_compiler(words: &[std::ffi::OsString]) -> Result<Library, Error> {
        let compiler = words.last().map(|w| w.to_string_lossy().into_owned()).unwrap_or_default();
        let version = version(words, &compiler)?;
        let names = [
            format!("libLLVM.so.{version}.1"),
            format!("libLLVM-{version}.so.1"),
            format!("libLLVM-{version}.so"),
            format!("libLLVM.so.{version}.0"),
            "libLLVM.so".to_owned(),
        ];
        let mut candidates: Vec<PathBuf> = Vec::new();
        for directory in directories(words) {
            candidates.extend(names.iter().map(|n| directory.join(n)).filter(|p| p.exists()));
        }
        candidates.extend(names.iter().map(PathBuf::from));
        for path in candidates {
            if let Some(functions) = Functions::load(&path)?.filter(|f| f.version() == version) {
                return Ok(Library { path, functions });
            }
        }
        Err(Error::NoLibrary { compiler, version, wanted: names[..3].join(", ") })
    }
}

fn ask(words: &[std::ffi::OsString], question: &str) -> std::io::Result<String> {
    let output = Command::new(&words[0]).args(&words[1..]).arg(question).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn version(words: &[std::ffi::OsString], compiler: &str) -> Result<u32, Error> {
    let no = |why: String| Error::NoVersion(compiler.to_owned(), why);
    let text = ask(words, "-dumpversion").map_err(|e| no(e.to_string()))?;
    text.split('.').next().and_then(|n| n.parse().ok()).ok_or_else(|| no(text.clone()))
}

/// Where the compiler's own libraries may be.
fn directories(words: &[std::ffi::OsString]) -> Vec<PathBuf> {
    let resources = ask(words, "-print-resource-dir").unwrap_or_default();
    // …/lib/clang/19
    let mut found: Vec<PathBuf> =
        Path::new(&resources).ancestors().skip(2).take(1).map(Path::to_owned).collect();
    let searched = ask(words, "-print-search-dirs").unwrap_or_default();
    if let Some(list) = searched.lines().find_map(|l| l.strip_prefix("libraries: =")) {
        found.extend(list.split(':').map(PathBuf::from));
    }
    found.retain(|d| d.is_dir());
    found
}
