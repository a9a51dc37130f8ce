use std::cell::UnsafeCell;
use std::sync::RwLock;
use std::thread;
struct Shared(RwLock<Vec<u64>>, UnsafeCell<u64>);
unsafe impl Sync for Shared {}
fn main() {
    let shared = Shared(RwLock::new(vec![0; 8]), UnsafeCell::new(0));
    thread::scope(|s| {
        for n in 0..3 {
            let shared = &shared;
            s.spawn(move || {
                for i in 0..2000 {
                    if i % 10 == n {
                        shared.0.write().unwrap()[i % 8] += 1;
                    } else {
                        let data = shared.0.read().unwrap();
                        std::hint::black_box(data[i % 8]);
                    }
                }
                #[cfg(not(fixed))]
                unsafe {
                    *shared.1.get() += 1; // race(cell)
                }
            });
        }
    });
    println!("{} {}", shared.0.read().unwrap().iter().sum::<u64>(), unsafe { *shared.1.get() });
}
