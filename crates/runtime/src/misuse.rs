//! Records of misuse become findings.

use selvedge_model::{Misuse, ObjectKind, Part, Role};

use crate::wire::{self, AccessKind, MisuseKind};

/// What a record says, if it is one of a misuse.
pub(crate) fn read(kind: u32, detail: u32) -> Option<Misuse> {
    let object = || object(detail);
    let signal = (detail & 0xff) as i32;
    Some(match MisuseKind::from_number(kind)? {
        MisuseKind::DestroyedHeld => Misuse::DestroyedHeld(object()?),
        MisuseKind::DestroyedAwaited => Misuse::DestroyedAwaited(object()?),
        MisuseKind::UsedDestroyed => Misuse::UsedDestroyed(object()?),
        MisuseKind::UsedUninitialised => Misuse::UsedUninitialised(object()?),
        MisuseKind::UnlockedByOther => Misuse::UnlockedByOther(object()?),
        MisuseKind::UnlockedFree => Misuse::UnlockedFree(object()?),
        MisuseKind::ClosedInUse => Misuse::ClosedInUse(detail),
        MisuseKind::UsedReused => Misuse::UsedReused(detail),
        MisuseKind::UsedFreed => Misuse::UsedFreed,
        MisuseKind::FreedTwice => Misuse::FreedTwice,
        MisuseKind::BeyondBlock => Misuse::BeyondBlock,
        MisuseKind::ChangedErrno => Misuse::ChangedErrno(signal),
        MisuseKind::UnsafeCall => {
            let function = *wire::UNSAFE.get((detail >> 8) as usize)?;
            Misuse::UnsafeCall { signal, function: function.into() }
        }
        MisuseKind::NeverJoined => Misuse::NeverJoined,
    })
}

fn object(detail: u32) -> Option<ObjectKind> {
    Some(match wire::ObjectKind::from_number(detail)? {
        wire::ObjectKind::Mutex => ObjectKind::Mutex,
        wire::ObjectKind::RwLock => ObjectKind::RwLock,
        wire::ObjectKind::Spinlock => ObjectKind::Spinlock,
        wire::ObjectKind::Condition => ObjectKind::Condition,
        wire::ObjectKind::Barrier => ObjectKind::Barrier,
        wire::ObjectKind::Semaphore => ObjectKind::Semaphore,
    })
}

/// Whether the place of the other thread's part comes from shadow memory, which keeps only some bits of it.
pub(crate) fn is_from_shadow(misuse: &Misuse) -> bool {
    use Misuse::{BeyondBlock, ClosedInUse, FreedTwice, UsedFreed};
    matches!(misuse, ClosedInUse(_) | UsedFreed | FreedTwice | BeyondBlock)
}

/// What a side of a race or a part in a misuse is, in the words of findings.
pub(crate) fn role(kind: AccessKind) -> Role {
    match kind {
        AccessKind::Read => Role::Read,
        AccessKind::Write => Role::Write,
        AccessKind::AtomicRead => Role::AtomicRead,
        AccessKind::AtomicWrite => Role::AtomicWrite,
        AccessKind::Free => Role::Free,
        AccessKind::Use => Role::Part(Part::Use),
        AccessKind::Destroy => Role::Part(Part::Destroy),
        AccessKind::Lock => Role::Part(Part::Lock),
        AccessKind::Unlock => Role::Part(Part::Unlock),
        AccessKind::WaitFor => Role::Part(Part::WaitFor),
        AccessKind::Close => Role::Part(Part::Close),
        AccessKind::Open => Role::Part(Part::Open),
        AccessKind::Start => Role::Part(Part::Start),
        AccessKind::Install => Role::Part(Part::Install),
        AccessKind::Handle => Role::Part(Part::Handle),
        AccessKind::Call => Role::Part(Part::Call),
        AccessKind::Allocate => Role::Part(Part::Allocate),
    }
}
