//! `discipline`: accesses that do not follow the discipline that a specification gives their variable.
//!
//! Source: *Hominy Grits*, chapter 3 and §6.2.4; what it means to follow a discipline is
//! [`selvedge_specs::discipline::satisfy`], and what orders two accesses is what [`hominy`](crate::hominy) asks.
//!
//! Names are the front end's: [`Naming`] says which rule some memory has and which device a rule means. So this
//! is no entry of the registry; commands that have a specification show the checker the events.
//!
//! **Guarantee**: reports an access only if no way to cut the accesses of its instance into the steps of the
//! discipline is left; the first breach of an instance ends its checking. May miss breaches where several
//! devices together order accesses between which lie more synchronizations than [`Log`] remembers: these
//! are taken to be ordered.
//!
//! Cost: for an access of a thread that made the last one and has not synchronized since, a comparison;
//! otherwise the steps of the discipline.

use std::cell::RefCell;

use selvedge_model::{
    Event, Finding, HeldBack, Kind, Op, Place, Range, Role, SiteId, Status, Subject, ThreadId,
};
use selvedge_specs::discipline::satisfy::{Automaton, Breach, Observed, Progress};
use selvedge_specs::discipline::{DeviceKind, Specification, Step};

use crate::common::devices::{Device, Devices, Point, end_of};
use crate::common::held::{HeldLocks, LockSet, protects};
use crate::common::paths::{Edge, Log};
use crate::common::shadow::Shadow;

/// The name of the analysis.
pub const NAME: &str = "discipline";

/// What things are called in a specification.
pub trait Naming {
    /// The number of the rule for some memory, which is accessed at a place.
    fn rule(&mut self, bytes: Range, site: SiteId) -> Option<usize>;

    /// Whether a device is what the rule for some memory calls by a name.
    fn is(&mut self, device: Device, name: &str, bytes: Range) -> bool;
}

/// A finding, and what is wrong.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The finding.
    pub finding: Finding,
    /// The number of the rule.
    pub rule: usize,
    /// Why the access does not follow it.
    pub breach: Breach,
}

/// The analysis.
#[derive(Debug)]
pub struct Checker {
    rules: Vec<Automaton>,
    /// The rules of which a variable was seen.
    seen: Vec<bool>,
    devices: Devices,
    log: Log,
    held: HeldLocks,
    memory: Shadow<Cell>,
    /// Whether a thread may have made an access several times that is shown once.
    repeats: bool,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Cell {
    state: State,
    /// The last access, if it would change nothing to make it again: when, and whether it writes.
    settled: Option<(Point, bool)>,
    /// The locks that were held at the last access.
    locks: LockSet,
    write: Option<Point>,
    /// The last read since of each thread.
    #[allow(clippy::box_collection)] // One word in a cell, which has no use for three.
    reads: Option<Box<Vec<Point>>>,
}

#[derive(Clone, PartialEq, Debug, Default)]
enum State {
    /// Not accessed yet.
    #[default]
    New,
    /// Not in the specification, or broken before.
    Ignored,
    /// Follows a rule.
    Follows(usize, Box<Progress>),
}

/// An access, as the automaton asks about it.
struct Accessed<'a> {
    thread: ThreadId,
    locks: LockSet,
    bytes: Range,
    write: bool,
    from: Vec<Point>,
    devices: &'a Devices,
    log: &'a Log,
    held: &'a HeldLocks,
    naming: &'a mut dyn Naming,
}

impl Checker {
    /// Checks these rules.
    pub fn new(specification: &Specification) -> Checker {
        let rules: Vec<Automaton> =
            specification.rules.iter().map(|r| Automaton::new(&r.discipline)).collect();
        Checker {
            seen: vec![false; rules.len()],
            rules,
            devices: Devices::default(),
            log: Log::default(),
            held: HeldLocks::default(),
            memory: Shadow::default(),
            repeats: false,
        }
    }

    /// For a front end that shows an access once for all of a thread in an epoch, and no reads after a write.
    pub fn of_first_accesses(self) -> Checker {
        Checker { repeats: true, ..self }
    }

    /// Whether a variable of some rule was seen.
    pub fn saw_anything(&self) -> bool {
        self.seen.contains(&true)
    }

    /// Takes in an event.
    pub fn on_event(&mut self, event: &Event, naming: &mut dyn Naming) -> Vec<Violation> {
        match event.op {
            Op::Read(access) => return self.access(event, access.range(), false, naming),
            Op::Write(access) => return self.access(event, access.range(), true, naming),
            Op::Alloc(range) | Op::Free(range) => self.memory.forget(range, |_, _| {}),
            Op::Atomic(..)
            | Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!() => {}
        }
        self.held.on_event(event);
        if self.devices.on_event(event) {
            self.log.push(self.devices.now(), event);
        }
        Vec::new()
    }

    /// The front end counts synchronization events itself, and may hold accesses back: those so far go up to
    /// `moment`.
    pub fn reached(&mut self, moment: u64) {
        self.devices.reached(end_of(moment));
    }

    /// Takes in what the front end has held back, see [`HeldBack`]: accesses of the thread that made the last one, under
    /// the same locks.
    pub fn held_back(&mut self, last: &HeldBack, naming: &mut dyn Naming) {
        let Checker { rules, devices, log, held, memory, .. } = self;
        let point = Point { thread: last.thread, stamp: end_of(last.moment) };
        let (thread, write) = (last.thread, last.write);
        memory.visit(last.bytes, |bytes, cell| {
            let (from, locks) = (cell.must_follow(thread, write), cell.locks);
            let State::Follows(rule, progress) = &mut cell.state else { return };
            let mut access = Accessed {
                thread,
                locks,
                bytes,
                write,
                from,
                devices,
                log,
                held,
                naming: &mut *naming,
            };
            settle(&rules[*rule], progress, &mut access);
            cell.settled = None;
            cell.remember(point, write);
        });
    }

    fn access(
        &mut self,
        event: &Event,
        range: Range,
        write: bool,
        naming: &mut dyn Naming,
    ) -> Vec<Violation> {
        let Checker { rules, seen, devices, log, held, memory, repeats } = self;
        let now = devices.point(event.thread);
        let (thread, locks) = (event.thread, held.set(event.thread));
        let mut found = Vec::new();
        memory.visit(range, |bytes, cell| {
            if cell.state == State::New {
                cell.state = match naming.rule(bytes, event.site) {
                    Some(rule) => {
                        seen[rule] = true;
                        State::Follows(rule, Box::default())
                    }
                    None => State::Ignored,
                };
            }
            if cell.settled == Some((now, write)) {
                return;
            }
            let from = cell.must_follow(event.thread, write);
            let State::Follows(rule, progress) = &mut cell.state else { return };
            let rule = *rule;
            let before = progress.clone();
            let mut access = Accessed {
                thread,
                locks,
                bytes,
                write,
                from,
                devices,
                log,
                held,
                naming: &mut *naming,
            };
            if let Err(breach) = rules[rule].follow(progress, &mut access) {
                found.push(Violation { finding: finding(event, bytes, write, held), rule, breach });
                cell.state = State::Ignored;
                return;
            }
            if *repeats {
                settle(&rules[rule], progress, &mut access);
            }
            cell.settled = (*repeats || *progress == before).then_some((now, write));
            cell.remember(now, write);
            cell.locks = locks;
        });
        found
    }
}

impl Cell {
    /// The accesses of other threads that an access must follow.
    fn must_follow(&self, thread: ThreadId, write: bool) -> Vec<Point> {
        if !matches!(self.state, State::Follows(..)) {
            return Vec::new();
        }
        let reads = self.reads.iter().flat_map(|reads| reads.iter()).filter(|_| write);
        let all = self.write.iter().chain(reads).copied();
        all.filter(|point| point.thread != thread).collect()
    }

    fn remember(&mut self, now: Point, write: bool) {
        if write {
            (self.write, self.reads) = (Some(now), None);
            return;
        }
        let reads = self.reads.get_or_insert_default();
        match reads.iter_mut().find(|p| p.thread == now.thread) {
            Some(read) => *read = now,
            None => reads.push(now),
        }
    }
}

/// A thread may have made an access again, or read what it wrote, any number of times, and each time may have been the
/// first of a phase. That may allow for more than happened, and never for less.
fn settle(rule: &Automaton, progress: &mut Progress, access: &mut Accessed<'_>) {
    let kinds = if access.write { &[true, false][..] } else { &[false] };
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for &write in kinds {
            access.write = write;
            let mut next = progress.clone();
            changed |= rule.follow(&mut next, access).is_ok() && progress.join(next);
        }
    }
}

fn finding(event: &Event, bytes: Range, write: bool, held: &HeldLocks) -> Finding {
    let role = if write { Role::Write } else { Role::Read };
    let held = held.locks(held.set(event.thread)).to_vec();
    Finding {
        kind: Kind::DisciplineViolation,
        status: Status::Observed,
        verdict: None,
        analyses: vec![NAME],
        subject: Subject::Memory(bytes),
        places: vec![Place { thread: event.thread, site: event.site, role, held }],
        target: None,
        occurrences: 1,
    }
}

impl Accessed<'_> {
    fn is(&mut self, device: Device, kind: DeviceKind, name: &str) -> bool {
        let same = match device {
            Device::Lock(_) => DeviceKind::Lock,
            Device::Atomic(_) => DeviceKind::Atomic,
            Device::Barrier(_) => DeviceKind::Barrier,
            Device::Semaphore(_) => DeviceKind::Semaphore,
        };
        same == kind && self.naming.is(device, name, self.bytes)
    }

    fn by(&mut self, transition: &Step) -> bool {
        let me = self.thread;
        match transition {
            Step::Fork => self.from.iter().all(|&p| self.devices.by_fork(p, me)),
            Step::Join => self.from.iter().all(|&p| self.devices.by_join(p, me)),
            Step::Via(kind, name) => {
                let acquired: Vec<Device> = self.devices.acquired(me).collect();
                acquired.into_iter().any(|device| {
                    let orders = self.from.iter().all(|&p| self.devices.by(device, p, me));
                    orders && self.is(device, *kind, name)
                })
            }
            Step::ThreadLocal | Step::ReadShared | Step::GuardedBy(_) | Step::Repeat(_) => false,
        }
    }
}

impl Observed<String> for Accessed<'_> {
    fn thread(&self) -> u32 {
        self.thread.0
    }

    fn writes(&self) -> bool {
        self.write
    }

    fn holds(&mut self, lock: &String) -> bool {
        let held = self.held.locks(self.locks).to_vec();
        let guards = held.into_iter().filter(|h| protects(h.mode, self.write)).map(|h| h.lock);
        let guards: Vec<Device> = guards.map(Device::Lock).collect();
        guards.into_iter().any(|device| self.is(device, DeviceKind::Lock, lock))
    }

    fn ordered_by(&mut self, transitions: &[&Step]) -> bool {
        if self.from.is_empty() {
            return true;
        }
        if transitions.iter().any(|t| self.by(t)) {
            return true;
        }
        if transitions.len() < 2 {
            return false;
        }
        // Together, then.
        let (from, log, me) = (self.from.clone(), self.log, self.thread);
        let this = RefCell::new(self);
        let allowed = |edge: Edge| {
            transitions.iter().any(|t| match (t, edge) {
                (Step::Fork, Edge::Fork) | (Step::Join, Edge::Join) => true,
                (Step::Via(kind, name), Edge::Via(device)) => {
                    this.borrow_mut().is(device, *kind, name)
                }
                _ => false,
            })
        };
        from.iter().all(|&p| !log.reaches(p) || log.shortest(p, me, allowed).is_some())
    }
}
