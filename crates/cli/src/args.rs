//! The command line.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use selvedge_analyses::registry::{self as analyses, Purpose};
use selvedge_explore::strategies::pct;
use selvedge_explore::{Plan, UnknownStrategy, registry};
use selvedge_model::Status;
use selvedge_report::{FORMATS, Format};

use crate::catalogue;
use crate::program::claims::RegionOptions;
use crate::store::RunId;

/// Finds, confirms, replays and explains concurrency bugs.
#[derive(Parser, Debug)]
#[command(name = "selvedge", version, arg_required_else_help = true, propagate_version = true)]
#[command(after_help = "\
Exit codes: 0 no finding at or above --fail-on; 1 findings; 2 wrong usage or input; 3 the program could
not be run or observed.
`selvedge demo` shows on bundled examples what Selvedge does.")]
pub(crate) struct Arguments {
    /// When to use colours: NO_COLOR, CLICOLOR and CLICOLOR_FORCE count for `auto`
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
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
    /// Run a program, observe it, and report its concurrency bugs
    Run(Run),
    /// Observe a program, predict its concurrency bugs, and confirm them by making them happen
    Test(Test),
    /// Run a program under many schedules, and report the schedules that make it fail
    Explore(Explore),
    /// Run a program again with the schedule of a finding
    Replay(Replay),
    /// Analyse recorded traces
    Check(Check),
    /// Print, summarise or convert traces
    Trace(Trace),
    /// Print what an earlier run found
    Report(Report),
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
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
The program keeps its standard output. Findings go to standard error and into .selvedge/; `selvedge report`
shows them again. The exit code is 1 if there are findings at or above --fail-on, 3 if the program could
not be run or observed, and otherwise the program's own exit code.")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) options: RunOptions,
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
    #[command(flatten)]
    pub(crate) regions: RegionOptions,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
One thread runs at a time, and a strategy decides which one. Scheduling points are synchronization
operations and, in an instrumented program, accesses that may race. Time passes only when every thread
waits, random numbers come from the seed, standard input is empty, and the program's output is not shown.
A crash or a failed assertion that happens in the same way under every schedule is not a concurrency bug: a
note mentions it, but it is not a finding. A deadlock is one.")]
pub(crate) struct Explore {
    // The registry of strategies provides the help.
    #[arg(long, default_value_t = Plan::default(), value_parser = plan,
        help = format!("How schedules are chosen: {}", registry::names()),
        long_help = format!("How schedules are chosen:\n{}", registry::help()))]
    pub(crate) strategy: Plan,
    /// The depth of the bugs that pct looks for, unless `pct:DEPTH` gives one
    #[arg(long, value_name = "N", default_value_t = pct::DEPTH)]
    pub(crate) pct_depth: usize,
    #[command(flatten)]
    pub(crate) budget: Budget,
    /// Make threads meet at these lines, such as a.c:10,b.c:20, instead of using a strategy: a thread
    /// that reaches one of the lines is held there until every line has a thread
    #[arg(long, value_name = "FILE:LINE", value_delimiter = ',')]
    pub(crate) meet: Vec<String>,
    /// Count it as a meeting only if the threads are about to use the same lock or overlapping memory
    #[arg(long, requires = "meet")]
    pub(crate) same_object: bool,
    /// Stop at the first failure that depends on the schedule (the default)
    #[arg(long, conflicts_with = "keep_going")]
    pub(crate) until_failure: bool,
    /// Use up the budget even after a failure
    #[arg(long)]
    pub(crate) keep_going: bool,
    #[command(flatten)]
    pub(crate) output: Output,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
First the program runs natively and under control, and analyses predict data races, deadlocks and atomicity
violations. Then directed schedules try to make each prediction happen. A prediction that happens is
confirmed: the report has a schedule that replays it, and a verdict based on what each order led to. The rest
of the budget goes to undirected schedules, as in `selvedge explore`.
Time passes only when every thread waits, random numbers come from the seed, standard input is empty, and
the program's output is not shown.")]
pub(crate) struct Test {
    /// Native runs to observe first
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) observe: u64,
    /// Directed executions for each prediction
    #[arg(long, value_name = "N", default_value_t = selvedge_explore::directed::ATTEMPTS)]
    pub(crate) attempts: u64,
    #[command(flatten)]
    pub(crate) regions: RegionOptions,
    #[command(flatten)]
    pub(crate) budget: Budget,
    #[command(flatten)]
    pub(crate) output: Output,
    /// A file of findings not to report, in the format of ThreadSanitizer's suppression files
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
The program runs in its original directory with its original arguments; its output is shown when it ends.
The exit code is 1 if the finding happened again (or, with --schedule, if the program failed), 0 if not,
and 3 if the program could not be run.")]
pub(crate) struct Replay {
    /// The id of the finding, or the beginning of the id
    #[arg(required_unless_present = "schedule", conflicts_with_all = ["schedule", "command"])]
    pub(crate) id: Option<String>,
    /// The run that found it, instead of the last run that found it
    #[arg(long, value_name = "RUN", requires = "id")]
    pub(crate) run: Option<RunId>,
    /// The store to look in, instead of the nearest .selvedge
    #[arg(long, value_name = "DIR", requires = "id")]
    pub(crate) store: Option<PathBuf>,
    /// A schedule to follow instead of a finding's
    #[arg(long, requires = "command")]
    pub(crate) schedule: Option<String>,
    /// How many times to replay
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) times: u64,
    /// Run it under gdb, with breakpoints at the critical points
    #[arg(long)]
    pub(crate) gdb: bool,
    /// A command for gdb to run when the program has stopped, instead of a prompt; can be repeated
    #[arg(long, value_name = "COMMAND", requires = "gdb")]
    pub(crate) gdb_command: Vec<String>,
    /// The program to run under --schedule, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

/// How much to try.
#[derive(Args, Debug, Clone)]
pub(crate) struct Budget {
    /// The most executions
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) schedules: u64,
    /// The longest time, such as 500ms, 30s or 5m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) time: Duration,
    /// The seed of all random choices: the same seed gives the same findings
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The longest time for one execution, but at most a quarter of --time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    patience: Duration,
    /// Executions at the same time, instead of one for each core; use 1 if copies of the program
    /// interfere (same files, same port)
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,
}

impl Budget {
    /// The longest time for one execution: no single one uses up the time of all.
    pub(crate) fn patience(&self) -> Duration {
        self.patience.min(self.time / 4)
    }

    /// The engine's budget, with at most `attempts` directed executions for one prediction.
    pub(crate) fn engine(&self, attempts: u64) -> selvedge_engine::Budget {
        let (seed, schedules, jobs) = (self.seed, self.schedules, self.jobs());
        selvedge_engine::Budget { seed, schedules, jobs, attempts }
    }

    /// How many executions may run at the same time.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from)
    }
}

/// Parses the name of a strategy; `rr` is short for `round-robin`.
fn plan(text: &str) -> Result<Plan, String> {
    let name = if text == "rr" { "round-robin" } else { text };
    name.parse().map_err(|e: UnknownStrategy| e.to_string())
}

/// `500ms`, `30s`, `5m`, `1h`; a number alone means seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let wrong = || format!("`{text}` is not a time such as 500ms, 30s or 5m");
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let seconds = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
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
`run`, `test` and `bench` observe every program that they run; `build` only builds. Everything after the
command goes to Cargo: cargo selvedge test --release -p mine -- --nocapture")]
pub(crate) struct CargoArguments {
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// Cargo's command (build, run, test, bench) and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

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
    /// Print every finding in full, also those that resemble another one
    #[arg(long)]
    pub(crate) all: bool,
    /// Directories to search for source files, besides the paths recorded at build time
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Vec<PathBuf>,
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
