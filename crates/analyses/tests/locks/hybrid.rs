//! `hybrid` against its definition: all pairs of accesses, and order as reachability in a graph.

use std::collections::BTreeSet;

use proptest::prelude::*;
use selvedge_analyses::Analysis;
use selvedge_analyses::hybrid::{Hybrid, MAX_PAST};
use selvedge_model::{Access, Event, Findings, LockId, Mode, Op, SiteId, ThreadId};

use crate::program::{Execution, Shape, Sites, executions};
use crate::{cases, findings, sites};

/// `before[j]` are the events that message order puts before event `j`.
fn message_order(events: &[Event]) -> Vec<BTreeSet<usize>> {
    let mut before: Vec<BTreeSet<usize>> = Vec::new();
    for (j, late) in events.iter().enumerate() {
        let mut past = BTreeSet::new();
        for (i, early) in events[..j].iter().enumerate() {
            let arc = early.thread == late.thread
                || early.op == Op::Fork(late.thread)
                || late.op == Op::Join(early.thread)
                || match (early.op, late.op) {
                    (Op::Notify(a, _), Op::Wake(b)) => a == b,
                    (Op::Post(a), Op::Wait(b)) => a == b,
                    (Op::Arrive(a, m), Op::Leave(b, n)) => (a, m) == (b, n),
                    _ => false,
                };
            if arc {
                past.insert(i);
                past.extend(&before[i]);
            }
        }
        before.push(past);
    }
    before
}

/// The locks that the thread of event `j` holds then.
fn locks(events: &[Event], j: usize) -> Vec<(LockId, Mode)> {
    let mut held = Vec::new();
    for e in events[..j].iter().filter(|e| e.thread == events[j].thread) {
        match e.op {
            Op::Acquire(l, m) => held.push((l, m)),
            Op::Release(l, m) => {
                let i = held.iter().position(|&h| h == (l, m)).expect("held");
                held.remove(i);
            }
            _ => {}
        }
    }
    held
}

fn access(op: Op) -> Option<(u64, u64, bool)> {
    match op {
        Op::Read(a) => Some((a.addr, a.addr + u64::from(a.len), false)),
        Op::Write(a) => Some((a.addr, a.addr + u64::from(a.len), true)),
        _ => None,
    }
}

/// Whether some byte of both accesses was neither allocated nor freed between them.
fn same_memory(events: &[Event], i: usize, j: usize) -> bool {
    let (Some(a), Some(b)) = (access(events[i].op), access(events[j].op)) else { return false };
    (a.0.max(b.0)..a.1.min(b.1)).any(|byte| {
        !events[i..j].iter().any(|e| match e.op {
            Op::Alloc(r) | Op::Free(r) => r.start <= byte && byte < r.start + r.len,
            _ => false,
        })
    })
}

fn oracle(events: &[Event]) -> BTreeSet<Vec<SiteId>> {
    let before = message_order(events);
    let mut races = BTreeSet::new();
    for j in 0..events.len() {
        for i in 0..j {
            let (Some(a), Some(b)) = (access(events[i].op), access(events[j].op)) else { continue };
            let guarded = locks(events, i).iter().any(|&(l, m)| {
                locks(events, j)
                    .iter()
                    .any(|&(k, n)| l == k && !(m == Mode::Shared && n == Mode::Shared))
            });
            if events[i].thread != events[j].thread
                && (a.2 || b.2)
                && same_memory(events, i, j)
                && !guarded
                && !before[j].contains(&i)
            {
                let (s, t) = (events[i].site, events[j].site);
                races.insert(vec![s.min(t), s.max(t)]);
            }
        }
    }
    races
}

proptest! {
    #![proptest_config(cases(4000))]

    /// Every event has its own site, so that no pair may be lost.
    #[test]
    fn finds_exactly_the_racing_pairs(
        Execution(events) in executions(Shape {
            threads: 3, steps: 20, locks: 3, memory: true, signals: true, forks: 2, sites: Sites::Own,
        })
    ) {
        prop_assert_eq!(sites(&findings(Hybrid::default(), &events)), oracle(&events));
    }

    /// Few sites, so that most of the past is dropped.
    #[test]
    fn forgets_no_pair_of_sites(
        Execution(events) in executions(Shape {
            threads: 4, steps: 30, locks: 2, memory: true, signals: true, forks: 2, sites: Sites::Few(4),
        })
    ) {
        prop_assert_eq!(sites(&findings(Hybrid::default(), &events)), oracle(&events));
    }

    /// One lock and hardly any sites, so that accesses under it in both modes stand for each other.
    #[test]
    fn forgets_no_pair_of_modes(
        Execution(events) in executions(Shape {
            threads: 3, steps: 30, locks: 1, memory: true, signals: false, forks: 1,
            sites: Sites::Few(2),
        })
    ) {
        prop_assert_eq!(sites(&findings(Hybrid::default(), &events)), oracle(&events));
    }
}

#[test]
fn says_so_when_a_byte_has_too_much_of_a_past() {
    let mut hybrid = Hybrid::default();
    let mut out = Findings::default();
    let op = Op::Write(Access { addr: 64, len: 4 });
    for t in 0..=MAX_PAST as u32 {
        hybrid.on_event(&Event { thread: ThreadId(t), site: SiteId(t), op }, &mut out);
        assert_eq!(hybrid.bound().is_some(), t as usize == MAX_PAST);
    }
}
