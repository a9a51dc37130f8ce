//! `lockset` against Eraser's rules as the paper tells them, byte by byte.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use selvedge_analyses::lockset::Lockset;
use selvedge_model::{Event, LockId, Mode, Op, SiteId, ThreadId};

use crate::program::{Execution, Shape, Sites, executions};
use crate::{cases, findings, sites};

type Locks = BTreeMap<LockId, BTreeSet<Mode>>;

/// An access to a byte, with the locks that its thread held.
#[derive(Clone, Debug)]
struct Seen {
    thread: ThreadId,
    site: SiteId,
    write: bool,
    locks: Locks,
}

/// Whether the accesses have a lock in common that is not held for reading by both.
fn apart(a: &Seen, b: &Seen) -> bool {
    a.locks.iter().any(|(lock, mine)| {
        b.locks.get(lock).is_some_and(|theirs| {
            mine.contains(&Mode::Exclusive) || theirs.contains(&Mode::Exclusive)
        })
    })
}

/// For every byte of memory, its accesses since it was last allocated or freed; after each access all
/// of them are gone through again from the first.
fn oracle(events: &[Event]) -> BTreeSet<Vec<SiteId>> {
    let mut reports = BTreeSet::new();
    let mut held: BTreeMap<ThreadId, Vec<(LockId, Mode)>> = BTreeMap::new();
    let mut bytes: BTreeMap<u64, Vec<Seen>> = BTreeMap::new();
    for e in events {
        let mine = held.entry(e.thread).or_default();
        let (range, write) = match e.op {
            Op::Acquire(l, m) => {
                mine.push((l, m));
                continue;
            }
            Op::Release(l, m) => {
                let i = mine.iter().rposition(|&h| h == (l, m)).expect("held");
                mine.remove(i);
                continue;
            }
            Op::Alloc(r) | Op::Free(r) => {
                bytes.retain(|&b, _| !(r.start <= b && b < r.start + r.len));
                continue;
            }
            Op::Read(a) => (a.addr..a.addr + u64::from(a.len), false),
            Op::Write(a) => (a.addr..a.addr + u64::from(a.len), true),
            _ => continue,
        };
        let mut locks = Locks::new();
        for &(l, m) in &*mine {
            locks.entry(l).or_default().insert(m);
        }
        let now = Seen { thread: e.thread, site: e.site, write, locks };
        for b in range {
            let past = bytes.entry(b).or_default();
            past.push(now.clone());
            if unprotected(past)
                && let Some(other) = partner(past)
            {
                reports.insert(vec![other.site.min(now.site), other.site.max(now.site)]);
            }
        }
    }
    reports
}

/// Eraser's verdict on the last of the accesses to a byte.
fn unprotected(accesses: &[Seen]) -> bool {
    // Exclusive: as long as only the first thread has come by, nothing is refined.
    let first = accesses[0].thread;
    let Some(shared) = accesses.iter().position(|a| a.thread != first) else { return false };
    // Candidates are refined from the access of the second thread on.
    let sharing = &accesses[shared..];
    let mut candidates: BTreeSet<LockId> = sharing[0].locks.keys().copied().collect();
    for a in sharing {
        candidates.retain(|l| match a.locks.get(l) {
            Some(modes) => !a.write || modes.contains(&Mode::Exclusive),
            None => false,
        });
    }
    // Shared: nobody has written since the variable left its first thread.
    let modified = sharing.iter().any(|a| a.write);
    modified && candidates.is_empty()
}

/// The access that is reported beside the last one.
fn partner(accesses: &[Seen]) -> Option<&Seen> {
    let (now, before) = accesses.split_last()?;
    let latest =
        |write: bool| before.iter().rev().find(|a| a.thread != now.thread && a.write == write);
    let write = latest(true);
    let read = latest(false).filter(|_| now.write);
    [write, read].into_iter().flatten().find(|a| !apart(a, now)).or(write).or(read)
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn agrees_with_the_paper_on_every_byte(
        Execution(events) in executions(Shape {
            threads: 3, steps: 24, locks: 3, memory: true, signals: false, forks: 2, sites: Sites::Own,
        })
    ) {
        prop_assert_eq!(sites(&findings(Lockset::default(), &events)), oracle(&events));
    }

    #[test]
    fn agrees_with_the_paper_where_sites_recur(
        Execution(events) in executions(Shape {
            threads: 4, steps: 20, locks: 2, memory: true, signals: true, forks: 2, sites: Sites::Few(6),
        })
    ) {
        prop_assert_eq!(sites(&findings(Lockset::default(), &events)), oracle(&events));
    }
}
