use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;
static READY: AtomicU32 = AtomicU32::new(0);
static SLEEPS: Mutex<u32> = Mutex::new(0);
static mut DATA: u32 = 0;
fn main() {
    let sleeper = thread::spawn(|| {
        #[cfg(not(fixed))]
        unsafe {
            DATA += 1; // race(data)
        }
        while READY.load(Ordering::Acquire) == 0 {
            *SLEEPS.lock().unwrap() += 1;
            thread::park_timeout(Duration::from_secs(600));
        }
        #[cfg(fixed)]
        unsafe {
            DATA += 1;
        }
    });
    unsafe {
        DATA += 1; // race(data)
    }
    READY.store(1, Ordering::Release);
    sleeper.thread().unpark();
    sleeper.join().unwrap();
    println!("{}", unsafe { DATA });
}
