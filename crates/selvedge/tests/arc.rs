//! `Arc` is the standard library's, and what dropping the last one orders is no race.

use selvedge::cell::RaceCell;
use selvedge::sync::atomic::{AtomicUsize, Ordering};
use selvedge::sync::{Arc, Mutex, Weak};
use selvedge::{Explore, Summary, thread};

/// A log that each thread appends to in its turn, and that is read by its destructor.
struct Log {
    lines: RaceCell<Vec<u32>>,
    seen: Arc<Mutex<Vec<u32>>>,
}

impl Log {
    fn new(seen: &Arc<Mutex<Vec<u32>>>) -> Arc<Log> {
        Arc::new(Log { lines: RaceCell::new(Vec::new()), seen: Arc::clone(seen) })
    }

    fn push(&self, line: u32) {
        // SAFETY: one thread at a time, as the callers see to; where they do not, the check reports it
        // and one OS thread runs at a time.
        self.lines.with_mut(|lines| unsafe { (*lines).push(line) });
    }

    fn len(&self) -> usize {
        // SAFETY: as in `push`.
        self.lines.with(|lines| unsafe { (*lines).len() })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // A tracked access by the last owner, without `&mut`.
        // SAFETY: nobody else has a reference.
        let lines = self.lines.with(|lines| unsafe { (*lines).clone() });
        self.seen.lock().unwrap().extend(lines);
    }
}

fn passes(body: impl Fn() + Send + Sync + 'static) -> Summary {
    let explore = Explore::new().schedules(400);
    explore.run(body).unwrap_or_else(|failure| panic!("{failure}"))
}

#[track_caller]
fn races(body: fn()) {
    let failure = Explore::new().run(body).expect_err("the race is found");
    let finding = &failure.case;
    assert_eq!(finding.kind.name(), "data-race", "{failure}");
    let again = Explore::new().replay(&failure.schedule.to_string()).run(body);
    assert_eq!(again.expect_err("it replays").case, failure.case);
}

#[test]
fn a_destructor_is_ordered_after_what_the_other_owners_did() {
    let summary = passes(|| {
        let seen = Arc::default();
        let log = Log::new(&seen);
        let theirs = Arc::clone(&log);
        // Only the thread writes; whoever is last reads, ordered by nothing but the count of the `Arc`.
        let writer = thread::spawn(move || theirs.push(1));
        thread::yield_now();
        drop(log);
        writer.join().unwrap();
        assert_eq!(*seen.lock().unwrap(), [1]);
    });
    // Nor is it hidden: some schedule has the destructor on the other thread.
    assert!(summary.unconfirmed.iter().any(|u| u.contains("data-race")), "{summary:?}");
    assert!(summary.unconfirmed.iter().all(|u| u.contains("last `Arc`")), "{summary:?}");
}

#[test]
fn so_is_what_is_done_with_a_value_taken_out_of_its_last_arc() {
    passes(|| {
        let seen = Arc::default();
        let log = Log::new(&seen);
        let theirs = Arc::clone(&log);
        let writer = thread::spawn(move || {
            theirs.push(1);
            if let Some(log) = Arc::into_inner(theirs) {
                log.push(2);
                assert_eq!(log.len(), 2);
            }
        });
        thread::yield_now();
        match Arc::try_unwrap(log) {
            Ok(log) => assert_eq!(log.len(), 1),
            Err(log) => drop(log),
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_race_between_two_owners_is_found_although_the_later_one_destroys() {
    // Neither thread does anything between its access and the end of its `Arc`.
    races(|| {
        let seen = Arc::default();
        let log = Log::new(&seen);
        let theirs = Arc::clone(&log);
        thread::spawn(move || theirs.push(1));
        log.push(2);
    });
}

#[test]
fn a_race_inside_a_destructor_with_what_it_does_not_own_is_found() {
    struct Counts(Arc<RaceCell<u32>>);
    impl Drop for Counts {
        fn drop(&mut self) {
            // SAFETY: it is not ordered; that is the bug.
            unsafe { self.0.set(self.0.get() + 1) };
        }
    }
    races(|| {
        let total = Arc::new(RaceCell::new(0));
        let (one, two) = (Counts(Arc::clone(&total)), Counts(Arc::clone(&total)));
        let other = thread::spawn(move || drop(one));
        drop(two);
        other.join().unwrap();
    });
}

#[test]
fn a_memory_order_that_is_too_weak_is_found_if_the_reader_is_not_the_last() {
    races(|| {
        let shared = Arc::new((RaceCell::new(0), AtomicUsize::new(0)));
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn(move || {
            // SAFETY: the reader waits for the flag; that the flag orders nothing is the bug.
            unsafe { theirs.0.set(7) };
            theirs.1.store(1, Ordering::Relaxed);
        });
        if shared.1.load(Ordering::Acquire) == 1 {
            // SAFETY: the flag is set after the write; that the flag orders nothing is the bug.
            assert_eq!(unsafe { shared.0.get() }, 7);
        }
        writer.join().unwrap();
    });
}

#[test]
fn it_is_the_standard_librarys_arc() {
    trait Speaks: Send + Sync {
        fn speak(self: Arc<Self>) -> u32;
    }
    struct Dog(u32);
    impl Speaks for Dog {
        fn speak(self: Arc<Self>) -> u32 {
            self.0
        }
    }
    struct Flag(AtomicUsize);
    impl std::task::Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    passes(|| {
        let dog: Arc<dyn Speaks> = Arc::new(Dog(3));
        let slice: Arc<[u8]> = Arc::new([1, 2, 3]);
        let text: Arc<str> = "text".into();
        let call: Arc<dyn Fn(u32) -> u32 + Send + Sync> = Arc::new(|n| n + 1);
        let weak: Weak<dyn Fn(u32) -> u32 + Send + Sync> = Arc::downgrade(&call) as _;
        let theirs = Arc::clone(&call);
        assert_eq!(thread::spawn(move || theirs(dog.speak())).join().unwrap(), 4);
        assert_eq!((slice.len(), &*text, weak.upgrade().is_some()), (3, "text", true));
        let flag = Arc::new(Flag(AtomicUsize::new(0)));
        std::task::Waker::from(Arc::clone(&flag)).wake();
        assert_eq!(flag.0.load(Ordering::SeqCst), 1);
        let cyclic = Arc::new_cyclic(|me: &Weak<u32>| me.strong_count() as u32);
        assert_eq!(*cyclic, 0);
    });
}
