//! `predictive` against its definition: every sync-preserving reordering of small executions.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;
use selvedge_analyses::predictive::Predictive;
use selvedge_analyses::{Analysis, Witness};
use selvedge_model::wellformed::Checker;
use selvedge_model::{Event, Findings, LockId, Mode, Op, ThreadId};

use crate::program::{Execution, Shape, Sites, executions};

/// The bytes that an event reads and writes.
fn bytes(op: Op) -> (Vec<u64>, Vec<u64>) {
    let (access, reads, writes) = match op {
        Op::Read(a) => (a, true, false),
        Op::Write(a) => (a, false, true),
        Op::Atomic(a, op) => (a, op.reads(), op.writes()),
        _ => return (Vec::new(), Vec::new()),
    };
    let all: Vec<u64> = (access.addr..access.addr + u64::from(access.len)).collect();
    (if reads { all.clone() } else { Vec::new() }, if writes { all } else { Vec::new() })
}

/// An execution that is being reordered. Events are known by their numbers in the execution.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct State {
    done: BTreeSet<usize>,
    /// Who wrote each byte last.
    written: BTreeMap<u64, usize>,
}

struct Definition<'a> {
    events: &'a [Event],
    /// What each read saw, by byte.
    saw: Vec<Vec<(u64, Option<usize>)>>,
}

impl Definition<'_> {
    fn new(events: &[Event]) -> Definition<'_> {
        let mut written: BTreeMap<u64, usize> = BTreeMap::new();
        let mut saw = Vec::new();
        for (number, event) in events.iter().enumerate() {
            let (reads, writes) = bytes(event.op);
            saw.push(reads.into_iter().map(|b| (b, written.get(&b).copied())).collect());
            written.extend(writes.into_iter().map(|b| (b, number)));
        }
        Definition { events, saw }
    }

    /// The next event of each thread.
    fn next(&self, state: &State) -> Vec<usize> {
        let mut seen: HashSet<ThreadId> = HashSet::new();
        let left = (0..self.events.len()).filter(|n| !state.done.contains(n));
        left.filter(|&n| seen.insert(self.events[n].thread)).collect()
    }

    fn holders(&self, state: &State, lock: LockId) -> Vec<(ThreadId, Mode)> {
        let mut holders: Vec<(ThreadId, Mode)> = Vec::new();
        for &n in &state.done {
            let thread = self.events[n].thread;
            match self.events[n].op {
                Op::Acquire(l, mode) if l == lock => holders.push((thread, mode)),
                Op::Release(l, mode) if l == lock => {
                    let at = holders.iter().rposition(|&h| h == (thread, mode)).expect("held");
                    holders.remove(at);
                }
                _ => {}
            }
        }
        holders
    }

    /// Whether an event may come next in a reordering that preserves synchronization.
    fn may(&self, state: &State, number: usize) -> bool {
        let event = &self.events[number];
        let before = |wanted: &dyn Fn(&Event) -> bool| {
            (0..number).filter(|&n| wanted(&self.events[n])).all(|n| state.done.contains(&n))
        };
        let reads = self.saw[number].iter().all(|(b, w)| state.written.get(b) == w.as_ref());
        let orders = match event.op {
            Op::Acquire(lock, mode) => {
                let free = self
                    .holders(state, lock)
                    .iter()
                    .all(|&(thread, held)| thread == event.thread || !held.excludes(mode));
                // The order of acquisitions is preserved.
                let overtaken = state.done.iter().any(|&n| {
                    let later = &self.events[n];
                    n > number
                        && later.thread != event.thread
                        && matches!(later.op, Op::Acquire(l, m) if l == lock && m.excludes(mode))
                });
                free && !overtaken
            }
            Op::Join(child) => before(&|e: &Event| e.thread == child),
            Op::Post(s) | Op::Wait(s) => {
                before(&|e: &Event| matches!(e.op, Op::Post(o) | Op::Wait(o) if o == s))
            }
            Op::Notify(c, _) | Op::Wake(c) => {
                before(&|e: &Event| matches!(e.op, Op::Notify(o, _) | Op::Wake(o) if o == c))
            }
            Op::Leave(b, round) => before(&|e: &Event| e.op == Op::Arrive(b, round)),
            _ => true,
        };
        let started = before(&|e: &Event| e.op == Op::Fork(event.thread));
        reads && orders && started
    }

    fn take(&self, state: &State, number: usize) -> State {
        let mut state = state.clone();
        state.done.insert(number);
        let (_, writes) = bytes(self.events[number].op);
        state.written.extend(writes.into_iter().map(|b| (b, number)));
        state
    }

    /// Whether two events are conflicting plain accesses of two threads.
    fn conflict(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.events[a], &self.events[b]);
        let plain = |e: &Event| matches!(e.op, Op::Read(_) | Op::Write(_));
        let writes = |e: &Event| matches!(e.op, Op::Write(_));
        let touched = |e: &Event| {
            let (reads, writes) = bytes(e.op);
            [reads, writes].concat()
        };
        a.thread != b.thread
            && plain(a)
            && plain(b)
            && (writes(a) || writes(b))
            && touched(a).iter().any(|byte| touched(b).contains(byte))
    }

    /// Visits every state that a reordering comes to, with what may be next there. None if there are too many.
    fn walk(&self, mut visit: impl FnMut(&State, &[usize])) -> Option<()> {
        let mut known: HashSet<State> = HashSet::new();
        let mut open = vec![State::default()];
        while let Some(state) = open.pop() {
            if !known.insert(state.clone()) {
                continue;
            }
            if known.len() > 20_000 {
                return None;
            }
            let next = self.next(&state);
            visit(&state, &next);
            let may = next.iter().filter(|&&n| self.may(&state, n));
            open.extend(may.map(|&n| self.take(&state, n)));
        }
        Some(())
    }

    /// All races, the earlier access first. None if there are too many reorderings.
    fn races(&self) -> Option<BTreeSet<(usize, usize)>> {
        let mut races = BTreeSet::new();
        self.walk(|state, next| {
            for &a in next {
                let started = |n: usize| {
                    let thread = self.events[n].thread;
                    let fork = self.events.iter().position(|e| e.op == Op::Fork(thread));
                    fork.is_none_or(|f| f > n || state.done.contains(&f))
                };
                let pairs = next.iter().filter(|&&b| a < b && self.conflict(a, b));
                races.extend(pairs.filter(|&&b| started(a) && started(b)).map(|&b| (a, b)));
            }
        })?;
        Some(races)
    }
}

fn analysed(events: &[Event]) -> (Vec<(usize, usize)>, Vec<Witness>) {
    let mut analysis = Predictive::default();
    let mut findings = Findings::default();
    events.iter().for_each(|e| analysis.on_event(e, &mut findings));
    // Each event has a site of its own.
    let at = |site| events.iter().position(|e| e.site == site).expect("a site of the execution");
    let pair = |w: &Witness| (at(w.sites[0]), at(w.sites[1]));
    // Deadlocks come at the end.
    let witnesses = analysis.witnesses().to_vec();
    (witnesses.iter().map(pair).collect(), witnesses)
}

fn is_write(event: &Event) -> bool {
    matches!(event.op, Op::Write(_))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, ..ProptestConfig::default() })]

    #[test]
    fn reports_what_the_definition_says_and_every_witness_shows_it(
        Execution(events) in executions(Shape {
            threads: 3,
            steps: 5,
            locks: 2,
            memory: true,
            signals: true,
            forks: 2,
            sites: Sites::Own,
        })
    ) {
        // Memory that is allocated or freed has no past; the definition knows nothing of that.
        let events: Vec<Event> = events
            .into_iter()
            .filter(|e| !matches!(e.op, Op::Alloc(_) | Op::Free(_)))
            .collect();
        let definition = Definition::new(&events);
        let Some(races) = definition.races() else { return Ok(()) };
        let (reported, witnesses) = analysed(&events);
        for pair in &reported {
            prop_assert!(races.contains(pair), "{pair:?} is no race");
        }
        // Of each later access, and each thread and kind of earlier ones: is there a race?
        let classes = |pairs: &mut dyn Iterator<Item = (usize, usize)>| {
            let class = |(a, b): (usize, usize)| (b, events[a].thread, is_write(&events[a]));
            pairs.map(class).collect::<BTreeSet<_>>()
        };
        prop_assert_eq!(
            classes(&mut reported.iter().copied()),
            classes(&mut races.iter().copied())
        );
        for (witness, &(first, second)) in witnesses.iter().zip(&reported) {
            let (order, next) = witness.order(&events);
            prop_assert_eq!(next, vec![first, second]);
            let (mut state, mut checker) = (State::default(), Checker::default());
            for number in order {
                prop_assert!(definition.may(&state, number), "event {number} of a witness");
                prop_assert_eq!(checker.check(&events[number]), Ok(()), "event {} of a witness", number);
                state = definition.take(&state, number);
            }
            let after = definition.next(&state);
            prop_assert!(after.contains(&first) && after.contains(&second));
            for side in [first, second] {
                prop_assert_eq!(checker.check(&events[side]), Ok(()), "a side of the race");
            }
        }
    }
}

impl Definition<'_> {
    /// All circles of acquisitions that a reordering makes next, each by its events. None if there are too many
    /// reorderings.
    fn deadlocks(&self) -> Option<BTreeSet<BTreeSet<usize>>> {
        let mut deadlocks = BTreeSet::new();
        self.walk(|state, next| {
            // Who waits for whom, of those that cannot go on.
            let waits = |a: usize, b: usize| match self.events[a].op {
                Op::Acquire(lock, mode) => {
                    let holders = self.holders(state, lock);
                    let mine = holders.iter().any(|&(t, _)| t == self.events[a].thread);
                    let its =
                        |&(t, m): &(ThreadId, Mode)| t == self.events[b].thread && m.excludes(mode);
                    !mine && a != b && holders.iter().any(its)
                }
                _ => false,
            };
            let locks: Vec<usize> = next
                .iter()
                .copied()
                .filter(|&n| matches!(self.events[n].op, Op::Acquire(..)))
                .collect();
            let mut circles: Vec<BTreeSet<usize>> = Vec::new();
            for bits in 0u32..1 << locks.len() {
                let some: Vec<usize> =
                    (0..locks.len()).filter(|i| bits & (1 << i) != 0).map(|i| locks[i]).collect();
                // In the least set in which everyone waits for another one, all wait in a circle.
                let closed = some.iter().all(|&a| some.iter().any(|&b| waits(a, b)));
                if closed && !some.is_empty() {
                    circles.push(some.into_iter().collect());
                }
            }
            let least = circles
                .iter()
                .filter(|c| circles.iter().all(|other| other == *c || !other.is_subset(c)));
            deadlocks.extend(least.cloned());
        })?;
        Some(deadlocks)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, ..ProptestConfig::default() })]

    #[test]
    fn deadlocks_are_those_of_the_definition_and_every_witness_shows_one(
        Execution(events) in executions(Shape {
            threads: 3,
            steps: 6,
            locks: 3,
            memory: true,
            signals: false,
            forks: 2,
            sites: Sites::Own,
        })
    ) {
        let events: Vec<Event> = events
            .into_iter()
            .filter(|e| !matches!(e.op, Op::Alloc(_) | Op::Free(_)))
            .collect();
        let definition = Definition::new(&events);
        let Some(deadlocks) = definition.deadlocks() else { return Ok(()) };
        let mut analysis = Predictive::default();
        let mut findings = Findings::default();
        events.iter().for_each(|e| analysis.on_event(e, &mut findings));
        let races = analysis.witnesses().len();
        analysis.finish(&mut findings);
        let mut reported = BTreeSet::new();
        for witness in &analysis.witnesses()[races..] {
            let (order, next) = witness.order(&events);
            let (mut state, mut checker) = (State::default(), Checker::default());
            for number in order {
                prop_assert!(definition.may(&state, number), "event {number} of a witness");
                prop_assert_eq!(checker.check(&events[number]), Ok(()), "event {} of a witness", number);
                state = definition.take(&state, number);
            }
            let after = definition.next(&state);
            prop_assert!(next.iter().all(|&n| checker.check(&events[n]).is_err()));
            prop_assert!(next.iter().all(|n| after.contains(n) && !definition.may(&state, *n)));
            reported.insert(next.into_iter().collect::<BTreeSet<usize>>());
        }
        prop_assert_eq!(reported, deadlocks);
    }
}
