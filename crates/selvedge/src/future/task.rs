//! Tasks.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::locked;
use super::signal::Signal;
use crate::sync::Mutex;
use crate::thread;

/// Polls a future on this thread until it is ready. Between polls the thread waits to be woken; if it
/// never is, that is a deadlock.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let signal = Arc::new(Signal::new());
    let waker = Waker::from(Arc::clone(&signal));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => signal.take(),
        }
    }
}

/// What a task and its handle share.
#[derive(Default, Debug)]
struct State {
    done: bool,
    aborted: bool,
    /// The task that waits for the end of this one.
    waits: Option<Waker>,
    /// The task itself, to be told that it was aborted.
    task: Option<Waker>,
}

/// Runs a future as a task of its own.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let state = Arc::new(Mutex::new(State::default()));
    let finish = Finish(Arc::clone(&state));
    let task = move || {
        let finish = finish;
        // Declared after `finish`, so that the future is gone before other tasks see the end.
        let mut future = Box::pin(future);
        block_on(std::future::poll_fn(|context| {
            {
                let mut state = locked(&finish.0);
                if state.aborted {
                    return Poll::Ready(None);
                }
                state.task = Some(context.waker().clone());
            }
            future.as_mut().poll(context).map(Some)
        }))
    };
    JoinHandle { thread: Some(thread::spawn(task)), state }
}

/// Says that the task is over, also if it panicked.
struct Finish(Arc<Mutex<State>>);

impl Drop for Finish {
    fn drop(&mut self) {
        let mut state = locked(&self.0);
        state.done = true;
        let waits = state.waits.take();
        drop(state);
        if let Some(waker) = waits {
            waker.wake();
        }
    }
}

/// A task that can be waited for. Dropping the handle lets the task run on by itself.
#[derive(Debug)]
pub struct JoinHandle<T> {
    /// Gives nothing if the task was aborted.
    thread: Option<thread::JoinHandle<Option<T>>>,
    state: Arc<Mutex<State>>,
}

impl<T> Unpin for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// Asks the task to stop: its future is dropped instead of being polled again. Does nothing to a
    /// task that has ended.
    pub fn abort(&self) {
        let mut state = locked(&self.state);
        state.aborted = true;
        let task = state.task.clone();
        drop(state);
        if let Some(waker) = task {
            waker.wake();
        }
    }

    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        locked(&self.state).done
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    /// If it is polled after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = locked(&self.state);
        if !state.done {
            state.waits = Some(context.waker().clone());
            return Poll::Pending;
        }
        drop(state);
        let thread = self.thread.take().expect("a handle is not polled after it was ready");
        Poll::Ready(match thread.join() {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(JoinError(None)),
            Err(payload) => Err(JoinError(Some(payload))),
        })
    }
}

/// A task that gave no value: it was aborted, or it panicked.
pub struct JoinError(Option<Box<dyn Any + Send>>);

impl JoinError {
    /// Whether the task was aborted.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the task panicked.
    pub fn is_panic(&self) -> bool {
        self.0.is_some()
    }

    /// What the task panicked with.
    ///
    /// # Panics
    /// If it did not.
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        self.0.expect("the task was aborted and did not panic")
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_panic() { "the task panicked" } else { "the task was aborted" })
    }
}

impl std::error::Error for JoinError {}

/// Gives way to other tasks once.
pub fn yield_now() -> YieldNow {
    YieldNow(false)
}

/// See [`yield_now`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is polled"]
pub struct YieldNow(bool);

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
