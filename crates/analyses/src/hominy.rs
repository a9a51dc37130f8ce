//! Infers the synchronization discipline of every variable: how the execution kept it free of races.
//!
//! Source: *Hominy Grits*, chapters 4 and 6 and appendix A; the language is
//! [`selvedge_specs::discipline`]. The canonical form:
//!
//! 1. From the left, the phase that covers most accesses; among equals `guarded-by`, then `thread-local`,
//!    then `read-shared`. Locks that are held at all accesses of a phase are all kept: which one is named is
//!    decided when all variables are known (`selvedge_specs::discipline::merge`).
//! 2. Before a phase of which an access must follow accesses of other threads from before the phase comes a
//!    transition, unless the lock of the phase orders the first such access. Named is what orders alone ([`Devices`]): `fork`, else `join`, else the
//!    device that the thread acquired last. If none does alone, those along a shortest way ([`Log`]), for
//!    the last write and then for each read by the number of its thread.
//! 3. `thread-local` after a transition is not written.
//! 4. Repetitions are folded (`selvedge_specs::discipline::canon`).
//! 5. A race ends the inference for its bytes. It is reported as [`races`](crate::fasttrack) reports it.
//!
//! Deviations. Hominy's EventSets collapse the events of a thread and so name devices that did not order
//! (§6.2.2); the clocks of [`Devices`] do not. It updates the set of every variable at every synchronization
//! (§6.2.3); here a synchronization touches the device and the thread, and what ordered two accesses is
//! asked only where a phase begins. `guarded-by` means that the lock is held. Atomic accesses are
//! synchronization, not accesses to data, but race with plain ones.
//!
//! **Guarantee**: the accesses seen satisfy the discipline that is inferred, unless it was cut
//! ([`Instance::cut`]). Says nothing of executions that were not seen. A discipline is cut after 32 steps, and
//! where several devices together ordered accesses between which lie more synchronizations than [`Log`]
//! remembers.
//!
//! Cost: for an access in an epoch that has seen it, a comparison; a look-up for memory that is accessed like other memory
//! in the same epoch (`cells`); otherwise look-ups in the state of the variable. Memory follows variables, distinct
//! histories and devices, not events.

mod cells;
mod tables;

use std::cell::RefCell;

use selvedge_model::{
    Access, AtomicOp, Event, Findings, HeldBack, LockId, Op, Range, Role, SiteId, ThreadId,
};
use selvedge_specs::discipline::canon::{Folded, Open, SequenceId, Sequences};
use selvedge_specs::discipline::{DeviceKind, Step};

use crate::common::accesses::{Accesses, Visit};
use crate::common::candidates::{CandidateSets, Candidates};
use crate::common::devices::{Device, Devices, Point, Stamp, end_of};
use crate::common::held::{HeldLocks, LockSet};
use crate::common::order::{Edges, Order};
use crate::common::paths::{Edge, Log};
use crate::common::shadow::Shadow;
use crate::fasttrack::{self, Mark, Race};
use crate::{Analysis, Bound};
use cells::{Cells, Lately, State};
use tables::{Numbers, Places, Transitions};

/// A discipline has at most so many steps.
pub const STEPS: usize = 32;

/// What is known of one instance of a variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// Where it is.
    pub bytes: Range,
    /// What its accesses follow, up to the race if there was one.
    pub steps: Vec<Folded<Open<Device>>>,
    /// Whether there would have been more steps.
    pub cut: bool,
    /// The places of the first race.
    pub race: Option<[SiteId; 2]>,
    /// Where it was accessed, each place once for each thread and set of locks.
    pub places: Vec<Seen>,
    /// How many accesses were seen.
    pub accesses: u64,
}

/// An instance whose history has ended; [`Inference::instance`] says what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Ended {
    pub bytes: Range,
    pub story: StoryId,
    pub accesses: u64,
}

/// All that is known of an instance, but for where it is and how often it was accessed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StoryId(u32);

/// An access of an instance.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Seen {
    pub thread: ThreadId,
    pub site: SiteId,
    /// The locks that guard it: for a write those held exclusively.
    pub locks: Vec<LockId>,
}

/// The inference.
#[derive(Debug)]
pub struct Hominy {
    order: Order,
    held: HeldLocks,
    memory: Shadow<State>,
    cells: Cells,
    /// What accesses have made of cells since `devices` was at this stamp; and what those that were held back have.
    lately: Lately<(Now, Stamp)>,
    lately_held_back: Lately<(Point, bool, Option<SiteId>)>,
    races: Vec<Race>,
    inference: Inference,
    ended: Vec<Ended>,
}

/// What all variables share.
#[derive(Debug, Default)]
pub struct Inference {
    devices: Devices,
    log: Log,
    candidates: CandidateSets,
    sequences: Sequences<Raw>,
    transitions: Transitions,
    places: Places,
    stories: Numbers<Story>,
    cut: u64,
    /// What an access must follow; kept for its memory.
    from: Vec<Point>,
}

/// What is known of some bytes, as far as many may have it in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Story {
    steps: SequenceId,
    phase: Phase,
    places: u32,
    cut: bool,
    race: Option<[SiteId; 2]>,
}

/// A step before locks are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Raw {
    ThreadLocal,
    ReadShared,
    Guarded(Candidates),
    /// Not needed if the phase after it is guarded by one of these.
    Transition(Edge, Candidates),
}

/// What is known of some bytes.
#[derive(Clone, PartialEq, Debug, Default)]
struct Cell {
    accesses: Accesses<Mark>,
    /// The last write.
    write: Option<Past>,
    /// The last read since, if one thread has read.
    read: Option<Past>,
    /// Otherwise the last read since of each thread, by thread.
    #[allow(clippy::box_collection)] // One word in a cell, which has no use for three.
    reads: Option<Box<Vec<Past>>>,
    story: StoryId,
}

/// An access that others may have to follow.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Past {
    point: Point,
    /// Whether it came before the phase that goes on.
    before: bool,
}

/// The phase that goes on: what it may still be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Phase {
    thread: ThreadId,
    /// All accesses so far are of one thread; are reads; are guarded by the candidates.
    local: bool,
    reads: bool,
    guards: Candidates,
    /// Whether one of its accesses had to follow accesses of other threads from before it; then what
    /// ordered the first of these, and which locks did.
    entered: bool,
    before: u32,
    unless: Candidates,
}

impl Default for Phase {
    fn default() -> Phase {
        Phase {
            thread: ThreadId(0),
            local: false,
            reads: false,
            guards: Candidates::NONE,
            entered: false,
            before: Transitions::NONE,
            unless: Candidates::NONE,
        }
    }
}

impl Phase {
    /// Whether it may be anything.
    fn is_possible(&self) -> bool {
        self.local || self.reads || self.guards != Candidates::NONE
    }
}

/// An access to be taken in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Now {
    thread: ThreadId,
    write: bool,
    mark: Mark,
}

impl Default for Hominy {
    fn default() -> Hominy {
        Hominy {
            order: Order::new(Edges::HAPPENS_BEFORE),
            held: HeldLocks::default(),
            memory: Shadow::default(),
            cells: Cells::default(),
            lately: Lately::default(),
            lately_held_back: Lately::default(),
            races: Vec::new(),
            inference: Inference::default(),
            ended: Vec::new(),
        }
    }
}

impl Hominy {
    /// The instances whose memory has been freed or given to something else since the last call; after
    /// [`Analysis::finish`] also all others, by address.
    pub fn take_instances(&mut self) -> Vec<Instance> {
        let ended = std::mem::take(&mut self.ended);
        ended.iter().map(|ended| self.inference.instance(ended)).collect()
    }

    /// The same, with what is known of them, which many have in common.
    pub fn take_ended(&mut self) -> (Vec<Ended>, &mut Inference) {
        (std::mem::take(&mut self.ended), &mut self.inference)
    }

    /// The execution is over: shows all instances that are left, by address, without collecting them.
    pub fn drain(&mut self, mut visit: impl FnMut(Ended, &mut Inference)) {
        let Hominy { memory, cells, inference, .. } = self;
        memory.each_with_bytes(|bytes, &mut state| {
            if state.count > 0 {
                visit(cells.ended(bytes, state), inference);
            }
        });
    }

    /// How many shadow pages are in use: the measure of its memory.
    pub fn shadow_pages(&self) -> usize {
        self.memory.pages()
    }

    /// The front end counts synchronization events itself, and may hold accesses back: those so far go up to
    /// `moment`, and the last one was this thread's.
    pub fn reached(&mut self, thread: ThreadId, moment: u64) {
        self.order.reached(thread, end_of(moment));
        self.inference.devices.reached(end_of(moment));
    }

    /// Takes in what the front end has held back, see [`HeldBack`].
    pub fn held_back(&mut self, last: &HeldBack) {
        self.make_room();
        let Hominy { order, memory, cells, lately_held_back, .. } = self;
        let epoch = order.epoch_at(last.thread, end_of(last.moment));
        let point = Point { thread: last.thread, stamp: end_of(last.moment) };
        let how = (point, last.write, last.site);
        let cells = RefCell::new(cells);
        let same = |one: &State, other: &State| cells.borrow().same(one, other);
        memory.visit_by(last.bytes, same, |_, state| {
            let cells = &mut **cells.borrow_mut();
            if state.count == 0 {
                return;
            }
            if let Some(made) = lately_held_back.made(state.cell, &how) {
                state.cell = made;
                return;
            }
            let mut cell = cells.get(state.cell).clone();
            let renewed = |mark: Mark| Mark { epoch, site: last.site.unwrap_or(mark.site), ..mark };
            cell.accesses.renew(epoch.slot(), last.write, renewed);
            cell.follow(last.write, point);
            let made = cells.add(cell);
            lately_held_back.remember(state.cell, how, made);
            state.cell = made;
        });
    }

    /// Forgets cells that are not in use, if there are many.
    fn make_room(&mut self) {
        if self.cells.collect(&mut self.memory) {
            self.lately.forget();
            self.lately_held_back.forget();
        }
    }

    #[inline]
    fn access(&mut self, event: &Event, access: Access, write: bool) {
        self.make_room();
        let Hominy { order, held, memory, cells, lately, races, inference, .. } = self;
        let thread = order.thread(event.thread);
        let locks = held.set(event.thread);
        let mark = Mark { epoch: thread.epoch(), site: event.site, locks };
        let now = Now { thread: event.thread, write, mark };
        let how = (now, inference.devices.now());
        let cells = RefCell::new(cells);
        let same = |one: &State, other: &State| cells.borrow().same(one, other);
        memory.visit_by(access.range(), same, |bytes, state| {
            let cells = &mut **cells.borrow_mut();
            let seen = state.count > 0 && cells.get(state.cell).accesses.repeats(&mark, write);
            state.count = state.count.saturating_add(1);
            if seen {
                return;
            }
            if let Some(made) = lately.made(state.cell, &how) {
                state.cell = made;
                return;
            }
            let mut cell = cells.get(state.cell).clone();
            let visit = Visit { mark, clock: thread.clock() };
            let check = if write { Accesses::on_write } else { Accesses::on_read };
            let race = check(&mut cell.accesses, visit);
            if let Some((earlier, earlier_role)) = race {
                cell.story = inference.raced(cell.story, [earlier.site, event.site]);
                races.push(Race { bytes, earlier, earlier_role });
            }
            inference.take(&mut cell, now, held);
            let made = cells.add(cell);
            // A race is told of all memory that has it.
            if race.is_none() {
                lately.remember(state.cell, how, made);
            }
            state.cell = made;
        });
    }

    fn atomic(&mut self, event: &Event, access: Access, op: AtomicOp) {
        self.make_room();
        let Hominy { order, held, memory, cells, races, inference, .. } = self;
        let thread = order.thread(event.thread);
        let locks = held.set(event.thread);
        let mark = Mark { epoch: thread.epoch(), site: event.site, locks };
        let visit = Visit { mark, clock: thread.clock() };
        let check = if op.writes() { Accesses::on_atomic_store } else { Accesses::on_atomic_load };
        let cells = RefCell::new(cells);
        let same = |one: &State, other: &State| cells.borrow().same(one, other);
        memory.visit_by(access.range(), same, |bytes, state| {
            let cells = &mut **cells.borrow_mut();
            let mut cell = cells.get(state.cell).clone();
            if let Some((earlier, earlier_role)) = check(&mut cell.accesses, visit) {
                cell.story = inference.raced(cell.story, [earlier.site, event.site]);
                races.push(Race { bytes, earlier, earlier_role });
            }
            state.cell = cells.add(cell);
        });
    }

    /// Ends the instances in a range. To free memory is to write to it.
    fn end(&mut self, event: &Event, range: Range, frees: bool) {
        let Hominy { order, memory, cells, races, inference, ended: all, .. } = self;
        let thread = order.thread(event.thread);
        let mark = Mark { epoch: thread.epoch(), site: event.site, locks: LockSet::EMPTY };
        let visit = Visit { mark, clock: thread.clock() };
        memory.forget(range, |bytes, &mut state| {
            let mut ended = cells.ended(bytes, state);
            let accesses = &cells.get(state.cell).accesses;
            if frees && let Some((earlier, earlier_role)) = accesses.unordered(visit) {
                ended.story = inference.raced(ended.story, [earlier.site, event.site]);
                races.push(Race { bytes, earlier, earlier_role });
            }
            if state.count > 0 {
                all.push(ended);
            }
        });
    }

    fn on_synchronization(&mut self, event: &Event) -> Role {
        self.order.acquire(event);
        self.held.on_event(event);
        let role = match event.op {
            Op::Atomic(access, op) => {
                self.atomic(event, access, op);
                if op.writes() { Role::AtomicWrite } else { Role::AtomicRead }
            }
            Op::Free(range) => {
                self.end(event, range, true);
                Role::Free
            }
            Op::Alloc(range) => {
                self.end(event, range, false);
                Role::Write
            }
            // None of these is a side of a race.
            Op::Read(_)
            | Op::Write(_)
            | Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!() => Role::Write,
        };
        self.order.release(event);
        if self.inference.devices.on_event(event) {
            self.inference.log.push(self.inference.devices.now(), event);
        }
        role
    }
}

impl Analysis for Hominy {
    #[inline]
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        let role = match event.op {
            Op::Read(access) => {
                self.access(event, access, false);
                Role::Read
            }
            Op::Write(access) => {
                self.access(event, access, true);
                Role::Write
            }
            Op::Atomic(..)
            | Op::Fence(_)
            | locks!()
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => self.on_synchronization(event),
        };
        for race in self.races.drain(..) {
            fasttrack::report(&race, event, role, &self.order, &self.held, out);
        }
    }

    fn finish(&mut self, _: &mut Findings) {
        let Hominy { memory, cells, ended: all, .. } = self;
        memory.each_with_bytes(|bytes, &mut state| {
            if state.count > 0 {
                all.push(cells.ended(bytes, state));
            }
        });
    }

    fn restart(&mut self) {
        *self = Hominy::default();
    }

    fn bound(&self) -> Option<Bound> {
        let what = "steps of a variable's discipline are inferred";
        let exceeded = self.inference.cut;
        (exceeded > 0).then_some(Bound { what, limit: STEPS as u64, exceeded })
    }
}

impl Cell {
    /// The accesses of other threads, from before the phase, that an access must follow.
    fn must_follow(&self, now: Now) -> impl Iterator<Item = Point> + '_ {
        let reads = self.reads.iter().flat_map(|reads| reads.iter());
        let reads = self.read.iter().chain(reads).filter(move |_| now.write);
        let all = self.write.iter().chain(reads).filter(|past| past.before).map(|p| p.point);
        all.filter(move |p| p.thread != now.thread)
    }

    /// A phase begins.
    fn begin_phase(&mut self) {
        let reads = self.reads.iter_mut().flat_map(|reads| reads.iter_mut());
        let all = self.write.iter_mut().chain(&mut self.read).chain(reads);
        all.for_each(|past| past.before = true);
    }

    /// There was an access that later ones may have to follow.
    fn follow(&mut self, write: bool, point: Point) {
        let past = Past { point, before: false };
        if write {
            (self.write, self.read, self.reads) = (Some(past), None, None);
            return;
        }
        let is_own = |read: &Past| read.point.thread == point.thread;
        if self.reads.is_none() && self.read.as_ref().is_none_or(is_own) {
            self.read = Some(past);
            return;
        }
        let first = self.read.take();
        let reads = self.reads.get_or_insert_default();
        reads.extend(first);
        match reads.binary_search_by_key(&point.thread, |p| p.point.thread) {
            Ok(i) => reads[i] = past,
            Err(i) => reads.insert(i, past),
        }
    }
}

impl Inference {
    /// There was a race, perhaps not the first.
    fn raced(&mut self, story: StoryId, sites: [SiteId; 2]) -> StoryId {
        let mut story = self.story(story);
        story.race.get_or_insert(sites);
        StoryId(self.stories.number(story))
    }

    fn story(&self, id: StoryId) -> Story {
        self.stories.get(id.0)
    }

    fn take(&mut self, cell: &mut Cell, now: Now, held: &HeldLocks) {
        let Mark { site, locks, .. } = now.mark;
        let guards = self.candidates.refine(None, locks, now.write, held);
        let mut story = self.story(cell.story);
        story.places = self.places.with(story.places, now.thread, site, guards);
        if story.race.is_none() && !story.cut {
            let phase = story.phase;
            let goes_on = Phase {
                local: phase.local && phase.thread == now.thread,
                reads: phase.reads && !now.write,
                guards: match phase.guards {
                    Candidates::NONE => Candidates::NONE,
                    old => self.candidates.refine(Some(old), locks, now.write, held),
                },
                ..phase
            };
            if goes_on.is_possible() {
                story.phase = goes_on;
            } else {
                cell.begin_phase();
                story.steps = self.with_phase(story.steps, &phase);
                story.phase = Phase {
                    thread: now.thread,
                    local: true,
                    reads: !now.write,
                    guards,
                    ..Phase::default()
                };
            }
            let known = story.phase.entered || self.enter(cell, &mut story.phase, now);
            story.cut = !known || self.sequences.len(story.steps) > STEPS;
            self.cut += u64::from(story.cut);
        }
        cell.story = StoryId(self.stories.number(story));
        cell.follow(now.write, self.devices.point(now.thread));
    }

    /// Asks what ordered an access behind those from before the phase, if there are any that it must follow;
    /// false if that is not known.
    fn enter(&mut self, cell: &Cell, phase: &mut Phase, now: Now) -> bool {
        let mut from = std::mem::take(&mut self.from);
        from.clear();
        from.extend(cell.must_follow(now));
        let known = from.is_empty() || self.enter_after(&from, phase, now.thread);
        self.from = from;
        known
    }

    fn enter_after(&mut self, from: &[Point], phase: &mut Phase, to: ThreadId) -> bool {
        let Some(before) = self.orders(from, to) else { return false };
        let guards = self.candidates.locks(phase.guards);
        let by = |lock: &LockId| from.iter().all(|&p| self.devices.by(Device::Lock(*lock), p, to));
        phase.unless = match guards.iter().filter(|lock| by(lock)).count() {
            0 => Candidates::NONE,
            all if all == guards.len() => phase.guards,
            _ => {
                let some = guards.iter().copied().filter(by).collect();
                self.candidates.number(some)
            }
        };
        phase.entered = true;
        phase.before = before;
        true
    }

    /// What orders all of `from` before the present of a thread.
    fn orders(&mut self, from: &[Point], to: ThreadId) -> Option<u32> {
        let devices = &self.devices;
        if from.iter().all(|&p| devices.by_fork(p, to)) {
            return Some(self.transitions.number(&[Edge::Fork]));
        }
        if from.iter().all(|&p| devices.by_join(p, to)) {
            return Some(self.transitions.number(&[Edge::Join]));
        }
        if let Some(device) = devices.latest(from, to) {
            return Some(self.transitions.number(&[Edge::Via(device)]));
        }
        let mut edges = Vec::new();
        for &point in from {
            for edge in self.log.shortest(point, to, |_| true)? {
                if !edges.contains(&edge) {
                    edges.push(edge);
                }
            }
        }
        Some(self.transitions.number(&edges))
    }

    /// The steps of a sequence and of a phase that has ended.
    fn with_phase(&mut self, mut steps: SequenceId, phase: &Phase) -> SequenceId {
        if !phase.is_possible() {
            return steps;
        }
        let guarded = phase.guards != Candidates::NONE;
        let unless =
            if guarded { self.common(phase.unless, phase.guards) } else { Candidates::NONE };
        if unless == Candidates::NONE || unless != phase.guards {
            for &edge in self.transitions.edges(phase.before) {
                steps = self.sequences.push(steps, Raw::Transition(edge, unless));
            }
        }
        let step = match phase {
            _ if guarded => Raw::Guarded(phase.guards),
            phase if phase.local => Raw::ThreadLocal,
            _ => Raw::ReadShared,
        };
        let transition = matches!(self.sequences.last(steps), Some(Raw::Transition(..)));
        if step == Raw::ThreadLocal && transition {
            return steps;
        }
        self.sequences.push(steps, step)
    }

    /// The locks of both sets.
    fn common(&mut self, some: Candidates, others: Candidates) -> Candidates {
        let mut locks = self.candidates.locks(some).to_vec();
        locks.retain(|lock| self.candidates.locks(others).contains(lock));
        self.candidates.number(locks)
    }

    /// What is known of an instance.
    pub fn instance(&mut self, ended: &Ended) -> Instance {
        let Story { steps, phase, places, cut, race } = self.story(ended.story);
        let steps = if cut || race.is_some() { steps } else { self.with_phase(steps, &phase) };
        let mut parts = self.sequences.items(steps);
        parts.truncate(STEPS);
        let steps = parts.into_iter().map(|part| match part {
            Folded::Once(raw) => Folded::Once(self.open(raw)),
            Folded::Repeat(block) => {
                Folded::Repeat(block.into_iter().map(|raw| self.open(raw)).collect())
            }
        });
        let steps = steps.collect();
        let places = self.places.all(places).into_iter().map(|(thread, site, locks)| Seen {
            thread,
            site,
            locks: self.candidates.locks(locks).to_vec(),
        });
        let (bytes, accesses) = (ended.bytes, ended.accesses);
        Instance { bytes, steps, cut, race, places: places.collect(), accesses }
    }

    fn open(&self, raw: Raw) -> Open<Device> {
        let locks = |set| self.candidates.locks(set).iter().map(|&l| Device::Lock(l)).collect();
        let step = match raw {
            Raw::ThreadLocal => Step::ThreadLocal,
            Raw::ReadShared => Step::ReadShared,
            Raw::Guarded(set) => Step::GuardedBy(locks(set)),
            Raw::Transition(Edge::Fork, _) => Step::Fork,
            Raw::Transition(Edge::Join, _) => Step::Join,
            Raw::Transition(Edge::Via(device), _) => Step::Via(kind(device), vec![device]),
        };
        let unless = match raw {
            Raw::Transition(_, unless) => locks(unless),
            Raw::ThreadLocal | Raw::ReadShared | Raw::Guarded(_) => Vec::new(),
        };
        Open { step, unless }
    }
}

impl Cells {
    /// The instance at some bytes.
    fn ended(&self, bytes: Range, state: State) -> Ended {
        Ended { bytes, story: self.get(state.cell).story, accesses: u64::from(state.count) }
    }
}

fn kind(device: Device) -> DeviceKind {
    match device {
        Device::Lock(_) => DeviceKind::Lock,
        Device::Atomic(_) => DeviceKind::Atomic,
        Device::Barrier(_) => DeviceKind::Barrier,
        Device::Semaphore(_) => DeviceKind::Semaphore,
    }
}
