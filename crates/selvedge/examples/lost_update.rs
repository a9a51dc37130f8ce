//! A lost update: two threads read a counter, add one and write it back.
//!
//! Every operation is atomic and there is no data race, yet one schedule in which the second thread reads
//! before the first has written loses an increment. Run it with `cargo run --example lost_update`.

use selvedge::Explore;
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicUsize, Ordering};
use selvedge::thread;

fn count(add: fn(&AtomicUsize)) {
    let counter = Arc::new(AtomicUsize::new(0));
    let theirs = Arc::clone(&counter);
    let other = thread::spawn(move || add(&theirs));
    add(&counter);
    other.join().unwrap();
    assert_eq!(counter.load(Ordering::SeqCst), 2, "an update was lost");
}

fn read_then_write(counter: &AtomicUsize) {
    let seen = counter.load(Ordering::SeqCst);
    counter.store(seen + 1, Ordering::SeqCst);
}

fn in_one_step(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::SeqCst);
}

fn main() {
    let failure = Explore::new().run(|| count(read_then_write)).expect_err("the bug is found");
    println!("{failure}");
    // What it prints replays: as an environment variable, or in the source.
    let schedule = failure.schedule.to_string();
    let again = Explore::new().replay(&schedule).run(|| count(read_then_write));
    assert_eq!(again.expect_err("the schedule shows the same bug").case, failure.case);

    let summary = Explore::new().run(|| count(in_one_step)).expect("the mended program is correct");
    println!("mended: no failure in {} executions", summary.executions);
}

#[test]
fn it_runs() {
    main();
}
