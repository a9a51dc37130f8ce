//! Orders of the events of an execution that show a race or a deadlock.

use selvedge_model::{Event, SiteId, ThreadId};

/// A beginning of each thread: how many events of it, by its index.
pub(crate) type Beginning = Vec<u32>;

/// How many events of a thread.
pub(crate) fn of(beginning: &[u32], thread: ThreadId) -> u32 {
    beginning.get(thread.index()).copied().unwrap_or(0)
}

/// A race or a deadlock, and the order that shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    /// The places of the two accesses, the one that came first in the execution first; or of the acquisitions, each
    /// of which waits for the next.
    pub sites: Vec<SiteId>,
    /// How many events of each thread come before them, by its index. In the order of the execution they make all of
    /// them the next events of their threads.
    pub before: Vec<u32>,
    /// The threads of them.
    pub threads: Vec<ThreadId>,
}

impl Witness {
    /// The numbers of the events of an execution that make all of them next, and those of them.
    pub fn order(&self, events: &[Event]) -> (Vec<usize>, Vec<usize>) {
        let mut counts: Beginning = Vec::new();
        let (mut before, mut next) = (Vec::new(), vec![events.len(); self.threads.len()]);
        for (number, event) in events.iter().enumerate() {
            let thread = event.thread;
            if counts.len() <= thread.index() {
                counts.resize(thread.index() + 1, 0);
            }
            let count = counts[thread.index()];
            counts[thread.index()] += 1;
            if count < of(&self.before, thread) {
                before.push(number);
            }
            for (side, place) in self.threads.iter().zip(&mut next) {
                if *side == thread && count == of(&self.before, thread) {
                    *place = number;
                }
            }
        }
        (before, next)
    }
}
