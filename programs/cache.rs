// Shape: check-then-act on a locked map. The map is checked and filled under its lock, but not under a
// single acquisition of it; the value is made twice.
// Idea: `ConcurrentHashMap` used with get and put instead of put-if-absent (Shacham et al., OOPSLA 2011).
// Shows: the assertion, if both threads miss.
// Fixed: one guard for question and answer.
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

static MADE: AtomicU32 = AtomicU32::new(0);

type Map = Mutex<HashMap<&'static str, u32>>;

fn make() -> u32 {
    MADE.fetch_add(1, Ordering::Relaxed)
}

#[cfg(fixed)]
fn get(map: &Map) -> u32 {
    *map.lock().unwrap().entry("key").or_insert_with(make)
}

#[cfg(not(fixed))]
fn get(map: &Map) -> u32 {
    let known = map.lock().unwrap().get("key").copied();
    known.unwrap_or_else(|| *map.lock().unwrap().entry("key").insert_entry(make()).get())
}

/// What a real program does in between: computes for some microseconds.
fn work() {
    let hash = (0..75_000u32)
        .fold(2_166_136_261u32, |hash, i| black_box(hash ^ i).wrapping_mul(16_777_619));
    black_box(hash);
}

fn main() {
    let map: Arc<Map> = Arc::default();
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let map = map.clone();
            let thread = thread::spawn(move || get(&map));
            work();
            thread
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(MADE.load(Ordering::Relaxed), 1, "the value is made once");
}
