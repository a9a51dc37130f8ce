//! Histories: what remembering configurations saves, and the same histories by `todc-utils`.
//!
//! Ours decides histories of every model; `todc-utils` has a register, so the comparison with it is about registers. Both
//! are exact, and must agree. A search without memory is given up after [`MOST`] configurations; its time is then a
//! lower bound. Each history is measured by the best of [`ROUNDS`] turns.

use std::time::{Duration, Instant};

use selvedge_specs::Value;
use selvedge_specs::history::{History, Limit, Part, Record, Spent, Verdict};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History as Theirs};
use todc_utils::specifications::register::{RegisterOperation, RegisterSpecification};

const ROUNDS: usize = 3;
/// Configurations after which a search is given up.
const MOST: u64 = 3_000_000;
const PROCESSES: usize = 8;

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

/// Random numbers by a linear congruence, the same in every run.
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
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

/// The same history with the result of one read changed.
fn changed(mut history: Vec<Call>, seed: u64) -> Vec<Call> {
    let mut choices = Choices(seed);
    let reads: Vec<usize> = (0..history.len()).filter(|&i| history[i].write.is_none()).collect();
    let at = reads[reads.len() / 2 + choices.below(reads.len() / 2)];
    history[at].read = (history[at].read + 1) % 5;
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
fn ours(history: &[Call], remembers: bool) -> (Option<bool>, Duration) {
    let initial = Value::Int(0);
    let model = "register".parse().expect("a model");
    let history = History::new(model, Some(&initial), &records(history)).expect("well-formed");
    let begun = Instant::now();
    let parts = history.check(&mut Bounded { remembers });
    let time = begun.elapsed();
    let verdict = match &parts[0].verdict {
        Verdict::Linearizable(_) => Some(true),
        Verdict::NotLinearizable(_) => Some(false),
        Verdict::Undecided => None,
    };
    (verdict, time)
}

fn theirs(history: &[Call]) -> (bool, Duration) {
    let history = actions(history);
    let begun = Instant::now();
    let verdict = WGLChecker::<RegisterSpecification<u32>>::is_linearizable(history);
    (verdict, begun.elapsed())
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

/// Prints the comparison and returns what is not as it should be.
pub(super) fn compare() -> Vec<String> {
    println!("\nhistories of a register by {PROCESSES} processes, milliseconds");
    println!("{:32} {:>9} {:>15} {:>11}", "", "ours", "without memory", "todc-utils");
    let mut wrong = Vec::new();
    for count in [100, 1_000] {
        for (what, linearizable) in [("linearizable", true), ("one result changed", false)] {
            let history = register(count, count as u64);
            let history = if linearizable { history } else { changed(history, count as u64) };
            let (verdict, time) = best(|| ours(&history, true));
            let (without, longer) = best(|| ours(&history, false));
            let (other, theirs) = best(|| theirs(&history));
            let ms = |d: Duration| format!("{:.3}", d.as_secs_f64() * 1e3);
            let bound = if without.is_none() { "> " } else { "" };
            println!(
                "{:32} {:>9} {:>15} {:>11}   {}",
                format!("{count} operations, {what}"),
                ms(time),
                format!("{bound}{}", ms(longer)),
                ms(theirs),
                if verdict == Some(true) { "linearizable" } else { "not linearizable" },
            );
            let agreed = verdict == Some(other) && without.is_none_or(|w| w == other);
            if !agreed || (linearizable && !other) {
                wrong.push(format!("{count} operations, {what}: the verdicts differ"));
            }
        }
    }
    let [few, many] = [10, 100].map(|keys| best(|| ((), partitioned(keys))).1);
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
