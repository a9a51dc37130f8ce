//! Lockset race detection: memory that no lock protects consistently.
//!
//! Eraser (Savage, Burrows, Nelson, Sobalvarro and Anderson, TOCS 1997): §2.2 for the states, figure 4,
//! and §2.3 for reader-writer locks. For each variable the algorithm keeps the *candidate locks*, those
//! that were held at every access so far. Initialisation by one thread and data that is written once
//! and then only read need no lock, which the states express:
//!
//! | state | left by | candidates | reports |
//! | --- | --- | --- | --- |
//! | virgin | any access → exclusive | all | never |
//! | exclusive to a thread | a read of another → shared, a write of another → modified | all | never |
//! | shared | a write → modified | refined | never |
//! | modified | nothing | refined | when none is left |
//!
//! A read keeps the candidates that are held in any mode, a write those held exclusively.
//!
//! Deviations. A variable is a byte, so accesses of mixed sizes that overlap are handled exactly; Eraser
//! looks at words. Memory that is allocated or freed is virgin again. Eraser warns about a
//! variable; we report two accesses of different threads of which one writes, namely the current one
//! and the latest write of another thread, or else the latest read of another; of these rather one
//! that shares no lock with the current access. Where no other thread's access conflicts, as when the only
//! thread that writes also reads without the lock, the discipline is broken but nothing races, and
//! nothing is reported. Atomic accesses are synchronization, not accesses to data: they are skipped, and
//! the happens-before race detector reports plain accesses that race with them.
//!
//! Guarantee: never reports memory whose every access after the exclusive state was made under one lock
//! held in a sufficient mode. May report accesses that fork, join, signals, barriers or atomics order.
//! May miss races with accesses made in the exclusive state (the price for initialisation without
//! locks), and pairs other than the one it reports.
//!
//! Cost: O(1) per access and eight bytes that it touches, after the first refinement by a given set of
//! held locks. Memory: some hundred bytes for eight bytes touched, and the distinct sets of locks.

use selvedge_model::{Access, Event, Findings, Op, SiteId, ThreadId};

use crate::Analysis;
use crate::common::candidates::{CandidateSets, Candidates};
use crate::common::held::{HeldLocks, exclude_each_other};
use crate::common::past::{self, Past};
use crate::common::shadow::Shadow;
use crate::entry::{Entry, Needs};

/// The analysis.
#[derive(Debug, Default)]
pub struct Lockset {
    held: HeldLocks,
    candidates: CandidateSets,
    memory: Shadow<Variable>,
}

const NAME: &str = "lockset";

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Virgin,
    Exclusive(ThreadId),
    Shared(Candidates),
    Modified(Candidates),
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Variable {
    state: State,
    reads: Latest,
    writes: Latest,
}

/// The latest access of one kind, and the latest by another thread than that.
#[derive(Clone, PartialEq, Debug, Default)]
struct Latest([Option<Past>; 2]);

impl Latest {
    fn push(&mut self, access: Past) {
        if self.0[0].is_some_and(|last| last.thread != access.thread) {
            self.0[1] = self.0[0];
        }
        self.0[0] = Some(access);
    }

    fn of_other(&self, thread: ThreadId) -> Option<Past> {
        self.0.iter().flatten().copied().find(|p| p.thread != thread)
    }
}

impl Variable {
    /// The next state, and whether the access leaves a modified variable without a candidate.
    fn step(&mut self, now: Past, held: &HeldLocks, sets: &mut CandidateSets) -> bool {
        let mut refine = |from| sets.refine(from, now.held, now.write, held);
        self.state = match self.state {
            State::Virgin => State::Exclusive(now.thread),
            State::Exclusive(owner) if owner == now.thread => State::Exclusive(owner),
            State::Exclusive(_) if now.write => State::Modified(refine(None)),
            State::Exclusive(_) => State::Shared(refine(None)),
            State::Shared(old) if now.write => State::Modified(refine(Some(old))),
            State::Shared(old) => State::Shared(refine(Some(old))),
            State::Modified(old) => State::Modified(refine(Some(old))),
        };
        self.state == State::Modified(Candidates::NONE)
    }

    /// The access of another thread to report beside `now`.
    fn conflicting(&self, now: Past, held: &HeldLocks) -> Option<Past> {
        let write = self.writes.of_other(now.thread);
        let read = if now.write { self.reads.of_other(now.thread) } else { None };
        let unprotected = |p: &Past| !exclude_each_other(held.locks(p.held), held.locks(now.held));
        write.filter(unprotected).or_else(|| read.filter(unprotected)).or(write).or(read)
    }

    fn remember(&mut self, now: Past) {
        if now.write { self.writes.push(now) } else { self.reads.push(now) }
    }
}

impl Analysis for Lockset {
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        match event.op {
            Op::Read(access) => self.access(event, access, false, out),
            Op::Write(access) => self.access(event, access, true, out),
            Op::Acquire(..) | Op::Release(..) => self.held.on_event(event),
            Op::Alloc(range) | Op::Free(range) => self.memory.forget(range, |_, _| {}),
            Op::Atomic(..)
            | Op::Fence(_)
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!() => {}
        }
    }

    fn restart(&mut self) {
        self.held.clear();
        self.candidates.clear();
        self.memory.clear();
    }
}

impl Lockset {
    fn access(&mut self, event: &Event, access: Access, write: bool, out: &mut Findings) {
        let Lockset { held, candidates, memory } = self;
        let now =
            Past { thread: event.thread, site: event.site, held: held.set(event.thread), write };
        // An access that touches several states is one occurrence of what it finds.
        let mut reported: Vec<SiteId> = Vec::new();
        memory.visit(access.range(), |bytes, variable| {
            if variable.step(now, held, candidates)
                && let Some(earlier) = variable.conflicting(now, held)
                && !reported.contains(&earlier.site)
            {
                reported.push(earlier.site);
                past::report(NAME, bytes, [earlier, now], held, out);
            }
            variable.remember(now);
        });
    }
}

/// Eraser.
pub const ENTRY: Entry = Entry {
    needs: Needs::Accesses,
    ..Entry::of(
        NAME,
        "memory that no lock protects consistently (Eraser), even if something else orders it",
        || Box::<Lockset>::default(),
    )
};
