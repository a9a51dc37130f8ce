//! Exhaustive search: exact counts.

use std::collections::BTreeSet;

use proptest::prelude::*;
use selvedge_explore::dfs::Bounds;
use selvedge_explore::{Coverage, Dfs, Dpor, RandomWalk, Strategy as _, dependent};

use crate::system::Instr::{self, *};
use crate::system::{Outcome, Program, Search, run_all, search};

/// A search of at most `limit` executions.
fn depth_first(bounds: Bounds, limit: u64) -> Search<Dfs> {
    search(Dfs::new(bounds), 0, limit)
}

fn all(program: &Program) -> Vec<Outcome> {
    let mut dfs = depth_first(Bounds::default(), u64::MAX);
    let outcomes = run_all(program, &mut dfs);
    assert!(dfs.coverage() == Coverage::Complete && dfs.diverged().is_none());
    let distinct: BTreeSet<_> = outcomes.iter().map(|o| &o.trace).collect();
    assert_eq!(distinct.len(), outcomes.len(), "every schedule once");
    outcomes
}

/// The number of classes visited, and the outcomes of all executions.
fn classes(program: &Program) -> (u64, Vec<Outcome>) {
    let mut dpor = search(Dpor::new(Bounds::default()), 0, u64::MAX);
    let outcomes = run_all(program, &mut dpor);
    assert!(dpor.coverage() == Coverage::Complete && dpor.diverged().is_none());
    (dpor.classes().expect("told apart"), outcomes)
}

fn multinomial(lengths: &[u64]) -> u64 {
    let factorial = |n: u64| (1..=n).product::<u64>();
    lengths.iter().fold(factorial(lengths.iter().sum()), |n, &l| n / factorial(l))
}

#[test]
fn all_interleavings_of_straight_lines_are_visited() {
    for lengths in [&[1, 1][..], &[3, 3], &[2, 2, 2], &[4, 1, 2], &[1, 1, 1, 1, 1]] {
        let program: Program = lengths.iter().map(|&n| vec![Inc(0); n as usize]).collect();
        assert_eq!(all(&program).len() as u64, multinomial(lengths), "{lengths:?}");
    }
}

#[test]
fn a_lock_leaves_the_orders_of_critical_sections() {
    // n threads of one critical section: n! orders of acquisitions. Between acquiring and releasing
    // nobody else can do anything.
    for n in 1..=4u64 {
        let program: Program = (0..n).map(|_| vec![Acquire(0), Inc(0), Release(0)]).collect();
        assert_eq!(all(&program).len() as u64, multinomial(&vec![1; n as usize]));
        assert_eq!(classes(&program).0, multinomial(&vec![1; n as usize]));
    }
}

#[test]
fn independent_threads_have_one_class() {
    let program: Program = (0..5).map(|t| vec![Inc(t); 4]).collect();
    let (classes, executions) = classes(&program);
    assert_eq!((classes, executions.len()), (1, 1));
}

#[test]
fn dependent_threads_have_as_many_classes_as_interleavings() {
    for lengths in [&[3, 3][..], &[2, 2, 2]] {
        let program: Program = lengths.iter().map(|&n| vec![Inc(0); n as usize]).collect();
        assert_eq!(classes(&program).0, multinomial(lengths));
    }
}

#[test]
fn readers_commute_and_a_writer_does_not() {
    // n loads and one store of the same variable: each load sees the store or does not: 2^n classes.
    for n in 1..=6usize {
        let mut program: Program = vec![vec![Load(0)]; n];
        program.push(vec![Store(0, 1)]);
        assert_eq!(classes(&program).0, 1 << n);
    }
}

#[test]
fn both_searches_find_the_deadlock() {
    let program = vec![
        vec![Acquire(0), Acquire(1), Release(1), Release(0)],
        vec![Acquire(1), Acquire(0), Release(0), Release(1)],
    ];
    assert!(all(&program).iter().any(|o| o.deadlock));
    assert!(classes(&program).1.iter().any(|o| o.deadlock));
    let ordered = vec![program[0].clone(), program[0].clone()];
    assert!(!all(&ordered).iter().any(|o| o.deadlock));
    assert!(!classes(&ordered).1.iter().any(|o| o.deadlock));
}

#[test]
fn the_bound_on_preemptions_is_exact() {
    // Two threads of k steps: with at most one preemption, either runs first, and stops after i of its
    // k steps (0 < i < k), or does not stop: 2 + 2(k − 1).
    let k = 5;
    let program: Program = vec![vec![Inc(0); k], vec![Inc(0); k]];
    let within = |preemptions| {
        let mut dfs = depth_first(Bounds { preemptions, ..Bounds::default() }, u64::MAX);
        let n = run_all(&program, &mut dfs).len();
        assert!(dfs.coverage() == Coverage::Complete);
        n
    };
    assert_eq!(within(0), 2);
    assert_eq!(within(1), 2 + 2 * (k - 1));
    assert_eq!(within(usize::MAX) as u64, multinomial(&[5, 5]));
}

#[test]
fn a_search_that_was_cut_does_not_call_itself_complete() {
    let program: Program = vec![vec![Inc(0); 4], vec![Inc(0); 4]];
    let mut dfs = depth_first(Bounds::default(), 10);
    assert_eq!(run_all(&program, &mut dfs).len(), 10);
    assert!(dfs.coverage() == Coverage::Partial);
    let mut dfs = depth_first(Bounds { depth: 2, ..Bounds::default() }, u64::MAX);
    assert_eq!(run_all(&program, &mut dfs).len(), 4);
    assert!(dfs.coverage() == Coverage::Partial);
    let mut dpor = search(Dpor::new(Bounds::default()), 0, 10);
    run_all(&program, &mut dpor);
    assert!(dpor.coverage() == Coverage::Partial);
}

#[test]
fn a_search_whose_budget_is_just_enough_is_complete() {
    let program: Program = vec![vec![Inc(0); 3], vec![Inc(0); 3]];
    for (limit, coverage) in [(19, Coverage::Partial), (20, Coverage::Complete)] {
        let mut dfs = depth_first(Bounds::default(), limit);
        assert_eq!(run_all(&program, &mut dfs).len() as u64, limit);
        assert_eq!(dfs.coverage(), coverage);
        let mut dpor = search(Dpor::new(Bounds::default()), 0, limit);
        assert_eq!(run_all(&program, &mut dpor).len() as u64, limit);
        assert_eq!(dpor.coverage(), coverage);
    }
}

/// The class of a schedule: its steps, put in the least order that swaps of independent ones allow.
fn normal_form(program: &Program, trace: &[u32]) -> Vec<(u32, usize)> {
    let mut next = vec![0; program.len()];
    let mut steps: Vec<(u32, usize)> = Vec::new();
    for &t in trace {
        steps.push((t, next[t as usize]));
        next[t as usize] += 1;
    }
    let step = |&(t, i): &(u32, usize)| {
        (selvedge_model::ThreadId(t), crate::systematic::step_of(program[t as usize][i]))
    };
    let mut form = Vec::new();
    while !steps.is_empty() {
        let least = (0..steps.len())
            .filter(|&i| steps[..i].iter().all(|s| !dependent(step(s), step(&steps[i]))))
            .min_by_key(|&i| steps[i])
            .expect("the first step depends on none before it");
        form.push(steps.remove(least));
    }
    form
}

fn step_of(instr: Instr) -> selvedge_explore::Step {
    use selvedge_model::*;
    let access = |x: u64| Access { addr: x * 8, len: 8 };
    selvedge_explore::Step::Do(match instr {
        Inc(x) => Op::Atomic(access(x), AtomicOp::Update(UpdateOrder::SeqCst)),
        Load(x) | FailIf(x, _) => Op::Atomic(access(x), AtomicOp::Load(LoadOrder::SeqCst)),
        Store(x, _) | StoreNext(x) => Op::Atomic(access(x), AtomicOp::Store(StoreOrder::SeqCst)),
        Acquire(l) => Op::Acquire(LockId(l), Mode::Exclusive),
        Release(l) => Op::Release(LockId(l), Mode::Exclusive),
        other => unreachable!("{other:?} is not generated"),
    })
}

fn instrs() -> impl proptest::strategy::Strategy<Value = Vec<Instr>> {
    let plain = prop_oneof![
        (0..2u64).prop_map(Load),
        (0..2u64).prop_map(|x| Store(x, 1)),
        (0..2u64).prop_map(Inc),
        (0..2u64).prop_map(StoreNext),
    ];
    let section = (0..2u32, prop::collection::vec(plain.clone(), 0..2))
        .prop_map(|(l, body)| [vec![Acquire(l)], body, vec![Release(l)]].concat());
    let nested = Just(vec![Acquire(0), Acquire(1), Release(1), Release(0)]);
    let crossed = Just(vec![Acquire(1), Acquire(0), Release(0), Release(1)]);
    prop_oneof![
        3 => prop::collection::vec(plain, 0..4),
        2 => section,
        1 => nested,
        1 => crossed,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The oracle is the plain search: the classes of all its schedules.
    #[test]
    fn reduction_visits_every_class_exactly_once(program in prop::collection::vec(instrs(), 2..4)) {
        let mut dfs = depth_first(Bounds::default(), 20_000);
        let every = run_all(&program, &mut dfs);
        prop_assume!(dfs.coverage() == Coverage::Complete);
        let expected: BTreeSet<_> = every.iter().map(|o| normal_form(&program, &o.trace)).collect();
        let (classes, reduced) = classes(&program);
        let seen: BTreeSet<_> = reduced.iter().map(|o| normal_form(&program, &o.trace)).collect();
        prop_assert_eq!(&seen, &expected);
        prop_assert_eq!(classes as usize, expected.len());
    }

    #[test]
    fn random_schedules_are_among_the_exhaustive_ones(
        program in prop::collection::vec(instrs(), 2..4), seed: u64,
    ) {
        let mut dfs = depth_first(Bounds::default(), 20_000);
        let every: BTreeSet<_> = run_all(&program, &mut dfs).into_iter().map(|o| o.trace).collect();
        prop_assume!(dfs.coverage() == Coverage::Complete);
        for outcome in run_all(&program, &mut search(RandomWalk::default(), seed, 20)) {
            prop_assert!(every.contains(&outcome.trace));
        }
    }
}
