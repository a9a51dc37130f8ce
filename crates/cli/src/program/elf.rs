//! How a program's executable file was built, and so whether it can be observed.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::elf::FileHeader64;
use object::read::elf::{Dyn, ElfFile, FileHeader};
use object::{Endianness, Object, ObjectSegment, ObjectSymbol};

use selvedge_runtime::control::{CodePlace, Global};

use crate::exit::ProgramError;

/// The globals of a program that have a size, by name.
pub(crate) fn globals(path: &Path) -> Result<BTreeMap<String, Global>, ProgramError> {
    let wrong = |error| ProgramError::Read { path: path.to_owned(), error };
    let bytes = std::fs::read(path).map_err(wrong)?;
    let foreign = |_| ProgramError::Foreign(path.to_owned());
    let elf = object::File::parse(&*bytes).map_err(foreign)?;
    let lowest = elf.segments().map(|s| s.address()).min().unwrap_or(0);
    // The kernel names mapped files without symbolic links.
    let module = path.canonicalize().map_err(wrong)?;
    let mut globals = BTreeMap::new();
    for symbol in elf.symbols() {
        if symbol.kind() == object::SymbolKind::Data
            && symbol.size() > 0
            && let Ok(name) = symbol.name()
        {
            let offset = symbol.address().wrapping_sub(lowest);
            let place = CodePlace { module: module.clone(), offset };
            globals.insert(name.to_owned(), Global { place, len: symbol.size() });
        }
    }
    Ok(globals)
}

/// How a program was built, as far as it matters for observing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Built {
    /// Instrumented, with our runtime linked in.
    Ours,
    /// Instrumented, with a shared `libtsan`, which our library can replace.
    SharedTsan,
    /// Instrumented, with ThreadSanitizer's runtime statically linked, which cannot be replaced.
    StaticTsan,
    /// Built with another sanitizer, which cannot run in one process with our runtime.
    OtherSanitizer(&'static str),
    /// Not instrumented; the loader can preload our library.
    Plain,
    /// Not instrumented and statically linked: no library can be preloaded.
    Static,
}

/// An executable file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) built: Built,
    /// Whether the file has debug information.
    pub(crate) debug_info: bool,
    /// Whether it runs as another user or group than the one that starts it.
    pub(crate) privileged: bool,
}

/// For messages, after "is".
impl fmt::Display for Built {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Built::Ours => "built with selvedge",
            Built::SharedTsan => "built with gcc -fsanitize=thread",
            Built::StaticTsan => "built with ThreadSanitizer's static runtime",
            Built::OtherSanitizer(_) => "built with another sanitizer",
            Built::Plain => "not instrumented",
            Built::Static => "not instrumented, statically linked",
        })
    }
}

impl Program {
    /// Looks a program up as a shell would, and reads it.
    pub(crate) fn find(name: &Path) -> Result<Program, ProgramError> {
        if name.components().count() > 1 || name.has_root() {
            return Program::read(name);
        }
        let directories = std::env::var_os("PATH").unwrap_or_default();
        let found =
            std::env::split_paths(&directories).map(|d| d.join(name)).find(|p| is_executable(p));
        let not_found = || ProgramError::NotInPath {
            name: name.display().to_string(),
            here: is_executable(name),
        };
        Program::read(&found.ok_or_else(not_found)?)
    }

    /// Reads a program.
    pub(crate) fn read(path: &Path) -> Result<Program, ProgramError> {
        let failed = |error| ProgramError::Read { path: path.to_owned(), error };
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if metadata.is_dir() {
            return Err(ProgramError::Directory(path.to_owned()));
        }
        if !is_executable(path) {
            return Err(ProgramError::NotExecutable(path.to_owned()));
        }
        let mut bytes = Vec::new();
        let mut file = std::fs::File::open(path).map_err(failed)?;
        file.read_to_end(&mut bytes).map_err(failed)?;
        if let Some(rest) = bytes.strip_prefix(b"#!") {
            let line = String::from_utf8_lossy(rest.split(|&b| b == b'\n').next().unwrap_or(rest));
            let interpreter = line.trim().to_owned();
            return Err(ProgramError::Script { path: path.to_owned(), interpreter });
        }
        let foreign = || ProgramError::Foreign(path.to_owned());
        let elf = ElfFile::<FileHeader64<Endianness>>::parse(&*bytes).map_err(|_| foreign())?;
        if elf.elf_header().e_machine(elf.endian()) != object::elf::EM_X86_64 {
            return Err(foreign());
        }
        let debug_info = elf.section_by_name(".debug_info").is_some();
        let (built, privileged) = (built(&elf, &bytes), is_privileged(&metadata));
        Ok(Program { path: path.to_owned(), built, debug_info, privileged })
    }
}

/// Whether the set-user-id or set-group-id bit changes who the program runs as.
fn is_privileged(metadata: &std::fs::Metadata) -> bool {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2000;
    let sets = |bit| metadata.mode() & bit != 0;
    sets(SET_USER) && metadata.uid() != rustix::process::getuid().as_raw()
        || sets(SET_GROUP) && metadata.gid() != rustix::process::getgid().as_raw()
}

fn built(elf: &ElfFile<'_, FileHeader64<Endianness>>, bytes: &[u8]) -> Built {
    let symbols = Symbols::of(elf);
    let needed = needed(elf, bytes);
    let needs = |prefix: &str| needed.iter().any(|n| n.starts_with(prefix));
    // Our runtime works only if the loader finds its functions before the C library's.
    if symbols.exports("selvedge_region_enter") && symbols.exports("pthread_mutex_lock") {
        Built::Ours
    } else if needs("libasan") || symbols.defines("__asan_init") {
        Built::OtherSanitizer("address")
    } else if symbols.defines("__msan_init") {
        Built::OtherSanitizer("memory")
    } else if needs("libhwasan") || symbols.defines("__hwasan_init") {
        Built::OtherSanitizer("hwaddress")
    } else if needs("libtsan.so.2") {
        Built::SharedTsan
    } else if symbols.defines("__tsan_init") {
        Built::StaticTsan
    } else if needed.is_empty() {
        Built::Static
    } else {
        Built::Plain
    }
}

struct Symbols {
    exported: Vec<String>,
    defined: Vec<String>,
}

impl Symbols {
    fn of(elf: &ElfFile<'_, FileHeader64<Endianness>>) -> Symbols {
        let interesting = |name: &str| {
            name.ends_with("san_init")
                || name == "selvedge_region_enter"
                || name == "pthread_mutex_lock"
        };
        let mut symbols = Symbols { exported: Vec::new(), defined: Vec::new() };
        for symbol in elf.dynamic_symbols().filter(|s| !s.is_undefined()) {
            symbols
                .exported
                .extend(symbol.name().ok().filter(|n| interesting(n)).map(str::to_owned));
        }
        for symbol in elf.symbols().filter(|s| !s.is_undefined()) {
            symbols
                .defined
                .extend(symbol.name().ok().filter(|n| interesting(n)).map(str::to_owned));
        }
        symbols
    }

    fn exports(&self, name: &str) -> bool {
        self.exported.iter().any(|n| n == name)
    }

    fn defines(&self, name: &str) -> bool {
        self.exports(name) || self.defined.iter().any(|n| n == name)
    }
}

/// The shared libraries that a program or a library is linked with; none if it is neither.
pub(crate) fn libraries(path: &Path) -> Vec<String> {
    let Ok(bytes) = std::fs::read(path) else { return Vec::new() };
    let elf = ElfFile::<FileHeader64<Endianness>>::parse(&*bytes);
    elf.map(|elf| needed(&elf, &bytes)).unwrap_or_default()
}

/// The shared libraries that the program is linked with.
fn needed(elf: &ElfFile<'_, FileHeader64<Endianness>>, bytes: &[u8]) -> Vec<String> {
    let endian = elf.endian();
    let sections = elf.elf_section_table();
    let Ok(Some((entries, strings))) = sections.dynamic(endian, bytes) else { return Vec::new() };
    let strings = sections.strings(endian, bytes, strings).unwrap_or_default();
    entries
        .iter()
        .filter(|d| d.tag(endian) == object::elf::DT_NEEDED)
        .filter_map(|d| d.string(endian, strings).ok())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
