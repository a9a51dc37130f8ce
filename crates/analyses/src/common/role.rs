//! The part an operation plays in a finding.

use selvedge_model::{Op, Role};

/// What a thread does that executes `op`, in the words of a finding.
pub(crate) fn role_of(op: &Op) -> Role {
    match *op {
        Op::Read(_) => Role::Read,
        Op::Write(_) => Role::Write,
        Op::Atomic(_, op) if op.writes() => Role::AtomicWrite,
        Op::Atomic(..) => Role::AtomicRead,
        Op::Acquire(lock, _) => Role::Acquire(lock),
        Op::Release(lock, _) => Role::Release(lock),
        Op::Fork(thread) => Role::Fork(thread),
        Op::Join(thread) => Role::Join(thread),
        Op::Arrive(barrier, _) => Role::Arrive(barrier),
        Op::Leave(barrier, _) => Role::Leave(barrier),
        Op::Post(semaphore) => Role::Post(semaphore),
        Op::Wait(semaphore) => Role::Wait(semaphore),
        Op::RegionEnter(region, _) | Op::RegionExit(region) => Role::Enter(region),
        Op::Free(_) => Role::Free,
        // These conflict with nothing, so that no finding names them.
        Op::Fence(_)
        | Op::Begin
        | Op::End
        | conditions!()
        | Op::Alloc(_)
        | Op::Flow(_)
        | Op::Focus(_) => Role::Read,
    }
}
