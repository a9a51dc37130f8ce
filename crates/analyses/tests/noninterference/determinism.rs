//! SingleTrack against the definitions of its paper's second section.

use std::collections::BTreeSet;

use proptest::prelude::*;
use selvedge_analyses::Analysis;
use selvedge_analyses::fasttrack::FastTrack;
use selvedge_analyses::singletrack::{Filtered, SingleTrack};
use selvedge_model::{Event, Finding, Findings, Mode, Op, RegionKind, Subject, ThreadId};

use crate::generate::{Mix, Random, execution, wishes};
use crate::oracle::{depends, first_violation, serializable_by_permutation};
use crate::{cases, findings_by_event, shown};

const KIND: RegionKind = RegionKind::Deterministic;

/// For each event the regions it belongs to, outermost first, by the events that entered them.
fn regions(events: &[Event]) -> Vec<Vec<usize>> {
    let mut stacks: Vec<Vec<usize>> = vec![Vec::new(); 16];
    let mut inherited = [0; 16];
    let mut result = Vec::new();
    for (i, e) in events.iter().enumerate() {
        let me = e.thread.index();
        if matches!(e.op, Op::RegionEnter(..)) {
            stacks[me].push(i);
        }
        result.push(stacks[me].clone());
        match e.op {
            Op::RegionExit(_) if stacks[me].len() > inherited[me] => {
                stacks[me].pop();
            }
            Op::Fork(child) => {
                stacks[child.index()] = stacks[me].clone();
                inherited[child.index()] = stacks[me].len();
            }
            _ => {}
        }
    }
    result
}

/// What comes before what by program order, fork and join, barriers and semaphores.
fn deterministic_order(events: &[Event]) -> Vec<Vec<bool>> {
    let n = events.len();
    let mut before = vec![vec![false; n]; n];
    for j in 0..n {
        for i in 0..j {
            let (a, b) = (&events[i], &events[j]);
            let direct = a.thread == b.thread
                || match (a.op, b.op) {
                    (Op::Arrive(x, n), Op::Leave(y, m)) => (x, n) == (y, m),
                    (Op::Post(x), Op::Wait(y)) => x == y,
                    (Op::Fork(t), _) if b.thread == t => true,
                    (Op::Fork(t), Op::Join(u)) if t == u => true,
                    (_, Op::Join(t)) => a.thread == t,
                    _ => false,
                };
            if direct {
                before[i][j] = true;
                for earlier in before.iter_mut().take(i) {
                    earlier[j] |= earlier[i];
                }
            }
        }
    }
    before
}

/// Whether operation j of a transaction conflicts with i, which nothing deterministic puts before it.
fn conflict(events: &[Event], before: &[Vec<bool>], of: &[usize], i: usize, j: usize) -> bool {
    let synchronization_or_access = match (events[i].op, events[j].op) {
        // The release is what the next acquisition waits for.
        (Op::Release(..), Op::Acquire(..)) => true,
        (Op::Acquire(..) | Op::Release(..), _) | (_, Op::Acquire(..) | Op::Release(..)) => false,
        (Op::Arrive(..) | Op::Post(_) | Op::Fork(_), _) | (_, Op::Join(_)) => false,
        _ => true,
    };
    of[i] == of[j]
        && i != j
        && events[i].thread != events[j].thread
        && synchronization_or_access
        && depends(events, i, j)
        && !before[i][j]
}

struct Verdict {
    conflict: Option<usize>,
    cycle: Option<usize>,
}

fn verdict(found: &[(usize, Vec<Finding>)]) -> Verdict {
    let first = |cycle: bool| {
        let is = |f: &Finding| matches!(f.subject, Subject::Region(_)) == cycle;
        found.iter().find(|(_, f)| f.iter().any(is)).map(|(i, _)| *i)
    };
    Verdict { conflict: first(false), cycle: first(true) }
}

/// Every reported conflict is one, and is reported for the regions that both operations belong to.
fn check_conflicts(events: &[Event], found: &[(usize, Vec<Finding>)]) -> Result<(), TestCaseError> {
    let within = regions(events);
    let of: Vec<usize> =
        within.iter().enumerate().map(|(i, w)| w.first().copied().unwrap_or(i)).collect();
    let before = deterministic_order(events);
    for (j, findings) in found {
        let conflicts = findings.iter().filter(|f| !matches!(f.subject, Subject::Region(_)));
        let mut pairs: BTreeSet<usize> = BTreeSet::new();
        for finding in conflicts.clone() {
            let [_, a, b] = &finding.places[..] else { panic!("a conflict has two operations") };
            prop_assert_eq!(b.site.index(), *j);
            pairs.insert(a.site.index());
        }
        for i in pairs {
            // A lock is named by its acquisition, the conflict is with the release.
            let partner = match events[i].op {
                Op::Acquire(lock, mode) => release_of(events, i, lock, mode),
                _ => i,
            };
            prop_assert!(conflict(events, &before, &of, partner, *j), "{i} {j}\n{}", shown(events));
            let expected: BTreeSet<usize> =
                within[i].iter().copied().filter(|r| within[*j].contains(r)).collect();
            let named: BTreeSet<usize> = conflicts
                .clone()
                .filter(|f| f.places[1].site.index() == i)
                .map(|f| f.places[0].site.index())
                .collect();
            prop_assert_eq!(named, expected, "{} {}\n{}", i, j, shown(events));
        }
    }
    Ok(())
}

fn release_of(events: &[Event], i: usize, lock: selvedge_model::LockId, mode: Mode) -> usize {
    let me: ThreadId = events[i].thread;
    let mut depth = 0;
    for (j, e) in events.iter().enumerate().skip(i).filter(|(_, e)| e.thread == me) {
        match e.op {
            Op::Acquire(l, m) if (l, m) == (lock, mode) => depth += 1,
            Op::Release(l, m) if (l, m) == (lock, mode) => {
                depth -= 1;
                if depth == 0 {
                    return j;
                }
            }
            _ => {}
        }
    }
    panic!("only released locks conflict")
}

fn check(events: &[Event]) -> Result<(), TestCaseError> {
    let within = regions(events);
    let of: Vec<usize> =
        within.iter().enumerate().map(|(i, w)| w.first().copied().unwrap_or(i)).collect();
    let before = deterministic_order(events);
    let found = findings_by_event(SingleTrack::new(), events);
    let verdict_found = verdict(&found);
    prop_assert_eq!(verdict_found.cycle, first_violation(events, &of), "{}", shown(events));
    let first_conflict = (0..events.len())
        .find(|&j| (0..j).any(|i| !within[i].is_empty() && conflict(events, &before, &of, i, j)));
    prop_assert_eq!(verdict_found.conflict, first_conflict, "{}", shown(events));
    check_conflicts(events, &found)?;

    let filtered = findings_by_event(Filtered::default(), events);
    check_conflicts(events, &filtered)?;
    let mut races = Findings::default();
    FastTrack::new().on_events(events, &mut races);
    if races.is_empty() {
        let with = verdict(&filtered);
        prop_assert_eq!(with.cycle.is_some(), verdict_found.cycle.is_some(), "{}", shown(events));
        let any = |v: &Verdict| v.cycle.is_some() || v.conflict.is_some();
        prop_assert_eq!(any(&with), any(&verdict_found), "{}", shown(events));
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn verdicts_are_those_of_the_definitions(w in wishes(60)) {
        check(&execution(&w, Mix { kind: KIND, early: 1, everything: false }))?;
    }

    #[test]
    fn verdicts_are_those_of_the_definitions_on_all_operations(w in wishes(60)) {
        check(&execution(&w, Mix { kind: KIND, early: 2, everything: true }))?;
    }

    #[test]
    fn externally_serial_traces_exist_unless_there_is_a_cycle(w in wishes(26)) {
        let events = execution(&w, Mix { kind: KIND, early: 2, everything: true });
        let within = regions(&events);
        let mut of: Vec<usize> =
            within.iter().enumerate().map(|(i, w)| w.first().copied().unwrap_or(i)).collect();
        let mut n = events.len();
        while of[..n].iter().collect::<BTreeSet<_>>().len() > 6 {
            n -= 1;
        }
        of.truncate(n);
        let found = findings_by_event(SingleTrack::new(), &events[..n]);
        prop_assert_eq!(
            verdict(&found).cycle.is_none(),
            serializable_by_permutation(&events[..n], &of)
        );
    }
}

#[test]
fn random_traces() {
    let n: u64 =
        std::env::var("SELVEDGE_RANDOM_TRACES").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let mut random = Random(0xde7_e12);
    let (mut conflicts, mut cycles) = (0u64, 0u64);
    for i in 0..n {
        let mix = Mix { kind: KIND, early: 1 + i as u32 % 3, everything: i % 2 == 1 };
        let events = execution(&random.wishes(90), mix);
        check(&events).unwrap_or_else(|e| panic!("trace {i}: {e}\n{}", shown(&events)));
        let found = verdict(&findings_by_event(SingleTrack::new(), &events));
        conflicts += u64::from(found.conflict.is_some());
        cycles += u64::from(found.cycle.is_some());
    }
    println!("{n} traces, {conflicts} with conflicts, {cycles} with cycles");
    assert!(conflicts > n / 20 && cycles > n / 20, "the traces are too tame");
}

#[test]
fn memory_follows_what_is_open() {
    let mut text = String::from("T0|begin(det:whole)|1\nT0|fork(T1)|1\nT1|fork(T2)|2\n");
    for _ in 0..20_000 {
        text.push_str("T1|begin(det:part)|3\nT1|w(x)|4\nT1|post(s)|5\nT1|end(det:part)|6\n");
        text.push_str("T2|wait(s)|7\nT2|begin(det:other)|8\nT2|r(y)|9\nT2|end(det:other)|10\n");
    }
    let (events, _) = selvedge_model::trace::parse(&text).expect("a valid trace");
    let mut analysis = SingleTrack::new();
    let mut out = Findings::default();
    analysis.on_events(&events, &mut out);
    assert!(out.is_empty());
    let (transactions, regions, pages) = analysis.size();
    assert!(transactions <= 2 && regions <= 2 && pages <= 4, "{transactions} {regions} {pages}");
}
