//! The control memory from the host's side, and the system calls that controlling a program takes. This
//! file and `shm` have the unsafe code of this crate.
//!
//! Ground rules: the mapping lives as long as [`Memory`]; all of it is atomic words, and any content is
//! valid. Numbers that the program wrote are checked before they are used as an index.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use super::wire::{self, Control};
use crate::process;

/// The lowest descriptor that we use; lower ones are left to the program.
const FIRST_FD: i32 = 200;

/// A mapping of [`Control`] that the program maps as well.
#[derive(Debug)]
pub struct Memory {
    fd: OwnedFd,
    at: *mut Control,
}

// SAFETY: the mapping is not tied to a thread, and everything in it is atomic.
unsafe impl Send for Memory {}

impl Memory {
    /// Makes the memory; it takes space only where it is written.
    pub fn new() -> io::Result<Memory> {
        let size = size_of::<Control>();
        let fd = anonymous_file()?;
        // SAFETY: plain system calls; every result is checked before it is used.
        let at = unsafe {
            check(libc::ftruncate(fd.as_raw_fd(), size as libc::off_t))?;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let null = std::ptr::null_mut();
            libc::mmap(null, size, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = Memory { fd, at: at.cast() };
        memory.control().magic.store(wire::MAGIC, Ordering::Relaxed);
        memory.control().version.store(wire::VERSION, Ordering::Relaxed);
        Ok(memory)
    }

    /// The mapped words.
    pub fn control(&self) -> &Control {
        // SAFETY: mapped until drop; all fields are atomic.
        unsafe { &*self.at }
    }

    /// Lets the command's process inherit the memory and die with this process.
    pub fn pass_to(&self, command: &mut Command, processor: Option<usize>) {
        let fd = self.fd.as_raw_fd();
        command.env(wire::ENV_FD, fd.to_string());
        process::keep_apart(command);
        // SAFETY: between fork and exec only async-signal-safe calls are made.
        unsafe {
            command.pre_exec(move || {
                if let Some(processor) = processor {
                    move_to(processor);
                }
                check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
                check(libc::fcntl(fd, libc::F_SETFD, 0)).map(drop)
            });
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our own mapping of this size; `self` is going away, and so are all references into it.
        unsafe { libc::munmap(self.at.cast(), size_of::<Control>()) };
    }
}

/// A file without a name, for a program's output.
pub fn anonymous_file() -> io::Result<OwnedFd> {
    // SAFETY: plain system calls; every result is checked before it is used.
    unsafe {
        let low = check(libc::memfd_create(c"selvedge".as_ptr(), libc::MFD_CLOEXEC))?;
        let low = OwnedFd::from_raw_fd(low);
        let high = check(libc::fcntl(low.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST_FD))?;
        Ok(OwnedFd::from_raw_fd(high))
    }
}

/// Keeps the current thread on one processor while it lives, and programs that it starts for good: host
/// and program take turns, and handing over is twice as fast where nothing has to move.
#[derive(Debug)]
pub struct OneProcessor(libc::cpu_set_t);

impl OneProcessor {
    /// Chooses one of the processors of this thread; each call takes the next.
    pub fn choose() -> Option<(usize, [u64; 16])> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let allowed = allowed()?;
        // SAFETY: a plain bit set; the index is below its size.
        let is_allowed = |&i: &usize| unsafe { libc::CPU_ISSET(i, &allowed) };
        let all: Vec<usize> = (0..1024).filter(is_allowed).collect();
        let mut words = [0u64; 16];
        all.iter().for_each(|&i| words[i / 64] |= 1 << (i % 64));
        let next = NEXT.fetch_add(1, Ordering::Relaxed) as usize;
        Some((*all.get(next % all.len().max(1))?, words))
    }

    /// Stays on the given one.
    pub fn stay(processor: usize) -> Option<OneProcessor> {
        let allowed = allowed()?;
        move_to(processor).then_some(OneProcessor(allowed))
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        // SAFETY: a set that the kernel gave us.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const self.0) };
    }
}

fn allowed() -> Option<libc::cpu_set_t> {
    // SAFETY: a bit set for which zero is valid, of the size that is passed.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let done = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) == 0;
        done.then_some(set)
    }
}

fn move_to(processor: usize) -> bool {
    // SAFETY: a set of processors may be all zero bytes, `CPU_SET` checks its index, and the kernel only
    // reads the set.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

/// Waits until the word may have changed from `value`, for no longer than `timeout`.
pub fn wait(word: &AtomicU32, value: u32, timeout: Duration) {
    let time = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    };
    // SAFETY: a live word and a time that outlive the call. Every result means: look again.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time)
    };
}

/// Wakes all threads that wait for the word to change.
pub fn wake(word: &AtomicU32) {
    // SAFETY: a live word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

type Job = (Command, Sender<io::Result<Child>>);

/// Starts a process from a thread that lives as long as this process: the kernel kills the process
/// when the *thread* that started it ends.
pub fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (send, receive) = channel::<Job>();
        std::thread::spawn(move || {
            while let Ok((mut command, answer)) = receive.recv() {
                // The thread that asked may be gone; then the process is ended.
                if let Err(unwanted) = answer.send(command.spawn())
                    && let Ok(mut child) = unwanted.0
                {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        });
        Mutex::new(send)
    });
    let (send, receive) = channel();
    let job = (command, send);
    let gone = || io::Error::other("the thread that starts programs is gone");
    let sent = spawner.lock().map_err(|_| gone())?.send(job);
    sent.map_err(|_| gone())?;
    receive.recv().map_err(|_| gone())?
}
