//! Published concurrency bugs of Rust crates, rebuilt small from their public descriptions: each is
//! found within a budget for every one of twenty seeds, and its fixed twin is clean.
//!
//! `cargo test -p selvedge --test known_bugs -- --nocapture` prints a table: of each bug the median and the
//! largest number of schedules until it shows.

use selvedge::cell::RaceCell;
use selvedge::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use selvedge::sync::{Arc, Mutex, RwLock};
use selvedge::{Explore, thread};

const SEEDS: u64 = 20;

/// The bug must show under every seed, and the twin under none.
fn finds(name: &str, buggy: fn(), fixed: fn()) {
    let mut counts: Vec<u64> = (0..SEEDS)
        .map(|seed| {
            let explore = Explore::new().jobs(1).seed(seed).schedules(5_000).minimise(0);
            explore.run(buggy).expect_err(name).execution
        })
        .collect();
    counts.sort_unstable();
    println!("| {name:42} | {:6} | {:5} |", counts[counts.len() / 2], counts[counts.len() - 1]);
    for seed in 0..3 {
        let clean = Explore::new().seed(seed).schedules(1_000).run(fixed);
        if let Err(failure) = clean {
            panic!("the fixed twin of {name} fails: {failure}");
        }
    }
}

/// Runs two closures at the same time.
fn both(a: impl FnOnce() + Send + 'static, b: impl FnOnce()) {
    let thread = thread::spawn(a);
    b();
    thread.join().unwrap();
}

/// RUSTSEC-2020-0070 (parking_lot pull request 262): guards of `lock_api` were `Send` or `Sync` for contents
/// that are not, so that two threads could use what a read guard shares without order.
mod lock_api_guard {
    use super::*;

    fn body(exclusive: bool) {
        // The content of a mapped read guard: interior mutability that the guard wrongly shares.
        let content = Arc::new((RwLock::new(()), RaceCell::new(0)));
        let theirs = Arc::clone(&content);
        let touch = move |c: &(RwLock<()>, RaceCell<i32>)| {
            if exclusive {
                let _guard = c.0.write().unwrap();
                // SAFETY: exclusive.
                unsafe { c.1.set(c.1.get() + 1) };
            } else {
                let _guard = c.0.read().unwrap();
                // SAFETY: what is claimed of the buggy one is what is tested.
                unsafe { c.1.set(c.1.get() + 1) };
            }
        };
        both(move || touch(&theirs), || touch(&content));
    }

    #[test]
    fn rustsec_2020_0070() {
        finds("RUSTSEC-2020-0070 lock_api guards", || body(false), || body(true));
    }
}

/// RUSTSEC-2021-0124 (tokio issue 4225): a sender puts its value in, says so, and if the channel turns out
/// to be closed takes it back; a receiver that looks after closing sees that a value was sent, and takes
/// it at the same time. The fix does not say so on a closed channel.
mod tokio_oneshot {
    use super::*;

    const VALUE_SENT: usize = 1;
    const CLOSED: usize = 2;

    struct Oneshot {
        state: AtomicUsize,
        value: RaceCell<Option<u32>>,
    }

    impl Oneshot {
        /// Says that the value is there, and returns the state before.
        fn complete(&self, unless_closed: bool) -> usize {
            if !unless_closed {
                return self.state.fetch_or(VALUE_SENT, Ordering::AcqRel);
            }
            let say = |s| (s & CLOSED == 0).then_some(s | VALUE_SENT);
            match self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, say) {
                Ok(before) | Err(before) => before,
            }
        }

        fn send(&self, value: u32, fixed: bool) -> Result<(), Option<u32>> {
            // SAFETY: nobody looks before the state says that there is a value.
            unsafe { self.value.set(Some(value)) };
            if self.complete(fixed) & CLOSED == 0 {
                return Ok(());
            }
            // SAFETY: what is claimed of the buggy one is what is tested.
            Err(self.value.with_mut(|value| unsafe { (*value).take() }))
        }

        fn close_and_try_recv(&self) -> Option<u32> {
            self.state.fetch_or(CLOSED, Ordering::AcqRel);
            if self.state.load(Ordering::Acquire) & VALUE_SENT == 0 {
                return None;
            }
            // SAFETY: what is claimed of the buggy one is what is tested.
            self.value.with_mut(|value| unsafe { (*value).take() })
        }
    }

    fn body(fixed: bool) {
        let channel = Arc::new(Oneshot { state: AtomicUsize::new(0), value: RaceCell::new(None) });
        let theirs = Arc::clone(&channel);
        let sender = thread::spawn(move || theirs.send(7, fixed));
        let received = channel.close_and_try_recv();
        let sent = sender.join().unwrap();
        assert_eq!(sent.is_ok(), received.is_some(), "the value is had by one side");
    }

    #[test]
    fn rustsec_2021_0124() {
        finds("RUSTSEC-2021-0124 tokio oneshot close", || body(false), || body(true));
    }
}

/// RUSTSEC-2021-0072: tokio `JoinHandle::abort` dropped the future of a `LocalSet` task in the aborting
/// thread, so that what it held, an `Rc` for example, was counted by two threads without order.
mod tokio_abort {
    use super::*;

    /// The count of an `Rc` that the task and its own thread share.
    fn drop_rc(count: &RaceCell<usize>) {
        // SAFETY: an `Rc` stays in its thread, or so it is claimed.
        unsafe { count.set(count.get() - 1) };
    }

    fn body(hand_back: bool) {
        let task = Arc::new((AtomicBool::new(false), RaceCell::new(2)));
        let theirs = Arc::clone(&task);
        both(
            move || {
                // Another thread aborts.
                theirs.0.store(true, Ordering::Release);
                if !hand_back {
                    drop_rc(&theirs.1);
                }
            },
            || {
                // The thread of the task drops its own handle, and in the fixed version the task too.
                drop_rc(&task.1);
                if hand_back && task.0.load(Ordering::Acquire) {
                    drop_rc(&task.1);
                }
            },
        );
    }

    #[test]
    fn rustsec_2021_0072() {
        finds("RUSTSEC-2021-0072 tokio abort", || body(false), || body(true));
    }
}

/// RUSTSEC-2021-0093: crossbeam-deque: a task could be stolen twice, because a stealer did not notice that
/// the front had moved since it looked.
mod crossbeam_deque {
    use super::*;

    struct Deque {
        front: AtomicUsize,
        back: AtomicUsize,
        taken: [AtomicUsize; 2],
        confirm: bool,
    }

    impl Deque {
        /// Takes a task from the front; the buggy one does not notice that another was faster.
        fn steal(&self) {
            let front = self.front.load(Ordering::Acquire);
            fence(Ordering::SeqCst);
            if front >= self.back.load(Ordering::Acquire) {
                return;
            }
            let won = if self.confirm {
                let (seq, relaxed) = (Ordering::SeqCst, Ordering::Relaxed);
                self.front.compare_exchange(front, front + 1, seq, relaxed).is_ok()
            } else {
                self.front.store(front + 1, Ordering::Release);
                true
            };
            if won {
                let before = self.taken[front].fetch_add(1, Ordering::SeqCst);
                assert_eq!(before, 0, "a task was taken twice");
            }
        }
    }

    fn body(confirm: bool) {
        let deque = Arc::new(Deque {
            front: AtomicUsize::new(0),
            back: AtomicUsize::new(2),
            taken: [AtomicUsize::new(0), AtomicUsize::new(0)],
            confirm,
        });
        let theirs = Arc::clone(&deque);
        both(move || theirs.steal(), || deque.steal());
    }

    #[test]
    fn rustsec_2021_0093() {
        finds("RUSTSEC-2021-0093 crossbeam-deque steal", || body(false), || body(true));
    }
}

/// RUSTSEC-2025-0024: crossbeam-channel: `discard_all_messages` could read the first block on a path that
/// did not take it out of the channel, and then `Channel::drop` freed it again.
mod crossbeam_channel_drop {
    use super::*;

    const NONE: usize = 0;
    const BLOCK: usize = 1;

    fn body(take: bool) {
        let channel = Arc::new((AtomicUsize::new(0), AtomicUsize::new(NONE)));
        let theirs = Arc::clone(&channel);
        let mut freed = 0;
        both(
            move || {
                // The first message: the tail moves before the block is in its place.
                theirs.0.store(1, Ordering::Release);
                theirs.1.store(BLOCK, Ordering::Release);
            },
            || {
                if channel.0.load(Ordering::Acquire) == 0 {
                    return;
                }
                let mut block = channel.1.swap(NONE, Ordering::AcqRel);
                while block == NONE {
                    thread::yield_now();
                    block = if take {
                        channel.1.swap(NONE, Ordering::AcqRel)
                    } else {
                        channel.1.load(Ordering::Acquire)
                    };
                }
                freed += 1;
            },
        );
        // The channel itself is dropped.
        freed += usize::from(channel.1.load(Ordering::Acquire) == BLOCK);
        assert!(freed <= 1, "double free");
    }

    #[test]
    fn rustsec_2025_0024() {
        finds("RUSTSEC-2025-0024 crossbeam-channel drop", || body(false), || body(true));
    }
}

/// RUSTSEC-2020-0017: internment: `ArcIntern::drop` could release an object that was about to get
/// another user, who had found it in the table after its last owner had counted itself out.
mod internment_drop {
    use super::*;

    struct Interned {
        /// Whether the object is in the table.
        table: Mutex<bool>,
        count: AtomicUsize,
        freed: AtomicBool,
    }

    impl Interned {
        fn drop_last(&self, serialized: bool) {
            if serialized {
                let mut table = self.table.lock().unwrap();
                if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
                    *table = false;
                    self.freed.store(true, Ordering::Release);
                }
            } else if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
                *self.table.lock().unwrap() = false;
                self.freed.store(true, Ordering::Release);
            }
        }

        fn look_up(&self) {
            let table = self.table.lock().unwrap();
            let found = *table;
            if found {
                self.count.fetch_add(1, Ordering::AcqRel);
            }
            drop(table);
            if found {
                assert!(!self.freed.load(Ordering::Acquire), "use after free");
            }
        }
    }

    fn body(serialized: bool) {
        let interned = Arc::new(Interned {
            table: Mutex::new(true),
            count: AtomicUsize::new(1),
            freed: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&interned);
        both(move || theirs.drop_last(serialized), || interned.look_up());
    }

    #[test]
    fn rustsec_2020_0017() {
        finds("RUSTSEC-2020-0017 internment drop", || body(false), || body(true));
    }
}

/// RUSTSEC-2022-0006: thread_local: iterating over all threads' values loaded the mark of a value with
/// too weak an order, and so raced with the thread that was putting the value in.
mod thread_local_iter {
    use super::*;

    fn body(order: Ordering) {
        let entry = Arc::new((AtomicBool::new(false), RaceCell::new(0)));
        let theirs = Arc::clone(&entry);
        both(
            move || {
                // SAFETY: not marked as present yet.
                unsafe { theirs.1.set(7) };
                theirs.0.store(true, Ordering::Release);
            },
            || {
                if entry.0.load(order) {
                    // SAFETY: present means written.
                    assert_eq!(unsafe { entry.1.get() }, 7);
                }
            },
        );
    }

    #[test]
    fn rustsec_2022_0006() {
        let (buggy, fixed) = (|| body(Ordering::Relaxed), || body(Ordering::Acquire));
        finds("RUSTSEC-2022-0006 thread_local Iter", buggy, fixed);
    }
}

/// RUSTSEC-2019-0013: spin: the guard of an `RwLock` was dropped with a relaxed store, so that what its
/// holder wrote was not ordered before the next holder.
mod spin_rwlock {
    use super::*;

    fn body(order: Ordering) {
        let lock = Arc::new((AtomicBool::new(false), RaceCell::new(0)));
        let theirs = Arc::clone(&lock);
        let write = move |lock: &(AtomicBool, RaceCell<i32>)| {
            let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
            while lock.0.compare_exchange_weak(false, true, acquire, relaxed).is_err() {
                selvedge::hint::spin_loop();
            }
            // SAFETY: locked.
            unsafe { lock.1.set(lock.1.get() + 1) };
            lock.0.store(false, order);
        };
        both(move || write(&theirs), || write(&lock));
    }

    #[test]
    fn rustsec_2019_0013() {
        let (buggy, fixed) = (|| body(Ordering::Relaxed), || body(Ordering::Release));
        finds("RUSTSEC-2019-0013 spin RwLock", buggy, fixed);
    }
}

/// RUSTSEC-2025-0023: tokio's broadcast channel cloned the stored value in several receivers at a time,
/// though it asked only for `Send`: a `clone` that changes a `Cell` races.
mod tokio_broadcast {
    use super::*;

    fn body(one_at_a_time: bool) {
        let slot = Arc::new((RwLock::new(()), Mutex::new(()), RaceCell::new(0)));
        let theirs = Arc::clone(&slot);
        let receive = move |slot: &(RwLock<()>, Mutex<()>, RaceCell<u32>)| {
            let _shared = slot.0.read().unwrap();
            let _alone = one_at_a_time.then(|| slot.1.lock().unwrap());
            // SAFETY: a value that is `Send` and not `Sync` counts its clones.
            unsafe { slot.2.set(slot.2.get() + 1) };
        };
        both(move || receive(&theirs), || receive(&slot));
    }

    #[test]
    fn rustsec_2025_0023() {
        finds("RUSTSEC-2025-0023 tokio broadcast clone", || body(false), || body(true));
    }
}

/// rust-lang/rust issue 39364: the receiver of `std::sync::mpsc` panicked in `recv_timeout`, because a
/// sender that was cloned changed the flavour of the channel while the receiver prepared to wait.
mod mpsc_upgrade {
    use super::*;

    const EMPTY: usize = 0;
    const WAITING: usize = 1;
    const UPGRADED: usize = 2;

    fn body(careful: bool) {
        let state = Arc::new(AtomicUsize::new(EMPTY));
        let theirs = Arc::clone(&state);
        both(
            move || {
                // The sender is cloned: the channel changes its flavour.
                theirs.store(UPGRADED, Ordering::SeqCst);
            },
            || {
                if state.load(Ordering::SeqCst) == UPGRADED {
                    return;
                }
                if careful {
                    let (a, b) = (Ordering::SeqCst, Ordering::SeqCst);
                    let _ = state.compare_exchange(EMPTY, WAITING, a, b);
                } else {
                    let before = state.swap(WAITING, Ordering::SeqCst);
                    assert_eq!(before, EMPTY, "the flavour changed in between");
                }
            },
        );
    }

    #[test]
    fn rust_issue_39364() {
        finds("rust-lang/rust#39364 mpsc upgrade", || body(false), || body(true));
    }
}

/// RUSTSEC-2023-0031: spin: `Once::try_call_once` was unsound when called by several at a time of which
/// one fails: the others could take the cell for initialised.
mod spin_once {
    use super::*;

    const INCOMPLETE: usize = 0;
    const RUNNING: usize = 1;
    const COMPLETE: usize = 2;

    fn body(keep_status: bool) {
        let once = Arc::new((AtomicUsize::new(INCOMPLETE), RaceCell::new(0)));
        let theirs = Arc::clone(&once);
        let init = move |once: &(AtomicUsize, RaceCell<i32>), fails: bool| {
            let (acq, rel) = (Ordering::AcqRel, Ordering::Acquire);
            if once.0.compare_exchange(INCOMPLETE, RUNNING, acq, rel).is_err() {
                return;
            }
            if fails {
                // The initialiser failed: the buggy one marks the cell complete while it unwinds.
                let status = if keep_status { INCOMPLETE } else { COMPLETE };
                once.0.store(status, Ordering::Release);
                return;
            }
            // SAFETY: whoever runs the initialiser owns the cell.
            unsafe { once.1.set(42) };
            once.0.store(COMPLETE, Ordering::Release);
        };
        both(
            move || init(&theirs, true),
            || {
                init(&once, false);
                if once.0.load(Ordering::Acquire) == COMPLETE {
                    // SAFETY: complete means written.
                    assert_eq!(unsafe { once.1.get() }, 42, "complete but never initialised");
                }
            },
        );
    }

    #[test]
    fn rustsec_2023_0031() {
        finds("RUSTSEC-2023-0031 spin Once", || body(false), || body(true));
    }
}
