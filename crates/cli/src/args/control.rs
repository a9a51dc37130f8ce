//! Commands that run a program under control.

use std::ffi::OsString;
use std::fmt;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use selvedge_explore::strategies::pct;
use selvedge_explore::{Plan, registry};
use serde::{Deserialize, Serialize};

use super::{NdseqOptions, Output, RankOptions, duration};
use crate::control::linearity::SerialOptions;
use crate::program::claims::{Claims, RegionOptions};
use crate::store::{Ensured, RunId};

#[derive(Args, Debug)]
#[command(after_long_help = "\
One thread runs at a time, and a strategy decides which one. Scheduling points are synchronization \
operations and, in an instrumented program, accesses that may race. Time passes only when every thread \
waits, random numbers come from the seed, standard input is empty, and the program's output is not shown.
A crash or a failed assertion that happens in the same way under every schedule is not a concurrency bug: a \
note mentions it, but it is not a finding. A deadlock is one.")]
pub(crate) struct Explore {
    // The registry of strategies provides the help.
    #[arg(long, value_parser = str::parse::<Plan>,
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
    pub(crate) sharing: Sharing,
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
    /// Stop when something that does harm is confirmed, instead of using up the budget
    #[arg(long)]
    pub(crate) until_failure: bool,
    /// Do not go on where earlier tests of the program stopped, and do not begin with what failed in them
    #[arg(long)]
    pub(crate) fresh: bool,
    /// How long a rank of an MPI program waits for another one; doubled with each attempt, up to 16 times
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = duration)]
    pub(crate) pause: Duration,
    #[command(flatten)]
    pub(crate) ranks: RankOptions,
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
    pub(crate) sharing: Sharing,
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

/// Which part of a campaign this process runs.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Sharing {
    /// Run part K of N of the executions, from 0 to N-1, into a store of its own: for batch systems without MPI.
    /// `selvedge merge` makes one report of all parts
    #[arg(long, value_name = "K/N")]
    pub(crate) shard: Option<Part>,
    /// Where --shard keeps what it finds, instead of .selvedge/shards/PROGRAM-K-of-N
    #[arg(long, value_name = "DIR", requires = "shard")]
    pub(crate) store: Option<PathBuf>,
}

/// One of several parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) number: u32,
    pub(crate) of: u32,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let wrong = || format!("`{text}` is not K/N, such as 0/4: part K of N, counted from 0");
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let [number, of] = [number, of].map(|n| n.parse().map_err(|_| wrong()));
        let part = Part { number: number?, of: of? };
        match part.of {
            0 => Err("there are no parts to run of 0".to_owned()),
            of if part.number >= of => {
                Err(format!("there is no part {} of {of}: they are 0 to {}", part.number, of - 1))
            }
            _ => Ok(part),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
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

    /// One execution at a time, unless the user said something else.
    pub(crate) fn one_by_one(&mut self) {
        self.jobs.get_or_insert(NonZero::<usize>::MIN);
    }

    /// How many executions may run at the same time.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from)
    }
}
