//! Misuse: what a program does to a synchronization object, a descriptor, a block of memory, a signal
//! handler or a thread, and must not, whatever the schedule.

/// What kind of synchronization object was misused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum ObjectKind {
    Mutex,
    RwLock,
    Spinlock,
    Condition,
    Barrier,
    Semaphore,
}

/// How something was misused.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Misuse {
    /// Destroyed while a thread holds it.
    DestroyedHeld(ObjectKind),
    /// Destroyed while a thread waits for it.
    DestroyedAwaited(ObjectKind),
    /// Used, or destroyed once more, after it was destroyed.
    UsedDestroyed(ObjectKind),
    /// Used before it was initialised.
    UsedUninitialised(ObjectKind),
    /// Unlocked by a thread that does not hold it, while another one does.
    UnlockedByOther(ObjectKind),
    /// Unlocked while no thread holds it.
    UnlockedFree(ObjectKind),
    /// A descriptor is closed by one thread, and nothing orders that with its use by another one.
    ClosedInUse(u32),
    /// A descriptor is used by a thread that knows it to be closed: the number was given out again.
    UsedReused(u32),
    /// Memory is accessed after it was freed.
    UsedFreed,
    /// Memory is freed once more.
    FreedTwice,
    /// Memory behind the end of a block is written.
    BeyondBlock,
    /// The handler of a signal changes `errno`.
    ChangedErrno(i32),
    /// The handler of a signal calls a function that is not async-signal-safe.
    UnsafeCall {
        /// The signal.
        signal: i32,
        /// The function.
        function: Box<str>,
    },
    /// A thread has ended and was neither joined nor detached.
    NeverJoined,
    /// A rank accesses a window outside of an access epoch.
    NoEpoch,
    /// A rank accesses memory that is not in the target's part of a window.
    BeyondWindow,
    /// A rank frees a window while an access epoch is open.
    FreedInEpoch,
}

impl Misuse {
    /// Whether it is about a block of memory.
    pub fn is_of_memory(&self) -> bool {
        matches!(self, Misuse::UsedFreed | Misuse::FreedTwice | Misuse::BeyondBlock)
    }
}

/// A thread's part in a misuse: what it does with what is misused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[allow(missing_docs)]
pub enum Part {
    Use,
    Destroy,
    Lock,
    Unlock,
    WaitFor,
    /// Gives a descriptor up.
    Close,
    /// Gets a descriptor.
    Open,
    /// Allocates a block of memory.
    Allocate,
    /// Starts a thread.
    Start,
    /// Installs a signal handler.
    Install,
    /// Runs a signal handler.
    Handle,
    /// Calls a function that it must not call.
    Call,
}
