//! The tour without a compiler: analyses of recorded executions.

use std::fs;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use selvedge_analyses::registry::Purpose;
use selvedge_model::{Kind, Status};
use selvedge_report::FORMATS;

use super::wrapped;
use crate::args::{Check, FailOn, Output};
use crate::commands::check;
use crate::exit::Failure;
use crate::program::claims::RegionOptions;
use crate::terminal;

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
            source: include_str!(concat!("../../../demo/", $name, ".c")),
            trace: include_str!(concat!("../../../demo/", $name, ".std")),
            expected: $expected,
        }
    };
}

const EXAMPLES: [Example; 4] = [
    example!(
        "account",
        "A data race. In the recorded execution the auditor happened to read the balance after the \
         deposit, so nothing went wrong. But nothing in the program forces that order.",
        Some((Kind::DataRace, Status::Observed))
    ),
    example!(
        "account_fixed",
        "The same program, but the auditor waits for the teller. Now the program forces the order.",
        None
    ),
    example!(
        "transfer",
        "A deadlock that did not happen. One transfer ended before the other began, but the order in \
         which they took their locks shows that they can deadlock.",
        Some((Kind::Deadlock, Status::Predicted))
    ),
    example!(
        "transfer_fixed",
        "The same program with one more lock around both acquisitions, which makes the deadlock impossible.",
        None
    ),
];

/// Shows the examples one after the other. Their files go into `directory`.
pub(super) fn run(directory: &Path) -> Result<(), Failure> {
    EXAMPLES.iter().try_for_each(|example| show(example, directory))
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
        format: &FORMATS[0],
        fail_on: FailOn::Never,
        all: false,
        source: vec![directory.to_owned()],
    };
    let analyses = crate::catalogue::defaults(Purpose::Check);
    let analyses = analyses.iter().map(ToString::to_string).collect();
    let report = check::analyse_all(&Check {
        traces: vec![trace],
        analyses,
        discipline: None,
        regions: RegionOptions::default(),
        output: output.clone(),
    })?;
    terminal::print(&report, &output)?;
    anstream::println!();
    let found: Vec<_> = report.cases.iter().map(|f| (f.kind, f.status)).collect();
    if found == example.expected.as_slice() {
        Ok(())
    } else {
        let name = example.name;
        Err(Failure::Usage(format!(
            "the example {name} has the findings {found:?}: this is a bug in selvedge"
        )))
    }
}
