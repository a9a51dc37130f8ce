//! `cargo xtask bench races`: what race checking costs, ours against the two ThreadSanitizers.
//!
//! The kernels of `bench/kernels` are built natively, with each compiler's ThreadSanitizer, and with
//! our runtime linked to the very objects that ThreadSanitizer's instrumentation makes. All run in
//! turn, so that other work of the machine slows all alike. Figures are processor time (user
//! and system, both threads) over the native time of the same compiler, best run of each.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use selvedge_runtime::Libraries;

use crate::measure::{Runs, once, succeed};

const KERNELS: [&str; 8] = ["memory", "matmul", "sor", "fft", "lu", "fib", "mutex", "atomics"];
const ROUNDS: usize = 5;

/// How a kernel is built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Native,
    Tsan,
    Ours,
}

const VARIANTS: [Variant; 3] = [Variant::Native, Variant::Tsan, Variant::Ours];
const COMPILERS: [&str; 2] = ["gcc", "clang-19"];

/// One kernel: by compiler, by variant.
type Row = [[Runs; 3]; 2];

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let (rounds, names) = match args.split_first() {
        Some((first, rest)) if first.parse::<usize>().is_ok() => {
            (first.parse().unwrap_or(ROUNDS), rest)
        }
        _ => (ROUNDS, args),
    };
    let kernels: Vec<&str> =
        KERNELS.into_iter().filter(|k| names.is_empty() || names.contains(k)).collect();
    if kernels.is_empty() || rounds == 0 {
        eprintln!("kernels: {}", KERNELS.join(" "));
        return ExitCode::from(2);
    }
    match measure(&kernels, rounds) {
        Ok(rows) => {
            print(&kernels, &rows, rounds);
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn measure(kernels: &[&str], rounds: usize) -> Result<Vec<Row>, String> {
    let directory = std::env::temp_dir().join(format!("selvedge-bench-{}", std::process::id()));
    let libraries = Libraries::install(&directory).map_err(|e| e.to_string())?;
    let mut rows = Vec::new();
    for kernel in kernels {
        let mut programs = Vec::new();
        for (c, compiler) in COMPILERS.iter().enumerate() {
            for (v, variant) in VARIANTS.into_iter().enumerate() {
                let program = build(kernel, compiler, variant, &directory, &libraries)?;
                programs.push((c, v, program));
            }
        }
        let mut row = Row::default();
        for _ in 0..rounds {
            for (c, v, program) in &programs {
                row[*c][*v].add(once(program, &[], &[0])?);
            }
        }
        rows.push(row);
    }
    let _ = std::fs::remove_dir_all(&directory);
    Ok(rows)
}

fn build(
    kernel: &str,
    compiler: &str,
    variant: Variant,
    directory: &Path,
    libraries: &Libraries,
) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels").join(format!("{kernel}.c"));
    let (name, flags): (&str, &[&str]) = match variant {
        Variant::Native => ("native", &[]),
        Variant::Tsan => ("tsan", &["-fsanitize=thread"]),
        Variant::Ours => ("ours", &["-fsanitize=thread"]),
    };
    let program = directory.join(format!("{kernel}.{compiler}.{name}"));
    let object = program.with_extension(format!("{name}.o"));
    let mut compile = Command::new(compiler);
    compile.arg("-O2").args(flags).arg("-c").arg(&source).arg("-o").arg(&object);
    succeed(&mut compile)?;
    let mut link = Command::new(compiler);
    match variant {
        Variant::Ours => link.arg(&object).arg(&libraries.archive),
        _ => link.args(flags).arg(&object),
    };
    succeed(link.args(["-lm", "-lpthread", "-o"]).arg(&program))?;
    Ok(program)
}

/// Ratio to native: of the best runs, and the range that the spread of all runs allows.
fn ratio(runs: &Runs, native: &Runs) -> (f64, f64) {
    (runs.best() / native.best(), runs.worst() / native.best())
}

fn print(kernels: &[&str], rows: &[Row], rounds: usize) {
    println!("processor time over native, best of {rounds} (worst); peak memory in MiB\n");
    println!(
        "{:8} | {:>16} {:>16} {:>11} | {:>16} {:>16} {:>11}",
        "kernel", "gcc TSan", "ours", "MiB", "clang TSan", "ours", "MiB"
    );
    let mut logs = [[0.0f64; 2]; 2];
    for (kernel, row) in kernels.iter().zip(rows) {
        let mut line = format!("{kernel:8}");
        for (c, runs) in row.iter().enumerate() {
            let [native, tsan, ours] = runs;
            let [(t, t_worst), (o, o_worst)] = [ratio(tsan, native), ratio(ours, native)];
            logs[c][0] += t.ln();
            logs[c][1] += o.ln();
            let memory = format!("{:.0}/{:.0}", tsan.memory, ours.memory);
            let [t, o] = [(t, t_worst), (o, o_worst)].map(|(b, w)| format!("{b:.2} ({w:.2})"));
            let _ = write!(line, " | {t:>16} {o:>16} {memory:>11}");
        }
        println!("{line}");
    }
    let mean = |log: f64| (log / kernels.len() as f64).exp();
    println!(
        "{:8} | {:>16.2} {:>16.2} {:>11} | {:>16.2} {:>16.2}",
        "geomean",
        mean(logs[0][0]),
        mean(logs[0][1]),
        "",
        mean(logs[1][0]),
        mean(logs[1][1])
    );
    plot(kernels, rows);
}

/// Bars on a terminal: one `#` is one time the native time.
fn plot(kernels: &[&str], rows: &[Row]) {
    const WIDEST: f64 = 60.0;
    let ratios = |row: &Row, c: usize, v: usize| row[c][v].best() / row[c][0].best();
    let all =
        rows.iter().flat_map(|r| [(0, 1), (0, 2), (1, 1), (1, 2)].map(|(c, v)| ratios(r, c, v)));
    let scale = (WIDEST / all.fold(1.0, f64::max)).min(1.0);
    println!("\none # is {:.1} times native", 1.0 / scale);
    for (kernel, row) in kernels.iter().zip(rows) {
        for (c, compiler) in COMPILERS.iter().enumerate() {
            for (v, name) in [(1, "TSan"), (2, "ours")] {
                let ratio = ratios(row, c, v);
                let bar = "#".repeat((ratio * scale).round().max(1.0) as usize);
                println!("{kernel:8} {compiler:8} {name:4} {bar} {ratio:.1}");
            }
        }
    }
}
