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
use crate::claims::RegionOptions;
use crate::store::RunId;

/// Finds, confirms, replays and explains concurrency bugs.
#[derive(Parser, Debug)]
#[command(name = "selvedge", version, arg_required_else_help = true, propagate_version = true)]
#[command(after_help = "\
Exit codes: 0 nothing at or above --fail-on; 1 findings; 2 wrong usage or input; 3 the program could not
be run or observed.
`selvedge demo` shows what it does on bundled examples.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Compile or link C: a drop-in for cc that makes programs observable
    #[command(disable_help_flag = true, disable_version_flag = true)]
    Cc {
        /// As for cc; SELVEDGE_CC or --selvedge-compiler= names the compiler underneath
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compile or link C++: a drop-in for c++
    #[command(name = "c++", disable_help_flag = true, disable_version_flag = true)]
    Cxx {
        /// As for c++; SELVEDGE_CXX or --selvedge-compiler= names the compiler underneath
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Run a program, observe it, and report what is wrong in it
    Run(Run),
    /// Observe a program, predict what can go wrong in it, and make it happen
    Test(Test),
    /// Run a program under many schedules, and report those that make it fail
    Explore(Explore),
    /// Run a program once more, with the schedule of a finding
    Replay(Replay),
    /// Analyse recorded traces
    Check(Check),
    /// Print, summarise or convert traces
    Trace(Trace),
    /// Print what an earlier run found
    Report(Recall),
    /// A tour on bundled examples
    Demo(Demo),
}

#[derive(Args, Debug)]
#[command(after_long_help = analyses::help(Purpose::Check))]
pub(crate) struct Check {
    /// Trace files, text (.std) or binary (.svt); `-` is standard input
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// The analyses to run, separated by commas; `all` is every one
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = catalogue::defaults(Purpose::Check))]
    pub(crate) analyses: Vec<String>,
    #[command(flatten)]
    pub(crate) regions: RegionOptions,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
Standard output is the program's own; findings go to standard error and into .selvedge/, from where
`selvedge report` shows them again. The exit code is 1 if there are findings at or above --fail-on, 3 if
the program could not be run or observed, and otherwise the program's own.")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(crate) command: Vec<OsString>,
}

/// What `selvedge run` and `cargo selvedge` have in common.
#[derive(Args, Debug)]
pub(crate) struct RunOptions {
    /// The analyses to run, separated by commas; `all` is every one
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = catalogue::defaults(Purpose::Run))]
    pub(crate) analyses: Vec<String>,
    /// How to print the findings; other formats than text go to standard output, and the program's
    /// own output to standard error
    #[arg(long, value_parser = format(), default_value = FORMATS[0].name)]
    pub(crate) format: &'static Format,
    /// Exit with 1 if there is a finding at least this sure
    #[arg(long, value_enum, default_value = "observed", value_name = "STATUS")]
    pub(crate) fail_on: FailOn,
    /// Print every finding in full, also those that are like others
    #[arg(long)]
    pub(crate) all: bool,
    /// Where to look for source files, besides where they were when the program was built
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Vec<PathBuf>,
    /// Findings not to report, in the format of ThreadSanitizer's suppression files
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) regions: RegionOptions,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
One thread runs at a time, and a strategy decides which. Of an instrumented program, accesses that may race
are scheduling points, too; of any other, its synchronization only. Time passes only when every thread
waits, random numbers come from the seed, standard input is empty, and output is kept back. What fails in
the same way under every schedule is no concurrency bug, and is said but not reported.")]
pub(crate) struct Explore {
    // The help follows from the registry of strategies.
    #[arg(long, default_value_t = Plan::default(), value_parser = plan,
        help = format!("How schedules are chosen: {}", registry::names()),
        long_help = format!("How schedules are chosen:\n{}", registry::help()))]
    pub(crate) strategy: Plan,
    /// The depth of the bugs that pct looks for, unless `pct:DEPTH` says it
    #[arg(long, value_name = "N", default_value_t = pct::DEPTH)]
    pub(crate) pct_depth: usize,
    #[command(flatten)]
    pub(crate) budget: Budget,
    /// Let threads meet at these lines, such as a.c:10,b.c:20, instead of a strategy: each is held where
    /// it comes to one, until every line has a thread
    #[arg(long, value_name = "FILE:LINE", value_delimiter = ',')]
    pub(crate) meet: Vec<String>,
    /// They only meet if they are about to use the same lock, or memory in common
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
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
First the program runs natively and under control, and analyses predict data races, deadlocks and broken
atomicity. Then directed schedules try to make each prediction happen: those that they do are confirmed,
with a schedule that replays them and a verdict by what each order led to. What is left of the budget goes
to schedules of every kind, as `selvedge explore` tries them.
Time passes only when every thread waits, random numbers come from the seed, standard input is empty, and
output is kept back.")]
pub(crate) struct Test {
    /// Native runs to be observed before
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
    /// Findings not to report, in the format of ThreadSanitizer's suppression files
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
The program runs where it ran, with the arguments it had; its output is shown as it comes to its end.
The exit code is 1 if the finding happened again (or, with --schedule, the program failed), 0 if not, and
3 if the program could not be run.")]
pub(crate) struct Replay {
    /// The finding, or the beginning of its id
    #[arg(required_unless_present = "schedule", conflicts_with_all = ["schedule", "command"])]
    pub(crate) id: Option<String>,
    /// The run that found it, instead of the last one that did
    #[arg(long, value_name = "RUN", requires = "id")]
    pub(crate) run: Option<RunId>,
    /// The store to look in, instead of the nearest .selvedge
    #[arg(long, value_name = "DIR", requires = "id")]
    pub(crate) store: Option<PathBuf>,
    /// A schedule to follow instead
    #[arg(long, requires = "command")]
    pub(crate) schedule: Option<String>,
    /// How often
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) times: u64,
    /// Run it under gdb, with breakpoints at the critical points
    #[arg(long)]
    pub(crate) gdb: bool,
    /// What gdb does when the program has stopped, instead of asking; can be given several times
    #[arg(long, value_name = "COMMAND", requires = "gdb")]
    pub(crate) gdb_command: Vec<String>,
    /// The program of the schedule, and its arguments
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
    /// The seed of everything random: the same seed finds the same
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// The longest time for one execution
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) patience: Duration,
    /// Executions at the same time, instead of one for each core; 1 for a program that writes files,
    /// or listens where others would
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,
}

impl Budget {
    /// As the engine takes it, with so many directed executions for one prediction.
    pub(crate) fn engine(&self, attempts: u64) -> selvedge_engine::Budget {
        let (seed, schedules, jobs) = (self.seed, self.schedules, self.jobs());
        selvedge_engine::Budget { seed, schedules, jobs, attempts }
    }

    /// How many executions may run at the same time.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from)
    }
}

/// A strategy by name, `rr` for short.
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

/// Builds Rust programs so that they can be observed, and observes them.
#[derive(Parser, Debug)]
#[command(
    name = "cargo selvedge",
    bin_name = "cargo selvedge",
    version,
    arg_required_else_help = true
)]
#[command(after_help = "\
`run`, `test` and `bench` observe every program that they run, `build` only builds. Everything after the
command is Cargo's: cargo selvedge test --release -p mine -- --nocapture")]
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
pub(crate) struct Recall {
    /// How to print the findings
    #[arg(long, value_parser = format(), default_value = FORMATS[0].name)]
    pub(crate) format: &'static Format,
    /// The same as `--format text`
    #[arg(long, conflicts_with_all = ["json", "format"])]
    pub(crate) text: bool,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// The run to report on, instead of the last one
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<RunId>,
    /// List the runs instead
    #[arg(long, conflicts_with_all = ["json", "run"])]
    pub(crate) runs: bool,
    /// Print every finding in full, also those that are like others
    #[arg(long)]
    pub(crate) all: bool,
    /// Where to look for source files, besides where they were when the program was built
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Vec<PathBuf>,
}

#[derive(Args, Debug, Clone)]
pub(crate) struct Output {
    /// How to print the findings
    #[arg(long, value_parser = format(), default_value = FORMATS[0].name)]
    pub(crate) format: &'static Format,
    /// Exit with 1 if there is a finding at least this sure
    #[arg(long, value_enum, default_value = "observed", value_name = "STATUS")]
    pub(crate) fail_on: FailOn,
    /// Print every finding in full, also those that are like others
    #[arg(long)]
    pub(crate) all: bool,
    /// Where to look for source files, besides where the trace says they are
    #[arg(long, value_name = "DIR")]
    pub(crate) source: Vec<PathBuf>,
}

/// A format of reports by its name.
fn format() -> impl TypedValueParser<Value = &'static Format> {
    let values = FORMATS.iter().map(|f| PossibleValue::new(f.name).help(f.about));
    PossibleValuesParser::new(values)
        .map(|name| Format::named(&name).expect("a possible value is the name of a format"))
}

/// The least sure status that fails.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailOn {
    /// Made to happen by a controlled execution
    Confirmed,
    /// Happened, or confirmed
    Observed,
    /// Anything that an analysis predicts
    Predicted,
    /// Findings never fail
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
    /// Count what is in a trace
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
        /// The file to write; `-` is standard output, as text
        #[arg(value_name = "TO")]
        to: PathBuf,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Leave the bundled examples in this directory instead of a temporary one
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
