//! The same programs with the types of each library. They differ in their imports and nothing else.

/// Correct programs, by what they use most.
pub(crate) const CORRECT: &[&str] =
    &["atomics", "mutex", "cells", "regions", "pipeline", "buffer", "channel", "spawn"];
/// Programs with a bug.
pub(crate) const BUGGY: &[&str] =
    &["lost-update", "opposite-locks", "philosophers", "lost-wakeup", "order", "long-order"];

/// For a library that has no cells that threads can share, and no regions.
pub(crate) mod untracked {
    pub(crate) fn atomic<R>(_name: &str, f: impl FnOnce() -> R) -> R {
        f()
    }

    pub(crate) fn deterministic<R>(_name: &str, f: impl FnOnce() -> R) -> R {
        f()
    }

    pub(crate) struct RaceCell<T>(std::sync::Mutex<T>);

    impl<T> RaceCell<T> {
        pub(crate) fn new(value: T) -> RaceCell<T> {
            RaceCell(std::sync::Mutex::new(value))
        }

        /// Like a tracked access: the pointer is there, and the programs do not follow it.
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(&raw mut *self.0.lock().expect("no thread panics while it holds the lock"))
        }
    }
}

macro_rules! programs {
    ($library:ident, $cell:path, $atomic:path, $deterministic:path) => {
        pub(crate) mod $library {
            use std::collections::VecDeque;

            use $atomic as atomic;
            use $cell as Cell;
            use $deterministic as deterministic;
            use $library::sync::atomic::{AtomicUsize, Ordering::SeqCst};
            use $library::sync::{Arc, Condvar, Mutex, mpsc};
            use $library::thread;

            pub(crate) fn by_name(name: &str) -> Option<fn()> {
                Some(match name {
                    "atomics" => atomics,
                    "mutex" => mutex,
                    "cells" => cells,
                    "regions" => regions,
                    "pipeline" => pipeline,
                    "buffer" => buffer,
                    "channel" => channel,
                    "spawn" => spawn,
                    "lost-update" => lost_update,
                    "opposite-locks" => opposite_locks,
                    "philosophers" => philosophers,
                    "lost-wakeup" => lost_wakeup,
                    "order" => order,
                    "long-order" => long_order,
                    _ => return None,
                })
            }

            fn all(n: usize, f: impl Fn(usize) + Clone + Send + 'static) {
                let threads: Vec<_> = (0..n)
                    .map(|i| {
                        let f = f.clone();
                        thread::spawn(move || f(i))
                    })
                    .collect();
                threads.into_iter().for_each(|t| t.join().unwrap());
            }

            fn atomics() {
                let n = Arc::new(AtomicUsize::new(0));
                let theirs = Arc::clone(&n);
                all(3, move |_| {
                    for _ in 0..20 {
                        theirs.fetch_add(1, SeqCst);
                    }
                });
                assert_eq!(n.load(SeqCst), 60);
            }

            fn mutex() {
                let n = Arc::new(Mutex::new(0));
                let theirs = Arc::clone(&n);
                all(3, move |_| {
                    for _ in 0..20 {
                        *theirs.lock().unwrap() += 1;
                    }
                });
                assert_eq!(*n.lock().unwrap(), 60);
            }

            /// Plain data under two nested locks: something for every analysis of races and deadlocks.
            fn cells() {
                let locks = Arc::new((Mutex::new(()), Mutex::new(()), Cell::new(0u64)));
                all(3, move |_| {
                    for _ in 0..10 {
                        let _outer = locks.0.lock().unwrap();
                        let _inner = locks.1.lock().unwrap();
                        locks.2.with_mut(|_| ());
                    }
                });
            }

            /// Plain data under two nested locks, in blocks that claim to be atomic: something for every
            /// analysis but that of determinism.
            fn regions() {
                let locks = Arc::new((Mutex::new(()), Mutex::new(()), Cell::new(0u64)));
                all(3, move |_| {
                    for _ in 0..10 {
                        atomic("both", || {
                            let _outer = locks.0.lock().unwrap();
                            let _inner = locks.1.lock().unwrap();
                            locks.2.with_mut(|_| ());
                        });
                    }
                });
            }

            /// A pipeline whose stages pass on what they have written, in a block that claims to be
            /// deterministic: something for the analyses of determinism and of races.
            fn pipeline() {
                deterministic("pipeline", || {
                    let cells: Arc<Vec<_>> = Arc::new((0..10).map(|_| Cell::new(0u64)).collect());
                    let (first, theirs) = mpsc::channel();
                    let (second, ours) = mpsc::channel();
                    let (made, changed) = (Arc::clone(&cells), Arc::clone(&cells));
                    let maker = thread::spawn(move || {
                        for i in 0..10 {
                            made[i].with_mut(|_| ());
                            first.send(i).unwrap();
                        }
                    });
                    let changer = thread::spawn(move || {
                        while let Ok(i) = theirs.recv() {
                            changed[i].with_mut(|_| ());
                            second.send(i).unwrap();
                        }
                    });
                    while let Ok(i) = ours.recv() {
                        cells[i].with_mut(|_| ());
                    }
                    maker.join().unwrap();
                    changer.join().unwrap();
                });
            }

            /// A bounded buffer with two producers and one consumer.
            fn buffer() {
                let buffer =
                    Arc::new((Mutex::new(VecDeque::new()), Condvar::new(), Condvar::new()));
                let theirs = Arc::clone(&buffer);
                all(3, move |i| {
                    let (queue, items, space) = &*theirs;
                    if i < 2 {
                        for n in 0..10 {
                            let mut q = queue.lock().unwrap();
                            while q.len() == 2 {
                                q = space.wait(q).unwrap();
                            }
                            q.push_back(n);
                            items.notify_one();
                        }
                    } else {
                        for _ in 0..20 {
                            let mut q = queue.lock().unwrap();
                            while q.is_empty() {
                                q = items.wait(q).unwrap();
                            }
                            q.pop_front();
                            space.notify_one();
                        }
                    }
                });
            }

            fn channel() {
                let (sender, receiver) = mpsc::channel();
                let senders: Vec<_> = (0..3)
                    .map(|i| {
                        let sender = sender.clone();
                        thread::spawn(move || {
                            for n in 0..10 {
                                sender.send(i * 10 + n).unwrap();
                            }
                        })
                    })
                    .collect();
                drop(sender);
                let mut sum = 0;
                while let Ok(n) = receiver.recv() {
                    sum += n;
                }
                senders.into_iter().for_each(|t| t.join().unwrap());
                assert_eq!(sum, (0..30).sum::<i32>());
            }

            fn spawn() {
                let n = Arc::new(AtomicUsize::new(0));
                let theirs = Arc::clone(&n);
                all(50, move |_| {
                    theirs.fetch_add(1, SeqCst);
                });
            }

            fn lost_update() {
                let n = Arc::new(AtomicUsize::new(0));
                let theirs = Arc::clone(&n);
                all(2, move |_| {
                    for _ in 0..3 {
                        let seen = theirs.load(SeqCst);
                        theirs.store(seen + 1, SeqCst);
                    }
                });
                assert_eq!(n.load(SeqCst), 6);
            }

            fn opposite_locks() {
                let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
                all(2, move |i| {
                    for _ in 0..3 {
                        let (first, second) =
                            if i == 0 { (&locks.0, &locks.1) } else { (&locks.1, &locks.0) };
                        let mut a = first.lock().unwrap();
                        *second.lock().unwrap() += *a;
                        *a += 1;
                    }
                });
            }

            fn philosophers() {
                let forks: Arc<Vec<_>> = Arc::new((0..4).map(|_| Mutex::new(())).collect());
                all(4, move |i| {
                    let _left = forks[i].lock().unwrap();
                    let _right = forks[(i + 1) % 4].lock().unwrap();
                });
            }

            /// The flag is looked at before the lock is taken to wait.
            fn lost_wakeup() {
                let pair = Arc::new((Mutex::new(false), Condvar::new()));
                all(2, move |i| {
                    if i == 0 {
                        let ready = *pair.0.lock().unwrap();
                        if !ready {
                            let guard = pair.0.lock().unwrap();
                            drop(pair.1.wait(guard).unwrap());
                        }
                    } else {
                        *pair.0.lock().unwrap() = true;
                        pair.1.notify_one();
                    }
                });
            }

            /// The last thread must not find the first one's work undone.
            fn order() {
                let n = Arc::new(AtomicUsize::new(0));
                all(3, move |i| {
                    for _ in 0..5 {
                        let seen = n.load(SeqCst);
                        if i == 2 {
                            assert!(seen != 5, "in the middle");
                        } else {
                            n.fetch_add(1, SeqCst);
                        }
                    }
                });
            }

            /// One thread must do all of its work before another's first step.
            fn long_order() {
                let n = Arc::new(AtomicUsize::new(0));
                all(2, move |i| {
                    if i == 1 {
                        for _ in 0..30 {
                            n.fetch_add(1, SeqCst);
                        }
                    } else {
                        assert!(n.load(SeqCst) < 30, "the other was done already");
                    }
                });
            }
        }
    };
}

programs!(selvedge, selvedge::cell::RaceCell, selvedge::atomic, selvedge::deterministic);
programs!(
    shuttle,
    super::untracked::RaceCell,
    super::untracked::atomic,
    super::untracked::deterministic
);
programs!(
    loom,
    super::untracked::RaceCell,
    super::untracked::atomic,
    super::untracked::deterministic
);
