//! A condition variable: a consumer that tests its condition with `if` instead of `while`.
//!
//! Between the notification and the moment when the consumer has the lock again, another consumer may have
//! taken the item. Run it with `cargo run --example condition`.

use selvedge::sync::{Arc, Condvar, Mutex};
use selvedge::{Explore, thread};

#[derive(Default)]
struct Queue {
    items: Mutex<Vec<u32>>,
    added: Condvar,
}

impl Queue {
    fn add(&self, item: u32) {
        self.items.lock().unwrap().push(item);
        self.added.notify_one();
    }

    fn take_if(&self) -> u32 {
        let mut items = self.items.lock().unwrap();
        if items.is_empty() {
            items = self.added.wait(items).unwrap();
        }
        let item = items.pop();
        drop(items);
        item.expect("there is an item after the notification")
    }

    fn take_while(&self) -> u32 {
        let items = self.items.lock().unwrap();
        let mut items = self.added.wait_while(items, |items| items.is_empty()).unwrap();
        items.pop().expect("there is an item while the lock is held")
    }
}

fn two_consumers(take: fn(&Queue) -> u32) {
    let queue = Arc::new(Queue::default());
    let consumers = [1, 2].map(|_| {
        let queue = Arc::clone(&queue);
        thread::spawn(move || take(&queue))
    });
    queue.add(1);
    queue.add(2);
    let taken: u32 = consumers.map(|consumer| consumer.join().unwrap()).iter().sum();
    assert_eq!(taken, 3);
}

fn main() {
    let failure =
        Explore::new().run(|| two_consumers(Queue::take_if)).expect_err("the bug is found");
    println!("{failure}");

    let mended = Explore::new().run(|| two_consumers(Queue::take_while));
    let summary = mended.expect("the mended program is correct");
    println!("mended: no failure in {} executions", summary.executions);
}

#[test]
fn it_runs() {
    main();
}
