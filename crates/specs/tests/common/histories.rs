//! Random histories of every model, linearizable by how they are made.
//!
//! The benchmark of histories takes them, too.

use std::collections::BTreeMap;

use selvedge_specs::history::Record;
use serde_json::{Value as Json, json};

pub(crate) const MODELS: [&str; 7] =
    ["register", "counter", "queue", "stack", "set", "map", "mutex"];

/// An object by its definition: the state in JSON, and what an operation does to it. None if it cannot be done now.
pub(crate) fn naive(model: &str, state: &Json, op: &Op) -> Option<(Json, Json)> {
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

pub(crate) fn initial(model: &str) -> Json {
    match model {
        "counter" => json!(0),
        "queue" | "stack" | "set" => json!([]),
        "map" => json!({}),
        _ => Json::Null,
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) process: usize,
    pub(crate) name: String,
    pub(crate) arg: Json,
    pub(crate) key: String,
    pub(crate) ret: Json,
    pub(crate) call: i64,
    pub(crate) returned: Option<i64>,
}

impl Op {
    pub(crate) fn record(&self, model: &str) -> Record {
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

/// A stream of choices from a seed.
pub(crate) struct Choices(pub(crate) u64);

impl Choices {
    pub(crate) fn below(&mut self, n: usize) -> usize {
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
pub(crate) fn linearizable(
    model: &str,
    count: usize,
    processes: usize,
    distinct: bool,
    seed: u64,
) -> Vec<Op> {
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
pub(crate) fn change(ops: &mut [Op], choices: &mut Choices) {
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
