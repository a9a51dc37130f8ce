//! Histories: what remembering configurations saves, and the same histories by `todc-utils`.
//!
//! Ours decides histories of every model; `todc-utils` has a register, so the comparison with it is about reads and writes.
//! Both are exact, and must agree. A search without memory is given up after [`MOST`] configurations; its time is then a
//! lower bound. Each history is measured by the best of [`ROUNDS`] turns.

#[path = "../../../../crates/specs/tests/common/histories.rs"]
mod random;

use std::time::{Duration, Instant};

use random::{Choices, MODELS, linearizable};

use selvedge_specs::Value;
use selvedge_specs::history::{History, Limit, Part, Record, Spent, Verdict};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History as Theirs};
use todc_utils::specifications::register::{RegisterOperation, RegisterSpecification};

const ROUNDS: usize = 3;
/// Turns of the comparison of many keys with few, which takes little time.
const KEY_ROUNDS: usize = 20;
/// Configurations after which a search is given up.
const MOST: u64 = 3_000_000;
const PROCESSES: usize = 8;

/// A verdict, if there is one, and the time that it took.
type Decided = (Option<bool>, Duration);

/// Gives up after [`MOST`] configurations, with memory or without.
struct Bounded {
    remembers: bool,
}

impl Limit for Bounded {
    fn go_on(&mut self, spent: Spent) -> bool {
        spent.tried < MOST
    }

    fn remembers(&self) -> bool {
        self.remembers
    }
}

/// A call of a register.
#[derive(Clone, Copy)]
struct Call {
    process: usize,
    write: Option<u32>,
    read: u32,
    call: i64,
    /// When it has its effect.
    effect: i64,
    returned: i64,
}

/// A linearizable history of a register with few values: each call has its effect between call and return.
fn register(count: usize, seed: u64) -> Vec<Call> {
    let mut choices = Choices(seed * 2 + 1);
    let mut open: Vec<Option<(Call, bool)>> = vec![None; PROCESSES];
    let (mut done, mut begun, mut value) = (Vec::new(), 0, 0);
    for clock in 0.. {
        let process = choices.below(PROCESSES);
        match &mut open[process] {
            None if begun < count => {
                let write = (choices.below(2) == 0).then(|| choices.below(5) as u32);
                let call = Call { process, write, read: 0, call: clock, effect: 0, returned: 0 };
                open[process] = Some((call, false));
                begun += 1;
            }
            None => {
                if open.iter().all(Option::is_none) {
                    break;
                }
            }
            Some((call, effect)) if !*effect => {
                value = call.write.unwrap_or(value);
                (call.read, call.effect, *effect) = (value, clock, true);
            }
            Some((call, _)) => {
                done.push(Call { returned: clock, ..*call });
                open[process] = None;
            }
        }
    }
    done
}

/// What nobody writes.
const NEVER: u32 = 9;

/// The same history with the result of one read changed to what it cannot be.
fn changed(mut history: Vec<Call>, seed: u64) -> Vec<Call> {
    let mut choices = Choices(seed);
    let reads: Vec<usize> = (0..history.len()).filter(|&i| history[i].write.is_none()).collect();
    let at = reads[reads.len() / 2 + choices.below(reads.len() / 2)];
    history[at].read = NEVER;
    history
}

fn records(history: &[Call]) -> Vec<Record> {
    let record = |c: &Call| Record {
        process: Value::Int(c.process as i128),
        op: if c.write.is_some() { "write" } else { "read" }.into(),
        arg: c.write.map_or(Value::None, |v| Value::Int(v.into())),
        key: None,
        ret: if c.write.is_some() { Value::None } else { Value::Int(c.read.into()) },
        call: c.call,
        returned: Some(c.returned),
    };
    history.iter().map(record).collect()
}

fn actions(history: &[Call]) -> Theirs<RegisterOperation<u32>> {
    let mut actions: Vec<(i64, usize, Action<RegisterOperation<u32>>)> = Vec::new();
    for c in history {
        let (called, returned) = match c.write {
            Some(value) => (RegisterOperation::Write(value), RegisterOperation::Write(value)),
            None => (RegisterOperation::Read(None), RegisterOperation::Read(Some(c.read))),
        };
        actions.push((c.call, c.process, Action::Call(called)));
        actions.push((c.returned, c.process, Action::Response(returned)));
    }
    actions.sort_by_key(|(time, ..)| *time);
    Theirs::from_actions(
        actions.into_iter().map(|(_, process, action)| (process, action)).collect(),
    )
}

/// The verdict and the time of ours.
fn ours(model: &str, initial: Option<&Value>, records: &[Record], remembers: bool) -> Decided {
    let model = model.parse().expect("a model");
    let history = History::new(model, initial, records).expect("well-formed");
    let begun = Instant::now();
    let parts = history.check(&mut Bounded { remembers });
    let time = begun.elapsed();
    let all = |is: fn(&Verdict) -> bool| parts.iter().all(|part| is(&part.verdict));
    let verdict = if parts.iter().any(|p| matches!(p.verdict, Verdict::NotLinearizable(_))) {
        Some(false)
    } else {
        all(|verdict| matches!(verdict, Verdict::Linearizable(_))).then_some(true)
    };
    (verdict, time)
}

fn theirs(history: &[Call]) -> Decided {
    let history = actions(history);
    let begun = Instant::now();
    let verdict = WGLChecker::<RegisterSpecification<u32>>::is_linearizable(history);
    (Some(verdict), begun.elapsed())
}

fn best<T>(mut measure: impl FnMut() -> (T, Duration)) -> (T, Duration) {
    let mut best = measure();
    for _ in 1..ROUNDS {
        let again = measure();
        if again.1 < best.1 {
            best = again;
        }
    }
    best
}

/// Prints a line, and returns what is not as it should be.
fn line(what: &str, of: Decided, without: Decided, other: Option<Decided>) -> Option<String> {
    let ms = |d: Duration| format!("{:.3}", d.as_secs_f64() * 1e3);
    let bound = if without.0.is_none() { "> " } else { "" };
    println!(
        "{what:44} {:>9} {:>15} {:>11}   {}",
        ms(of.1),
        format!("{bound}{}", ms(without.1)),
        other.map_or("-".to_owned(), |(_, time)| ms(time)),
        match of.0 {
            Some(true) => "linearizable",
            Some(false) => "not linearizable",
            None => "not decided",
        }
    );
    let agrees = |(verdict, _): Decided| verdict.is_none_or(|verdict| of.0 == Some(verdict));
    let right = of.0.is_some() && agrees(without) && other.is_none_or(agrees);
    (!right).then(|| format!("{what}: not decided, or the verdicts differ"))
}

/// Prints the comparison and returns what is not as it should be.
pub(super) fn compare() -> Vec<String> {
    println!(
        "\nhistories by {PROCESSES} processes, milliseconds (> given up after {MOST} configurations)"
    );
    println!("{:44} {:>9} {:>15} {:>11}", "", "ours", "without memory", "todc-utils");
    let mut wrong = Vec::new();
    for (count, is_changed) in [(100, false), (100, true), (1_000, false), (1_000, true)] {
        let history = register(count, count as u64);
        let history = if is_changed { changed(history, count as u64) } else { history };
        let (records, initial) = (records(&history), Value::Int(0));
        let mine = |remembers| best(|| ours("register", Some(&initial), &records, remembers));
        let what =
            format!("read and write, {count}{}", if is_changed { ", one changed" } else { "" });
        let other = best(|| theirs(&history));
        wrong.extend(line(&what, mine(true), mine(false), Some(other)));
        if other.0 == Some(is_changed) {
            wrong.push(format!("{what}: another verdict"));
        }
    }
    for model in MODELS {
        let mut ops = linearizable(model, 1_000, PROCESSES, true, 1);
        for what in ["", ", one changed"] {
            let records: Vec<Record> = ops.iter().map(|op| op.record(model)).collect();
            let mine = |remembers| best(|| ours(model, None, &records, remembers));
            wrong.extend(line(&format!("{model}, 1000{what}"), mine(true), mine(false), None));
            if model == "mutex" {
                break; // Its operations return nothing.
            }
            random::change(&mut ops, &mut random::Choices(1));
        }
    }
    let (mut few, mut many) = (Duration::MAX, Duration::MAX);
    for _ in 0..KEY_ROUNDS {
        few = few.min(partitioned(10));
        many = many.min(partitioned(100));
    }
    println!(
        "a map of 100 keys, {PER_KEY} operations each: {:.2} times the time of 10 keys (keys are checked apart)",
        many.as_secs_f64() / few.as_secs_f64()
    );
    wrong
}

/// Operations on each key of a map.
const PER_KEY: usize = 100;

/// The time to check a map in which each key has a register's history.
fn partitioned(keys: usize) -> Duration {
    let mut all = Vec::new();
    for key in 0..keys {
        let history = register(PER_KEY, key as u64);
        // Each part has processes of its own: one process calls one operation at a time.
        all.extend(map_calls(&history, key));
    }
    let model = "map".parse().expect("a model");
    let history = History::new(model, None, &all).expect("well-formed");
    let begun = Instant::now();
    let parts = history.check(&mut Bounded { remembers: true });
    let time = begun.elapsed();
    let holds = |part: &Part| matches!(part.verdict, Verdict::Linearizable(_));
    assert!(parts.len() == keys && parts.iter().all(holds), "every key has an order");
    time
}

/// A register's reads and writes as those of a key. Both return what was there before, in the order of their effects.
fn map_calls(history: &[Call], key: usize) -> Vec<Record> {
    let mut before = Value::None;
    let mut ordered: Vec<&Call> = history.iter().collect();
    ordered.sort_by_key(|c| c.effect);
    let record = |c: &Call| {
        let now = c.write.map(|v| Value::Int(v.into()));
        let ret = before.clone();
        if let Some(now) = &now {
            before = now.clone();
        }
        Record {
            process: Value::Int((key * PROCESSES + c.process) as i128),
            op: if c.write.is_some() { "put" } else { "get" }.into(),
            arg: now.unwrap_or(Value::None),
            key: Some(Value::Int(key as i128)),
            ret,
            call: c.call,
            returned: Some(c.returned),
        }
    };
    ordered.into_iter().map(record).collect()
}
