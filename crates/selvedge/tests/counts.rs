//! Exhaustive search over real programs: exact counts.

use selvedge::sync::atomic::{AtomicUsize, Ordering};
use selvedge::sync::{Arc, Mutex};
use selvedge::{Explore, Summary, thread};

fn all<F: Fn() + Send + Sync + 'static>(strategy: &str, body: F) -> Summary {
    let explore = Explore::new().strategy(strategy).schedules(1_000_000).analyses("none");
    let summary = explore.run(body).expect("correct");
    assert!(summary.complete);
    summary
}

fn multinomial(lengths: &[u64]) -> u64 {
    let factorial = |n: u64| (1..=n).product::<u64>();
    lengths.iter().fold(factorial(lengths.iter().sum()), |n, &l| n / factorial(l))
}

/// Threads that each make some steps, on one variable or on one each. Main only joins them in order.
fn steps(lengths: &'static [u64], one: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = lengths
            .iter()
            .map(|&n| {
                let x = if one { Arc::clone(&shared) } else { Arc::new(AtomicUsize::new(0)) };
                thread::spawn(move || {
                    for _ in 0..n {
                        x.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        // Joining is a step of its own and could come anywhere after the thread's last: leave the
        // handles alone, so that the steps are the threads' own.
        threads.into_iter().for_each(drop);
    }
}

#[test]
fn every_interleaving_once() {
    for lengths in [&[1, 1][..], &[3, 3], &[2, 2, 2], &[4, 1, 2], &[1, 1, 1, 1, 1]] {
        assert_eq!(
            all("dfs", steps(lengths, true)).executions,
            multinomial(lengths),
            "{lengths:?}"
        );
        assert_eq!(all("dfs", steps(lengths, false)).executions, multinomial(lengths));
    }
}

#[test]
fn every_class_once() {
    for lengths in [&[1, 1][..], &[3, 3], &[2, 2, 2]] {
        assert_eq!(all("dpor", steps(lengths, true)).classes, Some(multinomial(lengths)));
        let independent = all("dpor", steps(lengths, false));
        assert_eq!((independent.classes, independent.executions), (Some(1), 1));
    }
}

#[test]
fn preemptions_are_bounded_exactly() {
    assert_eq!(all("dfs:0", steps(&[5, 5], true)).executions, 2);
    assert_eq!(all("dfs:1", steps(&[5, 5], true)).executions, 2 + 2 * 4);
}

#[test]
fn critical_sections_are_ordered_in_every_way() {
    let body = |n: usize| {
        move || {
            let lock = Arc::new(Mutex::new(0));
            for _ in 0..n {
                let lock = Arc::clone(&lock);
                thread::spawn(move || *lock.lock().unwrap() += 1);
            }
        }
    };
    for n in 1..=4 {
        let orders = multinomial(&vec![1; n]);
        assert_eq!(all("dfs", body(n)).executions, orders);
        assert_eq!(all("dpor", body(n)).classes, Some(orders));
    }
}

#[test]
fn a_lock_that_is_tried_is_seen_held() {
    // With somebody trying, releases are steps: the try comes before, inside, or after.
    let outcomes = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let seen = std::sync::Arc::clone(&outcomes);
    let body = move || {
        let lock = Arc::new(Mutex::new(0));
        let theirs = Arc::clone(&lock);
        let other = thread::spawn(move || *theirs.lock().unwrap() += 1);
        let result = lock.try_lock().map(|g| *g).ok();
        seen.lock().unwrap().insert(result);
        other.join().unwrap();
    };
    all("dfs", body);
    let outcomes = outcomes.lock().unwrap();
    assert_eq!(outcomes.iter().copied().collect::<Vec<_>>(), [None, Some(0), Some(1)]);
}

#[test]
fn store_buffering_has_its_three_sequentially_consistent_outcomes() {
    for strategy in ["dfs", "dpor"] {
        let outcomes =
            std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
        let seen = std::sync::Arc::clone(&outcomes);
        all(strategy, move || {
            let x = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
            let y = Arc::clone(&x);
            let other = thread::spawn(move || {
                y.1.store(1, Ordering::SeqCst);
                y.0.load(Ordering::SeqCst)
            });
            x.0.store(1, Ordering::SeqCst);
            let mine = x.1.load(Ordering::SeqCst);
            seen.lock().unwrap().insert((mine, other.join().unwrap()));
        });
        let outcomes: Vec<_> = outcomes.lock().unwrap().iter().copied().collect();
        assert_eq!(outcomes, [(0, 1), (1, 0), (1, 1)], "{strategy}");
    }
}
