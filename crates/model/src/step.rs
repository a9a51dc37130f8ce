//! Steps: what a thread is about to do, before it becomes an event.

use crate::{CondId, Fingerprint, LockId, Mode, Op, Role, SiteId, ThreadId};

/// What a thread does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// It does this and goes on to its next step. An acquisition, join or wait that cannot happen yet
    /// makes its thread not enabled.
    Do(Op),
    /// It tries to acquire and goes on either way.
    TryAcquire(LockId, Mode),
    /// It starts to wait on a condition variable, giving up the lock.
    Enroll(CondId, LockId),
    /// It lets others run, by a yield, a spin hint or a sleep.
    Yield,
    /// Not known yet: it is between two steps, in code of its own or in a system call.
    Busy,
    /// Nothing any more.
    Ended,
}

impl Step {
    /// A number for the kind of step, stable across versions, for fingerprints.
    pub fn kind(self) -> u8 {
        match self {
            Step::Do(op) => match op {
                Op::Read(_) => 1,
                Op::Write(_) => 2,
                Op::Atomic(_, op) => 3 + u8::from(op.writes()) + 2 * u8::from(op.reads()),
                Op::Fence(_) => 7,
                Op::Acquire(_, Mode::Exclusive) => 8,
                Op::Acquire(_, Mode::Shared) => 9,
                Op::Release(..) => 10,
                Op::Fork(_) => 11,
                Op::Join(_) => 12,
                Op::Begin => 13,
                Op::End => 14,
                Op::Arrive(..) => 15,
                Op::Leave(..) => 16,
                Op::Post(_) => 17,
                Op::Wait(_) => 18,
                Op::Notify(..) => 19,
                Op::Wake(_) => 20,
                Op::RegionEnter(..) => 21,
                Op::RegionExit(_) => 22,
                Op::Alloc(_) => 23,
                Op::Free(_) => 24,
                Op::Flow(_) => 30,
                Op::Focus(_) => 31,
            },
            Step::TryAcquire(..) => 25,
            Step::Enroll(..) => 26,
            Step::Yield => 27,
            Step::Ended => 28,
            Step::Busy => 29,
        }
    }
}

impl Step {
    /// Whether the step may matter to atomic blocks of other threads. What a thread says about itself does not, nor
    /// that it begins, ends, starts or joins another.
    pub fn matters(self) -> bool {
        match self {
            Step::Do(threads!() | regions!()) | Step::Yield | Step::Busy | Step::Ended => false,
            Step::Do(accesses!() | locks!() | rendezvous!() | conditions!() | allocation!()) => {
                true
            }
            Step::Do(Op::Fence(_)) | Step::TryAcquire(..) | Step::Enroll(..) => true,
        }
    }

    /// What a thread that cannot take the step waits for, and in which mode if it is a lock.
    pub fn awaited(self) -> (Role, Mode) {
        let role = match self {
            Step::Do(Op::Acquire(lock, mode)) => return (Role::Acquire(lock), mode),
            Step::Do(Op::Join(thread)) => Role::Join(thread),
            Step::Do(Op::Wake(cond)) => Role::Await(cond),
            Step::Do(Op::Wait(semaphore)) => Role::Wait(semaphore),
            Step::Do(Op::Leave(barrier, _) | Op::Arrive(barrier, _)) => Role::Leave(barrier),
            // Nothing else waits by itself.
            Step::Do(_) | Step::TryAcquire(..) | Step::Enroll(..) => Role::Sleep,
            Step::Yield | Step::Busy | Step::Ended => Role::Sleep,
        };
        (role, Mode::Exclusive)
    }
}

/// The next step of a thread, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Where in the source.
    pub site: SiteId,
    /// The [`landmark`](crate::schedule::landmark) of the site.
    pub landmark: u16,
    /// What it does.
    pub step: Step,
}

impl Pending {
    /// What replay recognises the step by.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::new(self.landmark, self.step.kind())
    }

    /// Whether replay recognises the step by this fingerprint. Older schedules know a lock of Rust only by
    /// the atomic updates, the futexes and the wake-ups that it is made of.
    pub fn is_known_by(&self, fingerprint: Fingerprint) -> bool {
        const UPDATE: u8 = 6;
        const LOAD: u8 = 5;
        const WAKE: u8 = 20;
        let former: &[u8] = match self.step {
            Step::Do(Op::Acquire(..)) => &[UPDATE, LOAD, WAKE],
            Step::Do(Op::Release(..)) | Step::TryAcquire(..) => &[UPDATE],
            _ => &[],
        };
        let mut former = former.iter().map(|&kind| Fingerprint::new(self.landmark, kind));
        self.fingerprint() == fingerprint || former.any(|f| f == fingerprint)
    }
}

/// A thread was stopped although it could have gone on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop {
    /// How many events had happened.
    pub at: usize,
    /// The thread.
    pub thread: ThreadId,
    /// What it was about to do.
    pub next: Pending,
}
