//! Two threads lock two mutexes of the standard library in opposite order.

use std::sync::{Arc, Mutex};

fn main() {
    let (a, b) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let (c, d) = (a.clone(), b.clone());
    let other = std::thread::spawn(move || {
        let first = if cfg!(fixed) { c.lock() } else { d.lock() };
        let second = if cfg!(fixed) { d.lock() } else { c.lock() };
        drop((first, second));
    });
    let first = a.lock();
    let second = b.lock();
    drop((first, second));
    other.join().unwrap();
}
