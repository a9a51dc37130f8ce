//! Sentences about misuse.

use selvedge_model::{Misuse, ObjectKind, Part};

use super::{memory, short, signal};
use crate::case::Memory;

/// What was misused, by name.
pub(super) fn subject(misuse: &Misuse, of: &Memory) -> String {
    match misuse {
        Misuse::ClosedInUse(fd) | Misuse::UsedReused(fd) => format!("descriptor {fd}"),
        Misuse::ChangedErrno(number) | Misuse::UnsafeCall { signal: number, .. } => {
            format!("handler of {}", signal(*number))
        }
        Misuse::NeverJoined => "thread".to_owned(),
        _ => memory(of),
    }
}

/// What is wrong, in half a sentence.
pub(super) fn sentence(misuse: &Misuse, of: &Memory) -> String {
    let name = memory(of);
    let name = short(&name);
    let of_kind = |kind: ObjectKind| format!("the {} `{name}`", object(kind));
    match misuse {
        Misuse::DestroyedHeld(kind) => {
            format!("{} is destroyed while it is locked", of_kind(*kind))
        }
        Misuse::DestroyedAwaited(kind) => {
            format!("{} is destroyed while a thread waits for it", of_kind(*kind))
        }
        Misuse::UsedDestroyed(kind) => {
            format!("{} is used after it was destroyed", of_kind(*kind))
        }
        Misuse::UsedUninitialised(kind) => {
            format!("{} is used before it is initialised", of_kind(*kind))
        }
        Misuse::UnlockedByOther(kind) => {
            format!("{} is unlocked by a thread that does not hold it", of_kind(*kind))
        }
        Misuse::UnlockedFree(kind) => {
            format!("{} is unlocked although no thread holds it", of_kind(*kind))
        }
        Misuse::ClosedInUse(fd) => {
            format!("descriptor {fd} is closed by one thread while another one uses it")
        }
        Misuse::UsedReused(fd) => {
            format!("descriptor {fd} is used after it was closed and the number given out again")
        }
        Misuse::UsedFreed => format!("`{name}` is used after it was freed"),
        Misuse::FreedTwice => format!("`{name}` is freed twice"),
        Misuse::BeyondBlock => "memory behind the end of a heap block is written".to_owned(),
        Misuse::ChangedErrno(number) => {
            format!("the handler of {} changes errno", signal(*number))
        }
        Misuse::UnsafeCall { signal: number, function } => format!(
            "the handler of {} calls `{function}`, which is not async-signal-safe",
            signal(*number)
        ),
        Misuse::NeverJoined => "a thread was neither joined nor detached".to_owned(),
        Misuse::NoEpoch => format!("`{name}` is accessed outside of an access epoch"),
        Misuse::BeyondWindow => format!("`{name}` is accessed and is not in the window"),
        Misuse::FreedInEpoch => format!("`{name}` is freed while an access epoch is open"),
    }
}

fn object(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Mutex => "mutex",
        ObjectKind::RwLock => "reader-writer lock",
        ObjectKind::Spinlock => "spinlock",
        ObjectKind::Condition => "condition variable",
        ObjectKind::Barrier => "barrier",
        ObjectKind::Semaphore => "semaphore",
    }
}

/// The name of a part in JSON.
pub(super) fn role(part: Part) -> &'static str {
    match part {
        Part::Use => "use",
        Part::Destroy => "destroy",
        Part::Lock => "lock",
        Part::Unlock => "unlock",
        Part::WaitFor => "wait-for",
        Part::Close => "close",
        Part::Open => "open",
        Part::Allocate => "allocate",
        Part::Start => "start",
        Part::Install => "install",
        Part::Handle => "handle",
        Part::Call => "call",
    }
}

pub(super) fn verb(part: Part) -> &'static str {
    match part {
        Part::Use => "uses it",
        Part::Destroy => "destroys it",
        Part::Lock => "locks it",
        Part::Unlock => "unlocks it",
        Part::WaitFor => "waits for it",
        Part::Close => "closes it",
        Part::Open => "gets the number again",
        Part::Allocate => "allocates the block",
        Part::Start => "is started",
        Part::Install => "installs the handler",
        Part::Handle => "runs the handler",
        Part::Call => "calls the function",
    }
}

/// Why it is a bug.
pub(crate) fn why(misuse: &Misuse) -> Option<&'static str> {
    Some(match misuse {
        Misuse::DestroyedHeld(_) | Misuse::DestroyedAwaited(_) => {
            "the thread that still needs the object uses memory that may be another object by then"
        }
        Misuse::UsedDestroyed(_) | Misuse::UsedUninitialised(_) => {
            "what the function does with such an object is undefined: it may return an error, wait for ever, or let two threads in"
        }
        Misuse::UnlockedByOther(_) | Misuse::UnlockedFree(_) => {
            "the critical section of another thread may end too early, so that two threads are in it"
        }
        Misuse::ClosedInUse(_) => {
            "nothing orders the two: if the number is given out again in between, the use goes to another file"
        }
        Misuse::UsedReused(_) => "the use goes to another file than the thread believes",
        Misuse::UsedFreed | Misuse::FreedTwice => {
            "the memory may belong to another block by then, or to the allocator"
        }
        Misuse::BeyondBlock => {
            "the memory belongs to the allocator or to another block, whose contents are destroyed"
        }
        Misuse::ChangedErrno(_) => {
            "the code that the signal interrupted may be about to look at errno, and sees the handler's"
        }
        Misuse::UnsafeCall { .. } => {
            "if the signal interrupts the same function or one that shares its state, the program hangs or the state is destroyed"
        }
        Misuse::NeverJoined => "its stack and its result are kept until the process ends",
        Misuse::NoEpoch => {
            "MPI does not say what such an access does: it may end the job, or be made at any time"
        }
        Misuse::BeyondWindow => "it reaches other memory of the target, or ends the job",
        Misuse::FreedInEpoch => {
            "accesses of the epoch need not be complete when the memory is given up"
        }
    })
}

/// What to change in the program.
pub(crate) fn missing(misuse: &Misuse) -> &'static str {
    match misuse {
        Misuse::DestroyedHeld(_) | Misuse::DestroyedAwaited(_) => {
            "destroy the object only after every thread that uses it has been joined or has said that it is done"
        }
        Misuse::UsedDestroyed(_) => {
            "let the last use come before the destruction, by a join for example"
        }
        Misuse::UsedUninitialised(_) => "initialise it before the first thread can use it",
        Misuse::UnlockedByOther(_) | Misuse::UnlockedFree(_) => {
            "unlock only what the same thread has locked; to wake another thread use a semaphore or a condition variable"
        }
        Misuse::ClosedInUse(_) => {
            "wake the other thread (shutdown, or a byte in a pipe), join it, and close the descriptor then"
        }
        Misuse::UsedReused(_) => "forget the number where it is closed, and close it in one place",
        Misuse::UsedFreed | Misuse::FreedTwice => {
            "free the memory once, after its last use, and forget the pointer there"
        }
        Misuse::BeyondBlock => {
            "compare the index with the size that was allocated, or allocate more"
        }
        Misuse::ChangedErrno(_) => {
            "save errno at the beginning of the handler and restore it at the end"
        }
        Misuse::UnsafeCall { .. } => {
            "set a flag of type volatile sig_atomic_t or write to a pipe in the handler, and do the rest elsewhere"
        }
        Misuse::NeverJoined => "join the thread, or detach it",
        Misuse::NoEpoch => {
            "open an epoch before it: MPI_Win_lock, MPI_Win_lock_all, MPI_Win_start or MPI_Win_fence"
        }
        Misuse::BeyondWindow => {
            "compare displacement, count and displacement unit with the size of the target's part of the window"
        }
        Misuse::FreedInEpoch => {
            "end the epoch before: MPI_Win_unlock, MPI_Win_unlock_all or MPI_Win_complete"
        }
    }
}
