//! Scoped threads: the API of [`std::thread::scope`].
//!
//! Not made of the standard library's scope even outside a check: the two scopes' lifetimes cannot be
//! made to agree. Like there, what makes borrowing sound is that [`scope`] does not return, nor unwind,
//! before every thread of it has dropped its closure and counted itself out.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Builder, Kind, Packet, Result, Thread, has_ended, join_controlled, start};
use crate::exec::fiber::{self, controlled};
use crate::exec::ops;
use crate::exec::slot::Slot;

/// See [`std::thread::Scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    state: Arc<State>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// What a scope and its threads share.
#[derive(Debug)]
pub(super) struct State {
    threads: Mutex<Threads>,
    /// Signalled when a thread ends: inside a check, and outside.
    ended: Slot,
    ended_outside: Condvar,
}

#[derive(Debug, Default)]
struct Threads {
    running: usize,
    a_thread_panicked: bool,
}

impl State {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread has dropped its closure.
    fn count_out(&self) {
        self.threads().running -= 1;
        self.ended_outside.notify_all();
    }

    /// A thread has panicked, and no handle is left that could take its result.
    pub(super) fn panic_is_unhandled(&self) {
        self.threads().a_thread_panicked = true;
    }

    fn wait_for_all(&self, here: &'static Location<'static>) {
        if controlled() {
            while self.threads().running > 0 {
                ops::wait(&self.ended, None, here);
            }
        } else {
            let mut threads = self.threads();
            while threads.running > 0 {
                threads = self.ended_outside.wait(threads).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// See [`std::thread::scope`].
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let here = Location::caller();
    let state = Arc::new(State {
        threads: Mutex::default(),
        ended: Slot::new(),
        ended_outside: Condvar::new(),
    });
    let scope = Scope { state: Arc::clone(&state), scope: PhantomData, env: PhantomData };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    state.wait_for_all(here);
    match result {
        Err(payload) => resume_unwind(payload),
        Ok(_) if state.threads().a_thread_panicked => panic!("a scoped thread panicked"),
        Ok(value) => value,
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// See [`std::thread::Scope::spawn`].
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_built(Builder::new(), f, Location::caller()).expect("failed to spawn thread")
    }

    pub(super) fn spawn_built<F, T>(
        &'scope self,
        builder: Builder,
        f: F,
        here: &'static Location<'static>,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let packet = Packet::new(Some(Arc::clone(&self.state)));
        let state = Arc::clone(&self.state);
        self.state.threads().running += 1;
        if controlled() {
            let name = builder.name.map(Arc::from);
            let done = move || {
                // If its handle is gone, the scope panics for it.
                ops::panic_is_handled();
                state.count_out();
                ops::post(&state.ended, usize::MAX, here);
            };
            // SAFETY: `scope` does not return before `count_out`, which comes after the closure is
            // gone; if the execution ends before, `scope` never goes on and leaks like this thread.
            let thread = unsafe { start(f, Arc::clone(&packet), name, done, here) };
            return Ok(ScopedJoinHandle { handle: None, thread, packet, scope: PhantomData });
        }
        let theirs = Arc::clone(&packet);
        let done = move |result: Result<T>| {
            theirs.put(result);
            drop(theirs);
            state.count_out();
        };
        // SAFETY: `scope` does not return before `count_out`, which comes after the closure is gone.
        let job = Sendable(unsafe { fiber::job(f, done) });
        let spawned = builder.std().spawn(move || job.run());
        let handle = spawned.inspect_err(|_| self.state.count_out())?;
        let thread = Thread(Kind::Std(handle.thread().clone()));
        Ok(ScopedJoinHandle { handle: Some(handle), thread, packet, scope: PhantomData })
    }
}

/// A job whose closure is `Send`, as that of a scope is.
struct Sendable(fiber::Job);

// SAFETY: made only of `F: Send` and of a packet for `T: Send`.
unsafe impl Send for Sendable {}

impl Sendable {
    fn run(self) {
        (self.0)();
    }
}

/// See [`std::thread::ScopedJoinHandle`].
pub struct ScopedJoinHandle<'scope, T> {
    handle: Option<std::thread::JoinHandle<()>>,
    thread: Thread,
    packet: Arc<Packet<T>>,
    scope: PhantomData<&'scope ()>,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// See [`std::thread::ScopedJoinHandle::join`].
    #[track_caller]
    pub fn join(self) -> Result<T> {
        match self.handle {
            Some(handle) => {
                handle.join()?;
                self.packet.take().expect("a thread that has ended has left its result")
            }
            None => join_controlled(&self.thread, &self.packet, Location::caller()),
        }
    }

    /// See [`std::thread::ScopedJoinHandle::thread`].
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// See [`std::thread::ScopedJoinHandle::is_finished`].
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match &self.handle {
            Some(handle) => handle.is_finished(),
            None => has_ended(&self.thread, Location::caller()),
        }
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").finish_non_exhaustive()
    }
}
