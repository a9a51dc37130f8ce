//! Schedules per second.

use std::time::Instant;

use selvedge_explore::{Budget, RandomWalk};
use selvedge_runtime::{Controlled, Libraries, Settings};

use super::{Effort, Result, Workshop, programs};

const PROGRAMS: [&str; 4] = ["counter", "bluetooth", "three_locks", "string_buffer"];

/// Prints the table.
pub(super) fn measure(workshop: &Workshop, effort: Effort) -> Result<()> {
    println!("Schedules per second, random walk, one core.\n");
    println!("{:16} {:>12} {:>12} {:>8}", "program", "fork server", "exec each", "ratio");
    let libraries = Libraries::install(&workshop.directory).map_err(|e| e.to_string())?;
    for program in programs(&PROGRAMS)? {
        let file = workshop.instrumented(&program, true)?;
        let rate = |fork: bool, schedules: u64| -> Result<f64> {
            let none: [&str; 0] = [];
            let settings = Settings { fork, ..Settings::default() };
            let mut controlled =
                Controlled::new(&file, none, &libraries, settings).map_err(|e| e.to_string())?;
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
        println!("{:16} {forked:>12.0} {started:>12.0} {:>8.1}", program.name, forked / started);
    }
    println!();
    Ok(())
}
