//! Specifications: what checking an execution costs against many earlier ones, in memory and in a store, and what
//! inference costs over many executions.
//!
//! All figures are ratios that would be the factor of the sizes, or its square, if executions were compared in pairs.
//! The store is measured by the processor time of `selvedge run` on a program that executes a block 5,000 times.

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use selvedge_model::ThreadId;
use selvedge_specs::determin::{Row, Table, Weakest, infer};
use selvedge_specs::{
    BlockExecution, ExecutionId, Index, Memory, NoCallbacks, Predicate, Recorder, Said, ThreadName,
    Value, Word,
};

use crate::measure::{Runs, once};
use crate::place::{Place, exit_code, source};

/// The most that a check may cost against 1,000,000 executions, and inference over 10,000: times that of 1,000.
const CHECK: f64 = 1.5;
const INFERENCE: f64 = 20.0;

pub(crate) fn run(_: &[&str]) -> ExitCode {
    exit_code(measure())
}

/// Measures all, several times, and prints the ratios of the best times.
fn measure() -> Result<(), String> {
    let (few, many) = (index(1_000), index(1_000_000));
    let best = |index: &mut Index<Memory<u32>>, from: u64| {
        (0..5).map(|round| checks(index, from + round * 1_000)).min().unwrap_or_default()
    };
    let (mut few, mut many) = (few, many);
    let (small, large) = (best(&mut few, 10_000_000), best(&mut many, 10_000_000));
    let in_memory = large.as_secs_f64() / small.as_secs_f64();
    println!(
        "states in memory: a check against 1,000,000 executions costs {in_memory:.2} times one against 1,000 \
         ({large:?} and {small:?} for 1,000 checks)"
    );
    let (small, large) = stored()?;
    let in_store = large / small;
    println!(
        "states in the store: a check against 1,000,000 executions costs {in_store:.2} times one against 1,000 \
         ({large:.2} s and {small:.2} s for 5,000 checks, with the program)"
    );
    let (few, many) = (table(1_000), table(10_000));
    let time = |table: &Table| (0..3).map(|_| inference(table)).min().unwrap_or_default();
    let (small, large) = (time(&few), time(&many));
    let inferred = large.as_secs_f64() / small.as_secs_f64();
    println!(
        "infer: 10,000 executions of 150 locations cost {inferred:.2} times 1,000 ({large:?} and {small:?})"
    );
    if in_memory.max(in_store) > CHECK || inferred > INFERENCE {
        return Err(format!("at most {CHECK} for a check, and {INFERENCE} for inference"));
    }
    Ok(())
}

/// The processor time of a run whose blocks are checked against 1,000 stored executions, and against 1,000,000.
fn stored() -> Result<(f64, f64), String> {
    const ROUNDS: usize = 5;
    let place = Place::new("specs")?;
    let program = place.ours(&source("determinism", "many"), "gcc", &["-O1"])?;
    let program = program.to_string_lossy();
    let check = || once(&place.selvedge, &["run", "--", &program], &[0]);
    check()?;
    let store = Path::new(".selvedge/store.db");
    let sizes = [1_000, 1_000_000];
    for size in sizes {
        std::fs::copy(store, kept(size)).map_err(|e| e.to_string())?;
        fill(Path::new(&kept(size)), size).map_err(|e| e.to_string())?;
    }
    let mut runs = [Runs::default(), Runs::default()];
    for _ in 0..ROUNDS {
        for (runs, size) in runs.iter_mut().zip(sizes) {
            std::fs::copy(kept(size), store).map_err(|e| e.to_string())?;
            runs.add(check()?);
        }
    }
    let [few, many] = runs;
    Ok((few.best(), many.best()))
}

/// A store with that many executions.
fn kept(size: u64) -> String {
    format!("{size}.db")
}

/// Makes a store one of `size` executions, by leaving some out or adding more with what they handed over.
fn fill(store: &Path, size: u64) -> rusqlite::Result<()> {
    let store = rusqlite::Connection::open(store)?;
    store.pragma_update(None, "journal_mode", "delete")?;
    store.execute("DELETE FROM executions WHERE id > ?", [size as i64])?;
    let there: i64 = store.query_row("SELECT count(*) FROM executions", [], |row| row.get(0))?;
    store.execute(
        "WITH RECURSIVE times(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM times WHERE n < ?1)
         INSERT INTO executions (content, build, run, at, schedule)
         SELECT content, build, run, at, schedule FROM times, executions WHERE ?1 > 0",
        [size as i64 / there - 1],
    )?;
    Ok(())
}

/// An execution with one of a thousand inputs, which ensures a number exactly and another by `within`.
fn execution(number: u64) -> BlockExecution<u32> {
    let mut recorder = Recorder::new();
    let input = number % 1_000;
    recorder.begin(ThreadId(0), "solve", 0);
    let near = input as f64 + (number % 97) as f64 * 1e-14;
    for (word, name, predicate, value) in [
        (Word::Assume, "n", Predicate::Exact, Value::from(input)),
        (Word::Ensure, "steps", Predicate::Exact, Value::from(input * 3)),
        (Word::Ensure, "sum", Predicate::Within(1e-9), Value::from(near)),
    ] {
        let said = Said { word, name, predicate, value };
        recorder.call(ThreadId(0), ThreadName(0), said, 1).expect("the block is open");
    }
    recorder.end(ThreadId(0), 2).expect("the block is open")
}

fn index(executions: u64) -> Index<Memory<u32>> {
    let mut index = Index::new(Memory::default());
    for number in 0..executions {
        add(&mut index, number);
    }
    index
}

fn add(index: &mut Index<Memory<u32>>, number: u64) {
    let checked = index.add(ExecutionId(number), &execution(number), "", &[], &mut NoCallbacks);
    assert!(checked.expect("predicates fit").violation.is_none(), "all executions agree");
}

/// The time of a thousand checks.
fn checks(index: &mut Index<Memory<u32>>, from: u64) -> Duration {
    let begun = Instant::now();
    (from..from + 1_000).for_each(|number| add(index, number));
    begun.elapsed()
}

/// Executions, ten of each input, of a block with 75 locations before and 75 after, of which many are constants.
fn table(executions: u64) -> Table {
    let rows = (0..executions).map(|number| {
        let input = number / 10;
        let before = |l: u64| match l {
            0..5 => Value::from(input >> l & 7),
            5..10 => Value::from(input * 31 % (l + 2)),
            10 => Value::from(input),
            _ => Value::from(l),
        };
        let after = |l: u64| match l {
            0..10 => Value::from((input * l) as f64 + 0.5),
            10 => Value::from(number),
            _ => Value::from(l),
        };
        Row {
            block: "block".into(),
            pre: (0..75).map(|l| (format!("x{l}").into(), before(l))).collect(),
            post: (0..75).map(|l| (format!("y{l}").into(), after(l))).collect(),
        }
    });
    let mut rows = rows;
    let mut table = Table::new(rows.next().expect("there are executions"));
    rows.for_each(|row| table.push(row).expect("all rows have the same names"));
    table
}

fn inference(table: &Table) -> Duration {
    let begun = Instant::now();
    black_box(infer(table, Weakest::Occurring).expect("every input was run twice"));
    begun.elapsed()
}
