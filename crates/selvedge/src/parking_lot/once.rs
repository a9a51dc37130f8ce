//! One-time initialisation.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sync;

/// See `parking_lot::OnceState`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnceState {
    /// No thread has run it.
    New,
    /// A thread ran it and panicked.
    Poisoned,
    /// A thread is running it.
    InProgress,
    /// A thread has run it to its end.
    Done,
}

impl OnceState {
    /// See `parking_lot::OnceState::poisoned`.
    pub fn poisoned(self) -> bool {
        self == OnceState::Poisoned
    }

    /// See `parking_lot::OnceState::done`.
    pub fn done(self) -> bool {
        self == OnceState::Done
    }
}

/// See `parking_lot::Once`.
#[derive(Debug)]
pub struct Once {
    inner: sync::Once,
    // ordering: relaxed. What they say may be over when it is read, here as in `parking_lot`.
    in_progress: AtomicBool,
    poisoned: AtomicBool,
}

impl Default for Once {
    #[track_caller]
    fn default() -> Once {
        Once::new()
    }
}

impl Once {
    /// See `parking_lot::Once::new`.
    #[track_caller]
    pub const fn new() -> Once {
        Once {
            inner: sync::Once::new(),
            in_progress: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
        }
    }

    /// See `parking_lot::Once::state`.
    #[track_caller]
    pub fn state(&self) -> OnceState {
        if self.inner.is_completed() {
            OnceState::Done
        } else if self.in_progress.load(Ordering::Relaxed) {
            OnceState::InProgress
        } else if self.poisoned.load(Ordering::Relaxed) {
            OnceState::Poisoned
        } else {
            OnceState::New
        }
    }

    /// See `parking_lot::Once::call_once`.
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        self.inner.call_once(|| {
            let _running = self.begin();
            f();
        });
    }

    /// See `parking_lot::Once::call_once_force`.
    #[track_caller]
    pub fn call_once_force<F: FnOnce(OnceState)>(&self, f: F) {
        self.inner.call_once_force(|state| {
            let state = if state.is_poisoned() { OnceState::Poisoned } else { OnceState::New };
            let _running = self.begin();
            f(state);
        });
    }

    fn begin(&self) -> Running<'_> {
        self.in_progress.store(true, Ordering::Relaxed);
        self.poisoned.store(false, Ordering::Relaxed);
        Running(self)
    }
}

struct Running<'a>(&'a Once);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.poisoned.store(std::thread::panicking(), Ordering::Relaxed);
        self.0.in_progress.store(false, Ordering::Relaxed);
    }
}
