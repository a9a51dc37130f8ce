//! The injected runtime as files. It is embedded in the tool, so that one installed binary suffices.

use std::io;
use std::path::{Path, PathBuf};

static STATIC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libselvedge.a"));
static SHARED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libtsan.so.2"));

/// How the runtime gets into a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Linked in.
    Linked,
    /// In place of the `libtsan.so.2` that the program was built for.
    Replaced,
    /// Preloaded into a program that is not instrumented: synchronization only.
    Preloaded,
}

/// Where the files lie.
#[derive(Clone, Debug)]
pub struct Libraries {
    /// To be linked before the C library.
    pub archive: PathBuf,
    /// Directory of `libtsan.so.2`.
    pub directory: PathBuf,
    /// That file.
    pub shared: PathBuf,
}

impl Libraries {
    /// A text that tells these libraries from those of other builds, to name a directory after.
    pub fn fingerprint() -> &'static str {
        env!("SELVEDGE_LIBRARIES")
    }

    /// Writes the files into `directory`, unless they are there already.
    pub fn install(directory: &Path) -> io::Result<Libraries> {
        std::fs::create_dir_all(directory)?;
        let libraries = Libraries {
            archive: directory.join("libselvedge.a"),
            directory: directory.to_owned(),
            shared: directory.join("libtsan.so.2"),
        };
        write(&libraries.archive, STATIC)?;
        write(&libraries.shared, SHARED)?;
        Ok(libraries)
    }
}

/// Several processes may install at once: each writes a file of its own and moves it into place.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if std::fs::read(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    let own = path.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&own, content)?;
    std::fs::rename(&own, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every program that is built contains the runtime: a table in it that does not begin as zeros costs megabytes,
    /// on disk and at each link.
    #[test]
    fn the_runtime_is_small() {
        const MOST: usize = 8 << 20;
        assert!(STATIC.len() < MOST && SHARED.len() < MOST, "{} {}", STATIC.len(), SHARED.len());
    }
}
