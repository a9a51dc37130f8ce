//! Options about executions that must be as if sequential.

use clap::Args;

/// Options about executions that must be as if sequential.
#[derive(Args, Clone, Debug)]
pub(crate) struct NdseqOptions {
    /// Look for executions whose result no sequential execution has; the program must have been built with
    /// `selvedge cc --selvedge-flow` (docs/ndseq.md)
    #[arg(long)]
    pub(crate) ndseq: bool,
    /// Globals that are the result when the program ends, instead of what it prints and its exit code
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "ndseq")]
    pub(crate) focus: Vec<String>,
    /// Functions each call of which is a task, by name (`*` matches anything), instead of threads
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', requires = "ndseq")]
    pub(crate) tasks: Vec<String>,
    /// A file that `selvedge infer ndseq --emit` wrote: its stars count instead of those in the source
    #[arg(long, value_name = "FILE", requires = "ndseq")]
    pub(crate) spec: Option<std::path::PathBuf>,
    /// Sums and products of floating point numbers commute, although rounding depends on their order
    #[arg(long, requires = "ndseq")]
    pub(crate) commute_floats: bool,
    /// The most sequential executions
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "ndseq")]
    pub(crate) sequential: u64,
}
