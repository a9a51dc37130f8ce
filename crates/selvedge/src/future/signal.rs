//! What wakes a thread that polls a future.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Wake;

#[cfg(feature = "check")]
use crate::exec::{fiber::controlled, ops, slot::Slot};
#[cfg(feature = "check")]
use std::panic::Location;

/// A wake-up that is remembered until it is taken. Not the thread's park token: a future that blocks
/// on another executor inside would take it away.
#[derive(Debug)]
pub(super) struct Signal {
    #[cfg(feature = "check")]
    slot: Slot,
    #[cfg(feature = "check")]
    here: &'static Location<'static>,
    given: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    #[track_caller]
    pub(super) fn new() -> Signal {
        Signal {
            #[cfg(feature = "check")]
            slot: Slot::new(),
            #[cfg(feature = "check")]
            here: Location::caller(),
            given: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// Waits until it has been given since it was last taken.
    pub(super) fn take(&self) {
        #[cfg(feature = "check")]
        if ops::wait(&self.slot, None, self.here).is_some() {
            return;
        }
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        while !*given {
            given = self.changed.wait(given).unwrap_or_else(PoisonError::into_inner);
        }
        *given = false;
    }

    fn give(&self) {
        #[cfg(feature = "check")]
        if controlled() {
            ops::before_post(&self.slot, self.here);
            return ops::post(&self.slot, 1, self.here);
        }
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Signal>) {
        self.give();
    }
    fn wake_by_ref(self: &Arc<Signal>) {
        self.give();
    }
}
