//! Finds the project's `.selvedge/`.

use std::path::{Path, PathBuf};

const NAME: &str = ".selvedge";

/// The nearest `.selvedge/` in this directory or above it, as with `.git`; if there is none, the one to
/// create here.
pub(crate) fn directory(here: &Path) -> PathBuf {
    here.ancestors().map(|d| d.join(NAME)).find(|d| d.is_dir()).unwrap_or_else(|| here.join(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_existing_one_wins() {
        let root = std::env::temp_dir().join(format!("selvedge-place-{}", std::process::id()));
        let deep = root.join("project/src/deep");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(directory(&deep), deep.join(NAME));
        std::fs::create_dir(root.join(NAME)).unwrap();
        assert_eq!(directory(&deep), root.join(NAME));
        std::fs::create_dir(root.join("project").join(NAME)).unwrap();
        assert_eq!(directory(&deep), root.join("project").join(NAME));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
