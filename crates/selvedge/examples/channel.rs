//! Tasks and a bounded channel: a task that asks itself for an answer.
//!
//! The worker sends its results into a channel with room for one and is the only task that could make
//! room. A task that no other task can wake is a deadlock. Needs the feature `async`; run it with
//! `cargo run --example channel --features async`.

use selvedge::Explore;
use selvedge::future::{block_on, mpsc, spawn};

const RESULTS: u32 = 3;

/// Sends everything before it receives anything.
async fn all_at_once() -> u32 {
    let (sender, mut receiver) = mpsc::channel(1);
    for n in 0..RESULTS {
        sender.send(n).await.expect("the receiver is there");
    }
    drop(sender);
    let mut sum = 0;
    while let Some(n) = receiver.recv().await {
        sum += n;
    }
    sum
}

/// Another task sends, so that this one can make room.
async fn with_a_sender() -> u32 {
    let (sender, mut receiver) = mpsc::channel(1);
    let task = spawn(async move {
        for n in 0..RESULTS {
            sender.send(n).await.expect("the receiver is there");
        }
    });
    let mut sum = 0;
    while let Some(n) = receiver.recv().await {
        sum += n;
    }
    task.await.expect("the task does not panic");
    sum
}

fn main() {
    let failure = Explore::new()
        .run(|| assert_eq!(block_on(all_at_once()), 3))
        .expect_err("the bug is found");
    assert_eq!(failure.kind().name(), "deadlock");
    println!("{failure}");

    let mended = Explore::new().run(|| assert_eq!(block_on(with_a_sender()), 3));
    let summary = mended.expect("the mended program is correct");
    println!("mended: no failure in {} executions", summary.executions);
}

#[test]
fn it_runs() {
    main();
}
