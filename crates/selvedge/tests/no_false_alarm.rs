//! Atomic blocks that are right are never reported: a queue behind a mutex, random scenarios, predicates that are coarser
//! than equality by chance, operations that wait, under every strategy there is.

use selvedge::sync::{Arc, Condvar, Mutex};
use selvedge::{Explore, Undecided, atomic, observe_by, same, thread};
use selvedge_explore::registry::STRATEGIES;

/// Numbers of a linear congruence.
#[derive(Clone)]
struct Choices(u64);

impl Choices {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

struct Queue {
    items: Mutex<Vec<u64>>,
    changed: Condvar,
    /// There is one place, and operations wait until they can be done.
    waits: bool,
}

impl Queue {
    fn push(&self, value: u64) {
        let mut items = self.items.lock().unwrap();
        while self.waits && !items.is_empty() {
            items = self.changed.wait(items).unwrap();
        }
        items.push(value);
        self.changed.notify_all();
    }

    fn pop(&self) -> u64 {
        let mut items = self.items.lock().unwrap();
        while self.waits && items.is_empty() {
            items = self.changed.wait(items).unwrap();
        }
        let value = if items.is_empty() { 0 } else { items.remove(0) };
        self.changed.notify_all();
        value
    }
}

/// What each thread does: a number to push, or 0 to pop.
fn plans(choices: &mut Choices, waits: bool) -> Vec<Vec<u64>> {
    if waits {
        // As much is pushed as is popped, or one of them would wait for ever.
        return vec![(1..4).collect(), vec![0; 3]];
    }
    let threads = 2 + choices.below(2);
    let op = |choices: &mut Choices| choices.below(2) * (1 + choices.below(4));
    (0..threads).map(|_| (0..2).map(|_| op(choices)).collect()).collect()
}

/// Does the scenario of a seed and observes by predicates of that seed.
fn body(seed: u64, waits: bool) {
    let mut choices = Choices(seed);
    let plans = plans(&mut choices, waits);
    let (modulus, left) = (1 + choices.below(4), choices.below(4));
    let queue = Arc::new(Queue { items: Mutex::default(), changed: Condvar::new(), waits });
    let work = |plan: Vec<u64>| {
        let queue = Arc::clone(&queue);
        move || {
            for value in plan {
                if value > 0 {
                    atomic("push", || queue.push(value));
                    continue;
                }
                let popped = atomic("pop", || queue.pop());
                // Values are the same if they have the same remainder: all of them, if that is by 1.
                let alike = move |a: &u64, b: &u64| a % modulus == b % modulus;
                observe_by("popped", &popped, same::by(alike));
            }
        }
    };
    let threads: Vec<_> = plans.into_iter().map(|plan| thread::spawn(work(plan))).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let items = queue.items.lock().unwrap().clone();
    match left {
        0 => observe_by("left", &items, same::set()),
        1 => observe_by("left", &items, same::multiset()),
        2 => observe_by("left", &items, same::within(2.0)),
        _ => observe_by("left", &items, same::on(Vec::len)),
    }
}

fn is_unforced(undecided: &Undecided) -> bool {
    matches!(undecided, Undecided::Unforced { .. })
}

#[test]
fn a_queue_behind_a_mutex_is_linearizable_by_every_strategy_and_predicate() {
    let named = STRATEGIES.iter().map(|strategy| strategy.name);
    for (number, strategy) in named.chain(["interrupt:2", "dfs:2", "pct:3"]).enumerate() {
        for scenario in 0..8 {
            let seed = number as u64 * 8 + scenario;
            for waits in [false, true] {
                let explore = Explore::new().strategy(strategy).schedules(60).seed(seed);
                let told = format!("{strategy}, seed {seed}, waits {waits}");
                let summary = explore.run(move || body(seed, waits));
                let summary = summary.unwrap_or_else(|failure| panic!("{told}: {failure}"));
                assert!(!summary.undecided.iter().any(is_unforced), "{told}: {summary:?}");
                assert_eq!(summary.interleavings.unexplained.interleavings, 0, "{told}");
            }
        }
    }
}

/// The test above can fail: with a queue that forgets its lock between looking and taking it does.
#[test]
fn a_queue_that_looks_first_is_reported_by_the_same_body() {
    let explore = Explore::new().strategy("interrupt");
    let failure = explore.run(|| {
        let items = Arc::new(Mutex::new(vec![1_u64, 2]));
        let pop = || {
            let items = Arc::clone(&items);
            move || {
                let popped = atomic("pop", || {
                    let first = items.lock().unwrap()[0];
                    items.lock().unwrap().remove(0);
                    first
                });
                observe_by("popped", &popped, same::by(|a: &u64, b: &u64| a % 3 == b % 3));
            }
        };
        let threads = [thread::spawn(pop()), thread::spawn(pop())];
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    let failure = failure.expect_err("two threads pop the same");
    assert_eq!(failure.kind(), selvedge::events::Kind::LinearizabilityViolation, "{failure}");
}
