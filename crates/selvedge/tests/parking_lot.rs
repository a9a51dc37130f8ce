//! The flavour with `parking_lot`'s API: the same bodies on that crate, on ours outside a check, and on ours
//! inside one.

use std::cell::RefCell;
use std::time::Duration;

use selvedge::Explore;

macro_rules! bodies {
    ($name:ident, $lib:path, $threads:path, $time:path) => {
        mod $name {
            use super::*;
            use $lib::*;
            use $threads as thread;
            use $time as time;

            pub(super) const ALL: &[(&str, fn())] = &[
                ("mutex", mutex),
                ("mutex_timed", mutex_timed),
                ("rwlock", rwlock),
                ("upgradable", upgradable),
                ("reentrant", reentrant),
                ("condvar", condvar),
                ("condvar_timed", condvar_timed),
                ("once", once),
                ("constants", constants),
                ("no_poison", no_poison),
            ];

            fn mutex() {
                let lock = Mutex::new(0);
                assert!(!lock.is_locked());
                thread::scope(|s| {
                    for _ in 0..2 {
                        s.spawn(|| {
                            for _ in 0..3 {
                                *lock.lock() += 1;
                            }
                        });
                    }
                });
                {
                    let mut held = lock.lock();
                    assert!(lock.is_locked());
                    assert!(lock.try_lock().is_none());
                    MutexGuard::bump(&mut held);
                    let seen = MutexGuard::unlocked(&mut held, || lock.try_lock().map(|n| *n));
                    assert_eq!(seen, Some(6));
                    MutexGuard::unlock_fair(held);
                }
                let pair = Mutex::new((1, 2));
                *MutexGuard::map(pair.lock(), |p| &mut p.1) += 1;
                assert_eq!(pair.into_inner(), (1, 3));
                assert_eq!(format!("{lock:?}"), "Mutex { data: 6 }");
                let mut lock = lock;
                *lock.get_mut() = 7;
                assert_eq!(*lock.try_lock().unwrap(), 7);
            }

            fn mutex_timed() {
                let lock = Mutex::new(());
                let short = Duration::from_millis(1);
                {
                    let _held = lock.lock();
                    thread::scope(|s| {
                        s.spawn(|| assert!(lock.try_lock_for(short).is_none()));
                        s.spawn(|| {
                            let deadline = time::Instant::now() + short;
                            assert!(lock.try_lock_until(deadline).is_none());
                        });
                    });
                }
                assert!(lock.try_lock_for(short).is_some());
            }

            fn rwlock() {
                let lock = RwLock::new(1);
                {
                    let (one, two) = (lock.read(), lock.read());
                    assert_eq!(*one + *two, 2);
                    assert!(lock.try_write().is_none() && lock.try_read().is_some());
                    assert!(lock.is_locked() && !lock.is_locked_exclusive());
                    let _three = lock.read_recursive();
                }
                {
                    let mut written = lock.write();
                    *written = 2;
                    assert!(lock.try_read().is_none() && lock.is_locked_exclusive());
                    let read = RwLockWriteGuard::downgrade(written);
                    assert_eq!((*read, lock.try_read().map(|n| *n)), (2, Some(2)));
                    assert!(lock.try_write_for(Duration::from_millis(1)).is_none());
                }
                thread::scope(|s| {
                    s.spawn(|| *lock.write() += 1);
                    s.spawn(|| assert!([2, 3].contains(&*lock.read())));
                });
                assert_eq!(*lock.read(), 3);
            }

            fn upgradable() {
                let lock = RwLock::new(0);
                thread::scope(|s| {
                    for _ in 0..2 {
                        s.spawn(|| {
                            // Nobody writes between the look and the write.
                            let look = lock.upgradable_read();
                            let seen = *look;
                            thread::yield_now();
                            let mut write = RwLockUpgradableReadGuard::upgrade(look);
                            assert_eq!(*write, seen);
                            *write += 1;
                        });
                    }
                    s.spawn(|| assert!(*lock.read() <= 2));
                });
                let look = lock.upgradable_read();
                assert!(lock.try_upgradable_read().is_none() && lock.try_write().is_none());
                let reader = lock.try_read();
                assert_eq!(reader.as_deref(), Some(&2));
                let look = RwLockUpgradableReadGuard::try_upgrade(look).unwrap_err();
                drop(reader);
                let write = RwLockUpgradableReadGuard::try_upgrade(look).ok().unwrap();
                let look = RwLockWriteGuard::downgrade_to_upgradable(write);
                let read = RwLockUpgradableReadGuard::downgrade(look);
                assert!(lock.try_upgradable_read().is_some());
                drop(read);
                assert!(lock.try_write().is_some());
            }

            fn reentrant() {
                let lock = ReentrantMutex::new(RefCell::new(0));
                thread::scope(|s| {
                    for _ in 0..2 {
                        s.spawn(|| {
                            let outer = lock.lock();
                            let seen = *outer.borrow();
                            thread::yield_now();
                            *lock.lock().borrow_mut() = seen + 1;
                        });
                    }
                });
                assert_eq!(*lock.lock().borrow(), 2);
                let _held = lock.lock();
                assert!(lock.try_lock().is_some());
                assert!(thread::scope(|s| s.spawn(|| lock.try_lock().is_none()).join().unwrap()));
            }

            fn condvar() {
                let (lock, changed) = (Mutex::new(0), Condvar::new());
                assert!(!changed.notify_one());
                assert_eq!(changed.notify_all(), 0);
                thread::scope(|s| {
                    for _ in 0..2 {
                        s.spawn(|| {
                            let mut n = lock.lock();
                            while *n == 0 {
                                changed.wait(&mut n);
                            }
                            *n -= 1;
                        });
                    }
                    let waits = s.spawn(|| {
                        let mut n = lock.lock();
                        changed.wait_while(&mut n, |n| *n < 10);
                    });
                    for _ in 0..2 {
                        *lock.lock() += 1;
                        changed.notify_all();
                    }
                    while lock.try_lock().is_none_or(|n| *n > 0) {
                        thread::yield_now();
                    }
                    *lock.lock() = 10;
                    changed.notify_all();
                    waits.join().unwrap();
                });
            }

            fn condvar_timed() {
                let (lock, changed) = (Mutex::new(0), Condvar::new());
                let short = Duration::from_millis(1);
                let mut guard = lock.lock();
                assert!(changed.wait_for(&mut guard, short).timed_out());
                let deadline = time::Instant::now() + short;
                assert!(changed.wait_until(&mut guard, deadline).timed_out());
                assert!(changed.wait_while_for(&mut guard, |n| *n == 0, short).timed_out());
                assert!(!changed.wait_while_for(&mut guard, |n| *n == 1, short).timed_out());
                assert_eq!(*guard, 0);
            }

            fn once() {
                let once = Once::new();
                assert_eq!(once.state(), OnceState::New);
                let panics = std::panic::AssertUnwindSafe(|| once.call_once(|| panic!("expected")));
                assert!(std::panic::catch_unwind(panics).is_err());
                assert!(once.state().poisoned());
                once.call_once_force(|state| {
                    assert!(state.poisoned());
                    assert_eq!(once.state(), OnceState::InProgress);
                });
                once.call_once(|| unreachable!("once"));
                assert!(once.state().done());
            }

            static COUNT: Mutex<u32> = const_mutex(0);
            static TABLE: RwLock<u32> = const_rwlock(0);
            static AGAIN: ReentrantMutex<u32> = const_reentrant_mutex(3);
            static LAZY: Mutex<Vec<u32>> = Mutex::new(Vec::new());

            fn constants() {
                *COUNT.lock() += 1;
                *TABLE.write() += 1;
                LAZY.lock().clear();
                assert_eq!((*AGAIN.lock(), LAZY.lock().len()), (3, 0));
                assert_eq!(*const_fair_mutex(1).lock(), 1);
            }

            fn no_poison() {
                let lock = Mutex::new(1);
                let panics = std::panic::AssertUnwindSafe(|| {
                    let _held = lock.lock();
                    panic!("expected");
                });
                assert!(std::panic::catch_unwind(panics).is_err());
                assert_eq!(*lock.lock(), 1);
            }
        }
    };
}

bodies!(theirs, parking_lot, std::thread, std::time);
bodies!(ours, selvedge::parking_lot, selvedge::thread, selvedge::time);

#[test]
fn parking_lot_does_it() {
    theirs::ALL.iter().for_each(|(_, body)| body());
}

#[test]
fn our_locks_do_it_outside_a_check() {
    ours::ALL.iter().for_each(|(_, body)| body());
}

#[test]
fn our_locks_do_it_inside_a_check() {
    for (name, body) in ours::ALL {
        // One at a time: some bodies use statics.
        let explore = Explore::new().schedules(200).jobs(1);
        if let Err(failure) = explore.run(*body) {
            panic!("{name}: {failure}");
        }
    }
}

#[test]
fn opposite_orders_deadlock_and_the_report_says_where() {
    use selvedge::parking_lot::Mutex;
    let failure = Explore::new()
        .run(|| {
            let (a, b) = (Mutex::new(()), Mutex::new(()));
            selvedge::thread::scope(|s| {
                s.spawn(|| {
                    let _b = b.lock();
                    let _a = a.lock();
                });
                let _a = a.lock();
                let _b = b.lock();
            });
        })
        .expect_err("found");
    assert_eq!(failure.kind().name(), "deadlock", "{failure}");
    assert!(failure.to_string().contains("tests/parking_lot.rs"), "{failure}");
}

#[test]
fn two_who_read_and_then_want_to_write_deadlock() {
    use selvedge::parking_lot::RwLock;
    let failure = Explore::new()
        .run(|| {
            let lock = RwLock::new(0);
            selvedge::thread::scope(|s| {
                for _ in 0..2 {
                    s.spawn(|| {
                        // Not upgradable: each waits for the other to stop reading.
                        let read = lock.read();
                        let seen = *read;
                        *lock.write() = seen + 1;
                        drop(read);
                    });
                }
            });
        })
        .expect_err("found");
    assert_eq!(failure.kind().name(), "deadlock", "{failure}");
}
