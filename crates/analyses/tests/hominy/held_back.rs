//! What a front end may hold back changes nothing: the same disciplines, and races on the same memory.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use selvedge_analyses::Analysis;
use selvedge_analyses::devices::Device;
use selvedge_analyses::discipline::{Checker, Naming};
use selvedge_analyses::hominy::{Hominy, Instance};
use selvedge_model::{
    Access, Event, Findings, HeldBack, LockId, Mode, Op, Range, SiteId, Subject, ThreadId,
};
use selvedge_specs::discipline::{Discipline, Rule, Specification, Step};

use crate::common::{Shape, address, executions};
use crate::{SHAPE, discipline, first_breach, infer, number, without_races};

/// Who had access last, as a front end remembers it.
#[derive(Clone)]
struct Owner {
    thread: ThreadId,
    locks: Vec<(LockId, Mode)>,
    wrote: bool,
    /// When the last write and the last read that were held back were made.
    held_back: [Option<u64>; 2],
}

/// What is shown events.
trait Shown {
    fn event(&mut self, event: &Event);
    fn reached(&mut self, thread: ThreadId, moment: u64);
    fn held_back(&mut self, last: &HeldBack);
}

#[derive(Default)]
struct Inferring {
    hominy: Hominy,
    findings: Findings,
}

impl Shown for Inferring {
    fn event(&mut self, event: &Event) {
        self.hominy.on_event(event, &mut self.findings);
    }

    fn reached(&mut self, thread: ThreadId, moment: u64) {
        self.hominy.reached(thread, moment);
    }

    fn held_back(&mut self, last: &HeldBack) {
        self.hominy.held_back(last);
    }
}

/// Names are numbers, and each word of memory has a rule.
struct Numbered;

impl Naming for Numbered {
    fn rule(&mut self, bytes: Range, _: SiteId) -> Option<usize> {
        let rule = (0..SHAPE.variables).find(|&variable| address(variable) == bytes.start)?;
        Some(rule as usize)
    }

    fn is(&mut self, device: Device, name: &str, _: Range) -> bool {
        number(device).to_string() == name
    }
}

struct Checking {
    checker: Checker,
    /// Which memory has broken its rule.
    broken: BTreeSet<u64>,
}

impl Checking {
    fn new(specification: &Specification) -> Checking {
        Checking { checker: Checker::new(specification), broken: BTreeSet::new() }
    }
}

impl Shown for Checking {
    fn event(&mut self, event: &Event) {
        for violation in self.checker.on_event(event, &mut Numbered) {
            if let Subject::Memory(bytes) = violation.finding.subject {
                self.broken.insert(bytes.start);
            }
        }
    }

    fn reached(&mut self, _: ThreadId, moment: u64) {
        self.checker.reached(moment);
    }

    fn held_back(&mut self, last: &HeldBack) {
        self.checker.held_back(last, &mut Numbered);
    }
}

/// A front end that shows as little as it may.
struct FrontEnd<S> {
    shown: S,
    owners: BTreeMap<Access, Owner>,
    locks: BTreeMap<ThreadId, Vec<(LockId, Mode)>>,
    moments: BTreeMap<ThreadId, u64>,
    held_back: usize,
}

impl<S: Shown> FrontEnd<S> {
    /// Shows an execution.
    fn show(shown: S, events: &[Event]) -> FrontEnd<S> {
        let mut front_end = FrontEnd {
            shown,
            owners: BTreeMap::new(),
            locks: BTreeMap::new(),
            moments: BTreeMap::new(),
            held_back: 0,
        };
        // Other numbers are as good: only their order counts.
        for (event, moment) in events.iter().zip((5..).step_by(3)) {
            front_end.take(event, moment);
        }
        front_end
    }

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
        self.shown.event(event);
        // What synchronizes begins a moment, and the first thing that a thread does.
        let allocates = matches!(event.op, Op::Alloc(_) | Op::Free(_));
        if allocates && self.moments.contains_key(&event.thread) {
            return;
        }
        self.shown.reached(event.thread, moment);
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
        self.shown.event(event);
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
                self.shown.held_back(&HeldBack { thread, bytes, write, moment, site: None });
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
    let FrontEnd { shown, held_back, .. } = FrontEnd::show(Inferring::default(), events);
    let Inferring { mut hominy, mut findings } = shown;
    hominy.finish(&mut findings);
    prop_assert_eq!(essence(hominy.take_instances()), essence(infer(events).0));
    Ok(held_back)
}

/// Checks an execution against what was inferred of another one, all of it and what a front end shows: what is held
/// back may hide that a rule is broken, and never breaks one.
fn compare_checks(events: &[Event], other: &[Event]) -> Result<(), TestCaseError> {
    let of = |events: &[Event], addr: u64| {
        let (instances, _) = infer(events);
        let instance = instances.into_iter().find(|i| i.bytes.start == addr && i.race.is_none());
        instance.map_or_else(|| vec![Step::ThreadLocal].into(), |i| discipline(&i))
    };
    for from in [events, other] {
        let rule = |variable: u64| {
            let addr = address(variable);
            Rule { variable: addr.to_string(), discipline: of(from, addr) }
        };
        let rules: Vec<Rule> = (0..SHAPE.variables).map(rule).collect();
        let disciplines: Vec<Discipline> = rules.iter().map(|r| r.discipline.clone()).collect();
        let specification = Specification { rules };
        let mut all = Checking::new(&specification);
        events.iter().for_each(|event| all.event(event));
        let mut first = Checking::new(&specification);
        first.checker = first.checker.of_first_accesses();
        let shown = FrontEnd::show(first, events).shown;
        prop_assert!(shown.broken.is_subset(&all.broken), "{:?} of {:?}", shown.broken, all.broken);
        for (variable, discipline) in (0..).zip(&disciplines) {
            let breaks = first_breach(events, address(variable), discipline).is_some();
            prop_assert_eq!(all.broken.contains(&address(variable)), breaks, "{}", discipline);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn what_is_held_back_breaks_no_rule(events in executions(SHAPE), other in executions(SHAPE)) {
        compare_checks(&without_races(&events), &without_races(&other))?;
    }

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
