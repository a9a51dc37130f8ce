//! What the interposed primitives do under control, in terms of the model. Functions for threads that
//! are not controlled do nothing and say that the real primitive is to be called.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::wire::{Control, Kind, Object, REENTRANT, YIELDS, status};
use super::{Want, event, me, number, point, progress};
use crate::thread::Thread;
use crate::wire::order;

/// Timed out.
pub const ETIMEDOUT: i32 = 110;

/// A mutex was seen that survives the end of its holder.
static ROBUST: AtomicBool = AtomicBool::new(false);

fn object(c: &Control, addr: usize) -> &Object {
    // A point with this object came before, so that there is room is known.
    &c.objects[c.object(addr).unwrap_or(0)]
}

/// Whether the holder of a mutex may lock it again or is told that it must not; others hang.
///
/// # Safety
/// `mutex` is a mutex of the C library.
pub unsafe fn reentrant(mutex: usize) -> bool {
    const KIND: usize = 16;
    const IS_ROBUST: u32 = 16;
    // SAFETY: the kind is the fifth int of the structure.
    let kind = unsafe { ((mutex + KIND) as *const u32).read() };
    if kind & IS_ROBUST != 0 {
        ROBUST.store(true, Relaxed);
    }
    matches!(kind & 3, 1 | 2)
}

/// A thread has ended: the kernel gives up what it held of robust mutexes.
pub fn give_up_robust(c: &Control, thread: usize) {
    const KIND: usize = 16;
    if !ROBUST.load(Relaxed) {
        return;
    }
    let generation = c.generation.load(Relaxed);
    for o in c.objects.iter().filter(|o| o.generation.load(Relaxed) == generation) {
        if o.owner.load(Relaxed) == thread as u32 + 1 {
            let mutex = o.addr.load(Relaxed) as usize;
            // SAFETY: a lock that was held is still there; other locks are at least as long.
            if unsafe { ((mutex + KIND) as *const u32).read() } & 16 != 0 {
                o.owner.store(0, Relaxed);
            }
        }
    }
}

/// Waits until a lock can be acquired; false if the time was over first. The caller acquires it.
pub fn lock(addr: usize, shared: bool, reentrant: bool, deadline: u64, pc: usize) -> bool {
    let Some((c, t)) = me() else { return true };
    if deadline != 0 {
        c.tried.store(1, Relaxed);
    }
    let kind = if shared { Kind::LockShared } else { Kind::Lock };
    let flags = if reentrant { REENTRANT } else { 0 };
    let b = usize::from(deadline != 0);
    point(c, t, &Want { b, flags, deadline, ..Want::new(kind, addr, pc) });
    if deadline == 0 {
        return true;
    }
    let o = object(c, addr);
    let free = o.owner.load(Relaxed) == 0 && (shared || o.readers.load(Relaxed) == 0);
    free || reentrant && o.owner.load(Relaxed) == number(t) as u32 + 1
}

/// Before a lock is acquired if it is free.
pub fn try_lock(addr: usize, shared: bool, pc: usize) {
    let Some((c, t)) = me() else { return };
    c.tried.store(1, Relaxed);
    let kind = if shared { Kind::TryShared } else { Kind::TryLock };
    point(c, t, &Want::new(kind, addr, pc));
    // If it succeeds, `acquired` takes this back.
    progress(c, t, false);
}

/// The lock was acquired. True if the thread is controlled: then there is nothing else to do.
pub fn acquired(addr: usize, shared: bool, pc: usize) -> bool {
    let Some((c, t)) = me() else { return false };
    take(c, t, addr, shared, pc);
    progress(c, t, true);
    true
}

fn take(c: &Control, t: &Thread, addr: usize, shared: bool, pc: usize) {
    let o = object(c, addr);
    if shared {
        o.readers.fetch_add(1, Relaxed);
    } else {
        o.owner.store(number(t) as u32 + 1, Relaxed);
        o.depth.fetch_add(1, Relaxed);
    }
    let kind = if shared { Kind::LockShared } else { Kind::Lock };
    event(c, t, &Want::new(kind, addr, pc));
}

/// The lock is about to be released. True as above.
pub fn releasing(addr: usize, pc: usize) -> bool {
    let Some((c, t)) = me() else { return false };
    if c.flags.load(Relaxed) & super::wire::RELEASES != 0 {
        let kind = if held_shared(c, t, addr) { Kind::UnlockShared } else { Kind::Unlock };
        point(c, t, &Want::new(kind, addr, pc));
    }
    give_back(c, t, addr, pc);
    true
}

fn held_shared(c: &Control, t: &Thread, addr: usize) -> bool {
    let Some(i) = c.object(addr) else { return false };
    let o = &c.objects[i];
    o.owner.load(Relaxed) != number(t) as u32 + 1 && o.readers.load(Relaxed) > 0
}

fn give_back(c: &Control, t: &Thread, addr: usize, pc: usize) {
    let shared = held_shared(c, t, addr);
    let kind = if shared { Kind::UnlockShared } else { Kind::Unlock };
    let o = object(c, addr);
    if shared {
        o.readers.fetch_sub(1, Relaxed);
    } else {
        if o.owner.load(Relaxed) == 0 {
            return;
        }
        let depth = o.depth.load(Relaxed).saturating_sub(1);
        o.depth.store(depth, Relaxed);
        if depth == 0 {
            o.owner.store(0, Relaxed);
        }
    }
    event(c, t, &Want::new(kind, addr, pc));
}

/// The object is no more, or begins anew. True as above.
pub fn renewed(addr: usize) -> bool {
    let Some((c, _)) = me() else { return false };
    c.renew(addr);
    true
}

/// A lock was made: what is known of where tells it from others in every execution.
pub fn made(addr: usize, pc: usize) {
    if let Some((c, t)) = me() {
        c.renew(addr);
        event(c, t, &Want::new(Kind::Init, addr, pc));
    }
}

/// Waits on a condition variable or futex after having been enrolled; false if the time was over.
fn await_notification(c: &Control, t: &mut Thread, addr: usize, deadline: u64, pc: usize) -> bool {
    let me = number(t);
    object(c, addr).waiters.fetch_add(1, Relaxed);
    c.slots[me].eligible.store(0, Relaxed);
    point(c, t, &Want { deadline, ..Want::new(Kind::Wake, addr, pc) });
    let slot = &c.slots[me];
    // It may have been moved to another object meanwhile.
    let o = match slot.object.load(Relaxed) {
        0 => object(c, addr),
        i => &c.objects[i as usize - 1],
    };
    let notified = slot.eligible.load(Relaxed) != 0 && o.permits.load(Relaxed) > 0;
    slot.eligible.store(0, Relaxed);
    o.waiters.fetch_sub(1, Relaxed);
    if notified && o.permits.fetch_sub(1, Relaxed) == 1 {
        // The others were passed over: they need a notification of their own.
        waiters(c, o).for_each(|i| c.slots[i].eligible.store(0, Relaxed));
    }
    event(c, t, &Want::new(Kind::Wake, addr, pc));
    progress(c, t, true);
    notified
}

/// Threads that wait on an object.
fn waiters<'a>(c: &'a Control, o: &'a Object) -> impl Iterator<Item = usize> + 'a {
    (0..c.threads()).filter(move |&i| {
        let s = &c.slots[i];
        let same = |j: u32| j != 0 && core::ptr::eq(&c.objects[j as usize - 1], o);
        s.status.load(Relaxed) == status::WAITING
            && s.kind.load(Relaxed) == Kind::Wake as u32
            && same(s.object.load(Relaxed))
    })
}

/// Lets up to `count` waiters go, whichever are chosen among those that wait now; how many.
fn permit(c: &Control, addr: usize, count: u32) -> u32 {
    let o = object(c, addr);
    let free = o.waiters.load(Relaxed).saturating_sub(o.permits.load(Relaxed));
    let count = count.min(free);
    if count > 0 {
        o.permits.fetch_add(count, Relaxed);
        waiters(c, o).for_each(|i| c.slots[i].eligible.store(1, Relaxed));
    }
    count
}

/// Waits on a condition variable: whether it was notified, or nothing if the thread is not controlled.
/// `unlock` and `relock` work on the real mutex.
pub fn wait_on_condition(
    condition: usize,
    mutex: usize,
    deadline: u64,
    pc: usize,
    unlock: impl FnOnce(),
    relock: impl FnOnce(),
) -> Option<bool> {
    let (c, t) = me()?;
    c.object(mutex);
    let lock_number = c.object(mutex).map_or(0, |i| c.objects[i].number.load(Relaxed));
    point(c, t, &Want { b: lock_number as usize, ..Want::new(Kind::Enroll, condition, pc) });
    give_back(c, t, mutex, pc);
    unlock();
    let notified = await_notification(c, t, condition, deadline, pc);
    point(c, t, &Want::new(Kind::Lock, mutex, pc));
    relock();
    take(c, t, mutex, false, pc);
    Some(notified)
}

/// Wakes waiters of a condition variable. True as above.
pub fn notify(condition: usize, all: bool, pc: usize) -> bool {
    let Some((c, t)) = me() else { return false };
    let kind = if all { Kind::NotifyAll } else { Kind::NotifyOne };
    let want = Want::new(kind, condition, pc);
    point(c, t, &want);
    event(c, t, &want);
    permit(c, condition, if all { u32::MAX } else { 1 });
    progress(c, t, true);
    true
}

/// Waits at a barrier for so many: whether this thread came last.
pub fn barrier(addr: usize, parties: u32, pc: usize) -> Option<bool> {
    let (c, t) = me()?;
    let i = c.object(addr).unwrap_or(0);
    let arrival =
        Want { b: c.objects[i].round.load(Relaxed) as usize, ..Want::new(Kind::Arrive, addr, pc) };
    point(c, t, &arrival);
    let o = object(c, addr);
    let round = o.round.load(Relaxed);
    event(c, t, &Want { b: round as usize, ..arrival });
    let leave = Want { b: round as usize, ..Want::new(Kind::Leave, addr, pc) };
    let last = o.value.fetch_add(1, Relaxed) + 1 >= parties;
    if last {
        o.value.store(0, Relaxed);
        o.round.fetch_add(1, Relaxed);
    } else {
        point(c, t, &leave);
    }
    event(c, t, &leave);
    progress(c, t, true);
    Some(last)
}

/// Before a semaphore of value `value()` is decremented; false if the time was over first. If `once`,
/// it does not wait.
pub fn semaphore(
    addr: usize,
    once: bool,
    deadline: u64,
    pc: usize,
    value: impl Fn() -> u32,
) -> bool {
    let Some((c, t)) = me() else { return true };
    let kind = if once { Kind::TryWait } else { Kind::Wait };
    let i = c.object(addr).unwrap_or(0);
    c.objects[i].value.store(value(), Relaxed);
    point(c, t, &Want { deadline, ..Want::new(kind, addr, pc) });
    progress(c, t, !once);
    once || object(c, addr).value.load(Relaxed) > 0
}

/// It was decremented, or could not be. True as above.
pub fn decremented(addr: usize, taken: bool, pc: usize, value: impl Fn() -> u32) -> bool {
    let Some((c, t)) = me() else { return false };
    object(c, addr).value.store(value(), Relaxed);
    if taken {
        progress(c, t, true);
        event(c, t, &Want::new(Kind::Wait, addr, pc));
    }
    true
}

/// Before a semaphore is incremented.
pub fn post(addr: usize, pc: usize) -> bool {
    let Some((c, t)) = me() else { return false };
    let want = Want::new(Kind::Post, addr, pc);
    point(c, t, &want);
    event(c, t, &want);
    progress(c, t, true);
    true
}

/// After it was.
pub fn posted(addr: usize, value: impl Fn() -> u32) {
    if let Some((c, _)) = me() {
        object(c, addr).value.store(value(), Relaxed);
    }
}

/// Waits until thread `other` (its number plus one) has ended; false if the time was over first.
pub fn join(other: u32, deadline: u64, pc: usize) -> bool {
    let Some((c, t)) = me().filter(|_| other != 0) else { return true };
    point(c, t, &Want { b: other as usize - 1, deadline, ..Want::new(Kind::Join, 0, pc) });
    c.slots[other as usize - 1].status.load(Relaxed) == status::ENDED
}

/// A thread was joined. True as above.
pub fn joined(other: u32, pc: usize) -> bool {
    let Some((c, t)) = me().filter(|_| other != 0) else { return false };
    event(c, t, &Want { b: other as usize - 1, ..Want::new(Kind::Join, 0, pc) });
    true
}

/// What came before at the address is told to come before what follows: acquires there by a load,
/// releases by an update, as an atomic byte would.
pub fn ordered(kind: Kind, addr: usize, pc: usize) {
    if let Some((c, t)) = me() {
        let order = if kind == Kind::Load { order::ACQUIRE } else { order::RELEASE };
        let b = 1 | usize::from(order) << 32;
        event(c, t, &Want { a: addr, b, ..Want::new(kind, 0, pc) });
    }
}

/// Enters a region.
pub fn region_enter(name: usize, len: usize, kind: u8, pc: usize) {
    if let Some((c, t)) = me() {
        let b = usize::from(kind) | len << 8;
        event(c, t, &Want { a: name, b, ..Want::new(Kind::RegionEnter, 0, pc) });
    }
}

/// Leaves a region.
pub fn region_exit(pc: usize) {
    if let Some((c, t)) = me() {
        event(c, t, &Want::new(Kind::RegionExit, 0, pc));
    }
}

/// Gives way.
pub fn yield_now(pc: usize) -> bool {
    let Some((c, t)) = me() else { return false };
    point(c, t, &Want { flags: YIELDS, ..Want::new(Kind::Yield, 0, pc) });
    true
}

/// How waiting for a futex ended.
pub enum Futex {
    /// The word had another value.
    Different,
    /// Somebody woke it.
    Woken,
    /// The time was over.
    TimedOut,
}

/// Waits for a futex, if its word is `value`.
///
/// # Safety
/// `addr` is a futex of the program.
pub unsafe fn futex_wait(addr: usize, value: u32, deadline: u64, pc: usize) -> Option<Futex> {
    let (c, t) = me()?;
    point(c, t, &Want { a: addr, b: 4, ..Want::new(Kind::FutexWait, addr, pc) });
    // SAFETY: the caller's.
    let there = unsafe { (addr as *const u32).read_volatile() };
    if there != value {
        progress(c, t, false);
        return Some(Futex::Different);
    }
    let woken = await_notification(c, t, addr, deadline, pc);
    Some(if woken { Futex::Woken } else { Futex::TimedOut })
}

/// Wakes waiters of a futex: how many.
pub fn futex_wake(addr: usize, count: u32, pc: usize) -> Option<u32> {
    let (c, t) = me()?;
    let want = Want { b: count as usize, ..Want::new(Kind::FutexWake, addr, pc) };
    point(c, t, &want);
    event(c, t, &want);
    progress(c, t, true);
    Some(permit(c, addr, count))
}

/// Wakes some waiters of a futex and lets others wait for another one: how many in all.
pub fn futex_requeue(from: usize, wake: u32, to: usize, limit: u32, pc: usize) -> Option<u32> {
    let woken = futex_wake(from, wake, pc)?;
    let (c, _) = me()?;
    let target = c.object(to)?;
    let o = object(c, from);
    let mut moved = 0;
    while moved < limit && o.waiters.load(Relaxed) > o.permits.load(Relaxed) {
        let Some(i) = waiters(c, o).last() else { break };
        c.slots[i].object.store(target as u32 + 1, Relaxed);
        c.slots[i].eligible.store(0, Relaxed);
        o.waiters.fetch_sub(1, Relaxed);
        c.objects[target].waiters.fetch_add(1, Relaxed);
        moved += 1;
    }
    Some(woken + moved)
}

/// Enters a one-time initialisation when nobody else is in it. `done` tells that it is over.
pub fn enter_once(addr: usize, done: bool, pc: usize) -> bool {
    let Some((c, t)) = me() else { return false };
    if !done {
        point(c, t, &Want::new(Kind::Lock, addr, pc));
    }
    take(c, t, addr, false, pc);
    true
}

/// Leaves it.
pub fn leave_once(addr: usize, pc: usize) -> bool {
    let Some((c, t)) = me() else { return false };
    give_back(c, t, addr, pc);
    true
}
