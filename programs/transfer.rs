// Shape: deadlock of two `std::sync::Mutex`es taken in opposite order by two transfers.
// Idea: the bank transfer of every introduction to deadlocks.
// Shows: a hang, if both hold their first account.
// Fixed: the account that comes first is locked first.
use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::thread;

struct Account {
    number: u32,
    money: Mutex<i64>,
}

/// What a real program does besides: each line is a place where threads can change.
fn note(lines: usize) {
    static LOG: Mutex<usize> = Mutex::new(0);
    (0..lines).for_each(|_| *LOG.lock().unwrap() += 1);
}

fn transfer(from: &Account, to: &Account, amount: i64) {
    if cfg!(fixed) && from.number > to.number {
        let mut theirs = to.money.lock().unwrap();
        let mut ours = from.money.lock().unwrap();
        *ours -= amount;
        *theirs += amount;
        return;
    }
    let mut ours = from.money.lock().unwrap();
    let mut theirs = to.money.lock().unwrap();
    *ours -= amount;
    *theirs += amount;
}

/// What a real program does in between: computes for some microseconds.
fn work() {
    let hash = (0..75_000u32)
        .fold(2_166_136_261u32, |hash, i| black_box(hash ^ i).wrapping_mul(16_777_619));
    black_box(hash);
}

fn main() {
    let [a, b] = [1, 2].map(|number| Arc::new(Account { number, money: Mutex::new(100) }));
    let there = thread::spawn({
        let (a, b) = (a.clone(), b.clone());
        move || {
            transfer(&a, &b, 10);
            note(20);
        }
    });
    work();
    let back = thread::spawn({
        let (a, b) = (a.clone(), b.clone());
        move || {
            note(20);
            transfer(&b, &a, 10);
        }
    });
    there.join().unwrap();
    back.join().unwrap();
    assert_eq!(*a.money.lock().unwrap() + *b.money.lock().unwrap(), 200);
}
