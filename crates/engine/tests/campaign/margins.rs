//! The share of failing executions after a beginning, on simulated programs.

use std::sync::Arc;

use selvedge_engine::Heartbeat;
use selvedge_engine::executor::Factory;
use selvedge_engine::margin::{Share, at_most, jump};

use crate::simulated::Programs;
use crate::system::{Instr, Program};
use crate::ways;

/// Five small programs that fail under some schedules only.
fn programs() -> [Program; 5] {
    let (lock, unlock, write) = (Instr::Acquire, Instr::Release, Instr::Write);
    let locks = |a, b| vec![lock(a), lock(b), unlock(b), unlock(a)];
    [
        vec![locks(0, 1), locks(1, 0)],
        vec![vec![write(5), lock(0), lock(1), unlock(1), unlock(0)], locks(1, 0)],
        vec![locks(0, 1), locks(1, 2), locks(2, 0)],
        vec![[vec![lock(2)], locks(0, 1), vec![unlock(2)]].concat(), locks(1, 0)],
        vec![[locks(0, 1), vec![write(7)]].concat(), [vec![write(7)], locks(1, 0)].concat()],
    ]
}

#[test]
fn shares_agree_with_the_probability_by_enumeration() {
    for (number, program) in programs().into_iter().enumerate() {
        let factory = Programs(Arc::new(program), None);
        let mut executor = factory.make(Heartbeat::default()).expect("a simulation");
        let shares = ways::agree(&mut executor, 400, &format!("program {number}"));
        let (before, after) = jump(&shares).expect("the failure becomes certain at some choice");
        assert!(before.share() < after.share());
    }
}

#[test]
fn intervals_and_bounds_are_those_of_the_textbook() {
    let half = Share { choices: 0, shown: 50, of: 100 };
    let (low, high) = half.interval();
    assert!((low - 0.4038).abs() < 1e-3 && (high - 0.5962).abs() < 1e-3, "{low} {high}");
    let none = Share { choices: 0, shown: 0, of: 10 };
    assert!(none.interval().0 == 0.0 && (none.interval().1 - 0.2775).abs() < 1e-3);
    // The rule of three, which is its approximation.
    assert!((at_most(300) - 0.00994).abs() < 1e-4);
}
