//! The command line.

mod infer;
mod mcp;
mod ndseq;
mod report;
mod run;

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
use selvedge_specs::Value;
use selvedge_specs::history::{MODELS, ModelKind};

pub(crate) use run::{Run, RunOptions};

use crate::catalogue;
use crate::control::linearity::SerialOptions;
use crate::program::claims::{Claims, RegionOptions};
use crate::progress::Show;
use crate::store::{Ensured, RunId};

pub(crate) use infer::{
    Infer, InferCommand, InferDeterminism, InferDiscipline, InferNdseq, Language, Precondition,
};
pub(crate) use mcp::Mcp;
pub(crate) use ndseq::NdseqOptions;
pub(crate) use report::{Report, ReportFailOn};

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
        /// The arguments of mpicc; SELVEDGE_MPICC names the compiler to call
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

#[derive(Args, Debug)]
#[command(after_long_help = "\
One thread runs at a time, and a strategy decides which one. Scheduling points are synchronization \
operations and, in an instrumented program, accesses that may race. Time passes only when every thread \
waits, random numbers come from the seed, standard input is empty, and the program's output is not shown.
A crash or a failed assertion that happens in the same way under every schedule is not a concurrency bug: a \
note mentions it, but it is not a finding. A deadlock is one.")]
pub(crate) struct Explore {
    // The registry of strategies provides the help.
    #[arg(long, value_parser = plan,
        help = format!("How schedules are chosen: {} [default: {}]", registry::names(), Plan::default()),
        long_help = format!("How schedules are chosen, [default: {}]:\n{}", Plan::default(), registry::help()))]
    pub(crate) strategy: Option<Plan>,
    #[command(flatten)]
    pub(crate) serial: SerialOptions,
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
    /// Compare deterministic blocks with executions of other builds of the program, too
    #[arg(long)]
    pub(crate) across_builds: bool,
    #[command(flatten)]
    pub(crate) unmarked: Unmarked,
    #[command(flatten)]
    pub(crate) output: Output,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
First the program runs natively and under control, and analyses predict data races, deadlocks and atomicity \
violations. Then directed schedules try to make each prediction happen. A prediction that happens is \
confirmed: the report has a schedule that replays it, and a verdict based on what each order led to. The rest \
of the budget goes to undirected schedules, as in `selvedge explore`.
Time passes only when every thread waits, random numbers come from the seed, standard input is empty, and \
the program's output is not shown.")]
pub(crate) struct Test {
    /// Native runs to observe first
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) observe: u64,
    /// Directed executions for each prediction
    #[arg(long, value_name = "N", default_value_t = selvedge_explore::directed::ATTEMPTS)]
    pub(crate) attempts: u64,
    /// The program is one deterministic block that ensures this output, byte by byte: `stdout` or
    /// `file:PATH`; can be repeated
    #[arg(long, value_name = "OUTPUT", value_parser = Ensured::parse)]
    pub(crate) ensure: Vec<Ensured>,
    /// Compare deterministic blocks with executions of other builds of the program, too
    #[arg(long)]
    pub(crate) across_builds: bool,
    #[command(flatten)]
    pub(crate) ndseq: NdseqOptions,
    #[command(flatten)]
    pub(crate) serial: SerialOptions,
    #[command(flatten)]
    pub(crate) regions: RegionOptions,
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// A specification of disciplines to check in the native runs
    #[arg(long, value_name = "FILE")]
    pub(crate) discipline: Option<PathBuf>,
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
The exit code is 1 if the finding happened again (or, with --schedule, if the program failed), 0 if not, \
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
    /// Print how likely the finding is from each step on: SAMPLES random executions for each beginning
    #[arg(long, value_name = "SAMPLES", num_args = 0..=1, default_missing_value = "100", conflicts_with = "gdb")]
    pub(crate) margin: Option<u64>,
    /// Run the sequential execution with the same result instead, if there is one
    #[arg(long, requires = "id", conflicts_with_all = ["margin", "gdb"])]
    pub(crate) sequential: bool,
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

#[derive(Args, Debug)]
#[command(after_long_help = "\
Three things are tried, in this order: the schedule of the finding, as far as it still fits; directed executions \
that aim at the same places; and schedules that begin like the finding's and go on at random. The exit code is 1 if \
the finding is still there, 0 if it was not seen, and 3 if the program could not be run.")]
pub(crate) struct Fixed {
    /// The id of the finding, or the beginning of the id
    pub(crate) id: String,
    /// The run that found it, instead of the last run that found it
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<RunId>,
    /// The store to look in, instead of the nearest .selvedge
    #[arg(long, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// The most executions
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) executions: u64,
    /// The longest time, such as 500ms, 30s or 5m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) time: Duration,
    /// The seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The program to try instead of the one that was tested, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

/// Blocks that the program does not mark, and their states.
#[derive(Args, Debug, Clone)]
pub(crate) struct Unmarked {
    /// Functions that are deterministic blocks, by name (`*` matches anything)
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', requires = "command")]
    deterministic: Vec<String>,
    #[command(flatten)]
    globals: Globals,
}

impl Unmarked {
    /// What is claimed of functions.
    pub(crate) fn claims(&self) -> Claims {
        let deterministic = self.deterministic.clone();
        RegionOptions { deterministic, ..RegionOptions::default() }.claims()
    }

    /// See [`Globals::depth`].
    pub(crate) fn depth(&self) -> Option<usize> {
        self.globals.depth()
    }
}

/// Which states blocks have without saying so.
#[derive(Args, Debug, Clone)]
pub(crate) struct Globals {
    /// Every global number, array of numbers and structure of those is a state of every deterministic block
    #[arg(long)]
    globals: bool,
    /// The most members and pointers on the way from a global to a location
    #[arg(long, value_name = "N", default_value_t = 8, requires = "globals")]
    depth: u8,
}

impl Globals {
    /// The most members and pointers on a way, if globals are states.
    pub(crate) fn depth(&self) -> Option<usize> {
        self.globals.then_some(usize::from(self.depth))
    }
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
#[command(after_long_help = "\
An operation is one line: {\"process\": WHO, \"op\": NAME, \"arg\": VALUE, \"key\": KEY, \"ret\": VALUE, \"call\": TIME, \
\"return\": TIME}; times are integers. Without `return` the operation is pending. Operations:
  register  read, write, cas (arg [expected, new]; returns whether it did)
  counter   add, get
  queue     enq, deq
  stack     push, pop
  set       add, remove, contains (return whether it changed, or was there)
  map       get, put, remove, by key (return the value before)
  mutex     lock, unlock
An object that has nothing gives null. Operations with different keys are checked apart. Exit codes: 0 \
linearizable; 1 not; 2 malformed; 3 not decided within --memory or --time.")]
pub(crate) struct History {
    /// The kind of object
    #[arg(long, value_parser = model())]
    pub(crate) model: ModelKind,
    /// The state in which the object begins
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub(crate) initial: Option<Value>,
    /// How much memory the search may take
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = bytes)]
    pub(crate) memory: usize,
    /// How long the search may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) time: Duration,
    /// How to print the verdict
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: InferFormat,
    /// Histories, one JSON object a line; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

fn model() -> impl TypedValueParser<Value = ModelKind> {
    let names = MODELS.iter().map(|(_, name, _)| PossibleValue::new(*name));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<ModelKind>())
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

/// `500M`, `1G`; a number alone means bytes.
fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let wrong = || format!("`{text}` is not a size such as 500M or 2G");
    let factor: usize = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(wrong()),
    };
    digits.parse::<usize>().ok().and_then(|n| n.checked_mul(factor)).ok_or_else(wrong)
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
