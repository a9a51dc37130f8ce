//! The index of executions against comparing every pair.

use proptest::prelude::*;
use selvedge_model::ThreadId;
use selvedge_specs::{
    BlockExecution, Comparison, ExecutionId, Index, Judge, Memory, Predicate, Recorder, Said,
    ThreadName, Value, Word, compare,
};

/// Takes numbers for the same that are less than 2 apart: not transitive.
struct Near;

impl Judge for Near {
    fn same(&mut self, _: &str, a: &Value, b: &Value) -> Result<bool, String> {
        Ok((a.number().unwrap() - b.number().unwrap()).abs() < 2.0)
    }
}

#[derive(Clone, Debug)]
struct Line {
    word: Word,
    name: &'static str,
    predicate: &'static str,
    value: Value,
}

fn execution(calls: &[Line]) -> BlockExecution<u32> {
    let mut recorder = Recorder::new();
    let main = ThreadId(0);
    recorder.begin(main, "block", 0);
    for (line, call) in calls.iter().enumerate() {
        let Line { word, name, predicate, value } = call.clone();
        let said = Said { word, name, predicate: predicate.parse::<Predicate>().unwrap(), value };
        recorder.call(main, ThreadName(0), said, line as u32).unwrap();
    }
    recorder.end(main, 99).unwrap()
}

/// Numbers some of which are near each other.
fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..6_i32).prop_map(|n| Value::F64(f64::from(n) * 0.4 - 1.0)),
        (-2..3_i32).prop_map(Value::from),
        (0..4_u32).prop_map(|n| Value::F32(f32::from_bits(1.0_f32.to_bits() + n))),
        Just(Value::F64(f64::NAN)),
        Just(Value::F64(f64::INFINITY)),
        (0..3_i64).prop_map(|n| Value::from((1_i64 << 60) + n)),
    ]
}

fn call(word: Word, name: &'static str) -> impl Strategy<Value = (Line, u8)> {
    let list = prop::collection::vec(0..3_i32, 0..4).prop_map(Value::from);
    let numbers = prop::collection::vec(number(), 1..3).prop_map(Value::List);
    let (predicate, value) = match name {
        "exact" => ("equal", (0..2_i32).prop_map(Value::from).boxed()),
        "within" => ("within:0.9", number().boxed()),
        "relative" => ("relative:0.5", number().boxed()),
        "loose" => ("relative:1.5", number().boxed()),
        "ulps" => (
            "ulps:2",
            (0..4_u32).prop_map(|n| Value::F32(f32::from_bits(1.0_f32.to_bits() + n))).boxed(),
        ),
        "set" => ("set", list.boxed()),
        "multiset" => ("multiset", list.boxed()),
        "numbers" => ("within:0.9", numbers.boxed()),
        _ => ("same:near", (0..4_i32).prop_map(Value::from).boxed()),
    };
    (value, 0..8_u8).prop_map(move |(value, lack)| (Line { word, name, predicate, value }, lack))
}

/// Executions with one exact and perhaps one other assumption, and with one `ensure` that is sometimes left out.
fn executions() -> impl Strategy<Value = Vec<BlockExecution<u32>>> {
    let names =
        ["exact", "within", "relative", "loose", "ulps", "set", "multiset", "numbers", "callback"];
    (prop::sample::select(names.to_vec()), prop::sample::select(names.to_vec())).prop_flat_map(
        |(assumed, ensured)| {
            let calls = (
                call(Word::Assume, "exact"),
                call(Word::Assume, assumed),
                call(Word::Ensure, ensured),
            );
            let one = calls.prop_map(|(exact, assumed, ensured)| {
                let mut calls = vec![exact.0, assumed.0];
                calls.extend((ensured.1 > 0).then_some(ensured.0));
                execution(&calls)
            });
            prop::collection::vec(one, 1..12)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn the_index_finds_a_difference_exactly_where_a_pair_differs(executions in executions()) {
        let mut index = Index::new(Memory::default());
        for (i, execution) in executions.iter().enumerate() {
            let checked = index.add(ExecutionId(i as u64), execution, "", &[], &mut Near).unwrap();
            let verdicts: Vec<_> =
                executions[..i].iter().map(|e| compare(e, execution, &mut Near).unwrap()).collect();
            let comparable = verdicts.iter().filter(|v| !matches!(v, Comparison::Incomparable(_))).count();
            prop_assert_eq!(checked.compared, comparable as u64);
            let differs = |v: &Comparison<u32>| matches!(v, Comparison::Differs { .. });
            prop_assert_eq!(checked.violation.is_some(), verdicts.iter().any(differs));
            if let Some(violation) = checked.violation {
                prop_assert!(differs(&verdicts[violation.earlier.0 as usize]));
            }
        }
    }
}

fn ensures(value: impl Into<Value>, predicate: &'static str) -> BlockExecution<u32> {
    execution(&[Line { word: Word::Ensure, name: "x", predicate, value: value.into() }])
}

#[test]
fn builds_are_compared_only_if_asked_for() {
    let mut index = Index::new(Memory::default());
    let mut add = |id, value: i32, build, also: &[&str]| {
        index.add(ExecutionId(id), &ensures(value, "equal"), build, also, &mut Near).unwrap()
    };
    assert_eq!(add(0, 1, "old", &[]).compared, 0);
    assert_eq!(add(1, 2, "new", &[]).compared, 0);
    let across = add(2, 2, "new", &["old"]);
    assert_eq!((across.compared, across.violation.unwrap().earlier), (2, ExecutionId(0)));
}

#[test]
fn executions_that_agree_are_not_kept() {
    let mut index = Index::new(Memory::default());
    for i in 0..10_000 {
        let value = 1.0 + f64::from(i % 100) * 1e-12;
        let checked = index
            .add(ExecutionId(i as u64), &ensures(value, "within:1e-9"), "", &[], &mut Near)
            .unwrap();
        assert!(checked.violation.is_none());
        assert_eq!(checked.compared, i as u64);
    }
    assert!(index.storage().witnesses() <= 100);
    let outlier =
        index.add(ExecutionId(10_000), &ensures(1.1, "within:1e-9"), "", &[], &mut Near).unwrap();
    assert_eq!(outlier.violation.unwrap().earlier, ExecutionId(0));
}

#[test]
fn a_predicate_that_cannot_judge_is_no_verdict_and_leaves_nothing() {
    let mut index = Index::new(Memory::default());
    assert!(index.add(ExecutionId(0), &ensures("text", "within:1"), "", &[], &mut Near).is_err());
    assert_eq!(
        index.add(ExecutionId(1), &ensures(1, "within:1"), "", &[], &mut Near).unwrap().compared,
        0
    );
}
