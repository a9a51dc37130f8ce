//! `cargo xtask bench trace`: the size of a binary trace and the time of passes over it.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::process::{Command, ExitCode};

use selvedge_analyses::Analysis;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_model::trace::Reader;
use selvedge_model::trace::binary::{BinaryReader, BinaryWriter};
use selvedge_model::{Findings, Symbols};

use crate::measure::{Times, alternate, peak_memory_mib};
use crate::synthetic;

const EVENTS: u64 = 20_000_000;
const ROUNDS: usize = 5;

/// With `memory FILE`, only a `races` pass, whose peak memory it prints: a process of its own, so that
/// nothing else counts. `record FILE EVENTS` and `count FILE` are for looking at passes one by one, as
/// under callgrind.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    match args {
        ["memory", file] => {
            races(Path::new(file));
            println!("{}", peak_memory_mib());
        }
        ["count", file] => println!("{}", count(Path::new(file))),
        ["record", file, n] => match n.parse() {
            Ok(n) => record(Path::new(file), n),
            Err(_) => return ExitCode::from(2),
        },
        [] => report(EVENTS),
        [n] => match n.parse() {
            Ok(n) => report(n),
            Err(_) => return ExitCode::from(2),
        },
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

fn report(events: u64) {
    let directory = std::env::temp_dir().join(format!("selvedge-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory can be made");
    let whole = directory.join("whole.svt");
    let quarter = directory.join("quarter.svt");
    record(&whole, events);
    record(&quarter, events / 4);
    let size = std::fs::metadata(&whole).expect("the trace is there").len();

    let [zstd, counting, racing] = alternate(
        ROUNDS,
        [
            ("zstd alone", Box::new(|| skim(&whole))),
            ("counting events", Box::new(|| assert_eq!(count(&whole), events))),
            ("races", Box::new(|| races(&whole))),
        ],
    );
    println!("{events} events of a synthetic program, {ROUNDS} alternating rounds, best of each\n");
    println!(
        "binary trace          {:>8.2} bytes per event ({:.1} MiB)",
        size as f64 / events as f64,
        size as f64 / 1048576.0
    );
    println!("\npass                     seconds   ns/event   to zstd   to counting   spread");
    let row = |name: &str, times: &Times| {
        let best = times.best().as_secs_f64();
        println!(
            "{name:<22} {best:>9.3} {:>10.1} {:>9.2} {:>13.2} {:>7.0}%",
            best * 1e9 / events as f64,
            best / zstd.best().as_secs_f64(),
            best / counting.best().as_secs_f64(),
            times.spread()
        );
    };
    row("zstd alone", &zstd);
    row("counting events", &counting);
    row("races", &racing);
    println!(
        "\npeak memory of a races pass: {:.1} MiB over {} events, {:.1} MiB over {events}",
        memory(&quarter),
        events / 4,
        memory(&whole)
    );
    let _ = std::fs::remove_dir_all(directory);
}

fn record(path: &Path, events: u64) {
    let symbols = Symbols::default();
    let file = BufWriter::new(File::create(path).expect("the trace can be created"));
    let mut writer = BinaryWriter::new(file).expect("the disk has room");
    synthetic::events(events, |e| writer.write(&e, &symbols).expect("the disk has room"));
    writer.finish(&symbols).expect("the disk has room");
}

fn open(path: &Path) -> BufReader<File> {
    BufReader::with_capacity(1 << 18, File::open(path).expect("the trace is there"))
}

fn skim(path: &Path) {
    let mut reader = BinaryReader::new(open(path)).expect("it is a trace");
    while reader.skim().expect("it is whole").is_some() {}
}

fn pass(path: &Path, mut each: impl FnMut(&[selvedge_model::Event])) {
    let mut reader = Reader::new(open(path)).expect("it is a trace");
    let mut batch = Vec::new();
    loop {
        reader.read(&mut batch).expect("it is whole");
        if batch.is_empty() {
            return;
        }
        each(&batch);
    }
}

fn count(path: &Path) -> u64 {
    let mut events = 0;
    pass(path, |batch| events += batch.len() as u64);
    events
}

fn races(path: &Path) {
    let mut analysis = FastTrack::new();
    let mut findings = Findings::default();
    pass(path, |batch| analysis.on_events(batch, &mut findings));
    assert!(findings.is_empty(), "the program has no races");
}

fn memory(path: &Path) -> f64 {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).args(["trace", "memory"]).arg(path).output();
    let output = output.expect("this program can be run").stdout;
    String::from_utf8_lossy(&output).trim().parse().expect("a number")
}
