//! `sequential`: exactly the executions in which no task is interrupted, all of them.

use std::collections::BTreeSet;

use proptest::prelude::*;
use selvedge_explore::dfs::Bounds;
use selvedge_explore::sequential::Tasks;
use selvedge_explore::{Coverage, Dfs, Sequential, Strategy as _};

use crate::system::Instr::*;
use crate::system::{Instr, Outcome, Program, run, search};

/// Whether every thread ran without interruption.
fn is_sequential(outcome: &Outcome) -> bool {
    let mut ended = BTreeSet::new();
    let mut last = None;
    outcome.trace.iter().all(|&thread| {
        if last != Some(thread) {
            ended.extend(last.replace(thread));
        }
        !ended.contains(&thread)
    })
}

type Results = BTreeSet<Vec<(u64, i64)>>;

/// What the uninterrupted ones among all executions leave.
fn expected(program: &Program) -> Results {
    let mut all = search(Dfs::new(Bounds::default()), 0, u64::MAX);
    let mut results = Results::new();
    while let Some(outcome) = run(program, &mut all) {
        if is_sequential(&outcome) && !outcome.deadlock {
            results.insert(outcome.vars);
        }
    }
    results
}

/// What this strategy's executions leave, and whether it has seen them all.
fn found(program: &Program) -> (Results, bool) {
    let mut all = search(Sequential::new(Tasks::Threads), 0, 10_000);
    let mut results = Results::new();
    while let Some(outcome) = run(program, &mut all) {
        if !all.strategy.interrupted() && !outcome.deadlock {
            assert!(is_sequential(&outcome), "{:?}", outcome.trace);
            results.insert(outcome.vars);
        }
    }
    (results, all.strategy.coverage() == Coverage::Complete)
}

fn instruction() -> impl proptest::strategy::Strategy<Value = Instr> {
    prop_oneof![
        (0..2u64).prop_map(Inc),
        (0..2u64).prop_map(Load),
        (0..2u64).prop_map(StoreNext),
        (0..2u64, 0..3i64).prop_map(|(x, value)| Store(x, value)),
        (0..2u64, 0..2i64, 0..3i64).prop_map(|(x, old, new)| Exchange(x, old, new)),
    ]
}

fn program() -> impl proptest::strategy::Strategy<Value = Program> {
    let thread = || proptest::collection::vec(instruction(), 1..4);
    let main = proptest::collection::vec(instruction(), 0..3);
    (main, proptest::collection::vec(thread(), 1..3))
        .prop_map(|(main, tasks)| [vec![main], tasks].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn all_uninterrupted_executions_and_no_others(program in program()) {
        let (results, complete) = found(&program);
        prop_assert!(complete);
        prop_assert_eq!(results, expected(&program));
    }
}

#[test]
fn three_tasks_have_six_orders() {
    let task = |value| vec![Load(0), Store(0, value)];
    let program = vec![vec![], task(1), task(2), task(3)];
    let mut all = search(Sequential::new(Tasks::Threads), 0, 100);
    let mut orders = BTreeSet::new();
    while run(&program, &mut all).is_some() {
        orders.insert(all.strategy.order().to_vec());
    }
    assert_eq!(orders.len(), 6);
}

#[test]
fn a_task_that_waits_for_another_has_no_sequential_execution_in_that_order() {
    let program = vec![vec![], vec![Spin(0, 1), Inc(1)], vec![Store(0, 1)]];
    let mut all = search(Sequential::new(Tasks::Threads), 0, 100);
    let mut forced = 0;
    let mut interrupted = 0;
    while run(&program, &mut all).is_some() {
        if all.strategy.interrupted() {
            interrupted += 1;
        } else {
            forced += 1;
        }
    }
    assert!(forced > 0 && interrupted > 0, "{forced} {interrupted}");
}
