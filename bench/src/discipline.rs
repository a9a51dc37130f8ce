//! `cargo xtask bench discipline`: what it costs to infer disciplines, beside `races` and `lockset`.
//!
//! Programs after those of *Hominy Grits*, table 5.1, are built natively and with `selvedge cc`, and run in turn;
//! figures are processor time of the program and of `selvedge` together over native, and the most memory of one of
//! them. Then growth, on events made here: nanoseconds for an access, with more and more variables, and with
//! more and more synchronization between accesses.

use std::path::{Path, PathBuf};
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

/// A program of `crates/cli/tests/programs/discipline`.
struct Program {
    name: &'static str,
    /// Such that a native run takes some tenths of a second, so that starting is a small part.
    size: &'static [&'static str],
    /// For `lockset`, which is told every first access of an epoch, and would take minutes; beside a native run of the
    /// same size.
    less: Option<&'static [&'static str]>,
    /// The thesis' slowdown and memory online.
    slowdown: f64,
    memory: f64,
}

const PROGRAMS: [Program; 4] = [
    Program {
        name: "elevator",
        size: &["-DPEOPLE=100000"],
        less: None,
        slowdown: 2.2,
        memory: 64.0,
    },
    Program {
        name: "monte_carlo",
        size: &["-DTASKS=20000", "-DSTEPS=10000"],
        less: None,
        slowdown: 1498.6,
        memory: 1180.0,
    },
    Program {
        name: "sor",
        size: &["-DROWS=400", "-DCOLUMNS=400", "-DITERATIONS=2000"],
        less: Some(&["-DROWS=400", "-DCOLUMNS=400", "-DITERATIONS=100"]),
        slowdown: 610.0,
        memory: 37.0,
    },
    Program { name: "tsp", size: &["-DCITIES=14"], less: None, slowdown: 409.5, memory: 27.0 },
];

/// A way to observe a program, and what it is called. The second one gets smaller programs where they are given.
const WAYS: [(&str, &[&str]); 3] = [
    ("races", &["run", "--analyses=races", "--"]),
    (LOCKSET, &["run", "--analyses=lockset", "--"]),
    ("discipline", &["infer", "discipline", "--"]),
];
const LOCKSET: &str = "lockset";

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let rounds = args.first().and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    exit_code(table(rounds).map(|()| growth()))
}

/// A program of one size, both ways.
struct Built {
    native: PathBuf,
    ours: PathBuf,
    runs: Runs,
}

impl Built {
    fn new(place: &Place, name: &str, size: &[&str]) -> Result<Built, String> {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/cli/tests/programs");
        let source = programs.join("discipline").join(name).with_extension("c");
        let options: Vec<&str> = ["-O1"].iter().chain(size).copied().collect();
        let native = place.native(&source, "gcc", &options)?;
        let ours = place.ours(&source, "gcc", &options)?;
        Ok(Built { native, ours, runs: Runs::default() })
    }

    fn run_native(&mut self) -> Result<(), String> {
        self.runs.add(once(&self.native, &[], &[0])?);
        Ok(())
    }
}

fn table(rounds: usize) -> Result<(), String> {
    let place = Place::new("discipline")?;
    println!("processor seconds over native, best of {rounds} (most memory in MiB)\n");
    let heads = WAYS.map(|(name, _)| format!("{name:>20}")).join(" ");
    println!("{:12} {:>18} {:>18} {heads}", "program", "thesis (online)", "native");
    for program in &PROGRAMS {
        let mut whole = Built::new(&place, program.name, program.size)?;
        let mut less = match program.less {
            Some(size) => Some(Built::new(&place, program.name, size)?),
            None => None,
        };
        let mut runs = vec![Runs::default(); WAYS.len()];
        for _ in 0..rounds {
            whole.run_native()?;
            less.as_mut().map_or(Ok(()), Built::run_native)?;
            for (runs, (name, way)) in runs.iter_mut().zip(WAYS) {
                let built = less.as_ref().filter(|_| name == LOCKSET).unwrap_or(&whole);
                let program = built.ours.to_string_lossy().into_owned();
                let args: Vec<&str> = way.iter().copied().chain([&*program]).collect();
                runs.add(once(&place.selvedge, &args, &[0, 1])?);
            }
        }
        let cells: Vec<String> = runs
            .iter()
            .zip(WAYS)
            .map(|(runs, (name, _))| {
                let smaller = less.as_ref().filter(|_| name == LOCKSET);
                let base = smaller.unwrap_or(&whole).runs.best().max(0.001);
                let mark = if smaller.is_some() { "*" } else { "" };
                format!("{:>20}", format!("{mark}{:.1} ({:.0})", runs.best() / base, runs.memory))
            })
            .collect();
        let thesis = format!("{} ({})", program.slowdown, program.memory);
        let native = format!("{:.2} s ({:.0})", whole.runs.best(), whole.runs.memory);
        println!("{:12} {thesis:>18} {native:>18} {}", program.name, cells.join(" "));
    }
    println!("* with fewer iterations, over a native run of the same size");
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
