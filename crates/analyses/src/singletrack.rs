//! `determinism`: non-interference of deterministic regions.
//!
//! A deterministic region may use threads of its own: its *transaction* is all that happens in the
//! region and all that threads do that are forked in it, also by those. Two things are reported:
//!
//! * a **conflict** inside of a transaction: two operations of different threads of it that conflict and
//!   that nothing deterministic orders, so that either could have come first. Data races, locks taken
//!   in either order, and atomics used to communicate are such conflicts. Fork, join, barriers and
//!   semaphores order deterministically; locks and atomics do not.
//! * a **serializability error** between transactions: a cycle of them, each of which did something that
//!   comes before and conflicts with something of the next ([`conflicts`](crate::common::conflicts)), so that no
//!   execution of one after the other explains what happened. Operations outside of regions are
//!   transactions of one operation.
//!
//! Source: SingleTrack (Sadowski, Freund and Flanagan, ESOP 2009): figure 4 for conflicts and figure 5 for
//! serializability, and §5 for what the figures leave out. Parts of the figures are illegible in the
//! copy that we have; the rules for ending, releasing, writing and joining in figure 4 and the edge of a
//! fork outside of regions in figure 5 are derived from the prose of §3 and §4 and the semantics of
//! figure 3.
//!
//! Deviations. (1) Nested regions (§5): the outermost one makes the transaction, and an error is reported
//! for every region that it violates: one that both conflicting operations belong to, or that a cycle
//! leaves and enters. (2) The clocks of figure 4 start afresh with every transaction; ours are those of
//! one deterministic order of the whole execution ([`Order`]). It contains more only where a thread of
//! the transaction is ordered after another one through a thread outside of it, and there the
//! transaction is not serializable, which is reported. (3) Readers of a lock in shared mode do not
//! conflict. (4) Atomics are the paper's volatiles, whatever their memory order. (5) Two waits for the
//! same semaphore are not a conflict, as in the paper, although a program in which they compete may depend
//! on the schedule. (6) A cycle is reported and its last edge left out.
//!
//! Meant to be run behind the race-free filter, as in the paper (§5): [`Filtered`]. Accesses that are ordered by
//! synchronization add nothing to the conflicts and edges of the synchronization itself.
//!
//! **Guarantee**: reports the first operation that conflicts inside of a transaction, and the first that
//! makes the execution not externally serializable; never reports one that does neither. If nothing is
//! reported for a region that spans the execution, the result of the program does not depend on the
//! schedule (lemma 1), semaphores aside. Behind the filter, which lets through synchronization, atomics
//! and accesses to bytes on which a race has happened: a first race inside of a transaction is reported
//! as the conflict that it is; a serializability error is missed if a cycle needs an access to racy
//! memory from before its first race. The same holds where the front end is the filter and tells first
//! races ([`Analysis::on_first_race`]), as that of native programs does; there a racy access also
//! stands for later ones of its thread that are not stronger, until that synchronizes, another thread
//! makes a conflicting access, or a marked region begins or ends. A function that is a region by its
//! name does not end that at its entry, so that a cycle may be missed that needs an access in it which
//! repeats one from just before it.
//!
//! Cost: for an operation inside of a region O(threads) and the searches described in
//! [`velodrome`](crate::velodrome); outside O(1) while no region is open. Memory follows the memory
//! touched and the transactions that ended after something that is still open.

use selvedge_model::{
    Epoch, Event, Finding, Findings, FirstRace, Kind, LockId, Mode, Op, Party, Place, Range,
    RegionId, RegionKind, Status, Subject, ThreadId, VectorClock,
};

use crate::common::conflicts::Conflicts;
use crate::common::order::{Edges, Order};
use crate::common::role::role_of;
use crate::common::shadow::Shadow;
use crate::common::transactions::{Cycle, Occurrence, Step, Transactions};
use crate::entry::{Accesses, Entry, Needs, Purpose};
use crate::racefree::RaceFree;
use crate::{Analysis, Filter};

const NAME: &str = "determinism";

/// What orders operations whatever the schedule.
const DETERMINISTIC: Edges =
    Edges { locks: false, atomics: false, rendezvous: true, notify: false };

/// The analysis.
#[derive(Debug)]
pub struct SingleTrack {
    kind: RegionKind,
    /// Two for each event, so that there is a time between.
    time: u64,
    threads: Vec<Thread>,
    blocks: Blocks,
    /// C of figure 4.
    order: Order,
    /// R and W of figure 4.
    memory: Shadow<Uses>,
    /// U of figure 4.
    locks: Vec<Uses>,
    /// U, R and W of figure 5.
    conflicts: Conflicts<Occurrence>,
    /// H of figure 5.
    graph: Transactions,
    sources: Vec<Occurrence>,
}

#[derive(Debug, Default)]
struct Thread {
    /// The regions it is in, outermost first: those in which it was forked, then its own.
    blocks: Vec<BlockId>,
    inherited: usize,
    /// Its last operation, or that of its forker: X of figure 4, C and L of figure 5.
    // invariant: of the transaction that it is in, if it is in a region.
    last: Occurrence,
    forked: Option<(ThreadId, u64)>,
    /// The locks it holds and where it acquired them.
    holds: Vec<(LockId, Step)>,
}

impl Default for SingleTrack {
    fn default() -> SingleTrack {
        SingleTrack::new()
    }
}

impl SingleTrack {
    /// Checks the regions that are meant to be deterministic.
    pub fn new() -> SingleTrack {
        SingleTrack::of(RegionKind::Deterministic)
    }

    /// Checks regions of a kind, as if they were meant to be deterministic.
    pub fn of(kind: RegionKind) -> SingleTrack {
        SingleTrack {
            kind,
            time: 0,
            threads: Vec::new(),
            blocks: Blocks::default(),
            order: Order::new(DETERMINISTIC),
            memory: Shadow::default(),
            locks: Vec::new(),
            conflicts: Conflicts::default(),
            graph: Transactions::default(),
            sources: Vec::new(),
        }
    }

    /// How many transactions, regions and pages of memory are remembered.
    pub fn size(&self) -> (usize, usize, usize) {
        let pages = self.memory.pages() + self.conflicts.shadow_pages();
        (self.graph.len(), self.blocks.len(), pages)
    }

    fn thread(&mut self, id: ThreadId) -> &mut Thread {
        if id.index() >= self.threads.len() {
            self.threads.resize_with(id.index() + 1, Thread::default);
        }
        &mut self.threads[id.index()]
    }

    fn fork(&mut self, now: Occurrence, child: ThreadId) {
        let blocks = self.threads[now.step.thread.index()].blocks.clone();
        if !blocks.is_empty() {
            self.graph.open(now.node);
            blocks.iter().for_each(|&b| self.blocks.hold(b));
        }
        let child = self.thread(child);
        child.inherited = blocks.len();
        child.blocks = blocks;
        child.last = now;
        child.forked = Some((now.step.thread, now.step.time));
    }

    fn exit(&mut self, id: ThreadId) {
        let time = self.time;
        let thread = self.thread(id);
        let Some(block) = thread.blocks.pop() else { return };
        let (left, node) = (thread.blocks.is_empty(), thread.last.node);
        if left {
            thread.holds.clear();
        }
        self.blocks.exit(block, time);
        if left {
            self.graph.close(node);
        }
    }

    fn end(&mut self, id: ThreadId) {
        while self.thread(id).blocks.len() > self.thread(id).inherited {
            self.exit(id);
        }
        let thread = self.thread(id);
        let (inherited, node) = (std::mem::take(&mut thread.blocks), thread.last.node);
        thread.inherited = 0;
        if !inherited.is_empty() {
            inherited.into_iter().for_each(|b| self.blocks.drop(b));
            self.graph.close(node);
        }
    }

    /// Regions of thread `me` that one of the steps belongs to as well.
    fn common(&self, me: ThreadId, steps: &[Step]) -> Vec<BlockId> {
        let contains = |b: &BlockId| steps.iter().any(|s| self.contains(self.blocks.get(*b), s));
        self.threads[me.index()].blocks.iter().copied().filter(contains).collect()
    }

    fn contains(&self, block: &Block, step: &Step) -> bool {
        let (mut thread, mut time) = (step.thread, step.time);
        while thread != block.enter.thread {
            match self.threads.get(thread.index()).and_then(|t| t.forked) {
                Some(forked) => (thread, time) = forked,
                None => return false,
            }
        }
        block.enter.time <= time && block.exited.is_none_or(|exited| time <= exited)
    }
}

impl Analysis for SingleTrack {
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        self.time += 2;
        self.order.acquire(event);
        let me = event.thread;
        let step = Step { thread: me, site: event.site, role: role_of(&event.op), time: self.time };
        if !self.thread(me).blocks.is_empty() {
            let now = Occurrence { node: self.thread(me).last.node, step };
            self.check_conflicts(event, now, out);
        }
        let now = self.serialize(event, step, out);
        match event.op {
            Op::RegionExit(region) => {
                let thread = self.thread(me);
                let own = thread.blocks.len() > thread.inherited;
                let innermost = thread.blocks.last().copied();
                if own && innermost.is_some_and(|b| self.blocks.get(b).region == region) {
                    self.exit(me);
                }
            }
            Op::Fork(child) => self.fork(now, child),
            Op::End => self.end(me),
            Op::Alloc(range) | Op::Free(range) => self.memory.forget(range, |_, _| {}),
            Op::RegionEnter(..)
            | Op::Flow(_)
            | Op::Focus(_)
            | Op::Join(_)
            | Op::Begin
            | Op::Fence(_)
            | accesses!()
            | locks!()
            | rendezvous!()
            | conditions!() => {}
        }
        self.order.release(event);
    }

    /// Two accesses of a transaction that nothing orders are a conflict inside of it.
    fn on_first_race(&mut self, race: &FirstRace, out: &mut Findings) {
        let later = race.later.thread.index();
        if self.threads.get(later).is_none_or(|t| t.blocks.is_empty()) {
            return;
        }
        let step = |Party { thread, site, role }, time| Step { thread, site, role, time };
        // The time between the last event that was passed on before the access and the next.
        let earlier = step(race.earlier, 2 * race.passed + 1);
        let now = step(race.later, self.time + 2);
        self.report_conflict(&Subject::Memory(race.bytes), &earlier, &now, out);
    }

    fn restart(&mut self) {
        self.time = 0;
        self.threads.clear();
        self.blocks.clear();
        self.order.clear();
        self.memory.clear();
        self.locks.iter_mut().for_each(|uses| uses.0.clear());
        self.conflicts.clear();
        self.graph.clear();
    }
}

/// Figure 5: external serializability.
impl SingleTrack {
    fn serialize(&mut self, event: &Event, step: Step, out: &mut Findings) -> Occurrence {
        let me = event.thread;
        let mut sources = std::mem::take(&mut self.sources);
        sources.clear();
        self.conflicts.sources(event, |from, _| sources.push(*from));
        if let Op::Join(child) = event.op {
            self.end(child);
            sources.push(self.thread(child).last);
        }
        let last = self.thread(me).last;
        let inside = !self.thread(me).blocks.is_empty();
        let node = if let Op::RegionEnter(region, kind) = event.op
            && kind == self.kind
        {
            let block = self.blocks.enter(region, step);
            self.thread(me).blocks.push(block);
            if inside { last.node } else { self.graph.begin(last, step) }
        } else if inside {
            for &from in &sources {
                if let Some(cycle) = self.graph.add(from, Occurrence { node: last.node, step }) {
                    self.report_cycle(me, &cycle, out);
                }
            }
            last.node
        } else {
            sources.push(last);
            self.graph.single(&sources, step)
        };
        self.sources = sources;
        let now = Occurrence { node, step };
        self.thread(me).last = now;
        self.conflicts.record(event, &now);
        now
    }

    #[cold]
    fn report_cycle(&mut self, me: ThreadId, cycle: &Cycle, out: &mut Findings) {
        for id in self.common(me, &cycle.exits) {
            let block = self.blocks.get_mut(id);
            if std::mem::replace(&mut block.reported, true) {
                continue;
            }
            let mut places = vec![block.enter.place()];
            if !cycle.blames_last {
                places.extend(cycle.others.iter().map(Step::place));
            }
            for (tail, head) in &cycle.edges {
                places.extend([tail.step.place(), head.step.place()]);
            }
            out.report(finding(Subject::Region(block.region), places));
        }
    }
}

/// Figure 4: conflict freedom.
impl SingleTrack {
    fn check_conflicts(&mut self, event: &Event, now: Occurrence, out: &mut Findings) {
        let me = event.thread;
        let thread = self.order.thread(me);
        let visit = Visit { now, epoch: thread.epoch(), clock: thread.clock() };
        let graph = &self.graph;
        let mut access = |range: Range, write: bool| {
            let mut found: Option<(Range, Step)> = None;
            self.memory.visit(range, |bytes, uses| {
                uses.retain_open(graph);
                found = found.or(uses.conflict(visit, write).map(|step| (bytes, step)));
                uses.record(visit.now, visit.epoch, write);
            });
            found.map(|(bytes, step)| (Subject::Memory(bytes), step))
        };
        let found = match event.op {
            Op::Read(a) => access(a.range(), false),
            Op::Write(a) => access(a.range(), true),
            Op::Atomic(a, op) => access(a.range(), op.writes()),
            Op::Acquire(lock, mode) => {
                let uses = at(&mut self.locks, lock);
                uses.retain_open(graph);
                let found = uses.conflict(visit, mode == Mode::Exclusive);
                self.threads[me.index()].holds.push((lock, now.step));
                found.map(|step| (Subject::Locks(vec![lock]), step))
            }
            Op::Release(lock, mode) => {
                let holds = &mut self.threads[me.index()].holds;
                let acquired = holds.iter().rposition(|(l, _)| *l == lock);
                let step = acquired.map_or(now.step, |i| holds.remove(i).1);
                let uses = at(&mut self.locks, lock);
                uses.retain_open(graph);
                let released = Occurrence { node: now.node, step };
                uses.record(released, visit.epoch, mode == Mode::Exclusive);
                None
            }
            Op::Fence(_)
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => None,
        };
        if let Some((subject, earlier)) = found {
            self.report_conflict(&subject, &earlier, &now.step, out);
        }
    }

    #[cold]
    fn report_conflict(&self, subject: &Subject, a: &Step, b: &Step, out: &mut Findings) {
        for id in self.common(b.thread, &[*a]) {
            let places = vec![self.blocks.get(id).enter.place(), a.place(), b.place()];
            out.report(finding(subject.clone(), places));
        }
    }
}

/// The analysis behind the race-free filter, which tells it of the first race on each byte: what is
/// meant to be run on whole programs.
#[derive(Debug, Default)]
pub struct Filtered {
    filter: RaceFree,
    analysis: SingleTrack,
}

impl Filtered {
    /// Checks regions of a kind, as if they were meant to be deterministic.
    pub fn of(kind: RegionKind) -> Filtered {
        Filtered { filter: RaceFree::new(), analysis: SingleTrack::of(kind) }
    }
}

impl Analysis for Filtered {
    #[inline]
    fn on_event(&mut self, event: &Event, out: &mut Findings) {
        if !self.filter.keep(event) {
            return;
        }
        if let Some(race) = self.filter.first_race() {
            self.analysis.on_first_race(&race, out);
        }
        self.analysis.on_event(event, out);
    }

    fn restart(&mut self) {
        self.filter.restart();
        self.analysis.restart();
    }
}

fn finding(subject: Subject, places: Vec<Place>) -> Finding {
    Finding {
        kind: Kind::DeterminismViolation,
        status: Status::Observed,
        verdict: None,
        analyses: vec![NAME],
        subject,
        places,
        target: None,
        occurrences: 1,
    }
}

fn at(locks: &mut Vec<Uses>, lock: LockId) -> &mut Uses {
    if lock.index() >= locks.len() {
        locks.resize_with(lock.index() + 1, Uses::default);
    }
    &mut locks[lock.index()]
}

/// What a thread brings to an operation.
#[derive(Clone, Copy)]
struct Visit<'a> {
    now: Occurrence,
    epoch: Epoch,
    clock: &'a VectorClock,
}

/// What open transactions have done with some memory or a lock: for each one the last write and the
/// reads since, by thread.
#[derive(Clone, Default, PartialEq, Debug)]
struct Uses(Vec<Use>);

#[derive(Clone, Copy, PartialEq, Debug)]
struct Use {
    by: Occurrence,
    epoch: Epoch,
    write: bool,
}

impl Uses {
    /// Transactions that have ended have no more conflicts.
    fn retain_open(&mut self, graph: &Transactions) {
        self.0.retain(|u| graph.is_open(u.by.node));
    }

    /// An earlier use by the same transaction that conflicts and is not ordered.
    fn conflict(&self, v: Visit<'_>, write: bool) -> Option<Step> {
        let conflicts =
            |u: &&Use| u.by.node == v.now.node && (u.write || write) && !v.clock.contains(u.epoch);
        self.0.iter().find(conflicts).map(|u| u.by.step)
    }

    /// Whatever is forgotten here comes before this use, or has just been reported.
    fn record(&mut self, by: Occurrence, epoch: Epoch, write: bool) {
        self.0.retain(|u| {
            let replaced = write || (!u.write && u.by.step.thread == by.step.thread);
            u.by.node != by.node || !replaced
        });
        self.0.push(Use { by, epoch, write });
    }
}

/// A region as it was entered.
#[derive(Clone, Copy, Debug)]
struct Block {
    region: RegionId,
    enter: Step,
    exited: Option<u64>,
    /// Whether it has been reported not to be serializable.
    reported: bool,
    /// How many threads are in it.
    threads: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct BlockId(u32);

/// The regions that threads are in.
#[derive(Debug, Default)]
struct Blocks {
    table: Vec<Block>,
    free: Vec<BlockId>,
}

impl Blocks {
    fn enter(&mut self, region: RegionId, enter: Step) -> BlockId {
        let block = Block { region, enter, exited: None, reported: false, threads: 1 };
        match self.free.pop() {
            Some(id) => {
                self.table[id.0 as usize] = block;
                id
            }
            None => {
                self.table.push(block);
                BlockId((self.table.len() - 1) as u32)
            }
        }
    }

    fn get(&self, id: BlockId) -> &Block {
        &self.table[id.0 as usize]
    }

    fn get_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.table[id.0 as usize]
    }

    fn hold(&mut self, id: BlockId) {
        self.table[id.0 as usize].threads += 1;
    }

    fn drop(&mut self, id: BlockId) {
        let block = &mut self.table[id.0 as usize];
        block.threads -= 1;
        if block.threads == 0 {
            self.free.push(id);
        }
    }

    fn exit(&mut self, id: BlockId, time: u64) {
        self.table[id.0 as usize].exited = Some(time);
        self.drop(id);
    }

    fn clear(&mut self) {
        self.table.clear();
        self.free.clear();
    }

    fn len(&self) -> usize {
        self.table.len() - self.free.len()
    }
}

/// SingleTrack behind the race-free filter.
pub const ENTRY: Entry = Entry {
    default_in: &[Purpose::Check],
    accesses: Accesses::Racy,
    needs: Needs::DeterministicRegions,
    unfiltered: Some(|| Box::new(SingleTrack::new())),
    ..Entry::of(NAME, "deterministic regions that depend on the schedule (SingleTrack)", || {
        Box::<Filtered>::default()
    })
};
