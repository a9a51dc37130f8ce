//! The options of `selvedge infer`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use selvedge_report::{FORMATS, Format};

use super::{FailOn, InferFormat, Unmarked, duration, format};

#[derive(Args, Debug)]
pub(crate) struct Infer {
    #[command(subcommand)]
    pub(crate) command: InferCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum InferCommand {
    /// Infer what deterministic blocks promise: which results are the same whenever which inputs are
    Determinism(InferDeterminism),
    /// Infer how each shared variable is kept free of races
    Discipline(InferDiscipline),
    /// Infer the fewest stars with which parallel executions have sequential twins
    Ndseq(InferNdseq),
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
A line for each variable: `thread-local` (one thread), `read-shared` (only reads), `guarded-by LOCK` (held at every \
access) are phases; `fork`, `join` and `via lock|atomic|barrier|semaphore NAME` say what orders the next phase after \
the one before. The text is a specification that `--discipline` checks. Races found on the way are findings.")]
pub(crate) struct InferDiscipline {
    /// Trace files, text (.std) or binary (.svt); `-` is standard input
    #[arg(value_name = "TRACE", conflicts_with = "command")]
    pub(crate) traces: Vec<PathBuf>,
    /// Native runs to merge
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) runs: u64,
    /// Controlled executions as well; they show variables with static storage
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) schedules: u64,
    /// Only variables of this name; `*` matches anything
    #[arg(long, value_name = "PATTERN")]
    pub(crate) variable: Vec<String>,
    /// Also variables that only one thread ever touches
    #[arg(long)]
    pub(crate) all: bool,
    /// Write a specification to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) emit: Option<PathBuf>,
    /// Write copies of the sources to this directory, with a comment beside each declaration
    #[arg(long, value_name = "DIR", requires = "command")]
    pub(crate) annotate: Option<PathBuf>,
    /// Write the same as a unified diff, for `patch -p1`
    #[arg(long, value_name = "FILE", requires = "command")]
    pub(crate) patch: Option<PathBuf>,
    /// Attributes of clang's thread safety analysis instead of comments, where clang can say the same
    #[arg(long)]
    pub(crate) clang: bool,
    /// Let clang check the attributes on all paths, and find out what functions demand of their callers
    #[arg(long, requires = "command")]
    pub(crate) verify: bool,
    /// How the sources are compiled, if the program was not built by `selvedge cc`
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub(crate) compile_commands: Option<PathBuf>,
    /// How to print what was inferred
    #[arg(long, value_parser = format(), default_value = FORMATS[0].name)]
    pub(crate) format: &'static Format,
    /// Exit with 1 if there is a finding of this status or a surer one
    #[arg(long, value_enum, default_value = "observed", value_name = "STATUS")]
    pub(crate) fail_on: FailOn,
    /// Directories to search for source files, besides the paths recorded at build time
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Vec<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
A program must have been built with `selvedge cc --selvedge-flow`; it runs under control. Traces must have data flow, \
and statements marked by begin(stmt:FILE:FIRST-LAST FUNCTION). A star is put around consecutive statements. The exit code is 0 if there is a specification, and 1 if no stars suffice: then an execution \
violates every one. docs/ndseq.md says more.")]
pub(crate) struct InferNdseq {
    /// Trace files, text (.std) or binary (.svt); `-` is standard input
    #[arg(value_name = "TRACE", required_unless_present = "command", conflicts_with = "command")]
    pub(crate) traces: Vec<PathBuf>,
    /// Executions of the program
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) schedules: u64,
    /// The longest time for all executions
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) time: Duration,
    /// The longest time for one execution
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) patience: Duration,
    /// The seed of the schedules
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Globals that are the result when the program ends, instead of what it prints and its exit code
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "command")]
    pub(crate) focus: Vec<String>,
    /// Functions each call of which is a task, by name (`*` matches anything), instead of threads
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', requires = "command")]
    pub(crate) tasks: Vec<String>,
    /// Sums and products of floating point numbers commute, although rounding depends on their order
    #[arg(long)]
    pub(crate) commute_floats: bool,
    /// Write the specification to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) emit: Option<PathBuf>,
    /// Print a diff that puts SELVEDGE_STAR_BLOCK into the sources, for `patch -p1`
    #[arg(long, requires = "command", conflicts_with = "format")]
    pub(crate) annotate: bool,
    /// No star exactly here; can be repeated
    #[arg(long, value_name = "FILE:FIRST-LAST")]
    pub(crate) not: Vec<String>,
    /// How to print what was inferred
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: InferFormat,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
`-- PROGRAM` runs a program under control, `--runs` times for each `--input`, each time with another schedule, and \
infers from the states of its blocks (`SELVEDGE_STATE`, `selvedge::deterministic_with`); `--store` infers from the \
stored executions of the last build. In a file, an execution is one line: {\"block\": NAME, \"pre\": {NAME: VALUE, …}, \"post\": {NAME: VALUE, …}}, with the values of \
the block's locations before and after it. Values are compared by `equal`, numbers with a fraction also by \
`within:1e-10`, arrays also by `multiset` and `set`. The exit code is 3 if nothing can be inferred about a block \
because no input was run twice.")]
pub(crate) struct InferDeterminism {
    /// A file of executions, one JSON object a line; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["store", "command"])]
    pub(crate) executions: Option<PathBuf>,
    /// Infer from the executions in the store
    #[arg(long, conflicts_with = "command")]
    pub(crate) store: bool,
    /// A line of further arguments of the program, to run it with; can be repeated
    #[arg(long = "input", value_name = "ARGS", requires = "command", allow_hyphen_values = true)]
    pub(crate) inputs: Vec<String>,
    /// How many executions for each input
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) runs: u64,
    /// The seed of the schedules
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The longest time for one execution
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) patience: Duration,
    #[command(flatten)]
    pub(crate) unmarked: Unmarked,
    /// Only the block of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) block: Option<String>,
    /// Which weakest precondition: one that occurs between two executions, or any
    #[arg(long, value_enum, default_value = "wlop")]
    pub(crate) precondition: Precondition,
    /// Print the assertions for the source instead
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) paste: Option<Language>,
    /// How to print what was inferred
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: InferFormat,
    /// The program and its arguments
    #[arg(
        required_unless_present_any = ["executions", "store"],
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(crate) command: Vec<OsString>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Precondition {
    /// The weakest one that occurs between two executions: cautious where inputs are few
    Wlop,
    /// All weakest ones
    Wlp,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Language {
    C,
    Rust,
}
