//! Variants of DeadlockFuzzer, as in figure 6.1 of *Active testing*.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use selvedge_analyses::Analysis;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_engine::Outcome;
use selvedge_explore::{Abstraction, Budget, DeadlockFuzzer, RandomWalk, Trivial};
use selvedge_model::{Findings, Symbols, Target, Waiter};
use selvedge_runtime::control::{NameTable, Scheme};
use selvedge_runtime::{Controlled, Libraries, Settings};

use super::{Effort, Result, Workshop, folder, programs};

const PROGRAMS: [&str; 4] = ["pool_deadlock", "three_locks", "two_tables", "way_through"];

/// Frames, or makers, that a name is made of.
const K: usize = 5;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Objects,
    Indexing,
    Shallow,
    Trivial,
    NoContext,
    NoYields,
}

const VARIANTS: [(Variant, &str); 6] = [
    (Variant::Objects, "1 k-object sensitivity"),
    (Variant::Indexing, "2 execution indexing"),
    (Variant::Shallow, "  the same with k = 1"),
    (Variant::Trivial, "3 trivial abstraction"),
    (Variant::NoContext, "4 no context"),
    (Variant::NoYields, "5 no yields"),
];

/// The predicted cycles of a program, and what the ids in them mean.
struct Predicted {
    cycles: Vec<Vec<Waiter>>,
    names: NameTable,
    symbols: Symbols,
}

/// What one variant did.
#[derive(Default)]
struct Counts {
    executions: u64,
    reached: u64,
    elsewhere: u64,
    thrashes: u64,
    time: Duration,
}

/// Prints the table.
pub(super) fn measure(workshop: &Workshop, effort: Effort) -> Result<()> {
    println!(
        "DeadlockFuzzer on each predicted cycle, {} executions each: how likely it creates that deadlock \
         (and another one),\nthrashes per execution, time per execution over that of a plain process.\n",
        effort.executions
    );
    println!(
        "{:16} {:24} {:>6} {:>12} {:>8} {:>10} {:>8}",
        "program", "variant", "cycles", "probability", "another", "thrashes", "time"
    );
    let libraries = Libraries::install(&workshop.directory).map_err(|e| e.to_string())?;
    for program in programs(&folder(), &PROGRAMS)? {
        let file = workshop.instrumented(&program, false)?;
        let native = native(&workshop.plain(&program)?)?;
        let predicted = predict(&file, &libraries)?;
        for (variant, name) in VARIANTS {
            let counts = run(&file, &libraries, &predicted, variant, effort.executions)?;
            let per = |n: u64| n as f64 / counts.executions.max(1) as f64;
            let time = counts.time.as_secs_f64() / counts.executions.max(1) as f64;
            println!(
                "{:16} {name:24} {:>6} {:>12.2} {:>8.2} {:>10.2} {:>8.1}",
                program.name,
                predicted.cycles.len(),
                per(counts.reached),
                per(counts.elsewhere),
                per(counts.thrashes),
                time / native,
            );
        }
    }
    println!();
    Ok(())
}

/// Seconds of a plain run, the process included.
fn native(program: &Path) -> Result<f64> {
    const RUNS: u32 = 30;
    let begin = Instant::now();
    for _ in 0..RUNS {
        let status = Command::new(program).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.map_err(|e| e.to_string())?;
    }
    Ok(begin.elapsed().as_secs_f64() / f64::from(RUNS))
}

fn control(program: &Path, libraries: &Libraries) -> Result<Controlled> {
    let none: [&str; 0] = [];
    Controlled::new(program, none, libraries, Settings::default()).map_err(|e| e.to_string())
}

/// What executions without a deadlock let expect: of the first one that lets expect anything, since
/// who runs a job of a pool differs from one to the next.
fn predict(program: &Path, libraries: &Libraries) -> Result<Predicted> {
    const EXECUTIONS: u64 = 50;
    let mut controlled = control(program, libraries)?;
    let (mut walk, mut budget) = (RandomWalk::default(), Budget::new(1, EXECUTIONS));
    while budget.begin(&mut walk) {
        let execution = controlled.run(&mut walk).map_err(|e| e.to_string())?;
        if execution.outcome != Outcome::Exited(0) {
            continue;
        }
        let (mut goodlock, mut findings) = (Goodlock::default(), Findings::default());
        execution.events.iter().for_each(|e| goodlock.on_event(e, &mut findings));
        goodlock.finish(&mut findings);
        let cycles = findings.iter().filter_map(|f| match &f.target {
            Some(Target::Deadlock(cycle)) => Some(cycle.clone()),
            _ => None,
        });
        let cycles: Vec<Vec<Waiter>> = cycles.collect();
        if !cycles.is_empty() {
            let names = controlled.names().snapshot();
            return Ok(Predicted { cycles, names, symbols: controlled.symbols.clone() });
        }
    }
    Err(format!("no deadlock was predicted in {}", program.display()))
}

fn run(
    program: &Path,
    libraries: &Libraries,
    predicted: &Predicted,
    variant: Variant,
    executions: u64,
) -> Result<Counts> {
    let mut controlled = control(program, libraries)?;
    controlled.symbols = predicted.symbols.clone();
    let mut counts = Counts::default();
    for cycle in &predicted.cycles {
        let scheme = match variant {
            Variant::Objects => Scheme::Makers(K),
            Variant::Shallow => Scheme::Index(1),
            _ => Scheme::Index(K),
        };
        if variant == Variant::Trivial {
            let fuzzer = DeadlockFuzzer::new(cycle, &Trivial, Trivial);
            counts.take(&mut controlled, fuzzer, executions)?;
            continue;
        }
        let (names, now) = (predicted.names.by(scheme), controlled.names().by(scheme));
        let fuzzer = DeadlockFuzzer::new(cycle, &names, now);
        let fuzzer = match variant {
            Variant::NoContext => fuzzer.without_context(),
            Variant::NoYields => fuzzer.without_yields(),
            _ => fuzzer,
        };
        counts.take(&mut controlled, fuzzer, executions)?;
    }
    Ok(counts)
}

impl Counts {
    fn take<A: Abstraction>(
        &mut self,
        controlled: &mut Controlled,
        mut fuzzer: DeadlockFuzzer<A>,
        executions: u64,
    ) -> Result<()> {
        let begin = Instant::now();
        let mut budget = Budget::new(1, executions);
        while budget.begin(&mut fuzzer) {
            controlled.run(&mut fuzzer).map_err(|e| e.to_string())?;
            self.executions += 1;
            self.reached += u64::from(!fuzzer.reached().is_empty());
            self.elsewhere += u64::from(!fuzzer.elsewhere().is_empty());
            self.thrashes += fuzzer.thrashes();
        }
        self.time += begin.elapsed();
        Ok(())
    }
}
