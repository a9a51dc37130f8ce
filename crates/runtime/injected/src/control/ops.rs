//! What primitives do under control, in terms of the model: scheduling points, and what they change. What
//! happened is recorded by the [`primitives`](crate::primitives) that call this.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::wire::{self, Control, Object, REENTRANT, YIELDS, status};
use super::{INSTRUMENTED, Want, changed, me, number, point};
use crate::arch::glibc::mutex;
use crate::thread::Thread;
use crate::wire::{ALL, FUTEX, RecordKind, SHARED, TIMED, TRY};

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
/// `lock` is a mutex of the C library.
pub unsafe fn reentrant(lock: usize) -> bool {
    // SAFETY: the caller's.
    let kind = unsafe { mutex::kind(lock) };
    if kind & mutex::ROBUST != 0 {
        ROBUST.store(true, Relaxed);
    }
    matches!(kind & mutex::TYPE, mutex::RECURSIVE | mutex::ERROR_CHECK)
}

/// A thread has ended: the kernel gives up what it held of robust mutexes.
pub fn give_up_robust(c: &Control, thread: usize) {
    if !ROBUST.load(Relaxed) {
        return;
    }
    let generation = c.generation.load(Relaxed);
    for o in c.objects.iter().filter(|o| o.generation.load(Relaxed) == generation) {
        if o.owner.load(Relaxed) == thread as u32 + 1 {
            let lock = o.addr.load(Relaxed) as usize;
            // SAFETY: a lock that was held is still there; other locks are at least as long.
            if unsafe { mutex::kind(lock) } & mutex::ROBUST != 0 {
                o.owner.store(0, Relaxed);
            }
        }
    }
}

fn mode(shared: bool) -> u8 {
    if shared { SHARED } else { 0 }
}

/// Waits until a lock can be acquired; false if the time was over first. The caller acquires it.
pub fn lock(addr: usize, shared: bool, reentrant: bool, deadline: u64, pc: usize) -> bool {
    let Some((c, t)) = me() else { return true };
    if deadline != 0 {
        c.tried.store(1, Relaxed);
    }
    let timed = if deadline != 0 { TIMED } else { 0 };
    let flags = if reentrant { REENTRANT } else { 0 };
    let want = Want::new(RecordKind::Acquire, mode(shared) | timed, pc, addr);
    point(c, t, &Want { flags, deadline, ..want });
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
    point(c, t, &Want::new(RecordKind::Acquire, mode(shared) | TRY, pc, addr));
}

/// The thread has the lock.
pub fn acquired(c: &Control, t: &Thread, addr: usize, shared: bool) {
    let o = object(c, addr);
    if shared {
        o.readers.fetch_add(1, Relaxed);
    } else {
        o.owner.store(number(t) as u32 + 1, Relaxed);
        o.depth.fetch_add(1, Relaxed);
    }
}

/// The thread's last step acquired a lock. That by itself changes nothing for good; but what a thread that is
/// not instrumented writes meanwhile is not seen.
pub fn progressed(c: &Control, t: &Thread) {
    if !INSTRUMENTED.load(Relaxed) {
        changed(c, t);
    }
}

/// Before a lock is released: a scheduling point, if the host asked for releases to be some.
pub fn before_release(c: &Control, t: &mut Thread, addr: usize, pc: usize) {
    if c.flags.load(Relaxed) & wire::RELEASES != 0 {
        let mode = mode(held_shared(c, t, addr));
        point(c, t, &Want::new(RecordKind::Release, mode, pc, addr));
    }
}

fn held_shared(c: &Control, t: &Thread, addr: usize) -> bool {
    let Some(i) = c.object(addr) else { return false };
    let o = &c.objects[i];
    o.owner.load(Relaxed) != number(t) as u32 + 1 && o.readers.load(Relaxed) > 0
}

/// The thread has released the lock. Returns whether it held it for reading; none if no thread held it.
pub fn released(c: &Control, t: &Thread, addr: usize) -> Option<bool> {
    let o = object(c, addr);
    if held_shared(c, t, addr) {
        o.readers.fetch_sub(1, Relaxed);
        return Some(true);
    }
    if o.owner.load(Relaxed) == 0 {
        return None;
    }
    let depth = o.depth.load(Relaxed).saturating_sub(1);
    o.depth.store(depth, Relaxed);
    if depth == 0 {
        o.owner.store(0, Relaxed);
    }
    Some(false)
}

/// Before a thread waits on a condition variable and gives up a lock.
pub fn enroll(c: &Control, t: &mut Thread, condition: usize, mutex: usize, pc: usize) {
    point(c, t, &Want::with(RecordKind::Enroll, 0, pc, condition, mutex));
}

/// Waits on a condition variable or futex after having been enrolled; false if the time was over.
pub fn await_notification(
    c: &Control,
    t: &mut Thread,
    addr: usize,
    flags: u8,
    deadline: u64,
    pc: usize,
) -> bool {
    let me = number(t);
    object(c, addr).waiters.fetch_add(1, Relaxed);
    c.slots[me].eligible.store(0, Relaxed);
    point(c, t, &Want { deadline, ..Want::new(RecordKind::Wake, flags, pc, addr) });
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
        // The others were not woken: each needs a notification of its own.
        waiters(c, o).for_each(|i| c.slots[i].eligible.store(0, Relaxed));
    }
    if notified {
        changed(c, t);
    }
    notified
}

/// Threads that wait on an object.
fn waiters<'a>(c: &'a Control, o: &'a Object) -> impl Iterator<Item = usize> + 'a {
    (0..c.threads()).filter(move |&i| {
        let s = &c.slots[i];
        let same = |j: u32| j != 0 && core::ptr::eq(&c.objects[j as usize - 1], o);
        s.status.load(Relaxed) == status::WAITING
            && s.kind.load(Relaxed) == RecordKind::Wake as u32
            && same(s.object.load(Relaxed))
    })
}

/// Before waiters are woken.
pub fn before_notify(c: &Control, t: &mut Thread, addr: usize, flags: u8, pc: usize) {
    point(c, t, &Want::new(RecordKind::Notify, flags, pc, addr));
}

/// Lets up to `count` waiters go, whichever are chosen among those that wait now; how many.
pub fn notified(c: &Control, t: &Thread, addr: usize, count: u32) -> u32 {
    let o = object(c, addr);
    let free = o.waiters.load(Relaxed).saturating_sub(o.permits.load(Relaxed));
    let count = count.min(free);
    if count > 0 {
        o.permits.fetch_add(count, Relaxed);
        waiters(c, o).for_each(|i| c.slots[i].eligible.store(1, Relaxed));
    }
    if count > 0 {
        changed(c, t);
    }
    count
}

/// The flags of a notification of so many waiters of a futex.
pub fn futex_flags(count: u32) -> u8 {
    if count == 1 { FUTEX } else { FUTEX | ALL }
}

/// Arrives at a barrier: in which round.
pub fn arrive(c: &Control, t: &mut Thread, addr: usize, pc: usize) -> u32 {
    let round = c.object(addr).map_or(0, |i| c.objects[i].round.load(Relaxed));
    point(c, t, &Want::with(RecordKind::Arrive, 0, pc, addr, round as usize));
    object(c, addr).round.load(Relaxed)
}

/// Waits at a barrier until its round is complete: whether this thread came last.
pub fn leave(
    c: &Control,
    t: &mut Thread,
    addr: usize,
    round: u32,
    parties: u32,
    pc: usize,
) -> bool {
    let o = object(c, addr);
    let last = o.value.fetch_add(1, Relaxed) + 1 >= parties;
    if last {
        o.value.store(0, Relaxed);
        o.round.fetch_add(1, Relaxed);
    } else {
        point(c, t, &Want::with(RecordKind::Leave, 0, pc, addr, round as usize));
    }
    changed(c, t);
    last
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
    let flags = if once { TRY } else { 0 };
    object(c, addr).value.store(value(), Relaxed);
    point(c, t, &Want { deadline, ..Want::new(RecordKind::Wait, flags, pc, addr) });
    once || object(c, addr).value.load(Relaxed) > 0
}

/// The semaphore has another value, by this thread or not.
pub fn set_value(c: &Control, t: &Thread, addr: usize, value: u32, by_me: bool) {
    object(c, addr).value.store(value, Relaxed);
    if by_me {
        changed(c, t);
    }
}

/// Before a semaphore is incremented.
pub fn before_post(c: &Control, t: &mut Thread, addr: usize, pc: usize) {
    point(c, t, &Want::new(RecordKind::Post, 0, pc, addr));
}

/// Waits until thread `other` (its number plus one) has ended; false if the time was over first.
pub fn join(other: u32, deadline: u64, pc: usize) -> bool {
    let Some((c, t)) = me().filter(|_| other != 0) else { return true };
    let other = other as usize - 1;
    point(c, t, &Want { deadline, ..Want::new(RecordKind::Join, 0, pc, other) });
    c.slots[other].status.load(Relaxed) == status::ENDED
}

/// Gives way.
pub fn give_way(c: &Control, t: &mut Thread, pc: usize) {
    point(c, t, &Want { flags: YIELDS, ..Want::new(RecordKind::Yield, 0, pc, 0) });
}

/// Gives way; false if the thread is not controlled.
pub fn yield_now(pc: usize) -> bool {
    let Some((c, t)) = me() else { return false };
    give_way(c, t, pc);
    true
}

/// Before a futex is waited for: whether its word is `value`.
///
/// # Safety
/// `addr` is a futex of the program.
pub unsafe fn compare_futex(
    c: &Control,
    t: &mut Thread,
    addr: usize,
    value: u32,
    pc: usize,
) -> bool {
    point(c, t, &Want::with(RecordKind::FutexWait, 0, pc, addr, 4));
    // SAFETY: the caller's.
    unsafe { (addr as *const u32).read_volatile() == value }
}

/// Lets some waiters of a futex wait for another one: how many.
pub fn requeue(c: &Control, from: usize, to: usize, limit: u32) -> u32 {
    let Some(target) = c.object(to) else { return 0 };
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
    moved
}
