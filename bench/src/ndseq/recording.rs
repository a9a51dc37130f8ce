//! `cargo xtask bench ndseq recording`: what it costs a kernel to be recorded.
//!
//! Processor time of the program itself, recorded under control over native with clang -O2; and how long the whole test
//! takes for an execution, which the tool has to follow as well.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::answer;
use crate::measure::succeed;
use crate::place::{Place, wanted};

/// A kernel, and how many times the size of a test: native, it runs for some milliseconds.
struct Kernel {
    name: &'static str,
    times: u32,
}

const KERNELS: [Kernel; 6] = [
    Kernel { name: "series", times: 4 },
    Kernel { name: "sparse", times: 4 },
    Kernel { name: "lufact", times: 3 },
    Kernel { name: "moldyn", times: 2 },
    Kernel { name: "sor", times: 3 },
    Kernel { name: "crypt", times: 8 },
];

/// The compiler of both: data flow needs it.
const CLANG: &str = "clang-19";
/// Runs of the native program.
const ROUNDS: usize = 5;
/// The longest time for one kernel.
const MOST: &str = "60s";

/// Measures the kernels of these names, or all.
pub(super) fn run(place: &Place, names: &[&str]) -> Result<(), String> {
    println!("recorded under control over native with clang -O2 (processor time of the program)");
    println!(
        "{:10} {:>10} {:>12} {:>7} {:>7} {:>11} {:>13}",
        "kernel", "native ms", "recorded ms", "ratio", "worst", "executions", "s an execution"
    );
    for kernel in wanted(&KERNELS, |k| k.name, names)? {
        match one(place, kernel) {
            Ok(line) => println!("{line}"),
            Err(problem) => println!("{:10} {}", kernel.name, problem.trim()),
        }
    }
    Ok(())
}

/// The line of one kernel.
fn one(place: &Place, kernel: &Kernel) -> Result<String, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = here.join("noninterference").join(kernel.name).with_extension("c");
    let cost = here.join("ndseq/cost.c");
    let size = format!("-DMIDDLE={}", kernel.times);
    let (native, recorded) = (format!("{}.native", kernel.name), format!("{}.flow", kernel.name));
    // How time is taken is not followed.
    succeed(Command::new(CLANG).args(["-O2", "-c"]).arg(cost).args(["-o", "cost.o"]))?;
    let of = |command: &mut Command, output: &str| {
        command.args(["-O2", "-g", "-w", &size]).arg(&source).arg("cost.o");
        succeed(command.args(["-lm", "-lpthread", "-o", output]))
    };
    of(&mut Command::new(CLANG), &native)?;
    of(Command::new(&place.selvedge).args(["cc", "--selvedge-flow"]), &recorded)?;
    for _ in 0..ROUNDS {
        let mut command = Command::new(Path::new(".").join(&native));
        succeed(command.env("COST", format!("{native}.cost")).stdout(Stdio::null()))?;
    }
    let start = Instant::now();
    let options = ["test", "--ndseq", "--format", "json", "--schedules", "2", "--sequential", "1"];
    let options = [&options[..], &["--time", MOST]].concat();
    // The program inherits this from the tool.
    let cost = format!("{recorded}.cost");
    answer(place, &options, Path::new(&recorded), &[("COST", &cost)])?;
    let whole = start.elapsed().as_secs_f64();
    let (native, recorded) = (costs(&native)?, costs(&recorded)?);
    let best = native[0];
    let (middle, worst) = (recorded[recorded.len() / 2], recorded[recorded.len() - 1]);
    Ok(format!(
        "{:10} {:>10.2} {:>12.2} {:>7.1} {:>7.1} {:>11} {:>13.2}",
        kernel.name,
        best * 1e3,
        middle * 1e3,
        middle / best,
        worst / best,
        recorded.len(),
        whole / recorded.len() as f64
    ))
}

/// What the program of that name has said of its runs, in seconds, the least first.
fn costs(program: &str) -> Result<Vec<f64>, String> {
    let text = std::fs::read_to_string(format!("{program}.cost"))
        .map_err(|e| format!("{program}: it did not come to its end: {e}"))?;
    let mut all: Vec<f64> = text.lines().filter_map(|l| l.parse().ok()).collect();
    all.sort_by(f64::total_cmp);
    match all.is_empty() {
        true => Err(format!("{program}: it has not said what it costs")),
        false => Ok(all),
    }
}
