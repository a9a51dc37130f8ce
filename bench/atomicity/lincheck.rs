//! One scenario by the crate `lincheck`, in loom: `lincheck NAME BEFORE THREAD…`, with structures of crates whose atomics
//! are loom's.
//!
//! Prints what was found, or `none`; how many schedules there were; and seconds. The first violation ends the process:
//! crossbeam-epoch does not survive the panic by which `lincheck` hands a violation over.

mod operations;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lincheck::checker::LinearizabilityChecker;
use lincheck::scenario::{Scenario, execute_scenario_with_loom};
use lincheck::{ConcurrentSpec, SequentialSpec};

use operations::{Op, ops};

/// Executions: each makes a structure.
static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

/// What an operation returned.
#[derive(Clone, PartialEq, Debug)]
enum Ret {
    Done(bool),
    Value(Option<u32>),
    Count(usize),
}

#[derive(Default)]
struct Map(BTreeMap<u32, u32>);

impl SequentialSpec for Map {
    type Op = Op;
    type Ret = Ret;

    fn exec(&mut self, op: Op) -> Ret {
        match op {
            Op::Insert(key, value) => {
                self.0.insert(key, value);
                Ret::Done(true)
            }
            Op::Get(key) => Ret::Value(self.0.get(&key).copied()),
            Op::Remove(key) => Ret::Value(self.0.remove(&key)),
            _ => panic!("a map has no `{}`", op.name()),
        }
    }
}

/// A queue that holds at most so many.
#[derive(Default)]
struct Fifo<const N: usize>(VecDeque<u32>);

impl<const N: usize> SequentialSpec for Fifo<N> {
    type Op = Op;
    type Ret = Ret;

    fn exec(&mut self, op: Op) -> Ret {
        match op {
            Op::Push(value) => {
                let fits = self.0.len() < N;
                if fits {
                    self.0.push_back(value);
                }
                Ret::Done(fits)
            }
            Op::Pop => Ret::Value(self.0.pop_front()),
            Op::Len => Ret::Count(self.0.len()),
            _ => panic!("a queue has no `{}`", op.name()),
        }
    }
}

macro_rules! structure {
    ($name:ident, $type:ty, $model:ty, |$it:ident, $op:ident| $apply:expr) => {
        struct $name($type);

        impl Default for $name {
            fn default() -> $name {
                EXECUTIONS.fetch_add(1, Ordering::Relaxed);
                $name(<$type>::new())
            }
        }

        impl ConcurrentSpec for $name {
            type Seq = $model;

            fn exec(&self, $op: Op) -> Ret {
                let $it = &self.0;
                $apply
            }
        }
    };
}

macro_rules! map {
    ($name:ident, $type:ty) => {
        structure!($name, $type, Map, |map, op| match op {
            Op::Insert(key, value) => {
                map.insert(key, value);
                Ret::Done(true)
            }
            Op::Get(key) => Ret::Value(map.get(&key).map(|entry| *entry.value())),
            Op::Remove(key) => Ret::Value(map.remove(&key).map(|entry| *entry.value())),
            _ => panic!("a map has no `{}`", op.name()),
        });
    };
}

macro_rules! queue {
    ($name:ident, $type:ty, $capacity:expr, |$q:ident, $v:ident| $push:expr, $pop:expr, $len:expr) => {
        structure!($name, $type, Fifo<{ $capacity }>, |$q, op| match op {
            Op::Push($v) => Ret::Done($push),
            Op::Pop => Ret::Value($pop),
            Op::Len => Ret::Count($len),
            _ => panic!("a queue has no `{}`", op.name()),
        });
    };
}

map!(Skip, skiplist::SkipMap<u32, u32>);
map!(SkipMended, skiplist_mended::SkipMap<u32, u32>);
queue!(Heapless, heapless::mpmc::Queue<u32, 2>, 2, |q, v| q.enqueue(v).is_ok(), q.dequeue(), 0);
queue!(
    HeaplessMended,
    heapless_mended::mpmc::Queue<u32, 2>,
    2,
    |q, v| q.enqueue(v).is_ok(),
    q.dequeue(),
    0
);
queue!(OldSeg, queue_old::SegQueue<u32>, usize::MAX, |q, v| done(q.push(v)), q.pop().ok(), q.len());
queue!(Seg, queue_new::SegQueue<u32>, usize::MAX, |q, v| done(q.push(v)), q.pop(), q.len());

/// That an operation without a result has ended.
fn done((): ()) -> bool {
    true
}

/// Ends the process at the first execution that is not linearizable.
fn check<C>(scenario: Scenario<Op>, begun: Instant)
where
    C: ConcurrentSpec + Send + Sync + 'static,
    C::Seq: SequentialSpec<Op = Op, Ret = Ret> + Send + Sync + 'static,
{
    loom::model(move || {
        let execution = execute_scenario_with_loom::<C>(scenario.clone());
        if !LinearizabilityChecker::<C::Seq>::check(&execution) {
            // A row of its table for each call and result.
            let table = execution.to_string();
            let parallel = table.split("POST PART").next().unwrap_or_default();
            let parallel = parallel.split("PARALLEL PART").last().unwrap_or_default();
            let rows = parallel.lines().filter(|line| line.contains(" : "));
            let cells = rows.flat_map(|row| row.split('|').map(str::trim)).filter(|c| !c.is_empty());
            println!("{}", cells.collect::<Vec<_>>().join(", "));
            report(begun);
            std::process::exit(0);
        }
    });
    println!("none");
    report(begun);
}

fn report(begun: Instant) {
    println!("{} {}", EXECUTIONS.load(Ordering::Relaxed), begun.elapsed().as_secs_f64());
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().expect("the name of a structure");
    let init_part = ops(&arguments.next().expect("operations before"));
    let parallel_part = arguments.map(|text| ops(&text)).collect();
    let scenario = Scenario { init_part, parallel_part, post_part: Vec::new() };
    let begun = Instant::now();
    match name.as_str() {
        "skiplist" => check::<Skip>(scenario, begun),
        "skiplist-mended" => check::<SkipMended>(scenario, begun),
        "heapless" => check::<Heapless>(scenario, begun),
        "heapless-mended" => check::<HeaplessMended>(scenario, begun),
        "segqueue-0.2.1" => check::<OldSeg>(scenario, begun),
        "segqueue" => check::<Seg>(scenario, begun),
        _ => panic!("`{name}` is not a structure"),
    }
}
