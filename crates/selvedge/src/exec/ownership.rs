//! Races that a count of owners may have ordered.
//!
//! `Arc` is the standard library's: a type of ours could neither become an `Arc<dyn Trait>` by itself
//! nor be a receiver (`self: Arc<Self>`) on stable Rust. So what its counts order is not seen. The
//! thread that drops the last `Arc` is ordered after everything that the other owners did before they
//! dropped theirs, and an access that the destructor makes must not be taken for a race.
//!
//! A race is held back as a prediction if its later access may be such an access: the thread that made
//! it went on to destroy the cell, no other thread touched the cell in between, and the thread neither
//! waited for another one nor woke one up in between. It is a race after all if both threads stood
//! before their accesses at the same time, since then both had a reference: in the execution itself
//! ([`Ownership::contest`]), or in one that is directed there, as predictions are.
//!
//! **Guarantee**: never fails a check for accesses that are ordered by dropping the last `Arc`, or by
//! taking the value out of it and dropping that. May miss, though it lists it as not confirmed, a race
//! that is due to a memory order alone (so that no schedule brings both accesses together) if its
//! later side goes on to destroy the cell. May still report accesses of a value that was taken out of
//! its last `Arc` and then waits for other threads before it is destroyed.
//!
//! Cost: nothing per event; per plain access a look at what each other thread is about to do.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;
use selvedge_analyses::Analysis;
use selvedge_explore::{Pending, Step};
use selvedge_model::{
    Access, Event, Finding, Findings, Kind, Op, Status, Subject, ThreadId, allocation, conditions,
    locks, regions, rendezvous,
};

/// What is known about who owns what, in one execution.
#[derive(Default, Debug)]
pub(crate) struct Ownership {
    /// Cells by address, with two threads that stood before conflicting accesses to it, ascending.
    contested: FxHashSet<(u64, ThreadId, ThreadId)>,
    ends: VecDeque<End>,
    /// Races whose later access may yet turn out to be a sole owner's.
    held_back: Vec<Finding>,
    /// How many events have been looked at.
    seen: usize,
}

/// The end of a cell.
#[derive(Debug)]
struct End {
    /// After how many events of the execution.
    after: usize,
    thread: ThreadId,
    cell: u64,
}

impl Ownership {
    /// `thread` makes an access while the others are about to take their steps.
    pub(crate) fn contest(
        &mut self,
        thread: ThreadId,
        access: Access,
        write: bool,
        pending: &[Pending],
    ) {
        for (other, pending) in (0..).map(ThreadId).zip(pending) {
            let conflicts = match pending.step {
                Step::Do(Op::Read(theirs)) => write && theirs.addr == access.addr,
                Step::Do(Op::Write(theirs)) => theirs.addr == access.addr,
                _ => false,
            };
            if conflicts && other != thread {
                self.contested.insert((access.addr, thread.min(other), thread.max(other)));
            }
        }
    }

    /// `thread` destroys a cell, after so many events of the execution.
    pub(crate) fn end(&mut self, thread: ThreadId, cell: Access, after: usize) {
        self.ends.push_back(End { after, thread, cell: cell.addr });
    }

    /// Shows events to the analysis of races, and to `findings` what is left of what it reports.
    pub(crate) fn analyse(
        &mut self,
        races: &mut dyn Analysis,
        events: &[Event],
        findings: &mut Findings,
    ) {
        let mut reported = Findings::default();
        for event in events {
            while self.ends.front().is_some_and(|end| end.after <= self.seen) {
                let end = self.ends.pop_front().expect("there is one");
                self.judge(findings, |race| match owner_and_cell(race) {
                    Some((owner, cell)) if cell == end.cell && owner == end.thread => Some(false),
                    Some((_, cell)) if cell == end.cell => Some(true),
                    _ => None,
                });
            }
            self.judge(findings, |race| owner_and_cell(race).and_then(|o| refutes(event, o)));
            self.seen += 1;
            races.on_event(event, &mut reported);
            if !reported.is_empty() {
                for race in std::mem::take(&mut reported) {
                    self.hold_back(race, findings);
                }
            }
        }
    }

    /// The execution is over.
    pub(crate) fn finish(&mut self, findings: &mut Findings) {
        while let Some(end) = self.ends.pop_front() {
            self.judge(findings, |race| {
                (owner_and_cell(race) == Some((end.thread, end.cell))).then_some(false)
            });
        }
        self.judge(findings, |_| Some(true));
    }

    fn hold_back(&mut self, race: Finding, findings: &mut Findings) {
        let contested = match (&race.places[..], owner_and_cell(&race)) {
            ([first, second], Some((_, cell))) => {
                let (a, b) = (first.thread, second.thread);
                self.contested.contains(&(cell, a.min(b), a.max(b)))
            }
            _ => true,
        };
        if contested {
            findings.report(race);
        } else {
            self.held_back.push(race);
        }
    }

    /// Reports those races of which `real` knows: true as they are, false as predictions.
    #[inline]
    fn judge(&mut self, findings: &mut Findings, real: impl Fn(&Finding) -> Option<bool>) {
        if self.held_back.is_empty() {
            return;
        }
        self.held_back.retain(|race| {
            let verdict = real(race);
            match verdict {
                Some(true) => findings.report(race.clone()),
                Some(false) => {
                    findings.report(Finding { status: Status::Predicted, ..race.clone() });
                }
                None => {}
            }
            verdict.is_none()
        });
    }
}

/// Who made the later access of a race, and to which cell.
fn owner_and_cell(race: &Finding) -> Option<(ThreadId, u64)> {
    let Subject::Memory(range) = &race.subject else { return None };
    debug_assert_eq!(race.kind, Kind::DataRace);
    Some((race.places.last()?.thread, range.start))
}

/// True if the event shows that the thread was not the only owner of the cell, or that it did something
/// else than destroy what it owned.
fn refutes(event: &Event, (owner, cell): (ThreadId, u64)) -> Option<bool> {
    let refuted = match event.op {
        Op::Read(access) | Op::Write(access) => event.thread != owner && access.addr == cell,
        Op::Fork(_) | Op::Join(_) | rendezvous!() | conditions!() => event.thread == owner,
        Op::Atomic(..)
        | Op::Fence(_)
        | locks!()
        | Op::Begin
        | Op::End
        | regions!()
        | allocation!() => false,
    };
    refuted.then_some(true)
}
