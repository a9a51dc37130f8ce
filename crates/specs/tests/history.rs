//! Histories against brute force, and long ones of every model.

use std::collections::BTreeMap;

use proptest::prelude::*;
use selvedge_specs::Value;
use selvedge_specs::history::{BadRecord, History, ModelKind, Part, Record, Spent, Verdict};
use serde_json::{Value as Json, json};

const MODELS: [&str; 7] = ["register", "counter", "queue", "stack", "set", "map", "mutex"];

/// An object by its definition: the state in JSON, and what an operation does to it. None if it cannot be done now.
fn naive(model: &str, state: &Json, op: &Op) -> Option<(Json, Json)> {
    let Op { name, arg, key, process, .. } = op;
    let mut items = state.as_array().cloned().unwrap_or_default();
    let mut entries = state.as_object().cloned().unwrap_or_default();
    let at = items.iter().position(|i| i == arg);
    let popped =
        |item: Option<Json>, rest: Vec<Json>| (Json::from(rest), item.unwrap_or(Json::Null));
    Some(match (model, name.as_str()) {
        ("register", "read") | ("counter", "get") => (state.clone(), state.clone()),
        ("register", "write") => (arg.clone(), Json::Null),
        ("register", "cas") if *state == arg[0] => (arg[1].clone(), json!(true)),
        ("register", "cas") => (state.clone(), json!(false)),
        ("counter", "add") => (json!(state.as_i64()? + arg.as_i64()?), Json::Null),
        ("queue", "enq") | ("stack", "push") => {
            items.push(arg.clone());
            (items.into(), Json::Null)
        }
        ("queue", "deq") => {
            let first = if items.is_empty() { None } else { Some(items.remove(0)) };
            popped(first, items)
        }
        ("stack", "pop") => {
            let last = items.pop();
            popped(last, items)
        }
        ("set", "add") => {
            if at.is_none() {
                items.push(arg.clone());
            }
            (items.into(), json!(at.is_none()))
        }
        ("set", "remove") => {
            at.map(|at| items.remove(at));
            (items.into(), json!(at.is_some()))
        }
        ("set", "contains") => (items.into(), json!(at.is_some())),
        ("map", "get") => (state.clone(), entries.get(key).cloned().unwrap_or(Json::Null)),
        ("map", "put") => {
            let before = entries.insert(key.clone(), arg.clone()).unwrap_or(Json::Null);
            (entries.into(), before)
        }
        ("map", "remove") => {
            let before = entries.remove(key).unwrap_or(Json::Null);
            (entries.into(), before)
        }
        ("mutex", "lock") if state.is_null() => (json!(process), Json::Null),
        ("mutex", "unlock") if *state == json!(process) => (Json::Null, Json::Null),
        _ => return None,
    })
}

fn initial(model: &str) -> Json {
    match model {
        "counter" => json!(0),
        "queue" | "stack" | "set" => json!([]),
        "map" => json!({}),
        _ => Json::Null,
    }
}

#[derive(Clone, Debug)]
struct Op {
    process: usize,
    name: String,
    arg: Json,
    key: String,
    ret: Json,
    call: i64,
    returned: Option<i64>,
}

impl Op {
    fn record(&self, model: &str) -> Record {
        let mut line = json!({"process": self.process, "op": self.name, "call": self.call});
        let mut add =
            |name: &str, value: Json| line.as_object_mut().unwrap().insert(name.to_owned(), value);
        if !self.arg.is_null() {
            add("arg", self.arg.clone());
        }
        if model == "map" {
            add("key", json!(self.key));
        }
        if let Some(returned) = self.returned {
            add("return", json!(returned));
            add("ret", self.ret.clone());
        }
        serde_json::from_value(line).unwrap()
    }
}

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

/// A stream of choices from a seed.
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

fn random_op(
    model: &str,
    process: usize,
    holds: bool,
    fresh: &mut i64,
    distinct: bool,
    choices: &mut Choices,
) -> Op {
    let small = choices.below(3);
    let value = if distinct {
        *fresh += 1;
        json!(*fresh)
    } else {
        json!(small)
    };
    let (name, arg) = match (model, choices.below(3)) {
        ("register", 0) => ("read", Json::Null),
        ("register", 1) => ("write", value),
        ("register", _) => ("cas", json!([choices.below(3), small])),
        ("counter", 0) => ("get", Json::Null),
        ("counter", _) => ("add", json!(small as i64 - 1)),
        ("queue", 0) => ("deq", Json::Null),
        ("queue", 1) if choices.below(2) == 0 => ("deq", Json::Null),
        ("queue", _) => ("enq", value),
        ("stack", 0) => ("pop", Json::Null),
        ("stack", 1) if choices.below(2) == 0 => ("pop", Json::Null),
        ("stack", _) => ("push", value),
        ("set", 0) => ("add", json!(small)),
        ("set", 1) => ("remove", json!(small)),
        ("set", _) => ("contains", json!(small)),
        ("map", 0) => ("get", Json::Null),
        ("map", 1) => ("put", value),
        ("map", _) => ("remove", Json::Null),
        (_, _) if holds => ("unlock", Json::Null),
        _ => ("lock", Json::Null),
    };
    let key = format!("k{}", choices.below(2));
    Op { process, name: name.to_owned(), arg, key, ret: Json::Null, call: 0, returned: None }
}

/// A linearizable history: each operation has its effect at some time between its call and its return. Operations
/// that are still open at the end are pending.
fn linearizable(model: &str, count: usize, processes: usize, distinct: bool, seed: u64) -> Vec<Op> {
    let mut choices = Choices(seed.wrapping_mul(2) + 1);
    let mut state = initial(model);
    let mut done: Vec<Op> = Vec::new();
    let mut open: BTreeMap<usize, (Op, bool)> = BTreeMap::new();
    let mut fresh = 0;
    let mut begun = 0;
    let mut clock = 0;
    while done.len() + open.len() < count || begun < count {
        clock += 1;
        let process = choices.below(processes);
        match open.get_mut(&process) {
            None if begun < count => {
                let holds = state == json!(process);
                let mut op = random_op(model, process, holds, &mut fresh, distinct, &mut choices);
                op.call = clock;
                open.insert(process, (op, false));
                begun += 1;
            }
            None => {}
            Some((op, effect)) if !*effect => {
                if let Some((next, ret)) = naive(model, &state, op) {
                    state = next;
                    op.ret = ret;
                    *effect = true;
                }
            }
            Some(_) => {
                let (mut op, _) = open.remove(&process).unwrap();
                op.returned = Some(clock);
                done.push(op);
            }
        }
    }
    done.extend(open.into_values().map(|(op, _)| op));
    done
}

/// Changes one result to that of another operation of the same name, or to another one.
fn change(ops: &mut [Op], choices: &mut Choices) {
    let results: Vec<usize> =
        (0..ops.len()).filter(|i| ops[*i].returned.is_some() && !ops[*i].ret.is_null()).collect();
    let Some(&at) = results.get(choices.below(results.len().max(1))) else { return };
    let others: Vec<Json> = results
        .iter()
        .filter(|i| ops[**i].name == ops[at].name && ops[**i].ret != ops[at].ret)
        .map(|i| ops[*i].ret.clone())
        .collect();
    ops[at].ret = match others.len() {
        0 if ops[at].ret.is_boolean() => json!(!ops[at].ret.as_bool().unwrap()),
        0 => json!(99),
        n => others[choices.below(n)].clone(),
    };
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
