// Shape: single-producer ring that publishes its index before it stores the element.
// Idea: the order of the two stores, which every lock-free queue must get right.
// Shows: the assertion, if the consumer comes between the two.
// Fixed: stores first and then publishes.
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::thread;

const SIZE: usize = 4;
static SLOTS: [AtomicU32; SIZE] = [const { AtomicU32::new(0) }; SIZE];
static HEAD: AtomicUsize = AtomicUsize::new(0);
static TAIL: AtomicUsize = AtomicUsize::new(0);

fn push(value: u32) {
    let tail = TAIL.load(SeqCst);
    if cfg!(fixed) {
        SLOTS[tail % SIZE].store(value, SeqCst);
        TAIL.store(tail + 1, SeqCst);
    } else {
        TAIL.store(tail + 1, SeqCst);
        SLOTS[tail % SIZE].store(value, SeqCst);
    }
}

fn pop() -> Option<u32> {
    let head = HEAD.load(SeqCst);
    if head == TAIL.load(SeqCst) {
        return None;
    }
    let value = SLOTS[head % SIZE].load(SeqCst);
    HEAD.store(head + 1, SeqCst);
    Some(value)
}

/// What a real program does in between: computes for some microseconds.
fn work() {
    let hash = (0..75_000u32)
        .fold(2_166_136_261u32, |hash, i| black_box(hash ^ i).wrapping_mul(16_777_619));
    black_box(hash);
}

fn main() {
    let producer = thread::spawn(|| (1..=2).for_each(push));
    work();
    let consumer = thread::spawn(|| {
        let mut expected = 1;
        for _ in 0..3 {
            if let Some(value) = pop() {
                assert_eq!(value, expected, "an element that was never stored");
                expected += 1;
            }
        }
    });
    producer.join().unwrap();
    consumer.join().unwrap();
}
