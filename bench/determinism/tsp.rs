// The twin of tsp.c: threads take first cities from a counter, and prune by the best length so far, which they read
// without a lock. All tours are equally long, so the tour depends on the schedule, and the length does not.
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use selvedge::same;

const CITIES: usize = 4;

struct Search {
    next: AtomicUsize,
    best: AtomicI32,
    tour: Mutex<(i32, Vec<usize>)>,
}

impl Search {
    fn visit(&self, path: &mut Vec<usize>, length: i32) {
        if length >= self.best.load(Ordering::Relaxed) {
            return;
        }
        if path.len() == CITIES {
            let length = length + 50;
            let mut found = self.tour.lock().unwrap();
            if length < found.0 {
                *found = (length, path.clone());
                self.best.store(length, Ordering::Relaxed);
            }
            return;
        }
        for city in 1..CITIES {
            if !path.contains(&city) {
                path.push(city);
                self.visit(path, length + 50);
                path.pop();
            }
        }
    }
}

fn main() {
    let search = Arc::new(Search {
        next: AtomicUsize::new(1),
        best: AtomicI32::new(i32::MAX),
        tour: Mutex::new((i32::MAX, Vec::new())),
    });
    selvedge::deterministic("tsp", || {
        selvedge::assume("cities", &CITIES);
        let start = |_| {
            let search = Arc::clone(&search);
            std::thread::spawn(move || {
                loop {
                    let city = search.next.fetch_add(1, Ordering::Relaxed);
                    if city >= CITIES {
                        return;
                    }
                    search.visit(&mut vec![0, city], 50);
                }
            })
        };
        let threads: Vec<_> = (0..2).map(start).collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        let found = search.tour.lock().unwrap();
        selvedge::ensure_by("found", &*found, same::on(|found: &(i32, Vec<usize>)| found.0));
    });
}
