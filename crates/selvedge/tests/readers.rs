//! Locks may let a reader wait behind a waiting writer. What deadlocks then is found, and nothing else.

use std::time::Duration;

use selvedge::sync::{Arc, Mutex, RwLock};
use selvedge::{Explore, parking_lot, thread};

type Two = Arc<(RwLock<i32>, RwLock<i32>)>;

/// Runs the bodies as threads, all of them joined.
fn all(bodies: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = bodies.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

fn deadlock(body: fn()) -> String {
    let failure = Explore::new().run(body).expect_err("a deadlock");
    assert_eq!(failure.kind().name(), "deadlock", "{failure}");
    // It happens again in the replay that the failure names.
    let replayed = std::panic::catch_unwind(|| {
        selvedge::replay(body, &failure.schedule.to_string());
    });
    assert!(replayed.is_err());
    failure.to_string()
}

fn clean(body: fn()) {
    if let Err(failure) = Explore::new().run(body) {
        panic!("{failure}");
    }
}

#[test]
fn reading_twice_with_a_writer_in_between() {
    let text = deadlock(|| {
        let lock = Arc::new(RwLock::new(0));
        let theirs = Arc::clone(&lock);
        let writer = thread::spawn(move || *theirs.write().unwrap() += 1);
        let first = lock.read().unwrap();
        assert_eq!(*first, *lock.read().unwrap());
        drop(first);
        writer.join().unwrap();
    });
    assert!(text.contains("threads wait in a circle, readers behind writers"), "{text}");
    assert!(text.contains("main waits to") && text.contains("behind thread 1"), "{text}");
    // One after the other it is right.
    clean(|| {
        let lock = Arc::new(RwLock::new(0));
        let theirs = Arc::clone(&lock);
        let writer = thread::spawn(move || *theirs.write().unwrap() += 1);
        let first = *lock.read().unwrap();
        assert!(first <= *lock.read().unwrap());
        writer.join().unwrap();
    });
}

/// Each reads one lock and then the other, in opposite orders: harmless but for the writers.
fn crossed(writers: bool) {
    let locks: Two = Arc::default();
    let [a, b, c, d] = std::array::from_fn(|_| Arc::clone(&locks));
    let mut bodies: Vec<Box<dyn FnOnce() + Send>> = vec![
        Box::new(move || drop((a.0.read().unwrap(), a.1.read().unwrap()))),
        Box::new(move || drop((b.1.read().unwrap(), b.0.read().unwrap()))),
    ];
    if writers {
        bodies.push(Box::new(move || *c.0.write().unwrap() += 1));
        bodies.push(Box::new(move || *d.1.write().unwrap() += 1));
    }
    all(bodies);
}

#[test]
fn readers_of_two_locks_with_a_writer_of_each() {
    deadlock(|| crossed(true));
    clean(|| crossed(false));
}

/// The circle is closed by a thread that waits for another one to end, and by one that waits for a mutex.
#[test]
fn circles_through_a_join_and_through_a_mutex() {
    deadlock(|| {
        let lock = Arc::new(RwLock::new(0));
        let (a, b) = (Arc::clone(&lock), Arc::clone(&lock));
        let held = lock.read().unwrap();
        let reader = thread::spawn(move || *a.read().unwrap());
        let writer = thread::spawn(move || *b.write().unwrap() += 1);
        reader.join().unwrap();
        drop(held);
        writer.join().unwrap();
    });
    deadlock(|| {
        let locks = Arc::new((RwLock::new(0), Mutex::new(0)));
        let [a, b, c] = std::array::from_fn(|_| Arc::clone(&locks));
        all(vec![
            Box::new(move || drop((a.0.read().unwrap(), a.1.lock().unwrap()))),
            Box::new(move || drop((b.1.lock().unwrap(), b.0.read().unwrap()))),
            Box::new(move || *c.0.write().unwrap() += 1),
        ]);
    });
}

#[test]
fn who_gives_up_waits_in_no_circle() {
    clean(|| {
        let lock = Arc::new(parking_lot::RwLock::new(0));
        let theirs = Arc::clone(&lock);
        let writer = thread::spawn(move || {
            theirs.try_write_for(Duration::from_millis(1)).map(|mut n| *n += 1)
        });
        let first = lock.read();
        assert_eq!(*first, *lock.read());
        drop(first);
        writer.join().unwrap();
    });
    clean(|| {
        let lock = Arc::new(RwLock::new(0));
        let theirs = Arc::clone(&lock);
        let writer = thread::spawn(move || *theirs.write().unwrap() += 1);
        let first = lock.read().unwrap();
        let _second = lock.try_read();
        drop(first);
        drop(_second);
        writer.join().unwrap();
    });
}

#[test]
fn recursive_reads_of_parking_lot_are_meant_for_it() {
    clean(|| {
        let lock = Arc::new(parking_lot::RwLock::new(0));
        let theirs = Arc::clone(&lock);
        let writer = thread::spawn(move || *theirs.write() += 1);
        let first = lock.read();
        assert_eq!(*first, *lock.read_recursive());
        drop(first);
        writer.join().unwrap();
    });
    deadlock(|| {
        let lock = Arc::new(parking_lot::RwLock::new(0));
        let theirs = Arc::clone(&lock);
        let writer = thread::spawn(move || *theirs.write() += 1);
        let first = lock.read();
        assert_eq!(*first, *lock.read());
        drop(first);
        writer.join().unwrap();
    });
}
