//! Atomizer against all interleavings of small programs: what it does not object to is atomic in each.

use proptest::prelude::*;
use selvedge_analyses::Analysis;
use selvedge_analyses::atomizer::Atomizer;
use selvedge_model::{
    Access, Event, Findings, LockId, Mode, Object, Op, RegionId, RegionKind, SiteId, Status,
    Target, ThreadId,
};

use crate::oracle::{first_violation, transactions};
use crate::{cases, shown};

/// Two threads; a variable is only accessed under its lock.
fn programs() -> impl Strategy<Value = [Vec<Op>; 2]> {
    let thread = proptest::collection::vec(any::<(u8, u8)>(), 1..9).prop_map(|wishes| {
        let mut held: Vec<LockId> = Vec::new();
        let mut inside = false;
        let mut ops = Vec::new();
        for (what, which) in wishes {
            let lock = LockId(u32::from(which) % 2);
            let access = Access { addr: 8 + 8 * u64::from(lock.0), len: 8 };
            let op = match what % 6 {
                0 | 1 if !held.contains(&lock) && held.is_empty() => {
                    held.push(lock);
                    Op::Acquire(lock, Mode::Exclusive)
                }
                // Locks are nested in one order only, so that all interleavings end.
                0 if held == [LockId(0)] => {
                    held.push(LockId(1));
                    Op::Acquire(LockId(1), Mode::Exclusive)
                }
                2 if !held.is_empty() => {
                    Op::Release(held.pop().expect("not empty"), Mode::Exclusive)
                }
                3 if held.contains(&lock) => Op::Read(access),
                4 if held.contains(&lock) => Op::Write(access),
                5 if !inside => {
                    inside = true;
                    Op::RegionEnter(RegionId(0), RegionKind::Atomic)
                }
                5 if held.is_empty() => {
                    inside = false;
                    Op::RegionExit(RegionId(0))
                }
                _ => continue,
            };
            ops.push(op);
        }
        ops.extend(held.into_iter().rev().map(|l| Op::Release(l, Mode::Exclusive)));
        if inside {
            ops.push(Op::RegionExit(RegionId(0)));
        }
        ops
    });
    [thread.clone(), thread]
}

/// Calls `each` with every interleaving that the locks allow.
fn interleavings(programs: &[Vec<Op>; 2], each: &mut impl FnMut(&[Event])) {
    fn go(
        programs: &[Vec<Op>; 2],
        at: [usize; 2],
        so_far: &mut Vec<Event>,
        each: &mut impl FnMut(&[Event]),
    ) {
        if at[0] == programs[0].len() && at[1] == programs[1].len() {
            each(so_far);
            return;
        }
        for me in 0..2 {
            let Some(&op) = programs[me].get(at[me]) else { continue };
            let held_by_other = |lock: LockId| {
                let other = programs[1 - me][..at[1 - me]].iter();
                other.fold(false, |held, op| match *op {
                    Op::Acquire(l, _) if l == lock => true,
                    Op::Release(l, _) if l == lock => false,
                    _ => held,
                })
            };
            if matches!(op, Op::Acquire(l, _) if held_by_other(l)) {
                continue;
            }
            let mut next = at;
            next[me] += 1;
            let site = SiteId((me * 100 + at[me]) as u32);
            so_far.push(Event { thread: ThreadId(me as u32), site, op });
            go(programs, next, so_far, each);
            so_far.pop();
        }
    }
    go(programs, [0, 0], &mut Vec::new(), each);
}

fn predicted(events: &[Event]) -> Findings {
    let mut out = Findings::default();
    let mut analysis = Atomizer::new();
    analysis.on_events(events, &mut out);
    analysis.finish(&mut out);
    assert_eq!(analysis.bound(), None);
    out
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn what_is_not_objected_to_is_atomic_in_every_schedule(programs in programs()) {
        let mut observed: Option<Vec<Event>> = None;
        let mut objected = false;
        let mut broken: Option<Vec<Event>> = None;
        interleavings(&programs, &mut |events| {
            if observed.is_none() {
                objected = !predicted(events).is_empty();
                observed = Some(events.to_vec());
            }
            let of = transactions(events, RegionKind::Atomic);
            if broken.is_none() && !objected && first_violation(events, &of).is_some() {
                broken = Some(events.to_vec());
            }
        });
        let observed = observed.expect("nested in one order, locks do not deadlock");
        if let Some(broken) = broken {
            prop_assert!(false, "observed\n{}\nbroken\n{}", shown(&observed), shown(&broken));
        }
    }

    #[test]
    fn the_prediction_does_not_depend_on_the_schedule(programs in programs()) {
        let mut first: Option<std::collections::BTreeSet<Vec<u32>>> = None;
        let mut differing = None;
        interleavings(&programs, &mut |events| {
            let sites = predicted(events)
                .iter()
                .map(|f| vec![f.places[0].site.0, f.places[2].site.0])
                .collect();
            match &first {
                None => first = Some(sites),
                Some(known) if *known != sites => differing = Some(shown(events)),
                Some(_) => {}
            }
        });
        prop_assert_eq!(differing, None);
    }
}

#[test]
fn the_target_is_the_pair_of_acquisitions() {
    let text = include_str!("../traces/noninterference/account_lucky.std");
    let (events, symbols) = selvedge_model::trace::parse(text).expect("a valid trace");
    let found: Vec<_> = predicted(&events).into_iter().collect();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].status, Status::Predicted);
    let Some(Target::Split { region: Some(region), first, second, between: None, object }) =
        found[0].target
    else {
        panic!("{:?}", found[0].target)
    };
    assert_eq!(&*symbols.region(region).unwrap().name, "withdraw");
    assert_eq!(symbols.site(first).to_string(), "11");
    assert_eq!(symbols.site(second).to_string(), "14");
    assert_eq!(object, Object::Lock(LockId(0)));
}

fn objects_to(text: &str) -> bool {
    !predicted(&selvedge_model::trace::parse(text).expect("a valid trace").0).is_empty()
}

#[test]
fn a_lock_of_one_thread_is_nobodys_business() {
    let alone = "A|begin(r)|1\nA|acq(l)|2\nA|rel(l)|3\nA|acq(l)|4\nA|rel(l)|5\nA|end(r)|6\n";
    assert!(!objects_to(alone));
    assert!(objects_to(&format!("{alone}B|acq(l)|7\nB|rel(l)|8\n")));
    assert!(objects_to(&format!("B|acq(l)|7\nB|rel(l)|8\n{alone}")));
}

#[test]
fn a_recursive_acquisition_is_none() {
    let recursive = "B|acq(l)|0\nB|rel(l)|0\nA|begin(r)|1\nA|acq(l)|2\nA|acq(l)|3\nA|rel(l)|4\nA|acq(l)|5\nA|rel(l)|6\nA|rel(l)|7\nA|end(r)|8\n";
    assert!(!objects_to(recursive));
}

#[test]
fn unprotected_memory_cannot_be_moved() {
    let racy = "A|w(x)|1\nB|w(x)|2\nA|begin(r)|3\nA|r(x)|4\nA|w(x)|5\nA|end(r)|6\n";
    assert!(objects_to(racy));
    let handed_over = "A|w(x)|1\nA|fork(B)|2\nB|begin(r)|3\nB|r(x)|4\nB|w(x)|5\nB|end(r)|6\n";
    assert!(!objects_to(handed_over));
    let read_only =
        "A|w(x)|1\nA|fork(B)|2\nA|r(x)|3\nB|begin(r)|4\nB|r(x)|5\nB|r(x)|6\nB|end(r)|7\n";
    assert!(!objects_to(read_only));
}

#[test]
fn waiting_in_the_middle_is_not_atomic() {
    let waits = "A|begin(r)|1\nA|fork(B)|2\nB|w(x)|3\nA|join(B)|4\nA|end(r)|5\n";
    assert!(objects_to(waits));
    let barrier = "A|begin(r)|1\nA|arrive(b,0)|2\nB|arrive(b,0)|2\nA|leave(b,0)|3\nA|end(r)|5\n";
    assert!(objects_to(barrier));
}
