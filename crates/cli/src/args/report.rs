//! The options of `selvedge report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use selvedge_report::{FORMATS, Format};

use super::{FailOn, format};
use crate::store::RunId;

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// How to print the findings
    #[arg(long, value_parser = format(), default_value = FORMATS[0].name)]
    pub(crate) format: &'static Format,
    /// Short for `--format text`
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub(crate) text: bool,
    /// Short for `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Write one page for a browser into FILE: sources, stacks, and interleavings to step through
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "format", "text", "runs"])]
    pub(crate) html: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long, requires = "html")]
    pub(crate) open: bool,
    /// The run to report on, instead of the last one
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<RunId>,
    /// List the runs, without their findings
    #[arg(long, conflicts_with_all = ["json", "run"])]
    pub(crate) runs: bool,
    /// An earlier report to compare with, as JSON or SARIF: which findings are new, still there, gone
    #[arg(long, value_name = "FILE", conflicts_with = "runs")]
    pub(crate) baseline: Option<PathBuf>,
    /// Report on the second run, compared with the first
    #[arg(long, num_args = 2, value_name = "RUN", conflicts_with_all = ["runs", "run", "baseline"])]
    pub(crate) diff: Vec<RunId>,
    /// Exit with 1 if there is a finding of this status or a surer one; `new`: an observed or confirmed one
    /// that the baseline does not have
    #[arg(long, value_enum, default_value = "never", value_name = "STATUS")]
    pub(crate) fail_on: ReportFailOn,
    /// Print every finding in full, also those that resemble another one
    #[arg(long)]
    pub(crate) all: bool,
    /// Directories to search for source files, besides the paths recorded at build time
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Vec<PathBuf>,
}

/// What makes `selvedge report` exit with 1.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReportFailOn {
    /// An observed or confirmed finding that the baseline does not have
    New,
    Confirmed,
    Observed,
    Predicted,
    Never,
}

impl ReportFailOn {
    /// The bar that a finding has to reach.
    pub(crate) fn status(self) -> FailOn {
        match self {
            ReportFailOn::Confirmed => FailOn::Confirmed,
            ReportFailOn::New | ReportFailOn::Observed => FailOn::Observed,
            ReportFailOn::Predicted => FailOn::Predicted,
            ReportFailOn::Never => FailOn::Never,
        }
    }
}
