use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};
use std::thread;
fn main() {
    let head = Arc::new(AtomicPtr::new(std::ptr::null_mut::<u64>()));
    let count = Arc::new(AtomicUsize::new(0));
    let (producer_head, producer_count) = (head.clone(), count.clone());
    let producer = thread::spawn(move || {
        for i in 0..200u64 {
            let item = Box::into_raw(Box::new(0));
            unsafe { *item = i }; // race(item)
            #[cfg(fixed)]
            fence(Ordering::Release);
            producer_head.store(item, Ordering::Relaxed);
            producer_count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut sum = 0;
    while count.load(Ordering::Relaxed) < 200 {
        let item = head.load(Ordering::Relaxed);
        #[cfg(fixed)]
        fence(Ordering::Acquire);
        if !item.is_null() {
            sum += unsafe { *item }; // race(item)
        }
    }
    let last = head.load(Ordering::Relaxed);
    #[cfg(fixed)]
    fence(Ordering::Acquire);
    sum += unsafe { *last }; // race(item)
    producer.join().unwrap();
    println!("{}", sum > 0);
}
