//! What the runtime asks the kernel for, and spinlocks, without the C library: it is the program's, and we interpose it.

use core::sync::atomic::{AtomicU32, Ordering};

pub use crate::arch::system::*;

/// `errno` of a failed system call, negated into the result.
pub const EINTR: isize = -4;

const PROT_READ_WRITE: usize = 3;
const MAP_SHARED: usize = 1;
const MAP_PRIVATE: usize = 2;
const MAP_ANONYMOUS: usize = 0x20;
const MAP_NORESERVE: usize = 0x4000;
const MAP_FIXED_NOREPLACE: usize = 0x10_0000;
const MADV_DONTNEED: usize = 4;
const MADV_DONTDUMP: usize = 16;
const MADV_NOHUGEPAGE: usize = 15;

/// Reserves zeroed memory at a fixed place; false if the kernel refuses.
pub fn reserve(at: usize, len: usize) -> bool {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    // SAFETY: NOREPLACE never touches an existing mapping.
    let got = unsafe { call(MMAP, [at, len, PROT_READ_WRITE, flags, usize::MAX, 0]) };
    if got != at as isize {
        return false;
    }
    // SAFETY: advice on the memory just mapped.
    unsafe {
        call(MADVISE, [at, len, MADV_DONTDUMP, 0, 0, 0]);
        call(MADVISE, [at, len, MADV_NOHUGEPAGE, 0, 0, 0]);
    }
    true
}

/// Whether the page at that address is mapped.
pub fn is_mapped(at: usize) -> bool {
    const ASYNC: usize = 1;
    // SAFETY: it writes nothing, and fails if nothing is mapped there.
    unsafe { call(MSYNC, [at, 1, ASYNC, 0, 0, 0]) == 0 }
}

/// Maps a descriptor shared; 0 on failure.
pub fn map_shared(fd: usize, len: usize) -> usize {
    // SAFETY: a fresh mapping chosen by the kernel.
    let got = unsafe { call(MMAP, [0, len, PROT_READ_WRITE, MAP_SHARED, fd, 0]) };
    if got < 0 && got > -4096 { 0 } else { got as usize }
}

/// Whether the number of a descriptor is in use.
pub fn is_open(fd: usize) -> bool {
    const GET_FLAGS: usize = 1;
    // SAFETY: asks only.
    unsafe { call(FCNTL, [fd, GET_FLAGS, 0, 0, 0, 0]) >= 0 }
}

/// Opens what another process of the same user has open under a number, for reading and writing. Fails below 0.
pub fn open_of(process: usize, fd: usize) -> isize {
    const READ_WRITE: usize = 2;
    let (mut path, mut len) = ([0u8; 64], 0);
    let mut add = |byte| {
        path[len] = byte;
        len += 1;
    };
    b"/proc/".iter().for_each(|&byte| add(byte));
    digits(process as u64, &mut add);
    b"/fd/".iter().for_each(|&byte| add(byte));
    digits(fd as u64, &mut add);
    // SAFETY: a terminated string: two numbers of at most 20 digits leave room.
    unsafe { call(OPEN, [path.as_ptr() as usize, READ_WRITE, 0, 0, 0, 0]) }
}

/// Maps zeroed memory of this process; 0 on failure.
pub fn map_private(len: usize) -> usize {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: a fresh mapping chosen by the kernel.
    let got = unsafe { call(MMAP, [0, len, PROT_READ_WRITE, flags, usize::MAX, 0]) };
    if got < 0 && got > -4096 { 0 } else { got as usize }
}

/// Leaves the whole pages of mapped memory out of core dumps.
pub fn leave_out_of_dumps(at: usize, len: usize) {
    const PAGE: usize = 4096;
    let first = at.next_multiple_of(PAGE);
    // SAFETY: advice that changes no content.
    unsafe { call(MADVISE, [first, len - (first - at), MADV_DONTDUMP, 0, 0, 0]) };
}

/// Gives whole pages back; they read as zero afterwards.
///
/// # Safety
/// The pages are private anonymous memory of the runtime, and zero is a valid content.
pub unsafe fn discard(at: usize, len: usize) {
    // SAFETY: the caller's.
    unsafe { call(MADVISE, [at, len, MADV_DONTNEED, 0, 0, 0]) };
}

/// Lets other threads run.
pub fn yield_now() {
    // SAFETY: no memory involved.
    unsafe { call(YIELD, [0; 6]) };
}

/// Sleeps for about that long.
pub fn pause(nanoseconds: u64) {
    let time = [0u64, nanoseconds];
    // SAFETY: `time` is a timespec that outlives the call.
    unsafe { call(NANOSLEEP, [time.as_ptr() as usize, 0, 0, 0, 0, 0]) };
}

/// This process.
pub fn pid() -> u32 {
    // SAFETY: no memory involved.
    unsafe { call(GETPID, [0; 6]) as u32 }
}

/// Whether a process exists.
pub fn alive(pid: u32) -> bool {
    const ESRCH: isize = -3;
    // SAFETY: signal 0 is not delivered.
    unsafe { call(KILL, [pid as usize, 0, 0, 0, 0, 0]) != ESRCH }
}

/// Writes to standard error.
pub fn complain(text: &[u8]) {
    // SAFETY: the slice is readable.
    unsafe { call(WRITE, [2, text.as_ptr() as usize, text.len(), 0, 0, 0]) };
}

/// This thread, as the kernel numbers it.
pub fn tid() -> u32 {
    // SAFETY: no memory involved.
    unsafe { call(GETTID, [0; 6]) as u32 }
}

/// The decimal digits of a number, first digit first.
pub fn digits(mut n: u64, put: &mut impl FnMut(u8)) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    digits[at..].iter().for_each(|&digit| put(digit));
}

/// Writes a number to standard error.
pub fn complain_number(n: u64) {
    let (mut text, mut len) = ([0u8; 20], 0);
    digits(n, &mut |digit| {
        text[len] = digit;
        len += 1;
    });
    complain(&text[..len]);
}

/// Ends the process.
pub fn exit(code: usize) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { call(EXIT_GROUP, [code, 0, 0, 0, 0, 0]) };
    }
}

/// A lock for a few instructions. It never calls the C library, so it can be taken anywhere but in a
/// signal handler that interrupted its holder; `thread::Busy` keeps those away.
#[derive(Default)]
pub struct SpinLock(AtomicU32);

impl SpinLock {
    /// Unlocked.
    pub const fn new() -> SpinLock {
        SpinLock(AtomicU32::new(0))
    }

    /// Waits for the lock; releases it when the guard is dropped.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_> {
        if self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
        SpinGuard(self)
    }

    #[cold]
    fn wait(&self) {
        let mut spins = 0u32;
        while self.0.load(Ordering::Relaxed) != 0
            || self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            spins += 1;
            if spins.is_multiple_of(64) {
                yield_now();
            } else {
                core::hint::spin_loop();
            }
        }
    }

    /// Forgets that it was held: for the child of a fork, where the holder does not exist.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// Holds a [`SpinLock`].
pub struct SpinGuard<'a>(&'a SpinLock);

impl Drop for SpinGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}

/// Ends the program with a message. The exit code is that of "could not be run".
pub fn fatal(message: &[u8]) -> ! {
    complain(message);
    exit(3)
}

/// Whether code that is not instrumented shares a module with code that is, as with Rust's standard library. Such a
/// program says so by defining this symbol.
#[inline]
pub fn is_mixed() -> bool {
    crate::arch::weak!("selvedge_mixed_module") != 0
}
