//! Programs that try to make a confirmer confirm what is not there. A false confirmation is the worst
//! that can happen: each of these has a twin in which the bug is real, so that silence means something.

use proptest::prelude::*;
use selvedge_explore::deadlocks::Trivial;
use selvedge_explore::{AtomFuzzer, DeadlockFuzzer, Meet, RaceFuzzer};
use selvedge_model::{Event, Op, SiteId, ThreadId, Waiter};

use crate::directed::{held, opposite};
use crate::system::Instr::*;
use crate::system::{Instr, Program, run, search, site};

const EXECUTIONS: u64 = 60;

fn races(program: &Program, first: SiteId, second: SiteId) -> usize {
    let mut fuzzer = search(RaceFuzzer::new(first, second), 5, EXECUTIONS);
    let mut confirmed = 0;
    while let Some(outcome) = run(program, &mut fuzzer) {
        assert!(!outcome.cut, "pausing never stalls");
        confirmed += usize::from(fuzzer.reached().is_some());
    }
    confirmed
}

#[test]
fn accesses_that_a_flag_orders_do_not_race() {
    let ordered = vec![vec![Write(0), Store(1, 1)], vec![Await(1, 1), Read(0)]];
    assert_eq!(races(&ordered, site(0, 0), site(1, 1)), 0);
    // The flag is raised too early.
    let early = vec![vec![Store(1, 1), Write(0)], vec![Await(1, 1), Read(0)]];
    assert!(races(&early, site(0, 1), site(1, 1)) > 40);
}

#[test]
fn a_compare_exchange_that_fails_does_not_race_with_a_read() {
    let fails = vec![vec![Exchange(0, 7, 1)], vec![Read(0)]];
    assert_eq!(races(&fails, site(0, 0), site(1, 0)), 0);
    let succeeds = vec![vec![Exchange(0, 0, 1)], vec![Read(0)]];
    assert_eq!(races(&succeeds, site(0, 0), site(1, 0)), EXECUTIONS as usize);
    let written = vec![vec![Exchange(0, 7, 1)], vec![Write(0)]];
    assert_eq!(races(&written, site(0, 0), site(1, 0)), EXECUTIONS as usize);
}

#[test]
fn a_lock_that_is_given_up_before_the_access_does_not_order_it() {
    let early = vec![vec![Acquire(0), Release(0), Write(0)], vec![Acquire(0), Release(0), Read(0)]];
    assert_eq!(races(&early, site(0, 2), site(1, 2)), EXECUTIONS as usize);
    let again = vec![
        vec![Again(0), Again(0), Release(0), Write(0), Release(0)],
        vec![Again(0), Read(0), Release(0)],
    ];
    assert_eq!(races(&again, site(0, 3), site(1, 1)), 0, "the recursive lock is still held");
}

/// How often the target's cycle was there, and how often another one.
fn deadlocks(program: &Program, cycle: &[Waiter]) -> (usize, usize) {
    let mut fuzzer = search(DeadlockFuzzer::new(cycle, &Trivial, Trivial), 5, EXECUTIONS);
    let mut count = (0, 0);
    while let Some(outcome) = run(program, &mut fuzzer) {
        assert!(!outcome.cut);
        let there = !fuzzer.reached().is_empty();
        assert!(!there || outcome.deadlock, "what is reached is a deadlock");
        count.0 += usize::from(there);
        count.1 += usize::from(!fuzzer.elsewhere().is_empty());
    }
    count
}

#[test]
fn another_deadlock_does_not_confirm_the_predicted_one() {
    // The predicted cycle is behind a gate; a real one at other places comes after it.
    let half = |inner: [Instr; 4], at: [u32; 2]| -> Vec<Instr> {
        let gated = [vec![Acquire(7)], inner.to_vec(), vec![Release(7)]].concat();
        // They wait for each other first, so that the open one is not rare.
        let open = [Inc(9), Await(9, 2), Acquire(at[0]), Acquire(at[1]), Release(at[1])].to_vec();
        [gated, open].concat()
    };
    let program = vec![
        half([Acquire(0), Acquire(1), Release(1), Release(0)], [2, 3]),
        half([Acquire(1), Acquire(0), Release(0), Release(1)], [3, 2]),
    ];
    let waiter = |t: usize, from: usize, hold: u32, want: u32| Waiter {
        thread: ThreadId(t as u32),
        holds: vec![held(hold, t, from)],
        wants: held(want, t, from + 1),
    };
    let predicted = [waiter(0, 1, 0, 1), waiter(1, 1, 1, 0)];
    let (there, elsewhere) = deadlocks(&program, &predicted);
    assert_eq!(there, 0);
    assert!(elsewhere > 0, "the other one does happen");
    let real = [waiter(0, 8, 2, 3), waiter(1, 8, 3, 2)];
    assert_eq!(deadlocks(&program, &real), (EXECUTIONS as usize, 0));
}

#[test]
fn a_lock_acquired_again_by_its_holder_is_no_deadlock() {
    let program = vec![
        vec![Again(0), Again(0), Again(1), Release(1), Release(0), Release(0)],
        vec![Again(0), Again(1), Again(1), Release(1), Release(1), Release(0)],
    ];
    let cycle = [
        Waiter { thread: ThreadId(0), holds: vec![held(0, 0, 0)], wants: held(0, 0, 1) },
        Waiter { thread: ThreadId(1), holds: vec![held(1, 1, 1)], wants: held(1, 1, 2) },
    ];
    assert_eq!(deadlocks(&program, &cycle), (0, 0));
    // Twice acquired and once released is held; released as often as acquired it is not.
    let twice = |releases: usize| -> Program {
        let first = [vec![Again(0), Again(0)], vec![Release(0); releases], vec![Again(1)]].concat();
        vec![first, vec![Again(1), Again(0)]]
    };
    let cycle = |want: usize| {
        [
            Waiter { thread: ThreadId(0), holds: vec![held(0, 0, 0)], wants: held(1, 0, want) },
            Waiter { thread: ThreadId(1), holds: vec![held(1, 1, 0)], wants: held(0, 1, 1) },
        ]
    };
    assert_eq!(deadlocks(&twice(1), &cycle(3)), (EXECUTIONS as usize, 0));
    assert_eq!(deadlocks(&twice(2), &cycle(4)), (0, 0));
}

#[test]
fn who_waits_for_a_limited_time_is_not_in_a_deadlock() {
    let program = vec![vec![Acquire(0), Timed(1)], vec![Acquire(1), Timed(0)]];
    let (_, cycle) = opposite(0);
    assert_eq!(deadlocks(&program, &cycle), (0, 0));
}

#[test]
fn a_lock_that_another_thread_has_released_is_not_held() {
    // Thread 1 frees lock 0 for thread 0 and takes it: nobody waits for thread 0.
    let program = vec![
        vec![Acquire(0), Store(9, 1), Await(9, 2), Acquire(1), Release(1)],
        vec![
            Await(9, 1),
            ReleaseTheirs(0),
            Acquire(1),
            Acquire(0),
            Release(0),
            Release(1),
            Store(9, 2),
        ],
    ];
    let cycle = [
        Waiter { thread: ThreadId(0), holds: vec![held(0, 0, 0)], wants: held(1, 0, 3) },
        Waiter { thread: ThreadId(1), holds: vec![held(1, 1, 2)], wants: held(0, 1, 3) },
    ];
    assert_eq!(deadlocks(&program, &cycle), (0, 0));
}

/// A thread that comes to its part after the other one has begun.
fn late(body: Vec<Instr>) -> Vec<Instr> {
    [vec![Inc(9); 40], body].concat()
}

fn splits(program: &Program, fuzzer: AtomFuzzer) -> usize {
    let mut fuzzer = search(fuzzer, 5, EXECUTIONS);
    let mut confirmed = 0;
    while let Some(outcome) = run(program, &mut fuzzer) {
        assert!(!outcome.cut);
        confirmed += usize::from(!fuzzer.violations().is_empty());
    }
    confirmed
}

#[test]
fn what_did_not_happen_does_not_come_between() {
    // The other thread fails to get the lock, or to exchange the value, while the block is between its
    // two steps.
    let block =
        |middle: Vec<Instr>, last: Vec<Instr>| [vec![Enter], middle, last, vec![Exit]].concat();
    let fails: Program =
        vec![block(vec![Load(1), Load(2)], vec![Load(1)]), late(vec![Exchange(1, 7, 8)])];
    assert_eq!(splits(&fails, AtomFuzzer::new()), 0);
    let succeeds: Program =
        vec![block(vec![Load(1), Load(2)], vec![Load(1)]), late(vec![Exchange(1, 0, 8)])];
    assert!(splits(&succeeds, AtomFuzzer::new()) > 40);
    let tries = |other: Vec<Instr>| -> Program {
        vec![
            block(
                vec![Acquire(5), Acquire(0), Release(0)],
                vec![Acquire(0), Release(0), Release(5)],
            ),
            other,
        ]
    };
    // Nobody gets lock 0 who does not have lock 5.
    let guarded = tries(vec![Acquire(5), Acquire(0), Release(0), Release(5)]);
    assert_eq!(splits(&guarded, AtomFuzzer::new()), 0);
    let open = tries(late(vec![Acquire(0), Release(0)]));
    assert!(splits(&open, AtomFuzzer::new()) > 40);
    let tried: Program = vec![
        block(vec![Acquire(0), Load(3)], vec![Load(3), Release(0)]),
        vec![Try(0)],
        vec![Load(3)],
    ];
    assert_eq!(splits(&tried, AtomFuzzer::new()), 0);
}

#[test]
fn a_lock_held_throughout_is_not_acquired_twice() {
    let program = vec![
        vec![Enter, Again(0), Again(0), Release(0), Again(0), Release(0), Release(0), Exit],
        vec![Again(0), Release(0)],
    ];
    assert_eq!(splits(&program, AtomFuzzer::new()), 0);
    let pair = [site(0, 2), site(0, 4)];
    assert_eq!(splits(&program, AtomFuzzer::aimed(pair, None)), 0);
}

#[test]
fn two_executions_of_a_block_are_not_one() {
    // The first step in one execution of the block, the second in the next.
    let program = vec![vec![Enter, Load(1), Exit, Enter, Store(1, 5), Exit], late(vec![Inc(1)])];
    let aimed = || AtomFuzzer::aimed([site(0, 1), site(0, 4)], None);
    assert_eq!(splits(&program, aimed().inside_region()), 0);
    // The store is the fifth instruction here as well.
    let one = vec![vec![Enter, Load(1), Load(2), Load(3), Store(1, 5), Exit], late(vec![Inc(1)])];
    assert!(splits(&one, aimed().inside_region()) > 40);
    assert!(splits(&program, aimed()) > 40, "without a block they are a pair");
}

#[test]
fn lock_regions_are_blocks_if_one_says_so() {
    // Program 6.3 of the thesis: a common lock around both keeps the inner one from coming between.
    let inner = [Acquire(1), Release(1), Acquire(1), Release(1)];
    let region = |lock: u32| [vec![Acquire(lock)], inner.to_vec(), vec![Release(lock)]].concat();
    let common = vec![region(0), region(0)];
    assert_eq!(splits(&common, AtomFuzzer::lock_regions()), 0);
    let apart = vec![region(0), region(2)];
    assert!(splits(&apart, AtomFuzzer::lock_regions()) > 40);
    assert_eq!(splits(&apart, AtomFuzzer::new()), 0, "nothing is annotated");
    // Two regions one after the other are two blocks.
    let one_by_one =
        vec![vec![Acquire(1), Release(1), Acquire(1), Release(1)], vec![Acquire(1), Release(1)]];
    assert_eq!(splits(&one_by_one, AtomFuzzer::lock_regions()), 0);
}

fn meetings(program: &Program, meet: Meet) -> usize {
    let mut meet = search(meet, 5, EXECUTIONS);
    let mut count = 0;
    while let Some(outcome) = run(program, &mut meet) {
        assert!(!outcome.cut);
        if let [a, b] = meet.met() {
            assert_ne!(a, b);
            count += 1;
        }
    }
    count
}

#[test]
fn threads_meet_where_they_are_told_to() {
    let far = |x: u64| [vec![Inc(x); 40], vec![Write(0)], vec![Inc(x); 40]].concat();
    let program = vec![far(1), [vec![Write(0)], vec![Inc(2); 40]].concat()];
    let places = vec![vec![site(0, 40)], vec![site(1, 0), site(1, 99)]];
    assert_eq!(meetings(&program, Meet::new(places.clone())), EXECUTIONS as usize);
    let same = Meet::new(places.clone()).at_one_object();
    assert_eq!(meetings(&program, same), EXECUTIONS as usize);
    let other = vec![far(1), vec![Write(3)]];
    assert!(meetings(&other, Meet::new(places.clone())) > 40);
    assert_eq!(meetings(&other, Meet::new(places).at_one_object()), 0);
}

#[test]
fn threads_that_a_lock_keeps_apart_do_not_meet() {
    let section = vec![Acquire(0), Write(0), Release(0)];
    let program = vec![section.clone(), section];
    let places = vec![vec![site(0, 1)], vec![site(1, 1)]];
    assert_eq!(meetings(&program, Meet::new(places)), 0);
    // One thread is not two, and a thread that has ended is nowhere.
    let alone = vec![vec![Write(0), Write(0)], vec![Inc(1)]];
    let places = vec![vec![site(0, 0), site(0, 1)], vec![site(0, 1)]];
    assert_eq!(meetings(&alone, Meet::new(places)), 0);
}

/// Any straight-line threads whose locks are released in reverse order.
fn any_program() -> impl Strategy<Value = Program> {
    let leaf = prop_oneof![
        (0u64..3).prop_map(Read),
        (0u64..3).prop_map(Write),
        (0u64..3).prop_map(Inc),
        (0u64..3).prop_map(Load),
        (0u64..3, 0i64..3).prop_map(|(x, old)| Exchange(x, old, 1)),
        (0u32..3).prop_map(Try),
    ];
    let nest = leaf.prop_map(|i| vec![i]).prop_recursive(3, 8, 3, |inner| {
        (0u32..3, prop::collection::vec(inner, 0..3)).prop_map(|(lock, inside)| {
            [vec![Again(lock)], inside.concat(), vec![Release(lock)]].concat()
        })
    });
    let thread = prop::collection::vec(nest, 1..4).prop_map(|parts| {
        // A tried lock may have been acquired; a thread keeps it to its end.
        parts.concat()
    });
    prop::collection::vec(thread, 2..4)
}

/// Whether the events of an execution say that two accesses were not ordered: vector clocks over locks
/// and atomics, written from the definition.
struct Judge {
    clocks: Vec<Vec<u32>>,
    locks: std::collections::BTreeMap<u32, Vec<u32>>,
    vars: std::collections::BTreeMap<u64, Vec<u32>>,
    plain: Vec<(Event, Vec<u32>)>,
}

/// Lets a strategy run and keeps the events, plain ones as well.
struct Told<S>(S, Vec<Event>);

impl<S: selvedge_explore::Strategy> selvedge_explore::Strategy for Told<S> {
    fn begin(&mut self, rng: selvedge_explore::Rng) -> bool {
        self.1.clear();
        self.0.begin(rng)
    }
    fn choose(&mut self, choice: &selvedge_explore::Choice<'_>) -> ThreadId {
        self.0.choose(choice)
    }
    fn follows_steps(&self) -> bool {
        true
    }
    fn step(&mut self, thread: ThreadId, pending: &[selvedge_explore::Pending]) {
        self.0.step(thread, pending);
    }
    fn observe(&mut self, event: &Event) {
        self.1.push(*event);
        self.0.observe(event);
    }
    fn end(&mut self, pending: &[selvedge_explore::Pending]) {
        self.0.end(pending);
    }
}

impl Judge {
    fn unordered(events: &[Event], threads: usize) -> Vec<(Event, Event)> {
        let mut judge = Judge {
            clocks: (0..threads)
                .map(|t| (0..threads).map(|u| u32::from(t == u)).collect())
                .collect(),
            locks: Default::default(),
            vars: Default::default(),
            plain: Vec::new(),
        };
        let mut pairs = Vec::new();
        for event in events {
            judge.take(event, &mut pairs);
        }
        pairs
    }

    fn take(&mut self, event: &Event, pairs: &mut Vec<(Event, Event)>) {
        let t = event.thread.index();
        let join = |mine: &mut Vec<u32>, theirs: &Vec<u32>| {
            mine.iter_mut().zip(theirs).for_each(|(a, b)| *a = (*a).max(*b));
        };
        let zero = vec![0; self.clocks.len()];
        match event.op {
            Op::Acquire(l, _) => {
                let lock = self.locks.entry(l.0).or_insert(zero);
                join(&mut self.clocks[t], lock);
            }
            Op::Release(l, _) => {
                self.locks.insert(l.0, self.clocks[t].clone());
                self.clocks[t][t] += 1;
            }
            Op::Atomic(a, _) | Op::Read(a) | Op::Write(a) => {
                if let Op::Atomic(..) = event.op {
                    let var = self.vars.entry(a.addr).or_insert(zero);
                    join(&mut self.clocks[t], var);
                }
                for (other, clock) in &self.plain {
                    let (b, wrote) = match other.op {
                        Op::Read(b) => (b, false),
                        Op::Write(b) => (b, true),
                        Op::Atomic(b, op) => (b, op.writes()),
                        _ => continue,
                    };
                    let mine = match event.op {
                        Op::Write(_) => true,
                        Op::Atomic(_, op) => op.writes(),
                        _ => false,
                    };
                    let atomic = |e: &Event| matches!(e.op, Op::Atomic(..));
                    let o = other.thread.index();
                    let before = clock[o] <= self.clocks[t][o];
                    if a.addr == b.addr
                        && (wrote || mine)
                        && !before
                        && o != t
                        && !(atomic(other) && atomic(event))
                    {
                        pairs.push((*other, *event));
                    }
                }
                self.plain.push((*event, self.clocks[t].clone()));
                if let Op::Atomic(a, _) = event.op {
                    self.vars.insert(a.addr, self.clocks[t].clone());
                    self.clocks[t][t] += 1;
                }
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the program and the target, a race that is confirmed is a pair of accesses at the
    /// target's sites that nothing orders in that execution.
    #[test]
    fn a_confirmed_race_is_unordered_in_its_execution(program in any_program(), seed in 0u64..100) {
        let accesses: Vec<SiteId> = program
            .iter()
            .enumerate()
            .flat_map(|(t, body)| {
                let is_access = |i: &Instr| matches!(i, Read(_) | Write(_) | Inc(_) | Load(_) | Exchange(..));
                body.iter().enumerate().filter(move |(_, i)| is_access(i)).map(move |(at, _)| site(t, at))
            })
            .collect();
        for &first in accesses.iter().take(4) {
            for &second in accesses.iter().rev().take(4) {
                let mut told = search(Told(RaceFuzzer::new(first, second), Vec::new()), seed, 6);
                while run(&program, &mut told).is_some() {
                    let Some(pair) = told.0.reached() else { continue };
                    let unordered = Judge::unordered(&told.1, program.len());
                    let there = unordered.iter().any(|(a, b)| {
                        [a.thread, b.thread] == pair
 && [(first, second), (second, first)].contains(&(a.site, b.site))
                    });
                    prop_assert!(there, "{pair:?} at {first:?} and {second:?} in {:?}", told.1);
                }
            }
        }
    }
}
