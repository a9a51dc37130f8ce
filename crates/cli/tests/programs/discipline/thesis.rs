//! ForkLock, ChangeLocks, SyncObject and ReadShared of Hominy Grits, section 5.4.1; the argument chooses.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

static LOCK: Mutex<()> = Mutex::new(());
static M: Mutex<()> = Mutex::new(());
static N: Mutex<()> = Mutex::new(());
static BARRIER: AtomicI32 = AtomicI32::new(3);
static OBJECT: Mutex<i32> = Mutex::new(0);
static mut FIELD: i32 = 0;
static mut CONSTANT: i32 = 0;

fn together(threads: usize, work: fn()) {
    let threads: Vec<_> = (0..threads).map(|_| thread::spawn(work)).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

fn increment() {
    unsafe {
        let field = &raw mut FIELD;
        field.write(field.read() + 1);
    }
}

/// One thread uses memory of its own between locks.
fn again(rounds: usize) {
    let work = move || {
        let mut row = vec![0u64; 64];
        for _ in 0..rounds {
            *OBJECT.lock().unwrap() += 1;
            row.iter_mut().for_each(|place| *std::hint::black_box(place) += 1);
        }
        std::hint::black_box(row);
    };
    thread::spawn(work).join().unwrap();
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("fork-lock") => {
            increment();
            together(2, || {
                for _ in 0..2 {
                    let _held = LOCK.lock().unwrap();
                    increment();
                }
            });
            increment();
        }
        Some("change-locks") => {
            increment();
            together(3, || {
                let held = M.lock().unwrap();
                increment();
                drop(held);
                BARRIER.fetch_sub(1, Ordering::AcqRel);
                while BARRIER.load(Ordering::Acquire) > 0 {
                    thread::yield_now();
                }
                let _held = N.lock().unwrap();
                increment();
            });
        }
        Some("again") => again(std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(1)),
        Some("sync-object") => together(5, || *OBJECT.lock().unwrap() += 1),
        _ => {
            let constant = &raw mut CONSTANT;
            unsafe { constant.write(8) };
            together(3, || {
                let constant = &raw const CONSTANT;
                for _ in 0..10 {
                    std::hint::black_box(unsafe { constant.read() });
                }
            });
            unsafe { constant.write(constant.read() + 1) };
        }
    }
}
