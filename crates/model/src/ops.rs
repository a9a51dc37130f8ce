//! Patterns for groups of operations that are often treated alike. A match on an operation names every
//! one, even those that it ignores, so that the compiler points at every match when an operation is added;
//! these patterns keep the lists short.

/// Memory is accessed.
#[macro_export]
macro_rules! accesses {
    () => {
        $crate::Op::Read(_) | $crate::Op::Write(_) | $crate::Op::Atomic(..)
    };
}

/// Locks are acquired and released.
#[macro_export]
macro_rules! locks {
    () => {
        $crate::Op::Acquire(..) | $crate::Op::Release(..)
    };
}

/// Threads begin and end.
#[macro_export]
macro_rules! threads {
    () => {
        $crate::Op::Fork(_) | $crate::Op::Join(_) | $crate::Op::Begin | $crate::Op::End
    };
}

/// Barriers and semaphores.
#[macro_export]
macro_rules! rendezvous {
    () => {
        $crate::Op::Arrive(..) | $crate::Op::Leave(..) | $crate::Op::Post(_) | $crate::Op::Wait(_)
    };
}

/// Condition variables.
#[macro_export]
macro_rules! conditions {
    () => {
        $crate::Op::Notify(..) | $crate::Op::Wake(_)
    };
}

/// Regions and data flow: what a thread says about itself.
#[macro_export]
macro_rules! regions {
    () => {
        $crate::Op::RegionEnter(..)
            | $crate::Op::RegionExit(_)
            | $crate::Op::Flow(_)
            | $crate::Op::Focus(_)
    };
}

/// Memory comes and goes.
#[macro_export]
macro_rules! allocation {
    () => {
        $crate::Op::Alloc(_) | $crate::Op::Free(_)
    };
}
