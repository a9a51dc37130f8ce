//! What is predicted in one execution is made to happen in the next.

use selvedge::cell::RaceCell;
use selvedge::sync::atomic::{AtomicUsize, Ordering};
use selvedge::sync::{Arc, Mutex};
use selvedge::{Explore, thread};

/// Two threads take two locks in opposite order, far apart: no schedule of round robin or of a short
/// random walk shows the deadlock.
fn far_apart(guarded: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let locks = Arc::new((Mutex::new(()), Mutex::new(()), Mutex::new(())));
        let theirs = Arc::clone(&locks);
        let busy = |n: usize| {
            let x = AtomicUsize::new(0);
            for _ in 0..n {
                x.fetch_add(1, Ordering::Relaxed);
            }
        };
        let other = thread::spawn(move || {
            busy(60);
            let _gate = guarded.then(|| theirs.2.lock().unwrap());
            let _b = theirs.1.lock().unwrap();
            let _a = theirs.0.lock().unwrap();
        });
        {
            let _gate = guarded.then(|| locks.2.lock().unwrap());
            let _a = locks.0.lock().unwrap();
            let _b = locks.1.lock().unwrap();
        }
        busy(60);
        other.join().unwrap();
    }
}

#[test]
fn a_deadlock_is_predicted_and_then_happens() {
    for seed in 0..20 {
        let explore = Explore::new().jobs(1).seed(seed).strategy("random").schedules(3);
        let failure = explore.run(far_apart(false)).expect_err("predicted and confirmed");
        assert_eq!(failure.kind().name(), "deadlock", "{failure}");
        assert!(failure.execution <= 10, "{}", failure.execution);
        let again = Explore::new().replay(&failure.schedule.to_string()).run(far_apart(false));
        assert_eq!(again.expect_err("it replays").case, failure.case);
    }
    // Chance alone does not find it.
    let chance = Explore::new().jobs(1).strategy("random").schedules(50).analyses("none");
    chance.run(far_apart(false)).expect("not by chance");
}

#[test]
fn a_deadlock_behind_a_gate_is_not_confirmed() {
    Explore::new().schedules(30).run(far_apart(true)).expect("it cannot happen");
}

/// A write ordered before a read by luck: through a lock that was released in between. Happens-before
/// sees no race on such schedules; the hybrid analysis predicts one.
fn by_luck(fixed: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new((RaceCell::new(0), Mutex::new(())));
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            let guard = fixed.then(|| theirs.1.lock().unwrap());
            // SAFETY: a race is what is tested for.
            unsafe { theirs.0.set(1) };
            drop(guard);
            drop(theirs.1.lock().unwrap());
        });
        drop(shared.1.lock().unwrap());
        let x = AtomicUsize::new(0);
        for _ in 0..40 {
            x.fetch_add(1, Ordering::Relaxed);
        }
        let guard = fixed.then(|| shared.1.lock().unwrap());
        // SAFETY: a race is what is tested for.
        let seen = unsafe { shared.0.get() };
        drop(guard);
        assert!(seen < 2);
        writer.join().unwrap();
    }
}

#[test]
fn a_race_is_predicted_and_then_happens() {
    let explore = || Explore::new().jobs(1).strategy("round-robin:1000");
    let failure = explore().analyses("hybrid").run(by_luck(false)).expect_err("confirmed");
    let finding = &failure.case;
    assert_eq!((finding.kind.name(), finding.status.name()), ("data-race", "confirmed"));
    let clean = Explore::new().schedules(200).analyses("races,hybrid").run(by_luck(true));
    assert!(clean.expect("the fixed twin is clean").unconfirmed.is_empty());
}

#[test]
fn what_cannot_be_confirmed_is_listed() {
    // Ordered by an atomic flag, which the hybrid analysis does not see.
    let body = || {
        let shared = Arc::new((RaceCell::new(0), AtomicUsize::new(0)));
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            // SAFETY: the reader waits for the flag.
            unsafe { theirs.0.set(1) };
            theirs.1.store(1, Ordering::Release);
        });
        while shared.1.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        // SAFETY: the flag is set.
        assert_eq!(unsafe { shared.0.get() }, 1);
        writer.join().unwrap();
    };
    let summary = Explore::new().jobs(1).schedules(20).analyses("races,hybrid").run(body);
    let unconfirmed = summary.expect("nothing is confirmed").unconfirmed;
    assert_eq!(unconfirmed.len(), 1);
    assert!(unconfirmed[0].contains("confirm.rs"), "{unconfirmed:?}");
}

/// Check, then act, under one lock or two.
fn check_then_act(whole: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let balance = Arc::new(Mutex::new(10));
        let withdraw = move |balance: &Mutex<i32>| {
            selvedge::atomic("withdraw", || {
                let guard = balance.lock().unwrap();
                let enough = *guard >= 10;
                if whole {
                    let mut guard = guard;
                    *guard -= if enough { 10 } else { 0 };
                    return;
                }
                drop(guard);
                if enough {
                    *balance.lock().unwrap() -= 10;
                }
            });
        };
        let theirs = Arc::clone(&balance);
        let other = thread::spawn(move || withdraw(&theirs));
        withdraw(&balance);
        other.join().unwrap();
    }
}

#[test]
fn a_violated_atomic_block_is_found_without_an_assertion() {
    let failure = Explore::new().run(check_then_act(false)).expect_err("not atomic");
    let finding = &failure.case;
    assert_eq!(finding.kind.name(), "atomicity-violation");
    Explore::new().run(check_then_act(true)).expect("atomic");
}

#[selvedge::test(schedules = 5, strategy = "pct:2", seed = 3, jobs = 1)]
fn the_attribute_takes_options() {
    let lock = Arc::new(Mutex::new(0));
    let theirs = Arc::clone(&lock);
    thread::spawn(move || *theirs.lock().unwrap() += 1).join().unwrap();
    assert_eq!(*lock.lock().unwrap(), 1);
}

#[selvedge::test]
fn the_attribute_makes_a_test() {
    let lock = Arc::new(Mutex::new(0));
    let theirs = Arc::clone(&lock);
    thread::spawn(move || *theirs.lock().unwrap() += 1).join().unwrap();
    assert_eq!(*lock.lock().unwrap(), 1);
}

#[selvedge::test(schedules = 200)]
#[should_panic(expected = "an update was lost")]
fn the_attribute_composes_with_others() {
    let n = Arc::new(AtomicUsize::new(0));
    let theirs = Arc::clone(&n);
    let other = thread::spawn(move || {
        let seen = theirs.load(Ordering::SeqCst);
        theirs.store(seen + 1, Ordering::SeqCst);
    });
    let seen = n.load(Ordering::SeqCst);
    n.store(seen + 1, Ordering::SeqCst);
    other.join().unwrap();
    assert_eq!(n.load(Ordering::SeqCst), 2, "an update was lost");
}
