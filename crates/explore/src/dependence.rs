//! Which steps of different threads do not commute.
//!
//! Two steps are *independent* if from every state in which both can be taken, taking them in either
//! order leads to the same state and neither keeps the other from being taken. Partial-order reduction
//! and priority sampling are correct for any relation that calls no dependent pair independent; calling
//! an independent pair dependent only costs executions. So where a step's effect is not known in
//! detail, such as the order of messages behind a semaphore, the answer is *dependent*.

use selvedge_model::{Access, Mode, Op, ThreadId};

use crate::Step;

/// Whether the order of the two steps may matter. Steps of the same thread always depend.
pub fn dependent((p, a): (ThreadId, Step), (q, b): (ThreadId, Step)) -> bool {
    p == q || concerns(a, q) || concerns(b, p) || conflict(a, b)
}

/// Whether a step starts or awaits the end of the thread.
fn concerns(step: Step, thread: ThreadId) -> bool {
    matches!(step, Step::Do(Op::Fork(t) | Op::Join(t)) if t == thread)
}

/// The object whose state a step reads or changes.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Object {
    Lock(u32),
    Barrier(u32),
    Semaphore(u32),
    Cond(u32),
}

fn conflict(a: Step, b: Step) -> bool {
    if let (Some((x, wx)), Some((y, wy))) = (memory(a), memory(b)) {
        return (wx || wy) && x.range().overlaps(y.range());
    }
    if shared_lock(a).is_some() && shared_lock(a) == shared_lock(b) {
        return false;
    }
    objects(a).into_iter().flatten().any(|x| objects(b).into_iter().flatten().any(|y| x == y))
}

/// Whether two steps are about the same object or overlapping memory, even if they commute.
pub fn subjects_meet(a: Step, b: Step) -> bool {
    if let (Some((x, _)), Some((y, _))) = (memory(a), memory(b)) {
        return x.range().overlaps(y.range());
    }
    objects(a).into_iter().flatten().any(|x| objects(b).into_iter().flatten().any(|y| x == y))
}

/// What a step touches in memory, and whether it writes.
fn memory(step: Step) -> Option<(Access, bool)> {
    let Step::Do(op) = step else { return None };
    match op {
        Op::Read(access) => Some((access, false)),
        Op::Write(access) => Some((access, true)),
        Op::Atomic(access, op) => Some((access, op.writes())),
        Op::Free(range) | Op::Alloc(range) => {
            let len = u32::try_from(range.len).unwrap_or(u32::MAX);
            Some((Access { addr: range.start, len }, true))
        }
        Op::Fence(_)
        | Op::Acquire(..)
        | Op::Release(..)
        | Op::Fork(_)
        | Op::Join(_)
        | Op::Begin
        | Op::End
        | Op::Arrive(..)
        | Op::Leave(..)
        | Op::Post(_)
        | Op::Wait(_)
        | Op::Notify(..)
        | Op::Wake(_)
        | Op::RegionEnter(..)
        | Op::RegionExit(_)
        | Op::Flow(_)
        | Op::Focus(_) => None,
    }
}

/// The lock that a step acquires or releases in shared mode.
fn shared_lock(step: Step) -> Option<u32> {
    let (lock, mode) = match step {
        Step::TryAcquire(lock, mode) => (lock, mode),
        Step::Do(op) => match op {
            Op::Acquire(lock, mode) | Op::Release(lock, mode) => (lock, mode),
            Op::Read(_)
            | Op::Write(_)
            | Op::Atomic(..)
            | Op::Fence(_)
            | Op::Fork(_)
            | Op::Join(_)
            | Op::Begin
            | Op::End
            | Op::Arrive(..)
            | Op::Leave(..)
            | Op::Post(_)
            | Op::Wait(_)
            | Op::Notify(..)
            | Op::Wake(_)
            | Op::RegionEnter(..)
            | Op::RegionExit(_)
            | Op::Alloc(_)
            | Op::Free(_)
            | Op::Flow(_)
            | Op::Focus(_) => return None,
        },
        Step::Enroll(..) | Step::Yield | Step::Busy | Step::Ended => return None,
    };
    (mode == Mode::Shared).then_some(lock.0)
}

fn objects(step: Step) -> [Option<Object>; 2] {
    use Object::{Barrier, Cond, Lock, Semaphore};
    match step {
        Step::Do(op) => match op {
            Op::Acquire(l, _) | Op::Release(l, _) => [Some(Lock(l.0)), None],
            Op::Arrive(b, _) | Op::Leave(b, _) => [Some(Barrier(b.0)), None],
            Op::Post(s) | Op::Wait(s) => [Some(Semaphore(s.0)), None],
            Op::Notify(c, _) | Op::Wake(c) => [Some(Cond(c.0)), None],
            Op::Read(_)
            | Op::Write(_)
            | Op::Atomic(..)
            | Op::Fence(_)
            | Op::Fork(_)
            | Op::Join(_)
            | Op::Begin
            | Op::End
            | Op::RegionEnter(..)
            | Op::RegionExit(_)
            | Op::Alloc(_)
            | Op::Free(_)
            | Op::Flow(_)
            | Op::Focus(_) => [None, None],
        },
        Step::TryAcquire(l, _) => [Some(Lock(l.0)), None],
        Step::Enroll(c, l) => [Some(Cond(c.0)), Some(Lock(l.0))],
        Step::Yield | Step::Busy | Step::Ended => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_model::{AtomicOp, CondId, LoadOrder, LockId, StoreOrder, Wakes};

    fn between(a: Op, b: Op) -> bool {
        dependent((ThreadId(0), Step::Do(a)), (ThreadId(1), Step::Do(b)))
    }

    #[test]
    fn only_steps_that_do_not_commute_depend() {
        let x = Access { addr: 8, len: 8 };
        let y = Access { addr: 16, len: 8 };
        let load = |a| Op::Atomic(a, AtomicOp::Load(LoadOrder::SeqCst));
        let store = |a| Op::Atomic(a, AtomicOp::Store(StoreOrder::SeqCst));
        assert!(between(load(x), store(x)));
        assert!(!between(load(x), load(x)));
        assert!(!between(store(x), store(y)));
        let acquire = |l, m| Op::Acquire(LockId(l), m);
        assert!(between(acquire(0, Mode::Exclusive), acquire(0, Mode::Shared)));
        assert!(!between(acquire(0, Mode::Shared), acquire(0, Mode::Shared)));
        assert!(!between(acquire(0, Mode::Exclusive), acquire(1, Mode::Exclusive)));
        assert!(between(Op::Fork(ThreadId(1)), load(x)));
        assert!(!between(Op::Fork(ThreadId(2)), load(x)));
    }

    #[test]
    fn enrolling_depends_on_the_lock_and_on_notifications() {
        let enroll = Step::Enroll(CondId(3), LockId(4));
        let with = |op| dependent((ThreadId(0), enroll), (ThreadId(1), Step::Do(op)));
        assert!(with(Op::Notify(CondId(3), Wakes::One)));
        assert!(with(Op::Acquire(LockId(4), Mode::Exclusive)));
        assert!(!with(Op::Notify(CondId(4), Wakes::One)));
    }
}
