//! A counter that is not one, and one that is; the latter with everything that safe code synchronizes by.

use std::cell::UnsafeCell;

pub struct Racy(UnsafeCell<u64>);

// SAFETY: there is none; this is the bug.
unsafe impl Sync for Racy {}

pub static COUNTER: Racy = Racy(UnsafeCell::new(0));

pub fn count() {
    // SAFETY: as above.
    unsafe { *COUNTER.0.get() += 1 };
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock, mpsc};
    use std::thread;
    use std::time::Duration;

    /// Both are there before either counts; nothing but that is said.
    fn together() {
        static THERE: AtomicU32 = AtomicU32::new(0);
        THERE.fetch_add(1, Ordering::Relaxed);
        while THERE.load(Ordering::Relaxed) < 2 {
            thread::yield_now();
        }
        super::count();
    }

    #[test]
    fn buggy() {
        thread::scope(|scope| {
            scope.spawn(together);
            scope.spawn(together);
        });
    }

    /// What the first thread held is told although it holds it no more.
    #[test]
    fn half_locked() {
        let with_the_lock = || {
            let _left = LEFT.lock().unwrap();
            super::count();
        };
        one_after_the_other(with_the_lock, super::count);
    }

    static LEFT: Mutex<u32> = Mutex::new(0);
    static RIGHT: RwLock<u32> = RwLock::new(0);
    static MIDDLE: Mutex<u32> = Mutex::new(0);

    /// The second thread comes when the first is done, which nothing says.
    fn one_after_the_other(first: fn(), second: fn()) {
        static DONE: AtomicU32 = AtomicU32::new(0);
        static THERE: AtomicU32 = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(move || {
                // Both threads exist at the same time, also on a machine that is busy.
                while THERE.load(Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
                first();
                DONE.store(1, Ordering::Relaxed);
            });
            scope.spawn(move || {
                THERE.store(1, Ordering::Relaxed);
                while DONE.load(Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
                second();
            });
        });
    }

    fn left_then_right() {
        let mut left = LEFT.lock().unwrap();
        *left += *RIGHT.read().unwrap();
    }

    #[test]
    fn crossed() {
        one_after_the_other(left_then_right, || {
            let mut right = RIGHT.write().unwrap();
            *right += *LEFT.lock().unwrap();
        });
    }

    /// The same order, a guard, and a lock that is only tried: no deadlock.
    #[test]
    fn straight() {
        one_after_the_other(left_then_right, || {
            left_then_right();
            let middle = MIDDLE.lock().unwrap();
            *RIGHT.write().unwrap() += *middle;
            let right = RIGHT.write().unwrap();
            if let Ok(mut left) = LEFT.try_lock() {
                *left += *right;
            }
        });
    }

    /// Threads that wait for each other's sake, one lock at a time. Taking the lock again after a wait is
    /// often contended, and that happens within the standard library.
    #[test]
    fn sleepers() {
        let sleepers: Vec<_> = (0..3).map(|_| (Mutex::new(false), Condvar::new())).collect();
        thread::scope(|scope| {
            for i in 0..3 {
                let sleepers = &sleepers;
                scope.spawn(move || {
                    for round in 0..200 {
                        let (asleep, wake) = &sleepers[i];
                        let mut own = asleep.lock().unwrap();
                        *own = true;
                        while *own {
                            let (back, late) =
                                wake.wait_timeout(own, Duration::from_millis(1)).unwrap();
                            own = back;
                            *own &= !late.timed_out();
                        }
                        drop(own);
                        let (asleep, wake) = &sleepers[(i + round) % 3];
                        *asleep.lock().unwrap() = false;
                        wake.notify_one();
                    }
                });
            }
        });
    }

    #[test]
    fn fixed() {
        let counter = Arc::new(Mutex::new(0));
        let (sender, receiver) = mpsc::channel();
        let barrier = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let (counter, sender, barrier) = (counter.clone(), sender.clone(), barrier.clone());
                thread::spawn(move || {
                    barrier.wait();
                    for _ in 0..500 {
                        *counter.lock().unwrap() += 1;
                    }
                    sender.send(Box::new(i)).unwrap();
                })
            })
            .collect();
        drop(sender);
        assert_eq!(receiver.iter().map(|n| *n).sum::<i32>(), 6);
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*counter.lock().unwrap(), 2000);

        let ready = (Mutex::new(false), Condvar::new(), RwLock::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                *ready.2.write().unwrap() = 7;
                *ready.0.lock().unwrap() = true;
                ready.1.notify_all();
            });
            let mut seen = ready.0.lock().unwrap();
            while !*seen {
                seen = ready.1.wait(seen).unwrap();
            }
            assert_eq!(*ready.2.read().unwrap(), 7);
        });
    }
}
