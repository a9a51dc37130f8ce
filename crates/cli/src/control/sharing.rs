//! Which plain accesses are scheduling points of programs that say how their data flows: those to memory that threads
//! share at the same time.
//!
//! Two accesses are at the same time unless starting and joining threads or a barrier orders them. Locks, semaphores and
//! atomics do not count: another schedule turns their order round. Memory of a thread that has ended, such as its stack,
//! is often used by the next one; that is not shared.
//!
//! Cost: a list for each 8 bytes of memory, of the threads that accessed it since the last barrier.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use selvedge_analyses::order::{Edges, Order};
use selvedge_engine::Points;
use selvedge_model::{Epoch, Event, Op, Site, SiteId, ThreadId};
use selvedge_runtime::control::{WatchList, Watched};
use selvedge_runtime::flow::Tables;

/// Memory is looked at by so many bytes.
const GRANULE: u64 = 8;
/// Of one access, so many granules.
const LONGEST: u64 = 512;
/// A list of so many accesses is looked through for those that are over.
const LONG: usize = 16;
/// Starting, joining and barriers.
const EDGES: Edges = Edges { locks: false, atomics: false, rendezvous: true, notify: false };

/// The accesses to shared memory that are scheduling points: those that executions have shown so far.
#[derive(Default)]
pub(crate) struct Sharing {
    pub(crate) list: WatchList,
    known: BTreeSet<String>,
}

impl Sharing {
    /// Of a program with these tables: where tasks begin that are calls, another may come first.
    pub(crate) fn new(tables: &Tables) -> Sharing {
        let begins = tables.task_begins().into_iter();
        let begins = begins.map(|(code, site)| Watched { code, site }).collect();
        Sharing { list: WatchList::new(begins), ..Sharing::default() }
    }

    /// Makes the accesses at these sites scheduling points; whether some are new.
    pub(crate) fn watch(&mut self, sites: Vec<Site>, tables: &Tables) -> bool {
        let new: Vec<Site> =
            sites.into_iter().filter(|s| self.known.insert(s.to_string())).collect();
        if new.is_empty() {
            return false;
        }
        let accesses = tables.accesses_at(&new).into_iter();
        let watched = accesses.map(|(code, site)| Watched { code, site }).collect();
        self.list.add(&WatchList::new(watched));
        true
    }
}

/// What one thread did to a granule between two points at which it was ordered with others.
struct User {
    thread: ThreadId,
    epoch: Epoch,
    written: bool,
    sites: Vec<SiteId>,
}

/// The sites of plain accesses to memory that several threads use at the same time, one of them to write.
pub(crate) fn shared(events: &[Event]) -> BTreeSet<SiteId> {
    let mut order = Order::new(EDGES);
    let mut alive: BTreeSet<ThreadId> = BTreeSet::from([ThreadId(0)]);
    let mut memory: FxHashMap<u64, Vec<User>> = FxHashMap::default();
    let mut found = BTreeSet::new();
    for event in events {
        if let Op::Read(access) | Op::Write(access) = event.op {
            if alive.len() < 2 {
                continue;
            }
            let range = access.range();
            let end = range.end().min(range.start + LONGEST * GRANULE);
            for granule in range.start / GRANULE..=(end - 1) / GRANULE {
                let users = memory.entry(granule).or_default();
                touch(users, event, (&mut order, &alive), &mut found);
            }
            continue;
        }
        if let Op::Fork(child) = event.op {
            alive.insert(child);
        } else if event.op == Op::End {
            alive.remove(&event.thread);
        } else if matches!(event.op, Op::Post(_) | Op::Wait(_)) {
            // Which post a wait consumes is another one in another schedule.
            continue;
        }
        order.acquire(event);
        order.release(event);
    }
    found
}

fn touch(
    users: &mut Vec<User>,
    event: &Event,
    (order, alive): (&mut Order, &BTreeSet<ThreadId>),
    found: &mut BTreeSet<SiteId>,
) {
    let writes = matches!(event.op, Op::Write(_));
    let now = order.thread(event.thread);
    let epoch = now.epoch();
    let is_own = |u: &User| u.thread == event.thread && u.epoch == epoch;
    if let [only] = &users[..]
        && is_own(only)
        && only.written >= writes
        && only.sites.contains(&event.site)
    {
        return;
    }
    for user in users.iter() {
        let beside = user.thread != event.thread && !now.clock().contains(user.epoch);
        if beside && (writes || user.written) {
            found.insert(event.site);
            found.extend(&user.sites);
        }
    }
    if let Some(own) = users.iter_mut().find(|u| is_own(u)) {
        own.written |= writes;
        if !own.sites.contains(&event.site) {
            own.sites.push(event.site);
        }
        return;
    }
    if users.len() >= LONG && users.len().is_power_of_two() {
        users.retain(|u| !alive.iter().all(|&t| order.thread(t).clock().contains(u.epoch)));
    }
    users.push(User { thread: event.thread, epoch, written: writes, sites: vec![event.site] });
}

#[cfg(test)]
mod tests {
    use selvedge_model::{Access, BarrierId, LockId, Mode};

    use super::*;

    fn run(ops: &[(u32, u32, Op)]) -> Vec<u32> {
        let event = |&(thread, site, op): &(u32, u32, Op)| Event {
            thread: ThreadId(thread),
            site: SiteId(site),
            op,
        };
        let events: Vec<Event> = ops.iter().map(event).collect();
        shared(&events).into_iter().map(|s| s.0).collect()
    }

    fn write() -> Op {
        Op::Write(Access { addr: 64, len: 8 })
    }

    fn read() -> Op {
        Op::Read(Access { addr: 64, len: 8 })
    }

    #[test]
    fn accesses_under_a_lock_are_shared() {
        let [take, give] = [Op::Acquire, Op::Release].map(|op| op(LockId(0), Mode::Exclusive));
        let fork = |child| (0, 0, Op::Fork(ThreadId(child)));
        let locked = |thread, site| [(thread, 0, take), (thread, site, write()), (thread, 0, give)];
        let ops = [&[fork(1), fork(2)][..], &locked(1, 7), &locked(2, 8)].concat();
        assert_eq!(run(&ops), [7, 8]);
    }

    #[test]
    fn memory_of_threads_that_follow_each_other_is_not_shared() {
        let life = |child: u32, site| {
            let fork = (0, 0, Op::Fork(ThreadId(child)));
            [fork, (child, site, write()), (child, 0, Op::End), (0, 0, Op::Join(ThreadId(child)))]
        };
        assert!(run(&[life(1, 7), life(2, 8)].concat()).is_empty());
    }

    #[test]
    fn a_barrier_orders_what_is_before_and_behind_it() {
        let fork = |child| (0, 0, Op::Fork(ThreadId(child)));
        let at = |thread, op: fn(BarrierId, u32) -> Op| (thread, 0, op(BarrierId(0), 0));
        let crossing = [at(1, Op::Arrive), at(2, Op::Arrive), at(1, Op::Leave), at(2, Op::Leave)];
        let start = [fork(1), fork(2), (1, 7, write())];
        assert!(run(&[&start[..], &crossing, &[(2, 8, read())]].concat()).is_empty());
        let beside = [&start[..], &[(2, 9, read())], &crossing, &[(2, 8, read())]].concat();
        assert_eq!(run(&beside), [7, 9]);
    }
}
