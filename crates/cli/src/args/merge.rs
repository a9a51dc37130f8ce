//! `selvedge merge`.

use std::path::PathBuf;

use clap::Args;

use super::Output;

#[derive(Args, Debug)]
#[command(after_long_help = "\
The parts are those of one command, with the same options and the same build of the program. The report is that of \
the command run by one process. If something is missing, what there is is reported, and what to run is named; then \
the exit code is 1 if there are findings, and 3 if not.")]
pub(crate) struct Merge {
    /// The stores of the parts: what `--shard` wrote, or what the ranks of a job left that was broken off
    #[arg(required = true, value_name = "STORE")]
    pub(crate) stores: Vec<PathBuf>,
    /// Run what is missing
    #[arg(long)]
    pub(crate) complete: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}
