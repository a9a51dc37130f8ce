//! The rings of all threads in one order.
//!
//! Stamps are dense, so the next event of the execution is the one with the next stamp; if it is not there
//! yet, the others wait for it. A plain access has no stamp: it is passed on just before the next stamped
//! event of its thread, which is one of the orders in which the accesses may have happened.
//!
//! A program that was killed may have taken a stamp and not used it; after its end gaps are skipped.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::Ordering;

use crate::shm::Shm;
use crate::wire::{LANES, Record, lane};

/// Puts records in order.
#[derive(Debug)]
pub struct Merge {
    lanes: Vec<VecDeque<(u32, Record)>>,
    /// How many stamped records wait in each lane.
    stamped: Vec<usize>,
    /// Stamps at the front of the stamped part of each lane.
    // invariant: a lane is in here exactly if it has a stamped record.
    fronts: BinaryHeap<Reverse<(u64, usize)>>,
    last: u64,
    /// Lanes from here on have never been in use.
    unused: usize,
}

impl Default for Merge {
    fn default() -> Merge {
        Merge {
            lanes: (0..LANES).map(|_| VecDeque::new()).collect(),
            stamped: vec![0; LANES],
            fronts: BinaryHeap::new(),
            last: 0,
            unused: 0,
        }
    }
}

impl Merge {
    /// Takes what is new in all rings. Returns how many records were new.
    pub fn take(&mut self, shm: &Shm) -> usize {
        let mut new = 0;
        for index in 0..LANES {
            let state = shm.shared().lanes[index].state.load(Ordering::Acquire);
            if state == lane::FREE {
                // A thread takes the first free lane, and lanes become free here. So behind one that has never been
                // in use, none has.
                if index >= self.unused {
                    break;
                }
                continue;
            }
            self.unused = self.unused.max(index + 1);
            let thread = shm.shared().lanes[index].thread.load(Ordering::Acquire);
            new += shm.drain(index, |record| self.push(index, thread, record));
            if state == lane::ENDED {
                shm.shared().lanes[index].state.store(lane::FREE, Ordering::Release);
            }
        }
        new
    }

    /// Passes on records in order, up to the first gap.
    pub fn pass(&mut self, out: impl FnMut(u32, &Record)) {
        self.pass_on(false, out);
    }

    /// The stamp of the last record that was passed on.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The program has ended: passes on the rest, and skips gaps.
    pub fn finish(&mut self, mut out: impl FnMut(u32, &Record)) {
        self.pass_on(true, &mut out);
        for lane in &mut self.lanes {
            for (thread, record) in lane.drain(..) {
                out(thread, &record);
            }
        }
    }

    fn push(&mut self, index: usize, thread: u32, record: Record) {
        if record.stamp != 0 {
            if self.stamped[index] == 0 {
                self.fronts.push(Reverse((record.stamp, index)));
            }
            self.stamped[index] += 1;
        }
        self.lanes[index].push_back((thread, record));
    }

    fn pass_on(&mut self, over_gaps: bool, mut out: impl FnMut(u32, &Record)) {
        while let Some(&Reverse((stamp, index))) = self.fronts.peek()
            && (over_gaps || stamp == self.last + 1)
        {
            self.fronts.pop();
            let mut front = Some(stamp);
            // What one thread does for a while needs no comparing with others.
            while let Some(stamp) = front {
                self.last = stamp;
                front = self.pass_front(index, &mut out);
                if let Some(next) = front.take_if(|next| *next != stamp + 1) {
                    self.fronts.push(Reverse((next, index)));
                }
            }
        }
    }

    /// Passes on the first stamped record of a lane and what comes before it, and says which stamp the next one has.
    fn pass_front(&mut self, index: usize, out: &mut impl FnMut(u32, &Record)) -> Option<u64> {
        self.stamped[index] -= 1;
        while let Some((thread, record)) = self.lanes[index].pop_front() {
            out(thread, &record);
            if record.stamp != 0 {
                break;
            }
        }
        if self.stamped[index] == 0 {
            return None;
        }
        self.lanes[index].iter().find(|(_, r)| r.stamp != 0).map(|(_, next)| next.stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::RecordKind;

    fn record(stamp: u64) -> Record {
        Record::new(stamp, RecordKind::Write, 0, 0, stamp, 0)
    }

    fn passed(merge: &mut Merge, over_gaps: bool) -> Vec<(u32, u64)> {
        let mut got = Vec::new();
        merge.pass_on(over_gaps, |thread, record| got.push((thread, record.stamp)));
        got
    }

    #[test]
    fn stamps_decide_and_accesses_stay_in_their_thread() {
        let mut merge = Merge::default();
        for (lane, stamp) in [(0, 1), (0, 0), (0, 4), (1, 0), (1, 3)] {
            merge.push(lane, lane as u32, record(stamp));
        }
        assert_eq!(passed(&mut merge, false), [(0, 1)], "2 is missing");
        merge.push(2, 2, record(2));
        assert_eq!(passed(&mut merge, false), [(2, 2), (1, 0), (1, 3), (0, 0), (0, 4)]);
    }

    #[test]
    fn at_the_end_gaps_are_skipped_and_nothing_is_left() {
        let mut merge = Merge::default();
        for (lane, stamp) in [(0, 5), (1, 3), (1, 0)] {
            merge.push(lane, lane as u32, record(stamp));
        }
        let mut got = Vec::new();
        merge.finish(|thread, record| got.push((thread, record.stamp)));
        assert_eq!(got, [(1, 3), (0, 5), (1, 0)]);
    }
}
