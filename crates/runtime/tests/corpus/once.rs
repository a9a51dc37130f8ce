use std::sync::{Barrier, LazyLock, Once, OnceLock};
use std::thread;
static ONCE: Once = Once::new();
static CELL: OnceLock<Vec<u32>> = OnceLock::new();
static LAZY: LazyLock<Vec<u32>> = LazyLock::new(|| (0..100).collect());
static mut VALUE: u32 = 0;
fn main() {
    let barrier = Barrier::new(3);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                barrier.wait();
                #[cfg(fixed)]
                ONCE.call_once(|| unsafe { VALUE = 7 });
                #[cfg(not(fixed))]
                unsafe {
                    ONCE.call_once(|| {});
                    VALUE = 7; // race(value)
                }
                let cell = CELL.get_or_init(|| (0..50).collect());
                std::hint::black_box(cell[7] + LAZY[9]);
                #[cfg(fixed)]
                std::hint::black_box(unsafe { VALUE });
            });
        }
    });
    println!("{}", unsafe { VALUE });
}
