//! Where things are in structures of the C library and the kernel.

/// `pthread_mutex_t`.
pub mod mutex {
    /// The futex.
    pub const LOCK: usize = 0;
    /// The id of the thread that holds it.
    pub const OWNER: usize = 8;
    /// How many threads hold it or will want it back.
    pub const USERS: usize = 12;
    /// What kind it is, with further bits.
    pub const KIND: usize = 16;
    /// The kind that lets its holder lock it again.
    pub const RECURSIVE: u32 = 1;
    /// The kind that finds mistakes.
    pub const ERROR_CHECK: u32 = 2;
    /// The bits of the kind that these are of.
    pub const TYPE: u32 = 3;
    /// The bit of those that survive their holder.
    pub const ROBUST: u32 = 16;
    /// What destroying makes of the kind.
    pub const DESTROYED: u32 = u32::MAX;
    /// Bits of the kind that no mutex has.
    pub const NEVER: u32 = 0x7_fc00;

    /// The kinds that do not find mistakes by themselves: normal and adaptive. All other bits say that the owner is
    /// somewhere else, or that there is none.
    pub fn is_simple(kind: u32) -> bool {
        const PROCESS_SHARED: u32 = 128;
        const NOT_ELIDED: u32 = 512;
        matches!(kind & !(PROCESS_SHARED | NOT_ELIDED), 0 | 3)
    }

    /// The kind of a mutex.
    ///
    /// # Safety
    /// `mutex` is the address of one.
    pub unsafe fn kind(mutex: usize) -> u32 {
        // SAFETY: the kind is the fifth int of the structure.
        unsafe { ((mutex + KIND) as *const u32).read() }
    }
}

/// `pthread_rwlock_t`.
#[allow(missing_docs)] // The names say it.
pub mod rwlock {
    pub const READERS: usize = 0;
    /// Not used by the C library.
    pub const MARK: usize = 20;
    pub const WRITER: usize = 24;
    pub const WRITE_LOCKED: u32 = 2;
    pub const COUNT_SHIFT: u32 = 3;
}

/// `pthread_cond_t`.
#[allow(missing_docs)] // The names say it.
pub mod condition {
    /// How many threads are inside a wait, above three flags.
    pub const WAITERS: usize = 36;
    /// One of the flags: waits are timed by the monotonic clock.
    pub const MONOTONIC: u32 = 2;
    pub const DESTROYED: u32 = 4;
    pub const COUNT_SHIFT: u32 = 3;
}

/// `pthread_barrier_t`.
#[allow(missing_docs)] // The names say it.
pub mod barrier {
    pub const COUNT: usize = 8;
    /// Behind what the C library uses.
    pub const MARK: usize = 24;
}

/// `sem_t`.
#[allow(missing_docs)] // The names say it.
pub mod semaphore {
    pub const VALUE: usize = 0;
    pub const WAITERS: usize = 4;
    pub const PRIVATE: usize = 8;
    /// Behind what the C library uses.
    pub const MARK: usize = 16;
}

/// What the kernel hands to a signal handler.
pub mod signal {
    /// From the start of a `ucontext_t` to the saved registers.
    pub const REGISTERS: usize = 40;
    /// Which of them is the stack pointer.
    pub const STACK_POINTER: usize = 15;
    /// From the start of a `ucontext_t` to the signals that are blocked again when the handler returns.
    pub const MASK: usize = 296;
    /// From the start of a `siginfo_t` to the address that could not be accessed.
    pub const ADDRESS: usize = 16;
}
