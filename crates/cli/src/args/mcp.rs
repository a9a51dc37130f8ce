//! The options of `selvedge mcp`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
#[command(after_long_help = "\
The tools are test, explain, replay, margin and fixed. Each runs as the command of that name would, with its result
as structured content. Programs and stores outside of the directories are refused, also behind symbolic links.")]
pub(crate) struct Mcp {
    /// Directories below which programs may be run; relative paths of clients begin at the first
    #[arg(required = true, value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
}
