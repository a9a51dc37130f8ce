//! What a client may make us run and read.
//!
//! *Guarantee*: a program is run, and a store is read or written, only if its path, with every symbolic link
//! followed, lies below a directory that the command line names.

use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// The directories below which programs may be run.
pub(super) struct Allowed(Vec<PathBuf>);

impl Allowed {
    /// These directories.
    pub(super) fn new(directories: &[PathBuf]) -> Result<Allowed, Failure> {
        let real = |d: &PathBuf| {
            let real = d.canonicalize().and_then(|real| match real.is_dir() {
                true => Ok(real),
                false => Err(std::io::ErrorKind::NotADirectory.into()),
            });
            real.map_err(|error| Failure::Open { path: d.clone(), error })
        };
        directories.iter().map(real).collect::<Result<_, _>>().map(Allowed)
    }

    /// The path with links followed, if it is allowed. Relative paths begin at the first directory.
    pub(super) fn path(&self, path: &Path) -> Result<PathBuf, String> {
        let path = self.first().join(path);
        let real = path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))?;
        match self.0.iter().any(|allowed| real.starts_with(allowed)) {
            true => Ok(real),
            false => Err(format!(
                "{}: this is not below a directory that `selvedge mcp` was started for ({})",
                path.display(),
                self.0.iter().map(|d| d.display().to_string()).collect::<Vec<_>>().join(", ")
            )),
        }
    }

    /// Where a client works unless it says otherwise.
    pub(super) fn first(&self) -> &Path {
        &self.0[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_dots_do_not_lead_out() {
        let root = std::env::temp_dir().join(format!("selvedge-allowed-{}", std::process::id()));
        let inside = root.join("inside");
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::write(root.join("secret"), "").unwrap();
        std::fs::write(inside.join("program"), "").unwrap();
        std::os::unix::fs::symlink(root.join("secret"), inside.join("link")).unwrap();
        let allowed = Allowed::new(std::slice::from_ref(&inside)).unwrap();
        let is_allowed = |path: &str| allowed.path(Path::new(path)).is_ok();
        assert!(is_allowed("program") && is_allowed("."));
        assert!(!is_allowed("link"), "a link that leads out");
        assert!(!is_allowed("../secret") && !is_allowed("/bin/sh") && !is_allowed("missing"));
        assert!(!is_allowed(&format!("{}-other", inside.display())));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
