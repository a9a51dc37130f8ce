//! The shortest way through several synchronization devices from one point to another.
//!
//! A list of the last synchronization events, as Goldilocks has it (Elmas, Qadeer and Tasiran, PLDI 2007), is
//! walked from the earlier point on, and every thread and device that the point has reached remembers by
//! how many edges. Of ways with equally many edges the one whose last edge is acquired last is taken, then the
//! one whose last edge is released last, and so on backwards.
//!
//! A lock orders each release before *all* later acquisitions that it excludes, so the way through a lock that
//! many threads took in between is one edge.
//!
//! **Guarantee**: a way that is found exists, and none has fewer edges. May miss ways that begin before the
//! oldest event of the list.
//!
//! Cost: O(events since the earlier point) for a question. Memory is bounded.

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use selvedge_model::{AtomicOp, Event, Mode, Op, ThreadId};

use super::devices::{Device, Point, Stamp};

/// How many synchronization events are remembered.
pub const LIMIT: usize = 1 << 17;

/// What an edge is due to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum Edge {
    Fork,
    Join,
    Via(Device),
}

/// The last synchronization events.
#[derive(Debug, Default)]
pub struct Log {
    /// Each with its stamp, ascending.
    events: VecDeque<(Stamp, Event)>,
    /// The stamp of the last event before the first of these.
    before: Stamp,
}

impl Log {
    /// Takes in a synchronization event, which has this stamp.
    pub fn push(&mut self, stamp: Stamp, event: &Event) {
        if self.events.len() == LIMIT
            && let Some((stamp, _)) = self.events.pop_front()
        {
            self.before = stamp;
        }
        self.events.push_back((stamp, *event));
    }

    /// Forgets all events.
    pub fn clear(&mut self) {
        self.events.clear();
        self.before = 0;
    }

    /// Whether all events since a point are still there.
    pub fn reaches(&self, from: Point) -> bool {
        from.stamp >= self.before
    }

    /// The edges of a shortest way from a point to the present of a thread, through edges that `allowed`
    /// admits; `None` if there is no way.
    pub fn shortest(
        &self,
        from: Point,
        to: ThreadId,
        allowed: impl Fn(Edge) -> bool,
    ) -> Option<Vec<Edge>> {
        let mut walk = Walk::new(from.thread, allowed);
        if !self.reaches(from) {
            return None;
        }
        let skip = self.events.partition_point(|(stamp, _)| *stamp <= from.stamp);
        self.events.range(skip..).for_each(|(_, event)| walk.take(event));
        let mut edges = Vec::new();
        let mut way = walk.threads.get(&to)?.clone();
        while let Some(last) = way.last.clone() {
            edges.push(last.0);
            way = last.1.clone();
        }
        edges.reverse();
        Some(edges)
    }
}

/// How a place was reached: by how many edges, when, the last edge, and the way before it.
#[derive(Clone, Debug, Default)]
struct Way {
    edges: u32,
    at: usize,
    last: Option<Rc<(Edge, Way)>>,
}

impl Way {
    fn and(&self, edge: Edge) -> Way {
        Way { edges: self.edges + 1, last: Some(Rc::new((edge, self.clone()))), ..*self }
    }
}

/// Takes the better of two ways; of equals the newer.
fn better(old: &mut Option<Way>, new: Option<&Way>) {
    if let Some(new) = new
        && old.as_ref().is_none_or(|old| (new.edges, old.at) <= (old.edges, new.at))
    {
        *old = Some(new.clone());
    }
}

struct Walk<A> {
    allowed: A,
    /// How many events were taken.
    now: usize,
    threads: FxHashMap<ThreadId, Way>,
    /// What releases publish; for locks those in exclusive mode.
    published: FxHashMap<Device, Way>,
    shared: FxHashMap<Device, Way>,
    rounds: FxHashMap<(Device, u32), Way>,
    fences: FxHashMap<ThreadId, Way>,
    pending: FxHashMap<ThreadId, Vec<(Edge, Way)>>,
}

impl<A: Fn(Edge) -> bool> Walk<A> {
    fn new(from: ThreadId, allowed: A) -> Walk<A> {
        Walk {
            allowed,
            now: 0,
            threads: FxHashMap::from_iter([(from, Way::default())]),
            published: FxHashMap::default(),
            shared: FxHashMap::default(),
            rounds: FxHashMap::default(),
            fences: FxHashMap::default(),
            pending: FxHashMap::default(),
        }
    }

    fn take(&mut self, event: &Event) {
        let me = event.thread;
        self.now += 1;
        let now = self.now;
        let mine = self.threads.get(&me).map(|way| Way { at: now, ..way.clone() });
        match event.op {
            Op::Acquire(lock, mode) => {
                let device = Device::Lock(lock);
                let mut from = self.published.get(&device).cloned();
                if mode == Mode::Exclusive {
                    better(&mut from, self.shared.get(&device));
                }
                self.learn(me, Edge::Via(device), from);
            }
            Op::Release(lock, Mode::Exclusive) => {
                publish(&mut self.published, Device::Lock(lock), mine);
            }
            Op::Release(lock, Mode::Shared) => {
                publish(&mut self.shared, Device::Lock(lock), mine);
            }
            Op::Fork(child) => self.learn(child, Edge::Fork, mine),
            Op::Join(child) => {
                let from = self.threads.get(&child).cloned();
                self.learn(me, Edge::Join, from);
            }
            Op::Arrive(barrier, round) => {
                publish(&mut self.rounds, (Device::Barrier(barrier), round), mine);
            }
            Op::Leave(barrier, round) => {
                let device = Device::Barrier(barrier);
                let from = self.rounds.get(&(device, round)).cloned();
                self.learn(me, Edge::Via(device), from);
            }
            Op::Post(semaphore) => {
                publish(&mut self.published, Device::Semaphore(semaphore), mine);
            }
            Op::Wait(semaphore) => {
                let device = Device::Semaphore(semaphore);
                let from = self.published.get(&device).cloned();
                self.learn(me, Edge::Via(device), from);
            }
            Op::Atomic(access, op) => self.atomic(me, Device::Atomic(access.addr), op),
            Op::Fence(order) => {
                if order.acquires() {
                    for (edge, way) in self.pending.remove(&me).unwrap_or_default() {
                        self.learn(me, edge, Some(way));
                    }
                }
                if order.releases() {
                    match self.threads.get(&me).cloned() {
                        Some(way) => _ = self.fences.insert(me, way),
                        None => _ = self.fences.remove(&me),
                    }
                }
            }
            Op::Alloc(range) | Op::Free(range) => self.published.retain(
                |device, _| !matches!(device, Device::Atomic(a) if (range.start..range.end()).contains(a)),
            ),
            Op::Read(_) | Op::Write(_) | conditions!() | regions!() | Op::Begin | Op::End => {}
        }
    }

    fn learn(&mut self, thread: ThreadId, edge: Edge, from: Option<Way>) {
        if let Some(from) = from
            && (self.allowed)(edge)
        {
            publish(&mut self.threads, thread, Some(Way { at: self.now, ..from.and(edge) }));
        }
    }

    fn atomic(&mut self, me: ThreadId, device: Device, op: AtomicOp) {
        let (acquires, releases) = match op {
            AtomicOp::Load(order) => (order.acquires(), false),
            AtomicOp::Store(order) => (false, order.releases()),
            AtomicOp::Update(order) => (order.acquires(), order.releases()),
        };
        let old = self.published.get(&device).cloned();
        if acquires {
            self.learn(me, Edge::Via(device), old.clone());
        } else if op.reads()
            && let Some(old) = &old
        {
            self.pending.entry(me).or_default().push((Edge::Via(device), old.clone()));
        }
        if !op.writes() {
            return;
        }
        let told = if releases { self.threads.get(&me) } else { self.fences.get(&me) };
        let told = told.map(|way| Way { at: self.now, ..way.clone() });
        let mut sequence = if matches!(op, AtomicOp::Update(_)) { old } else { None };
        better(&mut sequence, told.as_ref());
        match sequence {
            Some(way) => _ = self.published.insert(device, way),
            None => _ = self.published.remove(&device),
        }
    }
}

/// Keeps the better way.
fn publish<K: Eq + std::hash::Hash>(ways: &mut FxHashMap<K, Way>, key: K, way: Option<Way>) {
    if let Some(way) = way {
        let mut known = ways.remove(&key);
        better(&mut known, Some(&way));
        ways.extend(known.map(|known| (key, known)));
    }
}
