//! The same test bodies on the standard library, on our types outside a check, and inside one: single
//! threaded contracts, poisoning, timeouts, the order of drops; and equal `Send` and `Sync`.

use std::marker::PhantomData;

/// Test bodies in terms of modules `sync` and `thread`.
macro_rules! bodies {
    ($name:ident, $($root:tt)*) => {
        mod $name {
            use std::cell::RefCell;
            use std::panic::{AssertUnwindSafe, catch_unwind};
            use std::time::Duration;

            use $($root)*::sync::atomic::{AtomicBool, AtomicI8, AtomicPtr, AtomicUsize, Ordering::*};
            use $($root)*::sync::mpsc::{self, RecvTimeoutError, TryRecvError, TrySendError};
            use $($root)*::sync::{
                Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, TryLockError,
            };
            use $($root)*::sync::RwLockWriteGuard;
            use $($root)*::{cell, hint, thread, thread_local, time};

            pub(crate) const ALL: &[(&str, fn())] = &[
                ("mutex", mutex), ("poison", poison), ("rwlock", rwlock), ("condvar", condvar),
                ("barrier", barrier), ("once", once), ("once_lock", once_lock), ("lazy", lazy),
                ("channel", channel), ("sync_channel", sync_channel), ("rendezvous", rendezvous),
                ("atomics", atomics), ("threads", threads), ("scope", scope), ("park", park),
                ("locals", locals), ("drop_order", drop_order), ("downgrade", downgrade),
                ("condvar_timeouts", condvar_timeouts), ("once_waits", once_waits),
                ("debug_and_defaults", debug_and_defaults), ("channel_ends", channel_ends),
                ("channel_drops", channel_drops), ("scope_more", scope_more),
                ("builder", builder), ("locals_more", locals_more), ("park_more", park_more),
                ("instants", instants), ("cells", cells), ("atomics_more", atomics_more),
            ];

            fn downgrade() {
                let lock = RwLock::new(1);
                let mut write = lock.write().unwrap();
                *write = 2;
                let read = RwLockWriteGuard::downgrade(write);
                assert!(lock.try_write().is_err());
                assert_eq!((*read, *lock.try_read().unwrap()), (2, 2));
                drop(read);
                assert!(lock.try_write().is_ok());
            }

            fn condvar_timeouts() {
                let (lock, changed) = (Mutex::new(0), Condvar::new());
                changed.notify_one();
                changed.notify_all();
                let short = Duration::from_millis(2);
                let begun = time::Instant::now();
                let (guard, result) = changed
                    .wait_timeout_while(lock.lock().unwrap(), short, |_| true)
                    .unwrap();
                assert!(result.timed_out() && begun.elapsed() >= short);
                drop(guard);
                // A panic of another thread while it waits poisons what it gets back.
                let lock = Arc::new((Mutex::new(false), Condvar::new()));
                let theirs = Arc::clone(&lock);
                let other = thread::spawn(move || {
                    let mut guard = theirs.0.lock().unwrap();
                    *guard = true;
                    theirs.1.notify_all();
                    panic!("expected");
                });
                let mut guard = lock.0.lock().unwrap_or_else(|e| e.into_inner());
                while !*guard {
                    guard = lock.1.wait(guard).unwrap_or_else(|e| e.into_inner());
                }
                drop(guard);
                assert!(other.join().is_err());
                assert!(lock.1.wait_timeout(lock.0.lock().unwrap_err().into_inner(), short).is_err());
            }

            fn once_waits() {
                let once = Arc::new((Once::new(), OnceLock::new()));
                let theirs = Arc::clone(&once);
                let other = thread::spawn(move || {
                    theirs.0.wait();
                    *theirs.1.wait()
                });
                once.0.call_once(|| ());
                assert_eq!(once.1.set(5), Ok(()));
                assert_eq!(other.join().unwrap(), 5);
                let cell = &OnceLock::new();
                let winners: usize = thread::scope(|s| {
                    let set = |n| s.spawn(move || usize::from(cell.set(n).is_ok()));
                    let tries: Vec<_> = (0..3).map(set).collect();
                    tries.into_iter().map(|t| t.join().unwrap()).sum()
                });
                assert_eq!(winners, 1);
                let lazy = LazyLock::new(|| vec![1]);
                assert_eq!(LazyLock::force(&lazy).len(), 1);
            }

            fn debug_and_defaults() {
                assert_eq!(format!("{:?}", RwLock::new(1)), "RwLock { data: 1, poisoned: false, .. }");
                assert_eq!(format!("{:?}", OnceLock::<i32>::new()), "OnceLock(<uninit>)");
                assert_eq!(format!("{:?}", OnceLock::from(1)), "OnceLock(1)");
                assert!(format!("{:?}", LazyLock::new(|| 1)).contains("<uninit>"));
                assert_eq!(*RwLock::<u8>::default().read().unwrap(), 0);
                assert_eq!(*RwLock::from(2).write().unwrap(), 2);
                assert_eq!(OnceLock::<i32>::default().get(), None);
                let mut cell = OnceLock::from(1);
                *cell.get_mut().unwrap() += 1;
                assert_eq!(cell.get(), Some(&2));
                let _ = (Condvar::default(), Barrier::new(0));
                assert!(AtomicBool::from(true).into_inner());
                let (sender, receiver) = mpsc::channel::<i32>();
                assert!(format!("{sender:?} {receiver:?}").contains("Sender"));
            }

            fn channel_ends() {
                let (sender, receiver) = mpsc::sync_channel(2);
                let second = sender.clone();
                sender.send(1).unwrap();
                second.try_send(2).unwrap();
                drop((sender, second));
                assert_eq!(receiver.into_iter().collect::<Vec<_>>(), [1, 2]);
                let (sender, receiver) = mpsc::channel();
                for n in 0..3 {
                    sender.send(n).unwrap();
                }
                drop(sender);
                assert_eq!((&receiver).into_iter().sum::<i32>(), 3);
                let error = receiver.recv().unwrap_err();
                assert_eq!(error.to_string(), "receiving on a closed channel");
                let (sender, receiver) = mpsc::channel::<i32>();
                let other = thread::spawn(move || receiver.recv());
                drop(sender);
                assert!(other.join().unwrap().is_err());
                let (sender, receiver) = mpsc::channel();
                let short = Duration::from_millis(1);
                let other = thread::spawn(move || receiver.recv_timeout(short * 10_000));
                sender.send(9).unwrap();
                assert_eq!(other.join().unwrap(), Ok(9));
            }

            /// What was sent and never received is dropped with the receiver, not with the senders.
            fn channel_drops() {
                struct Note(Arc<AtomicUsize>);
                impl Drop for Note {
                    fn drop(&mut self) {
                        self.0.fetch_add(1, SeqCst);
                    }
                }
                let dropped = Arc::new(AtomicUsize::new(0));
                let (sender, receiver) = mpsc::channel();
                sender.send(Note(Arc::clone(&dropped))).unwrap();
                sender.send(Note(Arc::clone(&dropped))).unwrap();
                assert!(receiver.recv().is_ok());
                assert_eq!(dropped.load(SeqCst), 1);
                drop(receiver);
                assert_eq!(dropped.load(SeqCst), 2);
                let back = sender.send(Note(Arc::clone(&dropped))).unwrap_err();
                assert_eq!(dropped.load(SeqCst), 2);
                drop(back);
                assert_eq!(dropped.load(SeqCst), 3);
            }

            fn scope_more() {
                let count = AtomicUsize::new(0);
                thread::scope(|s| {
                    // A thread of a scope starts another one; both are over when the scope is.
                    s.spawn(|| {
                        s.spawn(|| count.fetch_add(1, SeqCst));
                    });
                    let built = thread::Builder::new().name("built".into());
                    let handle = built.spawn_scoped(s, || count.fetch_add(1, SeqCst)).unwrap();
                    assert_eq!(handle.thread().name(), Some("built"));
                    while !handle.is_finished() {
                        thread::yield_now();
                    }
                });
                assert_eq!(count.load(SeqCst), 2);
                let unwound = catch_unwind(AssertUnwindSafe(|| {
                    thread::scope(|s| {
                        s.spawn(|| count.fetch_add(1, SeqCst));
                        panic!("expected");
                    });
                }));
                assert!(unwound.is_err());
                assert_eq!(count.load(SeqCst), 3, "the scope waited before it unwound");
            }

            fn builder() {
                let handle = thread::Builder::new().spawn(|| thread::current().id()).unwrap();
                let id = handle.thread().id();
                assert_eq!(handle.join().unwrap(), id);
                let result = thread::spawn(|| -> i32 { panic!("expected {:?}", thread::current().name()) }).join();
                assert_eq!(*result.unwrap_err().downcast::<String>().unwrap(), "expected None");
                assert!(thread::available_parallelism().is_ok());
                assert!(!thread::panicking());
            }

            fn locals_more() {
                thread_local! {
                    static CELL: cell::Cell<i32> = const { cell::Cell::new(1) };
                    static LAZY: cell::Cell<usize> = cell::Cell::new(thread::current().name().map_or(0, str::len));
                }
                assert_eq!(CELL.get(), 1);
                CELL.set(2);
                let named = thread::Builder::new().name("seven77".into());
                let theirs = named.spawn(|| (CELL.replace(5), CELL.take(), LAZY.get())).unwrap();
                assert_eq!(theirs.join().unwrap(), (1, 5, 7));
                assert_eq!(CELL.replace(1), 2);
                // Of two locals the one made first is dropped last, and can be used till then.
                struct Reads(Arc<AtomicUsize>);
                impl Drop for Reads {
                    fn drop(&mut self) {
                        self.0.store(FIRST.try_with(|n| *n).unwrap_or(99), SeqCst);
                    }
                }
                thread_local! {
                    static FIRST: usize = const { 7 };
                    static SECOND: RefCell<Option<Reads>> = const { RefCell::new(None) };
                }
                let seen = Arc::new(AtomicUsize::new(0));
                let reads = Reads(Arc::clone(&seen));
                let other = thread::spawn(move || {
                    FIRST.with(|n| assert_eq!(*n, 7));
                    SECOND.with_borrow_mut(|s| *s = Some(reads));
                });
                other.join().unwrap();
                assert_eq!(seen.load(SeqCst), 7);
            }

            fn park_more() {
                let handle = thread::spawn(|| {
                    thread::park();
                    thread::park_timeout(Duration::from_millis(1));
                });
                handle.thread().unpark();
                handle.thread().unpark();
                handle.join().unwrap();
                let me = thread::current();
                let other = thread::spawn(move || me.unpark());
                thread::park_timeout(Duration::from_secs(60));
                other.join().unwrap();
            }

            fn instants() {
                let begun = time::Instant::now();
                thread::sleep(Duration::from_millis(1));
                let ended = time::Instant::now();
                assert!(ended - begun >= Duration::from_millis(1) && begun < ended);
                assert_eq!(begun.checked_duration_since(ended), None);
                assert_eq!(begun.saturating_duration_since(ended), Duration::ZERO);
                let mut later = begun + Duration::from_secs(2);
                later -= Duration::from_secs(1);
                assert_eq!(later.duration_since(begun), Duration::from_secs(1));
                hint::spin_loop();
                assert_eq!(hint::black_box(1), 1);
            }

            fn cells() {
                let (one, two) = (cell::Cell::new(1), cell::Cell::new(2));
                one.swap(&two);
                assert_eq!((one.get(), two.replace(5), two.take()), (2, 1, 5));
                one.set(9);
                assert_eq!((one.clone().into_inner(), format!("{one:?}")), (9, "Cell { value: 9 }".into()));
                let mut raw = cell::UnsafeCell::new(1);
                *raw.get_mut() = 2;
                assert_eq!(raw.get(), raw.get());
                assert_eq!(raw.into_inner(), 2);
                assert_eq!(*cell::RefCell::new(1).borrow(), 1);
            }

            fn atomics_more() {
                let mut n = AtomicUsize::new(0b1100);
                assert_eq!(n.fetch_nand(0b1010, SeqCst), 0b1100);
                *n.get_mut() = 3;
                assert_eq!(n.compare_exchange(9, 1, SeqCst, Relaxed), Err(3));
                while n.compare_exchange_weak(3, 4, SeqCst, Relaxed).is_err() {}
                assert_eq!(n.load(Acquire), 4);
                let flag = AtomicBool::new(true);
                assert!(flag.fetch_and(false, AcqRel) && !flag.fetch_xor(true, AcqRel));
                assert!(flag.fetch_nand(true, AcqRel) && !flag.swap(true, AcqRel));
                for order in [Acquire, AcqRel] {
                    let bad = catch_unwind(AssertUnwindSafe(|| {
                        n.store(1, std::hint::black_box(order));
                    }));
                    assert!(bad.is_err());
                }
            }

            fn mutex() {
                let mut lock = Mutex::new(1);
                {
                    let mut guard = lock.lock().unwrap();
                    *guard += 1;
                    assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock)));
                    assert_eq!(format!("{guard} {guard:?}"), "2 2");
                    assert!(format!("{lock:?}").contains("<locked>"));
                }
                assert_eq!(format!("{lock:?}"), "Mutex { data: 2, poisoned: false, .. }");
                *lock.get_mut().unwrap() = 5;
                assert_eq!(*lock.try_lock().unwrap(), 5);
                assert_eq!(lock.into_inner().unwrap(), 5);
                assert_eq!(*Mutex::<u8>::default().lock().unwrap(), 0);
                assert_eq!(*Mutex::from("x").lock().unwrap(), "x");
                let unsized_lock: Arc<Mutex<[i32]>> = Arc::new(Mutex::new([1, 2]));
                assert_eq!(unsized_lock.lock().unwrap().len(), 2);
            }

            fn poison() {
                let lock = Arc::new(Mutex::new(0));
                let theirs = Arc::clone(&lock);
                let result = thread::spawn(move || {
                    *theirs.lock().unwrap() = 1;
                    let _guard = theirs.lock().unwrap();
                    panic!("expected");
                })
                .join();
                assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "expected");
                assert!(lock.is_poisoned());
                assert_eq!(*lock.lock().unwrap_err().into_inner(), 1);
                assert!(matches!(lock.try_lock(), Err(TryLockError::Poisoned(_))));
                lock.clear_poison();
                assert_eq!(*lock.lock().unwrap(), 1);

                let rw = RwLock::new(0);
                let read = catch_unwind(AssertUnwindSafe(|| {
                    let _guard = rw.read().unwrap();
                    panic!("a reader poisons nothing");
                }));
                assert!(read.is_err() && !rw.is_poisoned());
                let write = catch_unwind(AssertUnwindSafe(|| {
                    let _guard = rw.write().unwrap();
                    panic!("a writer does");
                }));
                assert!(write.is_err() && rw.is_poisoned() && rw.read().is_err());

                // A guard taken while unwinding does not poison when dropped by the unwinding.
                let late = Arc::new(Mutex::new(()));
                struct LockOnDrop(Arc<Mutex<()>>);
                impl Drop for LockOnDrop {
                    fn drop(&mut self) {
                        drop(self.0.lock());
                    }
                }
                let inside = LockOnDrop(Arc::clone(&late));
                let _ = catch_unwind(AssertUnwindSafe(move || {
                    let _inside = inside;
                    panic!("expected");
                }));
                assert!(!late.is_poisoned());
            }

            fn rwlock() {
                let lock = RwLock::new(1);
                {
                    let (a, b) = (lock.read().unwrap(), lock.read().unwrap());
                    assert_eq!(*a + *b, 2);
                    assert!(matches!(lock.try_write(), Err(TryLockError::WouldBlock)));
                    assert!(lock.try_read().is_ok());
                }
                *lock.write().unwrap() = 3;
                {
                    let _w = lock.write().unwrap();
                    assert!(lock.try_read().is_err() && lock.try_write().is_err());
                }
                assert_eq!(lock.into_inner().unwrap(), 3);
            }

            fn condvar() {
                let pair = Arc::new((Mutex::new(0), Condvar::new()));
                let theirs = Arc::clone(&pair);
                let other = thread::spawn(move || {
                    *theirs.0.lock().unwrap() = 1;
                    theirs.1.notify_all();
                });
                let guard = pair.1.wait_while(pair.0.lock().unwrap(), |n| *n == 0).unwrap();
                assert_eq!(*guard, 1);
                let short = Duration::from_millis(1);
                let (guard, _) = pair.1.wait_timeout(guard, short).unwrap();
                let (guard, result) =
                    pair.1.wait_timeout_while(guard, short, |n| *n == 1).unwrap();
                assert!(result.timed_out());
                let (_guard, result) =
                    pair.1.wait_timeout_while(guard, short, |n| *n == 0).unwrap();
                assert!(!result.timed_out());
                other.join().unwrap();
            }

            fn barrier() {
                let barrier = Arc::new(Barrier::new(3));
                let waits: Vec<_> = (0..3)
                    .map(|_| {
                        let barrier = Arc::clone(&barrier);
                        thread::spawn(move || (0..4).filter(|_| barrier.wait().is_leader()).count())
                    })
                    .collect();
                let leaders: usize = waits.into_iter().map(|t| t.join().unwrap()).sum();
                assert_eq!(leaders, 4, "one for each round");
                assert!(Barrier::new(1).wait().is_leader());
            }

            fn once() {
                let once = Once::new();
                assert!(!once.is_completed());
                let failed = catch_unwind(AssertUnwindSafe(|| once.call_once(|| panic!("expected"))));
                assert!(failed.is_err());
                let poisoned = catch_unwind(AssertUnwindSafe(|| once.call_once(|| ())));
                assert!(poisoned.is_err(), "poisoned for ever, unless forced");
                let mut seen = None;
                once.call_once_force(|state| seen = Some(state.is_poisoned()));
                assert_eq!(seen, Some(true));
                once.call_once(|| unreachable!("once"));
                assert!(once.is_completed());
            }

            fn once_lock() {
                let mut cell = OnceLock::new();
                assert_eq!(cell.get(), None);
                let failed = catch_unwind(AssertUnwindSafe(|| {
                    cell.get_or_init(|| panic!("expected"));
                }));
                assert!(failed.is_err());
                assert_eq!(cell.set(1), Ok(()));
                assert_eq!(cell.set(2), Err(2));
                assert_eq!(*cell.get_or_init(|| 3), 1);
                assert_eq!(cell.take(), Some(1));
                assert_eq!(*cell.get_or_init(|| 3), 3);
                assert_eq!(cell.clone(), cell);
                assert_eq!(cell.into_inner(), Some(3));
                assert_eq!(OnceLock::from(7).get(), Some(&7));
            }

            fn lazy() {
                let count = AtomicUsize::new(0);
                let lazy = LazyLock::new(|| count.fetch_add(1, SeqCst) + 10);
                assert_eq!(count.load(SeqCst), 0);
                assert_eq!((*lazy, *lazy, count.load(SeqCst)), (10, 10, 1));
                let fails: LazyLock<i32, _> = LazyLock::new(|| panic!("expected"));
                for _ in 0..2 {
                    assert!(catch_unwind(AssertUnwindSafe(|| *fails)).is_err());
                }
            }

            fn channel() {
                let (sender, receiver) = mpsc::channel();
                assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
                sender.send(1).unwrap();
                sender.clone().send(2).unwrap();
                assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 2]);
                let short = Duration::from_millis(1);
                assert_eq!(receiver.recv_timeout(short), Err(RecvTimeoutError::Timeout));
                let other = thread::spawn(move || {
                    for n in 3..6 {
                        sender.send(n).unwrap();
                    }
                });
                assert_eq!(receiver.iter().collect::<Vec<_>>(), [3, 4, 5]);
                other.join().unwrap();
                assert!(receiver.recv().is_err());
                assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
                assert_eq!(receiver.recv_timeout(short), Err(RecvTimeoutError::Disconnected));
                let (sender, receiver) = mpsc::channel();
                sender.send(1).unwrap();
                drop(receiver);
                assert_eq!(sender.send(2).unwrap_err().0, 2);
            }

            fn sync_channel() {
                let (sender, receiver) = mpsc::sync_channel(1);
                sender.send(1).unwrap();
                assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
                let other = thread::spawn(move || sender.send(2));
                assert_eq!((receiver.recv(), receiver.recv()), (Ok(1), Ok(2)));
                other.join().unwrap().unwrap();
                let (sender, receiver) = mpsc::sync_channel(1);
                drop(receiver);
                assert_eq!(sender.try_send(1), Err(TrySendError::Disconnected(1)));
                assert!(sender.send(1).is_err());
            }

            fn rendezvous() {
                let (sender, receiver) = mpsc::sync_channel(0);
                assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)));
                let other = thread::spawn(move || {
                    sender.send(2).unwrap();
                    sender.send(3).unwrap_err().0
                });
                assert_eq!(receiver.recv(), Ok(2));
                drop(receiver);
                assert_eq!(other.join().unwrap(), 3);
            }

            fn atomics() {
                let n = AtomicUsize::new(5);
                assert_eq!(n.fetch_add(1, SeqCst), 5);
                assert_eq!(n.fetch_sub(2, SeqCst), 6);
                assert_eq!(n.swap(12, SeqCst), 4);
                assert_eq!(n.fetch_and(0b1010, SeqCst), 12);
                assert_eq!(n.fetch_or(1, SeqCst), 8);
                assert_eq!(n.fetch_xor(1, SeqCst), 9);
                assert_eq!(n.fetch_max(20, SeqCst), 8);
                assert_eq!(n.fetch_min(3, SeqCst), 20);
                assert_eq!(n.compare_exchange(3, 4, AcqRel, Acquire), Ok(3));
                assert_eq!(n.compare_exchange(3, 4, AcqRel, Acquire), Err(4));
                assert_eq!(n.fetch_update(SeqCst, SeqCst, |n| Some(n * 2)), Ok(4));
                assert_eq!(n.fetch_update(SeqCst, SeqCst, |_| None), Err(8));
                assert_eq!(format!("{n:?}"), "8");
                let small = AtomicI8::new(i8::MAX);
                assert_eq!(small.fetch_add(1, Relaxed), i8::MAX);
                assert_eq!(small.into_inner(), i8::MIN);
                let flag = AtomicBool::default();
                assert!(!flag.fetch_or(true, SeqCst) && flag.load(SeqCst));
                let mut value = 1;
                let pointer = AtomicPtr::new(&raw mut value);
                assert!(!pointer.swap(std::ptr::null_mut(), SeqCst).is_null());
                assert!(pointer.load(SeqCst).is_null());
                let bad = catch_unwind(AssertUnwindSafe(|| n.load(std::hint::black_box(Release))));
                assert!(bad.is_err());
            }

            fn threads() {
                let builder = thread::Builder::new().name("named".into()).stack_size(1 << 20);
                let handle = builder.spawn(|| thread::current().name().map(String::from)).unwrap();
                assert_eq!(handle.thread().name(), Some("named"));
                let id = handle.thread().id();
                assert_ne!(id, thread::current().id());
                assert_eq!(handle.join().unwrap().as_deref(), Some("named"));
                assert_eq!(thread::current().id(), thread::current().id());
                let unnamed = thread::spawn(|| thread::current().name().is_none());
                assert!(unnamed.join().unwrap());
                let handle = thread::spawn(|| ());
                while !handle.is_finished() {
                    thread::yield_now();
                }
                handle.join().unwrap();
                thread::sleep(Duration::from_micros(1));
            }

            fn scope() {
                let mut numbers = vec![1, 2, 3];
                let total = AtomicUsize::new(0);
                let doubled = thread::scope(|s| {
                    for n in &numbers {
                        s.spawn(|| total.fetch_add(*n, SeqCst));
                    }
                    let handle = s.spawn(|| numbers.len() * 2);
                    handle.join().unwrap()
                });
                numbers.push(4);
                assert_eq!((doubled, total.load(SeqCst)), (6, 6));
                let handled = thread::scope(|s| s.spawn(|| panic!("expected")).join().is_err());
                assert!(handled);
                let unhandled = catch_unwind(|| {
                    thread::scope(|s| {
                        s.spawn(|| panic!("expected"));
                    });
                });
                assert!(unhandled.is_err());
                let dropped_late = catch_unwind(|| {
                    thread::scope(|s| {
                        let handle = s.spawn(|| panic!("expected"));
                        while !handle.is_finished() {
                            thread::yield_now();
                        }
                    });
                });
                assert!(dropped_late.is_err());
            }

            fn park() {
                thread::current().unpark();
                thread::park();
                thread::park_timeout(Duration::from_millis(1));
                let flag = Arc::new(AtomicBool::new(false));
                let theirs = Arc::clone(&flag);
                let parked = thread::spawn(move || {
                    while !theirs.load(SeqCst) {
                        thread::park();
                    }
                });
                flag.store(true, SeqCst);
                parked.thread().unpark();
                parked.join().unwrap();
            }

            thread_local! {
                static NUMBER: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
                static COUNTED: Counted = Counted(std::sync::atomic::AtomicUsize::new(0));
            }

            struct Counted(std::sync::atomic::AtomicUsize);

            fn locals() {
                NUMBER.with_borrow_mut(|v| v.push(1));
                let theirs = thread::spawn(|| {
                    NUMBER.with_borrow_mut(|v| v.push(2));
                    COUNTED.with(|c| c.0.fetch_add(1, SeqCst));
                    (NUMBER.take(), COUNTED.with(|c| c.0.load(SeqCst)))
                });
                assert_eq!(theirs.join().unwrap(), (vec![2], 1));
                assert_eq!(NUMBER.replace(Vec::new()), [1]);
                assert_eq!(COUNTED.try_with(|c| c.0.load(SeqCst)), Ok(0));
            }

            /// Closure, then locals, then the end of the thread; a result is dropped by who takes it.
            fn drop_order() {
                struct Note(&'static str, Arc<std::sync::Mutex<Vec<&'static str>>>);
                impl Drop for Note {
                    fn drop(&mut self) {
                        self.1.lock().unwrap().push(self.0);
                    }
                }
                thread_local!(static LOCAL: RefCell<Option<Note>> = const { RefCell::new(None) });
                let order = Arc::new(std::sync::Mutex::new(Vec::new()));
                let note = |what| Note(what, Arc::clone(&order));
                let (captured, result, local) = (note("captured"), note("result"), note("local"));
                let handle = thread::spawn(move || {
                    LOCAL.with_borrow_mut(|l| *l = Some(local));
                    let _captured = captured;
                    result
                });
                let result = handle.join();
                order.lock().unwrap().push("joined");
                drop(result);
                assert_eq!(*order.lock().unwrap(), ["captured", "local", "joined", "result"]);
            }
        }
    };
}

bodies!(with_std, std);
bodies!(with_selvedge, selvedge);

/// The panics of the bodies are expected; the ones that fail a test are printed by the runner.
fn run(bodies: &[(&str, fn())], how: impl Fn(&str, fn())) {
    for (name, body) in bodies {
        how(name, *body);
    }
}

#[test]
fn the_standard_library_does_it() {
    run(with_std::ALL, |_, body| body());
}

#[test]
fn our_types_do_it_outside_a_check() {
    run(with_selvedge::ALL, |_, body| body());
}

#[test]
fn our_types_do_it_inside_a_check() {
    run(with_selvedge::ALL, |name, body| {
        let explore = selvedge::Explore::new().schedules(200);
        if let Err(failure) = explore.run(body) {
            panic!("{name}: {failure}");
        }
    });
}

/// What a type is not, unless an inherent constant says that it is.
trait Not {
    const SEND: bool = false;
    const SYNC: bool = false;
    const UNWIND: bool = false;
}

struct IsSend<T: ?Sized>(PhantomData<T>);
struct IsSync<T: ?Sized>(PhantomData<T>);
struct IsUnwindSafe<T: ?Sized>(PhantomData<T>);

impl<T: ?Sized> Not for IsSend<T> {}
impl<T: ?Sized> Not for IsSync<T> {}
impl<T: ?Sized> Not for IsUnwindSafe<T> {}

impl<T: ?Sized + Send> IsSend<T> {
    const SEND: bool = true;
}

impl<T: ?Sized + Sync> IsSync<T> {
    const SYNC: bool = true;
}

impl<T: ?Sized + std::panic::UnwindSafe> IsUnwindSafe<T> {
    const UNWIND: bool = true;
}

/// Whether a type is `Send`, `Sync` and unwind safe, found out without asking for it.
macro_rules! auto {
    ($t:ty) => {
        (<IsSend<$t>>::SEND, <IsSync<$t>>::SYNC, <IsUnwindSafe<$t>>::UNWIND)
    };
}

macro_rules! equal_autos {
    ($different:ident: $([$($t:tt)*])*) => {$(
        let (ours, theirs) = (auto!(selvedge::$($t)*), auto!(std::$($t)*));
        if ours != theirs {
            $different.push(format!("{}: {ours:?}, std {theirs:?}", stringify!($($t)*)));
        }
    )*};
}

#[test]
fn send_sync_and_unwind_safety_are_those_of_std() {
    type NotSend = std::rc::Rc<i32>;
    type NotSync = std::cell::Cell<i32>;
    type SyncNotSend = std::sync::MutexGuard<'static, i32>;
    let mut different: Vec<String> = Vec::new();
    equal_autos! { different:
        [sync::Mutex<i32>] [sync::Mutex<NotSend>] [sync::Mutex<NotSync>] [sync::Mutex<SyncNotSend>]
        [sync::MutexGuard<'static, i32>] [sync::MutexGuard<'static, NotSync>]
        [sync::MutexGuard<'static, SyncNotSend>] [sync::MutexGuard<'static, NotSend>]
        [sync::RwLock<i32>] [sync::RwLock<NotSend>] [sync::RwLock<NotSync>]
        [sync::RwLock<SyncNotSend>]
        [sync::RwLockReadGuard<'static, i32>] [sync::RwLockReadGuard<'static, NotSync>]
        [sync::RwLockReadGuard<'static, SyncNotSend>]
        [sync::RwLockWriteGuard<'static, i32>] [sync::RwLockWriteGuard<'static, NotSync>]
        [sync::RwLockWriteGuard<'static, SyncNotSend>]
        [sync::Condvar] [sync::Barrier] [sync::BarrierWaitResult] [sync::Once]
        [sync::OnceLock<i32>] [sync::OnceLock<NotSend>] [sync::OnceLock<NotSync>]
        [sync::LazyLock<i32>] [sync::LazyLock<NotSend>] [sync::LazyLock<NotSync>]
        [sync::atomic::AtomicUsize] [sync::atomic::AtomicBool] [sync::atomic::AtomicPtr<NotSend>]
        [sync::mpsc::Sender<i32>] [sync::mpsc::Sender<NotSync>] [sync::mpsc::Sender<NotSend>]
        [sync::mpsc::SyncSender<i32>] [sync::mpsc::SyncSender<NotSync>]
        [sync::mpsc::SyncSender<NotSend>]
        [sync::mpsc::Receiver<i32>] [sync::mpsc::Receiver<NotSync>]
        [sync::mpsc::Receiver<NotSend>]
        [thread::JoinHandle<i32>] [thread::JoinHandle<NotSend>]
        [thread::Thread] [thread::ThreadId] [thread::Builder] [thread::AccessError]
        [thread::Scope<'static, 'static>]
        [thread::ScopedJoinHandle<'static, i32>] [thread::ScopedJoinHandle<'static, NotSend>]
        [thread::LocalKey<i32>] [thread::LocalKey<NotSend>]
        [sync::WaitTimeoutResult] [sync::OnceState] [sync::LazyLock<i32, fn() -> i32>]
        [sync::LazyLock<i32, NotSend>] [sync::LazyLock<i32, NotSync>]
        [sync::Arc<i32>] [sync::Arc<NotSend>] [sync::Weak<NotSync>] [sync::Arc<NotSync>]
        [sync::mpsc::Iter<'static, i32>] [sync::mpsc::TryIter<'static, i32>]
        [sync::mpsc::IntoIter<i32>] [sync::mpsc::IntoIter<NotSend>]
        [sync::atomic::AtomicI8] [sync::atomic::AtomicU8] [sync::atomic::AtomicI16]
        [sync::atomic::AtomicU16] [sync::atomic::AtomicI32] [sync::atomic::AtomicU32]
        [sync::atomic::AtomicI64] [sync::atomic::AtomicU64] [sync::atomic::AtomicIsize]
        [time::Instant] [cell::Cell<NotSend>] [cell::UnsafeCell<NotSend>]
        [cell::Cell<i32>] [cell::UnsafeCell<i32>]
    }
    assert!(different.is_empty(), "{different:#?}");
    // The probe tells types apart.
    assert_eq!(auto!(NotSend), (false, false, true));
    assert_eq!(auto!(NotSync), (true, false, true));
}
