//! Which step of an interleaving hands something to a step of another thread, as arrows between rows.

use crate::{Interleaving, Row, Verb};

impl Interleaving {
    /// Which row hands something over to a row of another thread: a lock, a signal, a start, an end, or a
    /// value that is read. Pairs of indices of rows, in the order of the second.
    pub fn arrows(&self) -> Vec<(usize, usize)> {
        let mut arrows = Vec::new();
        for (to, row) in self.rows.iter().enumerate() {
            let Row::Does { thread, act, .. } = row else { continue };
            let takes = |other: &Row| match other {
                Row::Does { thread: t, act: a, .. } if t != thread => hands_over(
                    (a.verb, &a.object, &self.threads[*t]),
                    (act.verb, &act.object, &self.threads[*thread]),
                ),
                _ => false,
            };
            // Another step on the same object may come between: the last one that hands over counts.
            if let Some(from) = self.rows[..to].iter().rposition(takes) {
                arrows.push((from, to));
            }
        }
        arrows
    }
}

/// Whether the first step hands something to the second. Each is a verb, its object and the thread's name.
fn hands_over(from: (Verb, &str, &str), to: (Verb, &str, &str)) -> bool {
    use Verb::{
        Arrive, Await, Begin, End, Join, Leave, Load, Lock, NotifyAll, NotifyOne, Read, ReadLock,
        ReadUnlock, Signal, Start, Store, Unlock, Update, Woken, Write,
    };
    let same = from.1 == to.1;
    let names = |object: &str, thread: &str| {
        thread == object || thread.split([' ', ':']).next() == Some(object)
    };
    match (from.0, to.0) {
        (Unlock, Lock | ReadLock) | (ReadUnlock, Lock) => same,
        (Signal, Await) | (Arrive, Leave) => same,
        (NotifyOne | NotifyAll, Woken) => same,
        (Write | Store | Update, Read | Load | Update) => same,
        (Start, Begin) => names(from.1, to.2),
        (End, Join) => names(to.1, from.2),
        _ => false,
    }
}
