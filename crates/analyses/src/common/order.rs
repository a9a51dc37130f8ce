//! The order that synchronization imposes on the events of an execution, as vector clocks.
//!
//! One implementation for every analysis that asks "did this happen before that?". What counts as
//! ordering is chosen with [`Edges`]: all of it for happens-before races, only what no schedule can
//! undo for analyses that reason about other schedules.
//!
//! Sources: the clock rules are those of FastTrack (Flanagan and Freund, PLDI 2009, figures 2 and 3),
//! extended from locks to the rest. Atomics follow C++20 [intro.races]: a release operation heads a
//! release sequence that read-modify-writes continue and any other store ends; fences synchronize
//! through the relaxed accesses after and before them. A sequentially consistent fence or access is
//! an acquire-release one, because the total order of those is not part of happens-before.
//!
//! Deviations, each towards more order (and so towards missing, never towards false alarms): a
//! semaphore wait is ordered after every earlier post, not only the one that it consumed; atomics of
//! different sizes on overlapping memory synchronize; see [`Slots`] for very many threads.
//!
//! A wake-up is *not* ordered after the notification under [`Edges::HAPPENS_BEFORE`]: a condition
//! variable may wake up spuriously, so what orders is the lock that is re-acquired.
//!
//! Cost: O(live threads) for each synchronization event; a plain access costs nothing here.

use rustc_hash::FxHashMap;
use selvedge_model::{
    Access, AtomicOp, BarrierId, Clock, Epoch, Event, Mode, Op, Range, Slot, Slots, ThreadId,
    VectorClock,
};

/// Which synchronization orders events. Program order, fork and join always do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edges {
    /// A release is ordered before later acquisitions of the lock.
    pub locks: bool,
    /// Atomics and fences synchronize by their memory orders.
    pub atomics: bool,
    /// A semaphore post is ordered before later waits, arriving at a barrier before leaving it.
    pub rendezvous: bool,
    /// A notification is ordered before later wake-ups.
    pub notify: bool,
}

impl Edges {
    /// Happens-before as the languages define it.
    pub const HAPPENS_BEFORE: Edges =
        Edges { locks: true, atomics: true, rendezvous: true, notify: false };
    /// What one thread tells another on purpose; not the order in which locks happened to be taken.
    pub const SIGNALS: Edges =
        Edges { locks: false, atomics: false, rendezvous: true, notify: true };
    /// Only which threads were alive together.
    pub const LIFETIMES: Edges =
        Edges { locks: false, atomics: false, rendezvous: false, notify: false };
}

impl Edges {
    /// Whether an operation may order anything. Most do not, and are skipped at once.
    #[inline]
    fn concern(self, op: &Op) -> bool {
        match op {
            Op::Read(_) | Op::Write(_) | regions!() => false,
            Op::Acquire(..) | Op::Release(..) => self.locks,
            Op::Atomic(..) | Op::Fence(_) | allocation!() => self.atomics,
            rendezvous!() => self.rendezvous,
            conditions!() => self.notify,
            threads!() => true,
        }
    }
}

/// The clock of one thread.
#[derive(Debug)]
pub struct Thread {
    slot: Slot,
    epoch: Epoch,
    clock: VectorClock,
    /// What the last release fence published; relaxed stores carry it.
    fence_released: VectorClock,
    /// What relaxed loads have read; the next acquire fence takes it in.
    fence_acquired: VectorClock,
    ended: bool,
}

impl Thread {
    /// The current point of the thread.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What the thread knows: its past and all that is ordered before it.
    #[inline]
    pub fn clock(&self) -> &VectorClock {
        &self.clock
    }

    fn acquire(&mut self, from: &VectorClock) {
        self.clock.join(from);
    }

    /// Starts a new epoch, after what belongs to the old one has been published.
    fn tick(&mut self) {
        self.clock.tick(self.slot);
        self.epoch = self.clock.epoch(self.slot);
    }
}

#[derive(Debug, Default)]
struct Lock {
    exclusive: VectorClock,
    shared: VectorClock,
}

#[derive(Debug, Default)]
struct Round {
    clock: VectorClock,
    inside: usize,
}

/// What an atomic location publishes to those who acquire from it.
#[derive(Debug)]
struct Published {
    access: Access,
    clock: VectorClock,
}

/// The order of the events so far.
#[derive(Debug)]
pub struct Order {
    edges: Edges,
    slots: Slots,
    threads: Vec<Option<Thread>>,
    /// Clocks of threads of executions before, whose memory the next ones use.
    spare: Vec<VectorClock>,
    locks: Vec<Lock>,
    semaphores: Vec<VectorClock>,
    conds: Vec<VectorClock>,
    rounds: FxHashMap<(BarrierId, u32), Round>,
    /// By 16-byte line, the widest that an atomic access can be.
    atomics: FxHashMap<u64, Vec<Published>>,
}

const ATOMIC_LINE: u32 = 4;

impl Order {
    /// No events yet.
    pub fn new(edges: Edges) -> Order {
        Order {
            edges,
            slots: Slots::default(),
            threads: Vec::new(),
            spare: Vec::new(),
            locks: Vec::new(),
            semaphores: Vec::new(),
            conds: Vec::new(),
            rounds: FxHashMap::default(),
            atomics: FxHashMap::default(),
        }
    }

    /// Forgets every event.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.spare.extend(self.threads.drain(..).flatten().map(|thread| thread.clock));
        for lock in &mut self.locks {
            lock.exclusive.clear();
            lock.shared.clear();
        }
        self.semaphores.iter_mut().for_each(VectorClock::clear);
        self.conds.iter_mut().for_each(VectorClock::clear);
        self.rounds.clear();
        self.atomics.clear();
    }

    /// The clock of a thread, which starts now if it has not yet.
    #[inline]
    pub fn thread(&mut self, id: ThreadId) -> &Thread {
        if !matches!(self.threads.get(id.index()), Some(Some(_))) {
            self.start(id, None);
        }
        self.threads[id.index()].as_ref().expect("started above")
    }

    /// The front end counts events itself: what a running thread does from now on has at least this clock.
    pub fn reached(&mut self, id: ThreadId, clock: Clock) {
        self.thread(id);
        let thread = running(&mut self.threads, id);
        if !thread.ended && thread.epoch.clock() < clock {
            thread.clock.set(thread.slot, clock);
            thread.epoch = thread.clock.epoch(thread.slot);
        }
    }

    /// The epoch of a thread that has this clock.
    pub fn epoch_at(&mut self, id: ThreadId, clock: Clock) -> Epoch {
        Epoch::new(self.thread(id).slot, clock)
    }

    /// Which thread was at `epoch`.
    pub fn owner(&self, epoch: Epoch) -> ThreadId {
        self.slots.owner(epoch).unwrap_or(ThreadId(0))
    }

    /// The first half of an event: what is ordered before it becomes known to its thread. An analysis
    /// calls this, then looks at the event, then calls [`Order::release`].
    #[inline]
    pub fn acquire(&mut self, event: &Event) {
        if self.edges.concern(&event.op) {
            self.take_in(event);
        }
    }

    fn take_in(&mut self, event: &Event) {
        self.thread(event.thread);
        let edges = self.edges;
        match event.op {
            Op::Acquire(lock, mode) if edges.locks => {
                let lock = at(&mut self.locks, lock.index());
                let thread = running(&mut self.threads, event.thread);
                thread.acquire(&lock.exclusive);
                if mode == Mode::Exclusive {
                    thread.acquire(&lock.shared);
                }
            }
            Op::Join(child) => self.join(event.thread, child),
            Op::Leave(barrier, round) if edges.rendezvous => {
                if let Some(r) = self.rounds.get_mut(&(barrier, round)) {
                    running(&mut self.threads, event.thread).acquire(&r.clock);
                    r.inside = r.inside.saturating_sub(1);
                }
            }
            Op::Wait(semaphore) if edges.rendezvous => {
                let clock = at(&mut self.semaphores, semaphore.index());
                running(&mut self.threads, event.thread).acquire(clock);
            }
            Op::Wake(cond) if edges.notify => {
                let clock = at(&mut self.conds, cond.index());
                running(&mut self.threads, event.thread).acquire(clock);
            }
            Op::Atomic(access, op) if edges.atomics && op.reads() => {
                self.load(event.thread, access, op);
            }
            Op::Fence(order) if edges.atomics && order.acquires() => {
                let thread = running(&mut self.threads, event.thread);
                let acquired = std::mem::take(&mut thread.fence_acquired);
                thread.acquire(&acquired);
            }
            accesses!()
            | Op::Fence(_)
            | locks!()
            | Op::Fork(_)
            | Op::Begin
            | Op::End
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => {}
        }
    }

    /// The second half of an event: what its thread knows is published to those ordered after it.
    #[inline]
    pub fn release(&mut self, event: &Event) {
        if self.edges.concern(&event.op) {
            self.publish(event);
        }
    }

    fn publish(&mut self, event: &Event) {
        let edges = self.edges;
        let thread = running(&mut self.threads, event.thread);
        match event.op {
            Op::Release(lock, mode) if edges.locks => {
                let lock = at(&mut self.locks, lock.index());
                match mode {
                    Mode::Exclusive => {
                        lock.exclusive.assign(&thread.clock);
                        lock.shared.clear();
                    }
                    Mode::Shared => lock.shared.join(&thread.clock),
                }
                thread.tick();
            }
            Op::Fork(child) => {
                let known = std::mem::take(&mut thread.clock);
                self.start(child, Some(&known));
                let thread = running(&mut self.threads, event.thread);
                thread.clock = known;
                thread.tick();
            }
            Op::End => self.end(event.thread),
            Op::Arrive(barrier, round) if edges.rendezvous => {
                self.arrive(event.thread, barrier, round);
            }
            Op::Post(semaphore) if edges.rendezvous => {
                at(&mut self.semaphores, semaphore.index()).join(&thread.clock);
                thread.tick();
            }
            Op::Notify(cond, _) if edges.notify => {
                at(&mut self.conds, cond.index()).join(&thread.clock);
                thread.tick();
            }
            Op::Atomic(access, op) if edges.atomics && op.writes() => {
                self.store(event.thread, access, op);
            }
            Op::Fence(order) if edges.atomics && order.releases() => {
                thread.fence_released.assign(&thread.clock);
                thread.tick();
            }
            Op::Alloc(range) | Op::Free(range) if edges.atomics => self.forget(range),
            accesses!()
            | Op::Fence(_)
            | locks!()
            | Op::Join(_)
            | Op::Begin
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => {}
        }
    }

    fn start(&mut self, id: ThreadId, known: Option<&VectorClock>) {
        if id.index() >= self.threads.len() {
            self.threads.resize_with(id.index() + 1, || None);
        }
        if self.threads[id.index()].is_some() {
            return;
        }
        let (slot, first) = self.slots.take(id, known);
        let mut clock = self.spare.pop().unwrap_or_default();
        clock.clear();
        if let Some(known) = known {
            clock.assign(known);
        }
        clock.set(slot, first);
        self.threads[id.index()] = Some(Thread {
            slot,
            epoch: clock.epoch(slot),
            clock,
            fence_released: VectorClock::new(),
            fence_acquired: VectorClock::new(),
            ended: false,
        });
    }

    fn end(&mut self, id: ThreadId) {
        let thread = running(&mut self.threads, id);
        if !thread.ended {
            thread.ended = true;
            thread.fence_released = VectorClock::new();
            thread.fence_acquired = VectorClock::new();
            let last = thread.epoch.clock();
            let slot = thread.slot;
            self.slots.retire(slot, last);
        }
    }

    fn join(&mut self, id: ThreadId, child: ThreadId) {
        self.thread(child);
        self.end(child);
        // The child's clock stays: the program may have forked its id into further joins.
        let known = std::mem::take(&mut running(&mut self.threads, child).clock);
        running(&mut self.threads, id).acquire(&known);
        running(&mut self.threads, child).clock = known;
    }

    fn arrive(&mut self, id: ThreadId, barrier: BarrierId, round: u32) {
        if !self.rounds.contains_key(&(barrier, round)) {
            // A thread that comes to a new round has left all but the last one, and so have all threads
            // that it met there; a round is kept longer only for threads that are slow to leave it.
            self.rounds.retain(|&(b, old), r| b != barrier || old + 2 > round || r.inside > 0);
        }
        let thread = running(&mut self.threads, id);
        let r = self.rounds.entry((barrier, round)).or_default();
        r.clock.join(&thread.clock);
        r.inside += 1;
        thread.tick();
    }

    fn load(&mut self, id: ThreadId, access: Access, op: AtomicOp) {
        let acquires = match op {
            AtomicOp::Load(order) => order.acquires(),
            AtomicOp::Update(order) => order.acquires(),
            AtomicOp::Store(_) => false,
        };
        let thread = running(&mut self.threads, id);
        for published in self.atomics.get(&line(access)).into_iter().flatten() {
            if published.access.range().overlaps(access.range()) {
                if acquires {
                    thread.acquire(&published.clock);
                } else {
                    thread.fence_acquired.join(&published.clock);
                }
            }
        }
    }

    fn store(&mut self, id: ThreadId, access: Access, op: AtomicOp) {
        let (releases, continues) = match op {
            AtomicOp::Store(order) => (order.releases(), false),
            AtomicOp::Update(order) => (order.releases(), true),
            AtomicOp::Load(_) => return,
        };
        let thread = running(&mut self.threads, id);
        let clock = if releases { &thread.clock } else { &thread.fence_released };
        let line = self.atomics.entry(line(access)).or_default();
        let mut sequence = clock.clone();
        line.retain(|old| {
            let (mine, theirs) = (access.range(), old.access.range());
            if continues && mine.overlaps(theirs) {
                sequence.join(&old.clock);
            }
            // A store over part of a wider location leaves the rest as it was.
            !(mine.start <= theirs.start && theirs.end() <= mine.end())
        });
        line.push(Published { access, clock: sequence });
        if releases {
            thread.tick();
        }
    }

    fn forget(&mut self, range: Range) {
        let lines = range.start >> ATOMIC_LINE..=range.end().saturating_sub(1) >> ATOMIC_LINE;
        let keep = |line: &mut Vec<Published>| {
            line.retain(|p| !p.access.range().overlaps(range));
            !line.is_empty()
        };
        if (range.len >> ATOMIC_LINE) as usize > self.atomics.len() {
            self.atomics.retain(|key, line| !lines.contains(key) || keep(line));
        } else {
            for key in lines {
                if let Some(line) = self.atomics.get_mut(&key)
                    && !keep(line)
                {
                    self.atomics.remove(&key);
                }
            }
        }
    }
}

fn line(access: Access) -> u64 {
    access.addr >> ATOMIC_LINE
}

fn at<T: Default>(table: &mut Vec<T>, index: usize) -> &mut T {
    if index >= table.len() {
        table.resize_with(index + 1, T::default);
    }
    &mut table[index]
}

fn running(threads: &mut [Option<Thread>], id: ThreadId) -> &mut Thread {
    threads[id.index()].as_mut().expect("`acquire` of this event has started its thread")
}
