//! Accesses of which no event tells.

use crate::{Range, SiteId, ThreadId};

/// Accesses that a front end did not show, because they change nothing but when the last one was.
///
/// An access of the thread that made the last one to the same bytes, under the same locks, may be held back if
/// it reads or if that thread has written since another one had access: the phase that goes on stays what it
/// may be, and there is nothing new that the access must follow. Before the next access to these bytes is
/// shown, atomic ones and freeing included, the last write that was held back and the last read after it have to
/// be told here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldBack {
    /// Who made them.
    pub thread: ThreadId,
    /// The bytes.
    pub bytes: Range,
    /// Whether they are writes.
    pub write: bool,
    /// The moment of the last synchronization of the thread before the last of them.
    pub moment: u64,
    /// Where the last one was, if that is known.
    pub site: Option<SiteId>,
}
