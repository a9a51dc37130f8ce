//! `serial`: an order of blocks is executed as it is, or it is said why not.

use proptest::prelude::*;
use selvedge_explore::{Abstraction, Serial, Strategy as _, Turn, Unforced};
use selvedge_model::{LockId, Nesting, ThreadId};

use crate::system::Instr::*;
use crate::system::{Outcome, Program, Search, run, search};

/// In this system threads have the same numbers in every execution.
#[derive(Clone, Copy, Debug)]
struct Numbers;

impl Abstraction for Numbers {
    fn thread(&self, thread: ThreadId) -> u64 {
        u64::from(thread.0)
    }
    fn lock(&self, lock: LockId) -> u64 {
        u64::from(lock.0)
    }
}

fn forced(program: &Program, turns: &[Turn]) -> (Outcome, Option<Unforced>) {
    let strategy = Serial::new(turns.to_vec(), Vec::new(), Numbers);
    let mut search: Search<Serial<Numbers>> = search(strategy, 0, 1);
    let outcome = run(program, &mut search).expect("one is wanted");
    (outcome, search.strategy.unforced())
}

/// The threads whose blocks ended, in order; none if a thread ran while another had an open block.
fn blocks(outcome: &Outcome) -> Option<Vec<u64>> {
    let mut nesting = Nesting::default();
    let mut ended = Vec::new();
    let threads = outcome.events.iter().map(|e| e.thread.0 + 1).max().unwrap_or(0);
    for event in &outcome.events {
        let others = (0..threads).map(ThreadId).filter(|&t| t != event.thread);
        if others.clone().any(|t| nesting.open(t).is_some()) {
            return None;
        }
        nesting.step(event.thread);
        if nesting.observe(event).is_some_and(|e| e.steps > 0) {
            ended.push(u64::from(event.thread.0));
        }
    }
    Some(ended)
}

fn block(x: u64) -> Vec<crate::system::Instr> {
    vec![Enter, Load(x), StoreNext(x), Exit]
}

#[test]
fn orders_are_forced_as_they_are() {
    let program = vec![[block(0), block(0)].concat(), block(0), block(0)];
    for order in [[0, 0, 1, 2], [2, 1, 0, 0], [0, 1, 0, 2], [1, 0, 2, 0]] {
        let (outcome, unforced) = forced(&program, &order.map(Turn::Block));
        assert_eq!((blocks(&outcome), unforced), (Some(order.to_vec()), None));
        assert_eq!(outcome.vars, [(0, 4)], "no update is lost in a serial execution");
    }
}

#[test]
fn a_block_that_needs_another_thread_waits() {
    let spins = vec![vec![Enter, Inc(1), Spin(0, 1), Exit], vec![Enter, Store(0, 1), Exit]];
    let locks = vec![
        vec![Enter, Inc(1), Acquire(0), Release(0), Exit],
        vec![Acquire(0), Enter, Inc(2), Exit, Release(0)],
    ];
    for (program, held) in [(spins, false), (locks, true)] {
        let [zero, one] = [Turn::Block(0), Turn::Block(1)];
        let step = if held { vec![Turn::Step(1)] } else { Vec::new() };
        let (_, unforced) = forced(&program, &[&step[..], &[zero, one]].concat());
        assert_eq!(unforced, Some(Unforced::Waits(0)));
        let turns = [&step[..], &[one], &step, &[zero]].concat();
        let (outcome, unforced) = forced(&program, &turns);
        assert_eq!((blocks(&outcome), unforced), (Some(vec![1, 0]), None));
    }
}

#[test]
fn a_block_that_does_not_come_is_missed() {
    let program = vec![block(0), block(0)];
    let (_, unforced) = forced(&program, &[Turn::Block(0), Turn::Block(0), Turn::Block(1)]);
    assert_eq!(unforced, Some(Unforced::Missed(1)));
    let (_, unforced) = forced(&program, &[0, 1, 1].map(Turn::Block));
    assert_eq!(unforced, Some(Unforced::Missed(2)));
}

#[test]
fn what_is_outside_runs_as_far_as_a_block_needs_it_and_keeps_its_place() {
    // The block of thread 0 waits for a store of thread 1, which is outside of blocks.
    let program =
        vec![vec![Spin(0, 1), Enter, Inc(1), Exit], vec![Inc(2), Store(0, 1), Enter, Inc(1), Exit]];
    let (outcome, unforced) = forced(&program, &[0, 1].map(Turn::Block));
    assert_eq!((blocks(&outcome), unforced), (Some(vec![0, 1]), None));
    // A step outside of blocks that came before a block comes before it again.
    let program = vec![vec![Enter, FailIf(0, 1), Inc(1), Exit], vec![Store(0, 1), Store(0, 0)]];
    for (turns, fails) in [
        (vec![Turn::Block(0)], false),
        (vec![Turn::Step(1), Turn::Block(0)], true),
        (vec![Turn::Step(1), Turn::Step(1), Turn::Block(0)], false),
    ] {
        let (outcome, unforced) = forced(&program, &turns);
        assert_eq!((outcome.failed, unforced), (fails, None), "{turns:?}");
    }
}

#[test]
fn any_serial_execution_is_serial_and_there_are_several() {
    let program = vec![
        [block(0), vec![Inc(3)], block(0)].concat(),
        block(0),
        [vec![Inc(3)], block(0)].concat(),
    ];
    let mut orders = std::collections::BTreeSet::new();
    let mut search = search(Serial::any(Numbers), 5, 200);
    while let Some(outcome) = run(&program, &mut search) {
        orders.insert(blocks(&outcome).expect("serial"));
        assert_eq!(search.strategy.unforced(), None);
    }
    assert_eq!(orders.len(), 12, "all orders of four blocks of which two are of one thread");
    assert!(search.strategy.follows_steps());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Blocks that never wait can be forced into every order.
    #[test]
    fn blocks_that_do_not_wait_are_forced_into_any_order(
        counts in proptest::collection::vec(0usize..4, 2..4), seed in any::<u64>(), steps in 0usize..3,
    ) {
        let part = |t: usize| [vec![Inc(9); steps], block(t as u64 % 2)].concat();
        let program: Program = counts.iter().enumerate().map(|(t, &n)| part(t).repeat(n)).collect();
        let mut order: Vec<u64> =
            counts.iter().enumerate().flat_map(|(t, &n)| std::iter::repeat_n(t as u64, n)).collect();
        selvedge_explore::Rng::new(seed).shuffle(&mut order);
        let turns: Vec<Turn> = order.iter().copied().map(Turn::Block).collect();
        let (outcome, unforced) = forced(&program, &turns);
        prop_assert_eq!(unforced, None);
        prop_assert_eq!(blocks(&outcome), Some(order));
    }
}
