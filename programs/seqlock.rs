// Shape: sequence lock whose reader looks at the number only once, before it reads.
// Idea: the seqlocks of Linux; the second look is what makes them work.
// Shows: the assertion, if the writer comes between the two reads.
// Fixed: looks again and reads again if the number has changed.
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

static NUMBER: AtomicU32 = AtomicU32::new(0);
static LEFT: AtomicU32 = AtomicU32::new(0);
static RIGHT: AtomicU32 = AtomicU32::new(0);

fn write(value: u32) {
    NUMBER.fetch_add(1, SeqCst);
    LEFT.store(value, SeqCst);
    RIGHT.store(value, SeqCst);
    NUMBER.fetch_add(1, SeqCst);
}

fn read() -> (u32, u32) {
    loop {
        let before = NUMBER.load(SeqCst);
        if before % 2 == 1 {
            thread::yield_now();
            continue;
        }
        let pair = (LEFT.load(SeqCst), RIGHT.load(SeqCst));
        if !cfg!(fixed) || NUMBER.load(SeqCst) == before {
            return pair;
        }
    }
}

/// What a real program does in between: computes for some microseconds.
fn work() {
    let hash = (0..75_000u32)
        .fold(2_166_136_261u32, |hash, i| black_box(hash ^ i).wrapping_mul(16_777_619));
    black_box(hash);
}

fn main() {
    let writer = thread::spawn(|| write(7));
    work();
    let reader = thread::spawn(|| {
        let (left, right) = read();
        assert_eq!(left, right, "a torn pair");
    });
    writer.join().unwrap();
    reader.join().unwrap();
}
