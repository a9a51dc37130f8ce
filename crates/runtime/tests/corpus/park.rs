use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
static mut DATA: u32 = 0;
fn main() {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = flag.clone();
    let sleeper = thread::spawn(move || {
        while !seen.load(Ordering::Acquire) {
            thread::park();
        }
        std::hint::black_box(unsafe { DATA }); // race(data)
    });
    #[cfg(fixed)]
    unsafe {
        DATA = 1;
    }
    flag.store(true, Ordering::Release);
    sleeper.thread().unpark();
    #[cfg(not(fixed))]
    unsafe {
        DATA = 1; // race(data)
    }
    sleeper.join().unwrap();
}
