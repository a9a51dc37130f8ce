//! `deadlocks` against its definition and against the truth.
//!
//! The definition: all sets of acquisitions, order as reachability. The truth: all interleavings of
//! what the threads did, as far as locks, forks and joins permit, and the states among them in which
//! threads wait for each other in a circle.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;
use selvedge_analyses::Analysis;
use selvedge_analyses::goodlock::Goodlock;
use selvedge_model::{Event, Findings, LockId, Mode, Op, SiteId, Target, ThreadId, Waiter};

use crate::program::{Execution, Shape, Sites, executions};
use crate::{cases, findings, sites};

/// Acquisitions, by their place in the execution.
type Cycle = BTreeSet<usize>;

fn excludes(a: Mode, b: Mode) -> bool {
    !(a == Mode::Shared && b == Mode::Shared)
}

/// `before[j]` are the events that the threads' own order, fork and join put before event `j`.
fn lifetime_order(events: &[Event]) -> Vec<BTreeSet<usize>> {
    let mut before: Vec<BTreeSet<usize>> = Vec::new();
    for (j, late) in events.iter().enumerate() {
        let mut past = BTreeSet::new();
        for (i, early) in events[..j].iter().enumerate() {
            if early.thread == late.thread
                || early.op == Op::Fork(late.thread)
                || late.op == Op::Join(early.thread)
            {
                past.insert(i);
                past.extend(&before[i]);
            }
        }
        before.push(past);
    }
    before
}

/// A thread about to acquire a lock that it does not hold yet.
#[derive(Clone, Debug)]
struct Wait {
    event: usize,
    thread: ThreadId,
    wants: (LockId, Mode),
    holds: Vec<(LockId, Mode)>,
}

impl Wait {
    fn waits_for(&self, other: &Wait) -> bool {
        let (lock, mode) = self.wants;
        other.holds.iter().any(|&(l, m)| l == lock && excludes(m, mode))
    }

    /// Whether both can hold what they hold at the same time.
    fn compatible(&self, other: &Wait) -> bool {
        !self.holds.iter().any(|a| other.holds.iter().any(|b| a.0 == b.0 && excludes(a.1, b.1)))
    }
}

/// All acquisitions of the execution that are not re-acquisitions.
fn acquisitions(events: &[Event]) -> Vec<Wait> {
    let mut held: BTreeMap<ThreadId, Vec<(LockId, Mode)>> = BTreeMap::new();
    let mut waits = Vec::new();
    for (event, e) in events.iter().enumerate() {
        let mine = held.entry(e.thread).or_default();
        match e.op {
            Op::Acquire(l, m) => {
                if !mine.iter().any(|h| h.0 == l) {
                    let holds = mine.clone();
                    waits.push(Wait { event, thread: e.thread, wants: (l, m), holds });
                }
                mine.push((l, m));
            }
            Op::Release(l, m) => {
                let i = mine.iter().position(|&h| h == (l, m)).expect("held");
                mine.remove(i);
            }
            _ => {}
        }
    }
    waits
}

/// Whether the waits are one circle of which no part is a circle: each waits for exactly one other,
/// and going from one to the next meets them all.
fn is_circle(waits: &[&Wait]) -> bool {
    let next: Vec<usize> = waits
        .iter()
        .filter_map(|w| {
            let mut targets = (0..waits.len()).filter(|&i| w.waits_for(waits[i]));
            targets.next().filter(|_| targets.next().is_none())
        })
        .collect();
    if waits.len() < 2 || next.len() < waits.len() {
        return false;
    }
    // The walk that comes back to where it began only after all of them.
    let walk: Vec<usize> =
        std::iter::successors(Some(next[0]), |&at| Some(next[at])).take(waits.len()).collect();
    walk.iter().position(|&at| at == 0) == Some(waits.len() - 1)
}

/// Calls `visit` with every set that has at most one of the waits of each thread.
fn choices<'a>(
    of_threads: &[Vec<&'a Wait>],
    chosen: &mut Vec<&'a Wait>,
    visit: &mut impl FnMut(&[&'a Wait]),
) {
    let Some((first, rest)) = of_threads.split_first() else { return visit(chosen) };
    choices(rest, chosen, visit);
    for wait in first {
        chosen.push(wait);
        choices(rest, chosen, visit);
        chosen.pop();
    }
}

/// Definitions 4.4 and 4.5, with modes and lifetimes.
fn defined(events: &[Event]) -> BTreeSet<Cycle> {
    let before = lifetime_order(events);
    let waits = acquisitions(events);
    let mut of_threads: BTreeMap<ThreadId, Vec<&Wait>> = BTreeMap::new();
    for w in &waits {
        of_threads.entry(w.thread).or_default().push(w);
    }
    let of_threads: Vec<_> = of_threads.into_values().collect();
    let mut cycles = BTreeSet::new();
    choices(&of_threads, &mut Vec::new(), &mut |set| {
        let together = set.iter().all(|a| {
            set.iter().all(|b| {
                a.event == b.event || a.compatible(b) && !before[a.event].contains(&b.event)
            })
        });
        if together && is_circle(set) {
            cycles.insert(set.iter().map(|w| w.event).collect());
        }
    });
    cycles
}

/// The circles that interleavings of the same threads reach.
fn real(events: &[Event]) -> BTreeSet<Cycle> {
    let threads: Vec<ThreadId> =
        events.iter().map(|e| e.thread).collect::<BTreeSet<_>>().into_iter().collect();
    let scripts: Vec<Vec<usize>> = threads
        .iter()
        .map(|&t| (0..events.len()).filter(|&i| events[i].thread == t).collect())
        .collect();
    let forked: BTreeMap<ThreadId, usize> = events
        .iter()
        .enumerate()
        .filter_map(|(i, e)| if let Op::Fork(child) = e.op { Some((child, i)) } else { None })
        .collect();
    let index = |t: ThreadId| threads.iter().position(|&u| u == t);
    let mut circles = BTreeSet::new();
    let mut seen = HashSet::from([vec![0u8; threads.len()]]);
    let mut todo: Vec<Vec<u8>> = seen.iter().cloned().collect();
    while let Some(state) = todo.pop() {
        let done = |i: usize| {
            let t = index(events[i].thread).expect("a thread of the execution");
            scripts[t].iter().position(|&e| e == i).expect("its event") < usize::from(state[t])
        };
        let waits: Vec<Option<Wait>> =
            (0..threads.len()).map(|t| next_wait(events, &scripts[t], state[t])).collect();
        let holds = |t: usize| held_after(events, &scripts[t][..usize::from(state[t])]);
        let blocked = |t: usize, lock: LockId, mode: Mode| {
            (0..threads.len())
                .filter(|&u| u != t)
                .any(|u| holds(u).iter().any(|&(l, m)| l == lock && excludes(m, mode)))
        };
        let stuck: Vec<&Wait> = waits
            .iter()
            .enumerate()
            .filter_map(|(t, w)| w.as_ref().filter(|w| blocked(t, w.wants.0, w.wants.1)))
            .collect();
        let singles: Vec<Vec<&Wait>> = stuck.iter().map(|w| vec![*w]).collect();
        choices(&singles, &mut Vec::new(), &mut |set| {
            if is_circle(set) {
                circles.insert(set.iter().map(|w| w.event).collect());
            }
        });
        for t in 0..threads.len() {
            let Some(&event) = scripts[t].get(usize::from(state[t])) else { continue };
            let able = forked.get(&threads[t]).is_none_or(|&f| done(f))
                && match events[event].op {
                    Op::Acquire(lock, mode) => !blocked(t, lock, mode),
                    Op::Join(child) => {
                        index(child).is_none_or(|c| usize::from(state[c]) == scripts[c].len())
                    }
                    _ => true,
                };
            let mut after = state.clone();
            after[t] += 1;
            if able && seen.insert(after.clone()) {
                todo.push(after);
            }
        }
    }
    circles
}

fn held_after(events: &[Event], script: &[usize]) -> Vec<(LockId, Mode)> {
    let mut held = Vec::new();
    for &i in script {
        match events[i].op {
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

fn next_wait(events: &[Event], script: &[usize], at: u8) -> Option<Wait> {
    let &event = script.get(usize::from(at))?;
    let Op::Acquire(lock, mode) = events[event].op else { return None };
    let holds = held_after(events, &script[..usize::from(at)]);
    let again = holds.iter().any(|h| h.0 == lock);
    (!again).then(|| Wait { event, thread: events[event].thread, wants: (lock, mode), holds })
}

/// Whether the threads cannot come to where the cycle has them wait with their critical sections in
/// the order of the execution: the way there would go in a circle, or a thread that must be on its way
/// holds what another needs.
fn obstructed(events: &[Event], cycle: &Cycle) -> bool {
    let before = lifetime_order(events);
    let way: BTreeSet<usize> = cycle.iter().flat_map(|&w| before[w].iter().copied()).collect();
    // Critical sections on the way, each with its end if that is on the way too.
    let waits = acquisitions(events);
    let sections: Vec<(&Wait, Option<usize>)> = waits
        .iter()
        .filter(|w| way.contains(&w.event))
        .map(|w| {
            let holds_after = |i: usize| {
                let script: Vec<usize> =
                    (0..=i).filter(|&k| events[k].thread == w.thread).collect();
                held_after(events, &script).iter().any(|h| h.0 == w.wants.0)
            };
            let end = way
                .iter()
                .copied()
                .find(|&i| i > w.event && events[i].thread == w.thread && !holds_after(i));
            (w, end)
        })
        .collect();
    let mut arcs: Vec<(usize, usize)> = Vec::new();
    for &j in &way {
        arcs.extend(before[j].iter().map(|&i| (i, j)));
    }
    for (a, a_end) in &sections {
        for (b, b_end) in &sections {
            let conflict =
                a.thread != b.thread && a.wants.0 == b.wants.0 && excludes(a.wants.1, b.wants.1);
            match (a_end, b_end) {
                _ if !conflict => {}
                (None, None) => return true,
                (Some(end), None) => arcs.push((*end, b.event)),
                (Some(end), Some(_)) if a.event < b.event => arcs.push((*end, b.event)),
                _ => {}
            }
        }
    }
    // Take away what nothing left comes before, until nothing is left or nothing can be taken.
    let mut left = way;
    loop {
        let free: Vec<usize> = left
            .iter()
            .copied()
            .filter(|&j| !arcs.iter().any(|&(i, k)| k == j && left.contains(&i)))
            .collect();
        if free.is_empty() {
            return !left.is_empty();
        }
        free.iter().for_each(|j| {
            left.remove(j);
        });
    }
}

fn as_sites(events: &[Event], cycles: &BTreeSet<Cycle>) -> BTreeSet<Vec<SiteId>> {
    cycles
        .iter()
        .map(|c| {
            let mut sites: Vec<SiteId> = c.iter().map(|&i| events[i].site).collect();
            sites.sort_unstable();
            sites
        })
        .collect()
}

/// Whether the wait is what a finding says of one of its threads.
fn is_wait(wait: &Wait, waiter: &Waiter, events: &[Event]) -> bool {
    let holds: BTreeSet<_> = waiter.holds.iter().map(|h| (h.lock, h.mode)).collect();
    wait.thread == waiter.thread
        && wait.wants == (waiter.wants.lock, waiter.wants.mode)
        && events[wait.event].site == waiter.wants.site
        && holds == wait.holds.iter().copied().collect()
}

proptest! {
    #![proptest_config(cases(5000))]

    #[test]
    fn reports_exactly_the_cycles_of_the_definition(
        Execution(events) in executions(Shape {
            threads: 4, steps: 14, locks: 4, memory: false, signals: false, forks: 2, sites: Sites::Own,
        })
    ) {
        let found = findings(Goodlock::default(), &events);
        prop_assert!(found.iter().all(|f| f.occurrences == 1), "one rotation, once");
        prop_assert_eq!(sites(&found), as_sites(&events, &defined(&events)));
    }

    /// Threads that come and go, and do the same again and again.
    #[test]
    fn forgets_no_moment_that_matters(
        Execution(events) in executions(Shape {
            threads: 5, steps: 24, locks: 2, memory: false, signals: false, forks: 8,
            sites: Sites::Same,
        })
    ) {
        let found = findings(Goodlock::default(), &events);
        prop_assert_eq!(sites(&found), as_sites(&events, &defined(&events)));
    }

    /// With few sites, so that occurrences of a dependency fall together; and what is reported has
    /// happened in just this context.
    #[test]
    fn forgets_no_cycle_where_sites_recur(
        Execution(events) in executions(Shape {
            threads: 4, steps: 16, locks: 3, memory: false, signals: true, forks: 2, sites: Sites::Few(3),
        })
    ) {
        let found = findings(Goodlock::default(), &events);
        let defined = defined(&events);
        prop_assert_eq!(sites(&found), as_sites(&events, &defined));
        let waits = acquisitions(&events);
        for finding in &found {
            let Some(Target::Deadlock(waiters)) = &finding.target else {
                panic!("a deadlock has a target");
            };
            let happened = defined.iter().any(|cycle| {
                waiters.iter().all(|waiter| {
                    waits
                        .iter()
                        .filter(|w| cycle.contains(&w.event))
                        .any(|w| is_wait(w, waiter, &events))
                })
            });
            prop_assert!(happened);
        }
    }

    /// No deadlock that other interleavings reach is missed, and what none reaches has a reason.
    #[test]
    fn predicts_every_deadlock_that_can_be_reached(
        Execution(events) in executions(Shape {
            threads: 4, steps: 11, locks: 3, memory: false, signals: false, forks: 2, sites: Sites::Own,
        })
    ) {
        let found = sites(&findings(Goodlock::default(), &events));
        let real = real(&events);
        for cycle in &real {
            let sites: Vec<SiteId> = cycle.iter().map(|&i| events[i].site).collect();
            prop_assert!(found.contains(&sites), "missed {:?}", cycle);
        }
        for sites in &found {
            let cycle: Cycle = sites.iter().map(|s| s.index()).collect();
            prop_assert!(
                real.contains(&cycle) || obstructed(&events, &cycle),
                "nothing keeps {:?} from happening, but it does not", cycle
            );
        }
    }
}

/// One thread takes the locks, outermost first, and releases them. The site of each acquisition is
/// `site` and what follows it.
fn nest(thread: u32, locks: &[u32], site: u32) -> Vec<Event> {
    let acquire = |(i, &l): (usize, &u32)| Event {
        thread: ThreadId(thread),
        site: SiteId(site + i as u32),
        op: Op::Acquire(LockId(l), Mode::Exclusive),
    };
    let release = |&l: &u32| Event {
        thread: ThreadId(thread),
        site: SiteId(site),
        op: Op::Release(LockId(l), Mode::Exclusive),
    };
    locks.iter().enumerate().map(acquire).chain(locks.iter().rev().map(release)).collect()
}

#[test]
fn one_inversion_among_forty_thousand_ordered_dependencies() {
    let mut events = Vec::new();
    for thread in 0..8 {
        for lock in 0..5000 {
            events.extend(nest(thread, &[lock, lock + 1], (thread * 5000 + lock) * 2));
        }
    }
    events.extend(nest(0, &[1, 0], 100_000));
    let found = findings(Goodlock::default(), &events);
    assert_eq!(found.len(), 7, "the inversion with each of the other threads");
    assert!(found.iter().all(|f| f.places.len() == 2 && f.places[0].site == SiteId(100_001)));
}

#[test]
fn two_thousand_philosophers() {
    let events: Vec<Event> = (0..2000).flat_map(|p| nest(p, &[p, (p + 1) % 2000], 2 * p)).collect();
    let found = findings(Goodlock::default(), &events);
    assert_eq!(found.iter().map(|f| f.places.len()).collect::<Vec<_>>(), [2000]);
}

#[test]
fn more_cycles_than_can_be_looked_at_are_told_and_the_short_ones_come_first() {
    let mut goodlock = Goodlock::with_max_steps(500_000);
    let mut out = Findings::default();
    let mut site = 0;
    for thread in 0..6 {
        for (outer, inner) in (0..12).flat_map(|a| (0..12).map(move |b| (a, b))) {
            if outer != inner {
                for event in nest(thread, &[outer, inner], site) {
                    goodlock.on_event(&event, &mut out);
                }
                site += 2;
            }
        }
    }
    assert_eq!(goodlock.bound(), None);
    goodlock.finish(&mut out);
    assert_eq!(goodlock.bound().map(|b| (b.limit, b.exceeded)), Some((500_000, 1)));
    let pairs = out.iter().filter(|f| f.places.len() == 2).count();
    assert_eq!(pairs, 15 * 132, "every two threads on every two locks, in both orders");
    assert!(out.len() > pairs);
}
