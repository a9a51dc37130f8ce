// The twin of withdraw.c: each half of `withdraw` is locked, the whole of it is not.
use std::sync::Mutex;

static BALANCE: Mutex<i64> = Mutex::new(100);

fn get() -> i64 {
    *BALANCE.lock().unwrap()
}

fn set(now: i64) {
    *BALANCE.lock().unwrap() = now;
}

#[inline(never)]
fn withdraw(amount: i64) {
    let now = get();
    if now >= amount {
        set(now - amount);
    }
}

fn main() {
    let customers = [60, 60].map(|amount| std::thread::spawn(move || withdraw(amount)));
    for customer in customers {
        customer.join().unwrap();
    }
}
