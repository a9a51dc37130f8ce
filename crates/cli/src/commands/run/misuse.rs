//! The other thread's part in a misuse, where the program itself does not know it: who holds a lock, and who has
//! destroyed an object. The events say both.

use std::collections::HashMap;

use selvedge_analyses::held::HeldLocks;
use selvedge_model::{LockId, Misuse, Part, Place, Role, SiteId, ThreadId};

/// What is known of synchronization objects, by address.
#[derive(Default)]
pub(super) struct Objects {
    /// The lock that lies there now.
    locks: HashMap<u64, LockId>,
    /// Where the last object there was destroyed.
    destroyed: HashMap<u64, (ThreadId, SiteId)>,
}

impl Objects {
    /// A lock was used there for the first time.
    pub(super) fn lock(&mut self, lock: LockId, addr: u64) {
        self.locks.insert(addr, lock);
    }

    /// The object there was destroyed.
    pub(super) fn destroyed(&mut self, addr: u64, thread: ThreadId, site: SiteId) {
        self.destroyed.insert(addr, (thread, site));
    }

    /// Another part in a misuse of the object there, if it is known. Threads have numbers up to `last`.
    pub(super) fn other(
        &self,
        misuse: &Misuse,
        addr: u64,
        held: &HeldLocks,
        last: ThreadId,
    ) -> Option<Place> {
        let place = |thread, site, part| {
            Some(Place { thread, site, role: Role::Part(part), held: Vec::new() })
        };
        match misuse {
            Misuse::DestroyedHeld(_) | Misuse::UnlockedByOther(_) => {
                let lock = *self.locks.get(&addr)?;
                (0..=last.0).map(ThreadId).find_map(|thread| {
                    let mut all = held.locks(held.set(thread)).iter();
                    place(thread, all.find(|h| h.lock == lock)?.site, Part::Lock)
                })
            }
            Misuse::UsedDestroyed(_) => {
                let &(thread, site) = self.destroyed.get(&addr)?;
                place(thread, site, Part::Destroy)
            }
            Misuse::DestroyedAwaited(_)
            | Misuse::UsedUninitialised(_)
            | Misuse::UnlockedFree(_)
            | Misuse::ClosedInUse(_)
            | Misuse::UsedReused(_)
            | Misuse::UsedFreed
            | Misuse::FreedTwice
            | Misuse::BeyondBlock
            | Misuse::ChangedErrno(_)
            | Misuse::UnsafeCall { .. }
            | Misuse::NeverJoined
            | Misuse::NoEpoch
            | Misuse::BeyondWindow
            | Misuse::FreedInEpoch => None,
        }
    }
}
