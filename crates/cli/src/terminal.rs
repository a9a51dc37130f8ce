//! Prints reports: the width of the terminal, and the source files that reports quote.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use selvedge_model::Status;
use selvedge_report::{Report, Sources, View};

use crate::args::Output;
use crate::exit::Failure;

/// The width if the terminal's is unknown.
const WIDTH: usize = 120;
/// A source file larger than this is not shown.
const LARGEST: u64 = 8 << 20;

/// Prints a report to standard output.
pub(crate) fn print(report: &Report, output: &Output) -> Result<(), Failure> {
    anstream::stdout().write_all(rendered(report, output).as_bytes())?;
    Ok(())
}

/// Prints text to standard output.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// A report in the format that the user chose.
pub(crate) fn rendered(report: &Report, output: &Output) -> String {
    // What makes the command fail is listed.
    let all = output.all || output.fail_on.fails(Status::Predicted);
    let (width, wraps) = known_width().map_or((WIDTH, false), |width| (width, true));
    let mut view = View { sources: sources(&output.source), width, wraps, all };
    output.format.show(report, &mut view)
}

/// The width of the terminal, or a likely one.
pub(crate) fn width() -> usize {
    known_width().unwrap_or(WIDTH)
}

/// The width of the terminal.
fn known_width() -> Option<usize> {
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let terminal = || {
        let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
        Some(usize::from(size.ws_col)).filter(|&w| w > 0)
    };
    columns().or_else(terminal)
}

/// Reads source files by their recorded paths, then below `directories`.
pub(crate) fn sources(directories: &[PathBuf]) -> Sources<'_> {
    Sources::new(move |file| {
        let path = Path::new(file);
        let below =
            |dir: &PathBuf| [dir.join(path), dir.join(path.file_name().unwrap_or_default())];
        std::iter::once(path.to_owned())
            .chain(directories.iter().flat_map(below))
            .find_map(|candidate| readable(&candidate))
    })
}

fn readable(path: &Path) -> Option<String> {
    let small = fs::metadata(path).ok().filter(|m| m.is_file() && m.len() <= LARGEST);
    // Sources in older encodings are shown as well as they can be.
    small.and_then(|_| Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned()))
}
