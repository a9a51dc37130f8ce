//! The first attempt at a prediction with a witness follows the witness, and so confirms it.

use std::sync::Arc;

use proptest::prelude::*;
use selvedge_analyses::registry::{self, Settings};
use selvedge_engine::executor::Factory;
use selvedge_engine::observe::observe;
use selvedge_engine::{Attempt, Before, Confirmer, Heartbeat};

use crate::simulated::Programs;
use crate::system::Instr::{self, Acquire, Get, Inc, Load, Put, Read, Release, StoreNext, Write};
use crate::system::Program;

/// How many predictions have a witness, and how many of them the first attempt confirms.
fn first_attempts(program: &Program, seed: u64) -> (usize, usize) {
    let factory = Programs(Arc::new(program.clone()), None);
    let mut executor = factory.make(Heartbeat::default()).expect("a simulation");
    let analyses = registry::select(&["predictive"]).expect("it exists");
    let analyses = (&analyses[..], Settings::default());
    let observation =
        observe(&mut executor, seed, 2, analyses, &Before::default()).expect("a simulation");
    let releases = observation.releases;
    let confirmer = Confirmer { seed, input: seed, releases, usual: None, judged: 0 };
    // Another executor has other ids for the same places.
    let mut other = factory.make(Heartbeat::default()).expect("a simulation");
    let (mut led, mut confirmed) = (0, 0);
    for (number, seen) in (0..).zip(&observation.seen) {
        let prediction = seen.prediction.as_ref().expect("it has a target");
        led += usize::from(prediction.lead.is_some());
        let trial = confirmer.attempt(&mut other, prediction, number, 0).expect("a simulation");
        confirmed += usize::from(matches!(trial.attempt, Attempt::Confirmed(_)));
    }
    assert_eq!(led, observation.seen.len(), "what is predictive has a witness");
    (led, confirmed)
}

/// A race behind twenty critical sections, which both threads have to leave behind at once.
fn late_race() -> Program {
    let busy = |n: usize| [Acquire(0), Inc(9), Release(0)].repeat(n);
    let mut late = busy(20);
    late.extend([Write(3), Acquire(1), Release(1)]);
    let early = [vec![Acquire(1), Release(1), Read(3)], busy(20)].concat();
    vec![late, early]
}

#[test]
fn a_race_that_few_schedules_show_is_confirmed_by_the_first_attempt() {
    for seed in 0..20 {
        let (led, confirmed) = first_attempts(&late_race(), seed);
        assert_eq!((led, confirmed), (1, 1), "seed {seed}");
    }
}

fn instr() -> impl Strategy<Value = Vec<Instr>> {
    prop_oneof![
        (0..3u64).prop_map(|x| vec![Inc(x)]),
        (0..3u64).prop_map(|x| vec![Load(x), StoreNext(x)]),
        (3..6u64).prop_map(|x| vec![Read(x)]),
        (3..6u64).prop_map(|x| vec![Write(x)]),
        (3..6u64, 0..3i64).prop_map(|(x, v)| vec![Get(x), Put(x, v)]),
        (0..2u32, 3..6u64).prop_map(|(l, x)| vec![Acquire(l), Write(x), Release(l)]),
        (0..3u32, 0..3u32, 0..3u64)
            .prop_filter("two locks", |(a, b, _)| a != b)
            .prop_map(|(a, b, x)| vec![Acquire(a), Acquire(b), Inc(x), Release(b), Release(a)]),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let thread = proptest::collection::vec(instr(), 1..5).prop_map(|parts| parts.concat());
    proptest::collection::vec(thread, 2..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Every race and every deadlock that `predictive` reports happens in the execution that follows its witness.
    #[test]
    fn every_witness_is_followed_to_what_it_shows(program in program(), seed in 0..1000u64) {
        let (led, confirmed) = first_attempts(&program, seed);
        prop_assert_eq!(led, confirmed);
    }
}
