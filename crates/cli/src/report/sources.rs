//! Finding the source files that findings speak of.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_model::Site;

/// A source file larger than this is not shown.
const LARGEST: u64 = 8 << 20;

/// Source files, read once.
pub(crate) struct Sources {
    directories: Vec<PathBuf>,
    files: HashMap<PathBuf, Option<String>>,
}

/// The part of a line of source that matters.
pub(crate) struct Excerpt<'a> {
    pub(crate) source: &'a str,
    /// Byte range in `source`.
    pub(crate) span: std::ops::Range<usize>,
}

impl Sources {
    /// Looks for files where they say they are, then below `directories`.
    pub(crate) fn new(directories: &[PathBuf]) -> Sources {
        Sources { directories: directories.to_vec(), files: HashMap::new() }
    }

    /// The line of a site: from its column, or its first letter, to its end.
    pub(crate) fn excerpt(&mut self, site: &Site) -> Option<Excerpt<'_>> {
        let frame = site.frame()?;
        let source = self.read(Path::new(&*frame.file))?;
        let number = usize::try_from(frame.line).ok()?.checked_sub(1)?;
        let start: usize = source.split_inclusive('\n').take(number).map(str::len).sum();
        let line = source[start..].lines().next().filter(|l| !l.trim().is_empty())?;
        let column = usize::try_from(frame.column).ok()?.saturating_sub(1);
        let from = match line.get(column..) {
            Some(rest) if column > 0 && !rest.trim().is_empty() => column,
            _ => line.len() - line.trim_start().len(),
        };
        let span = start + from..start + line.trim_end().len();
        Some(Excerpt { source, span })
    }

    /// The whole line of a site, without the blanks around it.
    pub(crate) fn line(&mut self, site: &Site) -> Option<&str> {
        let frame = site.frame()?;
        let source = self.read(Path::new(&*frame.file))?;
        let number = usize::try_from(frame.line).ok()?.checked_sub(1)?;
        source.lines().nth(number).map(str::trim).filter(|l| !l.is_empty())
    }

    fn read(&mut self, path: &Path) -> Option<&str> {
        let directories = &self.directories;
        self.files
            .entry(path.to_owned())
            .or_insert_with(|| {
                let below = |dir: &PathBuf| {
                    [dir.join(path), dir.join(path.file_name().unwrap_or_default())]
                };
                std::iter::once(path.to_owned())
                    .chain(directories.iter().flat_map(below))
                    .find_map(|candidate| readable(&candidate))
            })
            .as_deref()
    }
}

fn readable(path: &Path) -> Option<String> {
    let small = fs::metadata(path).ok().filter(|m| m.is_file() && m.len() <= LARGEST);
    small.and_then(|_| fs::read_to_string(path).ok())
}
