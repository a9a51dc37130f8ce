// The twin of abba.c: two locks in two orders.
use std::sync::Mutex;

static A: Mutex<()> = Mutex::new(());
static B: Mutex<()> = Mutex::new(());

fn main() {
    let forth = std::thread::spawn(|| {
        let _a = A.lock().unwrap();
        let _b = B.lock().unwrap();
    });
    let back = std::thread::spawn(|| {
        let _b = B.lock().unwrap();
        let _a = A.lock().unwrap();
    });
    forth.join().unwrap();
    back.join().unwrap();
}
