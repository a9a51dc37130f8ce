//! Test bodies that misbehave give a clear failure, and the next check still runs.

use std::time::Duration;

use selvedge::cases::{self, Subject};
use selvedge::sync::atomic::{AtomicUsize, Ordering};
use selvedge::sync::{Arc, Mutex, mpsc};
use selvedge::{Explore, Failure, Undecided, hint, thread};

/// The failure of the body; and that an ordinary check passes after it.
fn failure<F: Fn() + Send + Sync + 'static>(explore: Explore, body: F) -> Box<Failure> {
    let failure = explore.run(body).expect_err("the body misbehaves");
    eprintln!("{failure}\n");
    let next = Explore::new().schedules(20).run(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&n);
        thread::spawn(move || theirs.fetch_add(1, Ordering::SeqCst)).join().unwrap();
        assert_eq!(n.load(Ordering::SeqCst), 1);
    });
    next.expect("the next check runs");
    failure
}

#[test]
fn a_leaked_thread() {
    let failure = failure(Explore::new(), || {
        let (sender, receiver) = mpsc::channel::<()>();
        thread::Builder::new().name("leaky".into()).spawn(move || receiver.recv()).unwrap();
        std::mem::forget(sender);
    });
    assert_eq!(failure.case.subject, Subject::Program(cases::Failure::Left));
    assert!(failure.to_string().contains("leaky waits for signal"), "{failure}");
}

#[test]
fn a_detached_thread_that_ends_is_no_leak() {
    let done = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&done);
    let body = move || {
        let count = std::sync::Arc::clone(&count);
        thread::spawn(move || {
            thread::yield_now();
            count.fetch_add(1, Ordering::SeqCst);
        });
    };
    let summary = Explore::new().schedules(50).jobs(1).run(body).expect("nothing is wrong");
    // One more than the schedules: the first is run twice to see that it is deterministic.
    assert_eq!(done.load(Ordering::SeqCst) as u64, summary.executions + 1);
}

#[test]
fn a_lock_taken_twice() {
    let failure = failure(Explore::new(), || {
        let lock = Mutex::new(());
        let _once = lock.lock().unwrap();
        let _twice = lock.lock().unwrap();
    });
    assert!(failure.to_string().contains("which it holds itself"), "{failure}");
}

#[test]
fn a_panic_in_a_destructor() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the bomb went off");
        }
    }
    let main = failure(Explore::new(), || drop(Bomb));
    assert!(main.to_string().contains("main panicked"), "{main}");
    let thread = failure(Explore::new(), || {
        // Joining gives the panic to whoever joins; nobody does.
        thread::spawn(|| drop(Bomb));
    });
    assert!(thread.to_string().contains("thread 1 panicked"), "{thread}");
    let result = failure(Explore::new(), || {
        thread::spawn(|| Bomb);
    });
    assert!(result.to_string().contains("the bomb went off"), "{result}");
    let local = failure(Explore::new(), || {
        selvedge::thread_local!(static BOMB: std::cell::RefCell<Option<Bomb>> = const { std::cell::RefCell::new(None) });
        thread::spawn(|| BOMB.with_borrow_mut(|b| *b = Some(Bomb))).join().unwrap();
    });
    assert!(local.to_string().contains("the bomb went off"), "{local}");
}

#[test]
fn a_destructor_that_waits_while_unwinding() {
    struct Pool(Option<thread::JoinHandle<()>>, Arc<Mutex<bool>>);
    impl Drop for Pool {
        fn drop(&mut self) {
            *self.1.lock().unwrap_or_else(selvedge::sync::PoisonError::into_inner) = true;
            self.0.take().unwrap().join().unwrap();
        }
    }
    let failure = failure(Explore::new(), || {
        let stop = Arc::new(Mutex::new(false));
        let theirs = Arc::clone(&stop);
        let worker = thread::spawn(move || {
            while !*theirs.lock().unwrap() {
                thread::yield_now();
            }
        });
        let _pool = Pool(Some(worker), stop);
        panic!("the test fails here");
    });
    assert!(failure.to_string().contains("the test fails here"), "{failure}");
    assert!(failure.to_string().contains("a destructor had to wait"), "{failure}");
}

#[test]
fn a_loop_with_scheduling_points() {
    let failure = failure(Explore::new().max_steps(10_000), || {
        let flag = AtomicUsize::new(0);
        while flag.load(Ordering::SeqCst) == 0 {
            hint::spin_loop();
        }
    });
    assert_eq!(failure.case.subject, Subject::Program(cases::Failure::Steps(10_000)));
}

/// Each thread changes something in every round: that is progress, as far as can be seen from outside.
fn counts_for_long() {
    let count = Arc::new(AtomicUsize::new(0));
    let theirs = Arc::clone(&count);
    let other = thread::spawn(move || {
        for _ in 0..2_000 {
            theirs.fetch_add(1, Ordering::SeqCst);
        }
    });
    for _ in 0..2_000 {
        count.fetch_add(1, Ordering::SeqCst);
    }
    other.join().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 4_000);
}

#[test]
fn a_test_that_is_only_long_is_not_a_livelock() {
    let short = Explore::new().schedules(20).max_steps(1_000);
    let summary = short.clone().run(counts_for_long).expect("it is only long");
    let cut_off = summary.undecided.iter().find_map(|undecided| match undecided {
        Undecided::CutOff { executions, steps } => Some((*executions, *steps)),
        _ => None,
    });
    assert!(matches!(cut_off, Some((1.., 1_000))), "{:?}", summary.undecided);
    assert!(summary.executions < 20, "the check gives up early");
    let check = std::panic::AssertUnwindSafe(|| short.check(counts_for_long));
    let panic = std::panic::catch_unwind(check).unwrap_err();
    let text = panic.downcast_ref::<String>().expect("a text");
    assert!(text.contains("cut off after 1000 steps") && text.contains("max_steps"), "{text}");
    let long = Explore::new().schedules(20).run(counts_for_long).expect("it ends");
    assert!(long.undecided.is_empty());
}

#[test]
fn a_loop_without_scheduling_points() {
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let theirs = std::sync::Arc::clone(&stop);
    let failure = failure(Explore::new().jobs(1).stall(Duration::from_millis(300)), move || {
        while !theirs.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    });
    stop.store(true, Ordering::SeqCst);
    assert!(matches!(failure.case.subject, Subject::Program(cases::Failure::Stall(_))));
}

#[test]
fn a_lock_of_std_held_across_a_scheduling_point() {
    let failure = failure(Explore::new().jobs(1).stall(Duration::from_millis(300)), || {
        let lock = Arc::new(std::sync::Mutex::new(()));
        let theirs = Arc::clone(&lock);
        let _held = lock.lock().unwrap();
        thread::spawn(move || drop(theirs.lock())).join().unwrap();
    });
    assert!(failure.to_string().contains("std::sync"), "{failure}");
}

#[test]
fn nondeterminism_is_named() {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    let failure = failure(Explore::new().jobs(1), move || {
        let n = AtomicUsize::new(0);
        // As if it read the clock: another number of steps each time.
        for _ in 0..runs.fetch_add(1, Ordering::SeqCst) % 7 + 1 {
            n.fetch_add(1, Ordering::SeqCst);
        }
        thread::spawn(|| thread::yield_now()).join().unwrap();
    });
    assert_eq!(failure.kind().name(), "determinism-violation");
    assert!(failure.to_string().contains("bad_bodies.rs"), "{failure}");
}

#[test]
fn what_only_the_first_execution_does_is_let_pass() {
    static CACHE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let body = || {
        let n = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&n);
        let other = thread::spawn(move || theirs.fetch_add(1, Ordering::SeqCst));
        CACHE.get_or_init(|| n.fetch_add(1, Ordering::SeqCst));
        other.join().unwrap();
    };
    Explore::new().schedules(20).jobs(1).run(body).expect("a cache is no bug");
}

#[test]
fn a_static_shared_by_two_executions_at_a_time() {
    static SHARED: Mutex<u64> = Mutex::new(0);
    let body = || {
        let other = thread::spawn(|| {
            for _ in 0..200 {
                *SHARED.lock().unwrap() += 1;
                thread::yield_now();
            }
        });
        for _ in 0..200 {
            *SHARED.lock().unwrap() += 1;
            thread::yield_now();
        }
        other.join().unwrap();
    };
    // Alone it is fine.
    Explore::new().schedules(10).jobs(1).run(body).expect("one at a time is fine");
    let together = Explore::new().schedules(4_000).jobs(2).run(body);
    let failure = together.expect_err("two at a time are noticed");
    assert!(failure.to_string().contains("jobs(1)"), "{failure}");
}

#[test]
fn thousands_of_threads() {
    let body = || {
        let n = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3_000)
            .map(|_| {
                let n = Arc::clone(&n);
                thread::spawn(move || n.fetch_add(1, Ordering::SeqCst))
            })
            .collect();
        assert!(threads.into_iter().all(|t| t.join().is_ok()));
        assert_eq!(n.load(Ordering::SeqCst), 3_000);
    };
    Explore::new()
        .strategy("random")
        .schedules(3)
        .jobs(1)
        .analyses("none")
        .run(body)
        .expect("fine");
}

#[test]
fn a_panic_that_is_joined_is_told_with_the_one_that_follows() {
    let failure = failure(Explore::new().jobs(1), || {
        let books = thread::spawn(|| assert_eq!(1 + 1, 3, "the ledger does not balance"));
        books.join().unwrap();
    });
    let text = failure.to_string();
    assert!(text.contains("called `Result::unwrap()`"), "{text}");
    assert!(text.contains("panicked before at "), "{text}");
    assert!(text.contains("the ledger does not balance"), "{text}");
}

#[test]
fn a_panic_that_is_joined_is_the_programs_own_business() {
    let body = || {
        let result = thread::spawn(|| panic!("expected")).join();
        assert!(result.is_err());
        let caught = thread::spawn(|| std::panic::catch_unwind(|| panic!("caught")).is_err());
        assert!(caught.join().unwrap());
    };
    Explore::new().schedules(20).run(body).expect("handled");
    let unhandled = Explore::new().schedules(20).run(|| {
        thread::spawn(|| panic!("nobody looks"));
    });
    assert!(unhandled.expect_err("unhandled").to_string().contains("nobody looks"));
}
