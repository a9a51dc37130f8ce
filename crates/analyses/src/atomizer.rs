//! `reduction`: atomic regions that a schedule could split, by Lipton's reduction.
//!
//! Predicts that an atomic region is not atomic, even from an execution in which it was. Reports a region
//! in which a step that another thread can precede follows a step that another thread can follow: that
//! thread can come between them. The typical case is a lock that is released and acquired again, so that
//! another thread can use what it protects in between.
//!
//! Source: Atomizer (Flanagan and Freund, POPL 2004), after Lipton (CACM 1975). An operation is a *right
//! mover* if it can be exchanged with the next one of another thread, a *left mover* if with the
//! previous one, a *both mover* or a *non-mover*. A region is atomic if it has the form
//! (right | both)* (non)? (left | both)*: all right movers can be moved to its middle from the left, all
//! left movers from the right.
//!
//! | operation | mover |
//! | --- | --- |
//! | acquiring a lock, joining, waiting for a semaphore, leaving a barrier | right |
//! | releasing a lock, forking, posting a semaphore, arriving at a barrier | left |
//! | acquiring a lock that the thread holds, and its release | both |
//! | plain access to memory that is used consistently with locks, or in turns | both |
//! | plain access to other memory, atomic access | non |
//! | fences, condition variables, allocation | both: their locks and accesses have events of their own |
//!
//! A thread owns memory while fork, join, semaphores or barriers order its accesses after all others.
//! Memory is used consistently if all accesses since it was last owned hold a common lock, or all are
//! reads (Eraser's rule, with ownership that can be passed on). AtomFuzzer (Park and Sen, FSE 2008)
//! confirms what is predicted here: the finding's [`Target::Split`] names two acquisitions of one lock in
//! the region, and any acquisition by another thread between them is a violation.
//!
//! Deviations. (1) The paper takes the lock of one thread for a both mover until a second thread uses it, and
//! so misses the first thread's regions. We hold a finding back until its lock has been used by a second
//! thread, or its atomic by a second thread and written by one: loads of what is never written can be
//! moved. (2) Nested regions have a phase each and are reported each. (3) A region
//! that the rule rejects is followed on, so that all its acquisitions after the middle are reported.
//!
//! **Guarantee**: a report does not prove that a schedule shows the violation; confirmation does. Without a
//! report, regions executed with these locks in this order are atomic in every schedule, with four
//! exceptions: memory that turned out to be shared only after a region used it was taken for a both mover
//! there, as in the paper; a lock that is only taken under another one counts like any other; only the
//! first 64 objects released in a region are looked at; and at most 4,096 findings are held back
//! ([`Analysis::bound`]).
//!
//! Cost: O(locks held, and objects used in the regions) for an operation in a region; O(locks held) for an access
//! elsewhere.

use rustc_hash::{FxHashMap, FxHashSet};
use selvedge_model::{
    Epoch, Event, Finding, Findings, Kind, LockId, Object, Op, Place, Range, RegionId, RegionKind,
    Role, SiteId, Status, Subject, Target, ThreadId, VectorClock,
};

use crate::common::held::{HeldLocks, LockSet, protects};
use crate::common::order::{Edges, Order};
use crate::common::role::role_of;
use crate::common::shadow::Shadow;
use crate::entry::{Entry, Needs, Purpose};
use crate::lockregions::LockRegions;
use crate::{Analysis, Bound};

const NAME: &str = "reduction";
const MAX_WAITING: usize = 4096;
const MAX_MIDDLES: usize = 64;

/// What orders accesses whatever the order in which locks are taken.
const PASSED_ON: Edges = Edges { locks: false, atomics: false, rendezvous: true, notify: false };

/// The analysis.
#[derive(Debug)]
pub struct Atomizer {
    kind: RegionKind,
    order: Order,
    held: HeldLocks,
    memory: Shadow<Data>,
    threads: Vec<Vec<Open>>,
    /// Of small regions that have been left; the next ones use their memory.
    // invariant: all empty.
    left: Vec<(Middles, Used)>,
    users: FxHashMap<Object, Users>,
    /// Findings about objects that one thread only has used so far.
    waiting: Vec<(Finding, Vec<Object>)>,
    /// Region, its site, a middle or none, and the operation after: what has been looked at with that
    /// middle, and what has been reported.
    seen: FxHashSet<(RegionId, SiteId, Option<SiteId>, SiteId)>,
    exceeded: u64,
}

/// How an operation can be moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mover {
    Right,
    Left,
    Both,
    Non,
}

type Middles = Vec<(Place, Option<Object>)>;
type Used = FxHashMap<Object, SiteId>;

/// A region that a thread is in.
#[derive(Debug)]
struct Open {
    region: RegionId,
    site: SiteId,
    /// For each object, the first operation on it that is not a right or both mover. If the object turns
    /// out to be shared, it is the middle at the latest: there may be left and both movers only
    /// from there on.
    // invariant: no object twice.
    middles: Middles,
    /// What was used in the region, and where first.
    used: Used,
}

/// Which threads use an object.
#[derive(Debug)]
struct Users {
    first: ThreadId,
    several: bool,
    /// Whether some use changes it.
    changed: bool,
}

impl Users {
    fn are_in_each_others_way(&self) -> bool {
        self.several && self.changed
    }
}

impl Default for Atomizer {
    fn default() -> Atomizer {
        Atomizer::new()
    }
}

impl Atomizer {
    /// Checks the regions that are meant to be atomic.
    pub fn new() -> Atomizer {
        Atomizer::of(RegionKind::Atomic)
    }

    /// Checks regions of a kind, as if they were meant to be atomic.
    pub fn of(kind: RegionKind) -> Atomizer {
        Atomizer {
            kind,
            order: Order::new(PASSED_ON),
            held: HeldLocks::default(),
            memory: Shadow::default(),
            threads: Vec::new(),
            left: Vec::new(),
            users: FxHashMap::default(),
            waiting: Vec::new(),
            seen: FxHashSet::default(),
            exceeded: 0,
        }
    }

    fn open(&mut self, thread: ThreadId) -> &mut Vec<Open> {
        if thread.index() >= self.threads.len() {
            self.threads.resize_with(thread.index() + 1, Vec::new);
        }
        &mut self.threads[thread.index()]
    }

    /// How the operation can be moved, and what other threads would have to use to be in its way.
    fn classify(&mut self, event: &Event) -> (Mover, Option<Object>) {
        match event.op {
            Op::Read(access) => (self.access(event, access.range(), false), None),
            Op::Write(access) => (self.access(event, access.range(), true), None),
            Op::Atomic(access, _) => (Mover::Non, Some(Object::Memory(access.range()))),
            // The locks held are those before this event.
            Op::Acquire(lock, _) if self.held.holds(event.thread, lock) => (Mover::Both, None),
            Op::Acquire(lock, _) => (Mover::Right, Some(Object::Lock(lock))),
            Op::Release(lock, _) if self.held.depth(event.thread, lock) > 1 => (Mover::Both, None),
            Op::Release(lock, _) => (Mover::Left, Some(Object::Lock(lock))),
            Op::Join(_) | Op::Wait(_) | Op::Leave(..) => (Mover::Right, None),
            Op::Fork(_) | Op::Post(_) | Op::Arrive(..) => (Mover::Left, None),
            Op::Fence(_) | Op::Begin | Op::End | conditions!() | regions!() | allocation!() => {
                (Mover::Both, None)
            }
        }
    }

    fn access(&mut self, event: &Event, range: Range, write: bool) -> Mover {
        let thread = self.order.thread(event.thread);
        let (epoch, clock) = (thread.epoch(), thread.clock());
        let locks = self.held.set(event.thread);
        let held = &self.held;
        let mut mover = Mover::Both;
        self.memory.visit(range, |_, data| {
            if !data.access(epoch, clock, locks, held, write) {
                mover = Mover::Non;
            }
        });
        mover
    }

    /// Notes that a thread uses an object, and reports what was waiting for a second user.
    fn uses(&mut self, event: &Event, object: Object, out: &mut Findings) {
        let new = Users { first: event.thread, several: false, changed: false };
        let users = self.users.entry(object).or_insert(new);
        let before = users.are_in_each_others_way();
        users.several |= users.first != event.thread;
        users.changed |= !matches!(event.op, Op::Atomic(_, op) if !op.writes());
        if before || !users.are_in_each_others_way() {
            return;
        }
        let users = &self.users;
        let ready = self.waiting.extract_if(.., |(_, objects)| are_shared(objects, users));
        for (finding, _) in ready.collect::<Vec<_>>() {
            self.report(finding, out);
        }
    }

    /// Reports a region and an operation in it once, with the first middle that is good for it.
    fn report(&mut self, finding: Finding, out: &mut Findings) {
        if self.seen.insert(key(&finding, false)) {
            out.report(finding);
        }
    }

    fn step(&mut self, event: &Event, mover: Mover, object: Option<Object>, out: &mut Findings) {
        let me = event.thread;
        let place =
            Place { thread: me, site: event.site, role: role_of(&event.op), held: Vec::new() };
        let mut found = Vec::new();
        for open in self.open(me) {
            if mover != Mover::Left {
                found.extend(open.middles.iter().map(|m| open.violation(m, &place, object)));
            }
            let known = open.middles.iter().any(|(_, o)| *o == object);
            if mover != Mover::Right && !known && open.middles.len() < MAX_MIDDLES {
                open.middles.push((place.clone(), object));
            }
            if let (Some(object), false) = (object, mover == Mover::Left) {
                open.used.entry(object).or_insert(event.site);
            }
        }
        for (finding, objects) in found {
            if !self.seen.insert(key(&finding, true)) {
                continue;
            }
            if are_shared(&objects, &self.users) {
                self.report(finding, out);
            } else if self.waiting.len() < MAX_WAITING {
                self.waiting.push((finding, objects));
            } else {
                self.exceeded += 1;
            }
        }
    }
}

/// Whether other threads can be in the way of each of the objects.
fn are_shared(objects: &[Object], users: &FxHashMap<Object, Users>) -> bool {
    objects.iter().all(|o| users.get(o).is_some_and(Users::are_in_each_others_way))
}

fn key(finding: &Finding, with_middle: bool) -> (RegionId, SiteId, Option<SiteId>, SiteId) {
    let Subject::Region(region) = finding.subject else { unreachable!("made by `violation`") };
    let [enter, middle, now] = &finding.places[..] else { unreachable!("made by `violation`") };
    (region, enter.site, with_middle.then_some(middle.site), now.site)
}

impl Open {
    fn violation(
        &self,
        (middle, middle_object): &(Place, Option<Object>),
        now: &Place,
        object: Option<Object>,
    ) -> (Finding, Vec<Object>) {
        let target = object.and_then(|object| {
            let &first = self.used.get(&object)?;
            let second = now.site;
            Some(Target::Split { region: Some(self.region), first, second, between: None, object })
        });
        let enter = Place {
            thread: now.thread,
            site: self.site,
            role: Role::Enter(self.region),
            held: Vec::new(),
        };
        let finding = Finding {
            kind: Kind::AtomicityViolation,
            status: Status::Predicted,
            verdict: None,
            analyses: vec![NAME],
            subject: Subject::Region(self.region),
            places: vec![enter, middle.clone(), now.clone()],
            target,
            occurrences: 1,
        };
        (finding, middle_object.iter().chain(&object).copied().collect())
    }
}

impl Analysis for Atomizer {
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        self.order.acquire(event);
        let (mover, object) = self.classify(event);
        if let Some(object) = object {
            self.uses(event, object, out);
        }
        if mover != Mover::Both && !self.open(event.thread).is_empty() {
            self.step(event, mover, object, out);
        }
        match event.op {
            Op::RegionEnter(region, kind) if kind == self.kind => {
                let (middles, used) = self.left.pop().unwrap_or_default();
                let open = Open { region, site: event.site, middles, used };
                self.open(event.thread).push(open);
            }
            Op::RegionExit(region) => {
                let left = self.open(event.thread).pop_if(|o| o.region == region);
                if let Some(Open { mut middles, mut used, .. }) = left
                    && used.capacity() <= MAX_MIDDLES
                {
                    middles.clear();
                    used.clear();
                    self.left.push((middles, used));
                }
            }
            Op::End => self.open(event.thread).clear(),
            Op::Join(child) => self.open(child).clear(),
            Op::Alloc(range) | Op::Free(range) => {
                self.memory.forget(range, |_, _| {});
            }
            Op::RegionEnter(..)
            | Op::Flow(_)
            | Op::Focus(_)
            | Op::Fork(_)
            | Op::Begin
            | Op::Fence(_)
            | accesses!()
            | locks!()
            | rendezvous!()
            | conditions!() => {}
        }
        self.held.on_event(event);
        self.order.release(event);
    }

    fn restart(&mut self) {
        self.order.clear();
        self.held.clear();
        self.memory.clear();
        self.threads.iter_mut().for_each(Vec::clear);
        self.users.clear();
        self.waiting.clear();
        self.seen.clear();
        self.exceeded = 0;
    }

    fn bound(&self) -> Option<Bound> {
        (self.exceeded > 0).then_some(Bound {
            what: "predictions about locks of one thread are held back",
            limit: MAX_WAITING as u64,
            exceeded: self.exceeded,
        })
    }
}

/// How some memory is used.
#[derive(Clone, Default, PartialEq, Debug)]
enum Data {
    #[default]
    Untouched,
    /// By one thread after the other, each with the end of the other's use passed on to it. What the
    /// owner held before its last access is not remembered, as in Eraser.
    InTurns { last: Epoch, write: Epoch, locks: LockSet },
    /// By several threads at a time.
    Shared(Box<Shared>),
}

#[derive(Clone, PartialEq, Debug)]
struct Shared {
    /// The last access of each thread.
    accesses: VectorClock,
    /// The locks that every access held.
    locks: Vec<LockId>,
    /// The last write before it was shared.
    write: Epoch,
    /// Whether some thread's accesses are not ordered after all writes.
    written: bool,
}

impl Data {
    /// Takes in an access; false if it is one of those that no lock protects.
    fn access(
        &mut self,
        epoch: Epoch,
        clock: &VectorClock,
        locks: LockSet,
        held: &HeldLocks,
        writes: bool,
    ) -> bool {
        let protecting = |set: LockSet, write: bool| {
            held.locks(set).iter().filter(move |h| protects(h.mode, write)).map(|h| h.lock)
        };
        match self {
            Data::InTurns { last, write, locks: before } if !clock.contains(*last) => {
                let theirs: Vec<LockId> = protecting(*before, write == last).collect();
                let common = protecting(locks, writes).filter(|l| theirs.contains(l)).collect();
                let mut accesses = VectorClock::new();
                accesses.set(last.slot(), last.clock());
                accesses.set(epoch.slot(), epoch.clock());
                let written = writes || !clock.contains(*write);
                let shared = Shared { accesses, locks: common, write: *write, written };
                *self = Data::Shared(Box::new(shared));
            }
            Data::Shared(shared) if !clock.contains_all(&shared.accesses) => {
                let mine: Vec<LockId> = protecting(locks, writes).collect();
                shared.locks.retain(|l| mine.contains(l));
                shared.accesses.set(epoch.slot(), epoch.clock());
                shared.written |= writes || !clock.contains(shared.write);
            }
            Data::InTurns { last, write, locks: before } => {
                if writes {
                    *write = epoch;
                }
                (*last, *before) = (epoch, locks);
            }
            Data::Untouched | Data::Shared(_) => {
                let write = if writes { epoch } else { Epoch::ZERO };
                *self = Data::InTurns { last: epoch, write, locks };
            }
        }
        match self {
            Data::Shared(shared) => !shared.locks.is_empty() || !shared.written,
            _ => true,
        }
    }
}

/// Atomizer.
pub const ENTRY: Entry = Entry {
    default_in: &[Purpose::Test],
    needs: Needs::AtomicRegions,
    locked: Some(|| Box::new(LockRegions::new(Atomizer::new()))),
    ..Entry::of(NAME, "atomic regions that another schedule may break up (Atomizer)", || {
        Box::new(Atomizer::new())
    })
};
