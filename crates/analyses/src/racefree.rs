//! The race-free filter: keeps from an analysis the accesses to memory that is used without races.
//!
//! Passes on all synchronization, all atomics, and the plain accesses to bytes on which a data race has
//! happened, from the later one of the first racing pair on. In front of an analysis of
//! serializability or determinism this loses nothing on memory that stays free of races: two accesses
//! that conflict are ordered by synchronization between them, and that synchronization conflicts too,
//! so that the same transactions are found to come before each other.
//!
//! Source: SingleTrack §5 (Sadowski, Freund and Flanagan, ESOP 2009), "a fast happens-before analysis";
//! the analysis is FastTrack's (`accesses`), without anything to report.
//!
//! **Guarantee**: never keeps back synchronization or an atomic access. Keeps back a plain access only if
//! no race has happened on any of its bytes so far. An analysis behind the filter therefore misses what
//! depends on accesses to racy memory before the race became apparent, the earlier access of the first
//! racing pair among them; the race detector reports that memory in any case.
//!
//! Cost: that of FastTrack.

use selvedge_model::{Epoch, Event, FirstRace, Op, Party, Range, Role, SiteId};

use crate::Filter;
use crate::common::accesses::{Accesses, Visit};
use crate::common::order::{Edges, Order};
use crate::common::role::role_of;
use crate::common::shadow::Shadow;

/// The filter.
#[derive(Debug)]
pub struct RaceFree {
    order: Order,
    memory: Shadow<Cell>,
    passed: u64,
    first: Option<FirstRace>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Mark {
    epoch: Epoch,
    passed: u64,
    site: SiteId,
}

impl Default for Mark {
    fn default() -> Mark {
        Mark { epoch: Epoch::ZERO, passed: 0, site: SiteId(0) }
    }
}

impl crate::common::accesses::Mark for Mark {
    fn epoch(&self) -> Epoch {
        self.epoch
    }
}

#[derive(Clone, Default, PartialEq, Debug)]
struct Cell {
    racy: bool,
    accesses: Accesses<Mark>,
}

impl Default for RaceFree {
    fn default() -> RaceFree {
        RaceFree::new()
    }
}

impl RaceFree {
    /// Nothing has happened yet.
    pub fn new() -> RaceFree {
        RaceFree {
            order: Order::new(Edges::HAPPENS_BEFORE),
            memory: Shadow::default(),
            passed: 0,
            first: None,
        }
    }

    /// The first race on some bytes, if the event that was let through last is the later access of it.
    pub fn first_race(&self) -> Option<FirstRace> {
        self.first
    }

    #[inline]
    fn access(&mut self, event: &Event, range: Range, check: Check) -> bool {
        let thread = self.order.thread(event.thread);
        let mark = Mark { epoch: thread.epoch(), passed: self.passed, site: event.site };
        let visit = Visit { mark, clock: thread.clock() };
        let mut racy = false;
        let mut first = None;
        self.memory.visit(range, |bytes, cell| {
            if !cell.racy
                && let Some((earlier, role)) = check(&mut cell.accesses, visit)
            {
                cell.racy = true;
                first = first.or(Some((bytes, earlier, role)));
            }
            racy |= cell.racy;
        });
        self.first = first.map(|(bytes, Mark { epoch, passed, site }, role)| {
            let earlier = Party { thread: self.order.owner(epoch), site, role };
            let later = Party { thread: event.thread, site: event.site, role: role_of(&event.op) };
            FirstRace { bytes, earlier, passed, later }
        });
        racy
    }

    fn synchronization(&mut self, event: &Event) {
        self.first = None;
        self.order.acquire(event);
        match event.op {
            Op::Atomic(access, op) if op.writes() => {
                self.access(event, access.range(), Accesses::on_atomic_store);
            }
            Op::Atomic(access, _) => {
                self.access(event, access.range(), Accesses::on_atomic_load);
            }
            Op::Alloc(range) | Op::Free(range) => self.memory.forget(range, |_, _| {}),
            Op::Read(_)
            | Op::Write(_)
            | Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!() => {}
        }
        self.order.release(event);
    }
}

impl Filter for RaceFree {
    #[inline]
    fn keep(&mut self, event: &Event) -> bool {
        let keep = match event.op {
            Op::Read(access) => self.access(event, access.range(), Accesses::on_read),
            Op::Write(access) => self.access(event, access.range(), Accesses::on_write),
            Op::Atomic(..)
            | Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => {
                self.synchronization(event);
                true
            }
        };
        self.passed += u64::from(keep);
        keep
    }

    fn restart(&mut self) {
        self.order.clear();
        self.memory.clear();
        self.passed = 0;
        self.first = None;
    }
}

/// Takes in an access; returns an earlier one that it races with.
type Check = fn(&mut Accesses<Mark>, Visit<'_, Mark>) -> Option<(Mark, Role)>;
