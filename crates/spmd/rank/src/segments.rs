//! The threads of a rank and their segments (see [`order`](crate::order)): which part of a thread's execution an
//! access belongs to, and which barriers that part lies between.

use std::sync::Arc;

use crate::hash::Map;
use crate::order::Known;
use crate::phases::{NEVER, Span};

/// What the runtime knows of the current thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now<'a> {
    /// The thread's component of vector clocks.
    pub slot: u32,
    /// The clock of that component.
    pub tick: u32,
    /// How often the thread has released something to other threads of the rank.
    pub releases: u32,
    /// What the thread knows of each slot.
    pub clock: &'a [u32],
}

/// The barriers that are counted apart: blocking operations of all ranks, and `MPI_Ibarrier` of all ranks.
pub const SEQUENCES: usize = 2;
/// Blocking operations of all ranks.
pub const BLOCKING: usize = 0;
/// `MPI_Ibarrier` … `MPI_Wait` of all ranks.
pub const SPLIT: usize = 1;

/// A part of a thread's execution without synchronization.
#[derive(Clone, Debug)]
struct Segment {
    slot: u32,
    tick: u32,
    releases: u32,
    clock: Arc<[u32]>,
    spans: [Span; SEQUENCES],
}

/// The segments of all threads of a rank.
#[derive(Debug, Default)]
pub struct Segments {
    list: Vec<Segment>,
    /// The number of the first in the list: the others are forgotten.
    first: u32,
    /// The current segment of each slot.
    current: Map<u32, u32>,
    /// The number of barriers entered so far.
    entered: [u32; SEQUENCES],
}

impl Segments {
    /// The current segment of the thread.
    pub fn current(&mut self, now: Now<'_>) -> u32 {
        if let Some(&number) = self.current.get(&now.slot) {
            let here = self.get(number);
            if here.releases == now.releases && same_others(&here.clock, now) {
                return number;
            }
        }
        self.begin(now)
    }

    /// Begins a segment: the thread synchronizes.
    pub fn begin(&mut self, now: Now<'_>) -> u32 {
        let number = self.first + self.list.len() as u32;
        let mut left = [0; SEQUENCES];
        for (&slot, &latest) in &self.current {
            let knows = |s: &Segment| now.clock.get(slot as usize).is_some_and(|&k| k >= s.tick);
            let past = if slot == now.slot {
                Some(self.get(latest))
            } else {
                // The latest of its segments whose end the thread knows.
                self.list.iter().rev().find(|s| s.slot == slot && knows(s))
            };
            for (left, span) in left.iter_mut().zip(past.iter().flat_map(|s| s.spans)) {
                *left = span.left.max(*left);
            }
        }
        let spans = left.map(|left| Span { left, entered: NEVER });
        let Now { slot, tick, releases, clock } = now;
        self.list.push(Segment { slot, tick, releases, clock: clock.into(), spans });
        self.current.insert(now.slot, number);
        number
    }

    /// The thread enters a barrier; returns its number.
    pub fn enter(&mut self, now: Now<'_>, sequence: usize) -> u32 {
        let here = self.current(now);
        self.entered[sequence] += 1;
        let barrier = self.entered[sequence];
        for (number, s) in (self.first..).zip(&mut self.list) {
            let knows = now.clock.get(s.slot as usize).is_some_and(|&known| known >= s.tick);
            let past = if s.slot == now.slot { number <= here } else { knows };
            if past && s.spans[sequence].entered == NEVER {
                s.spans[sequence].entered = barrier;
            }
        }
        self.begin(now);
        barrier
    }

    /// The thread leaves the barrier of that number.
    pub fn leave(&mut self, now: Now<'_>, sequence: usize, barrier: u32) {
        let number = self.begin(now);
        let at = (number - self.first) as usize;
        self.list[at].spans[sequence].left = barrier;
    }

    /// The slot of a segment.
    pub fn slot(&self, number: u32) -> u32 {
        self.get(number).slot
    }

    /// The barriers around what begins in one segment and ends in another, if it has ended.
    pub fn spans(&self, begin: u32, end: Option<u32>) -> [Span; SEQUENCES] {
        let mut spans = self.get(begin).spans;
        for (i, span) in spans.iter_mut().enumerate() {
            span.entered = end.map_or(NEVER, |end| self.get(end).spans[i].entered);
        }
        spans
    }

    /// Whether what ends in one segment comes before what begins in another one of this rank.
    pub fn ordered(&self, end: u32, begin: u32) -> bool {
        let (a, b) = (self.get(end), self.get(begin));
        if a.slot == b.slot {
            return end < begin;
        }
        b.clock.get(a.slot as usize).is_some_and(|&known| known >= a.tick)
    }

    /// Whether the rank has had more than one thread.
    pub fn is_threaded(&self) -> bool {
        self.current.len() > 1
    }

    /// The clocks of all segments, if they are needed to order threads.
    pub fn known(&self) -> Vec<Known> {
        if !self.is_threaded() {
            return Vec::new();
        }
        let known = |(segment, s): (u32, &Segment)| Known {
            segment,
            slot: s.slot,
            tick: s.tick,
            clock: s.clock.to_vec(),
        };
        (self.first..).zip(&self.list).map(known).collect()
    }

    /// Forgets segments before `number`, except that each thread's current one stays.
    pub fn forget_before(&mut self, number: u32) {
        let oldest = self.current.values().copied().min().unwrap_or(0).min(number);
        let count = oldest.saturating_sub(self.first) as usize;
        self.list.drain(..count.min(self.list.len()));
        self.first = self.first.max(oldest);
    }

    fn get(&self, number: u32) -> &Segment {
        &self.list[(number - self.first) as usize]
    }
}

/// Whether the thread knows no more of other threads than it did.
fn same_others(then: &[u32], now: Now<'_>) -> bool {
    let own = now.slot as usize;
    let at = |clock: &[u32], i: usize| clock.get(i).copied().unwrap_or(0);
    (0..then.len().max(now.clock.len())).all(|i| i == own || at(then, i) == at(now.clock, i))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(slot: u32, tick: u32, clock: &[u32]) -> Now<'_> {
        Now { slot, tick, releases: tick, clock }
    }

    #[test]
    fn a_barrier_orders_what_its_thread_knows_of() {
        let mut s = Segments::default();
        let [main, worker] = [now(0, 1, &[1, 0]), now(1, 1, &[1, 1])];
        let before = s.current(main);
        let unknown = s.current(worker);
        let barrier = s.enter(main, BLOCKING);
        s.leave(main, BLOCKING, barrier);
        let after = s.current(main);
        let span = |s: &Segments, at| s.spans(at, Some(at))[BLOCKING];
        assert!(span(&s, before).before(span(&s, after)));
        assert!(span(&s, unknown).meets(span(&s, after)), "the other thread did not tell");
        // The worker releases, and the main thread acquires and enters another barrier.
        let joined = now(0, 1, &[1, 1]);
        let barrier = s.enter(joined, BLOCKING);
        s.leave(joined, BLOCKING, barrier);
        let last = s.current(joined);
        assert!(span(&s, unknown).before(span(&s, last)));
        assert!(s.ordered(unknown, last) && !s.ordered(unknown, after));
    }

    #[test]
    fn what_is_in_flight_meets_the_phases_until_it_has_ended() {
        let mut s = Segments::default();
        let main = now(0, 1, &[1]);
        let begin = s.current(main);
        let barrier = s.enter(main, BLOCKING);
        s.leave(main, BLOCKING, barrier);
        let second = s.current(main);
        let open = s.spans(begin, None)[BLOCKING];
        assert!(open.meets(s.spans(second, Some(second))[BLOCKING]));
        s.forget_before(begin);
        assert!(s.spans(begin, Some(second))[BLOCKING].meets(open));
    }
}
