//! `races`: data races by happens-before.
//!
//! Reports two accesses to the same byte by different threads, at least one of them a write and at
//! least one of them not atomic, that no synchronization of the analysed execution orders.
//!
//! Source: FastTrack (Flanagan and Freund, PLDI 2009). Of the writes to a byte only the last is kept,
//! and of the reads only the last as long as they are ordered; in both cases a later access that is
//! unordered with what was dropped is also unordered with what is kept, or a race has been reported
//! already. The order itself is [`Order`], with everything that orders in C11, C++20 and POSIX.
//!
//! Deviations. Accesses are of bytes and any size ([`Shadow`]). Atomic accesses are remembered beside
//! plain ones and race with them, not with each other. A read that follows a write of the same thread
//! in the same epoch is not recorded: an access that races with it races with the write. Freeing memory is
//! a write to what was touched of it, and then its history ends; so does that of memory allocated.
//! After a race the analysis goes on as if the accesses had been ordered.
//!
//! **Guarantee**: never reports a pair of accesses that is ordered or does not conflict. For every byte,
//! the first access that races with an earlier one is reported at that access. May miss further races
//! on a byte after the first; races between a thread that ended unjoined and later ones once a
//! thousand others are alive, and threads beyond 65,535 at a time (see [`Slots`]); use after free.
//!
//! Cost: a few comparisons for an access in an epoch that has seen it; O(1) for most others; O(reading
//! threads) for a write after reads that were not ordered; O(threads) for synchronization.
//!
//! Legend: *mark* is an access as remembered, epoch c@t with its site and locks; W and R of the paper are
//! in `accesses`, L inside [`Order`].
//!
//! [`Slots`]: selvedge_model::Slots

use selvedge_model::{
    Access, AtomicOp, Epoch, Event, Finding, Findings, Kind, Op, Place, Range, Role, SiteId,
    Status, Subject, Target,
};

use crate::Analysis;
use crate::common::accesses::{Accesses, Visit};
use crate::common::held::{HeldLocks, LockSet};
use crate::common::order::{Edges, Order};
use crate::common::shadow::Shadow;
use crate::entry::{Entry, Needs, Purpose};

const NAME: &str = "races";

/// The analysis.
#[derive(Debug)]
pub struct FastTrack {
    order: Order,
    held: HeldLocks,
    memory: Shadow<Cell>,
    races: Vec<Race>,
}

/// An access as it is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Mark {
    pub(crate) epoch: Epoch,
    pub(crate) site: SiteId,
    pub(crate) locks: LockSet,
}

impl Default for Mark {
    fn default() -> Mark {
        Mark { epoch: Epoch::ZERO, site: SiteId(0), locks: LockSet::EMPTY }
    }
}

impl crate::common::accesses::Mark for Mark {
    fn epoch(&self) -> Epoch {
        self.epoch
    }
}

type Cell = Accesses<Mark>;

/// A pair of accesses to report.
#[derive(Debug)]
pub(crate) struct Race {
    pub(crate) bytes: Range,
    pub(crate) earlier: Mark,
    pub(crate) earlier_role: Role,
}

impl Default for FastTrack {
    fn default() -> FastTrack {
        FastTrack::new()
    }
}

impl FastTrack {
    /// Nothing has happened yet.
    pub fn new() -> FastTrack {
        FastTrack {
            order: Order::new(Edges::HAPPENS_BEFORE),
            held: HeldLocks::default(),
            memory: Shadow::default(),
            races: Vec::new(),
        }
    }

    /// How many shadow pages are in use: the measure of its memory.
    pub fn shadow_pages(&self) -> usize {
        self.memory.pages()
    }

    #[inline]
    fn access(
        &mut self,
        event: &Event,
        range: Range,
        check: impl Fn(&mut Cell, Visit<'_, Mark>) -> Option<(Mark, Role)>,
    ) {
        let thread = self.order.thread(event.thread);
        let locks = self.held.set(event.thread);
        let visit = Visit {
            mark: Mark { epoch: thread.epoch(), site: event.site, locks },
            clock: thread.clock(),
        };
        let races = &mut self.races;
        self.memory.visit(range, |bytes, cell| {
            if let Some((earlier, earlier_role)) = check(cell, visit) {
                races.push(Race { bytes, earlier, earlier_role });
            }
        });
    }

    fn atomic(&mut self, event: &Event, access: Access, op: AtomicOp) {
        if op.writes() {
            self.access(event, access.range(), Cell::on_atomic_store);
        } else {
            self.access(event, access.range(), Cell::on_atomic_load);
        }
    }

    fn free(&mut self, event: &Event, range: Range) {
        let thread = self.order.thread(event.thread);
        let mark = Mark { epoch: thread.epoch(), site: event.site, locks: LockSet::EMPTY };
        let visit = Visit { mark, clock: thread.clock() };
        let races = &mut self.races;
        self.memory.forget(range, |bytes, cell| {
            if let Some((earlier, earlier_role)) = cell.on_write(visit) {
                races.push(Race { bytes, earlier, earlier_role });
            }
        });
    }

    #[cold]
    fn report(&mut self, event: &Event, role: Role, out: &mut Findings) {
        for race in self.races.drain(..) {
            report(&race, event, role, &self.order, &self.held, out);
        }
    }
}

/// Reports a race of an earlier access with `event`.
#[cold]
pub(crate) fn report(
    race: &Race,
    event: &Event,
    role: Role,
    order: &Order,
    held: &HeldLocks,
    out: &mut Findings,
) {
    let earlier = race.earlier;
    if out.again(NAME, Kind::DataRace, earlier.site, event.site) {
        return;
    }
    let places = vec![
        Place {
            thread: order.owner(earlier.epoch),
            site: earlier.site,
            role: race.earlier_role,
            held: held.locks(earlier.locks).to_vec(),
        },
        Place {
            thread: event.thread,
            site: event.site,
            role,
            held: held.locks(held.set(event.thread)).to_vec(),
        },
    ];
    out.report(Finding {
        kind: Kind::DataRace,
        status: Status::Observed,
        verdict: None,
        analyses: vec![NAME],
        subject: Subject::Memory(race.bytes),
        places,
        target: Some(Target::Race { first: earlier.site, second: event.site }),
        occurrences: 1,
    });
}

impl Analysis for FastTrack {
    #[inline]
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        let role = match event.op {
            Op::Read(access) => {
                self.access(event, access.range(), Cell::on_read);
                Role::Read
            }
            Op::Write(access) => {
                self.access(event, access.range(), Cell::on_write);
                Role::Write
            }
            Op::Atomic(..)
            | Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => self.on_synchronization(event),
        };
        if !self.races.is_empty() {
            self.report(event, role, out);
        }
    }

    fn restart(&mut self) {
        self.order.clear();
        self.held.clear();
        self.memory.clear();
        self.races.clear();
    }
}

impl FastTrack {
    fn on_synchronization(&mut self, event: &Event) -> Role {
        self.order.acquire(event);
        self.held.on_event(event);
        let role = match event.op {
            Op::Atomic(access, op) => {
                self.atomic(event, access, op);
                if op.writes() { Role::AtomicWrite } else { Role::AtomicRead }
            }
            Op::Free(range) => {
                self.free(event, range);
                Role::Free
            }
            Op::Alloc(range) => {
                self.memory.forget(range, |_, _| {});
                Role::Write
            }
            // None of these is a side of a race.
            Op::Read(_)
            | Op::Write(_)
            | Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!() => Role::Write,
        };
        self.order.release(event);
        role
    }
}

/// FastTrack, which native programs have inside.
pub const ENTRY: Entry = Entry {
    default_in: &[Purpose::Check, Purpose::Run, Purpose::Test, Purpose::Crate],
    in_program: true,
    needs: Needs::Accesses,
    ..Entry::of(NAME, "data races of this execution, by happens-before (FastTrack)", || {
        Box::new(FastTrack::new())
    })
};
