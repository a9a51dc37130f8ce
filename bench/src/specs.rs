//! Specifications: what checking an execution costs against many stored ones, and what inference costs over many
//! executions.
//!
//! Both figures are ratios that would be the factor of the sizes, or its square, if executions were compared in pairs.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use selvedge_model::ThreadId;
use selvedge_specs::determin::{Row, Table, Weakest, infer};
use selvedge_specs::{
    BlockExecution, ExecutionId, Index, Memory, NoCallbacks, Predicate, Recorder, Said, ThreadName,
    Value, Word,
};

/// Measures both, three times, and prints the ratio of the best times.
pub(crate) fn run(_: &[&str]) -> ExitCode {
    let (few, many) = (index(1_000), index(1_000_000));
    let best = |index: &mut Index<Memory<u32>>, from: u64| {
        (0..5).map(|round| checks(index, from + round * 1_000)).min().unwrap_or_default()
    };
    let (mut few, mut many) = (few, many);
    let (small, large) = (best(&mut few, 10_000_000), best(&mut many, 10_000_000));
    println!(
        "states: a check against 1,000,000 executions costs {:.2} times one against 1,000 ({large:?} and {small:?})",
        large.as_secs_f64() / small.as_secs_f64()
    );
    let (few, many) = (table(1_000), table(10_000));
    let time = |table: &Table| (0..3).map(|_| inference(table)).min().unwrap_or_default();
    let (small, large) = (time(&few), time(&many));
    println!(
        "infer: 10,000 executions of 150 locations cost {:.2} times 1,000 ({large:?} and {small:?})",
        large.as_secs_f64() / small.as_secs_f64()
    );
    ExitCode::SUCCESS
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
