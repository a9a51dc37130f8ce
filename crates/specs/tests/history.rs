//! Histories against brute force, and long ones of every model.

#[path = "common/histories.rs"]
mod histories;

use histories::{Choices, MODELS, Op, change, initial, linearizable, naive};
use proptest::prelude::*;
use selvedge_specs::Value;
use selvedge_specs::history::{BadRecord, History, ModelKind, Part, Record, Spent, Verdict};
use serde_json::{Value as Json, json};

/// Whether there is an order, by trying all.
fn brute(model: &str, state: &Json, left: &[&Op]) -> bool {
    if left.iter().all(|op| op.returned.is_none()) {
        return true;
    }
    let deadline = left.iter().filter_map(|op| op.returned).min().unwrap();
    (0..left.len()).filter(|i| left[*i].call <= deadline).any(|i| {
        let mut rest = left.to_vec();
        let op = rest.remove(i);
        naive(model, state, op).is_some_and(|(state, ret)| {
            (op.returned.is_none() || ret == op.ret) && brute(model, &state, &rest)
        })
    })
}

fn checked(model: &str, ops: &[Op], limit: u64) -> Vec<Part> {
    let records: Vec<Record> = ops.iter().map(|op| op.record(model)).collect();
    let history = History::new(model.parse().unwrap(), None, &records).unwrap();
    history.check(&mut |spent: Spent| spent.tried < limit)
}

/// Whether every part has an order; fails if that was not decided.
fn verdict(parts: &[Part]) -> bool {
    parts.iter().all(|part| match part.verdict {
        Verdict::Linearizable(_) => true,
        Verdict::NotLinearizable(_) => false,
        Verdict::Undecided => panic!("not decided"),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn small_histories_agree_with_brute_force(
        model in prop::sample::select(MODELS.to_vec()),
        count in 1..9_usize,
        processes in 1..5_usize,
        distinct in any::<bool>(),
        changes in 0..3_usize,
        seed in any::<u64>(),
    ) {
        let mut ops = linearizable(model, count, processes, distinct, seed);
        (0..changes).for_each(|_| change(&mut ops, &mut Choices(seed)));
        let parts = checked(model, &ops, u64::MAX);
        let expected = brute(model, &initial(model), &ops.iter().collect::<Vec<_>>());
        prop_assert_eq!(verdict(&parts), expected);
        if changes == 0 {
            prop_assert!(expected);
        }
        for part in parts {
            if let Verdict::NotLinearizable(prefix) = part.verdict {
                let prefix = prefix.unwrap();
                longest_is_longest(model, &ops, part.key.as_ref(), prefix.next)?;
            }
        }
    }
}

/// What was known before the operation returned has an order, and what was known then has none.
fn longest_is_longest(
    model: &str,
    ops: &[Op],
    key: Option<&Value>,
    next: usize,
) -> Result<(), TestCaseError> {
    let of_part = |op: &&Op| match (model, key) {
        ("map", Some(Value::Text(key))) => op.key == **key,
        ("set", Some(Value::Int(n))) => op.arg == json!(*n as i64),
        _ => true,
    };
    let end = ops[next].returned.unwrap();
    for (inclusive, expected) in [(false, true), (true, false)] {
        let known = |time: i64| time < end || inclusive && time == end;
        let cut: Vec<Op> = ops
            .iter()
            .filter(of_part)
            .filter(|op| op.call <= end)
            .cloned()
            .map(|op| Op { returned: op.returned.filter(|time| known(*time)), ..op })
            .collect();
        prop_assert_eq!(brute(model, &initial(model), &cut.iter().collect::<Vec<_>>()), expected);
    }
    Ok(())
}

#[test]
fn a_thousand_operations_by_eight_processes_are_decided_for_every_model() {
    for model in MODELS {
        for (distinct, seed) in [(true, 1), (true, 2), (true, 3), (false, 4), (false, 5)] {
            // Which of many equal elements a stack gave back is more than the search can find out in so long a history.
            let distinct = distinct || model == "stack";
            let mut ops = linearizable(model, 1_000, 8, distinct, seed);
            assert!(verdict(&checked(model, &ops, 100_000)), "{model} {seed}");
            if model != "mutex" {
                change(&mut ops, &mut Choices(seed));
                let parts = checked(model, &ops, 100_000);
                // A changed result may be possible as well; it must be decided.
                let changed = verdict(&parts);
                assert!(
                    !(changed && distinct && matches!(model, "queue" | "stack")),
                    "{model} {seed}"
                );
            }
        }
    }
}

/// A write of the value that is already there may be what a later read needs.
#[test]
fn a_write_that_changes_nothing_yet_may_be_needed_later() {
    let lines = [
        r#"{"process":0,"op":"write","arg":1,"call":1,"return":2}"#,
        r#"{"process":1,"op":"write","arg":1,"call":3,"return":10}"#,
        r#"{"process":2,"op":"write","arg":2,"call":3,"return":9}"#,
        r#"{"process":0,"op":"read","ret":2,"call":3,"return":4}"#,
        r#"{"process":0,"op":"read","ret":1,"call":5,"return":6}"#,
    ];
    let records = lines.map(|line| serde_json::from_str(line).unwrap());
    let history = History::new(ModelKind::Register, None, &records).unwrap();
    assert!(verdict(&history.check(&mut |_: Spent| true)));
}

#[test]
fn keys_are_checked_apart() {
    let mut ops = linearizable("map", 200, 4, true, 7);
    let at = ops
        .iter()
        .position(|op| op.key == "k1" && op.name == "get" && op.returned.is_some())
        .unwrap();
    ops[at].ret = json!("never put");
    let parts = checked("map", &ops, u64::MAX);
    let keys: Vec<_> = parts.iter().map(|p| p.key.clone().unwrap()).collect();
    assert_eq!(keys, [Value::from("k0"), Value::from("k1")]);
    assert!(matches!(parts[0].verdict, Verdict::Linearizable(_)));
    let Verdict::NotLinearizable(Some(prefix)) = &parts[1].verdict else { panic!() };
    assert_eq!(prefix.next, at);
}

#[test]
fn the_limit_leaves_a_history_undecided() {
    let ops = linearizable("register", 5_000, 8, true, 1);
    let parts = checked("register", &ops, 0);
    assert!(parts.iter().any(|part| part.verdict == Verdict::Undecided));
}

#[test]
fn objects_may_begin_with_something() {
    let check = |model: ModelKind, initial: &str, line: &str| {
        let initial: Value = serde_json::from_str(initial).unwrap();
        let record: Record = serde_json::from_str(line).unwrap();
        verdict(
            &History::new(model, Some(&initial), &[record]).unwrap().check(&mut |_: Spent| true),
        )
    };
    for (model, initial, line) in [
        (ModelKind::Register, "5", r#"{"process":0,"op":"read","ret":5,"call":1,"return":2}"#),
        (ModelKind::Counter, "5", r#"{"process":0,"op":"get","ret":5,"call":1,"return":2}"#),
        (ModelKind::Queue, "[5,6]", r#"{"process":0,"op":"deq","ret":5,"call":1,"return":2}"#),
        (ModelKind::Stack, "[6,5]", r#"{"process":0,"op":"pop","ret":5,"call":1,"return":2}"#),
        (
            ModelKind::Set,
            "[5]",
            r#"{"process":0,"op":"add","arg":5,"ret":false,"call":1,"return":2}"#,
        ),
        (
            ModelKind::Map,
            r#"{"a":5}"#,
            r#"{"process":0,"op":"get","key":"a","ret":5,"call":1,"return":2}"#,
        ),
        (ModelKind::Mutex, "0", r#"{"process":0,"op":"unlock","call":1,"return":2}"#),
    ] {
        assert!(check(model, initial, line), "{model}");
        let without = History::new(model, None, &[serde_json::from_str(line).unwrap()]).unwrap();
        assert!(!verdict(&without.check(&mut |_: Spent| true)), "{model}");
    }
}

#[test]
fn malformed_histories_are_refused_with_their_place() {
    let good = r#"{"process":0,"op":"write","arg":1,"call":1,"return":3}"#;
    let refused = |model: ModelKind, line: &str| {
        let records = [good, line].map(|line| serde_json::from_str(line).unwrap());
        History::new(model, None, &records[usize::from(model != ModelKind::Register)..])
            .unwrap_err()
    };
    let backwards =
        refused(ModelKind::Register, r#"{"process":1,"op":"read","call":2,"return":1}"#);
    assert_eq!((backwards.place, backwards.why), (1, BadRecord::Backwards));
    let busy = refused(ModelKind::Register, r#"{"process":0,"op":"read","call":2,"return":4}"#);
    assert_eq!(busy.why, BadRecord::Busy { process: Value::from(0), previous: 1 });
    for (model, line) in [
        (ModelKind::Register, r#"{"process":1,"op":"pop","call":1,"return":2}"#),
        (ModelKind::Register, r#"{"process":1,"op":"cas","arg":1,"ret":true,"call":1,"return":2}"#),
        (
            ModelKind::Register,
            r#"{"process":1,"op":"cas","arg":[1,2],"ret":1,"call":1,"return":2}"#,
        ),
        (ModelKind::Register, r#"{"process":1,"op":"write","arg":1,"ret":1,"call":1,"return":2}"#),
        (ModelKind::Register, r#"{"process":1,"op":"read","ret":1,"call":1}"#),
        (ModelKind::Counter, r#"{"process":1,"op":"add","arg":"x","call":1,"return":2}"#),
        (ModelKind::Queue, r#"{"process":1,"op":"enq","call":1,"return":2}"#),
        (ModelKind::Set, r#"{"process":1,"op":"add","call":1,"ret":true,"return":2}"#),
        (ModelKind::Map, r#"{"process":1,"op":"get","call":1,"return":2}"#),
    ] {
        refused(model, line);
    }
    assert!(History::new(ModelKind::Queue, Some(&Value::from(1)), &[]).is_err());
}
