//! The share of failing executions after a beginning, against the probability by enumeration.

use std::sync::Arc;

use selvedge_engine::executor::{Ask, Executor, Factory, Outcome};
use selvedge_engine::margin::{Share, at_most, jump, margin};
use selvedge_engine::{Heartbeat, Sought};
use selvedge_explore::{Choice, Prefix, RandomWalk, Rng, Strategy};
use selvedge_model::{Schedule, ThreadId};

use crate::simulated::{Programs, Simulated};
use crate::system::{Instr, Program};

/// Goes through all ways on from a beginning, each with its probability under a random walk.
#[derive(Default)]
struct Ways {
    /// Of each choice after the beginning: what was chosen, of how many.
    path: Vec<(usize, usize)>,
    depth: usize,
}

impl Ways {
    fn probability(&self) -> f64 {
        self.path.iter().map(|&(_, of)| 1.0 / of as f64).product()
    }

    /// The next way, if there is one.
    fn advance(&mut self) -> bool {
        while let Some((chosen, of)) = self.path.pop() {
            if chosen + 1 < of {
                self.path.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

impl Strategy for &mut Ways {
    fn begin(&mut self, _rng: Rng) -> bool {
        self.depth = 0;
        true
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        if self.depth == self.path.len() {
            self.path.push((0, choice.candidates()));
        }
        self.depth += 1;
        choice.candidate(self.path[self.depth - 1].0)
    }
}

fn fails(executor: &mut Simulated, strategy: &mut dyn Strategy, rng: Rng) -> (bool, Schedule) {
    strategy.begin(rng);
    let execution = executor.run(strategy, &Ask::default()).expect("a simulation");
    (execution.outcome != Outcome::Exited(0), execution.schedule)
}

fn exact(executor: &mut Simulated, schedule: &Schedule, choices: usize) -> f64 {
    let mut ways = Ways::default();
    let mut probability = 0.0;
    loop {
        let mut strategy = Prefix::new(schedule, choices, &mut ways);
        if fails(executor, &mut strategy, Rng::new(0)).0 {
            probability += ways.probability();
        }
        if !ways.advance() {
            return probability;
        }
    }
}

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
    const SAMPLES: u64 = 400;
    for (number, program) in programs().into_iter().enumerate() {
        let factory = Programs(Arc::new(program));
        let mut executor = factory.make(Heartbeat::default()).expect("a simulation");
        let failing = (0..1000).find_map(|n| {
            let mut walk = RandomWalk::default();
            let (failed, schedule) = fails(&mut executor, &mut walk, Rng::of_execution(1, n));
            failed.then_some(schedule)
        });
        let schedule = failing.expect("a random walk fails now and then");
        let ask = Ask::default();
        let sought = Sought::default();
        let shares = margin(&mut executor, &schedule, &sought, &ask, SAMPLES, |_| true);
        let shares = shares.expect("a simulation");
        assert_eq!(shares.first().map(|s| s.choices), Some(0));
        assert_eq!(shares.last().map(|s| (s.choices, s.shown)), Some((schedule.len(), SAMPLES)));
        for share in &shares {
            let exact = exact(&mut executor, &schedule, share.choices);
            let deviation = (exact * (1.0 - exact) / SAMPLES as f64).sqrt();
            let off = (share.share() - exact).abs();
            // Five standard deviations: the seed is fixed, so this holds always or never.
            assert!(off <= 5.0 * deviation + 1e-9, "program {number}: {share:?}, exactly {exact}");
        }
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
