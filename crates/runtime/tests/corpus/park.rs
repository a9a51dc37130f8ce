use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
static mut DATA: u32 = 0;
fn main() {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = flag.clone();
    let sleeper = thread::spawn(move || {
        #[cfg(not(fixed))]
        unsafe { (&raw const DATA).read_volatile() }; // race(data)
        while !seen.load(Ordering::Acquire) {
            thread::park();
        }
        unsafe { (&raw const DATA).read_volatile() };
    });
    unsafe {
        (&raw mut DATA).write_volatile(1); // race(data)
    }
    flag.store(true, Ordering::Release);
    sleeper.thread().unpark();
    sleeper.join().unwrap();
}
