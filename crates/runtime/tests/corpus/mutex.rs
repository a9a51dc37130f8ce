use std::sync::{Arc, Condvar, Mutex};
use std::thread;
static mut PLAIN: u32 = 0;
fn main() {
    let shared = Arc::new((Mutex::new(0u64), Condvar::new()));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                for _ in 0..5000 {
                    *shared.0.lock().unwrap() += 1;
                }
                shared.1.notify_all();
                #[cfg(not(fixed))]
                unsafe {
                    PLAIN += 1; // race(plain)
                }
            })
        })
        .collect();
    {
        let mut count = shared.0.lock().unwrap();
        while *count < 15000 {
            count = shared.1.wait(count).unwrap();
        }
    }
    for t in threads {
        t.join().unwrap();
    }
    println!("{} {}", shared.0.lock().unwrap(), unsafe { PLAIN });
}
