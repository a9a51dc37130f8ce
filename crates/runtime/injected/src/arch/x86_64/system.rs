//! System calls, without the C library: it is the program's, and we interpose it.

use core::arch::asm;

macro_rules! numbers {
    ($($name:ident = $n:literal;)*) => { $(#[allow(missing_docs)] pub const $name: usize = $n;)* };
}

numbers! {
    READ = 0; WRITE = 1; OPEN = 2; CLOSE = 3; FSTAT = 5; MMAP = 9; MUNMAP = 11; SIGACTION = 13; SIGPROCMASK = 14;
    PWRITE = 18; YIELD = 24; MSYNC = 26; MADVISE = 28; NANOSLEEP = 35; GETPID = 39; KILL = 62; FCNTL = 72;
    GETRLIMIT = 97; SETPGID = 109; PERSONALITY = 135; PRCTL = 157; GETTID = 186; FUTEX = 202; EXIT_GROUP = 231;
    TGKILL = 234; PROCESS_VM_READV = 310; MEMFD_CREATE = 319;
}

/// A raw system call.
///
/// # Safety
/// As for the call itself.
#[inline]
pub unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel preserves everything but rax, rcx and r11; what the call does to memory is
    // the caller's obligation.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}
