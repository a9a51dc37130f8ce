//! `selvedge demo`: a tour on bundled programs.
//!
//! Each stop builds a program, tests it and replays the confirmed finding, by the commands that it shows. The
//! tour checks itself: a stop that does not show its finding is a failure.

mod recorded;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use anstyle::{AnsiColor, Style};

use crate::args::Demo;
use crate::exit::{Exit, Failure};

/// A program of the tour.
struct Stop {
    text: &'static str,
    /// Its files.
    files: &'static [(&'static str, &'static str)],
    /// The directory in which the commands run.
    directory: &'static str,
    /// How to build it: the command and its arguments.
    build: (&'static str, &'static [&'static str]),
    program: &'static str,
    /// Options of the test.
    options: &'static [&'static str],
    /// The kind and the status of the finding.
    finding: (&'static str, &'static str),
    /// The text before the replay.
    then: &'static str,
}

macro_rules! program {
    ($name:literal) => {
        include_str!(concat!("../../../../../programs/", $name))
    };
}

const HEADER: (&str, &str) = ("shape.h", program!("shape.h"));
const ANNOTATIONS: (&str, &str) =
    ("selvedge.h", include_str!("../../../../runtime/include/selvedge.h"));

const STOPS: [Stop; 5] = [
    Stop {
        text: "A data race. Three threads increment a counter without a lock. Run it a thousand times \
               and it may never fail: the window is a few instructions wide. Selvedge sees in one \
               execution that nothing orders the accesses, brings two threads to them at the same \
               time, and tries both orders.",
        files: &[HEADER, ("counter.c", program!("counter.c"))],
        directory: ".",
        build: ("selvedge", &["cc", "-g", "-O1", "-pthread", "counter.c", "-o", "counter"]),
        program: "./counter",
        options: &[],
        finding: ("data-race", "confirmed"),
        then: "Confirmed means that there is a schedule in which it happens. You can replay that schedule \
               as often as you like, even after you have edited other parts of the program:",
    },
    Stop {
        text: "An atomicity violation. Every access to the balance is under the lock, so there is no \
               race. But a withdrawal checks the balance in one critical section and changes it in \
               another. The program says that a withdrawal is meant to be atomic, and Selvedge \
               lets another withdrawal run in between.",
        files: &[HEADER, ANNOTATIONS, ("account.c", program!("account.c"))],
        directory: ".",
        build: ("selvedge", &["cc", "-g", "-O1", "-pthread", "-I.", "account.c", "-o", "account"]),
        program: "./account",
        options: &[],
        finding: ("atomicity-violation", "confirmed"),
        then: "The replay:",
    },
    Stop {
        text: "A deadlock of three threads: each holds one lock and waits for the next. In the observed \
               execution they run one after the other. The order of their locks shows that they \
               can deadlock, and Selvedge holds each thread before its second lock until all \
               threads have their first.",
        files: &[HEADER, ("three_locks.c", program!("three_locks.c"))],
        directory: ".",
        build: ("selvedge", &["cc", "-g", "-O1", "-pthread", "three_locks.c", "-o", "three_locks"]),
        program: "./three_locks",
        options: &[],
        finding: ("deadlock", "confirmed"),
        then: "The replay ends where no thread can go on:",
    },
    Stop {
        text: "An unmodified Rust program with mutexes of the standard library. It makes two transfers in \
               opposite directions; in a plain run one transfer ends before the other begins.",
        files: &[
            ("transfer/src/main.rs", program!("transfer.rs")),
            (
                "transfer/Cargo.toml",
                "[package]\nname = \"transfer\"\nedition = \"2024\"\n\n[workspace]\n\n[lints.rust]\n\
                 unexpected_cfgs = \"allow\"\n",
            ),
        ],
        directory: "transfer",
        build: ("cargo", &["selvedge", "build", "--quiet"]),
        program: "target/selvedge/x86_64-unknown-linux-gnu/debug/transfer",
        options: &[],
        finding: ("deadlock", "confirmed"),
        then: "The replay:",
    },
    Stop {
        text: "A specification of parallelism without a word in the source: does the program print what it \
               would print if its threads ran one after the other, in some order? Three threads look for \
               the cheapest offer. There is no race and nothing is marked. Selvedge follows how data \
               flows, and where that leaves a doubt it runs the sequential executions.",
        files: &[("search.c", include_str!("../../../demo/search.c"))],
        directory: ".",
        build: (
            "selvedge",
            &["cc", "--selvedge-flow", "-g", "-pthread", "search.c", "-o", "search"],
        ),
        program: "./search",
        options: &["--ndseq", "--schedules", "100"],
        finding: ("parallelism-violation", "observed"),
        then: "The replay, judged again by all sequential executions:",
    },
];

/// Shows the stops one after the other.
pub(crate) fn run(args: &Demo) -> Result<Exit, Failure> {
    let place = Place::new(args.keep.as_deref())?;
    if there_is("cc") {
        for stop in &STOPS {
            show(stop, &place.directory)?;
        }
    } else {
        anstream::println!("{}\n", wrapped(NO_COMPILER));
        recorded::run(&place.directory)?;
    }
    if args.keep.is_some() {
        anstream::println!("The examples are in {}.", place.directory.display());
    } else {
        anstream::println!(
            "`selvedge demo --keep DIR` keeps the examples in DIR, for you to experiment with."
        );
    }
    Ok(Exit::Clean)
}

const NO_COMPILER: &str = "The tour builds programs, but there is no C compiler on this machine. Install one, \
    for example with `apt-get install gcc libc6-dev` or `dnf install gcc`. Until then the tour \
    analyses recorded executions.";

fn there_is(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|s| s.success())
}

fn show(stop: &Stop, directory: &Path) -> Result<(), Failure> {
    let bold = Style::new().bold();
    anstream::println!("{bold}{}{bold:#}\n", wrapped(stop.text));
    if stop.build.0 == "cargo" && !there_is("cargo") {
        anstream::println!("This machine has no cargo, so the tour skips this example.\n");
        return Ok(());
    }
    for (name, contents) in stop.files {
        let path = directory.join(name);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder
            .and_then(|()| fs::write(&path, contents))
            .map_err(|error| Failure::Write { path: path.clone(), error })?;
    }
    let at = directory.join(stop.directory);
    // A store of its own, so that the last run is that of this stop.
    let store = at.join(".selvedge");
    fs::create_dir_all(&store).map_err(|error| Failure::Write { path: store, error })?;
    say(stop.build.0, stop.build.1)?;
    if !built(tool(stop.build.0)?.args(stop.build.1).current_dir(&at))? {
        anstream::println!("\nThis machine cannot build it, so the tour skips this example.\n");
        return Ok(());
    }
    let test = [&["test", "--fail-on", "never"], stop.options, &["--", stop.program]].concat();
    say("selvedge", &test)?;
    succeed(tool("selvedge")?.args(&test).current_dir(&at))?;
    let id = found(stop, &at)?;
    anstream::println!("\n{bold}{}{bold:#}\n", wrapped(stop.then));
    say("selvedge", &["replay", &id])?;
    replay(&id, &at)?;
    anstream::println!();
    Ok(())
}

/// Replays a finding. It must happen again, which the exit code shows.
fn replay(id: &str, at: &Path) -> Result<(), Failure> {
    const FINDINGS: i32 = 1;
    let mut command = tool("selvedge")?;
    let status = command.args(["replay", id]).current_dir(at).stdin(Stdio::null()).status()?;
    if status.code() == Some(FINDINGS) {
        return Ok(());
    }
    Err(Failure::Usage(format!("{id} did not happen again: this is a bug in selvedge")))
}

/// The id of the finding that the stop is about.
fn found(stop: &Stop, at: &Path) -> Result<String, Failure> {
    let output = tool("selvedge")?.args(["report", "--json"]).current_dir(at).output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let (kind, status) = stop.finding;
    let found = findings.iter().find(|f| f["kind"] == kind && f["status"] == status);
    let id = found.and_then(|f| f["id"].as_str().map(str::to_owned));
    id.ok_or_else(|| {
        let program = stop.program;
        Failure::Usage(format!("no {kind} was {status} in {program}: this is a bug in selvedge"))
    })
}

/// Shows a command as a user types it.
fn say(command: &str, args: &[&str]) -> Result<(), Failure> {
    io::Write::flush(&mut io::stdout())?;
    let style = Style::new().fg_color(Some(AnsiColor::Cyan.into()));
    anstream::println!("{style}$ {command} {}{style:#}", args.join(" "));
    Ok(())
}

/// This executable, or another program that finds this executable on its PATH.
fn tool(name: &str) -> Result<Command, Failure> {
    let own = std::env::current_exe()?;
    if name == "selvedge" {
        return Ok(Command::new(own));
    }
    let mut command = Command::new(name);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let ours = own.parent().map(Path::to_owned).into_iter();
    let path = std::env::join_paths(ours.chain(std::env::split_paths(&folders)));
    command.env("PATH", path.unwrap_or(folders)).env_remove("CARGO_TARGET_DIR");
    Ok(command)
}

/// Whether a program was built; not if the machine lacks what that takes, as the command then says.
fn built(command: &mut Command) -> Result<bool, Failure> {
    const LACKING: i32 = 3;
    let status = command.stdin(Stdio::null()).status()?;
    if status.success() || status.code() == Some(LACKING) {
        return Ok(status.success());
    }
    Err(Failure::Usage(format!("the tour cannot go on: {command:?} failed")))
}

fn succeed(command: &mut Command) -> Result<(), Failure> {
    if command.stdin(Stdio::null()).status()?.success() {
        return Ok(());
    }
    Err(Failure::Usage(format!("the tour cannot go on: {command:?} failed")))
}

/// Breaks a text into lines for a narrow terminal.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 96;
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// The directory of the examples: the user's, or a temporary one that is deleted at the end.
struct Place {
    directory: PathBuf,
    temporary: bool,
}

impl Place {
    fn new(keep: Option<&Path>) -> Result<Place, Failure> {
        let temporary =
            || std::env::temp_dir().join(format!("selvedge-demo-{}", std::process::id()));
        let directory = keep.map_or_else(temporary, Path::to_owned);
        let created = fs::create_dir_all(&directory);
        created.map_err(|error: io::Error| Failure::Write { path: directory.clone(), error })?;
        Ok(Place { directory, temporary: keep.is_none() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.temporary {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}
