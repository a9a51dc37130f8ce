//! Which steps of different threads do not commute.
//!
//! Two steps are *independent* if from every state in which both can be taken, taking them in either
//! order leads to the same state and neither keeps the other from being taken. Partial-order reduction
//! and priority sampling are correct for any relation that calls no dependent pair independent; calling
//! an independent pair dependent only costs executions. So where a step's effect is not known in
//! detail, such as the order of messages behind a semaphore, the answer is *dependent*.

use selvedge_model::{About, LockId, Mode, Op, Range, ThreadId};

use crate::Step;

/// Whether the order of the two steps may matter. Steps of the same thread always depend.
pub fn dependent((p, a): (ThreadId, Step), (q, b): (ThreadId, Step)) -> bool {
    p == q || concerns(a, q) || concerns(b, p) || conflict(a, b)
}

/// Whether a step starts or awaits the end of the thread.
fn concerns(step: Step, thread: ThreadId) -> bool {
    matches!(step, Step::Do(Op::Fork(t) | Op::Join(t)) if t == thread)
}

fn conflict(a: Step, b: Step) -> bool {
    if let (Some((x, wx)), Some((y, wy))) = (memory(a), memory(b)) {
        return (wx || wy) && x.overlaps(y);
    }
    if shared_lock(a).is_some() && shared_lock(a) == shared_lock(b) {
        return false;
    }
    objects(a).into_iter().flatten().any(|x| objects(b).into_iter().flatten().any(|y| x == y))
}

/// Whether two steps are about the same object or overlapping memory, even if they commute.
pub fn subjects_meet(a: Step, b: Step) -> bool {
    if let (Some((x, _)), Some((y, _))) = (memory(a), memory(b)) {
        return x.overlaps(y);
    }
    objects(a).into_iter().flatten().any(|x| objects(b).into_iter().flatten().any(|y| x == y))
}

/// What a step touches in memory, and whether it writes.
fn memory(step: Step) -> Option<(Range, bool)> {
    match objects(step) {
        [Some(About::Memory(range, writes)), None] => Some((range, writes)),
        _ => None,
    }
}

/// What a step reads or changes that other threads could, too.
fn objects(step: Step) -> [Option<About>; 2] {
    // Being acquired and being released, in either mode, is about the same object.
    let lock = |lock| Some(About::Lock(lock, Mode::Exclusive));
    match step {
        Step::Do(op) => match op.about() {
            About::Lock(id, _) => [lock(id), None],
            About::Thread(_) | About::Region(_) | About::Itself => [None, None],
            about => [Some(about), None],
        },
        Step::TryAcquire(id, _) => [lock(id), None],
        Step::Enroll(cond, id) => [Some(About::Cond(cond)), lock(id)],
        Step::Yield | Step::Busy | Step::Ended => [None, None],
    }
}

/// The lock that a step acquires or releases in shared mode.
fn shared_lock(step: Step) -> Option<LockId> {
    let about = match step {
        Step::Do(op) => op.about(),
        Step::TryAcquire(lock, mode) => About::Lock(lock, mode),
        Step::Enroll(..) | Step::Yield | Step::Busy | Step::Ended => return None,
    };
    match about {
        About::Lock(lock, Mode::Shared) => Some(lock),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_model::{Access, AtomicOp, CondId, LoadOrder, LockId, StoreOrder, Wakes};

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
