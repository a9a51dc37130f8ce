//! Timing alternatives against each other.

use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Times of one alternative over several rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// The least disturbed run.
    pub(crate) fn best(&self) -> Duration {
        self.0.iter().min().copied().unwrap_or_default()
    }

    /// How much longer the worst run took than the best, in percent.
    pub(crate) fn spread(&self) -> f64 {
        let worst = self.0.iter().max().copied().unwrap_or_default();
        (worst.as_secs_f64() / self.best().as_secs_f64() - 1.0) * 100.0
    }
}

/// Something to time, and its name.
pub(crate) type Alternative<'a> = (&'static str, Box<dyn FnMut() + 'a>);

/// Runs the alternatives in turn, `rounds` times.
pub(crate) fn alternate<const N: usize>(
    rounds: usize,
    mut alternatives: [Alternative<'_>; N],
) -> [Times; N] {
    let mut times = std::array::from_fn(|_| Times::default());
    let terminal = std::io::stderr().is_terminal();
    for round in 0..rounds {
        for ((name, run), times) in alternatives.iter_mut().zip(&mut times) {
            if terminal {
                eprint!("\r\x1b[Kround {} of {rounds}: {name}", round + 1);
            }
            let start = Instant::now();
            run();
            times.0.push(start.elapsed());
        }
    }
    if terminal {
        eprint!("\r\x1b[K");
    }
    times
}

/// Processor time of this process so far, in seconds.
pub(crate) fn processor_seconds() -> f64 {
    seconds_of(UsageWho::RUSAGE_SELF)
}

/// The same, with that of the processes that it has started and that have ended.
pub(crate) fn all_processor_seconds() -> f64 {
    processor_seconds() + seconds_of(UsageWho::RUSAGE_CHILDREN)
}

fn seconds_of(who: UsageWho) -> f64 {
    getrusage(who).map_or(0.0, |usage| {
        (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
    })
}

/// The most memory that this process has had, in MiB.
pub(crate) fn peak_memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0);
    kib / 1024.0
}

/// Runs of one program: processor seconds of each, and the most memory in MiB.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    pub(crate) seconds: Vec<f64>,
    pub(crate) memory: f64,
}

impl Runs {
    /// Adds a run of that many seconds and that much memory.
    pub(crate) fn add(&mut self, (seconds, memory): (f64, f64)) {
        self.seconds.push(seconds);
        self.memory = self.memory.max(memory);
    }

    pub(crate) fn best(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn worst(&self) -> f64 {
        self.seconds.iter().copied().fold(0.0, f64::max)
    }
}

/// Runs a program and returns its processor seconds (user and system, with its children) and its peak
/// memory in MiB. It may end with one of the given codes.
pub(crate) fn once(program: &Path, args: &[&str], codes: &[u8]) -> Result<(f64, f64), String> {
    once_in(Path::new("."), program, args, codes)
}

/// The same in a directory.
pub(crate) fn once_in(
    directory: &Path,
    program: &Path,
    args: &[&str],
    codes: &[u8],
) -> Result<(f64, f64), String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut child = Command::new(own);
    child.arg("child").arg(program).args(args).current_dir(directory);
    let output = child.output();
    let output = output.map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.split_whitespace().filter_map(|w| w.parse::<f64>().ok());
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(code), Some(seconds), Some(memory))
            if codes.iter().any(|&c| code == f64::from(c)) =>
        {
            Ok((seconds, memory))
        }
        (code, ..) => Err(format!("{} {args:?} ended with {code:?}", program.display())),
    }
}

/// Runs one program and prints how it ended, its processor seconds and its peak memory: a process of its
/// own, because the system keeps these figures for all children together.
pub(crate) fn child(command: &[&str]) -> ExitCode {
    let [program, args @ ..] = command else { return ExitCode::from(2) };
    let status =
        Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return ExitCode::FAILURE };
    let microseconds = (usage.user_time() + usage.system_time()).num_microseconds();
    let code = status.ok().and_then(|s| s.code()).unwrap_or(-1);
    println!("{code} {} {}", microseconds as f64 / 1e6, usage.max_rss() as f64 / 1024.0);
    ExitCode::SUCCESS
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(e) => Err(format!("{command:?}: {e}")),
    }
}
