//! What a thread remembers of its last accesses, so that a loop repeats no work.

/// Entries of [`Thread::memo`](super::Thread::memo), in pairs: an entry may be in either place of its pair. When one is lost,
/// the next construction makes another set, and all that follow from it are lost as well; so there are
/// more than a loop needs.
pub(super) const MEMOS: usize = 1024;

/// Results of recent set constructions, so that a loop over an array builds one set, not thousands.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Memo {
    /// The word before.
    pub old: u64,
    /// The cell added.
    pub cell: u64,
    /// The word after.
    pub new: u64,
    /// `next_set` when it was made.
    pub made: u32,
    /// What was done to the word.
    pub change: Change,
}

/// What becomes of a word by an access.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Change {
    /// The access is added.
    Add,
    /// The reads that a write makes redundant are taken away.
    TakeAway,
}

impl Memo {
    /// The first of its two places.
    #[inline]
    pub(super) fn pair(old: u64, cell: u64) -> usize {
        let hash = (old ^ cell.rotate_left(7)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((hash >> 54) as usize % MEMOS) & !1
    }
}

/// An atomic load that changed nothing: as long as nothing is released at the address, and the granule's words
/// are the same, the next one changes nothing either.
#[derive(Clone, Copy, Default)]
pub struct Seen {
    /// Where; 0 if there was none.
    pub addr: usize,
    /// The version of [`sync`](crate::sync) whose releases the thread has acquired, or has for the next acquire
    /// fence.
    pub version: u32,
    /// Whether it has acquired them.
    pub acquired: bool,
    /// The thread's epoch, and the granule's words after the load.
    pub epoch: u64,
    /// See `epoch`.
    pub words: (u64, u64),
}
