//! What controlled types do, in terms of the state of the execution.
//!
//! Every function returns `None` (or false) outside a controlled execution; then the caller does what
//! the standard library does. While a thread unwinds from a panic its steps are not scheduling points: see
//! rule 5 of [`fiber`](super::fiber).

use std::panic::Location;
use std::thread::panicking;
use std::time::Duration;

use selvedge_explore::Step;
use selvedge_model::{
    Access, AtomicOp, BarrierId, CondId, LockId, Mode, Op, RegionId, RegionKind, SemaphoreId,
    ThreadId, UpdateOrder, Wakes,
};

use super::fiber::{switch, with};
use super::objects::{Enabling, Hold};
use super::sites::Place;
use super::slot::Slot;
use super::{Exec, Go};

type Here = &'static Location<'static>;

/// Goes on when the execution says so. An execution that is over never does.
#[inline]
fn settle(go: Go) {
    if go == Go::Switch {
        switch();
    }
}

impl Exec {
    /// A thread that unwinds has to wait, which the executor cannot do: the execution ends here.
    fn stuck_in_unwinding(&mut self, place: Place) -> Go {
        self.tainted = true;
        let why = self.blocked_in_unwinding(place.site);
        self.stop(why)
    }

    /// A point, or if the thread unwinds, nothing or the end.
    #[inline]
    fn point_or_unwind(&mut self, place: Place, step: Step, enabled: bool) -> Go {
        if panicking() {
            return if enabled { Go::On } else { self.stuck_in_unwinding(place) };
        }
        if self.has_readers
            && matches!(step, Step::Do(Op::Acquire(..) | Op::Join(_)))
            && let Some(over) = self.circle(place, step)
        {
            return over;
        }
        self.point(place, step, enabled)
    }

    fn number(&mut self, slot: &Slot, new: impl FnOnce(&mut Exec) -> u32) -> u32 {
        if let Some(number) = slot.get(self.generation) {
            return number;
        }
        let shared = slot.generation() != 0 && self.ends_as_shared(slot);
        let number = new(self);
        // The object stays the other execution's, which would otherwise meet it a second time.
        if !shared {
            slot.set(self.generation, number);
        }
        number
    }

    #[inline]
    fn lock(&mut self, slot: &Slot, here: Here) -> LockId {
        LockId(self.number(slot, |e| e.new_lock(slot.made(), here)))
    }

    fn cond(&mut self, slot: &Slot) -> CondId {
        CondId(self.number(slot, |e| {
            e.made.conds.push(slot.made());
            push(&mut e.conds)
        }))
    }

    fn semaphore(&mut self, slot: &Slot) -> SemaphoreId {
        SemaphoreId(self.number(slot, |e| push(&mut e.semaphores)))
    }

    fn barrier(&mut self, slot: &Slot) -> BarrierId {
        BarrierId(self.number(slot, |e| {
            e.made.barriers.push(slot.made());
            push(&mut e.barriers)
        }))
    }

    #[inline]
    fn memory(&mut self, slot: &Slot) -> Access {
        let number = self.number(slot, |e| e.new_memory(slot.made()));
        memory_at(number)
    }

    fn refresh_lock(&mut self, lock: LockId) {
        if self.locks[lock.index()].has_contenders() {
            let list: Vec<Enabling> = self.locks[lock.index()].enabling().collect();
            self.set_enabled(&list);
        }
    }

    fn refresh_cond(&mut self, cond: CondId) {
        let list: Vec<Enabling> = self.conds[cond.index()].enabling().collect();
        self.set_enabled(&list);
    }

    fn refresh_semaphore(&mut self, semaphore: SemaphoreId) {
        let list: Vec<Enabling> = self.semaphores[semaphore.index()].enabling().collect();
        self.set_enabled(&list);
    }
}

fn push<T: Default>(list: &mut Vec<T>) -> u32 {
    list.push(T::default());
    (list.len() - 1) as u32
}

/// What stands for memory with a number. One byte stands for the whole object: accesses to it never overlap partly.
pub(super) fn memory_at(number: u32) -> Access {
    Access { addr: u64::from(number) * 16, len: 1 }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

// ---- locks ----

/// Acquires, waiting for as long as it takes.
#[inline]
pub(crate) fn acquire(slot: &Slot, hold: impl Into<Hold>, here: Here) -> bool {
    acquire_for(slot, hold.into(), None, here).is_some()
}

/// Acquires, or gives up when the timeout is over: then false.
#[inline]
pub(crate) fn acquire_for(
    slot: &Slot,
    hold: Hold,
    timeout: Option<Duration>,
    here: Here,
) -> Option<bool> {
    let go = with(|e| {
        let place = e.place(here);
        let lock = e.lock(slot, here);
        let me = e.current;
        let free = e.locks[lock.index()].contend(me, hold);
        let mode = hold.mode();
        let step = match timeout {
            None => Step::Do(Op::Acquire(lock, mode)),
            Some(timeout) => {
                e.set_timer(nanos(timeout));
                Step::TryAcquire(lock, mode)
            }
        };
        e.point_or_unwind(place, step, free)
    })?;
    settle(go);
    with(|e| {
        let lock = e.lock(slot, here);
        let me = e.current;
        e.locks[lock.index()].give_up(me);
        if timeout.is_some() {
            e.clear_timer();
            if !e.locks[lock.index()].is_free(hold) {
                return false;
            }
        }
        take_now(e, lock, hold, here);
        true
    })
}

/// Acquires if that is possible at once.
pub(crate) fn try_acquire(slot: &Slot, hold: impl Into<Hold>, here: Here) -> Option<bool> {
    let hold = hold.into();
    let go = with(|e| {
        let place = e.place(here);
        let lock = e.lock(slot, here);
        e.release_points = true;
        e.point_or_unwind(place, Step::TryAcquire(lock, hold.mode()), true)
    })?;
    settle(go);
    with(|e| {
        let lock = e.lock(slot, here);
        let free = e.locks[lock.index()].is_free(hold);
        if free {
            take_now(e, lock, hold, here);
        }
        free
    })
}

#[inline]
fn take_now(e: &mut Exec, lock: LockId, hold: Hold, here: Here) {
    let me = e.current;
    e.locks[lock.index()].take(me, hold);
    e.has_readers |= hold.mode() == Mode::Shared;
    e.refresh_lock(lock);
    let site = e.place(here).site;
    if hold == Hold::Upgrade {
        e.emit(site, Op::Release(lock, Mode::Shared));
    }
    e.emit(site, Op::Acquire(lock, hold.mode()));
}

/// Releases.
#[inline]
pub(crate) fn release(slot: &Slot, hold: impl Into<Hold>, here: Here) {
    let hold = hold.into();
    before_release(slot, hold, here);
    with(|e| release_now(e, slot, hold, here));
}

/// Goes on to hold a lock in another way that needs no waiting.
pub(crate) fn downgrade(slot: &Slot, from: Hold, to: Hold, here: Here) {
    before_release(slot, from, here);
    with(|e| {
        release_now(e, slot, from, here);
        let lock = e.lock(slot, here);
        take_now(e, lock, to, here);
    });
}

#[inline]
fn before_release(slot: &Slot, hold: Hold, here: Here) {
    let go = with(|e| {
        if !e.release_points {
            return Go::On;
        }
        let place = e.place(here);
        let lock = e.lock(slot, here);
        e.point_or_unwind(place, Step::Do(Op::Release(lock, hold.mode())), true)
    });
    settle(go.unwrap_or(Go::On));
}

fn release_now(e: &mut Exec, slot: &Slot, hold: Hold, here: Here) {
    let lock = e.lock(slot, here);
    let me = e.current;
    if e.is_observed() {
        let site = e.place(here).site;
        e.emit(site, Op::Release(lock, hold.mode()));
    }
    e.locks[lock.index()].give_back(me, hold);
    e.refresh_lock(lock);
}

// ---- condition variables ----

/// Starts to wait, giving up the lock. `unlock` gives up what the user's lock guards.
pub(crate) fn enroll(cond: &Slot, lock: &Slot, here: Here, unlock: impl FnOnce()) {
    let go = with(|e| {
        let place = e.place(here);
        let (cond, lock) = (e.cond(cond), e.lock(lock, here));
        e.point_or_unwind(place, Step::Enroll(cond, lock), true)
    });
    settle(go.unwrap_or(Go::On));
    unlock();
    with(|e| {
        let id = e.cond(cond);
        let me = e.current;
        e.conds[id.index()].enroll(me);
        release_now(e, lock, Hold::Exclusive, here);
    });
}

/// Waits until notified, or until the timeout is over: then false. The lock is not acquired again.
pub(crate) fn wait_notified(cond: &Slot, timeout: Option<Duration>, here: Here) -> bool {
    let go = with(|e| {
        let place = e.place(here);
        let id = e.cond(cond);
        if let Some(timeout) = timeout {
            e.set_timer(nanos(timeout));
        }
        let me = e.current;
        let notified = e.conds[id.index()].enabling().any(|(t, on)| t == me && on);
        e.point_or_unwind(place, Step::Do(Op::Wake(id)), notified)
    });
    settle(go.unwrap_or(Go::On));
    with(|e| {
        let id = e.cond(cond);
        e.clear_timer();
        let me = e.current;
        let notified = e.conds[id.index()].leave(me);
        e.refresh_cond(id);
        let site = e.place(here).site;
        e.emit(site, Op::Wake(id));
        notified
    })
    .unwrap_or(true)
}

/// Wakes waiters; says how many.
pub(crate) fn notify(cond: &Slot, wakes: Wakes, here: Here) -> Option<usize> {
    let go = with(|e| {
        let place = e.place(here);
        let id = e.cond(cond);
        e.point_or_unwind(place, Step::Do(Op::Notify(id, wakes)), true)
    })?;
    settle(go);
    with(|e| {
        let id = e.cond(cond);
        let site = e.place(here).site;
        e.emit(site, Op::Notify(id, wakes));
        let woken = match wakes {
            Wakes::One => e.conds[id.index()].notify_one(),
            Wakes::All => e.conds[id.index()].notify_all(),
        };
        e.refresh_cond(id);
        woken
    })
}

// ---- barriers ----

/// Waits for all parties; true for the one that came last.
pub(crate) fn barrier(slot: &Slot, parties: usize, here: Here) -> Option<bool> {
    let go = with(|e| {
        let place = e.place(here);
        let id = e.barrier(slot);
        let round = e.barriers[id.index()].round;
        e.point_or_unwind(place, Step::Do(Op::Arrive(id, round)), true)
    })?;
    settle(go);
    let (leader, go) = with(|e| {
        let place = e.place(here);
        let id = e.barrier(slot);
        let round = e.barriers[id.index()].round;
        e.emit(place.site, Op::Arrive(id, round));
        let me = e.current;
        match e.barriers[id.index()].arrive(me, parties) {
            Some(others) => {
                others.into_iter().for_each(|t| e.enable(t));
                e.emit(place.site, Op::Leave(id, round));
                (true, Go::On)
            }
            None => (false, e.point_or_unwind(place, Step::Do(Op::Leave(id, round)), false)),
        }
    })?;
    if !leader {
        settle(go);
        with(|e| {
            let id = e.barrier(slot);
            if let Step::Do(op @ Op::Leave(..)) = e.pending[e.current.index()].step {
                debug_assert!(matches!(op, Op::Leave(b, _) if b == id));
                let site = e.place(here).site;
                e.emit(site, op);
            }
        });
    }
    Some(leader)
}

// ---- semaphores, for channels and parking ----

/// A point before a semaphore is posted or closed. Between this and [`post`] no other thread runs.
pub(crate) fn before_post(slot: &Slot, here: Here) {
    let go = with(|e| {
        let place = e.place(here);
        let id = e.semaphore(slot);
        e.point_or_unwind(place, Step::Do(Op::Post(id)), true)
    });
    settle(go.unwrap_or(Go::On));
}

/// Adds one, up to `limit`.
pub(crate) fn post(slot: &Slot, limit: usize, here: Here) {
    with(|e| {
        let id = e.semaphore(slot);
        let site = e.place(here).site;
        e.emit(site, Op::Post(id));
        e.semaphores[id.index()].post(limit);
        e.refresh_semaphore(id);
    });
}

/// Lets all threads through from now on.
pub(crate) fn close(slot: &Slot, here: Here) {
    with(|e| {
        let id = e.semaphore(slot);
        let site = e.place(here).site;
        e.emit(site, Op::Post(id));
        e.semaphores[id.index()].close();
        e.refresh_semaphore(id);
    });
}

/// What came of waiting for a semaphore.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waited {
    Taken,
    Closed,
    TimedOut,
}

/// Takes one, waiting for it.
pub(crate) fn wait(slot: &Slot, timeout: Option<Duration>, here: Here) -> Option<Waited> {
    let go = with(|e| {
        let place = e.place(here);
        let id = e.semaphore(slot);
        if let Some(timeout) = timeout {
            e.set_timer(nanos(timeout));
        }
        let me = e.current;
        e.semaphores[id.index()].enroll(me);
        let ready = e.semaphores[id.index()].is_ready();
        e.point_or_unwind(place, Step::Do(Op::Wait(id)), ready)
    })?;
    settle(go);
    with(|e| taken(e, slot, here))
}

/// Takes one if there is one.
pub(crate) fn try_wait(slot: &Slot, here: Here) -> Option<Waited> {
    let go = with(|e| {
        let place = e.place(here);
        let id = e.semaphore(slot);
        e.point_or_unwind(place, Step::Do(Op::Wait(id)), true)
    })?;
    settle(go);
    with(|e| taken(e, slot, here))
}

fn taken(e: &mut Exec, slot: &Slot, here: Here) -> Waited {
    let id = e.semaphore(slot);
    e.clear_timer();
    let me = e.current;
    let closed = e.semaphores[id.index()].is_ready();
    let taken = e.semaphores[id.index()].leave(me);
    e.refresh_semaphore(id);
    if !taken && !closed {
        return Waited::TimedOut;
    }
    let site = e.place(here).site;
    e.emit(site, Op::Wait(id));
    if taken { Waited::Taken } else { Waited::Closed }
}

// ---- memory ----

/// A point before an atomic access. Between this and [`atomic_done`] no other thread runs.
#[inline]
pub(crate) fn atomic(slot: &Slot, op: AtomicOp, here: Here) -> bool {
    let Some(go) = with(|e| {
        let place = e.place(here);
        let access = e.memory(slot);
        e.point_or_unwind(place, Step::Do(Op::Atomic(access, op)), true)
    }) else {
        return false;
    };
    settle(go);
    true
}

/// The access has been made, as `op`.
#[inline]
pub(crate) fn atomic_done(slot: &Slot, op: AtomicOp, here: Here) {
    with(|e| {
        if op.writes() {
            e.driver.fairness.changed(e.current);
        }
        if e.is_observed() {
            let access = e.memory(slot);
            let site = e.place(here).site;
            e.emit(site, Op::Atomic(access, op));
        }
    });
}

/// A fence between threads.
pub(crate) fn fence(order: UpdateOrder, here: Here) -> bool {
    with(|e| {
        let site = e.place(here).site;
        e.emit(site, Op::Fence(order));
    })
    .is_some()
}

/// A plain access is about to be made.
#[inline]
pub(crate) fn access(slot: &Slot, write: bool, here: Here) {
    let go = with(|e| {
        let place = e.place(here);
        let access = e.memory(slot);
        let op = if write { Op::Write(access) } else { Op::Read(access) };
        e.point_or_unwind(place, Step::Do(op), true)
    });
    settle(go.unwrap_or(Go::On));
    with(|e| {
        if e.is_observed() {
            let access = e.memory(slot);
            let site = e.place(here).site;
            e.accessed(site, access, write);
        }
    });
}

/// A cell is destroyed.
pub(crate) fn destroy(slot: &Slot) {
    with(|e| {
        // One that this execution has not met has nothing to tell.
        if slot.get(e.generation).is_some() {
            let cell = e.memory(slot);
            e.destroyed(cell);
        }
    });
}

// ---- threads ----

/// Gives way.
pub(crate) fn yield_now(here: Here) -> bool {
    let Some(go) = with(|e| {
        let place = e.place(here);
        e.point_or_unwind(place, Step::Yield, true)
    }) else {
        return false;
    };
    settle(go);
    true
}

/// Lets virtual time pass. Sleeping orders nothing, so it is a yield.
pub(crate) fn sleep(duration: Duration, here: Here) -> bool {
    with(|e| e.now = e.now.saturating_add(nanos(duration)).saturating_add(1));
    yield_now(here)
}

/// Waits for the end of a thread.
pub(crate) fn join(thread: ThreadId, here: Here) {
    let go = with(|e| {
        let place = e.place(here);
        let ended = e.await_end(thread);
        e.point_or_unwind(place, Step::Do(Op::Join(thread)), ended)
    });
    settle(go.unwrap_or(Go::On));
    with(|e| {
        e.threads[thread.index()].handled = true;
        let site = e.place(here).site;
        e.emit(site, Op::Join(thread));
    });
}

/// The panic of the current thread, if it has one, is handled by another thread.
pub(crate) fn panic_is_handled() {
    with(|e| {
        let me = e.current.index();
        e.threads[me].handled = true;
    });
}

// ---- regions ----

/// Enters a region that claims something of the code inside.
pub(crate) fn enter(name: &str, kind: RegionKind, here: Here) -> Option<RegionId> {
    with(|e| {
        let region = selvedge_model::Region { kind, name: name.into() };
        let id = RegionId(e.symbols.regions.intern(region));
        let site = e.place(here).site;
        e.emit(site, Op::RegionEnter(id, kind));
        e.begin_block(id, name, kind, site);
        id
    })
}

/// Leaves it.
pub(crate) fn exit(region: RegionId, kind: RegionKind, here: Here) {
    with(|e| {
        let site = e.place(here).site;
        e.emit(site, Op::RegionExit(region));
        e.end_block(kind, site);
    });
}

/// Gives a new semaphore its first count.
pub(crate) fn fill(slot: &Slot, count: usize) {
    with(|e| {
        let id = e.semaphore(slot);
        e.semaphores[id.index()].count = count;
    });
}
