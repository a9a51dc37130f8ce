//! Selectively uniform random walk against its definition: all orders of the selected events, counted one
//! by one, are equally likely; also where threads start others, which is how programs begin.

use std::collections::BTreeMap;

use selvedge_explore::{Choice, Pending, Rng, Step, Strategy, Surw};
use selvedge_model::{Access, AtomicOp, Event, Op, SiteId, ThreadId, UpdateOrder};

use crate::system::Instr::{Acquire, Release};
use crate::system::{Program, Search, run_all, search};

/// What a thread of a test does: a step on a variable, or starting the next thread, which is no step.
#[derive(Clone, Copy, PartialEq)]
enum Do {
    On(u64),
    Start,
}
use Do::{On, Start};

/// Threads that exist, each by its number in the program and what it has done.
#[derive(Clone)]
struct State<'a> {
    program: &'a [Vec<Do>],
    at: Vec<usize>,
}

impl<'a> State<'a> {
    fn new(program: &'a [Vec<Do>], strategy: Option<&mut Surw>) -> State<'a> {
        let mut state = State { program, at: vec![0] };
        state.start(0, strategy);
        state
    }

    /// Starts what a thread starts before its next step.
    fn start(&mut self, thread: usize, mut strategy: Option<&mut Surw>) {
        while self.program[thread].get(self.at[thread]) == Some(&Start) {
            self.at[thread] += 1;
            let child = self.at.len();
            self.at.push(0);
            if let Some(strategy) = &mut strategy {
                let op = Op::Fork(ThreadId(child as u32));
                let thread = ThreadId(thread as u32);
                strategy.observe(&Event { thread, site: SiteId(0), op });
            }
            self.start(child, strategy.as_deref_mut());
        }
    }

    fn step(&self, thread: usize) -> Option<u64> {
        match self.program[thread].get(self.at[thread])? {
            On(variable) => Some(*variable),
            Start => unreachable!("started at once"),
        }
    }

    fn enabled(&self) -> Vec<ThreadId> {
        let can = |t: &usize| self.step(*t).is_some();
        (0..self.at.len()).filter(can).map(|t| ThreadId(t as u32)).collect()
    }

    fn pending(&self) -> Vec<Pending> {
        let step = |t| match self.step(t) {
            None => Step::Ended,
            Some(x) => {
                let access = Access { addr: x * 8, len: 8 };
                Step::Do(Op::Atomic(access, AtomicOp::Update(UpdateOrder::SeqCst)))
            }
        };
        (0..self.at.len())
            .map(|t| Pending { site: SiteId(0), landmark: 0, step: step(t) })
            .collect()
    }

    fn take(&mut self, thread: usize, strategy: Option<&mut Surw>) {
        self.at[thread] += 1;
        self.start(thread, strategy);
    }
}

/// All orders of the steps on `variable`, as the threads that take them.
fn orders(program: &[Vec<Do>], variable: u64) -> BTreeMap<Vec<u32>, usize> {
    fn go(state: &State<'_>, variable: u64, so_far: &[u32], all: &mut BTreeMap<Vec<u32>, usize>) {
        let enabled = state.enabled();
        if enabled.is_empty() {
            all.insert(so_far.to_vec(), 0);
        }
        for thread in enabled {
            let mut next = state.clone();
            let mut order = so_far.to_vec();
            if state.step(thread.index()) == Some(variable) {
                order.push(thread.0);
            }
            next.take(thread.index(), None);
            go(&next, variable, &order, all);
        }
    }
    let mut all = BTreeMap::new();
    go(&State::new(program, None), variable, &[], &mut all);
    all
}

/// The order of the steps on `variable` in one execution.
fn sample(program: &[Vec<Do>], variable: u64, strategy: &mut Surw, rng: Rng) -> Vec<u32> {
    assert!(strategy.begin(rng));
    let mut order = Vec::new();
    let mut state = State::new(program, Some(strategy));
    let mut running = None;
    loop {
        let (enabled, pending) = (state.enabled(), state.pending());
        let thread = match enabled[..] {
            [] => break strategy.end(&pending),
            [only] => only,
            _ => strategy.choose(&Choice {
                step: 0,
                enabled: &enabled,
                running,
                yielding: false,
                pending: &pending,
            }),
        };
        strategy.step(thread, &pending);
        running = Some(thread);
        if state.step(thread.index()) == Some(variable) {
            order.push(thread.0);
        }
        state.take(thread.index(), Some(strategy));
    }
    order
}

/// How far counts are from all being equal: chi-square, in standard deviations from what chance gives.
fn unevenness(counts: &BTreeMap<Vec<u32>, usize>) -> f64 {
    let expected = counts.values().sum::<usize>() as f64 / counts.len() as f64;
    let chi: f64 = counts.values().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
    let freedom = (counts.len() - 1) as f64;
    (chi - freedom) / (2.0 * freedom).sqrt()
}

#[test]
fn all_orders_of_the_selected_steps_are_equally_likely() {
    // The only variable that threads share is 0, so it is the one selected; 1, 2 and 3 are in the way.
    let programs: [Vec<Vec<Do>>; 4] = [
        vec![vec![Start, On(0), On(1), On(0), On(0), On(0)], vec![On(2), On(2), On(0), On(0)]],
        // The starter's own steps come before, between and after.
        vec![
            vec![On(0), Start, On(0), On(1), Start, On(0)],
            vec![On(0), On(2), On(0)],
            vec![On(0)],
        ],
        // The last thread is started by another than the first, and late.
        vec![
            vec![Start, On(1), On(1), On(0)],
            vec![On(0), On(2), On(2), Start, On(0)],
            vec![On(3), On(0), On(0)],
        ],
        vec![vec![Start, Start, Start], vec![On(0)], vec![On(0), On(1), On(0)], vec![On(0); 3]],
    ];
    for (i, program) in programs.iter().enumerate() {
        let mut counts = orders(program, 0);
        let samples = 100 * counts.len();
        let mut strategy = Surw::default();
        // The first execution only counts.
        sample(program, 0, &mut strategy, Rng::of_execution(7, 0));
        for n in 1..=samples as u64 {
            let order = sample(program, 0, &mut strategy, Rng::of_execution(7, n));
            *counts.get_mut(&order).expect("one of the orders") += 1;
        }
        let unevenness = unevenness(&counts);
        assert!(unevenness < 4.0, "program {i}: {unevenness} in {} orders", counts.len());
    }
}

#[test]
fn the_measure_tells_a_random_walk_apart() {
    let program = vec![vec![Start, On(0), On(0), On(0), On(0)], vec![On(0), On(0)]];
    let mut counts = orders(&program, 0);
    for seed in 0..100 * counts.len() as u64 {
        // Without an execution before, nothing is known of the threads: every step is a coin's.
        let order = sample(&program, 0, &mut Surw::default(), Rng::of_execution(seed, 0));
        *counts.get_mut(&order).expect("an order") += 1;
    }
    assert!(unevenness(&counts) > 20.0);
}

#[test]
fn a_deadlock_does_not_teach_the_next_execution_to_deadlock() {
    let thread = |a, b| vec![Acquire(a), Acquire(b), Release(b), Release(a)];
    let program: Program = vec![thread(0, 1), thread(1, 0)];
    let deadlocks =
        |mut s: Search<Surw>| run_all(&program, &mut s).iter().filter(|o| o.deadlock).count();
    // Whoever comes first, with three steps to go against four, must come second as well: 3 in 7 do.
    let uniform = deadlocks(search(Surw::uniform(), 1, 2_100));
    assert!(uniform.abs_diff(1_200) < 120, "{uniform} of 2100, 4 in 7 expected");
    let selective = deadlocks(search(Surw::default(), 1, 2_000));
    assert!((400..1_400).contains(&selective), "{selective} of 2000");
}
