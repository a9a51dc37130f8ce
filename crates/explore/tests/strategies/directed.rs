//! Directed strategies: they reach their target where chance does not, and are not to be fooled.

use selvedge_explore::deadlocks::Trivial;
use selvedge_explore::{
    Abstraction, AtomFuzzer, DeadlockFuzzer, RaceFuzzer, RandomWalk, Replay, Strategy, Witness,
};
use selvedge_model::{Held, LockId, Mode, Target, ThreadId, Waiter};

use crate::system::Instr::*;
use crate::system::{Program, Search, once, run, run_all, search, site};

pub(crate) fn held(lock: u32, thread: usize, at: usize) -> Held {
    Held { lock: LockId(lock), mode: Mode::Exclusive, site: site(thread, at) }
}

#[test]
fn two_accesses_far_apart_are_brought_together() {
    let mut early = vec![Write(0)];
    early.extend([Inc(1); 60]);
    let mut late = vec![Inc(2); 60];
    late.push(Read(0));
    let program = vec![early, late];
    let mut fuzzer = search(RaceFuzzer::new(site(0, 0), site(1, 60)), 1, 100);
    let mut firsts = [0; 2];
    while run(&program, &mut fuzzer).is_some() {
        let [first, second] = fuzzer.reached().expect("nothing keeps them apart");
        assert_ne!(first, second);
        firsts[first.index()] += 1;
    }
    assert!(firsts.iter().all(|&n| n > 25), "both orders are tried: {firsts:?}");
}

#[test]
fn a_race_with_the_same_statement_needs_two_threads_there() {
    let one = vec![vec![Write(0), Write(0)], vec![Inc(1), Inc(1)]];
    let mut fuzzer = search(RaceFuzzer::new(site(0, 0), site(0, 0)), 1, 20);
    while run(&one, &mut fuzzer).is_some() {
        assert_eq!(fuzzer.reached(), None);
    }
}

#[test]
fn no_race_is_confirmed_that_is_not_one() {
    let refused: [(&str, Program, usize); 4] = [
        (
            "a lock orders them",
            vec![vec![Acquire(0), Write(0), Release(0)], vec![Acquire(0), Read(0), Release(0)]],
            1,
        ),
        ("other memory", vec![vec![Write(0)], vec![Write(1)]], 0),
        ("both read", vec![vec![Read(0)], vec![Read(0)]], 0),
        ("both atomic", vec![vec![Inc(0)], vec![Inc(0)]], 0),
    ];
    for (why, program, at) in refused {
        let mut fuzzer = search(RaceFuzzer::new(site(0, at), site(1, at)), 1, 50);
        while let Some(outcome) = run(&program, &mut fuzzer) {
            assert_eq!(fuzzer.reached(), None, "{why}");
            assert!(!outcome.deadlock && !outcome.cut, "{why}: pausing never stalls");
        }
    }
}

/// Two threads that take two locks in opposite order, the second one long after the first has begun.
pub(crate) fn opposite(delay: usize) -> (Program, Vec<Waiter>) {
    let first =
        [vec![Acquire(0), Acquire(1), Release(1), Release(0)], vec![Inc(9); delay]].concat();
    let second =
        [vec![Inc(8); delay], vec![Acquire(1), Acquire(0), Release(0), Release(1)]].concat();
    let cycle = vec![
        Waiter { thread: ThreadId(0), holds: vec![held(0, 0, 0)], wants: held(1, 0, 1) },
        Waiter {
            thread: ThreadId(1),
            holds: vec![held(1, 1, delay)],
            wants: held(0, 1, delay + 1),
        },
    ];
    (vec![first, second], cycle)
}

#[test]
fn a_deadlock_that_chance_does_not_find_is_created() {
    let (program, cycle) = opposite(60);
    let chance = run_all(&program, &mut search(RandomWalk::default(), 1, 500))
        .iter()
        .filter(|o| o.deadlock)
        .count();
    assert!(chance < 25, "{chance}");
    let mut fuzzer = search(DeadlockFuzzer::new(&cycle, &Trivial, Trivial), 1, 50);
    while let Some(outcome) = run(&program, &mut fuzzer) {
        assert!(outcome.deadlock);
        assert_eq!(fuzzer.reached().len(), 2);
    }
}

#[test]
fn no_deadlock_is_confirmed_behind_a_gate() {
    // A third lock around both: the cycle cannot happen.
    let (program, cycle) = opposite(3);
    let guarded: Program =
        program.iter().map(|t| [vec![Acquire(7)], t.clone(), vec![Release(7)]].concat()).collect();
    let shifted: Vec<Waiter> = cycle
        .into_iter()
        .map(|mut w| {
            w.holds.iter_mut().chain([&mut w.wants]).for_each(|h| h.site.0 += 1);
            w.holds.insert(0, held(7, w.thread.index(), 0));
            w
        })
        .collect();
    let mut fuzzer = search(DeadlockFuzzer::new(&shifted, &Trivial, Trivial), 1, 50);
    while let Some(outcome) = run(&guarded, &mut fuzzer) {
        assert!(fuzzer.reached().is_empty() && !outcome.deadlock && !outcome.cut);
    }
}

/// Program 5.2 of the thesis: thread 1 takes the first lock alone on its way to the cycle, and if thread
/// 0 is paused in the cycle by then, thread 1 never gets there.
fn gate_on_the_way() -> (Program, Vec<Waiter>) {
    let program = vec![
        vec![Acquire(0), Acquire(1), Release(1), Release(0)],
        vec![Acquire(0), Release(0), Acquire(1), Acquire(0), Release(0), Release(1)],
    ];
    let cycle = vec![
        Waiter { thread: ThreadId(0), holds: vec![held(0, 0, 0)], wants: held(1, 0, 1) },
        Waiter { thread: ThreadId(1), holds: vec![held(1, 1, 2)], wants: held(0, 1, 3) },
    ];
    (program, cycle)
}

#[test]
fn yields_keep_the_way_into_a_cycle_free() {
    let (program, cycle) = gate_on_the_way();
    let with = {
        let mut fuzzer = search(DeadlockFuzzer::new(&cycle, &Trivial, Trivial), 1, 200);
        reached(&program, &mut fuzzer)
    };
    let without = {
        let mut fuzzer =
            search(DeadlockFuzzer::new(&cycle, &Trivial, Trivial).without_yields(), 1, 200);
        reached(&program, &mut fuzzer)
    };
    assert_eq!(with, (200, 0), "always, and without thrashing");
    assert!(without.0 < 160, "{without:?}");
}

fn reached<A: Abstraction>(
    program: &Program,
    fuzzer: &mut Search<DeadlockFuzzer<A>>,
) -> (usize, u64) {
    let mut total = (0, 0);
    while run(program, fuzzer).is_some() {
        total.0 += usize::from(!fuzzer.reached().is_empty());
        total.1 += fuzzer.thrashes();
    }
    total
}

#[test]
fn a_better_abstraction_thrashes_less() {
    struct ById;
    impl Abstraction for ById {
        fn thread(&self, thread: ThreadId) -> u64 {
            u64::from(thread.0)
        }
        fn lock(&self, lock: LockId) -> u64 {
            u64::from(lock.0)
        }
    }
    // The simulated sites differ per thread, so only locks are confused: thread 0 also nests two
    // other locks at the sites of the cycle, which the program makes by looping. Here: by repetition
    // of the target with other locks.
    let (program, cycle) = opposite(5);
    let other: Vec<Waiter> = cycle
        .iter()
        .cloned()
        .map(|mut w| {
            w.holds.iter_mut().chain([&mut w.wants]).for_each(|h| h.lock.0 += 10);
            w
        })
        .collect();
    let mut exact = search(DeadlockFuzzer::new(&other, &ById, ById), 1, 50);
    let (found, thrashes) = reached(&program, &mut exact);
    assert_eq!(thrashes, 0, "locks of another name are let pass");
    assert!(found < 50);
    let mut trivial = search(DeadlockFuzzer::new(&other, &Trivial, Trivial), 1, 50);
    assert_eq!(reached(&program, &mut trivial).0, 50, "without names the sites are enough");
}

#[test]
fn another_threads_critical_section_is_put_into_an_atomic_block() {
    // Check, then act, each under the lock, and another that acts in between.
    let program = vec![
        vec![Enter, Acquire(0), Load(1), Release(0), Acquire(0), StoreNext(1), Release(0), Exit],
        [vec![Inc(9); 40], vec![Acquire(0), Inc(1), Release(0)]].concat(),
    ];
    let mut fuzzer = search(AtomFuzzer::new(), 3, 50);
    while run(&program, &mut fuzzer).is_some() {
        let lock: Vec<_> =
            fuzzer.violations().iter().filter(|v| v.sites[0] == site(0, 1)).collect();
        assert_eq!(lock.len(), 1);
        assert_eq!((lock[0].victim, lock[0].intruder), (ThreadId(0), ThreadId(1)));
        assert_eq!(lock[0].sites, [site(0, 1), site(1, 40), site(0, 4)]);
    }
}

#[test]
fn a_predicted_pair_is_split_without_a_block() {
    let program = vec![
        vec![Acquire(0), Load(1), Release(0), Acquire(0), StoreNext(1), Release(0)],
        [vec![Inc(9); 40], vec![Acquire(0), Inc(1), Release(0)]].concat(),
    ];
    let pair = [site(0, 0), site(0, 3)];
    for between in [None, Some(site(1, 40))] {
        let mut fuzzer = search(AtomFuzzer::aimed(pair, between), 3, 50);
        while run(&program, &mut fuzzer).is_some() {
            assert_eq!(fuzzer.violations().len(), 1);
            assert_eq!(fuzzer.violations()[0].sites, [pair[0], site(1, 40), pair[1]]);
        }
    }
    let mut elsewhere = search(AtomFuzzer::aimed(pair, Some(site(1, 7))), 3, 50);
    while run(&program, &mut elsewhere).is_some() {
        assert!(elsewhere.violations().is_empty());
    }
}

#[test]
fn no_violation_is_confirmed_that_is_serializable() {
    let one_section = vec![
        vec![Enter, Acquire(0), Load(1), StoreNext(1), Release(0), Exit],
        vec![Acquire(0), Inc(1), Release(0)],
    ];
    let only_reads = vec![vec![Enter, Load(1), Load(1), Exit], vec![Load(1)]];
    let other_object = vec![vec![Enter, Load(1), Store(1, 2), Exit], vec![Inc(2)]];
    let no_block = vec![vec![Load(1), Store(1, 2)], vec![Inc(1)]];
    for program in [one_section, only_reads, other_object, no_block] {
        let mut fuzzer = search(AtomFuzzer::new(), 3, 50);
        while let Some(outcome) = run(&program, &mut fuzzer) {
            assert!(fuzzer.violations().is_empty(), "{program:?}");
            assert!(!outcome.deadlock && !outcome.cut);
        }
    }
}

#[test]
fn a_site_in_a_long_loop_does_not_stall_the_program() {
    let program: Program = vec![vec![Write(0); 2_000], vec![Inc(1); 2_000]];
    let mut fuzzer = search(RaceFuzzer::new(site(0, 5), site(1, 5)), 1, 1);
    let outcome = run(&program, &mut fuzzer).expect("one is wanted");
    assert!(!outcome.cut && !outcome.deadlock);
    // A spinning thread that waits for the paused one is let go by the livelock monitor.
    let spinning = vec![vec![Write(0), Store(1, 1)], vec![Spin(1, 1)]];
    let mut fuzzer = search(RaceFuzzer::new(site(0, 0), site(9, 9)), 1, 20);
    while let Some(outcome) = run(&spinning, &mut fuzzer) {
        assert!(!outcome.cut && !outcome.deadlock);
        assert!(fuzzer.follows_steps());
    }
}

/// What a strategy did can be done again, and whoever watches sees the same.
#[test]
fn a_witness_sees_in_a_replay_what_the_fuzzer_reached() {
    let race = vec![vec![Write(0), Inc(1), Inc(1)], vec![Inc(2), Inc(2), Read(0)]];
    let (opposite, cycle) = opposite(4);
    let targets = [
        (race, Target::Race { first: site(0, 0), second: site(1, 2) }),
        (opposite, Target::Deadlock(cycle.clone())),
    ];
    for (program, target) in targets {
        for seed in 0..20 {
            let recorded = match &target {
                Target::Race { first, second } => {
                    let mut fuzzer = search(RaceFuzzer::new(*first, *second), seed, 1);
                    run(&program, &mut fuzzer).expect("one is wanted");
                    assert!(fuzzer.reached().is_some());
                    fuzzer.schedule().clone()
                }
                _ => {
                    let fuzzer = DeadlockFuzzer::new(&cycle, &Trivial, Trivial);
                    let mut fuzzer = search(fuzzer, seed, 1);
                    run(&program, &mut fuzzer).expect("one is wanted");
                    assert!(!fuzzer.reached().is_empty());
                    fuzzer.schedule().clone()
                }
            };
            let replay = Replay::new(&recorded);
            let mut witness = once(Witness::new(replay, &target, &Trivial, Trivial));
            run(&program, &mut witness).expect("one is wanted");
            assert!(witness.witnessed(), "{target:?}");
        }
    }
}

#[test]
fn a_witness_is_not_to_be_fooled() {
    let refused: [(Program, Target); 3] = [
        (
            vec![vec![Acquire(0), Write(0), Release(0)], vec![Acquire(0), Read(0), Release(0)]],
            Target::Race { first: site(0, 1), second: site(1, 1) },
        ),
        (
            vec![vec![Write(0)], vec![Write(1)]],
            Target::Race { first: site(0, 0), second: site(1, 0) },
        ),
        (
            vec![
                vec![Acquire(0), Acquire(1), Release(1), Release(0)],
                vec![Acquire(0), Acquire(1), Release(1), Release(0)],
            ],
            Target::Deadlock(opposite(0).1),
        ),
    ];
    for (program, target) in refused {
        let walk = RandomWalk::default();
        let mut witness = search(Witness::new(walk, &target, &Trivial, Trivial), 1, 100);
        while run(&program, &mut witness).is_some() {
            assert!(!witness.witnessed(), "{target:?}");
        }
    }
}

#[test]
fn a_race_is_turned_round_and_nothing_else_changes() {
    let others = [Inc(8), Store(9, 1), Inc(8)];
    let program = vec![
        [&others[..], &[Put(0, 7), Inc(8)]].concat(),
        [&others[..], &[Get(0), StoreNext(1), Inc(8)]].concat(),
        others.to_vec(),
    ];
    for seed in 0..50 {
        let mut fuzzer = search(RaceFuzzer::new(site(0, 3), site(1, 3)), seed, 1);
        let one = run(&program, &mut fuzzer).expect("one is wanted");
        let [first, second] = fuzzer.reached().expect("nothing keeps them apart");
        let mut turned = once(fuzzer.turned().expect("it was reached"));
        let two = run(&program, &mut turned).expect("one is wanted");
        assert_eq!(turned.order().map(|o| o.map(|(t, _)| t)), Some([second, first]));
        let differ: Vec<usize> =
            (0..one.trace.len()).filter(|&i| one.trace[i] != two.trace[i]).collect();
        let at = differ[0];
        assert_eq!(differ, [at, at + 1], "{:?} and {:?}", one.trace, two.trace);
        assert_ne!(one.vars, two.vars);
    }
}

#[test]
fn two_acquisitions_of_one_lock_are_turned_round() {
    let locked = |instr| vec![Inc(8), Acquire(0), instr, Release(0), Inc(8)];
    let program = vec![locked(Store(0, 1)), locked(Store(0, 2)), vec![Inc(8), Inc(8)]];
    for seed in 0..50 {
        let mut fuzzer = search(RaceFuzzer::high_level(site(0, 1), site(1, 1)), seed, 1);
        let one = run(&program, &mut fuzzer).expect("one is wanted");
        let [first, second] = fuzzer.reached().expect("nothing keeps them apart");
        assert_eq!(one.vars[0], (0, i64::from(second.0) + 1), "the second one overwrites");
        let mut turned = once(fuzzer.turned().expect("it was reached"));
        let two = run(&program, &mut turned).expect("one is wanted");
        assert_eq!(two.vars[0], (0, i64::from(first.0) + 1));
        assert_eq!((two.deadlock, two.cut, two.trace.len()), (false, false, one.trace.len()));
    }
}

#[test]
fn no_high_level_race_is_reached_that_is_not_one() {
    let refused: [(&str, Program); 4] = [
        ("both load", vec![vec![Load(0)], vec![Load(0)]]),
        ("other atomics", vec![vec![Inc(0)], vec![Inc(1)]]),
        ("other locks", vec![vec![Acquire(0), Release(0)], vec![Acquire(1), Release(1)]]),
        ("a data race", vec![vec![Write(0)], vec![Read(0)]]),
    ];
    for (why, program) in refused {
        let mut fuzzer = search(RaceFuzzer::high_level(site(0, 0), site(1, 0)), 1, 20);
        while run(&program, &mut fuzzer).is_some() {
            assert_eq!(fuzzer.reached(), None, "{why}");
        }
    }
}
