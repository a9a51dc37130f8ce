//! Random tasks with dependences, run one after the other in random orders that the dependences allow, against
//! the order of OpenMP 5.0, 2.17.11, written down pair by pair.

use core::sync::atomic::Ordering;

use super::dependences::{self, Dependence};
use super::{NONE, hold, let_go, node, take};
use crate::fasttrack::tests::prepare;
use crate::thread::{self, Thread};

const EXECUTIONS: u64 = 3_000;

const IN: u32 = 1;
const MUTEX: u32 = 4;
const SET: u32 = 7;
const ALL: u32 = 34;
/// Every kind of dependence of tasks: `in`, `out`, `inout`, `mutexinoutset`, `inoutset`, `omp_all_memory`.
const KINDS: [u32; 6] = [IN, 2, 3, MUTEX, SET, ALL];

/// xorshift64*
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

struct Task {
    number: u32,
    parent: u32,
    /// Variable and kind.
    depends: Vec<(u64, u32)>,
    /// What a clock has to know of the task's thread for the task's end to be known.
    ended: Option<(u32, u32)>,
    /// The clock with which it began.
    began: Vec<u32>,
}

/// How two tasks of one parent are ordered.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Order {
    None,
    /// One after the other, in any order.
    Exclusive,
    /// As they were made.
    Strict,
}

fn order(a: &Task, b: &Task) -> Order {
    let mut order = Order::None;
    for &(x, first) in &a.depends {
        for &(y, second) in &b.depends {
            let pair = match (first, second) {
                _ if first == ALL || second == ALL => Order::Strict,
                _ if x != y => Order::None,
                (IN, IN) | (SET, SET) => Order::None,
                (MUTEX, MUTEX) => Order::Exclusive,
                _ => Order::Strict,
            };
            if pair > order {
                order = pair;
            }
        }
    }
    if a.parent == b.parent { order } else { Order::None }
}

/// Lets a thread of its own do something.
fn alone<R>(thread: &mut Thread, f: impl FnOnce() -> R) -> R {
    thread.begin();
    let result = f();
    thread.leave();
    result
}

fn end(thread: &mut Thread) {
    thread.detached.store(1, Ordering::Relaxed);
    thread.end();
}

fn make(dice: &mut Dice, parents: [u32; 2]) -> Task {
    let (number, parent) = (take(), parents[dice.below(2)]);
    node(number).parent.store(parent, Ordering::Relaxed);
    hold(parent);
    let count = dice.below(4);
    let depends: Vec<(u64, u32)> =
        (0..count).map(|_| (dice.below(3) as u64 * 64, KINDS[dice.below(KINDS.len())])).collect();
    let list: Vec<Dependence> =
        depends.iter().map(|&(variable, kind)| Dependence { variable, kind }).collect();
    if !list.is_empty() {
        dependences::declare(number, list.iter().copied());
    }
    Task { number, parent, depends, ended: None, began: Vec::new() }
}

/// Runs a task that may run now, in a thread that knows nothing yet and that keeps its component of clocks.
fn run(task: &mut Task) -> &'static mut Thread {
    let thread = thread::create(&[]).expect("a block");
    alone(thread, || dependences::satisfied(task.number, 0));
    task.began = thread.clock.at.to_vec();
    task.ended = Some((thread.slot, thread.clock.at[thread.slot as usize]));
    alone(thread, || dependences::ended(task.number));
    thread
}

#[test]
fn tasks_are_ordered_by_their_dependences_and_by_nothing_else() {
    let _alone = prepare();
    let maker = thread::create(&[]).expect("a block");
    let mut largest = NONE;
    for seed in 0..EXECUTIONS {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (mut tasks, parents) = alone(maker, || {
            let parents = [take(), take()];
            let count = 2 + dice.below(6);
            ((0..count).map(|_| make(&mut dice, parents)).collect::<Vec<_>>(), parents)
        });
        largest = tasks.iter().map(|t| t.number).fold(largest, u32::max);
        let (mut ran, mut threads): (Vec<usize>, Vec<&mut Thread>) = Default::default();
        while ran.len() < tasks.len() {
            let i = dice.below(tasks.len());
            let waits =
                (0..i).any(|e| !ran.contains(&e) && order(&tasks[e], &tasks[i]) == Order::Strict);
            if !ran.contains(&i) && !waits {
                threads.push(run(&mut tasks[i]));
                ran.push(i);
            }
        }
        // What comes before each task: pair by pair, and then by way of others.
        let mut before = vec![vec![false; tasks.len()]; tasks.len()];
        for (at, &later) in ran.iter().enumerate() {
            for &earlier in &ran[..at] {
                if order(&tasks[earlier], &tasks[later]) != Order::None {
                    before[later][earlier] = true;
                    for (i, known) in before[earlier].clone().into_iter().enumerate() {
                        before[later][i] |= known;
                    }
                }
            }
        }
        for (at, &later) in ran.iter().enumerate() {
            for &earlier in &ran[..at] {
                let (slot, clock) = tasks[earlier].ended.expect("it ran");
                let known = tasks[later].began[slot as usize] >= clock;
                let pair = (&tasks[earlier].depends, &tasks[later].depends);
                assert_eq!(known, before[later][earlier], "seed {seed}: {pair:?}");
            }
        }
        threads.into_iter().for_each(end);
        alone(maker, || {
            tasks.iter().map(|t| t.number).chain(parents).for_each(let_go);
        });
    }
    end(maker);
    assert!(largest < 100, "numbers are not given out again: {largest}");
}
