//! `selvedge::linearizable` beside the crate `lincheck`, which runs random scenarios in loom: schedules and time until an
//! error has been found and its scenario made small, and schedules per second on a structure without one.
//!
//! Each measurement is a process of its own with a limit, because loom goes through all schedules of a scenario, which
//! may not end. Both take two threads of up to three operations, and up to three before and after.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Debug;
use std::panic::UnwindSafe;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lincheck::scenario::{Scenario, check_scenario_with_loom};
use lincheck::{ConcOp, ConcRet, ConcurrentSpec, Lincheck, SequentialSpec};
use proptest::prelude::{Arbitrary, BoxedStrategy, Strategy as _, any_with};
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use selvedge::linearizable::{Linearizable, check};

use super::structures::{Hint, ours, theirs};

/// What a measurement may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Runs of each measurement.
const SEEDS: u8 = 5;
/// Scenarios of a structure without an error.
const SCENARIOS: u64 = 100;
/// Operations of a thread, and before and after.
const OPS: usize = 3;

/// Executions: each makes a structure. Ours include the serial ones.
static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Operation {
    Insert,
    Remove,
    Contains,
    Size,
    Content,
    Poll,
    Sample,
    /// A tree and its cost.
    Evaluate(u32, u32),
    Tree,
}

#[derive(Clone, PartialEq, Debug)]
enum Ret {
    Done(bool),
    Number(u32),
    Value(Option<u32>),
    Values(Vec<u32>),
    Entries(Vec<(u32, u32)>),
}

impl Ret {
    fn size<T>(content: &[T]) -> Ret {
        Ret::Number(u32::try_from(content.len()).expect("few"))
    }
}

macro_rules! subject {
    ($name:ident, $ops:expr, $of:ident, $new:expr, |$it:ident, $op:ident| $apply:expr, $model:expr) => {
        mod $name {
            use super::*;

            pub(super) struct Ours(ours::$of);

            impl Linearizable for Ours {
                type Op = Operation;
                type Ret = Ret;

                fn new() -> Ours {
                    use ours::$of;
                    EXECUTIONS.fetch_add(1, Ordering::Relaxed);
                    Ours($new)
                }

                fn ops() -> Vec<Operation> {
                    $ops.to_vec()
                }

                fn apply(&self, $op: &Operation) -> Ret {
                    let $it = &self.0;
                    $apply
                }
            }

            #[derive(Clone, Copy, Debug)]
            pub(super) struct Called(Operation);

            impl Arbitrary for Called {
                type Parameters = ();
                type Strategy = BoxedStrategy<Called>;

                fn arbitrary_with((): ()) -> BoxedStrategy<Called> {
                    select($ops.to_vec()).prop_map(Called).boxed()
                }
            }

            pub(super) struct Theirs(theirs::$of);

            impl Default for Theirs {
                fn default() -> Theirs {
                    use theirs::$of;
                    EXECUTIONS.fetch_add(1, Ordering::Relaxed);
                    Theirs($new)
                }
            }

            impl ConcurrentSpec for Theirs {
                type Seq = Sequential;

                fn exec(&self, called: Called) -> Ret {
                    let ($it, $op) = (&self.0, &called.0);
                    $apply
                }
            }

            pub(super) struct Sequential(Box<dyn Model>);

            impl Default for Sequential {
                fn default() -> Sequential {
                    Sequential(Box::new($model))
                }
            }

            impl SequentialSpec for Sequential {
                type Op = Called;
                type Ret = Ret;

                fn exec(&mut self, called: Called) -> Ret {
                    self.0.apply(called.0)
                }
            }
        }
    };
}

/// What `lincheck` compares a structure with. Ours needs none: it compares with serial executions of the structure itself.
trait Model: Send + Sync {
    fn apply(&mut self, op: Operation) -> Ret;
}

/// A set in which one key is inserted and one is removed and looked for.
struct Set {
    keys: BTreeSet<u32>,
    inserts: u32,
    removes: u32,
    /// What its content is given as.
    content: fn(&[u32]) -> Ret,
}

impl Set {
    fn of_one() -> Set {
        Set { keys: BTreeSet::from([1]), inserts: 1, removes: 1, content: Ret::size }
    }

    fn of_two(content: fn(&[u32]) -> Ret) -> Set {
        Set { keys: BTreeSet::from([2, 4]), inserts: 5, removes: 2, content }
    }
}

impl Model for Set {
    fn apply(&mut self, op: Operation) -> Ret {
        match op {
            Operation::Insert => Ret::Done(self.keys.insert(self.inserts)),
            Operation::Remove => Ret::Done(self.keys.remove(&self.removes)),
            Operation::Contains => Ret::Done(self.keys.contains(&self.removes)),
            Operation::Size | Operation::Content => {
                (self.content)(&self.keys.iter().copied().collect::<Vec<_>>())
            }
            Operation::Poll | Operation::Sample | Operation::Evaluate(..) | Operation::Tree => {
                unreachable!("a set has no {op:?}")
            }
        }
    }
}

/// The queue that begins with 1 and 2.
struct Fifo(VecDeque<u32>);

impl Fifo {
    fn new() -> Fifo {
        Fifo(VecDeque::from([1, 2]))
    }
}

impl Model for Fifo {
    fn apply(&mut self, op: Operation) -> Ret {
        match op {
            Operation::Insert => {
                self.0.push_back(3);
                Ret::Done(true)
            }
            Operation::Remove => {
                let at = self.0.iter().position(|&v| v == 1);
                Ret::Done(at.map(|at| self.0.remove(at)).is_some())
            }
            Operation::Contains => Ret::Done(self.0.contains(&1)),
            Operation::Size => Ret::size(self.0.make_contiguous()),
            Operation::Content => Ret::Values(self.0.iter().copied().collect()),
            Operation::Poll => Ret::Value(self.0.pop_front()),
            Operation::Sample | Operation::Evaluate(..) | Operation::Tree => {
                unreachable!("a queue has no {op:?}")
            }
        }
    }
}

/// The points, one after the other.
struct OnePointAtATime(ours::Points);

impl Model for OnePointAtATime {
    fn apply(&mut self, _: Operation) -> Ret {
        Ret::Done(self.0.sample())
    }
}

/// The tree of least cost; of trees of the same cost the last one.
struct Least {
    tree: u32,
    cost: u32,
}

impl Model for Least {
    fn apply(&mut self, op: Operation) -> Ret {
        if let Operation::Evaluate(tree, cost) = op {
            if cost <= self.cost {
                *self = Least { tree, cost };
            }
            return Ret::Done(true);
        }
        Ret::Number(self.tree)
    }
}

/// A set of the number 1, which is right or has the error that two removes may both succeed.
macro_rules! set {
    ($name:ident, $is_wrong:literal) => {
        subject!(
            $name,
            [Operation::Insert, Operation::Remove, Operation::Contains],
            Sorted,
            Sorted::new(&[1], $is_wrong),
            |it, op| match op {
                Operation::Insert => Ret::Done(it.insert(1, 0)),
                Operation::Remove => Ret::Done(it.remove(1)),
                _ => Ret::Done(it.contains(1)),
            },
            Set::of_one()
        );
    };
}

set!(right_set, false);
set!(two_removes, true);

/// A sorted list whose operation that goes over all of it is not atomic.
macro_rules! sorted {
    ($name:ident, $content:expr, $model:expr) => {
        subject!(
            $name,
            [Operation::Insert, Operation::Remove, Operation::Content],
            Sorted,
            Sorted::new(&[2, 4], false),
            |it, op| match op {
                Operation::Insert => Ret::Done(it.insert(5, 50)),
                Operation::Remove => Ret::Done(it.remove(2)),
                _ => ($content)(it.entries()),
            },
            Set::of_two($model)
        );
    };
}

/// The value of a key: what the list begins with has its key, what is inserted ten times it.
fn with_value(key: u32) -> (u32, u32) {
    (key, if key == 5 { 50 } else { key })
}

sorted!(sorted_size, |entries: Vec<(u32, u32)>| Ret::size(&entries), Ret::size);
sorted!(sorted_entries, Ret::Entries, |keys| {
    Ret::Entries(keys.iter().map(|&key| with_value(key)).collect())
});
sorted!(
    sorted_keys,
    |entries: Vec<(u32, u32)>| Ret::Values(entries.iter().map(|e| e.0).collect()),
    |keys| Ret::Values(keys.to_vec())
);

/// The queue, with an operation of the name.
macro_rules! queue {
    ($name:ident, $ops:expr) => {
        subject!(
            $name,
            $ops,
            Queue,
            Queue::new(&[1, 2], Hint::Withheld),
            |it, op| match op {
                Operation::Insert => {
                    it.add(3);
                    Ret::Done(true)
                }
                Operation::Size => Ret::size(&it.to_vec()),
                Operation::Content => Ret::Values(it.to_vec()),
                Operation::Poll => Ret::Value(it.poll()),
                _ => Ret::Done(it.remove(1)),
            },
            Fifo::new()
        );
    };
}

queue!(size, [Operation::Insert, Operation::Remove, Operation::Size]);
queue!(to_array, [Operation::Insert, Operation::Remove, Operation::Content]);
queue!(poll_against_remove, [Operation::Remove, Operation::Poll]);

subject!(
    pi,
    [Operation::Sample],
    Points,
    Points::new(),
    |it, _op| Ret::Done(it.sample()),
    OnePointAtATime(ours::Points::new())
);

subject!(
    phylogeny,
    [
        Operation::Evaluate(1, 9),
        Operation::Evaluate(2, 6),
        Operation::Evaluate(3, 8),
        Operation::Evaluate(4, 5),
        Operation::Tree
    ],
    Best,
    Best::new(),
    |it, op| {
        if let Operation::Evaluate(tree, cost) = *op {
            it.evaluate(tree, cost);
            return Ret::Done(true);
        }
        Ret::Number(it.tree())
    },
    Least { tree: 0, cost: u32::MAX }
);

/// A structure in the types of each library.
struct Subject {
    name: &'static str,
    /// Whether it is not linearizable.
    is_wrong: bool,
    ours: fn(u8) -> bool,
    theirs: fn(u8) -> bool,
}

macro_rules! subjects {
    ($($name:literal $module:ident $is_wrong:literal)*) => {
        [$(Subject {
            name: $name,
            is_wrong: $is_wrong,
            ours: by_us::<$module::Ours>,
            theirs: by_lincheck::<$module::Theirs>,
        }),*]
    };
}

/// The errors of table 5.1, poll against remove, and a structure that is right.
const SUBJECTS: [Subject; 10] = subjects! {
    "LinkedQueue: size" size true
    "LinkedQueue: to array" to_array true
    "poll against remove" poll_against_remove true
    "SkipListMap: entries" sorted_entries true
    "SkipListSet: keys" sorted_keys true
    "both: size" sorted_size true
    "LockFreeList: remove" two_removes true
    "pi" pi true
    "phylogeny" phylogeny true
    "right set" right_set false
};

/// What a measurement came to.
#[derive(Clone, Copy)]
struct Measured {
    found: bool,
    executions: u64,
    seconds: f64,
}

/// Prints the comparison and returns what is not as it should be.
pub(super) fn compare() -> Vec<String> {
    println!(
        "\nlinearizability checks: until an error was found and its scenario made small, medians of {SEEDS} seeds"
    );
    println!(
        "{:22} | {:>10} {:>9} | {:>19} {:>9}",
        "", "schedules", "seconds", "lincheck: schedules", "seconds"
    );
    let mut wrong = Vec::new();
    for Subject { name: subject, is_wrong, .. } in &SUBJECTS {
        let [ours, theirs] = ["ours", "lincheck"].map(|library| median(library, subject));
        let (Some(ours), theirs) = (ours, theirs) else {
            wrong.push(format!("{subject}: not decided within {} s", LIMIT.as_secs()));
            continue;
        };
        if ours.found != *is_wrong {
            wrong.push(format!("{subject}: another verdict"));
        }
        let (schedules, seconds) = match &theirs {
            Some(m) if m.found == *is_wrong => {
                (m.executions.to_string(), format!("{:.3}", m.seconds))
            }
            Some(_) => ("not found".to_owned(), "-".to_owned()),
            None => ("-".to_owned(), format!("> {}", LIMIT.as_secs())),
        };
        println!(
            "{subject:22} | {:>10} {:>9.3} | {schedules:>19} {seconds:>9}",
            ours.executions, ours.seconds
        );
        if !is_wrong {
            let of = |n: u64, m: &Measured| n as f64 / m.seconds;
            let other = |of: &dyn Fn(&Measured) -> f64| {
                theirs.as_ref().map_or("-".to_owned(), |m| format!("{:.0}", of(m)))
            };
            println!(
                "schedules per second on it: {:.0}, lincheck {}; scenarios per second: {:.0}, lincheck {}",
                of(ours.executions, &ours),
                other(&|m| of(m.executions, m)),
                of(SCENARIOS, &ours),
                other(&|m| of(SCENARIOS, m)),
            );
        }
    }
    wrong
}

/// The median by schedules over some seeds; nothing if any did not end in time.
fn median(library: &str, subject: &str) -> Option<Measured> {
    let all: Option<Vec<Measured>> =
        (0..SEEDS).map(|seed| measured(library, subject, seed)).collect();
    let mut all = all?;
    all.sort_by_key(|m| (!m.found, m.executions));
    Some(all[all.len() / 2])
}

/// Runs a measurement in a process of its own; nothing if that did not end in time.
fn measured(library: &str, subject: &str, seed: u8) -> Option<Measured> {
    let own = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(own)
        .args(["atomicity", "one", library, subject, &seed.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program runs");
    let begun = Instant::now();
    while child.try_wait().expect("it is a child").is_none() {
        if begun.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let printed = child.wait_with_output().expect("it has ended").stdout;
    let printed = String::from_utf8_lossy(&printed);
    let words: Vec<&str> = printed.lines().last()?.split(' ').collect();
    let [found, executions, seconds] = words[..] else { return None };
    Some(Measured {
        found: found == "true",
        executions: executions.parse().ok()?,
        seconds: seconds.parse().ok()?,
    })
}

/// The child's part: prints whether an error was found, schedules, and seconds.
pub(super) fn one(library: &str, subject: &str, seed: u8) {
    let subject = SUBJECTS.iter().find(|s| s.name == subject).expect("one of the subjects");
    let begun = Instant::now();
    let found = if library == "ours" { (subject.ours)(seed) } else { (subject.theirs)(seed) };
    let executions = EXECUTIONS.load(Ordering::Relaxed);
    println!("{found} {executions} {}", begun.elapsed().as_secs_f64());
}

/// Whether our check finds an error.
fn by_us<T: Linearizable>(seed: u8) -> bool {
    let check = check::<T>().threads(2).ops(OPS).before(OPS).after(OPS).seed(seed.into());
    check.scenarios(SCENARIOS).run().is_err()
}

/// Whether `lincheck` does.
fn by_lincheck<C>(seed: u8) -> bool
where
    C: ConcurrentSpec + Send + Sync + 'static,
    C::Seq: Send + Sync + 'static,
    ConcOp<C>: Send + Sync + Clone + Arbitrary + Debug + UnwindSafe + 'static,
    ConcRet<C>: PartialEq + Clone + Debug + Send,
{
    let config = Config {
        cases: u32::try_from(SCENARIOS).expect("few"),
        failure_persistence: None,
        ..Config::default()
    };
    let scenarios = any_with::<Scenario<ConcOp<C>>>(Lincheck { num_threads: 2, num_ops: OPS });
    let numbers = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let result = TestRunner::new_with_rng(config, numbers).run(&scenarios, |scenario| {
        let checked = check_scenario_with_loom::<C>(scenario);
        checked.map_err(|_| TestCaseError::fail("not linearizable"))
    });
    result.is_err()
}
