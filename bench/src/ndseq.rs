//! `cargo xtask bench ndseq`: tables 6.1 and 7.1 of Burnim's thesis with rows of ours beside them, and how the check
//! grows with the length of an execution.
//!
//! The programs are C programs in the shapes of the thesis' benchmarks, built with `selvedge cc --selvedge-flow`.
//! Warnings are circles of conflicts at different places: if every access mattered, and of those that do matter in
//! executions that no sequential execution explains. `sequential` counts executions whose circles a sequential
//! execution explains. And what it costs a program to be recorded ([`recording`]).

mod recording;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use selvedge_analyses::Analysis;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_model::{
    Access, Event, Findings, Flow, LocalId, LockId, Mode, Op, Range, Region, RegionId, RegionKind,
    SiteId, Symbols, ThreadId,
};
use selvedge_specs::ndseq::infer::Study;
use selvedge_specs::ndseq::{Recorder, check};
use serde_json::Value;

use crate::measure::{peak_memory_mib, processor_seconds, succeed};
use crate::place::{Place, exit_code, wanted};

/// Executions of each program, as in the thesis.
const SCHEDULES: &str = "5";
/// Executions to infer from; rare interleavings need stars, too.
const TO_INFER: &str = "200";
/// The longest time for each of the two.
const MOST: &str = "20s";

/// A row: what the thesis found.
#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    source: &'static str,
    options: &'static [&'static str],
    /// For the check, the stars in the source.
    starred: bool,
    /// Warnings of strict conflict serializability and of the thesis' check; nothing if it has no such row.
    warnings: Option<(u64, u64)>,
    /// Inferred stars; nothing if none exist.
    stars: Option<u64>,
}

const fn row(
    name: &'static str,
    source: &'static str,
    options: &'static [&'static str],
    warnings: Option<(u64, u64)>,
    stars: Option<u64>,
) -> Program {
    Program { name, source, options, starred: false, warnings, stars }
}

const fn starred(program: Program) -> Program {
    Program { starred: true, ..program }
}

const PROGRAMS: [Program; 19] = [
    row("sor", "noninterference/sor", &[], Some((0, 0)), Some(0)),
    row("matmult", "noninterference/sparse", &[], Some((0, 0)), Some(0)),
    row("series", "noninterference/series", &[], Some((0, 0)), Some(0)),
    row("crypt", "noninterference/crypt", &[], Some((0, 0)), Some(0)),
    row("moldyn", "noninterference/moldyn", &[], Some((0, 0)), Some(0)),
    row("lufact", "noninterference/lufact", &[], Some((0, 0)), Some(0)),
    row("raytracer", "ndseq/raytracer", &[], Some((1, 1)), None),
    row("raytracer fixed", "ndseq/raytracer", &["-DFIXED"], None, Some(0)),
    row("montecarlo", "ndseq/montecarlo", &[], Some((2, 0)), Some(0)),
    row("pi", "ndseq/pi", &[], Some((0, 0)), Some(0)),
    row("keysearch", "ndseq/keysearch", &[], Some((0, 0)), Some(0)),
    row("mandelbrot", "determinism/mandelbrot", &[], Some((0, 0)), Some(0)),
    starred(row("phylogeny", "ndseq/phylogeny", &[], Some((6, 6)), None)),
    starred(row("phylogeny fixed", "ndseq/phylogeny", &["-DFIXED"], None, Some(1))),
    starred(row("stack", "ndseq/stack", &[], Some((5, 0)), Some(2))),
    starred(row("queue", "ndseq/queue", &[], Some((9, 0)), Some(2))),
    starred(row("meshrefine", "ndseq/meshrefine", &[], Some((30, 0)), Some(2))),
    row("sunflow", "ndseq/sunflow", &[], Some((28, 3)), None),
    row("xalan", "ndseq/xalan", &[], Some((6, 2)), None),
];

pub(crate) fn run(args: &[&str]) -> ExitCode {
    if let ["growth", rest @ ..] = args {
        growth(rest.first().and_then(|n| n.parse().ok()).unwrap_or(24));
        return ExitCode::SUCCESS;
    }
    let all = || {
        let place = Place::new("ndseq")?;
        if let ["recording", names @ ..] = args {
            return recording::run(&place, names);
        }
        tables(&place, args)?;
        if args.is_empty() {
            println!();
            recording::run(&place, &[])?;
            growth(24);
        }
        Ok(())
    };
    exit_code(all())
}

fn tables(place: &Place, names: &[&str]) -> Result<(), String> {
    println!(
        "{:16} {:>9} {:>11} {:>7} {:>8} {:>8} {:>10} {:>10} | {:>6} {:>6} {:>8}",
        "program",
        "nodes",
        "irrelevant",
        "strict",
        "ours",
        "explained",
        "thesis",
        "",
        "stars",
        "thesis",
        "seconds"
    );
    for program in wanted(&PROGRAMS, |p| p.name, names)? {
        // What one program does not say, the others do.
        match line(place, program) {
            Ok(line) => println!("{line}"),
            Err(problem) => println!("{:16} {}", program.name, problem.trim()),
        }
    }
    Ok(())
}

/// The line of one program.
fn line(place: &Place, program: &Program) -> Result<String, String> {
    let checked = built(place, program, true)?;
    let options = ["test", "--ndseq", "--format", "json", "--schedules", SCHEDULES, "--time", MOST];
    let report = answer(place, &options, &checked, &[])?;
    let counts = &report["stats"]["parallelism"];
    let number = |name: &str| counts[name].as_u64().unwrap_or(0);
    let real = report["findings"].as_array().is_some_and(|f| !f.is_empty());
    let thesis = program.warnings.map_or(String::new(), |(a, b)| format!("{a}/{b}"));
    let plain = built(place, program, false)?;
    let options = ["infer", "ndseq", "--format", "json", "--schedules", TO_INFER, "--time", MOST];
    let inferred = answer(place, &options, &plain, &[])?;
    let stars = match (inferred["satisfiable"].as_bool(), inferred["stars"].as_array()) {
        (Some(true), Some(stars)) => stars.len().to_string(),
        _ => "-".to_owned(),
    };
    Ok(format!(
        "{:16} {:>9} {:>11} {:>7} {:>8} {:>8} {:>10} {:>10} | {:>6} {:>6} {:>8.2}",
        program.name,
        number("nodes"),
        number("irrelevant"),
        number("strict_circles"),
        number("circles"),
        number("twins"),
        thesis,
        if real { "a bug" } else { "" },
        stars,
        program.stars.map_or("-".to_owned(), |n| n.to_string()),
        inferred["seconds"].as_f64().unwrap_or(0.0),
    ))
}

fn built(place: &Place, program: &Program, with_stars: bool) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(program.source).with_extension("c");
    let stars = with_stars && program.starred;
    let output = PathBuf::from(format!(
        "{}{}",
        program.name.replace(' ', "-"),
        if stars { "-stars" } else { "" }
    ));
    let mut command = Command::new(&place.selvedge);
    command.args(["cc", "--selvedge-flow", "-g", "-DTINY"]).args(program.options);
    command.args(stars.then_some("-DSTAR")).arg(source);
    succeed(command.args(["-lm", "-lpthread", "-o"]).arg(&output))?;
    Ok(output)
}

fn answer(
    place: &Place,
    options: &[&str],
    program: &Path,
    env: &[(&str, &str)],
) -> Result<Value, String> {
    let output = Command::new(&place.selvedge)
        .args(options)
        .envs(env.iter().copied())
        .arg("--")
        .arg(Path::new(".").join(program))
        .output()
        .map_err(|e| e.to_string())?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().find_map(|line| line.strip_prefix("error: "));
        let of_program = format!("{}: ", program.display());
        // Where the program lies does not matter.
        why.map_or(&*said, |why| why.split(&of_program).last().unwrap_or(why)).to_owned()
    })
}

/// An execution of `count` events: four tasks work in memory of their own, compute and branch, update what they share
/// under a lock in an attempt that may fail, and count without one what nobody reads. Statements are marked.
fn execution(count: usize) -> (Vec<Event>, Symbols) {
    const TASKS: u32 = 4;
    let mut symbols = Symbols::default();
    let mut region = |lines: &str| {
        let region =
            Region { kind: RegionKind::Statement, name: format!("p.c:{lines} work").into() };
        RegionId(symbols.regions.intern(region))
    };
    let (own, statistics, update) = (region("3-5"), region("7-7"), region("9-12"));
    let mut events = Vec::with_capacity(count + 64);
    let mut emit = |thread: u32, op: Op| {
        events.push(Event { thread: ThreadId(thread), site: SiteId(thread), op });
    };
    for task in 1..=TASKS {
        emit(0, Op::Fork(ThreadId(task)));
    }
    let word = |addr: u64| Access { addr, len: 8 };
    let (enter, exit) = (|r| Op::RegionEnter(r, RegionKind::Statement), Op::RegionExit);
    let mut round = 0;
    let mut made = TASKS as usize;
    while made < count {
        let task = 1 + (round % u64::from(TASKS)) as u32;
        let mine = 0x1000_0000 * u64::from(task) + round % 4096 * 8;
        let mut steps: Vec<Op> = vec![enter(own)];
        for i in 0..6 {
            steps.push(Op::Read(word(mine + i * 8)));
            steps.push(Op::Flow(Flow::Take(LocalId(1))));
            steps.push(Op::Flow(Flow::Use(LocalId(1))));
            steps.push(Op::Flow(Flow::Define(LocalId(2))));
            steps.push(Op::Flow(Flow::Use(LocalId(2))));
            steps.push(Op::Flow(Flow::Branch));
            steps.push(Op::Flow(Flow::Use(LocalId(2))));
            steps.push(Op::Write(word(mine + i * 8)));
        }
        steps.extend([exit(own), enter(statistics)]);
        steps.extend([
            Op::Read(word(0x100)),
            Op::Flow(Flow::Take(LocalId(3))),
            Op::Flow(Flow::Use(LocalId(3))),
            Op::Write(word(0x100)),
            exit(statistics),
        ]);
        // Each task is done with what it shares before the next begins, except for a look that decides nothing outside.
        if round.is_multiple_of(64) {
            let at = 0x200 + u64::from(task) * 8;
            steps.extend([
                enter(update),
                Op::Read(word(0x200)),
                Op::Flow(Flow::Take(LocalId(4))),
                Op::Flow(Flow::Use(LocalId(4))),
                Op::Flow(Flow::Branch),
                Op::Acquire(LockId(0), Mode::Exclusive),
                Op::Write(word(at)),
                Op::Release(LockId(0), Mode::Exclusive),
                exit(update),
            ]);
        }
        made += steps.len();
        steps.into_iter().for_each(|op| emit(task, op));
        round += 1;
    }
    for task in 1..=TASKS {
        emit(0, Op::Join(ThreadId(task)));
    }
    for task in 1..=u64::from(TASKS) {
        emit(0, Op::Focus(Range { start: 0x1000_0000 * task, len: 4096 * 8 }));
        emit(0, Op::Focus(Range { start: 0x200 + task * 8, len: 8 }));
    }
    (events, symbols)
}

fn growth(most: usize) {
    println!(
        "\nlength of an execution: one FastTrack pass, the check, and inference over the same events (processor time)"
    );
    println!(
        "{:>9} {:>12} {:>9} {:>9} {:>7} {:>9} {:>12}",
        "events", "bytes/event", "races s", "check s", "ratio", "infer s", "peak MiB"
    );
    let mut measured = Vec::new();
    for millions in [1, 2, 4, 8, 16, 24].into_iter().filter(|m| *m <= most) {
        let (events, symbols) = execution(millions * 1_000_000);
        let start = processor_seconds();
        let (mut races, mut findings) = (FastTrack::new(), Findings::default());
        races.on_events(&events, &mut findings);
        races.finish(&mut findings);
        let base = processor_seconds() - start;
        let start = processor_seconds();
        let mut recorder = Recorder::default();
        events.iter().for_each(|e| recorder.on_event(e));
        let recorded = recorder.finish();
        let bytes = recorded.bytes() as f64 / events.len() as f64;
        let found = check(&recorded);
        let checked = processor_seconds() - start;
        assert!(found.conforms(), "the made-up execution conforms");
        let start = processor_seconds();
        let mut study = Study::default();
        study.add(recorded, &symbols).expect("statements are statements");
        let stars = study.infer(&[]).stars.map_or(0, |s| s.len());
        let inferred = processor_seconds() - start;
        assert_eq!(stars, 0, "none are needed");
        println!(
            "{:>9} {bytes:>12.1} {base:>9.2} {checked:>9.2} {:>7.1} {inferred:>9.2} {:>12.0}",
            events.len(),
            checked / base,
            peak_memory_mib()
        );
        measured.push((events.len() as f64, checked));
    }
    println!("cost of the check grows with the length to the power of {:.2}", slope(&measured));
}

/// The slope of a line through the logarithms, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.max(1e-9).ln())).collect();
    let mean = |f: fn(&(f64, f64)) -> f64| logs.iter().map(f).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let top: f64 = logs.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    let bottom: f64 = logs.iter().map(|p| (p.0 - mx).powi(2)).sum();
    top / bottom
}
