//! Panics of controlled threads: who, what, where.
//!
//! A hook in front of the program's own keeps the message of a panic inside a controlled execution and
//! prints nothing: a thousand schedules would print it a thousand times. It is shown with the failure.

use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use super::fiber::with;
use crate::failure::Panicked;

/// Puts the hook in place, once.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let panicked = describe(info);
            let kept = with(|e| {
                let thread = e.current.index();
                e.threads[thread].panicked = Some(panicked);
            });
            if kept.is_none() {
                before(info);
            }
        }));
    });
}

fn describe(info: &PanicHookInfo<'_>) -> Panicked {
    let message = info.payload_as_str().unwrap_or("a panic whose payload is not a text").to_owned();
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    Panicked { message, location }
}
