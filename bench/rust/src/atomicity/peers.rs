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
enum Op {
    Insert,
    Remove,
    Contains,
    Size,
    Poll,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Ret {
    Done(bool),
    Count(usize),
    Value(Option<u32>),
}

macro_rules! subject {
    ($name:ident, $ops:expr, $of:ident, $new:expr, |$it:ident, $op:ident| $apply:expr, $model:ident) => {
        mod $name {
            use super::*;

            pub(super) struct Ours(ours::$of);

            impl Linearizable for Ours {
                type Op = Op;
                type Ret = Ret;

                fn new() -> Ours {
                    use ours::$of;
                    EXECUTIONS.fetch_add(1, Ordering::Relaxed);
                    Ours($new)
                }

                fn ops() -> Vec<Op> {
                    $ops.to_vec()
                }

                fn apply(&self, $op: &Op) -> Ret {
                    let $it = &self.0;
                    $apply
                }
            }

            #[derive(Clone, Copy, Debug)]
            pub(super) struct Called(Op);

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

            #[derive(Default)]
            pub(super) struct Sequential($model);

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

/// The set that begins with 1.
struct Set(BTreeSet<u32>);

impl Default for Set {
    fn default() -> Set {
        Set(BTreeSet::from([1]))
    }
}

impl Set {
    fn apply(&mut self, op: Op) -> Ret {
        match op {
            Op::Insert => Ret::Done(self.0.insert(1)),
            Op::Remove => Ret::Done(self.0.remove(&1)),
            Op::Contains => Ret::Done(self.0.contains(&1)),
            Op::Size | Op::Poll => Ret::Count(self.0.len()),
        }
    }
}

/// The queue that begins with 1 and 2.
struct Fifo(VecDeque<u32>);

impl Default for Fifo {
    fn default() -> Fifo {
        Fifo(VecDeque::from([1, 2]))
    }
}

impl Fifo {
    fn apply(&mut self, op: Op) -> Ret {
        match op {
            Op::Insert => {
                self.0.push_back(3);
                Ret::Done(true)
            }
            Op::Remove => {
                let at = self.0.iter().position(|&v| v == 1);
                Ret::Done(at.map(|at| self.0.remove(at)).is_some())
            }
            Op::Contains => Ret::Done(self.0.contains(&1)),
            Op::Size => Ret::Count(self.0.len()),
            Op::Poll => Ret::Value(self.0.pop_front()),
        }
    }
}

const SET: [Op; 3] = [Op::Insert, Op::Remove, Op::Contains];

/// A set of the number 1, which is right or has the error that two removes may both succeed.
macro_rules! set {
    ($name:ident, $is_wrong:literal) => {
        subject!(
            $name,
            SET,
            Sorted,
            Sorted::new(&[1], $is_wrong),
            |it, op| match op {
                Op::Insert => Ret::Done(it.insert(1, 0)),
                Op::Remove => Ret::Done(it.remove(1)),
                Op::Contains | Op::Size | Op::Poll => Ret::Done(it.contains(1)),
            },
            Set
        );
    };
}

set!(right_set, false);
set!(two_removes, true);

subject!(
    size,
    [Op::Insert, Op::Remove, Op::Size],
    Queue,
    Queue::new(&[1, 2], Hint::Withheld),
    |it, op| match op {
        Op::Insert => {
            it.add(3);
            Ret::Done(true)
        }
        Op::Remove | Op::Contains | Op::Poll => Ret::Done(it.remove(1)),
        Op::Size => Ret::Count(it.size()),
    },
    Fifo
);

subject!(
    poll_against_remove,
    [Op::Remove, Op::Poll],
    Queue,
    Queue::new(&[1, 2], Hint::Withheld),
    |it, op| match op {
        Op::Poll => Ret::Value(it.poll()),
        Op::Insert | Op::Remove | Op::Contains | Op::Size => Ret::Done(it.remove(1)),
    },
    Fifo
);

/// What a measurement came to.
#[derive(Clone, Copy)]
struct Measured {
    found: bool,
    executions: u64,
    seconds: f64,
}

const SUBJECTS: [(&str, bool); 4] =
    [("two removes", true), ("size", true), ("poll against remove", true), ("right set", false)];

/// Prints the comparison and returns what is not as it should be.
pub(super) fn compare() -> Vec<String> {
    println!(
        "\nlinearizability checks: until an error was found and its scenario made small, medians of {SEEDS} seeds"
    );
    println!(
        "{:20} | {:>10} {:>9} | {:>19} {:>9}",
        "", "schedules", "seconds", "lincheck: schedules", "seconds"
    );
    let mut wrong = Vec::new();
    for (subject, wrong_structure) in SUBJECTS {
        let [ours, theirs] = ["ours", "lincheck"].map(|library| median(library, subject));
        let (Some(ours), theirs) = (ours, theirs) else {
            wrong.push(format!("{subject}: not decided within {} s", LIMIT.as_secs()));
            continue;
        };
        if ours.found != wrong_structure {
            wrong.push(format!("{subject}: another verdict"));
        }
        let (schedules, seconds) = match &theirs {
            Some(m) if m.found == wrong_structure => {
                (m.executions.to_string(), format!("{:.3}", m.seconds))
            }
            Some(_) => ("not found".to_owned(), "-".to_owned()),
            None => ("-".to_owned(), format!("> {}", LIMIT.as_secs())),
        };
        println!(
            "{subject:20} | {:>10} {:>9.3} | {schedules:>19} {seconds:>9}",
            ours.executions, ours.seconds
        );
        if !wrong_structure {
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
    let begun = Instant::now();
    let found = match (library, subject) {
        ("ours", "two removes") => by_us::<two_removes::Ours>(seed),
        ("ours", "size") => by_us::<size::Ours>(seed),
        ("ours", "poll against remove") => by_us::<poll_against_remove::Ours>(seed),
        ("ours", _) => by_us::<right_set::Ours>(seed),
        (_, "two removes") => by_lincheck::<two_removes::Theirs>(seed),
        (_, "size") => by_lincheck::<size::Theirs>(seed),
        (_, "poll against remove") => by_lincheck::<poll_against_remove::Theirs>(seed),
        _ => by_lincheck::<right_set::Theirs>(seed),
    };
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
