//! Published concurrency bugs of Rust crates, rebuilt small from their public descriptions: each is
//! found within a budget for every one of twenty seeds, and its fixed twin is clean.
//!
//! `cargo test -p selvedge --test known_bugs -- --nocapture` prints the median number of schedules.

use selvedge::cell::RaceCell;
use selvedge::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use selvedge::sync::{Arc, Condvar, Mutex, RwLock};
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
    println!("{name}: median {} schedules, worst {}", counts[counts.len() / 2], counts[19]);
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

/// RUSTSEC-2022-0029 / crossbeam-utils #… family: `AtomicCell<64-bit>` on targets without such atomics
/// fell back to plain accesses. RUSTSEC-2022-0041: unsoundness of `AtomicCell<{i,u}64>` arithmetic,
/// which mixed plain reads with locked writes.
mod crossbeam_atomic_cell {
    use super::*;

    struct AtomicCell {
        value: RaceCell<u64>,
        lock: Mutex<()>,
        locked_reads: bool,
    }

    impl AtomicCell {
        fn add(&self, n: u64) {
            let _guard = self.lock.lock().unwrap();
            // SAFETY: the lock orders writers.
            unsafe { self.value.set(self.value.get() + n) };
        }

        fn load(&self) -> u64 {
            let _guard = self.locked_reads.then(|| self.lock.lock().unwrap());
            // SAFETY: what is claimed of the buggy one is what is tested.
            unsafe { self.value.get() }
        }
    }

    fn body(locked_reads: bool) {
        let cell =
            Arc::new(AtomicCell { value: RaceCell::new(0), lock: Mutex::new(()), locked_reads });
        let theirs = Arc::clone(&cell);
        both(move || theirs.add(1), || assert!(cell.load() <= 1));
    }

    #[test]
    fn rustsec_2022_0041() {
        finds("RUSTSEC-2022-0041 crossbeam-utils AtomicCell", || body(false), || body(true));
    }
}

/// RUSTSEC-2020-0070: `lock_api` guards were `Sync` for contents that are not, so two threads could
/// use one guard's content without order.
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

/// RUSTSEC-2021-0124: tokio `oneshot`: after `close`, the receiver looked at the value while a sender
/// that had seen the channel open was still writing it.
mod tokio_oneshot {
    use super::*;

    const VALUE_SENT: usize = 1;
    const CLOSED: usize = 2;

    struct Oneshot {
        state: AtomicUsize,
        value: RaceCell<Option<u32>>,
    }

    impl Oneshot {
        fn send(&self, value: u32) {
            if self.state.load(Ordering::Acquire) & CLOSED == 0 {
                // SAFETY: only the sender writes, before the state says so.
                unsafe { self.value.set(Some(value)) };
                self.state.fetch_or(VALUE_SENT, Ordering::AcqRel);
            }
        }

        /// The buggy receiver takes the value after closing, whatever the state was before.
        fn close_and_take(&self, look: bool) -> Option<u32> {
            let before = self.state.fetch_or(CLOSED, Ordering::AcqRel);
            if look && before & VALUE_SENT == 0 {
                return None;
            }
            // SAFETY: what is claimed of the buggy one is what is tested.
            unsafe { self.value.get() }
        }
    }

    fn body(look: bool) {
        let channel = Arc::new(Oneshot { state: AtomicUsize::new(0), value: RaceCell::new(None) });
        let theirs = Arc::clone(&channel);
        both(move || theirs.send(7), || drop(channel.close_and_take(look)));
    }

    #[test]
    fn rustsec_2021_0124() {
        finds("RUSTSEC-2021-0124 tokio oneshot close", || body(false), || body(true));
    }
}

/// RUSTSEC-2023-0005: tokio `ReadHalf::unsplit`… is about `Unpin`; the one rebuilt here is
/// RUSTSEC-2021-0072: tokio `JoinHandle::abort` dropped the task's output while it was being written,
/// because completion and cancellation both believed to own the cell.
mod tokio_abort {
    use super::*;

    const RUNNING: usize = 1;
    const COMPLETE: usize = 2;
    const CANCELLED: usize = 4;

    fn body(exclusive: bool) {
        let task = Arc::new((AtomicUsize::new(RUNNING), RaceCell::new(0)));
        let theirs = Arc::clone(&task);
        let finish = move |mine: usize, task: &(AtomicUsize, RaceCell<usize>)| {
            let won = if exclusive {
                task.0.compare_exchange(RUNNING, mine, Ordering::AcqRel, Ordering::Acquire).is_ok()
            } else {
                // Look, then act: both can win.
                let won = task.0.load(Ordering::Acquire) == RUNNING;
                task.0.fetch_or(mine, Ordering::AcqRel);
                won
            };
            if won {
                // SAFETY: whoever ends the task owns the cell.
                unsafe { task.1.set(mine) };
            }
        };
        both(move || finish(COMPLETE, &theirs), || finish(CANCELLED, &task));
    }

    #[test]
    fn rustsec_2021_0072() {
        finds("RUSTSEC-2021-0072 tokio abort", || body(false), || body(true));
    }
}

/// RUSTSEC-2021-0093: crossbeam-deque: a stealer read the task and only then made sure that it owned
/// it, and a second read of the buffer's slot could see it reused.
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

/// RUSTSEC-2020-0052: crossbeam-channel `bounded(0)`/array flavours: `discard_all_messages` ran on both
/// sides when the last sender and the last receiver were dropped together.
mod crossbeam_channel_drop {
    use super::*;

    fn body(once: bool) {
        let channel = Arc::new((AtomicBool::new(false), RaceCell::new(Some(1))));
        let theirs = Arc::clone(&channel);
        let disconnect = move |c: &(AtomicBool, RaceCell<Option<i32>>)| {
            // The buggy one looks at the mark and sets it in two steps.
            let first = if once {
                !c.0.swap(true, Ordering::AcqRel)
            } else {
                let first = !c.0.load(Ordering::Acquire);
                c.0.store(true, Ordering::Release);
                first
            };
            if first {
                c.1.with_mut(|messages| {
                    // SAFETY: whoever is first owns the messages.
                    unsafe { *messages = None };
                });
            }
        };
        both(move || disconnect(&theirs), || disconnect(&channel));
    }

    #[test]
    fn rustsec_2020_0052() {
        finds("RUSTSEC-2020-0052 crossbeam-channel drop", || body(false), || body(true));
    }
}

/// RUSTSEC-2019-0034 / RUSTSEC-2020-0091 family: arc-swap. The shape rebuilt: a reader loads a pointer
/// and only then registers itself, so a writer that looked for readers in between frees what is read.
mod arc_swap_debt {
    use super::*;

    struct Swap {
        current: AtomicUsize,
        readers: AtomicUsize,
        alive: [RaceCell<bool>; 2],
        register_first: bool,
    }

    impl Swap {
        fn read(&self) {
            if self.register_first {
                self.readers.fetch_add(1, Ordering::SeqCst);
            }
            let at = self.current.load(Ordering::SeqCst);
            if !self.register_first {
                self.readers.fetch_add(1, Ordering::SeqCst);
            }
            // SAFETY: registered readers keep it alive.
            assert!(unsafe { self.alive[at].get() }, "read after free");
            self.readers.fetch_sub(1, Ordering::SeqCst);
        }

        fn replace(&self) {
            let old = self.current.swap(1, Ordering::SeqCst);
            while self.readers.load(Ordering::SeqCst) > 0 {
                thread::yield_now();
            }
            // SAFETY: nobody is registered, and who registers now sees the new one.
            unsafe { self.alive[old].set(false) };
        }
    }

    fn body(register_first: bool) {
        let swap = Arc::new(Swap {
            current: AtomicUsize::new(0),
            readers: AtomicUsize::new(0),
            alive: [RaceCell::new(true), RaceCell::new(true)],
            register_first,
        });
        let theirs = Arc::clone(&swap);
        both(move || theirs.read(), || swap.replace());
    }

    #[test]
    fn arc_swap_register_late() {
        finds("arc-swap (RUSTSEC-2020-0091 family) late debt", || body(false), || body(true));
    }
}

/// RUSTSEC-2021-0110-style lost wake-up, as in tokio issue #… `Notify`: the waiter looks at the state,
/// then enqueues itself without looking again.
mod lost_notification {
    use super::*;

    fn body(recheck: bool) {
        let shared = Arc::new((AtomicBool::new(false), Mutex::new(0), Condvar::new()));
        let theirs = Arc::clone(&shared);
        both(
            move || {
                let (ready, lock, wake) = &*theirs;
                if !ready.load(Ordering::SeqCst) {
                    let mut guard = lock.lock().unwrap();
                    while !(recheck && ready.load(Ordering::SeqCst)) {
                        guard = wake.wait(guard).unwrap();
                        if !recheck {
                            break;
                        }
                    }
                }
            },
            || {
                shared.0.store(true, Ordering::SeqCst);
                let _guard = shared.1.lock().unwrap();
                shared.2.notify_one();
            },
        );
    }

    #[test]
    fn notification_between_look_and_wait() {
        finds("lost notification between look and wait", || body(false), || body(true));
    }
}

/// rust-lang/rust issue 39364: the receiver of `std::sync::mpsc` panicked with `recv_timeout`, because a
/// sender upgraded the channel between the receiver's decision to wait and its registration.
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

/// RUSTSEC-2018-0012-style / spin issue: `spin::Once` before 0.9.?: RUSTSEC-2023-0031: initialisation
/// with a failing closure let another thread see the cell as initialised.
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

/// RUSTSEC-2022-0022-style ordering bug, as in rust-lang/rust issue 51780 for `Arc`-like counts: the
/// last owner frees without having acquired what the others released.
mod relaxed_drop {
    use super::*;

    fn body(acquire: bool) {
        let shared = Arc::new((AtomicUsize::new(2), RaceCell::new(0)));
        let theirs = Arc::clone(&shared);
        let release = move |s: &(AtomicUsize, RaceCell<i32>)| {
            // SAFETY: owners read.
            let _ = unsafe { s.1.get() };
            if s.0.fetch_sub(1, Ordering::Release) == 1 {
                if acquire {
                    fence(Ordering::Acquire);
                }
                // SAFETY: the last owner is alone.
                unsafe { s.1.set(-1) };
            }
        };
        both(move || release(&theirs), || release(&shared));
    }

    #[test]
    fn last_owner_without_acquire() {
        finds("reference count without acquire", || body(false), || body(true));
    }
}
