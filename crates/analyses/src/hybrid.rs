//! Hybrid race detection: accesses without a common lock that no signal orders.
//!
//! O'Callahan and Choi, "Hybrid Dynamic Data Race Detection" (PPoPP 2003), §3: two accesses may race if
//! they touch the same memory in different threads, one of them writes, no lock held at both keeps
//! them apart, and *message order* leaves them unordered. Message order is what one thread tells
//! another on purpose: fork, join, notification, semaphores and barriers ([`Edges::SIGNALS`]), and
//! deliberately not the order in which locks happened to be taken, which another schedule changes. The
//! two conditions together are Definition 4.2 of Active Testing (Park 2014) for arbitrary signals.
//!
//! Deviations. A lock that both sides hold for reading does not exclude them. Variables are bytes, and
//! allocating or freeing memory forgets its past. Atomic accesses are synchronization, not accesses to
//! data: they are skipped and order nothing, so accesses that atomics order may be reported. A
//! wake-up is ordered after every earlier notification of its condition variable, as in
//! [`crate::common::order`].
//!
//! What is remembered. Of the past accesses to a byte, an access *r* is dropped for a later *s* if *s* races
//! with every future access that *r* would race with, and the report has the same sites: *s* is at the
//! same site, writes if *r* writes, holds no lock that *r* does not hold as strongly, and *r* is ordered
//! before *s*. Proof: let a future *e* race with *r*. Then *e* is not ordered after *s*, or it would be
//! ordered after *r*; no lock of *s* excludes it that would not also exclude *r*; and it is not of the
//! thread of *s*, because then *r* would be ordered before it. Likewise *s* is not kept beside an *r* of the same thread
//! with no signal between them that is at least as strong. What stays is at most one access for each
//! site and set of locks and each of the threads that are unordered with each other.
//!
//! Guarantee: reports exactly the pairs of sites that have two racing accesses by the definition above,
//! as long as no byte has more than [`MAX_PAST`] accesses worth remembering; beyond that the oldest is
//! forgotten, pairs with it may be missed, and [`Analysis::bound`] says so. Such pairs are not all
//! races: what orders them may be atomics or data that the definition does not see.
//!
//! Cost: O(remembered accesses) per access and eight bytes that it touches, O(threads) per signal.

use selvedge_model::{Access, Epoch, Event, Findings, Held, Mode, Op, SiteId, VectorClock};

use crate::common::held::{HeldLocks, LockSet, exclude_each_other};
use crate::common::order::{Edges, Order};
use crate::common::past::{self, Past};
use crate::common::shadow::Shadow;
use crate::entry::{Entry, Needs, Purpose};
use crate::{Analysis, Bound};

/// How many past accesses to a byte are remembered.
pub const MAX_PAST: usize = 256;

/// The analysis.
#[derive(Debug)]
pub struct Hybrid {
    held: HeldLocks,
    order: Order,
    memory: Shadow<Vec<Remembered>>,
    forgotten: u64,
}

const NAME: &str = "hybrid";

#[derive(Clone, Copy, PartialEq, Debug)]
struct Remembered {
    access: Past,
    epoch: Epoch,
}

impl Default for Hybrid {
    fn default() -> Hybrid {
        Hybrid {
            held: HeldLocks::default(),
            order: Order::new(Edges::SIGNALS),
            memory: Shadow::default(),
            forgotten: 0,
        }
    }
}

impl Analysis for Hybrid {
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        match event.op {
            Op::Read(access) => self.access(event, access, false, out),
            Op::Write(access) => self.access(event, access, true, out),
            Op::Acquire(..) | Op::Release(..) => self.held.on_event(event),
            Op::Alloc(range) | Op::Free(range) => self.memory.forget(range, |_, _| {}),
            threads!() | rendezvous!() | conditions!() => {
                self.order.acquire(event);
                self.order.release(event);
            }
            Op::Atomic(..) | Op::Fence(_) | regions!() => {}
        }
    }

    fn restart(&mut self) {
        self.held.clear();
        self.order.clear();
        self.memory.clear();
        self.forgotten = 0;
    }

    fn bound(&self) -> Option<Bound> {
        (self.forgotten > 0).then_some(Bound {
            what: "past accesses to one byte are remembered",
            limit: MAX_PAST as u64,
            exceeded: self.forgotten,
        })
    }
}

impl Hybrid {
    fn access(&mut self, event: &Event, access: Access, write: bool, out: &mut Findings) {
        let Hybrid { held, order, memory, forgotten } = self;
        let thread = order.thread(event.thread);
        let (clock, epoch) = (thread.clock(), thread.epoch());
        let now = Remembered {
            access: Past {
                thread: event.thread,
                site: event.site,
                held: held.set(event.thread),
                write,
            },
            epoch,
        };
        // An access that touches several states is one occurrence of what it finds.
        let mut reported: Vec<SiteId> = Vec::new();
        memory.visit(access.range(), |bytes, past| {
            for &Remembered { access: earlier, epoch } in &*past {
                if earlier.thread != now.access.thread
                    && (earlier.write || write)
                    && !clock.contains(epoch)
                    && !exclude_each_other(held.locks(earlier.held), held.locks(now.access.held))
                    && !reported.contains(&earlier.site)
                {
                    reported.push(earlier.site);
                    past::report(NAME, bytes, [earlier, now.access], held, out);
                }
            }
            remember(past, now, clock, held, forgotten);
        });
    }
}

/// Adds `now` to the accesses worth remembering, and drops those that are not any more.
fn remember(
    past: &mut Vec<Remembered>,
    now: Remembered,
    clock: &VectorClock,
    held: &HeldLocks,
    forgotten: &mut u64,
) {
    let stands_for = |s: &Remembered, r: &Remembered| {
        s.access.site == r.access.site
            && s.access.write >= r.access.write
            && no_stronger(s.access.held, r.access.held, held)
    };
    let same_point = |r: &Remembered| r.access.thread == now.access.thread && r.epoch == now.epoch;
    if past.iter().any(|r| same_point(r) && stands_for(r, &now)) {
        return;
    }
    past.retain(|r| !(clock.contains(r.epoch) && stands_for(&now, r)));
    if past.len() >= MAX_PAST {
        past.remove(0);
        *forgotten += 1;
    }
    past.push(now);
}

/// Whether everything that the locks `a` keep out is kept out by the locks `b` as well.
fn no_stronger(a: LockSet, b: LockSet, held: &HeldLocks) -> bool {
    let as_strong = |y: Mode, x: Mode| y == Mode::Exclusive || x == Mode::Shared;
    let covered =
        |x: &Held| held.locks(b).iter().any(|y| x.lock == y.lock && as_strong(y.mode, x.mode));
    a == b || held.locks(a).iter().all(covered)
}

/// Hybrid race detection.
pub const ENTRY: Entry = Entry {
    default_in: &[Purpose::Check, Purpose::Test, Purpose::Explore],
    needs: Needs::Accesses,
    ..Entry::of(
        NAME,
        "data races that another schedule may show: no common lock, no signal between",
        || Box::<Hybrid>::default(),
    )
};
