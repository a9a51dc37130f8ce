//! What is confirmed in correct programs: nothing, or the tool is wrong.

use super::{Effort, Program, Result, Workshop};

/// Prints the table; whether nothing was confirmed. A program is a fixed twin if the second says so.
pub(super) fn measure(
    workshop: &Workshop,
    programs: &[(Program, bool)],
    effort: Effort,
) -> Result<bool> {
    println!(
        "Findings that `selvedge test` confirms in correct programs, {} schedules of each seed.\n",
        effort.schedules
    );
    println!("{:24} {:>6} {:>10}", "program", "seeds", "confirmed");
    // Every seed counts here, however long it takes.
    let effort = Effort { time: std::time::Duration::MAX, ..effort };
    let (mut all, mut seeds) = (0, 0);
    for (program, fixed) in programs {
        let file = workshop.instrumented(program, *fixed)?;
        let counts = workshop.seeds(effort, |directory, seed| {
            workshop.confirmed(directory, (&file, program), (seed, effort.schedules))
        })?;
        let confirmed: usize = counts.iter().sum();
        println!("{:24} {:>6} {confirmed:>10}", program.title(), counts.len());
        all += confirmed;
        seeds += counts.len();
    }
    println!("{:24} {seeds:>6} {all:>10}", "together");
    println!("\n(the command: cargo xtask bench confirm twins [--seeds=N] [PROGRAM…])\n");
    Ok(all == 0)
}
