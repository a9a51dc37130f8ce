//! A deadlock: two threads take two locks in opposite orders.
//!
//! The deadlock need not happen for it to be found. One execution shows that the locks are taken in both
//! orders; the analysis predicts the deadlock, and a directed schedule makes it happen. Run it with
//! `cargo run --example deadlock`.

use selvedge::sync::{Arc, Mutex};
use selvedge::{Explore, thread};

struct Account {
    number: u32,
    balance: Mutex<i64>,
}

fn accounts() -> (Arc<Account>, Arc<Account>) {
    let account = |number| Arc::new(Account { number, balance: Mutex::new(100) });
    (account(1), account(2))
}

fn transfer(from: &Account, to: &Account, amount: i64) {
    let mut from = from.balance.lock().unwrap();
    let mut to = to.balance.lock().unwrap();
    *from -= amount;
    *to += amount;
}

/// Always locks the account with the smaller number first.
fn transfer_in_order(from: &Account, to: &Account, amount: i64) {
    let (first, second, amount) =
        if from.number < to.number { (from, to, amount) } else { (to, from, -amount) };
    transfer(first, second, amount);
}

fn there_and_back(transfer: fn(&Account, &Account, i64)) {
    let (a, b) = accounts();
    let (their_a, their_b) = (Arc::clone(&a), Arc::clone(&b));
    let other = thread::spawn(move || transfer(&their_a, &their_b, 10));
    transfer(&b, &a, 20);
    other.join().unwrap();
    assert_eq!(*a.balance.lock().unwrap() + *b.balance.lock().unwrap(), 200);
}

fn main() {
    let failure = Explore::new().run(|| there_and_back(transfer)).expect_err("the bug is found");
    assert_eq!(failure.kind().name(), "deadlock");
    println!("{failure}");

    let mended = Explore::new().run(|| there_and_back(transfer_in_order));
    let summary = mended.expect("the mended program is correct");
    println!("mended: no failure in {} executions", summary.executions);
}

#[test]
fn it_runs() {
    main();
}
