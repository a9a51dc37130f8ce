//! Checks find what they should, and say it well.

use selvedge::cases::{self, Subject};
use selvedge::cell::RaceCell;
use selvedge::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use selvedge::sync::{Arc, Condvar, Mutex};
use selvedge::{Explore, Failure, thread};

fn fails<F: Fn() + Send + Sync + 'static>(body: F) -> Box<Failure> {
    let failure = Explore::new().run(body).expect_err("the bug is found");
    eprintln!("{failure}");
    failure
}

fn lost_update() {
    let counter = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                let n = counter.load(Ordering::SeqCst);
                counter.store(n + 1, Ordering::SeqCst);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(counter.load(Ordering::SeqCst), 2, "an update was lost");
}

#[test]
fn a_lost_update_is_found_minimised_and_replayed() {
    let failure = fails(lost_update);
    let Subject::Program(cases::Failure::Message(text)) = &failure.case.subject else {
        panic!("{failure}")
    };
    assert_eq!(failure.case.places[0].thread, "main");
    assert!(text.contains("an update was lost"));
    assert_eq!(failure.schedule.preemptions(), 1, "{failure}");
    let schedule = failure.schedule.to_string();
    for _ in 0..100 {
        let again = Explore::new().replay(&schedule).run(lost_update).expect_err("it replays");
        assert_eq!(again.case, failure.case);
    }
}

#[test]
fn the_same_seed_gives_the_same_failure_in_the_same_words() {
    let text = || Explore::new().seed(11).run(lost_update).expect_err("found").to_string();
    assert_eq!(text(), text());
}

#[test]
fn a_deadlock_names_who_waits_for_whom() {
    let failure = fails(|| {
        let a = Arc::new(Mutex::new(()));
        let b = Arc::new(Mutex::new(()));
        let (a2, b2) = (Arc::clone(&a), Arc::clone(&b));
        let other = thread::Builder::new()
            .name("other".into())
            .spawn(move || {
                let _b = b2.lock().unwrap();
                let _a = a2.lock().unwrap();
            })
            .unwrap();
        {
            let _a = a.lock().unwrap();
            let _b = b.lock().unwrap();
        }
        other.join().unwrap();
    });
    assert_eq!(failure.kind().name(), "deadlock", "{failure}");
    assert!(!failure.case.places.is_empty());
    let text = failure.to_string();
    assert!(text.contains("main waits to lock"), "{text}");
    assert!(text.contains("held by other"), "{text}");
    assert!(text.contains("help: acquire `b` and `a` in the same order"), "{text}");
    assert!(text.contains("SELVEDGE_REPLAY="), "{text}");
}

#[test]
fn what_is_shared_has_the_name_of_its_declaration() {
    #[derive(Default)]
    struct Queue {
        items: Mutex<Vec<u32>>,
        added: Condvar,
        taken: AtomicUsize,
    }
    fn consumer(queue: &Queue) {
        let items = queue.items.lock().unwrap();
        drop(queue.added.wait(items).unwrap());
        queue.taken.fetch_add(1, Ordering::SeqCst);
    }
    let failure = fails(|| {
        let queue = Arc::new(Queue::default());
        let theirs = Arc::clone(&queue);
        let other = thread::spawn(move || consumer(&theirs));
        queue.taken.fetch_add(1, Ordering::SeqCst);
        queue.added.notify_one();
        other.join().unwrap();
    });
    let text = failure.to_string();
    for name in ["waits on added", "notify one on added", "update taken"] {
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn a_thread_has_the_name_of_its_function() {
    fn worker() {
        panic!("at work");
    }
    let failure = fails(|| {
        let _ = thread::spawn(worker);
    });
    assert!(failure.to_string().contains("thread 1 (worker)"), "{failure}");
}

#[test]
fn a_lost_wakeup_is_a_deadlock() {
    let failure = fails(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let theirs = Arc::clone(&pair);
        let waiter = thread::spawn(move || {
            let ready = *theirs.0.lock().unwrap();
            if !ready {
                // The lock was given up in between: the notification may be gone.
                let guard = theirs.0.lock().unwrap();
                drop(theirs.1.wait(guard).unwrap());
            }
        });
        *pair.0.lock().unwrap() = true;
        pair.1.notify_one();
        waiter.join().unwrap();
    });
    assert_eq!(failure.kind().name(), "deadlock", "{failure}");
    assert!(
        failure.to_string().contains("help: a notification before the wait is lost"),
        "{failure}"
    );
}

#[test]
fn a_race_on_plain_data_is_found_on_any_schedule_that_shows_it() {
    let publish = |order| {
        move || {
            let shared = Arc::new((RaceCell::new(0), AtomicBool::new(false)));
            let theirs = Arc::clone(&shared);
            let writer = thread::spawn(move || {
                // SAFETY: the reader reads only after the flag is set.
                unsafe { theirs.0.set(42) };
                theirs.1.store(true, order);
            });
            if shared.1.load(Ordering::Acquire) {
                // SAFETY: the flag was set after the write.
                assert_eq!(unsafe { shared.0.get() }, 42);
            }
            writer.join().unwrap();
        }
    };
    let failure = fails(publish(Ordering::Relaxed));
    let finding = &failure.case;
    assert_eq!(finding.kind.name(), "data-race");
    assert!(failure.to_string().contains("basics.rs"), "{failure}");
    assert!(failure.to_string().contains("why: nothing orders the two accesses"), "{failure}");
    assert!(failure.to_string().contains("help: no lock is held at either place"), "{failure}");
    Explore::new().run(publish(Ordering::Release)).expect("the fixed twin is clean");
}

#[test]
fn a_correct_program_passes_and_the_search_is_complete() {
    let summary = Explore::new()
        .strategy("dfs")
        .schedules(100_000)
        .run(|| {
            let counter = Arc::new(Mutex::new(0));
            let theirs = Arc::clone(&counter);
            let thread = thread::spawn(move || *theirs.lock().unwrap() += 1);
            *counter.lock().unwrap() += 1;
            thread.join().unwrap();
            assert_eq!(*counter.lock().unwrap(), 2);
        })
        .expect("correct");
    assert!(summary.complete);
}

#[selvedge::test(schedules = 10)]
fn a_test_may_return_a_result() -> Result<(), std::num::ParseIntError> {
    let n: i32 = thread::spawn(|| "12".parse()).join().unwrap()?;
    assert_eq!(n, 12);
    Ok(())
}

#[selvedge::test(schedules = 10)]
#[should_panic(expected = "the test returned Err(ParseIntError")]
fn and_an_error_fails_it() -> Result<(), std::num::ParseIntError> {
    let n: i32 = thread::spawn(|| "twelve".parse()).join().unwrap()?;
    assert_eq!(n, 12);
    Ok(())
}

#[selvedge::test(schedules = 10)]
async fn so_may_an_asynchronous_one() -> Result<(), std::num::ParseIntError> {
    assert_eq!("12".parse::<i32>()?, 12);
    Ok(())
}

/// So that a crate with tests for shuttle compiles with this one in its place.
#[test]
fn the_functions_of_shuttle_take_the_types_of_shuttle() {
    fn fine() {
        let thread = thread::spawn(|| ());
        thread.join().unwrap();
    }
    let (iterations, depth): (usize, usize) = (10, 2);
    selvedge::check_random(fine, iterations);
    selvedge::check_pct(fine, iterations, depth);
    selvedge::check_dfs(fine, Some(iterations));
    selvedge::check_dfs(fine, None);
    // A function and the crate of events have names of their own.
    selvedge::model(fine);
    let _ = selvedge::events::ThreadId(0);
}
