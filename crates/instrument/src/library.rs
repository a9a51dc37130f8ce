//! Which libLLVM belongs to a compiler.
//!
//! The compiler says its version and where its files are; libraries of that version are looked for there and where the
//! loader looks. Bitcode of one version is not always readable by another, so the version has to be the same.
//!
//! A compiler needs some hundredths of a second to answer each question, which is as long as it needs for a small source. So
//! a build remembers the answer ([`Library::remembered`]) for as long as the compiler's file stays what it is.

use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

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
    /// The same as [`Library::of_compiler`], which is asked only once for a compiler: the answer is kept in a file of
    /// `folder`. That there is no library is believed for ten minutes only, because the user may install one.
    pub fn remembered(words: &[OsString], folder: &Path) -> Result<Library, Error> {
        let Some(file) = identity(words).map(|id| folder.join(format!("library-{id:016x}"))) else {
            return Library::of_compiler(words);
        };
        let compiler = words.last().map(|w| w.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(known) = known(&file, compiler) {
            return known;
        }
        let asked = Library::of_compiler(words);
        // Without the file the next call asks again.
        let _ = match &asked {
            Ok(Library { path, functions }) => {
                keep(&file, &format!("{} {}", functions.version(), path.display()))
            }
            Err(Error::NoLibrary { version, wanted, .. }) => {
                keep(&file, &format!("{NONE} {version} {wanted}"))
            }
            Err(_) => Ok(()),
        };
        asked
    }

    /// The library in a file, if it is one.
    pub fn at(path: &Path) -> Option<Library> {
        let functions = Functions::load(path).ok()??;
        Some(Library { path: path.to_owned(), functions })
    }

    /// Loads the library of a compiler, which is called by these words.
    pub fn of_compiler(words: &[OsString]) -> Result<Library, Error> {
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

/// Begins the answer that there is no library.
const NONE: &str = "none";

/// The answer in a file, if it can still be believed.
fn known(file: &Path, compiler: String) -> Option<Result<Library, Error>> {
    let text = fs::read_to_string(file).ok()?;
    let (first, rest) = text.split_once(' ')?;
    if first == NONE {
        let (version, wanted) = rest.split_once(' ')?;
        let version = version.parse().ok()?;
        let age = fs::metadata(file).ok()?.modified().ok()?.elapsed().ok()?;
        let missing = Error::NoLibrary { compiler, version, wanted: wanted.to_owned() };
        return (age < Duration::from_secs(600)).then_some(Err(missing));
    }
    let version: u32 = first.parse().ok()?;
    let functions = Functions::load(Path::new(rest)).ok()??;
    (functions.version() == version).then(|| Ok(Library { path: rest.into(), functions }))
}

/// Several processes of one build may write at the same time, so the file comes into being at once.
fn keep(file: &Path, answer: &str) -> std::io::Result<()> {
    let own = file.with_extension(format!("{}.tmp", std::process::id()));
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&own, answer)?;
    fs::rename(&own, file)
}

/// What tells a compiler from others and from itself after an update: the files that its words name. None if a file cannot
/// be found.
fn identity(words: &[OsString]) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    for word in words {
        word.hash(&mut hasher);
        let Some(file) = in_path(word) else { continue };
        let known = fs::metadata(&file).ok()?;
        (&file, known.len(), known.modified().ok()?).hash(&mut hasher);
    }
    in_path(words.first()?)?;
    Some(hasher.finish())
}

/// The file that a word names as a program.
fn in_path(word: &OsString) -> Option<PathBuf> {
    if Path::new(word).components().count() > 1 {
        return Path::new(word).canonicalize().ok();
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).find_map(|f| f.join(word).canonicalize().ok())
}

fn ask(words: &[OsString], question: &str) -> std::io::Result<String> {
    let output = Command::new(&words[0]).args(&words[1..]).arg(question).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn version(words: &[OsString], compiler: &str) -> Result<u32, Error> {
    let no = |why: String| Error::NoVersion(compiler.to_owned(), why);
    let text = ask(words, "-dumpversion").map_err(|e| no(e.to_string()))?;
    text.split('.').next().and_then(|n| n.parse().ok()).ok_or_else(|| no(text.clone()))
}

/// Where the compiler's own libraries may be.
fn directories(words: &[OsString]) -> Vec<PathBuf> {
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
