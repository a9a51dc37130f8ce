//! Panics of controlled threads: which thread, with what message, where.
//!
//! A hook in front of the program's own keeps the message of a panic inside a controlled execution and
//! prints nothing: a thousand schedules would print it a thousand times. It is shown with the failure.

use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use super::fiber::with;
use selvedge_model::{Frame, Site};

/// A panic of a controlled thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Panicked {
    pub(crate) message: String,
    pub(crate) at: Option<Site>,
}

impl Panicked {
    pub(crate) fn unknown() -> Panicked {
        Panicked { message: "panicked without a message".into(), at: None }
    }
}

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
    let frame = |l: &std::panic::Location<'_>| Frame {
        file: l.file().into(),
        line: l.line(),
        column: l.column(),
        ..Frame::default()
    };
    let at = info.location().map(|l| Site::Source(frame(l), Vec::new()));
    Panicked { message, at }
}
