//! The command line.

mod control;
mod history;
mod infer;
mod mcp;
mod merge;
mod ndseq;
mod ranks;
mod report;
mod run;
mod states;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use selvedge_analyses::registry::{self as analyses, Purpose};
use selvedge_model::Status;
use selvedge_report::{FORMATS, Format};

use crate::catalogue;
use crate::program::claims::RegionOptions;
use crate::progress::Show;

pub(crate) use control::{Explore, Fixed, Part, Replay, Sharing, Test, Unmarked};
pub(crate) use history::History;
pub(crate) use infer::{
    Infer, InferCommand, InferDeterminism, InferDiscipline, InferNdseq, Language, Precondition,
};
pub(crate) use mcp::Mcp;
pub(crate) use merge::Merge;
pub(crate) use ndseq::NdseqOptions;
pub(crate) use ranks::RankOptions;
pub(crate) use report::{Report, ReportFailOn};
pub(crate) use run::{Run, RunOptions};
pub(crate) use states::{States, StatesCommand};

/// Finds, confirms, replays and explains concurrency bugs.
#[derive(Parser, Debug)]
#[command(name = "selvedge", version, arg_required_else_help = true, propagate_version = true)]
#[command(after_help = "\
Exit codes: 0 no finding at or above --fail-on; 1 findings; 2 wrong usage or input; 3 the program could \
not be run or observed.
`selvedge demo` shows on bundled examples what Selvedge does.")]
pub(crate) struct Arguments {
    /// When to use colours: NO_COLOR, CLICOLOR and CLICOLOR_FORCE count for `auto`
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// How to show the progress of long work
    #[arg(long, global = true, value_name = "HOW", default_value = "auto")]
    pub(crate) progress: Show,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When to use colours.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Color {
    /// If the output is a terminal
    Auto,
    /// Also in files and pipes
    Always,
    /// Nowhere
    Never,
}

impl Color {
    /// As it is written on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Color::Auto => "auto",
            Color::Always => "always",
            Color::Never => "never",
        }
    }

    /// Makes all that is printed from now on follow it.
    pub(crate) fn apply(self) {
        match self {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Compile or link C: a drop-in for cc that makes programs observable
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Cc {
        /// The arguments of cc; SELVEDGE_CC or --selvedge-compiler= names the compiler to call
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compile or link C++: a drop-in for c++
    #[command(name = "c++", disable_help_flag = true, disable_version_flag = true)]
    Cxx {
        /// The arguments of c++; SELVEDGE_CXX or --selvedge-compiler= names the compiler to call
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compile or link C with MPI: a drop-in for mpicc
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Mpicc {
        /// The arguments of mpicc; SELVEDGE_MPICC names the compiler to call, and so does `selvedge mpicc.mpich`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compile or link C++ with MPI: a drop-in for mpicxx
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Mpicxx {
        /// The arguments of mpicxx
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compile or link C with OpenSHMEM: a drop-in for oshcc
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Oshcc {
        /// The arguments of oshcc
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compile or link C++ with OpenSHMEM: a drop-in for oshcxx
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Oshcxx {
        /// The arguments of oshcxx
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Run a program, observe it, and report its concurrency bugs
    Run(Run),
    /// Observe a program, predict its concurrency bugs, and confirm them by making them happen
    Test(Test),
    /// Run a program under many schedules, and report the schedules that make it fail
    Explore(Explore),
    /// Make one report of the parts that `test --shard` or `explore --shard` has run
    Merge(Merge),
    /// Run a program again with the schedule of a finding
    Replay(Replay),
    /// Ask whether a finding is gone after an edit
    Fixed(Fixed),
    /// Analyse recorded traces
    Check(Check),
    /// Infer which contract a program keeps
    Infer(Infer),
    /// Decide whether recorded operations on an object are linearizable
    History(History),
    /// Print, summarise or convert traces
    Trace(Trace),
    /// Print what an earlier run found
    Report(Report),
    /// Print, compare or delete what deterministic blocks assumed and ensured
    States(States),
    /// Serve the Model Context Protocol on standard input and output, for agents and editors
    Mcp(Mcp),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of `selvedge`, or write those of all commands
    Man {
        /// Write a page for each command into this directory
        #[arg(long, value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Take a tour of bundled examples
    Demo(Demo),
}

#[derive(Args, Debug)]
#[command(after_long_help = analyses::help(Purpose::Check))]
pub(crate) struct Check {
    /// Trace files, text (.std) or binary (.svt); `-` is standard input
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// The analyses to run, separated by commas, or `all`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = catalogue::defaults(Purpose::Check))]
    pub(crate) analyses: Vec<String>,
    #[command(flatten)]
    pub(crate) regions: RegionOptions,
    /// A specification of disciplines to check: runs the analysis `discipline`
    #[arg(long, value_name = "FILE")]
    pub(crate) discipline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `500ms`, `30s`, `5m`, `1h`, `30d`; a number alone means seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let wrong = || format!("`{text}` is not a time such as 500ms, 30s or 5m");
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let seconds = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

/// Builds Rust programs with instrumentation, and observes them.
#[derive(Parser, Debug)]
#[command(
    name = "cargo selvedge",
    bin_name = "cargo selvedge",
    version,
    arg_required_else_help = true
)]
#[command(after_help = "\
`run`, `test`, `bench` and `nextest run` observe every program that they run; `build` only builds. Everything after \
the command goes to Cargo: cargo selvedge test --release -p mine -- --nocapture")]
pub(crate) struct CargoArguments {
    /// When to use colours: NO_COLOR, CLICOLOR and CLICOLOR_FORCE count for `auto`
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// Cargo's command (build, run, test, bench, nextest run) and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Output {
    /// How to print the findings
    #[arg(long, value_parser = format(), default_value = FORMATS[0].name)]
    pub(crate) format: &'static Format,
    /// Exit with 1 if there is a finding of this status or a surer one
    #[arg(long, value_enum, default_value = "observed", value_name = "STATUS")]
    pub(crate) fail_on: FailOn,
    /// Print every finding in full, also those that resemble another one
    #[arg(long)]
    pub(crate) all: bool,
    /// Directories to search for source files, besides the paths in the trace
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Vec<PathBuf>,
}

/// A format of reports by its name.
fn format() -> impl TypedValueParser<Value = &'static Format> {
    let values = FORMATS.iter().map(|f| PossibleValue::new(f.name).help(f.about));
    PossibleValuesParser::new(values)
        .map(|name| Format::named(&name).expect("a possible value is the name of a format"))
}

/// The least sure status that makes the command exit with 1.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailOn {
    /// Only what a controlled execution has made happen
    Confirmed,
    /// Also what happened in an observed execution
    Observed,
    /// Also what an analysis predicts
    Predicted,
    /// Findings do not change the exit code
    Never,
}

impl FailOn {
    pub(crate) fn fails(self, status: Status) -> bool {
        match self {
            FailOn::Confirmed => status >= Status::Confirmed,
            FailOn::Observed => status >= Status::Observed,
            FailOn::Predicted => status >= Status::Predicted,
            FailOn::Never => false,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum TraceCommand {
    /// Print a trace as text
    Cat {
        /// The trace; `-` is standard input
        #[arg(value_name = "TRACE")]
        trace: PathBuf,
        /// Print at most this many events
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
    },
    /// Count the events, threads and locks of a trace
    Stats {
        /// The traces; `-` is standard input
        #[arg(required = true, value_name = "TRACE")]
        traces: Vec<PathBuf>,
    },
    /// Write a trace in the other format
    #[command(
        long_about = "Write a trace in the other format. The output's name decides which: .svt is binary, anything else is text."
    )]
    Convert {
        /// The trace to read; `-` is standard input
        #[arg(value_name = "FROM")]
        from: PathBuf,
        /// The file to write; `-` prints text to standard output
        #[arg(value_name = "TO")]
        to: PathBuf,
    },
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InferFormat {
    Text,
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Keep the bundled examples in this directory; without it they are deleted at the end
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory;

    #[test]
    fn times_are_understood() {
        let ms = |text| super::duration(text).map(|d: Duration| d.as_millis());
        assert_eq!(
            (ms("500ms"), ms("30s"), ms("2"), ms("1.5m")),
            (Ok(500), Ok(30_000), Ok(2000), Ok(90_000))
        );
        assert!(ms("soon").is_err() && ms("-1s").is_err() && ms("").is_err());
    }

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
