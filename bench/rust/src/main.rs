//! The selvedge crate beside shuttle and loom: schedules per second, schedules to a bug, memory.
//!
//! Each measurement is a process of its own, so that memory and warm-up are its own, and the libraries
//! take turns, so that other work of the machine slows all of them.

#![forbid(unsafe_code)]

mod atomicity;
mod programs;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ROUNDS: usize = 5;
const SEEDS: u64 = 20;
const GIVE_UP: u64 = 20_000;
const ABORTED: u64 = u64::MAX - 1;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["one", library, program, n] => one(library, program, n.parse().expect("a number")),
        ["bug", library, program, seed] => bug(library, program, seed.parse().expect("a number")),
        ["atomicity", parts @ ..] => atomicity::run(parts),
        [] => {
            speed();
            bugs();
            ExitCode::SUCCESS
        }
        ["speed"] => {
            speed();
            ExitCode::SUCCESS
        }
        ["bugs"] => {
            bugs();
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: selvedge-bench-rust [speed|bugs|atomicity [table|peers|histories]]");
            ExitCode::from(2)
        }
    }
}

/// Runs `n` schedules of a correct program and prints nanoseconds of the processor, which whatever else
/// the machine does falls on less than on those of the clock, schedules, peak memory in KiB, and the
/// analyses that had anything to look at.
fn one(library: &str, program: &str, n: u64) -> ExitCode {
    let mut looked = String::from("-");
    let done = match library {
        "shuttle" => {
            let body = programs::shuttle::by_name(program).expect("a program");
            let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(
                1,
                usize::try_from(n).expect("small"),
            );
            shuttle::Runner::new(scheduler, shuttle::Config::new()).run(body) as u64
        }
        "loom" => {
            let body = programs::loom::by_name(program).expect("a program");
            let count = std::sync::Arc::new(AtomicU64::new(0));
            let counter = std::sync::Arc::clone(&count);
            let mut builder = loom::model::Builder::new();
            builder.max_duration = Some(Duration::from_millis(500));
            builder.preemption_bound = None;
            builder.check(move || {
                counter.fetch_add(1, Ordering::Relaxed);
                body();
            });
            count.load(Ordering::Relaxed)
        }
        _ => {
            let body = programs::selvedge::by_name(program).expect("a program");
            let analyses = match library.split_once('-') {
                Some((_, analyses)) => analyses,
                None => "none",
            };
            let explore = selvedge::Explore::new().strategy("random").jobs(1).analyses(analyses);
            let summary = explore.schedules(n).run(body).expect("a correct program");
            if !summary.analyses.is_empty() {
                looked = summary.analyses.join("+");
            }
            summary.executions
        }
    };
    println!("{} {done} {} {looked}", processor_time(), peak_memory());
    ExitCode::SUCCESS
}

/// Prints how many schedules it took to find the bug, or nothing.
fn bug(library: &str, program: &str, seed: u64) -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let found = match library {
        "shuttle-random" | "shuttle-pct" => {
            let body = programs::shuttle::by_name(program).expect("a program");
            let count = std::sync::Arc::new(AtomicU64::new(0));
            let counter = std::sync::Arc::clone(&count);
            let body = move || {
                counter.fetch_add(1, Ordering::Relaxed);
                body();
            };
            let limit = usize::try_from(GIVE_UP).expect("small");
            let mut config = shuttle::Config::new();
            config.failure_persistence = shuttle::FailurePersistence::None;
            let failed = catch_unwind(AssertUnwindSafe(|| {
                if library == "shuttle-random" {
                    let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(seed, limit);
                    shuttle::Runner::new(scheduler, config).run(body);
                } else {
                    let scheduler = shuttle::scheduler::PctScheduler::new_from_seed(seed, 3, limit);
                    shuttle::Runner::new(scheduler, config).run(body);
                }
            }))
            .is_err();
            failed.then(|| count.load(Ordering::Relaxed))
        }
        "loom" => {
            let body = programs::loom::by_name(program).expect("a program");
            let count = std::sync::Arc::new(AtomicU64::new(0));
            let counter = std::sync::Arc::clone(&count);
            let mut builder = loom::model::Builder::new();
            builder.max_duration = Some(Duration::from_secs(5));
            let failed = catch_unwind(AssertUnwindSafe(|| {
                builder.check(move || {
                    counter.fetch_add(1, Ordering::Relaxed);
                    body();
                });
            }))
            .is_err();
            failed.then(|| count.load(Ordering::Relaxed))
        }
        strategy => {
            let body = programs::selvedge::by_name(program).expect("a program");
            let explore =
                selvedge::Explore::new().schedules(GIVE_UP).jobs(1).seed(seed).minimise(0);
            let explore = match strategy {
                // With every analysis: predictions become directed schedules.
                "selvedge" => explore,
                other => explore.strategy(other).analyses("none"),
            };
            explore.run(body).err().map(|failure| failure.execution)
        }
    };
    if let Some(n) = found {
        println!("{n}");
    }
    ExitCode::SUCCESS
}

/// How long the process has run so far, in nanoseconds of all its threads.
fn processor_time() -> u128 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u128 * 1_000_000_000 + time.tv_nsec as u128
}

/// Most memory that the process ever had in use, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

fn child(args: &[&str]) -> Option<String> {
    let exe = std::env::current_exe().expect("we run");
    let output = Command::new(exe).args(args).env("LOOM_LOG", "0").output().expect("we run again");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn speed() {
    let libraries = ["shuttle", "selvedge", "selvedge-all", "loom"];
    println!(
        "schedules per second of the processor, best of {ROUNDS} runs that take turns (peak memory in MiB)\n"
    );
    println!(
        "Ratios are over shuttle, by random walk on one thread. The last column names the analyses that\n\
         had anything to look at; the others are not shown executions without cells, nested locks or regions\n\
         of their kind.\n"
    );
    println!(
        "{:10} {:>15} {:>15} {:>7} {:>15} {:>7} {:>15}  analyses",
        "program", "shuttle", "selvedge", "ratio", "all analyses", "ratio", "loom"
    );
    for program in programs::CORRECT {
        let mut best: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
        let mut looked = String::new();
        for _ in 0..ROUNDS {
            for library in libraries {
                if library == "loom" && *program == "spawn" {
                    continue; // It has room for five threads.
                }
                let n = if library == "loom" { "1000" } else { "4000" };
                let Some(line) = child(&["one", library, program, n]) else { continue };
                let words: Vec<&str> = line.split(' ').collect();
                let number = |i: usize| words[i].parse::<f64>().expect("a number");
                let rate = number(1) / (number(0) / 1e9);
                let entry = best.entry(library).or_insert((0.0, 0));
                *entry = (entry.0.max(rate), number(2) as u64);
                if library == "selvedge-all" {
                    looked = words[3].to_owned();
                }
            }
        }
        let show = |library: &str| match best.get(library) {
            Some((rate, kib)) => format!("{rate:.0} ({:.1})", *kib as f64 / 1024.0),
            None => "–".into(),
        };
        let ratio = |library: &str| match (best.get(library), best.get("shuttle")) {
            (Some(ours), Some(theirs)) => format!("{:.2}", ours.0 / theirs.0),
            _ => "–".into(),
        };
        println!(
            "{program:10} {:>15} {:>15} {:>7} {:>15} {:>7} {:>15}  {looked}",
            show("shuttle"),
            show("selvedge"),
            ratio("selvedge"),
            show("selvedge-all"),
            ratio("selvedge-all"),
            show("loom")
        );
    }
}

fn bugs() {
    let libraries =
        ["shuttle-random", "shuttle-pct", "random", "pct:3", "pos", "surw", "selvedge", "loom"];
    println!("\nschedules to the bug, median over {SEEDS} seeds (– not within {GIVE_UP})\n");
    print!("{:16}", "program");
    libraries.iter().for_each(|l| print!(" {l:>14}"));
    println!();
    for program in programs::BUGGY {
        print!("{program:16}");
        for library in libraries {
            let seeds = if library == "loom" { 1 } else { SEEDS };
            let mut counts: Vec<u64> = (0..seeds)
                .map(|seed| match child(&["bug", library, program, &seed.to_string()]) {
                    Some(n) => n.parse().unwrap_or(u64::MAX),
                    None => ABORTED,
                })
                .collect();
            counts.sort_unstable();
            match counts[counts.len() / 2] {
                // It ended its process, as a panic while another unwinds does.
                ABORTED => print!(" {:>14}", "aborts"),
                u64::MAX => print!(" {:>14}", "–"),
                median => print!(" {median:>14}"),
            }
        }
        println!();
    }
}
