//! Two threads count behind a mutex and a reader-writer lock of the standard library.

use std::sync::{Arc, Mutex, RwLock};

fn main() {
    let counts = Arc::new((Mutex::new(0u64), RwLock::new(0u64)));
    let count = |counts: Arc<(Mutex<u64>, RwLock<u64>)>| {
        for _ in 0..3 {
            *counts.0.lock().unwrap() += 1;
            *counts.1.write().unwrap() += *counts.0.lock().unwrap();
            std::hint::black_box(*counts.1.read().unwrap());
        }
    };
    let other = std::thread::spawn({
        let counts = counts.clone();
        move || count(counts)
    });
    count(counts.clone());
    other.join().unwrap();
    assert_eq!(*counts.0.lock().unwrap(), 6);
}
