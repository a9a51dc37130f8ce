//! View consistency by its definition, with sets of bytes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use selvedge_analyses::Analysis;
use selvedge_analyses::views::Views;
use selvedge_model::{Event, Findings, LockId, Op, RegionKind, Subject, Target, ThreadId};

use crate::generate::{Mix, execution, wishes};
use crate::{cases, shown};

type Bytes = BTreeSet<u64>;

/// The views of each thread and lock, as (accessed, written). Only the outermost lock counts.
fn views(events: &[Event]) -> BTreeMap<(LockId, ThreadId), Vec<(Bytes, Bytes)>> {
    let mut held: BTreeMap<ThreadId, Vec<LockId>> = BTreeMap::new();
    let mut now: BTreeMap<ThreadId, (Bytes, Bytes)> = BTreeMap::new();
    let mut all: BTreeMap<(LockId, ThreadId), Vec<(Bytes, Bytes)>> = BTreeMap::new();
    for e in events {
        let held = held.entry(e.thread).or_default();
        let now = now.entry(e.thread).or_default();
        match e.op {
            Op::Acquire(l, _) => held.push(l),
            Op::Release(l, _) => {
                let outermost = held[0];
                let at = held.iter().rposition(|&h| h == l).expect("it is held");
                held.remove(at);
                if l == outermost && !held.contains(&l) {
                    let view = std::mem::take(now);
                    if !view.0.is_empty() {
                        all.entry((l, e.thread)).or_default().push(view);
                    }
                }
            }
            Op::Read(a) | Op::Write(a) if !held.is_empty() => {
                let bytes = a.addr..a.addr + u64::from(a.len);
                now.0.extend(bytes.clone());
                if matches!(e.op, Op::Write(_)) {
                    now.1.extend(bytes);
                }
            }
            _ => {}
        }
    }
    all
}

/// Which thread splits what which other thread uses as a whole, under which lock.
fn inconsistent(events: &[Event]) -> BTreeSet<(LockId, ThreadId, ThreadId)> {
    let all = views(events);
    let mut result = BTreeSet::new();
    for ((l1, whole_by), wholes) in &all {
        for ((l2, split_by), parts) in &all {
            if l1 != l2 || whole_by == split_by {
                continue;
            }
            for m in wholes {
                for a in parts {
                    for b in parts {
                        let (x, y): (Bytes, Bytes) = (&a.0 & &m.0, &b.0 & &m.0);
                        let both: Bytes = &x | &y;
                        let written = [&a.1, &b.1, &m.1].iter().any(|w| !w.is_disjoint(&both));
                        if !x.is_subset(&y) && !y.is_subset(&x) && written {
                            result.insert((*l1, *split_by, *whole_by));
                        }
                    }
                }
            }
        }
    }
    result
}

fn found(events: &[Event]) -> BTreeSet<(LockId, ThreadId, ThreadId)> {
    let mut out = Findings::default();
    let mut analysis = Views::new();
    analysis.on_events(events, &mut out);
    assert_eq!(analysis.bound(), None);
    out.iter()
        .map(|f| {
            let Subject::Locks(locks) = &f.subject else { panic!("views are of locks") };
            let [first, between, second] = &f.places[..] else { panic!("three regions") };
            assert_eq!(first.thread, second.thread);
            let Some(Target::Split { first: a, second: b, between: c, .. }) = f.target else {
                panic!("it can be confirmed")
            };
            assert_eq!((a, b, c), (first.site, second.site, Some(between.site)));
            (locks[0], first.thread, between.thread)
        })
        .collect()
}

/// A thread that only takes locks and uses memory, so that views are many.
fn locked(w: &[(u8, u8, u8)]) -> Vec<Event> {
    let wishes: Vec<_> = w
        .iter()
        .map(|&(t, what, which)| (t % 3, [0, 3, 6, 8, 6, 8, 1, 4, 17][what as usize % 9], which))
        .collect();
    execution(&wishes, Mix { kind: RegionKind::Atomic, early: 3, everything: true })
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn reports_are_those_of_the_definition(w in wishes(200)) {
        let events = locked(&w);
        prop_assert_eq!(found(&events), inconsistent(&events), "{}", shown(&events));
    }
}

#[test]
fn the_random_traces_are_worth_it() {
    let mut random = crate::generate::Random(7);
    let all = (0..1000).map(|_| found(&locked(&random.wishes(300))).len()).filter(|&n| n > 0);
    assert!(all.count() > 50);
}

fn under(lock: u32, thread: u32, site: u32, accesses: &[(u64, bool)]) -> Vec<Event> {
    use selvedge_model::{Access, Mode, SiteId};
    let event = |op| Event { thread: ThreadId(thread), site: SiteId(site), op };
    let lock = LockId(lock);
    let mut events = vec![event(Op::Acquire(lock, Mode::Exclusive))];
    events.extend(accesses.iter().map(|&(addr, write)| {
        let access = Access { addr, len: 4 };
        event(if write { Op::Write(access) } else { Op::Read(access) })
    }));
    events.push(event(Op::Release(lock, Mode::Exclusive)));
    events
}

#[test]
fn threads_that_end_are_remembered_once_for_each_set_of_views() {
    use selvedge_model::SiteId;
    let mut out = Findings::default();
    let mut analysis = Views::new();
    let ended = |thread: u32| Event { thread: ThreadId(thread), site: SiteId(0), op: Op::End };
    for thread in 1..10_000 {
        analysis.on_events(&under(0, thread, 1, &[(8, true)]), &mut out);
        analysis.on_events(&under(0, thread, 2, &[(12, true)]), &mut out);
        analysis.on_event(&ended(thread), &mut out);
    }
    assert!(out.is_empty());
    assert_eq!(analysis.bound(), None, "ten thousand threads of the same kind are one");
    analysis.on_events(&under(0, 0, 3, &[(8, false), (12, false)]), &mut out);
    assert_eq!(out.len(), 1);
}

#[test]
fn freed_memory_has_no_views() {
    use selvedge_model::{Range, SiteId};
    let mut out = Findings::default();
    let mut analysis = Views::new();
    analysis.on_events(&under(0, 1, 1, &[(8, true)]), &mut out);
    let free = Op::Free(Range { start: 8, len: 4 });
    analysis.on_event(&Event { thread: ThreadId(1), site: SiteId(9), op: free }, &mut out);
    analysis.on_events(&under(0, 1, 2, &[(12, true)]), &mut out);
    analysis.on_events(&under(0, 2, 3, &[(8, true), (12, true)]), &mut out);
    assert!(out.is_empty());
}

#[test]
fn too_many_views_are_admitted() {
    let mut out = Findings::default();
    let mut analysis = Views::new();
    for i in 0..65 {
        analysis.on_events(&under(0, 1, 1, &[(16 * i, true)]), &mut out);
    }
    assert_eq!(analysis.bound().map(|b| (b.limit, b.exceeded)), Some((64, 1)));
}
