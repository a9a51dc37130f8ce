//! Phases: what global barriers order.
//!
//! Paper: Park, *Active Testing: Predicting and Confirming Concurrency Bugs for Concurrent and Distributed Memory
//! Parallel Programs*, definition 4.1. There a thread has one counter, which each notify and each wait raises,
//! and phases p and q may happen in parallel if q is in [2⌊p/2⌋ − 1, 2⌊(p + 1)/2⌋ + 1].
//!
//! Deviation: we keep two numbers for an access instead of one counter: the last barrier that was left before it
//! began, and the first barrier that was entered after it ended. For an access in one phase that is the same
//! relation ([`Span::of_phase`], and a test); it also says what an access that is in flight over several phases,
//! or that another thread of the rank makes, is concurrent with.
//!
//! Guarantee: two accesses that [`Span::before`] orders are ordered by a barrier. What it does not order may still
//! be ordered by messages.

/// Not entered yet.
pub const NEVER: u32 = u32::MAX;

/// Which barriers an access lies between. Barriers are numbered from 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Span {
    /// The last barrier that was left before the access began; 0 if none.
    pub left: u32,
    /// The first barrier that was entered after the access ended, or [`NEVER`].
    pub entered: u32,
}

impl Span {
    /// The span of an access in a phase of definition 4.1: the counter is odd between notify and wait.
    pub fn of_phase(phase: u32) -> Span {
        Span { left: phase / 2, entered: phase.div_ceil(2) + 1 }
    }

    /// Whether a barrier orders this access before the other one.
    pub fn before(self, other: Span) -> bool {
        self.entered <= other.left
    }

    /// Whether no barrier orders the two.
    pub fn meets(self, other: Span) -> bool {
        !self.before(other) && !other.before(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Definition 4.1, as the thesis writes it.
    fn parallel(p: i64, q: i64) -> bool {
        (2 * (p / 2) - 1..=2 * ((p + 1) / 2) + 1).contains(&q)
    }

    #[test]
    fn spans_are_definition_4_1() {
        for p in 0..40 {
            for q in 0..40 {
                let meets = Span::of_phase(p).meets(Span::of_phase(q));
                assert_eq!(meets, parallel(p.into(), q.into()), "{p} and {q}");
            }
        }
    }

    proptest! {
        /// Against happens-before from its definition: the n-th notify of every thread is before the n-th wait
        /// of every thread, and threads run in program order. `reach[i][j]` is its closure over all points.
        #[test]
        fn spans_are_happens_before_of_notify_and_wait(threads in 2usize..4, barriers in 0usize..5) {
            // Each thread: an access, then (notify, access, wait, access) for each barrier.
            let points = 1 + 4 * barriers;
            let count = threads * points;
            let mut reach = vec![vec![false; count]; count];
            for t in 0..threads {
                for i in 1..points {
                    reach[t * points + i - 1][t * points + i] = true;
                }
                for u in 0..threads {
                    for b in 0..barriers {
                        reach[t * points + 1 + 4 * b][u * points + 3 + 4 * b] = true;
                    }
                }
            }
            for k in 0..count {
                let through = reach[k].clone();
                for row in reach.iter_mut().filter(|row| row[k]) {
                    row.iter_mut().zip(&through).for_each(|(to, &next)| *to |= next);
                }
            }
            // The access of phase p is at point 2p.
            for t in 0..threads {
                for u in (0..threads).filter(|&u| u != t) {
                    for p in 0..=2 * barriers {
                        for q in 0..=2 * barriers {
                            let (i, j) = (t * points + 2 * p, u * points + 2 * q);
                            let unordered = !reach[i][j] && !reach[j][i];
                            let meets = Span::of_phase(p as u32).meets(Span::of_phase(q as u32));
                            // Behind the last barrier there is no next one to be entered.
                            prop_assert_eq!(unordered, meets, "{} and {}", p, q);
                        }
                    }
                }
            }
        }
    }
}
