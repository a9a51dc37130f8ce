//! Mutex, Condvar, mpsc, RwLock, Once and park of the standard library; prints the order of arrival.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, OnceLock, RwLock, mpsc};
use std::thread;

static ONCE: OnceLock<u32> = OnceLock::new();

fn main() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let ready = Arc::new((Mutex::new(0), Condvar::new()));
    let table = Arc::new(RwLock::new(0));
    let barrier = Arc::new(Barrier::new(2));
    let (send, receive) = mpsc::channel();
    let workers: Vec<_> = (0..2)
        .map(|i| {
            let (order, ready, table) = (order.clone(), ready.clone(), table.clone());
            let (barrier, send) = (barrier.clone(), send.clone());
            thread::spawn(move || {
                barrier.wait();
                for round in 0..2 {
                    order.lock().unwrap().push(i * 10 + round);
                }
                *table.write().unwrap() += 1;
                assert!(*table.read().unwrap() >= 1);
                assert_eq!(*ONCE.get_or_init(|| 5), 5);
                *ready.0.lock().unwrap() += 1;
                ready.1.notify_all();
                send.send(i).unwrap();
            })
        })
        .collect();
    let mut count = ready.0.lock().unwrap();
    while *count < 2 {
        count = ready.1.wait(count).unwrap();
    }
    drop(count);
    let flag = Arc::new(AtomicBool::new(false));
    let parked = thread::spawn({
        let flag = flag.clone();
        move || {
            while !flag.load(Ordering::Acquire) {
                thread::park();
            }
        }
    });
    flag.store(true, Ordering::Release);
    parked.thread().unpark();
    parked.join().unwrap();
    let sum: i32 = receive.iter().take(2).sum();
    assert_eq!(sum, 1);
    for worker in workers {
        worker.join().unwrap();
    }
    println!("{:?}", order.lock().unwrap());
}
