//! `selvedge demo`: a tour on bundled examples.
//!
//! The tour checks itself: an example that does not show what it is meant to show is a failure.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anstyle::{AnsiColor, Style};
use selvedge_model::{Kind, Status};

use crate::args::{Check, Demo, FailOn, Output, ReportFormat};
use crate::check;
use crate::claims::RegionOptions;
use crate::exit::{Exit, Failure};

struct Example {
    text: &'static str,
    name: &'static str,
    source: &'static str,
    trace: &'static str,
    expected: Option<(Kind, Status)>,
}

macro_rules! example {
    ($name:literal, $text:literal, $expected:expr) => {
        Example {
            text: $text,
            name: $name,
            source: include_str!(concat!("../demo/", $name, ".c")),
            trace: include_str!(concat!("../demo/", $name, ".std")),
            expected: $expected,
        }
    };
}

const EXAMPLES: [Example; 4] = [
    example!(
        "account",
        "A data race. In the recorded execution the auditor happened to look after the deposit, so \
         nothing went wrong; but nothing made it look then.",
        Some((Kind::DataRace, Status::Observed))
    ),
    example!(
        "account_fixed",
        "The same program where the auditor waits for the teller. The order is now a matter of the \
         program and not of luck.",
        None
    ),
    example!(
        "transfer",
        "A deadlock that did not happen. One transfer was over before the other began; the locks \
         that each of them took tell that it may come otherwise.",
        Some((Kind::Deadlock, Status::Predicted))
    ),
    example!(
        "transfer_fixed",
        "The same with a lock around the two acquisitions, which makes the circle impossible.",
        None
    ),
];

/// Shows the examples one after the other.
pub(crate) fn run(args: &Demo) -> Result<Exit, Failure> {
    let place = Place::new(args.keep.as_deref())?;
    for example in &EXAMPLES {
        show(example, &place.directory)?;
    }
    if args.keep.is_some() {
        anstream::println!("The examples are in {}.", place.directory.display());
    } else {
        anstream::println!(
            "`selvedge demo --keep DIR` leaves the examples in DIR to try things on."
        );
    }
    Ok(Exit::Clean)
}

fn show(example: &Example, directory: &Path) -> Result<(), Failure> {
    let write = |name: String, contents: &str| -> Result<PathBuf, Failure> {
        let path = directory.join(name);
        fs::write(&path, contents).map_err(|error| Failure::Write { path: path.clone(), error })?;
        Ok(path)
    };
    write(format!("{}.c", example.name), example.source)?;
    let trace = write(format!("{}.std", example.name), example.trace)?;
    let bold = Style::new().bold();
    let command = Style::new().fg_color(Some(AnsiColor::Cyan.into()));
    anstream::println!("{bold}{}{bold:#}\n", wrapped(example.text));
    anstream::println!("{command}$ selvedge check {}.std{command:#}", example.name);
    let output = Output {
        format: ReportFormat::Text,
        fail_on: FailOn::Never,
        all: false,
        source: vec![directory.to_owned()],
    };
    let analyses = crate::catalogue::DEFAULT.iter().map(ToString::to_string).collect();
    let report = check::analyse_all(&Check {
        traces: vec![trace],
        analyses,
        regions: RegionOptions::default(),
        output: output.clone(),
    })?;
    check::print(&report, &output)?;
    anstream::println!();
    let found: Vec<_> = report.findings.iter().map(|f| (f.kind, f.status)).collect();
    if found == example.expected.as_slice() {
        Ok(())
    } else {
        let name = example.name;
        Err(Failure::Usage(format!(
            "the example {name} shows {found:?}: this is a bug in selvedge"
        )))
    }
}

/// Breaks a text into lines for a narrow terminal.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 80;
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// The directory of the examples: the user's, or a temporary one that goes away again.
struct Place {
    directory: PathBuf,
    temporary: bool,
}

impl Place {
    fn new(keep: Option<&Path>) -> Result<Place, Failure> {
        let temporary =
            || std::env::temp_dir().join(format!("selvedge-demo-{}", std::process::id()));
        let directory = keep.map_or_else(temporary, Path::to_owned);
        let created = fs::create_dir_all(&directory);
        created.map_err(|error: io::Error| Failure::Write { path: directory.clone(), error })?;
        Ok(Place { directory, temporary: keep.is_none() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.temporary {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}
