//! Synchronization whose order the schedule decides: pairs to try in both orders.
//!
//! Burnim, *Specifying and testing parallelism*, chapter 3: besides data races, the tool resolves *high-level races*
//! both ways: two threads about to acquire one lock. We add two threads about to use one atomic of which one writes,
//! which that tool could not see.
//!
//! Two acquisitions of one lock, not both for reading, or two uses of one atomic, not both loads, are a pair if their
//! threads differ, no lock held at both keeps them apart, and nothing that one thread tells another on purpose
//! ([`Edges::SIGNALS`]) orders them. No pair is a bug by itself, so the analysis is in no registry: the engine runs it
//! where a program ensures a result, and drops every pair whose order does not change the result.
//!
//! Guarantee: a pair is two such events of the execution. Of one lock or atomic, the last [`MAX_PAST`] uses at
//! different places or by different threads are remembered; pairs with older ones may be missed.
//!
//! Cost: O(remembered uses) per acquisition or atomic, O(threads) per signal.

use rustc_hash::FxHashMap;
use selvedge_model::{
    AtomicOp, Epoch, Event, Finding, Findings, Kind, Mode, Object, Op, Place, Range, Role, SiteId,
    Status, Subject, Target, ThreadId,
};

use crate::Analysis;
use crate::common::held::{HeldLocks, LockSet, exclude_each_other};
use crate::common::order::{Edges, Order};
use crate::entry::Entry;

/// How many uses of one lock or atomic are remembered.
pub const MAX_PAST: usize = 64;

const NAME: &str = "contention";

/// One use of a lock or an atomic.
#[derive(Clone, Copy, Debug)]
struct Use {
    thread: ThreadId,
    site: SiteId,
    role: Role,
    /// Whether it excludes or changes what others see.
    exclusive: bool,
    held: LockSet,
    epoch: Epoch,
}

/// The analysis.
#[derive(Debug)]
pub struct Contention {
    held: HeldLocks,
    order: Order,
    past: FxHashMap<Object, Vec<Use>>,
}

impl Default for Contention {
    fn default() -> Contention {
        Contention {
            held: HeldLocks::default(),
            order: Order::new(Edges::SIGNALS),
            past: FxHashMap::default(),
        }
    }
}

impl Analysis for Contention {
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        match event.op {
            Op::Acquire(lock, mode) => {
                let exclusive = mode == Mode::Exclusive;
                self.used(event, Object::Lock(lock), Role::Acquire(lock), exclusive, out);
                self.held.on_event(event);
            }
            Op::Release(..) => self.held.on_event(event),
            Op::Atomic(access, op) => {
                let exclusive = !matches!(op, AtomicOp::Load(_));
                let role = if exclusive { Role::AtomicWrite } else { Role::AtomicRead };
                self.used(event, Object::Memory(access.range()), role, exclusive, out);
            }
            threads!() | rendezvous!() | conditions!() => {
                self.order.acquire(event);
                self.order.release(event);
            }
            Op::Alloc(range) | Op::Free(range) => self.forget(range),
            Op::Read(_) | Op::Write(_) | Op::Fence(_) | regions!() => {}
        }
    }

    fn restart(&mut self) {
        self.held.clear();
        self.order.clear();
        self.past.clear();
    }
}

impl Contention {
    fn used(
        &mut self,
        event: &Event,
        object: Object,
        role: Role,
        exclusive: bool,
        out: &mut Findings,
    ) {
        let Contention { held, order, past } = self;
        let thread = order.thread(event.thread);
        let now = Use {
            thread: event.thread,
            site: event.site,
            role,
            exclusive,
            held: held.set(event.thread),
            epoch: thread.epoch(),
        };
        let past = past.entry(object).or_default();
        for earlier in past.iter() {
            if earlier.thread != now.thread
                && (earlier.exclusive || exclusive)
                && !thread.clock().contains(earlier.epoch)
                && !exclude_each_other(held.locks(earlier.held), held.locks(now.held))
                && !out.again(NAME, Kind::HighLevelRace, earlier.site, now.site)
            {
                out.report(pair(object, [*earlier, now], held));
            }
        }
        past.retain(|p| (p.thread, p.site, p.role) != (now.thread, now.site, now.role));
        if past.len() >= MAX_PAST {
            past.remove(0);
        }
        past.push(now);
    }

    fn forget(&mut self, range: Range) {
        self.past.retain(|object, _| match object {
            Object::Memory(memory) => !memory.overlaps(range),
            Object::Lock(_) => true,
        });
    }
}

fn pair(object: Object, uses: [Use; 2], held: &HeldLocks) -> Finding {
    let place = |u: Use| Place {
        thread: u.thread,
        site: u.site,
        role: u.role,
        held: held.locks(u.held).to_vec(),
    };
    let [first, second] = uses.map(|u| u.site);
    Finding {
        kind: Kind::HighLevelRace,
        status: Status::Predicted,
        verdict: None,
        analyses: vec![NAME],
        subject: match object {
            Object::Lock(lock) => Subject::Locks(vec![lock]),
            Object::Memory(range) => Subject::Memory(range),
        },
        places: uses.map(place).to_vec(),
        target: Some(Target::Contention { first, second }),
        occurrences: 1,
    }
}

/// Pairs of synchronization to try in both orders. Not in the registry: see the head of this file.
pub const ENTRY: Entry =
    Entry::of(NAME, "acquisitions and atomics whose order the schedule decides", || {
        Box::<Contention>::default()
    });

#[cfg(test)]
mod tests {
    use selvedge_model::{Access, LoadOrder, LockId, StoreOrder};

    use super::*;

    /// The pairs of sites, where each event's site is its number.
    fn pairs(events: &[(u32, Op)]) -> Vec<(u32, u32)> {
        let mut analysis = Contention::default();
        let mut findings = Findings::default();
        for (site, &(thread, op)) in (0..).zip(events) {
            let event = Event { thread: ThreadId(thread), site: SiteId(site), op };
            analysis.on_event(&event, &mut findings);
        }
        findings.iter().map(|f| (f.places[0].site.0, f.places[1].site.0)).collect()
    }

    const FORK: [(u32, Op); 2] = [(0, Op::Fork(ThreadId(1))), (1, Op::Begin)];

    fn lock(lock: u32, mode: Mode) -> [Op; 2] {
        [Op::Acquire(LockId(lock), mode), Op::Release(LockId(lock), mode)]
    }

    fn by(thread: u32, ops: &[Op]) -> Vec<(u32, Op)> {
        ops.iter().map(|&op| (thread, op)).collect()
    }

    #[test]
    fn acquisitions_of_one_lock_are_a_pair_unless_both_read() {
        for (modes, expected) in [
            ([Mode::Exclusive, Mode::Exclusive], vec![(2, 4)]),
            ([Mode::Exclusive, Mode::Shared], vec![(2, 4)]),
            ([Mode::Shared, Mode::Shared], vec![]),
        ] {
            let [one, two] = modes.map(|m| lock(0, m));
            assert_eq!(pairs(&[&FORK[..], &by(0, &one), &by(1, &two)].concat()), expected);
        }
        let [one, two] = [0, 1].map(|l| lock(l, Mode::Exclusive));
        assert_eq!(pairs(&[&FORK[..], &by(0, &one), &by(1, &two)].concat()), []);
    }

    #[test]
    fn a_fork_and_an_outer_lock_keep_acquisitions_apart() {
        let one = lock(0, Mode::Exclusive);
        assert_eq!(pairs(&[&by(0, &one), &FORK[..], &by(1, &one)].concat()), []);
        let outer = lock(7, Mode::Exclusive);
        let nested = [outer[0], one[0], one[1], outer[1]];
        let events = [&FORK[..], &by(0, &nested), &by(1, &nested)].concat();
        assert_eq!(pairs(&events), [(2, 6)], "only the outer one");
    }

    #[test]
    fn uses_of_one_atomic_are_a_pair_unless_both_load() {
        let at = Access { addr: 8, len: 8 };
        let load = Op::Atomic(at, AtomicOp::Load(LoadOrder::SeqCst));
        let store = Op::Atomic(at, AtomicOp::Store(StoreOrder::SeqCst));
        assert_eq!(pairs(&[&FORK[..], &by(0, &[load]), &by(1, &[store])].concat()), [(2, 3)]);
        assert_eq!(pairs(&[&FORK[..], &by(0, &[load]), &by(1, &[load])].concat()), []);
    }
}
