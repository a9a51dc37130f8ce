//! Turns a command line into compiler calls.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use selvedge_runtime::rust_std::Stubs;

use super::Family;
use super::arguments::{Arguments, Item, ItemKind, Stage};
use crate::exit::Failure;
use crate::program::toolbox::Toolbox;

/// The calls to make.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) before: Vec<Vec<OsString>>,
    pub(super) last: Vec<OsString>,
    /// Kept until the calls were made.
    #[cfg_attr(not(test), expect(dead_code, reason = "dropping it deletes what calls have made"))]
    scratch: Option<Scratch>,
}

/// A directory for what one call makes for another. Dropping it deletes it.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn new() -> Result<Scratch, Failure> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("selvedge-cc-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Scratch(path)),
            Err(error) => Err(Failure::Write { path, error }),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Plan {
    pub(super) fn new(
        arguments: &Arguments,
        family: Family,
        toolbox: &Toolbox,
    ) -> Result<Plan, Failure> {
        refuse(arguments)?;
        if let Some(library) = rust_library(arguments) {
            return Plan::with_rust_stubs(arguments, &library, family, toolbox);
        }
        let plain = |last| Ok(Plan { before: Vec::new(), last, scratch: None });
        match (arguments.stage, family) {
            (Stage::Question, _) => plain(words(&arguments.items)),
            (Stage::Compile, _) => plain(compile(arguments, family, toolbox)),
            // gcc cannot instrument in a link without linking its runtime, so compiling and linking are separate.
            (_, Family::Gcc) if arguments.compiles() => Plan::split(arguments, toolbox),
            _ => plain(link(arguments, &arguments.items, family, toolbox)),
        }
    }

    /// The link of a Rust program. Stubs around functions of its standard library, which is not instrumented,
    /// report what these do.
    fn with_rust_stubs(
        arguments: &Arguments,
        library: &Path,
        family: Family,
        toolbox: &Toolbox,
    ) -> Result<Plan, Failure> {
        let stubs = Stubs::for_library(library)
            .map_err(|error| Failure::Open { path: library.to_owned(), error })?;
        let scratch = Scratch::new()?;
        let (source, object) = (scratch.path().join("stubs.s"), scratch.path().join("stubs.o"));
        std::fs::write(&source, &stubs.assembly)
            .map_err(|error| Failure::Write { path: source.clone(), error })?;
        let mut last = link(arguments, &arguments.items, family, toolbox);
        let wraps = stubs.link_arguments().into_iter().map(OsString::from);
        last.extend(wraps.chain([object.clone().into()]));
        let assemble = vec!["-c".into(), source.into(), "-o".into(), object.into()];
        Ok(Plan { before: vec![assemble], last, scratch: Some(scratch) })
    }

    fn split(arguments: &Arguments, toolbox: &Toolbox) -> Result<Plan, Failure> {
        let scratch = Scratch::new()?;
        let (mut before, mut linked, mut language) = (Vec::new(), Vec::new(), None);
        for item in &arguments.items {
            match item.kind {
                ItemKind::Source => {
                    let object = scratch.path().join(object_name(&item.words[0], before.len()));
                    before.push(compile_one(arguments, item, language, &object, toolbox));
                    linked.push(Item { words: vec![object.into()], kind: ItemKind::Linked });
                }
                ItemKind::Language => language = Some(item),
                ItemKind::Dependencies | ItemKind::Header => {}
                _ => linked.push(item.clone()),
            }
        }
        let last = link(arguments, &linked, Family::Gcc, toolbox);
        Ok(Plan { before, last, scratch: Some(scratch) })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Rust's standard library, if it is linked into an executable.
fn rust_library(arguments: &Arguments) -> Option<PathBuf> {
    let files = arguments.items.iter().filter(|i| i.kind == ItemKind::Linked);
    let mut paths = files.map(|i| PathBuf::from(&i.words[0]));
    let is_std = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    };
    paths.find(is_std).filter(|_| arguments.stage == Stage::Link)
}

/// Refuses what cannot work, before anything is written.
fn refuse(arguments: &Arguments) -> Result<(), Failure> {
    for item in &arguments.items {
        let text = item.words[0].to_string_lossy();
        if let Some(list) = text.strip_prefix("-fsanitize=") {
            let known = ["address", "leak", "memory", "hwaddress", "kernel-address", "dataflow"];
            if let Some(other) = list.split(',').find(|s| known.contains(s)) {
                return Err(Failure::Usage(format!(
                    "{text}: the {other} sanitizer and Selvedge cannot instrument the same program"
                )));
            }
        }
    }
    if arguments.stage != Stage::Link {
        return Ok(());
    }
    for option in ["-static", "-static-pie", "--static"] {
        if arguments.has(option) {
            return Err(Failure::Usage(format!(
                "{option}: the C library must be linked dynamically so that Selvedge can observe calls of its functions"
            )));
        }
    }
    for option in ["-nostdlib", "-nodefaultlibs", "-nolibc"] {
        if arguments.has(option) && !arguments.has("-lc") {
            return Err(Failure::Usage(format!(
                "{option}: a program without the C library cannot be observed"
            )));
        }
    }
    Ok(())
}

/// The options that instrument. They come before the user's options, so that `-fno-sanitize=thread` can
/// exclude a file.
pub(super) fn instrumentation(family: Family, toolbox: &Toolbox) -> Vec<OsString> {
    let mut options: Vec<OsString> = Vec::new();
    let common = ["-fsanitize=thread", "-g", "-DSELVEDGE=1", "-idirafter"];
    match family {
        Family::Gcc => {
            options.extend(common.map(OsString::from));
            options.push(toolbox.include.clone().into());
            // The warning says that ThreadSanitizer does not support fences; our runtime does.
            options.push("-Wno-tsan".into());
        }
        Family::Clang => {
            options.push("--start-no-unused-arguments".into());
            options.extend(common.map(OsString::from));
            options.push(toolbox.include.clone().into());
            // Otherwise clang omits a read that a write of the same place follows.
            options.extend(["-mllvm", "-tsan-instrument-read-before-write=1"].map(OsString::from));
            options.push("-fno-sanitize-link-runtime".into());
            options.push("--end-no-unused-arguments".into());
        }
    }
    options
}

/// The options that override the user's options.
fn overriding(arguments: &Arguments) -> Option<OsString> {
    // Link-time optimisation generates code at the link, where it would not be instrumented.
    arguments.has_prefix("-flto").then(|| "-fno-lto".into())
}

fn compile(arguments: &Arguments, family: Family, toolbox: &Toolbox) -> Vec<OsString> {
    let mut args = instrumentation(family, toolbox);
    args.extend(words(&arguments.items));
    args.extend(overriding(arguments));
    args
}

/// Compiles one of several sources to an object, with gcc.
fn compile_one(
    arguments: &Arguments,
    source: &Item,
    language: Option<&Item>,
    object: &Path,
    toolbox: &Toolbox,
) -> Vec<OsString> {
    let mut args = instrumentation(Family::Gcc, toolbox);
    let options = arguments.items.iter().filter(|i| i.kind == ItemKind::Option);
    args.extend(options.flat_map(|i| i.words.clone()));
    args.extend(dependencies(arguments, &source.words[0], arguments.output()));
    args.extend(overriding(arguments));
    args.extend(language.into_iter().flat_map(|l| l.words.clone()));
    args.extend(["-c".into(), source.words[0].clone(), "-o".into(), object.into()]);
    args
}

/// The options about dependencies, with the names that gcc would have chosen for an executable.
pub(super) fn dependencies(arguments: &Arguments, source: &OsStr, output: &Path) -> Vec<OsString> {
    let wanted: Vec<&Item> =
        arguments.items.iter().filter(|i| i.kind == ItemKind::Dependencies).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut args: Vec<OsString> = wanted.iter().flat_map(|i| i.words.clone()).collect();
    let has =
        |option: &str| wanted.iter().any(|i| i.words[0].to_string_lossy().starts_with(option));
    let stem = Path::new(source).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if !has("-MF") {
        let beside = match arguments.stage {
            Stage::Compile => output.with_extension("d"),
            _ => output.with_file_name(format!(
                "{}-{stem}.d",
                output.file_name().unwrap_or_default().to_string_lossy()
            )),
        };
        args.extend(["-MF".into(), beside.into()]);
    }
    if !has("-MT") && !has("-MQ") {
        args.extend(["-MQ".into(), output.into()]);
    }
    args
}

pub(super) fn link(
    arguments: &Arguments,
    items: &[Item],
    family: Family,
    toolbox: &Toolbox,
) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    if family == Family::Clang {
        args.extend(instrumentation(family, toolbox));
    }
    if arguments.stage == Stage::Link {
        args.extend(runtime(toolbox));
    }
    for item in items {
        args.extend(for_link(item, arguments.stage, family));
    }
    args.extend(overriding(arguments));
    args
}

/// The options that link our library before everything else.
fn runtime(toolbox: &Toolbox) -> Vec<OsString> {
    let mut list = OsString::from("-Wl,--dynamic-list=");
    list.push(&toolbox.exported);
    vec![
        "-Wl,--whole-archive".into(),
        toolbox.libraries.archive.clone().into(),
        "-Wl,--no-whole-archive".into(),
        list,
    ]
}

/// The words of an item at a link, without options that would link another runtime, and without options
/// that forbid undefined symbols in a library: the executable defines those of our runtime.
fn for_link(item: &Item, stage: Stage, family: Family) -> Vec<OsString> {
    let text = item.words[0].to_string_lossy();
    if text == "-static-libtsan" || text == "-ltsan" || text == "-shared-libsan" {
        return Vec::new();
    }
    if let Some(list) = text.strip_prefix("-fsanitize=")
        && family == Family::Gcc
    {
        let others: Vec<&str> = list.split(',').filter(|&s| s != "thread").collect();
        let rest = OsString::from(format!("-fsanitize={}", others.join(",")));
        return if others.is_empty() { Vec::new() } else { vec![rest] };
    }
    if stage == Stage::LinkShared {
        if let Some(list) = text.strip_prefix("-Wl,") {
            let kept = open_ended(list);
            let rest = OsString::from(format!("-Wl,{kept}"));
            return if kept.is_empty() { Vec::new() } else { vec![rest] };
        }
        if text == "-z" && item.words.get(1).is_some_and(|w| w == "defs") {
            return Vec::new();
        }
    }
    item.words.clone()
}

/// Takes `-z,defs` and `--no-undefined` out of a list of linker options.
fn open_ended(list: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for word in list.split(',') {
        match (kept.last(), word) {
            (Some(&"-z"), "defs") => {
                kept.pop();
            }
            (_, "--no-undefined" | "-no-undefined" | "-zdefs") => {}
            _ => kept.push(word),
        }
    }
    kept.join(",")
}

fn words(items: &[Item]) -> Vec<OsString> {
    items.iter().flat_map(|i| i.words.clone()).collect()
}

fn object_name(source: &OsStr, number: usize) -> String {
    let stem = Path::new(source).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    format!("{number}-{stem}.o")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolbox() -> Toolbox {
        Toolbox {
            libraries: selvedge_runtime::Libraries {
                archive: "/c/libselvedge.a".into(),
                directory: "/c".into(),
                shared: "/c/libtsan.so.2".into(),
            },
            include: "/c/include".into(),
            cc: "/c/selvedge-cc".into(),
            cxx: "/c/selvedge-c++".into(),
            rustc: PathBuf::new(),
            exported: "/c/exported.list".into(),
        }
    }

    fn plan(line: &str, family: Family) -> Result<Vec<String>, String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let plan = Plan::new(&Arguments::parse(&args), family, &toolbox());
        let plan = plan.map_err(|e| e.to_string())?;
        let scratch =
            plan.scratch.as_ref().map(|s| s.path().display().to_string()).unwrap_or_default();
        let shown = |call: &Vec<OsString>| {
            let words: Vec<_> = call.iter().map(|w| w.to_string_lossy()).collect();
            let line = words.join(" ");
            if scratch.is_empty() { line } else { line.replace(&scratch, "TMP") }
        };
        Ok(plan.before.iter().chain([&plan.last]).map(shown).collect())
    }

    const GCC: &str = "-fsanitize=thread -g -DSELVEDGE=1 -idirafter /c/include -Wno-tsan";
    const CLANG: &str = "--start-no-unused-arguments -fsanitize=thread -g -DSELVEDGE=1 -idirafter /c/include -mllvm -tsan-instrument-read-before-write=1 -fno-sanitize-link-runtime --end-no-unused-arguments";
    const RUNTIME: &str = "-Wl,--whole-archive /c/libselvedge.a -Wl,--no-whole-archive -Wl,--dynamic-list=/c/exported.list";

    #[test]
    fn compiling_instruments() {
        let line = "-O2 -c a.c -o a.o";
        assert_eq!(plan(line, Family::Gcc).unwrap(), [format!("{GCC} {line}")]);
        assert_eq!(plan(line, Family::Clang).unwrap(), [format!("{CLANG} {line}")]);
    }

    #[test]
    fn linking_puts_our_library_first() {
        let line = "-fsanitize=thread -o a a.o -lm -lpthread";
        assert_eq!(plan(line, Family::Gcc).unwrap(), [format!("{RUNTIME} -o a a.o -lm -lpthread")]);
        assert_eq!(plan(line, Family::Clang).unwrap(), [format!("{CLANG} {RUNTIME} {line}")]);
    }

    #[test]
    fn shared_libraries_leave_the_runtime_to_the_executable() {
        for family in [Family::Gcc, Family::Clang] {
            let line = "-shared -Wl,-z,defs,-soname,x.so -Wl,--no-undefined -o x.so a.o";
            let shared = plan(line, family).unwrap().remove(0);
            assert!(!shared.contains("libselvedge.a"), "{shared}");
            assert!(shared.ends_with("-shared -Wl,-soname,x.so -o x.so a.o"), "{shared}");
        }
    }

    #[test]
    fn gcc_compiles_and_links_in_two_steps() {
        assert_eq!(
            plan("-O1 a.c b.o -o prog -lm -MMD -Wl,-s", Family::Gcc).unwrap(),
            [
                format!("{GCC} -O1 -MMD -MF prog-a.d -MQ prog -c a.c -o TMP/0-a.o"),
                format!("{RUNTIME} -O1 TMP/0-a.o b.o -o prog -lm -Wl,-s")
            ]
        );
        assert_eq!(
            plan("-x c++ a.txt -o prog", Family::Gcc).unwrap(),
            [format!("{GCC} -x c++ -c a.txt -o TMP/0-a.o"), format!("{RUNTIME} TMP/0-a.o -o prog")]
        );
        let clang = plan("a.c -o prog", Family::Clang).unwrap();
        assert_eq!(clang, [format!("{CLANG} {RUNTIME} a.c -o prog")]);
    }

    #[test]
    fn link_time_optimisation_is_off() {
        let args = plan("-flto=auto -c a.c", Family::Gcc).unwrap();
        assert!(args[0].ends_with("-flto=auto -c a.c -fno-lto"));
    }

    #[test]
    fn what_cannot_work_is_refused() {
        for (line, message) in [
            ("-static a.o", "-static: the C library must be linked dynamically"),
            ("-nostdlib a.o", "-nostdlib: a program without the C library cannot be observed"),
            ("-fsanitize=address -c a.c", "-fsanitize=address: the address sanitizer and Selvedge"),
        ] {
            let error = plan(line, Family::Gcc).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
        assert!(plan("-fsanitize=undefined a.o", Family::Gcc).is_ok());
        assert!(plan("-nostdlib -r a.o -o b.o", Family::Gcc).is_ok());
        assert!(plan("-shared -nostdlib a.o -o b.so", Family::Gcc).is_ok());
    }
}
