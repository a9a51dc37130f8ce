// The twin of raytracer.c: every thread adds its lines to one checksum under a lock of its own, which excludes no
// thread, and says how far it is without a lock.
use std::cell::UnsafeCell;
use std::sync::{Arc, Mutex};

const ROWS: i64 = 6;
const THREADS: i64 = 2;

struct Picture {
    checksum: UnsafeCell<i64>,
    rows_done: UnsafeCell<i64>,
}

// SAFETY: it is not: the bug of the program.
unsafe impl Sync for Picture {}

fn line(row: i64) -> i64 {
    (0..8).map(|column: i64| (row * 31 + column * column) % 251).sum()
}

fn render(picture: &Picture, number: i64) {
    let mine = Mutex::new(());
    for row in (number..ROWS).step_by(THREADS as usize) {
        let sum = line(row);
        let _mine = mine.lock().unwrap();
        // SAFETY: other threads do the same, see above.
        unsafe {
            *picture.checksum.get() += sum;
            *picture.rows_done.get() = row;
        }
    }
}

fn main() {
    let picture =
        Arc::new(Picture { checksum: UnsafeCell::new(0), rows_done: UnsafeCell::new(0) });
    selvedge::deterministic("raytracer", || {
        selvedge::assume("rows", &ROWS);
        let start = |number| {
            let picture = Arc::clone(&picture);
            std::thread::spawn(move || render(&picture, number))
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        // SAFETY: the threads have ended.
        selvedge::ensure("checksum", unsafe { &*picture.checksum.get() });
    });
}
