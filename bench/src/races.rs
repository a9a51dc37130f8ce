//! `cargo xtask bench races`: what race checking costs, ours against the two ThreadSanitizers.
//!
//! The kernels of `bench/kernels` are built natively, with each compiler's ThreadSanitizer, with our runtime linked to the
//! very objects that ThreadSanitizer's instrumentation makes, and with clang's hooks made fewer by ours. All run in
//! turn, so that other work of the machine slows all alike. Figures are processor time (user
//! and system, both threads) over the native time of the same compiler, best run of each.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use selvedge_instrument::accesses::Rules;
use selvedge_instrument::{Library, SECOND_HALF};
use selvedge_runtime::Libraries;

use crate::measure::{Runs, once, succeed};
use crate::plot;

const KERNELS: [&str; 8] = ["memory", "matmul", "sor", "fft", "lu", "fib", "mutex", "atomics"];
const ROUNDS: usize = 5;

/// How a kernel is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Variant {
    Native,
    Tsan,
    /// Our runtime, and the compiler's hooks.
    Ours,
    /// Our runtime, and our own hooks.
    Own,
}

const GCC: &str = "gcc";
const CLANG: &str = "clang-19";

const BUILDS: [(&str, Variant); 7] = [
    (GCC, Variant::Native),
    (GCC, Variant::Tsan),
    (GCC, Variant::Ours),
    (CLANG, Variant::Native),
    (CLANG, Variant::Tsan),
    (CLANG, Variant::Ours),
    (CLANG, Variant::Own),
];

/// One kernel: by build.
type Row = [Runs; BUILDS.len()];

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let args = match plot::Arguments::parse(args, ROUNDS) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let kernels: Vec<&str> = KERNELS.into_iter().filter(|kernel| args.want(kernel)).collect();
    if kernels.is_empty() {
        eprintln!("kernels: {}", KERNELS.join(" "));
        return ExitCode::from(2);
    }
    let drawn = |rows: &[Row]| args.svg.map_or(Ok(()), |path| draw(path, &kernels, rows));
    match measure(&kernels, args.rounds).and_then(|rows| drawn(&rows).map(|()| rows)) {
        Ok(rows) => {
            print(&kernels, &rows, args.rounds);
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
        for (compiler, variant) in BUILDS {
            programs.push(build(kernel, compiler, variant, &directory, &libraries)?);
        }
        let mut row = Row::default();
        for _ in 0..rounds {
            for (runs, program) in row.iter_mut().zip(&programs) {
                runs.add(once(program, &[], &[0])?);
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
        Variant::Own => ("own", &["-fsanitize=thread", "-emit-llvm"]),
    };
    let program = directory.join(format!("{kernel}.{compiler}.{name}"));
    let object = program.with_extension(format!("{name}.o"));
    let mut compile = Command::new(compiler);
    compile.arg("-O2").args(flags).arg("-c").arg(&source).arg("-o").arg(&object);
    succeed(&mut compile)?;
    if variant == Variant::Own {
        let library = Library::of_compiler(&[compiler.into()]).map_err(|e| e.to_string())?;
        selvedge_instrument::races(&library, &object, Rules::ALL).map_err(|e| e.to_string())?;
        let mut second_half = Command::new(compiler);
        second_half.args(["-w", "-O2"]).args(SECOND_HALF);
        let bitcode = object.with_extension("bc");
        std::fs::rename(&object, &bitcode).map_err(|e| e.to_string())?;
        succeed(second_half.arg(&bitcode).arg("-o").arg(&object))?;
    }
    let mut link = Command::new(compiler);
    match variant {
        Variant::Ours | Variant::Own => link.arg(&object).arg(&libraries.archive),
        Variant::Native | Variant::Tsan => link.args(flags).arg(&object),
    };
    succeed(link.args(["-lm", "-lpthread", "-o"]).arg(&program))?;
    Ok(program)
}

/// Ratio to native: of the best runs, and the range that the spread of all runs allows.
fn ratio(row: &Row, build: usize) -> (f64, f64) {
    let native = row[native_of(build)].best();
    (row[build].best() / native, row[build].worst() / native)
}

/// The native build of the same compiler.
fn native_of(build: usize) -> usize {
    BUILDS.iter().position(|b| *b == (BUILDS[build].0, Variant::Native)).expect("each has one")
}

/// The builds that are compared with native ones.
fn compared() -> impl Iterator<Item = usize> + Clone {
    (0..BUILDS.len()).filter(|&b| BUILDS[b].1 != Variant::Native)
}

fn print(kernels: &[&str], rows: &[Row], rounds: usize) {
    println!("processor time over native, best of {rounds} (worst); peak memory in MiB\n");
    let name = |b: usize| format!("{} {:?}", BUILDS[b].0, BUILDS[b].1).to_lowercase();
    let columns = |cell: &dyn Fn(usize) -> String| -> String {
        compared().map(|b| format!(" {:>16}", cell(b))).collect()
    };
    println!("{:8} |{} | MiB", "kernel", columns(&name));
    for (kernel, row) in kernels.iter().zip(rows) {
        let cell = |b| {
            let (best, worst) = ratio(row, b);
            format!("{best:.2} ({worst:.2})")
        };
        let memory: Vec<String> = compared().map(|b| format!("{:.0}", row[b].memory)).collect();
        println!("{kernel:8} |{} | {}", columns(&cell), memory.join("/"));
    }
    let mean = |b: usize| {
        let logs: f64 = rows.iter().map(|row| ratio(row, b).0.ln()).sum();
        (logs / rows.len() as f64).exp()
    };
    println!("{:8} |{}", "geomean", columns(&|b| format!("{:.2}", mean(b))));
    let [tsan, own] = [Variant::Tsan, Variant::Own]
        .map(|v| BUILDS.iter().position(|b| *b == (CLANG, v)).expect("it is built"));
    let share = |row: &Row| ratio(row, own).0 / ratio(row, tsan).0;
    let worst = rows.iter().map(share).fold(0.0, f64::max);
    println!(
        "own hooks over clang's ThreadSanitizer: geometric mean {:.2}, worst kernel {worst:.2}",
        mean(own) / mean(tsan)
    );
}

/// Draws what was measured with clang.
fn draw(path: &Path, kernels: &[&str], rows: &[Row]) -> Result<(), String> {
    let with_clang = || compared().filter(|&b| BUILDS[b].0 == CLANG);
    let name = |b: usize| match BUILDS[b].1 {
        Variant::Native => "native",
        Variant::Tsan => "ThreadSanitizer",
        Variant::Ours => "clang's hooks",
        Variant::Own => "own hooks",
    };
    let names: Vec<String> = with_clang().map(|b| name(b).to_owned()).collect();
    let bars = |(kernel, row): (&&str, &Row)| plot::Row {
        name: (*kernel).to_owned(),
        bars: with_clang().map(|b| ratio(row, b)).collect(),
    };
    let rows: Vec<plot::Row> = kernels.iter().zip(rows).map(bars).collect();
    plot::write(path, "Processor time over native, clang -O2", &names, &rows)
}
