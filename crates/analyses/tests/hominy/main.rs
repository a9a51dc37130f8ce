//! Inference of disciplines: the examples of the thesis, and random executions against brute force.

#[path = "../common/mod.rs"]
mod common;
mod follow;
mod golden;
mod held_back;
mod oracle;

use common::{Shape, executions};
use oracle::{Graph, Label};
use proptest::prelude::*;
use selvedge_analyses::Analysis;
use selvedge_analyses::devices::Device;
use selvedge_analyses::hominy::{Hominy, Instance};
use selvedge_model::{Event, Findings, Op};
use selvedge_specs::discipline::canon::close;
use selvedge_specs::discipline::satisfy::{Automaton, Observed, Progress};
use selvedge_specs::discipline::{DeviceKind, Discipline, Step};

/// All instances of an execution, and the races that were reported.
pub(crate) fn infer(events: &[Event]) -> (Vec<Instance>, Findings) {
    let mut findings = Findings::default();
    let mut hominy = Hominy::default();
    hominy.on_events(events, &mut findings);
    hominy.finish(&mut findings);
    (hominy.take_instances(), findings)
}

fn number(device: Device) -> u64 {
    match device {
        Device::Lock(id) => u64::from(id.0),
        Device::Atomic(addr) => addr,
        Device::Barrier(id) => u64::from(id.0),
        Device::Semaphore(id) => u64::from(id.0),
    }
}

/// The discipline of an instance, with numbers for names; of several locks the first.
fn discipline(instance: &Instance) -> Discipline {
    let closed = close(&instance.steps, |devices| devices[0]);
    let steps: Vec<Step> =
        closed.iter().map(|s| s.map(&mut |&d: &Device| number(d).to_string())).collect();
    Discipline::from(steps)
}

const SHAPE: Shape = Shape {
    steps: 400,
    threads: 4,
    locks: 3,
    rwlocks: true,
    variables: 2,
    mixed_sizes: false,
    atomics: true,
    rendezvous: true,
    conditions: false,
    allocation: false,
};

/// The execution with atomic variables of their own, and without the accesses that race with an earlier one.
fn without_races(events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    for event in &mut events {
        if let Op::Atomic(access, _) = &mut event.op {
            access.addr += 0x1000;
        }
    }
    let graph = Graph::new(&events);
    let mut kept: Vec<usize> = Vec::new();
    for j in 0..events.len() {
        let racy = kept.iter().any(|&i| graph.conflict(i, j) && !graph.ordered(i, j));
        if !racy {
            kept.push(j);
        }
    }
    kept.into_iter().map(|i| events[i]).collect()
}

/// An access to a word, as brute force sees it.
struct Accessed<'a> {
    graph: &'a Graph<'a>,
    events: &'a [Event],
    accesses: &'a [(usize, bool)],
    k: usize,
}

impl Observed<String> for Accessed<'_> {
    fn thread(&self) -> u32 {
        self.events[self.accesses[self.k].0].thread.0
    }

    fn writes(&self) -> bool {
        self.accesses[self.k].1
    }

    fn holds(&mut self, lock: &String) -> bool {
        let (j, write) = self.accesses[self.k];
        self.graph.guards(j, write).iter().any(|l| l.to_string() == *lock)
    }

    fn ordered_by(&mut self, transitions: &[&Step]) -> bool {
        let labels: Vec<Label> = transitions
            .iter()
            .map(|step| match step {
                Step::Fork => Label::Fork,
                Step::Join => Label::Join,
                Step::Via(DeviceKind::Lock, n) => Label::Lock(n.parse().unwrap()),
                Step::Via(DeviceKind::Atomic, n) => Label::Atomic(n.parse().unwrap()),
                Step::Via(DeviceKind::Barrier, n) => Label::Barrier(n.parse().unwrap()),
                Step::Via(DeviceKind::Semaphore, n) => Label::Semaphore(n.parse().unwrap()),
                other => panic!("{other} is no transition"),
            })
            .collect();
        let from = self.graph.must_follow(self.accesses, self.k);
        let to = self.accesses[self.k].0;
        from.iter().all(|&i| self.graph.way(i, to, |l| labels.contains(&l)).is_some())
    }
}

/// The first access to a word that does not follow a discipline.
pub(crate) fn first_breach(events: &[Event], addr: u64, discipline: &Discipline) -> Option<usize> {
    let graph = Graph::new(events);
    let accesses = graph.accesses(addr);
    let automaton = Automaton::new(discipline);
    let mut progress = Progress::default();
    (0..accesses.len()).find(|&k| {
        let mut access = Accessed { graph: &graph, events, accesses: &accesses, k };
        automaton.follow(&mut progress, &mut access).is_err()
    })
}

fn agree(events: &[Event]) -> Result<(), TestCaseError> {
    let graph = Graph::new(events);
    let racy = |addr: u64| {
        let on = |k: usize| match events[k].op {
            Op::Read(a) | Op::Write(a) | Op::Atomic(a, _) => a.addr == addr,
            _ => false,
        };
        let n = events.len();
        (0..n)
            .any(|j| on(j) && (0..j).any(|i| on(i) && graph.conflict(i, j) && !graph.ordered(i, j)))
    };
    let (instances, _) = infer(events);
    let mut seen = Vec::new();
    for instance in &instances {
        let addr = instance.bytes.start;
        seen.push(addr);
        prop_assert_eq!(instance.race.is_some(), racy(addr), "race on {}", addr);
        if instance.race.is_none() {
            let inferred = discipline(instance);
            let expected = graph.discipline(addr);
            prop_assert_eq!(Some(inferred.to_string()), expected, "at {}", addr);
            prop_assert_eq!(first_breach(events, addr, &inferred), None, "{}", inferred);
        }
    }
    for addr in (0..SHAPE.variables).map(common::address) {
        prop_assert_eq!(seen.contains(&addr), !graph.accesses(addr).is_empty());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Brute force says the same, and the execution satisfies what was inferred from it.
    #[test]
    fn inference_agrees_with_brute_force(events in executions(SHAPE), racy in 0..8) {
        agree(&if racy == 0 { events } else { without_races(&events) })?;
    }
}
