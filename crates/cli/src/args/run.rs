//! The options of `selvedge run`, most of which `cargo selvedge` has, too.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use selvedge_analyses::registry::Purpose;
use selvedge_report::{FORMATS, Format};

use super::{FailOn, RankOptions, duration, format};
use crate::catalogue;
use crate::program::claims::RegionOptions;

#[derive(Args, Debug)]
#[command(after_long_help = "\
The program keeps its standard output. Findings go to standard error and into .selvedge/; `selvedge report` \
shows them again. The exit code is 1 if there are findings at or above --fail-on, 3 if the program could \
not be run or observed, and otherwise the program's own exit code.")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) options: RunOptions,
    #[command(flatten)]
    pub(crate) ranks: RankOptions,
    /// Write everything that happens into this file, for `selvedge check`: .svt is binary, anything else is text
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

/// The options that `selvedge run` and `cargo selvedge` share.
#[derive(Args, Debug)]
pub(crate) struct RunOptions {
    /// The analyses to run, separated by commas, or `all`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = catalogue::defaults(Purpose::Run))]
    pub(crate) analyses: Vec<String>,
    /// How to print the findings; a format other than text goes to standard output, and the
    /// program's own output then goes to standard error
    #[arg(long, value_parser = format(), default_value = FORMATS[0].name)]
    pub(crate) format: &'static Format,
    /// Exit with 1 if there is a finding of this status or a surer one
    #[arg(long, value_enum, default_value = "observed", value_name = "STATUS")]
    pub(crate) fail_on: FailOn,
    /// Print every finding in full, also those that resemble another one
    #[arg(long)]
    pub(crate) all: bool,
    /// Directories to search for source files, besides the paths recorded at build time
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Vec<PathBuf>,
    /// A file of findings not to report, in the format of ThreadSanitizer's suppression files
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
    /// Compare deterministic blocks with executions of other builds of the program, too
    #[arg(long)]
    pub(crate) across_builds: bool,
    /// How long the end of main waits for threads that still run and do not wait themselves
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) linger: Duration,
    #[command(flatten)]
    pub(crate) regions: RegionOptions,
    /// A specification of disciplines to check: runs the analysis `discipline`
    #[arg(long, value_name = "FILE")]
    pub(crate) discipline: Option<PathBuf>,
}
