//! `selvedge states`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::duration;

#[derive(Args, Debug)]
pub(crate) struct States {
    #[command(subcommand)]
    pub(crate) command: StatesCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum StatesCommand {
    /// List the blocks: executions, distinct inputs, distinct results, builds
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the inputs and results of a block, differing ones beside each other
    Show {
        /// The name of the block
        block: String,
    },
    /// Print what two executions handed over differently; the exit code is 1 if they differ
    Diff {
        /// The number of an execution, as `show` prints it
        #[arg(value_name = "EXECUTION")]
        first: u64,
        /// The number of another execution of the block
        #[arg(value_name = "EXECUTION")]
        second: u64,
    },
    /// Delete executions that meet all the conditions
    Prune {
        /// The name of a block
        #[arg(long)]
        block: Option<String>,
        /// A build of a program, as `show` prints it
        #[arg(long)]
        build: Option<String>,
        /// The least age, such as 30d or 12h
        #[arg(long, value_name = "TIME", value_parser = duration)]
        older_than: Option<Duration>,
    },
}
