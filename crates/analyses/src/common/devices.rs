//! What each synchronization device orders by itself: with its own edges and program order, without the help
//! of any other.
//!
//! [`Order`](super::order::Order) says *whether* two events are ordered; this says *by what*. The rules are the
//! same, one device at a time: each device has the clock that it would have if nothing else ordered, and each
//! thread has for each device what it has learned through it. Forks, and joins, count together as one device
//! each; their order is that of the tree of threads.
//!
//! Deviation: atomic variables are told apart by their first byte.
//!
//! **Guarantee**: a device that is said to order does. May miss that one does, for threads that ended, once a
//! device has been used by hundreds of threads; and for atomics of different sizes that overlap.
//!
//! Cost: O(threads that use the device) for a synchronization; a question about one device is a look-up.
//! Memory follows devices and the threads that use them, not events.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use selvedge_model::{
    AtomicOp, BarrierId, Event, LockId, Mode, Op, Range, SemaphoreId, ThreadId, UpdateOrder,
};

/// Something that orders, apart from starting and joining threads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum Device {
    Lock(LockId),
    /// By its first byte.
    Atomic(u64),
    Barrier(BarrierId),
    Semaphore(SemaphoreId),
}

/// A point in an execution: how many synchronization events came before, or a number of the front end's that
/// grows with them ([`Devices::reached`]).
pub type Stamp = u64;

/// One moment of a front end has fewer events than this.
const EVENTS: u64 = 8;

/// The stamp that accesses have between a moment of a front end and the next one.
pub(crate) fn end_of(moment: u64) -> Stamp {
    moment * EVENTS + EVENTS - 1
}

/// A point in the life of a thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Point {
    /// The thread.
    pub thread: ThreadId,
    /// When.
    pub stamp: Stamp,
}

/// Clocks that have more components than this forget threads that have been joined.
const MANY: usize = 256;

/// Up to which point each thread is known.
// invariant: sorted by thread, each once.
#[derive(Clone, PartialEq, Debug, Default)]
struct Reach(Vec<(ThreadId, Stamp)>);

impl Reach {
    fn get(&self, thread: ThreadId) -> Stamp {
        match self.0.binary_search_by_key(&thread, |(t, _)| *t) {
            Ok(i) => self.0[i].1,
            Err(_) => 0,
        }
    }

    fn set(&mut self, thread: ThreadId, stamp: Stamp) {
        match self.0.binary_search_by_key(&thread, |(t, _)| *t) {
            Ok(i) => self.0[i].1 = self.0[i].1.max(stamp),
            Err(i) => self.0.insert(i, (thread, stamp)),
        }
    }

    /// Whether something was learned.
    fn join(&mut self, other: &Reach) -> bool {
        let mut learned = false;
        let mut at = 0;
        for &(thread, stamp) in &other.0 {
            while self.0.get(at).is_some_and(|(t, _)| *t < thread) {
                at += 1;
            }
            match self.0.get_mut(at) {
                Some((known, old)) if *known == thread => {
                    learned |= *old < stamp;
                    *old = stamp.max(*old);
                }
                _ => {
                    self.0.insert(at, (thread, stamp));
                    learned = true;
                }
            }
        }
        learned
    }
}

/// What a thread has learned through a device.
#[derive(Clone, Debug, Default)]
struct Known {
    reach: Reach,
    /// When the thread acquired last.
    acquired: Stamp,
    /// When `reach` changed last, and what it was at the release fence of the given stamp.
    changed: Stamp,
    at_fence: Option<Box<(Stamp, Reach)>>,
}

impl Known {
    fn learn(&mut self, from: &Reach, now: Stamp, fence: Stamp) {
        if self.changed <= fence && fence > 0 {
            self.at_fence = Some(Box::new((fence, self.reach.clone())));
        }
        if self.reach.join(from) {
            self.changed = now;
        }
        self.acquired = now;
    }

    /// What was known at the release fence of the given stamp.
    fn before(&self, fence: Stamp) -> Reach {
        match &self.at_fence {
            _ if self.changed <= fence => self.reach.clone(),
            Some(saved) if saved.0 == fence => saved.1.clone(),
            _ => Reach::default(),
        }
    }
}

#[derive(Debug, Default)]
struct Object {
    /// What releases in exclusive mode, posts and stores have published; and releases in shared mode.
    published: Reach,
    shared: Reach,
    rounds: FxHashMap<u32, (Reach, usize)>,
    /// What each thread has learned through it.
    // invariant: sorted by thread, each once.
    threads: Vec<(ThreadId, Known)>,
}

impl Object {
    fn known(&self, thread: ThreadId) -> Option<&Known> {
        let at = self.threads.binary_search_by_key(&thread, |(t, _)| *t).ok()?;
        Some(&self.threads[at].1)
    }

    /// A thread acquires what was published, and what was published in shared mode if that excludes it.
    fn acquire(&mut self, thread: ThreadId, shared: bool, now: Stamp, fence: Stamp) {
        let Object { published, shared: readers, threads, .. } = self;
        let known = known(threads, thread);
        known.learn(published, now, fence);
        if shared {
            known.learn(readers, now, fence);
        }
    }
}

fn known(threads: &mut Vec<(ThreadId, Known)>, thread: ThreadId) -> &mut Known {
    let at = threads.binary_search_by_key(&thread, |(t, _)| *t).unwrap_or_else(|at| {
        threads.insert(at, (thread, Known::default()));
        at
    });
    &mut threads[at].1
}

/// What is known of devices. Locks are used far more often than the others, and have small numbers.
#[derive(Debug, Default)]
struct Objects {
    locks: Vec<Object>,
    others: FxHashMap<Device, Object>,
}

impl Objects {
    fn get(&self, device: Device) -> Option<&Object> {
        match device {
            Device::Lock(lock) => self.locks.get(lock.index()),
            Device::Atomic(_) | Device::Barrier(_) | Device::Semaphore(_) => {
                self.others.get(&device)
            }
        }
    }

    fn of(&mut self, device: Device) -> &mut Object {
        match device {
            Device::Lock(lock) => {
                if lock.index() >= self.locks.len() {
                    self.locks.resize_with(lock.index() + 1, Object::default);
                }
                &mut self.locks[lock.index()]
            }
            Device::Atomic(_) | Device::Barrier(_) | Device::Semaphore(_) => {
                self.others.entry(device).or_default()
            }
        }
    }
}

#[derive(Debug, Default)]
struct Thread {
    /// The thread that started it, and when.
    started: Option<Point>,
    /// The thread that joined it first.
    joined: Option<ThreadId>,
    /// The last release fence.
    fence: Stamp,
    /// What relaxed loads have read since the last acquire fence.
    pending: Vec<(Device, Reach)>,
    /// The devices that the thread acquired, latest last; older entries of a device are stale.
    recent: Vec<(Stamp, Device)>,
}

/// What each device has ordered so far.
#[derive(Debug, Default)]
pub struct Devices {
    now: Stamp,
    objects: Objects,
    threads: Vec<Thread>,
    /// Atomic variables that publish something.
    atomics: BTreeSet<u64>,
}

impl Devices {
    /// The present point of a thread.
    #[inline]
    pub fn point(&self, thread: ThreadId) -> Point {
        Point { thread, stamp: self.now }
    }

    /// The stamp of the last synchronization event.
    pub fn now(&self) -> Stamp {
        self.now
    }

    /// The front end counts events itself: those so far go up to this stamp.
    pub fn reached(&mut self, stamp: Stamp) {
        self.now = self.now.max(stamp);
    }

    /// Forgets every event.
    pub fn clear(&mut self) {
        *self = Devices::default();
    }

    /// Takes in an event, and says whether it was synchronization.
    pub fn on_event(&mut self, event: &Event) -> bool {
        let me = event.thread;
        match event.op {
            Op::Read(_) | Op::Write(_) | conditions!() | regions!() | Op::Begin | Op::End => {
                return false;
            }
            Op::Alloc(range) | Op::Free(range) => return self.forget(range),
            Op::Atomic(..)
            | Op::Fence(_)
            | locks!()
            | Op::Fork(_)
            | Op::Join(_)
            | rendezvous!() => self.now += 1,
        }
        match event.op {
            Op::Acquire(lock, mode) => {
                let (now, fence) = (self.now, self.thread(me).fence);
                let object = self.object(Device::Lock(lock));
                object.acquire(me, mode == Mode::Exclusive, now, fence);
                self.remember(me, Device::Lock(lock));
            }
            Op::Release(lock, Mode::Exclusive) => {
                // The memory of what was published before is used again.
                let old = std::mem::take(&mut self.object(Device::Lock(lock)).published);
                let mine = self.publishes_in(old, me, Device::Lock(lock));
                let object = self.object(Device::Lock(lock));
                object.published = mine;
                object.shared.0.clear();
            }
            Op::Release(lock, Mode::Shared) => {
                let mine = self.publishes(me, Device::Lock(lock));
                self.object(Device::Lock(lock)).shared.join(&mine);
            }
            Op::Fork(child) => self.thread(child).started = Some(self.point(me)),
            Op::Join(child) => _ = self.thread(child).joined.get_or_insert(me),
            Op::Arrive(barrier, round) => self.arrive(me, barrier, round),
            Op::Leave(barrier, round) => {
                let rounds = &mut self.object(Device::Barrier(barrier)).rounds;
                let Some((reach, inside)) = rounds.get_mut(&round) else { return true };
                *inside = inside.saturating_sub(1);
                let reach = reach.clone();
                self.learn(me, Device::Barrier(barrier), &reach);
            }
            Op::Post(semaphore) => {
                let mine = self.publishes(me, Device::Semaphore(semaphore));
                self.object(Device::Semaphore(semaphore)).published.join(&mine);
            }
            Op::Wait(semaphore) => {
                let from = self.object(Device::Semaphore(semaphore)).published.clone();
                self.learn(me, Device::Semaphore(semaphore), &from);
            }
            Op::Atomic(access, op) => self.atomic(me, access.addr, op),
            Op::Fence(order) => self.fence(me, order),
            Op::Read(_) | Op::Write(_) | conditions!() | regions!() | allocation!() => {}
            Op::Begin | Op::End => {}
        }
        true
    }

    fn object(&mut self, device: Device) -> &mut Object {
        self.objects.of(device)
    }

    fn thread(&mut self, id: ThreadId) -> &mut Thread {
        if id.index() >= self.threads.len() {
            self.threads.resize_with(id.index() + 1, Thread::default);
        }
        &mut self.threads[id.index()]
    }

    fn learn(&mut self, thread: ThreadId, device: Device, from: &Reach) {
        let now = self.now;
        let fence = self.thread(thread).fence;
        known(&mut self.object(device).threads, thread).learn(from, now, fence);
        self.remember(thread, device);
    }

    /// Notes that a thread has acquired a device now.
    fn remember(&mut self, id: ThreadId, device: Device) {
        let now = self.now;
        let recent = &mut self.thread(id).recent;
        match recent.last_mut() {
            Some(last) if last.1 == device => last.0 = now,
            _ => recent.push((now, device)),
        }
        if recent.len() > MANY && recent.len().is_power_of_two() {
            let mut recent = std::mem::take(&mut self.thread(id).recent);
            recent.retain(|&(stamp, device)| {
                let known = self.objects.get(device).and_then(|o| o.known(id));
                known.is_some_and(|k| k.acquired == stamp)
            });
            self.thread(id).recent = recent;
        }
    }

    /// What a thread that releases a device tells those that acquire it.
    fn publishes(&self, thread: ThreadId, device: Device) -> Reach {
        self.publishes_in(Reach::default(), thread, device)
    }

    /// The same, in the memory of another clock.
    fn publishes_in(&self, mut reach: Reach, thread: ThreadId, device: Device) -> Reach {
        let now = self.now;
        match self.objects.get(device).and_then(|o| o.known(thread)) {
            Some(known) => reach.0.clone_from(&known.reach.0),
            None => reach.0.clear(),
        }
        if reach.0.len() > MANY {
            let threads = &self.threads;
            reach.0.retain(|(t, _)| threads.get(t.index()).is_none_or(|t| t.joined.is_none()));
        }
        reach.set(thread, now);
        reach
    }

    fn arrive(&mut self, thread: ThreadId, barrier: BarrierId, round: u32) {
        let mine = self.publishes(thread, Device::Barrier(barrier));
        let rounds = &mut self.object(Device::Barrier(barrier)).rounds;
        // As in `Order`: earlier rounds are kept for threads that are slow to leave them.
        rounds.retain(|&old, (_, inside)| old + 2 > round || *inside > 0);
        let (reach, inside) = rounds.entry(round).or_default();
        reach.join(&mine);
        *inside += 1;
    }

    fn atomic(&mut self, me: ThreadId, addr: u64, op: AtomicOp) {
        let device = Device::Atomic(addr);
        let (acquires, releases) = match op {
            AtomicOp::Load(order) => (order.acquires(), false),
            AtomicOp::Store(order) => (false, order.releases()),
            AtomicOp::Update(order) => (order.acquires(), order.releases()),
        };
        let old = self.object(device).published.clone();
        if acquires {
            self.learn(me, device, &old);
        } else if op.reads() && !old.0.is_empty() {
            let pending = &mut self.thread(me).pending;
            match pending.iter_mut().find(|(d, _)| *d == device) {
                Some((_, reach)) => _ = reach.join(&old),
                None => pending.push((device, old.clone())),
            }
        }
        if !op.writes() {
            return;
        }
        let fence = self.thread(me).fence;
        let mut sequence = if releases {
            self.publishes(me, device)
        } else if fence > 0 {
            let known = self.object(device).known(me);
            let mut reach = known.map_or_else(Reach::default, |k| k.before(fence));
            reach.set(me, fence);
            reach
        } else {
            Reach::default()
        };
        if matches!(op, AtomicOp::Update(_)) {
            sequence.join(&old);
        }
        if !sequence.0.is_empty() {
            self.atomics.insert(addr);
        }
        self.object(device).published = sequence;
    }

    fn fence(&mut self, me: ThreadId, order: UpdateOrder) {
        if order.acquires() {
            for (device, reach) in std::mem::take(&mut self.thread(me).pending) {
                self.learn(me, device, &reach);
            }
        }
        if order.releases() {
            self.thread(me).fence = self.now;
        }
    }

    /// Ends the history of atomic variables, and says whether one had any.
    fn forget(&mut self, range: Range) -> bool {
        if range.len == 0 || self.atomics.is_empty() {
            return false;
        }
        let gone: Vec<u64> = self.atomics.range(range.start..range.end()).copied().collect();
        for addr in &gone {
            self.atomics.remove(addr);
            self.object(Device::Atomic(*addr)).published = Reach::default();
        }
        self.now += u64::from(!gone.is_empty());
        !gone.is_empty()
    }

    /// Whether starting threads orders `from` before the present of `to`.
    pub fn by_fork(&self, from: Point, to: ThreadId) -> bool {
        let mut at = to;
        while at != from.thread {
            match self.threads.get(at.index()).and_then(|t| t.started) {
                // Each thread starts later than the one that starts it.
                Some(started) if started.stamp > from.stamp => at = started.thread,
                _ => return false,
            }
        }
        true
    }

    /// Whether joining threads orders `from` before the present of `to`.
    pub fn by_join(&self, from: Point, to: ThreadId) -> bool {
        let mut at = from.thread;
        let mut left = self.threads.len();
        while at != to {
            match self.threads.get(at.index()).and_then(|t| t.joined) {
                Some(joined) if left > 0 => at = joined,
                _ => return false,
            }
            left -= 1;
        }
        true
    }

    /// Whether a device orders `from` before the present of `to`.
    pub fn by(&self, device: Device, from: Point, to: ThreadId) -> bool {
        let known = self.objects.get(device).and_then(|o| o.known(to));
        from.thread == to || known.is_some_and(|k| k.reach.get(from.thread) > from.stamp)
    }

    /// The devices that a thread has acquired, latest first; some more than once.
    pub fn acquired(&self, thread: ThreadId) -> impl Iterator<Item = Device> + '_ {
        let recent = self.threads.get(thread.index()).map_or(&[][..], |t| &t.recent);
        recent.iter().rev().map(|&(_, device)| device)
    }

    /// Of the devices that order all of `from` before the present of `to`, the one acquired last.
    pub fn latest(&self, from: &[Point], to: ThreadId) -> Option<Device> {
        let since = from.iter().map(|p| p.stamp).max()?;
        let recent = &self.threads.get(to.index())?.recent;
        let acquired = recent.iter().rev().take_while(|(stamp, _)| *stamp > since);
        let mut devices = acquired.map(|&(_, device)| device);
        devices.find(|&device| from.iter().all(|&p| self.by(device, p, to)))
    }
}
