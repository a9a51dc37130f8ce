//! `interrupt`: how often blocks are interrupted, where, for how long, and that the search ends.

use std::collections::BTreeSet;

use proptest::prelude::*;
use selvedge_explore::strategies::interrupt::{Bounds, DRY, Interrupt};
use selvedge_explore::{Coverage, Strategy as _};
use selvedge_model::{Nesting, Op};

use crate::system::Instr::*;
use crate::system::{Outcome, Program, run_all, search};

fn bounds(interruptions: usize, blocks: usize, occurrences: usize) -> Bounds {
    Bounds { interruptions, blocks, occurrences }
}

/// Two threads with a block of four steps each. Entering and leaving are steps of this system; leaving is one of the
/// block, entering is not.
fn two_blocks() -> Program {
    let block = |x| vec![Enter, Inc(x), Inc(x), Inc(x), Exit];
    vec![block(0), block(1)]
}

/// Where a thread that could have gone on in an open block was stopped, by thread and step, and how many whole
/// blocks of others ended before it went on.
fn interruptions(program: &Program, outcome: &Outcome) -> Vec<(u32, usize, usize)> {
    let mut nesting = Nesting::default();
    let mut at = vec![0; program.len()];
    let mut found: Vec<(u32, usize, usize)> = Vec::new();
    let mut stopped: Vec<Option<usize>> = vec![None; program.len()];
    for (i, event) in outcome.events.iter().enumerate() {
        let thread = event.thread;
        if let Some(previous) = i.checked_sub(1).map(|p| outcome.events[p].thread)
            && previous != thread
            && nesting.open(previous).is_some()
        {
            stopped[previous.index()] = Some(found.len());
            found.push((previous.0, at[previous.index()], 0));
        }
        stopped[thread.index()] = None;
        nesting.step(thread);
        let ended = nesting.observe(event);
        if ended.is_some_and(|e| e.steps > 0) {
            stopped.iter().flatten().for_each(|&n| found[n].2 += 1);
        }
        at[thread.index()] += 1;
    }
    found
}

#[test]
fn every_place_of_every_block_is_interrupted_once_and_then_the_search_ends() {
    let program = two_blocks();
    for seed in 0..20 {
        let mut strategy = search(Interrupt::new(Bounds::default()), seed, 1_000);
        let outcomes = run_all(&program, &mut strategy);
        let stops: Vec<_> = outcomes.iter().flat_map(|o| interruptions(&program, o)).collect();
        let places: BTreeSet<(u32, usize)> = stops.iter().map(|s| (s.0, s.1)).collect();
        // After the first step of a block, before each of the three that are left.
        let all: BTreeSet<_> = (0..2).flat_map(|t| [2, 3, 4].map(|at| (t, at))).collect();
        assert_eq!(places, all, "seed {seed}");
        assert_eq!(stops.len(), places.len(), "each once, seed {seed}");
        assert!(outcomes.len() >= all.len() + DRY as usize);
        assert_eq!(strategy.coverage(), Coverage::Complete);
    }
}

#[test]
fn two_interruptions_need_two() {
    // Variable 0 is 2 at the end of thread 1's block only if thread 0 is interrupted twice.
    let program = vec![
        vec![Enter, Inc(0), Inc(0), Inc(0), Exit],
        vec![Enter, FailIf(0, 1), Exit, Enter, FailIf(0, 2), Exit],
    ];
    let both = |outcome: &Outcome| {
        let order: Vec<u32> = outcome.trace.clone();
        interruptions(&program, outcome).iter().filter(|s| s.0 == 0).count() >= 2
            && order.len() > 10
    };
    for (allowed, expected) in [(1, false), (2, true)] {
        let mut strategy = search(Interrupt::new(bounds(allowed, 1, 4)), 3, 10_000);
        let outcomes = run_all(&program, &mut strategy);
        assert_eq!(strategy.coverage(), Coverage::Complete);
        assert_eq!(outcomes.iter().any(both), expected, "{allowed} interruptions");
    }
}

#[test]
fn an_interrupted_block_goes_on_after_so_many_others() {
    let many = std::iter::repeat_n([Enter, Inc(0), Exit], 10).flatten().collect();
    let program: Program = vec![vec![Enter, Inc(1), Inc(1), Exit], many];
    for blocks in 1..5 {
        let mut strategy = search(Interrupt::new(bounds(1, blocks, 1)), 7, 100);
        let outcomes = run_all(&program, &mut strategy);
        let first = |o: &Outcome| interruptions(&program, o).into_iter().find(|s| s.0 == 0);
        let longest = outcomes.iter().filter_map(first).map(|s| s.2).max();
        assert_eq!(longest, Some(blocks));
    }
}

#[test]
fn a_thread_that_cannot_go_on_is_not_interrupted() {
    // Both blocks need the lock: a thread that waits for it lets the other one run.
    let block = vec![Enter, Acquire(0), Inc(0), Release(0), Exit];
    let program = vec![block.clone(), block];
    let mut strategy = search(Interrupt::new(bounds(1, 4, 4)), 1, 1_000);
    for outcome in run_all(&program, &mut strategy) {
        assert!(!outcome.deadlock && !outcome.cut);
        assert_eq!(outcome.vars, [(0, 2)]);
    }
    assert_eq!(strategy.coverage(), Coverage::Complete);
}

#[test]
fn without_blocks_it_is_a_random_walk_that_claims_nothing() {
    let program = vec![vec![Inc(0); 3], vec![Inc(0); 3]];
    let mut strategy = search(Interrupt::new(Bounds::default()), 1, 100);
    assert_eq!(run_all(&program, &mut strategy).len(), 100);
    assert_eq!(strategy.coverage(), Coverage::Sample);
}

/// Blocks of one to four steps on two variables, with steps between them.
fn programs() -> impl Strategy<Value = Program> {
    let step = (0u64..2).prop_map(Inc);
    let block = proptest::collection::vec(step.clone(), 1..4)
        .prop_map(|steps| [vec![Enter], steps, vec![Exit]].concat());
    let part = prop_oneof![2 => block, 1 => step.prop_map(|s| vec![s])];
    let thread = proptest::collection::vec(part, 0..4).prop_map(|parts| parts.concat());
    proptest::collection::vec(thread, 2..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn at_most_so_many_interruptions_and_never_the_same_ones(
        program in programs(), allowed in 1usize..3, seed in 0u64..1_000,
    ) {
        let has_blocks = program.iter().flatten().any(|i| matches!(i, Enter));
        let mut strategy = search(Interrupt::new(bounds(allowed, 2, 4)), seed, 20_000);
        let mut lists = BTreeSet::new();
        if has_blocks {
            let outcomes = run_all(&program, &mut strategy);
            prop_assert_eq!(strategy.coverage(), Coverage::Complete);
            for outcome in outcomes {
                let stops = interruptions(&program, &outcome);
                prop_assert!(stops.len() <= allowed, "{:?}", stops);
                let places: Vec<(u32, usize)> = stops.iter().map(|s| (s.0, s.1)).collect();
                prop_assert!(places.len() < allowed || lists.insert(places));
                let enters = outcome.events.iter().filter(|e| matches!(e.op, Op::RegionEnter(..)));
                prop_assert_eq!(
                    enters.count(),
                    program.iter().flatten().filter(|i| matches!(i, Enter)).count()
                );
            }
        }
    }
}
