//! Schedules per second.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use selvedge_explore::{Budget, RandomWalk};
use selvedge_runtime::{Controlled, Libraries, Settings};

use super::{Effort, Program, Result, Workshop, folder, programs};
use crate::measure::all_processor_seconds;

const PROGRAMS: [&str; 4] = ["counter", "bluetooth", "three_locks", "string_buffer"];

/// A program that does nothing but start threads, each of which locks once, and these numbers of them: what an
/// execution costs, not what a program computes. With a second argument it forks so often instead, on one processor, and
/// its children start the threads: no fork server can be faster.
const THREADS: &str = "\
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;
static void *add(void *arg) {
    pthread_mutex_lock(&lock);
    count++;
    pthread_mutex_unlock(&lock);
    return arg;
}
static int run(int n) {
    pthread_t threads[128];
    for (int i = 0; i < n; i++) pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    return count == n ? 0 : 1;
}
int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 3, forks = argc > 2 ? atoi(argv[2]) : 0;
    if (forks == 0) return run(n);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) exit(run(n));
        waitpid(child, NULL, 0);
    }
    return 0;
}
";
const SIZES: [&str; 3] = ["3", "20", "100"];

/// Executions per second, and the processor time of each in microseconds.
#[derive(Clone, Copy)]
struct Cost {
    rate: f64,
    processor: f64,
}

impl Cost {
    /// What so many executions cost that `run` makes. It returns when the timed part of them began.
    fn of(executions: u64, run: impl FnOnce() -> Result<Instant>) -> Result<Cost> {
        let before = all_processor_seconds();
        let elapsed = run()?.elapsed();
        let used = all_processor_seconds() - before;
        let executions = executions as f64;
        Ok(Cost { rate: executions / elapsed.as_secs_f64(), processor: used * 1e6 / executions })
    }
}

/// Prints the table.
pub(super) fn measure(workshop: &Workshop, effort: Effort) -> Result<()> {
    println!(
        "Schedules per second, random walk, one core. plain: processes of the program without Selvedge, started one \
         after the other; over plain: fork server over them. bare fork: children of a process without Selvedge that start \
         the same threads;\nlimit: these over plain. µs: processor time of one execution, of everything that takes part, \
         which a busy machine hardly changes.\n"
    );
    println!(
        "{:16} {:>11} {:>9} {:>9} {:>10} {:>9} {:>6} | {:>9} {:>9} {:>9} {:>10} {:>6}",
        "program",
        "fork server",
        "exec each",
        "plain",
        "over plain",
        "bare fork",
        "limit",
        "server µs",
        "plain µs",
        "bare µs",
        "over plain",
        "limit"
    );
    let libraries = Libraries::install(&workshop.directory).map_err(|e| e.to_string())?;
    let source = workshop.directory.join("threads.c");
    std::fs::write(&source, THREADS).map_err(|e| e.to_string())?;
    let family = SIZES.map(|size| Program {
        name: "threads".into(),
        source: source.clone(),
        size: Some(size.into()),
    });
    for program in programs(&folder(), &PROGRAMS)?.into_iter().chain(family) {
        let file = workshop.instrumented(&program, true)?;
        let (few, many) = (effort.executions * 2, effort.executions * 10);
        let forked = controlled(&file, &program, &libraries, (true, many))?;
        let started = controlled(&file, &program, &libraries, (false, few))?;
        let file = workshop.plain(&program)?;
        let plain = plain(&file, &program, few)?;
        let bare = match program.source == source {
            true => Some(bare(&file, &program, many)?),
            false => None,
        };
        let or_nothing =
            |figure: Option<f64>, digits| figure.map_or(String::new(), |f| format!("{f:.digits$}"));
        println!(
            "{:16} {:>11.0} {:>9.0} {:>9.0} {:>10.2} {:>9} {:>6} | {:>9.0} {:>9.0} {:>9} {:>10.2} {:>6}",
            program.title(),
            forked.rate,
            started.rate,
            plain.rate,
            forked.rate / plain.rate,
            or_nothing(bare.map(|b| b.rate), 0),
            or_nothing(bare.map(|b| b.rate / plain.rate), 2),
            forked.processor,
            plain.processor,
            or_nothing(bare.map(|b| b.processor), 0),
            plain.processor / forked.processor,
            or_nothing(bare.map(|b| plain.processor / b.processor), 2),
        );
    }
    println!();
    Ok(())
}

/// Controlled executions, forked or started one by one.
fn controlled(
    file: &Path,
    program: &Program,
    libraries: &Libraries,
    (fork, schedules): (bool, u64),
) -> Result<Cost> {
    Cost::of(schedules, || {
        let settings = Settings { fork, ..Settings::default() };
        let mut controlled =
            Controlled::new(file, &program.size, libraries, settings).map_err(|e| e.to_string())?;
        let (mut walk, mut budget) = (RandomWalk::default(), Budget::new(1, schedules + 1));
        let mut begin = Instant::now();
        while budget.begin(&mut walk) {
            controlled.run(&mut walk).map_err(|e| e.to_string())?;
            if budget.begun() == 1 {
                // The first execution starts the server.
                begin = Instant::now();
            }
        }
        Ok(begin)
    })
}

/// Plain processes.
fn plain(file: &Path, program: &Program, runs: u64) -> Result<Cost> {
    Cost::of(runs, || {
        let begin = Instant::now();
        for _ in 0..runs {
            let mut command = Command::new(file);
            command.args(&program.size).stdin(Stdio::null()).stdout(Stdio::null());
            // A program with a bug may fail; it is the process that is measured.
            command.stderr(Stdio::null()).status().map_err(|e| e.to_string())?;
        }
        Ok(begin)
    })
}

/// Children of a process that has nothing of ours.
fn bare(file: &Path, program: &Program, forks: u64) -> Result<Cost> {
    Cost::of(forks, || {
        let begin = Instant::now();
        let mut command = Command::new(file);
        command.args(&program.size).arg(forks.to_string());
        super::succeed(&mut command)?;
        Ok(begin)
    })
}
