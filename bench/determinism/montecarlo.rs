// The twin of montecarlo.c: the results of the paths come into a list in the order in which the threads are done. Only
// which results there are is determined.
use std::sync::{Arc, Mutex};

use selvedge::same;

const PATHS: u64 = 6;
const THREADS: u64 = 3;

fn path(number: u64) -> f64 {
    let mut state = 1000 + number;
    (0..10).fold(100.0, |price: f64, _| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        price * (1.0 + 0.02 * ((state >> 33) as f64 / 2147483648.0 - 0.5))
    })
}

fn main() {
    let results = Arc::new(Mutex::new(Vec::new()));
    selvedge::deterministic("montecarlo", || {
        selvedge::assume("paths", &PATHS);
        let start = |number: u64| {
            let results = Arc::clone(&results);
            std::thread::spawn(move || {
                for i in (number..PATHS).step_by(THREADS as usize) {
                    let price = path(i);
                    results.lock().unwrap().push(price);
                }
            })
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        selvedge::ensure_by("results", &*results.lock().unwrap(), same::multiset());
    });
}
