// The twin of fence.c: a value handed over by a flag without the writer's fence.
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering, fence};

struct Shared(UnsafeCell<i64>);

// SAFETY: a false promise, which is the bug: nothing orders the two accesses.
unsafe impl Sync for Shared {}

static VALUE: Shared = Shared(UnsafeCell::new(0));
static READY: AtomicBool = AtomicBool::new(false);

fn main() {
    let writer = std::thread::spawn(|| {
        // SAFETY: there is none; see above.
        unsafe { *VALUE.0.get() = 42 };
        READY.store(true, Ordering::Relaxed);
    });
    let mut seen = 42;
    if READY.load(Ordering::Relaxed) {
        fence(Ordering::Acquire);
        // SAFETY: there is none; see above.
        seen = unsafe { *VALUE.0.get() };
    }
    writer.join().unwrap();
    std::process::exit(i32::from(seen != 42));
}
