//! Schedules per second.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use selvedge_explore::{Budget, RandomWalk};
use selvedge_runtime::{Controlled, Libraries, Settings};

use super::{Effort, Program, Result, Workshop, folder, programs};

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

/// Prints the table.
pub(super) fn measure(workshop: &Workshop, effort: Effort) -> Result<()> {
    println!(
        "Schedules per second, random walk, one core. plain: processes of the program without Selvedge, started one \
         after the other; over plain: fork server over them. bare fork: children of a process without Selvedge that start \
         the same threads;\nlimit: these over plain.\n"
    );
    println!(
        "{:16} {:>12} {:>12} {:>8} {:>10} {:>11} {:>10} {:>8}",
        "program", "fork server", "exec each", "ratio", "plain", "over plain", "bare fork", "limit"
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
        let rate = |fork: bool, schedules: u64| -> Result<f64> {
            let settings = Settings { fork, ..Settings::default() };
            let mut controlled = Controlled::new(&file, &program.size, &libraries, settings)
                .map_err(|e| e.to_string())?;
            let (mut walk, mut budget) = (RandomWalk::default(), Budget::new(1, schedules + 1));
            let mut begin = Instant::now();
            while budget.begin(&mut walk) {
                controlled.run(&mut walk).map_err(|e| e.to_string())?;
                if budget.begun() == 1 {
                    // The first execution starts the server.
                    begin = Instant::now();
                }
            }
            Ok(schedules as f64 / begin.elapsed().as_secs_f64())
        };
        let forked = rate(true, effort.executions * 10)?;
        let started = rate(false, effort.executions * 2)?;
        let file = workshop.plain(&program)?;
        let plain = plain(&file, &program, effort.executions * 2)?;
        let bare = match program.source == source {
            true => Some(bare(&file, &program, effort.executions * 10)?),
            false => None,
        };
        let limit = bare.map(|bare| format!(" {bare:>10.0} {:>8.2}", bare / plain));
        println!(
            "{:16} {forked:>12.0} {started:>12.0} {:>8.1} {plain:>10.0} {:>11.2}{}",
            program.title(),
            forked / started,
            forked / plain,
            limit.unwrap_or_default()
        );
    }
    println!();
    Ok(())
}

/// Plain processes per second.
fn plain(file: &Path, program: &Program, runs: u64) -> Result<f64> {
    let begin = Instant::now();
    for _ in 0..runs {
        let mut command = Command::new(file);
        command.args(&program.size).stdin(Stdio::null()).stdout(Stdio::null());
        // A program with a bug may fail; it is the process that is measured.
        command.stderr(Stdio::null()).status().map_err(|e| e.to_string())?;
    }
    Ok(runs as f64 / begin.elapsed().as_secs_f64())
}

/// Children per second of a process that has nothing of ours.
fn bare(file: &Path, program: &Program, forks: u64) -> Result<f64> {
    let begin = Instant::now();
    let mut command = Command::new(file);
    command.args(&program.size).arg(forks.to_string());
    super::succeed(&mut command)?;
    Ok(forks as f64 / begin.elapsed().as_secs_f64())
}
