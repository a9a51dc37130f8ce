//! Fewer hooks for Rust programs: rustc is asked for the optimised bitcode of each object, hooks included, and objects that are
//! made of that with fewer hooks take the places of rustc's own.
//!
//! Those of a library take them when rustc has made the library ([`Call::finish`], in the wrapper around rustc), those of a
//! program or a shared library when it is linked ([`rewritten`], in the linker). An object for which that is not possible stays
//! as rustc made it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use object::Object;
use object::read::archive::ArchiveFile;
use selvedge_instrument::accesses::Rules;
use selvedge_instrument::{Error, Library, object_with_fewer_hooks};

use super::arguments::{Item, ItemKind};
use super::plan::Scratch;
use crate::messages::warning_label;

/// Names rustc's own libLLVM to the wrapper around rustc and to the linker.
pub(crate) const LIBRARY: &str = "SELVEDGE_RUST_LLVM";
/// Bitcode with aliases, which rustc makes of equal functions, cannot be rewritten.
pub(crate) const FLAG: &str = "-Zmerge-functions=disabled";

/// Ends the name of each object that rustc makes, and of its bitcode.
const OBJECT: &str = ".rcgu.o";

/// Whether the user has not asked for the compiler's hooks.
pub(crate) fn is_wanted() -> bool {
    std::env::var_os(super::rewriting::HOOKS_VARIABLE).is_none_or(|hooks| hooks != "compiler")
}

/// The libLLVM of rustc. If there is none, which is said, its hooks stay.
pub(crate) fn library_of(rustc: &OsStr) -> Option<PathBuf> {
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).join("lib");
    let files = fs::read_dir(&folder).into_iter().flatten();
    let is_llvm = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libLLVM") && name.contains(".so")
    };
    let found = files.filter_map(|file| Some(file.ok()?.path())).filter(is_llvm);
    let largest = found.max_by_key(|path| fs::metadata(path).map_or(0, |m| m.len()));
    if largest.is_none() {
        say(&format!("there is no libLLVM of {} in {}", rustc.display(), folder.display()));
    }
    largest
}

/// Says why the compiler's hooks stay.
fn say(why: &dyn std::fmt::Display) {
    eprintln!("{}: {}: {why}", warning_label(), super::rewriting::USED);
}

/// The library that the environment names.
fn library() -> Option<Library> {
    Library::at(Path::new(&std::env::var_os(LIBRARY).filter(|path| !path.is_empty())?))
}

/// A call of rustc that makes objects with hooks.
#[derive(Debug)]
pub(crate) struct Call {
    folder: PathBuf,
    /// Begins the names of its files: the crate's name, and what Cargo adds to that.
    stem: String,
    makes_library: bool,
    keeps_bitcode: bool,
    /// What such a call is to be asked for besides.
    pub(crate) options: Vec<&'static str>,
}

impl Call {
    pub(crate) fn of(rustc: &[OsString]) -> Option<Call> {
        std::env::var_os(LIBRARY).filter(|path| !path.is_empty())?;
        let words: Vec<String> = rustc.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        let value = |option: &str| {
            let at = words.iter().position(|w| w == option)?;
            words.get(at + 1).cloned()
        };
        let emits = |what: &str| {
            words.iter().filter_map(|w| w.strip_prefix("--emit=")).any(|e| e.contains(what))
        };
        let has_hooks = words.iter().any(|w| w == "-Zsanitizer=thread");
        let has_one_output = words.iter().any(|w| w == "-o");
        if !has_hooks || has_one_output || !emits("link") {
            return None;
        }
        let suffix = words.iter().find_map(|w| w.strip_prefix("extra-filename="));
        let stem = value("--crate-name")? + suffix.unwrap_or_default();
        let makes_library =
            value("--crate-type").is_some_and(|kind| kind == "lib" || kind == "rlib");
        let keeps_bitcode = emits("llvm-bc") || words.iter().any(|w| w.contains("save-temps"));
        let has = |what: &str| words.iter().any(|w| w.contains(what));
        let mut options = vec!["--emit=llvm-bc"];
        if !has("codegen-units=") {
            // Asked for bitcode, rustc makes a crate in one piece, unless it is told the number that it takes otherwise.
            options.push(match has("incremental=") {
                true => "-Ccodegen-units=256",
                false => "-Ccodegen-units=16",
            });
        }
        let folder = value("--out-dir")?.into();
        Some(Call { folder, stem, makes_library, keeps_bitcode, options })
    }

    /// Rewrites the library, if rustc has made one, and deletes the bitcode.
    pub(crate) fn finish(self, succeeded: bool) {
        let path = self.folder.join(format!("lib{}.rlib", self.stem));
        if let (true, Some(library)) = (succeeded && self.makes_library && path.exists(), library())
        {
            // If something stands in the way, rustc's own library is as good as before.
            let _ = rewrite(&library, &path);
        }
        if self.keeps_bitcode {
            return;
        }
        for file in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let rest = name.strip_prefix(&self.stem);
            if rest.is_some_and(|r| r.starts_with('.') && r.ends_with(".bc")) {
                let _ = fs::remove_file(file.path());
            }
        }
    }
}

/// The items of a link, with rewritten objects in the places of rustc's; and the folder that has them.
pub(super) fn rewritten(items: &[Item]) -> Option<(Vec<Item>, Scratch)> {
    let linked = |item: &Item| item.kind == ItemKind::Linked && item.words.len() == 1;
    let objects: Vec<(usize, PathBuf)> = items
        .iter()
        .enumerate()
        .filter(|(_, item)| linked(item))
        .map(|(number, item)| (number, PathBuf::from(&item.words[0])))
        .filter(|(_, path)| path.to_string_lossy().ends_with(OBJECT))
        .collect();
    let library = library().filter(|_| !objects.is_empty())?;
    let scratch = Scratch::new().ok()?;
    let into = |number: usize| scratch.path().join(format!("{number}.o"));
    let paths: Vec<(PathBuf, PathBuf)> =
        objects.iter().map(|(number, path)| (path.clone(), into(*number))).collect();
    let made = make(&library, &paths);
    let mut items = items.to_vec();
    for ((number, _), _) in objects.iter().zip(made).filter(|(_, made)| *made) {
        items[*number].words = vec![into(*number).into()];
    }
    Some((items, scratch))
}

/// Makes the second object of each pair of the bitcode of the first; whether there is one. Says why one could not be made.
fn make(library: &Library, objects: &[(PathBuf, PathBuf)]) -> Vec<bool> {
    let next = AtomicUsize::new(0);
    let made: Vec<AtomicBool> = objects.iter().map(|_| AtomicBool::new(false)).collect();
    // The other objects have the same reason.
    static REASON: Once = Once::new();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((object, into)) = objects.get(number) else { break };
            match make_one(library, object, into).transpose() {
                Ok(is_there) => made[number].store(is_there == Some(true), Ordering::Relaxed),
                Err(error) => REASON.call_once(|| say(&error)),
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(objects.len());
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    made.into_iter().map(AtomicBool::into_inner).collect()
}

/// Makes one object of the bitcode of another. The bitcode lies beside it, under the same name, or, if rustc made one object
/// of the whole crate, under the crate's name.
fn make_one(library: &Library, object: &Path, into: &Path) -> Option<Result<bool, Error>> {
    let name = object.file_name()?.to_string_lossy();
    let own = object.with_file_name(format!("{}.bc", name.strip_suffix(".o")?));
    let (crate_name, unit) = name.split_once('.')?;
    let (path, is_own) = match own.exists() {
        true => (own, true),
        false => (object.with_file_name(format!("{crate_name}.bc")), false),
    };
    let bitcode = fs::read(&path).ok()?;
    // A program has an object that calls the allocator as well.
    let is_wanted = |source: &str| {
        is_own || unit.strip_prefix(source).is_some_and(|rest| rest.starts_with('.'))
    };
    let name = path.display().to_string();
    Some(object_with_fewer_hooks(library, &name, bitcode, is_wanted, Rules::ALL, into))
}

/// Whether rustc will optimise an object together with others, when the program is linked, and needs its bitcode for that.
fn is_for_later(object: &[u8]) -> bool {
    object::File::parse(object).map_or(true, |file| file.section_by_name(".llvmbc").is_some())
}

/// Puts rewritten objects into the places of a library's own.
fn rewrite(library: &Library, path: &Path) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let wrong = |e: object::Error| io::Error::new(io::ErrorKind::InvalidData, e.to_string());
    let scratch = Scratch::new().map_err(|e| io::Error::other(e.to_string()))?;
    let mut objects = Vec::new();
    for member in ArchiveFile::parse(&*bytes).map_err(wrong)?.members() {
        let member = member.map_err(wrong)?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        if name.ends_with(OBJECT) && !is_for_later(member.data(&*bytes).map_err(wrong)?) {
            objects.push((path.with_file_name(&name), scratch.path().join(name)));
        }
    }
    let made = make(library, &objects);
    let made: Vec<&PathBuf> =
        objects.iter().zip(made).filter(|(_, made)| *made).map(|((_, into), _)| into).collect();
    if made.is_empty() {
        return Ok(());
    }
    // Other processes see the old library or the new one.
    let new = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&new, &bytes)?;
    let mut ar = Command::new("ar");
    ar.arg("rD").arg(&new).args(made).stdout(Stdio::null()).stderr(Stdio::null());
    match ar.status() {
        Ok(status) if status.success() => fs::rename(&new, path),
        _ => fs::remove_file(&new),
    }
}
