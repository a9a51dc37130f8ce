//! What a front end may hold back changes nothing: the same disciplines, and races on the same memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use selvedge_analyses::Analysis;
use selvedge_analyses::hominy::{Hominy, Instance};
use selvedge_model::{Access, Event, Findings, HeldBack, LockId, Mode, Op, SiteId, ThreadId};

use crate::common::{Shape, executions};
use crate::{SHAPE, infer, without_races};

/// Who had access last, as a front end remembers it.
#[derive(Clone)]
struct Owner {
    thread: ThreadId,
    locks: Vec<(LockId, Mode)>,
    wrote: bool,
    /// When the last write and the last read that were held back were made.
    held_back: [Option<u64>; 2],
}

/// A front end that shows as little as it may.
#[derive(Default)]
struct FrontEnd {
    hominy: Hominy,
    findings: Findings,
    owners: BTreeMap<Access, Owner>,
    locks: BTreeMap<ThreadId, Vec<(LockId, Mode)>>,
    moments: BTreeMap<ThreadId, u64>,
    held_back: usize,
}

impl FrontEnd {
    fn take(&mut self, event: &Event, moment: u64) {
        match event.op {
            Op::Read(access) => return self.access(event, access, false),
            Op::Write(access) => return self.access(event, access, true),
            Op::Acquire(lock, mode) => {
                let locks = self.locks.entry(event.thread).or_default();
                locks.push((lock, mode));
                locks.sort_unstable();
            }
            Op::Release(lock, mode) => {
                let locks = self.locks.entry(event.thread).or_default();
                if let Some(at) = locks.iter().position(|held| *held == (lock, mode)) {
                    locks.remove(at);
                }
            }
            Op::Atomic(access, _) => self.tell(access.addr, u64::from(access.len)),
            Op::Alloc(range) | Op::Free(range) => self.tell(range.start, range.len),
            _ => {}
        }
        self.hominy.on_event(event, &mut self.findings);
        self.hominy.reached(event.thread, moment);
        self.moments.insert(event.thread, moment);
    }

    fn access(&mut self, event: &Event, access: Access, write: bool) {
        let thread = event.thread;
        let locks = self.locks.get(&thread).cloned().unwrap_or_default();
        if let (Some(owner), Some(&moment)) =
            (self.owners.get_mut(&access), self.moments.get(&thread))
            && owner.thread == thread
            && owner.locks == locks
            && (owner.wrote || !write)
        {
            owner.held_back[usize::from(!write)] = Some(moment);
            self.held_back += 1;
            return;
        }
        let goes_on =
            self.owners.get(&access).is_some_and(|o| o.thread == thread && o.locks == locks);
        let wrote = write || goes_on && self.owners[&access].wrote;
        self.tell(access.addr, u64::from(access.len));
        self.hominy.on_event(event, &mut self.findings);
        self.owners.insert(access, Owner { thread, locks, wrote, held_back: [None; 2] });
    }

    /// Tells what was held back of some memory; whoever comes next has it.
    fn tell(&mut self, start: u64, len: u64) {
        let overlaps =
            |a: &Access| a.addr < start.saturating_add(len) && start < a.addr + u64::from(a.len);
        let gone: Vec<Access> = self.owners.keys().copied().filter(overlaps).collect();
        for access in gone {
            let Some(owner) = self.owners.remove(&access) else { continue };
            let [write, read] = owner.held_back;
            for (moment, write) in [(write, true), (read.filter(|r| Some(*r) > write), false)] {
                let Some(moment) = moment else { continue };
                let (thread, bytes) = (owner.thread, access.range());
                self.hominy.held_back(&HeldBack { thread, bytes, write, moment, site: None });
            }
        }
    }
}

/// What counts: the words, and whether there was a race.
fn essence(instances: Vec<Instance>) -> Vec<impl PartialEq + std::fmt::Debug> {
    instances.into_iter().map(|i| (i.bytes, i.steps, i.cut, i.race.is_some())).collect()
}

/// How many accesses were held back, after the results were compared.
fn compare(events: &[Event]) -> Result<usize, TestCaseError> {
    let mut front_end = FrontEnd::default();
    // Other numbers are as good: only their order counts.
    for (event, moment) in events.iter().zip((5..).step_by(3)) {
        front_end.take(event, moment);
    }
    let FrontEnd { mut hominy, mut findings, held_back, .. } = front_end;
    hominy.finish(&mut findings);
    prop_assert_eq!(essence(hominy.take_instances()), essence(infer(events).0));
    Ok(held_back)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn what_is_held_back_changes_nothing(events in executions(SHAPE), racy in 0..8) {
        compare(&if racy == 0 { events } else { without_races(&events) })?;
    }

    #[test]
    fn nor_does_it_where_memory_is_allocated_and_accesses_overlap(
        events in executions(Shape { mixed_sizes: true, allocation: true, steps: 200, ..SHAPE }),
    ) {
        compare(&events)?;
    }
}

/// The comparison would mean nothing if accesses were never held back.
#[test]
fn accesses_are_held_back() {
    let access = Access { addr: 0x100, len: 8 };
    let event = |thread, op| Event { thread: ThreadId(thread), site: SiteId(0), op };
    let (acquire, release) =
        (Op::Acquire(LockId(0), Mode::Exclusive), Op::Release(LockId(0), Mode::Exclusive));
    let mut events = vec![event(0, Op::Fork(ThreadId(1)))];
    for thread in [0, 0, 0, 1, 1] {
        let locked = [acquire, Op::Read(access), Op::Write(access), release];
        events.extend(locked.map(|op| event(thread, op)));
    }
    assert_eq!(compare(&events).unwrap(), 6);
}
