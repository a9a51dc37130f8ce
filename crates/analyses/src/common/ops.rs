//! Patterns for groups of operations that an analysis treats alike. A match on an operation names every
//! one, even those that it ignores, so that the compiler points at every match when an operation is added;
//! these patterns keep the lists short.

/// Memory is accessed.
macro_rules! accesses {
    () => {
        Op::Read(_) | Op::Write(_) | Op::Atomic(..)
    };
}

/// Locks are acquired and released.
macro_rules! locks {
    () => {
        Op::Acquire(..) | Op::Release(..)
    };
}

/// Threads begin and end.
macro_rules! threads {
    () => {
        Op::Fork(_) | Op::Join(_) | Op::Begin | Op::End
    };
}

/// Barriers and semaphores.
macro_rules! rendezvous {
    () => {
        Op::Arrive(..) | Op::Leave(..) | Op::Post(_) | Op::Wait(_)
    };
}

/// Condition variables.
macro_rules! conditions {
    () => {
        Op::Notify(..) | Op::Wake(_)
    };
}

/// Regions and data flow: what a thread says about itself.
macro_rules! regions {
    () => {
        Op::RegionEnter(..) | Op::RegionExit(_) | Op::Flow(_) | Op::Focus(_)
    };
}

/// Memory comes and goes.
macro_rules! allocation {
    () => {
        Op::Alloc(_) | Op::Free(_)
    };
}
