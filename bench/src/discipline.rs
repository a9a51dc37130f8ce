//! `cargo xtask bench discipline`: what it costs to infer disciplines, beside `races` and `lockset`.
//!
//! Programs after those of *Hominy Grits*, table 5.1, are built natively and with `selvedge cc`, and run in turn;
//! figures are processor time of the program and of `selvedge` together over native, and the most memory of one of
//! them. Then growth, on events made here: nanoseconds for an access, with more and more variables, and with
//! more and more synchronization between accesses.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use selvedge_analyses::Analysis;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_analyses::hominy::Hominy;
use selvedge_analyses::lockset::Lockset;
use selvedge_analyses::registry::Make;
use selvedge_model::{Access, Event, Findings, LockId, Mode, Op, SiteId, ThreadId};

use crate::measure::{Runs, once};
use crate::place::{Place, exit_code};

const ROUNDS: usize = 3;

/// A program of `crates/cli/tests/programs/discipline`, its size, and the thesis' slowdown and memory online. Sizes are
/// such that a native run takes some tenths of a second, so that starting is a small part.
const PROGRAMS: [(&str, &[&str], f64, f64); 4] = [
    ("elevator", &["-DPEOPLE=100000"], 2.2, 64.0),
    ("monte_carlo", &["-DTASKS=20000", "-DSTEPS=10000"], 1498.6, 1180.0),
    ("sor", &["-DROWS=400", "-DCOLUMNS=400", "-DITERATIONS=2000"], 610.0, 37.0),
    ("tsp", &["-DCITIES=14"], 409.5, 27.0),
];

const WAYS: [(&str, &[&str]); 3] = [
    ("races", &["run", "--analyses=races", "--"]),
    ("lockset", &["run", "--analyses=lockset", "--"]),
    ("discipline", &["infer", "discipline", "--"]),
];

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let rounds = args.first().and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    exit_code(table(rounds).map(|()| growth()))
}

fn table(rounds: usize) -> Result<(), String> {
    let place = Place::new("discipline")?;
    println!("processor seconds over native, best of {rounds} (most memory in MiB)\n");
    let heads = WAYS.map(|(name, _)| format!("{name:>20}")).join(" ");
    println!("{:12} {:>18} {:>18} {heads}", "program", "thesis (online)", "native");
    for (name, sizes, slowdown, memory) in PROGRAMS {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/cli/tests/programs");
        let source = programs.join("discipline").join(name).with_extension("c");
        let options: Vec<&str> = ["-O1"].iter().chain(sizes).copied().collect();
        let native = place.native(&source, "gcc", &options)?;
        let ours = place.ours(&source, "gcc", &options)?;
        let mut runs = vec![Runs::default(); WAYS.len() + 1];
        for _ in 0..rounds {
            runs[0].add(once(&native, &[], &[0])?);
            for (runs, (_, way)) in runs[1..].iter_mut().zip(WAYS) {
                let program = ours.to_string_lossy().into_owned();
                let args: Vec<&str> = way.iter().copied().chain([&*program]).collect();
                runs.add(once(&place.selvedge, &args, &[0, 1])?);
            }
        }
        let base = runs[0].best().max(0.001);
        let cells: Vec<String> = runs[1..]
            .iter()
            .map(|r| format!("{:>20}", format!("{:.1} ({:.0})", r.best() / base, r.memory)))
            .collect();
        let thesis = format!("{slowdown} ({memory})");
        let native = format!("{:.2} s ({:.0})", runs[0].best(), runs[0].memory);
        println!("{name:12} {thesis:>18} {native:>18} {}", cells.join(" "));
    }
    Ok(())
}

/// Two threads take turns under a lock; between two accesses lie `synchronizations`.
fn events(variables: u64, synchronizations: u32, accesses: u64) -> Vec<Event> {
    let mut events = Vec::new();
    let mut emit = |thread: u32, op: Op| {
        events.push(Event { thread: ThreadId(thread), site: SiteId(thread), op });
    };
    emit(0, Op::Fork(ThreadId(1)));
    for i in 0..accesses {
        let thread = (i % 2) as u32;
        for s in 0..synchronizations {
            let lock = LockId(s % 64);
            emit(thread, Op::Acquire(lock, Mode::Exclusive));
            if s + 1 < synchronizations {
                emit(thread, Op::Release(lock, Mode::Exclusive));
            }
        }
        emit(thread, Op::Write(Access { addr: 0x1000 + i % variables * 8, len: 8 }));
        emit(thread, Op::Release(LockId((synchronizations - 1) % 64), Mode::Exclusive));
    }
    events
}

fn nanoseconds(mut analysis: Box<dyn Analysis>, events: &[Event], per: u64) -> f64 {
    let mut findings = Findings::default();
    let start = Instant::now();
    analysis.on_events(events, &mut findings);
    analysis.finish(&mut findings);
    start.elapsed().as_nanos() as f64 / per as f64
}

fn growth() {
    let makes: [(&str, Make); 3] = [
        ("races", || Box::new(FastTrack::new())),
        ("lockset", || Box::<Lockset>::default()),
        ("discipline", || Box::<Hominy>::default()),
    ];
    let heads = makes.map(|(name, _)| format!("{name:>12}")).join(" ");
    println!("\nThe thesis' tool offline: SOR 38,484 times native.");
    println!("\nnanoseconds for an access and its lock, by variables\n{:>12} {heads}", "variables");
    for variables in [1_000, 10_000, 100_000, 1_000_000] {
        let accesses = 2 * variables.max(500_000);
        let events = events(variables, 1, accesses);
        let cells =
            makes.map(|(_, make)| format!("{:>12.0}", nanoseconds(make(), &events, accesses)));
        println!("{variables:>12} {}", cells.join(" "));
    }
    println!(
        "\nnanoseconds for a synchronization, by synchronizations between accesses\n{:>12} {heads}",
        "between"
    );
    for between in [1, 10, 100, 1_000] {
        let accesses = 1_000_000 / u64::from(between);
        let events = events(1_000, between, accesses);
        let per = accesses * u64::from(between);
        let cells = makes.map(|(_, make)| format!("{:>12.0}", nanoseconds(make(), &events, per)));
        println!("{between:>12} {}", cells.join(" "));
    }
}
