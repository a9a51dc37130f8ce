use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
static mut DATA: [u32; 4] = [0; 4];
fn main() {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = flag.clone();
    let sleeper = thread::spawn(move || {
        #[cfg(not(fixed))]
        std::hint::black_box(unsafe { DATA[std::hint::black_box(1)] }); // race(data)
        while !seen.load(Ordering::Acquire) {
            thread::park();
        }
        std::hint::black_box(unsafe { DATA[std::hint::black_box(1)] });
    });
    unsafe {
        DATA[std::hint::black_box(1)] = 1; // race(data)
    }
    flag.store(true, Ordering::Release);
    sleeper.thread().unpark();
    sleeper.join().unwrap();
}
