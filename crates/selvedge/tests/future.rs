//! Tasks, inside a check and outside it.
#![cfg(feature = "async")]

use std::task::Poll;

use selvedge::cell::RaceCell;
use selvedge::future::mpsc::{TryRecvError, TrySendError};
use selvedge::future::{Mutex, Notify, block_on, mpsc, oneshot, spawn, yield_now};
use selvedge::sync::Arc;
use selvedge::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use selvedge::{Explore, Failure};

/// Runs a body as it is and under many schedules.
fn both(body: fn()) {
    body();
    if let Err(failure) = Explore::new().schedules(300).run(body) {
        panic!("{failure}");
    }
}

fn fails(body: fn()) -> Box<Failure> {
    Explore::new().run(body).expect_err("the bug is found")
}

/// Polls once and drops.
async fn give_up(future: impl Future) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        let _ = future.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

#[test]
fn tasks() {
    both(|| {
        block_on(async {
            let one = spawn(async { 1 });
            let two = spawn(async {
                yield_now().await;
                2
            });
            assert_eq!(one.await.unwrap() + two.await.unwrap(), 3);
            let panicked = spawn(async { panic!("expected") }).await.unwrap_err();
            assert!(panicked.is_panic() && !panicked.is_cancelled());
            assert_eq!(panicked.into_panic().downcast_ref(), Some(&"expected"));
            let forever = spawn(std::future::pending::<()>());
            forever.abort();
            assert!(forever.await.unwrap_err().is_cancelled());
            let ended = spawn(async {});
            while !ended.is_finished() {
                yield_now().await;
            }
            ended.abort();
            ended.await.unwrap();
        });
        // One executor inside another: neither takes the other's wake-ups.
        let (sender, receiver) = oneshot::channel();
        let task = spawn(receiver);
        assert_eq!(block_on(async { block_on(async { sender.send(5) }).map(|()| 6) }), Ok(6));
        assert_eq!(block_on(task).unwrap(), Ok(5));
    });
}

#[test]
fn one_value() {
    both(|| {
        let (sender, mut receiver) = oneshot::channel();
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        assert!(!sender.is_closed());
        let task = spawn(async move { sender.send(7) });
        assert_eq!(block_on(&mut receiver), Ok(7));
        assert_eq!(block_on(task).unwrap(), Ok(()));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
        let (sender, receiver) = oneshot::channel::<()>();
        let task = spawn(async move { drop(sender) });
        assert!(block_on(receiver).is_err());
        block_on(task).unwrap();
        let (sender, mut receiver) = oneshot::channel();
        receiver.close();
        assert!(sender.is_closed());
        assert_eq!(sender.send(1), Err(1));
        assert!(block_on(receiver).is_err());
    });
}

#[test]
fn many_values() {
    both(|| {
        let (sender, mut receiver) = mpsc::channel(2);
        let tasks: Vec<_> = (0..2)
            .map(|i| {
                let sender = sender.clone();
                spawn(async move {
                    for n in 0..3 {
                        sender.send(i * 3 + n).await.unwrap();
                    }
                })
            })
            .collect();
        drop(sender);
        let mut seen = Vec::new();
        block_on(async {
            while let Some(n) = receiver.recv().await {
                seen.push(n);
            }
            for task in tasks {
                task.await.unwrap();
            }
        });
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));

        let (sender, mut receiver) = mpsc::channel(1);
        sender.try_send(1).unwrap();
        assert!(matches!(sender.try_send(2), Err(TrySendError::Full(2))));
        receiver.close();
        assert!(matches!(sender.try_send(2), Err(TrySendError::Closed(2))));
        assert_eq!(block_on(sender.send(3)).unwrap_err().0, 3);
        assert_eq!(block_on(receiver.recv()), Some(1));
        assert_eq!(block_on(receiver.recv()), None);
    });
}

#[test]
fn a_sender_that_gives_up_passes_the_room_on() {
    both(|| {
        let (sender, mut receiver) = mpsc::channel(1);
        sender.try_send(0).unwrap();
        let other = sender.clone();
        let patient = spawn(async move { other.send(1).await });
        let fickle = spawn(async move { give_up(sender.send(2)).await });
        block_on(async {
            assert_eq!(receiver.recv().await, Some(0));
            fickle.await.unwrap();
            let mut seen = Vec::new();
            while let Some(n) = receiver.recv().await {
                seen.push(n);
            }
            assert!(seen.contains(&1), "{seen:?}");
            patient.await.unwrap().unwrap();
        });
    });
}

#[test]
fn locks_are_held_across_awaits() {
    both(|| {
        let lock = Arc::new(Mutex::new(0));
        let tasks: Vec<_> = (0..3)
            .map(|i| {
                let lock = Arc::clone(&lock);
                spawn(async move {
                    if i == 0 {
                        return give_up(lock.lock()).await;
                    }
                    let mut n = lock.lock().await;
                    let seen = *n;
                    yield_now().await;
                    *n = seen + 1;
                })
            })
            .collect();
        for task in tasks {
            block_on(task).unwrap();
        }
        let lock = Arc::into_inner(lock).unwrap();
        {
            let _held = lock.try_lock().unwrap();
            assert!(lock.try_lock().is_err());
        }
        assert_eq!(lock.into_inner(), 2);
    });
}

#[test]
fn notifications() {
    both(|| {
        let notify = Arc::new(Notify::new());
        // Kept for whoever comes later, once.
        notify.notify_one();
        notify.notify_one();
        block_on(notify.notified());
        let count = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let (notify, count) = (Arc::clone(&notify), Arc::clone(&count));
                spawn(async move {
                    notify.notified().await;
                    count.fetch_add(1, SeqCst);
                })
            })
            .collect();
        while count.load(SeqCst) == 0 {
            notify.notify_waiters();
            selvedge::thread::yield_now();
        }
        while count.load(SeqCst) < 2 {
            notify.notify_one();
            selvedge::thread::yield_now();
        }
        for task in tasks {
            block_on(task).unwrap();
        }
    });
}

#[test]
fn a_notification_is_not_lost_with_whoever_gives_up() {
    both(|| {
        let notify = Arc::new(Notify::new());
        let theirs = Arc::clone(&notify);
        let fickle = spawn(async move { give_up(theirs.notified()).await });
        let theirs = Arc::clone(&notify);
        let patient = spawn(async move { theirs.notified().await });
        // One for each: whichever of them `fickle` does not use, `patient` gets one.
        notify.notify_one();
        block_on(fickle).unwrap();
        notify.notify_one();
        block_on(patient).unwrap();
    });
}

#[test]
fn a_task_that_nobody_wakes_is_a_deadlock() {
    let failure = fails(|| {
        let notify = Arc::new(Notify::new());
        let theirs = Arc::clone(&notify);
        let task = spawn(async move { theirs.notified().await });
        // Nobody may be there yet to hear it.
        notify.notify_waiters();
        block_on(task).unwrap();
    });
    assert_eq!(failure.kind().name(), "deadlock", "{failure}");
    assert!(failure.to_string().contains("future.rs"), "{failure}");
}

#[test]
fn a_panic_of_a_task_that_nobody_waits_for_fails_the_check() {
    let failure = fails(|| drop(spawn(async { panic!("nobody looks") })));
    assert!(failure.to_string().contains("nobody looks"), "{failure}");
}

#[test]
fn what_is_checked_and_then_done_across_an_await_is_found() {
    let failure = fails(|| {
        let stock = Arc::new(Mutex::new(1));
        let buy = |stock: Arc<Mutex<i32>>| async move {
            if *stock.lock().await > 0 {
                yield_now().await;
                *stock.lock().await -= 1;
            }
        };
        let tasks = [spawn(buy(Arc::clone(&stock))), spawn(buy(Arc::clone(&stock)))];
        for task in tasks {
            block_on(task).unwrap();
        }
        assert!(*block_on(stock.lock()) >= 0, "sold what was not there");
    });
    assert!(failure.to_string().contains("sold what was not there"), "{failure}");
}

#[test]
fn channels_order_what_tasks_share() {
    // Plain data handed over by each of the channels: no race.
    both(|| {
        let data = Arc::new(RaceCell::new(0));
        let theirs = Arc::clone(&data);
        let (sender, mut receiver) = mpsc::channel(1);
        let task = spawn(async move {
            // SAFETY: the other side reads after it has received.
            unsafe { theirs.set(1) };
            sender.send(()).await.unwrap();
        });
        block_on(receiver.recv()).unwrap();
        // SAFETY: the other side has set it and sent before this received.
        assert_eq!(unsafe { data.get() }, 1);
        block_on(task).unwrap();
    });
}

#[selvedge::test(schedules = 50)]
async fn an_async_test() {
    let (sender, receiver) = oneshot::channel();
    let task = spawn(async move { sender.send(1).unwrap() });
    assert_eq!(receiver.await, Ok(1));
    task.await.unwrap();
}
