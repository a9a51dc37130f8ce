//! Which threads wait for each other for ever.
//!
//! A thread that waits for a lock, or for the end of a thread, does nothing else meanwhile: it gives up none of
//! its locks. So if each of some threads waits for something that the next one has, none of them ever goes on.
//!
//! Guarantee: never reports threads of which one can go on, as long as no signal handler releases a lock. Misses
//! threads that wait for something else, such as a condition variable, and readers behind waiting writers.
//!
//! Cost: O(n) per wait for n threads; nothing for a lock that is free.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_analyses::held::HeldLocks;
use selvedge_model::{Blocked, Event, Failure, Finding, Held, Kind, Mode, Op, Role, ThreadId};
use selvedge_runtime::decode::{Awaited, Wait};

/// The threads that wait.
#[derive(Default)]
pub(super) struct Waiting {
    threads: BTreeMap<ThreadId, Wait>,
}

impl Waiting {
    /// A thread has done something, so that it does not wait any more.
    pub(super) fn on_event(&mut self, event: &Event) {
        // Waiting for a lock of Rust consists of these.
        let may_wait = matches!(event.op, Op::Atomic(..) | Op::Fence(_) | Op::Wake(_));
        if !self.threads.is_empty() && !may_wait {
            self.threads.remove(&event.thread);
        }
    }

    /// A thread begins to wait. A finding if it waits for itself by way of others.
    pub(super) fn begin(
        &mut self,
        wait: Wait,
        held: &HeldLocks,
        last: ThreadId,
    ) -> Option<Finding> {
        self.threads.insert(wait.thread, wait);
        let mut circle = Vec::new();
        let mut seen = BTreeSet::new();
        if !self.leads_back(wait.thread, wait.thread, held, last, &mut seen, &mut circle) {
            return None;
        }
        circle.reverse();
        // Which of them came last does not matter.
        let first = (0..circle.len()).min_by_key(|&i| circle[i].thread).unwrap_or(0);
        circle.rotate_left(first);
        let places = circle.iter().map(Blocked::place).collect();
        let failure = Failure::Stuck { part: circle, others: Vec::new() };
        let finding = Finding::failure(Kind::Deadlock, failure, places);
        Some(Finding { analyses: vec!["run"], ..finding })
    }

    /// Whether `thread` waits for `start`, perhaps by way of others, which are put into `circle`, the last first.
    fn leads_back(
        &self,
        thread: ThreadId,
        start: ThreadId,
        held: &HeldLocks,
        last: ThreadId,
        seen: &mut BTreeSet<ThreadId>,
        circle: &mut Vec<Blocked>,
    ) -> bool {
        let Some(wait) = self.threads.get(&thread).filter(|_| seen.insert(thread)) else {
            return false;
        };
        let keeps = |h: &Held| match wait.what {
            Awaited::Lock(lock, mode) => h.lock == lock && h.mode.excludes(mode),
            Awaited::Thread(_) => false,
        };
        let holds = |t: ThreadId| held.locks(held.set(t)).iter().any(keeps);
        let awaited: Vec<ThreadId> = match wait.what {
            Awaited::Lock(..) => (0..=last.0).map(ThreadId).filter(|&t| holds(t)).collect(),
            Awaited::Thread(other) => vec![other],
        };
        for next in awaited {
            if next == start || self.leads_back(next, start, held, last, seen, circle) {
                let (wants, mode) = match wait.what {
                    Awaited::Lock(lock, mode) => (Role::Acquire(lock), mode),
                    Awaited::Thread(other) => (Role::Join(other), Mode::Exclusive),
                };
                circle.push(Blocked {
                    thread,
                    site: wait.site,
                    wants,
                    mode,
                    holds: held.locks(held.set(thread)).to_vec(),
                    waits_for: Some(next),
                });
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_model::{LockId, SiteId};

    const T: [ThreadId; 3] = [ThreadId(0), ThreadId(1), ThreadId(2)];
    const A: LockId = LockId(0);
    const B: LockId = LockId(1);

    struct Threads(HeldLocks, Waiting);

    impl Threads {
        fn does(&mut self, thread: ThreadId, op: Op) {
            let event = Event { thread, site: SiteId(0), op };
            self.0.on_event(&event);
            self.1.on_event(&event);
        }

        fn has(&mut self, thread: ThreadId, lock: LockId, mode: Mode) {
            self.does(thread, Op::Acquire(lock, mode));
        }

        fn waits(&mut self, thread: ThreadId, what: Awaited) -> Option<Vec<ThreadId>> {
            let wait = Wait { thread, site: SiteId(thread.0), what };
            let found = self.1.begin(wait, &self.0, T[2])?;
            Some(found.places.iter().map(|p| p.thread).collect())
        }
    }

    fn threads() -> Threads {
        Threads(HeldLocks::default(), Waiting::default())
    }

    #[test]
    fn threads_that_hold_what_others_want_are_stuck() {
        let mut t = threads();
        t.has(T[0], A, Mode::Exclusive);
        t.has(T[1], B, Mode::Exclusive);
        assert_eq!(t.waits(T[2], Awaited::Lock(A, Mode::Exclusive)), None, "not part of it");
        assert_eq!(t.waits(T[0], Awaited::Lock(B, Mode::Exclusive)), None);
        assert_eq!(t.waits(T[1], Awaited::Lock(A, Mode::Exclusive)), Some(vec![T[0], T[1]]));
    }

    #[test]
    fn a_thread_that_goes_on_is_not_stuck() {
        let mut t = threads();
        t.has(T[0], A, Mode::Exclusive);
        t.has(T[1], B, Mode::Exclusive);
        assert_eq!(t.waits(T[0], Awaited::Lock(B, Mode::Exclusive)), None);
        t.does(T[1], Op::Release(B, Mode::Exclusive));
        t.has(T[0], B, Mode::Exclusive);
        assert_eq!(t.waits(T[1], Awaited::Lock(A, Mode::Exclusive)), None);
    }

    #[test]
    fn readers_exclude_writers_only() {
        let mut t = threads();
        t.has(T[0], A, Mode::Shared);
        t.has(T[1], A, Mode::Shared);
        assert_eq!(t.waits(T[0], Awaited::Lock(A, Mode::Exclusive)), Some(vec![T[0]]), "itself");
        let mut t = threads();
        t.has(T[0], A, Mode::Shared);
        t.has(T[1], B, Mode::Exclusive);
        assert_eq!(t.waits(T[0], Awaited::Lock(B, Mode::Shared)), None);
        assert_eq!(t.waits(T[1], Awaited::Lock(A, Mode::Shared)), None, "it may enter");
    }

    #[test]
    fn joining_is_waiting() {
        let mut t = threads();
        t.has(T[0], A, Mode::Exclusive);
        assert_eq!(t.waits(T[0], Awaited::Thread(T[1])), None);
        assert_eq!(t.waits(T[1], Awaited::Lock(A, Mode::Exclusive)), Some(vec![T[0], T[1]]),);
    }
}
