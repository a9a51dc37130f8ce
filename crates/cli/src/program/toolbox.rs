//! The files that are needed to build and run programs: our libraries, the header, a list of symbols.
//!
//! All are embedded in the executable and unpacked into a cache directory that is named after their content.
//! So two versions of the tool do not overwrite each other's files, and a deleted cache is unpacked again. The links by
//! which the tool is called as a compiler are in a directory for each executable.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

use selvedge_runtime::Libraries;

use crate::exit::Failure;

/// What programs may include.
const HEADERS: [(&str, &str); 3] = [
    ("selvedge.h", include_str!("../../../runtime/include/selvedge.h")),
    ("selvedge-thread-safety.h", include_str!("../../../runtime/include/selvedge-thread-safety.h")),
    ("selvedge.hpp", include_str!("../../../runtime/include/selvedge.hpp")),
];

/// The symbols that an executable must export for libraries that it loads later.
const EXPORTED: &str = "{
    __tsan_*; __sanitizer_unaligned_*; selvedge_*; Annotate*; WTFAnnotate*;
    pthread_*; sem_*; mtx_*; cnd_*; thrd_*; call_once;
    malloc; free; cfree; calloc; realloc; reallocarray; memalign; aligned_alloc; posix_memalign; valloc;
    malloc_usable_size; mmap; mmap64; munmap; _Znwm*; _Znam*; _Zd*; __cxa_guard_*;
    setjmp; _setjmp; __sigsetjmp; longjmp; _longjmp; siglongjmp; __longjmp_chk;
    fork; syscall; signal; sigaction;
};
";

/// Called by one of these names, this program is a compiler.
pub(crate) const CC: &str = "selvedge-cc";
pub(crate) const CXX: &str = "selvedge-c++";
/// Called by this name, it is Cargo's wrapper around the Rust compiler.
pub(crate) const RUSTC: &str = "selvedge-rustc";

/// The paths of the unpacked files.
#[derive(Clone, Debug)]
pub(crate) struct Toolbox {
    pub(crate) libraries: Libraries,
    /// Directory of `selvedge.h` and `selvedge.hpp`.
    pub(crate) include: PathBuf,
    /// `selvedge cc` and `selvedge c++` as one path, for build tools that take no arguments.
    pub(crate) cc: PathBuf,
    pub(crate) cxx: PathBuf,
    /// The wrapper around the Rust compiler.
    pub(crate) rustc: PathBuf,
    /// The symbols to export, for the linker's `--dynamic-list`.
    pub(crate) exported: PathBuf,
}

impl Toolbox {
    /// Unpacks the files that the cache does not have.
    pub(crate) fn unpack() -> Result<Toolbox, Failure> {
        let directory = cache().join(Libraries::fingerprint());
        let failed = |error| Failure::Write { path: directory.clone(), error };
        let libraries = Libraries::install(&directory).map_err(failed)?;
        let include = directory.join("include");
        fs::create_dir_all(&include).map_err(failed)?;
        for (name, text) in HEADERS {
            put(&include.join(name), text).map_err(failed)?;
        }
        let exported = directory.join("exported.list");
        put(&exported, EXPORTED).map_err(failed)?;
        let own = std::env::current_exe().map_err(failed)?;
        // Two executables may have the same libraries, and a build that one began must not go on with the other.
        let links = directory.join(links_of(&own));
        fs::create_dir_all(&links).map_err(failed)?;
        let [cc, cxx, rustc] = [CC, CXX, RUSTC].map(|name| links.join(name));
        for link in [&cc, &cxx, &rustc] {
            point(link, &own).map_err(failed)?;
        }
        Ok(Toolbox { libraries, include, cc, cxx, rustc, exported })
    }
}

/// The name of the directory of links to an executable.
fn links_of(executable: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    executable.hash(&mut hasher);
    format!("links-{:016x}", hasher.finish())
}

/// Our cache directory, according to the XDG specification.
pub(crate) fn cache() -> PathBuf {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("selvedge")
}

/// Makes `link` a symbolic link to `target`, if it is not one already.
fn point(link: &Path, target: &Path) -> io::Result<()> {
    if fs::read_link(link).is_ok_and(|there| there == target) {
        return Ok(());
    }
    let own = link.with_extension(format!("{}.tmp", std::process::id()));
    std::os::unix::fs::symlink(target, &own)?;
    fs::rename(&own, link)
}

/// Writes a file, if it does not have this content already. Several processes may do so at the same time.
fn put(path: &Path, content: &str) -> io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == content.as_bytes()) {
        return Ok(());
    }
    let own = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&own, content)?;
    fs::rename(&own, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_executable_has_links_of_its_own() {
        let [a, b] = ["/usr/bin/selvedge", "/home/user/target/debug/selvedge"].map(Path::new);
        assert_ne!(links_of(a), links_of(b));
        assert_eq!(links_of(a), links_of(a));
    }
}
