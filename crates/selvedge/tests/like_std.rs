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
            use $($root)*::{thread, thread_local};

            pub(crate) const ALL: &[(&str, fn())] = &[
                ("mutex", mutex), ("poison", poison), ("rwlock", rwlock), ("condvar", condvar),
                ("barrier", barrier), ("once", once), ("once_lock", once_lock), ("lazy", lazy),
                ("channel", channel), ("sync_channel", sync_channel), ("rendezvous", rendezvous),
                ("atomics", atomics), ("threads", threads), ("scope", scope), ("park", park),
                ("locals", locals), ("drop_order", drop_order),
            ];

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
    ($([$($t:tt)*])*) => {$(
        let (ours, theirs) = (auto!(selvedge::$($t)*), auto!(std::$($t)*));
        assert_eq!(ours, theirs, "{}", stringify!($($t)*));
    )*};
}

#[test]
fn send_sync_and_unwind_safety_are_those_of_std() {
    type NotSend = std::rc::Rc<i32>;
    type NotSync = std::cell::Cell<i32>;
    type SyncNotSend = std::sync::MutexGuard<'static, i32>;
    equal_autos! {
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
        [thread::Thread] [thread::ThreadId] [thread::Builder]
        [cell::Cell<i32>] [cell::UnsafeCell<i32>]
    }
    // The probe tells types apart.
    assert_eq!(auto!(NotSend), (false, false, true));
    assert_eq!(auto!(NotSync), (true, false, true));
}
