//! The share of failing executions after a beginning, against the probability by going through all ways on.

use selvedge_engine::Sought;
use selvedge_engine::executor::{Ask, Executor, Outcome};
use selvedge_engine::margin::{Share, margin};
use selvedge_explore::{Choice, Prefix, RandomWalk, Rng, Strategy};
use selvedge_model::{Schedule, ThreadId};

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

fn fails<X: Executor<Error: std::fmt::Debug>>(
    executor: &mut X,
    strategy: &mut dyn Strategy,
    rng: Rng,
) -> (bool, Schedule) {
    strategy.begin(rng);
    let execution = executor.run(strategy, &Ask::default()).expect("it runs");
    (execution.outcome != Outcome::Exited(0), execution.schedule)
}

fn exact<X: Executor<Error: std::fmt::Debug>>(
    executor: &mut X,
    schedule: &Schedule,
    choices: usize,
) -> f64 {
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

/// Looks for a failing execution of a program that fails under some schedules only, samples its beginnings, and
/// compares each share with the probability.
pub(crate) fn agree<X: Executor<Error: std::fmt::Debug>>(
    executor: &mut X,
    samples: u64,
    name: &str,
) -> Vec<Share> {
    let failing = (0..1000).find_map(|n| {
        let mut walk = RandomWalk::default();
        let (failed, schedule) = fails(executor, &mut walk, Rng::of_execution(1, n));
        failed.then_some(schedule)
    });
    let schedule = failing.expect("a random walk fails now and then");
    let shares =
        margin(executor, &schedule, &Sought::default(), &Ask::default(), samples, |_| true);
    let shares = shares.expect("it runs");
    assert_eq!(shares.first().map(|s| s.choices), Some(0), "{name}");
    assert_eq!(shares.last().map(|s| (s.choices, s.shown)), Some((schedule.len(), samples)));
    for share in &shares {
        let exact = exact(executor, &schedule, share.choices);
        let deviation = (exact * (1.0 - exact) / samples as f64).sqrt();
        let off = (share.share() - exact).abs();
        // Five standard deviations: the seed is fixed, so this holds always or never.
        assert!(off <= 5.0 * deviation + 1e-9, "{name}: {share:?}, exactly {exact}");
    }
    shares
}
