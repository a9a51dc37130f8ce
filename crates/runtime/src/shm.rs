//! The shared memory, from the host's side. This is the only file of the host with unsafe code.
//!
//! Ground rules:
//! - The mapping lives as long as [`Shm`]; nothing else owns it here.
//! - The program may write anything at any time, also nonsense: all numbers read from it are checked
//!   before they are used as an index or an enumeration.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use selvedge_model::RegionKind;

use crate::modules::{FunctionRegion, Location, Modules, Resolve};
use crate::process;
use crate::values::Handed;
use crate::wire::{self, Chunk, Lane, RACES, RING, Record, Shared, Side};

/// The lowest descriptor that we use; lower ones are left to the program.
const FIRST_FD: i32 = 200;

/// A copy of a [`wire::Race`].
pub struct RaceRecord {
    /// The access that was there first.
    pub earlier: Side,
    /// The access that found it.
    pub later: Side,
    /// The call stack of the earlier thread, see [`wire::Race::past`].
    pub past: [[u64; 2]; wire::PAST],
    /// The last stamp before it was found.
    pub stamp: u64,
    /// How often the two places raced.
    pub count: u32,
    /// See [`wire::Race::misuse`].
    pub misuse: u32,
    /// See [`wire::Race::detail`].
    pub detail: u32,
}

/// Processes that an observed program started, directly or not, and that carry the runtime. Only races and
/// misuse are looked for in them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Children {
    /// How many there were, with those in which nothing was looked for because there were too many.
    pub all: usize,
    /// How many of those were not observed.
    pub beyond: usize,
    /// How many went on when the program had ended.
    pub running: usize,
    /// How many use MPI. What they communicate is not observed.
    pub ranks: usize,
}

/// How far the memory maps of a program and of the processes that it starts have been written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct MapsState {
    /// How many pieces.
    written: u32,
    /// Bytes that have been given out to pieces.
    pub(crate) len: u32,
}

/// A mapping of [`Shared`] that the program under test maps as well.
#[derive(Debug)]
pub struct Shm {
    fd: OwnedFd,
    at: *mut Shared,
}

// SAFETY: the mapping is not tied to a thread, and all shared parts are atomic or handed over.
unsafe impl Send for Shm {}

impl Shm {
    /// Makes the memory; it takes space only where it is written.
    pub fn new(flags: u32) -> io::Result<Shm> {
        let size = size_of::<Shared>();
        // SAFETY: plain system calls; every result is checked before it is used.
        unsafe {
            let low = check(libc::memfd_create(c"selvedge".as_ptr(), libc::MFD_CLOEXEC))?;
            let low = OwnedFd::from_raw_fd(low);
            let high = check(libc::fcntl(low.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST_FD))?;
            let fd = OwnedFd::from_raw_fd(high);
            check(libc::ftruncate(fd.as_raw_fd(), size as libc::off_t))?;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let at = libc::mmap(
                std::ptr::null_mut(),
                size,
                protection,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            );
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let at = at.cast::<Shared>();
            (&raw mut (*at).header.magic).write(wire::MAGIC);
            (&raw mut (*at).header.version).write(wire::VERSION);
            (&raw mut (*at).header.flags).write(flags);
            (&raw mut (*at).header.size).write(size as u64);
            (&raw mut (*at).header.host).write(std::process::id());
            Ok(Shm { fd, at })
        }
    }

    /// The header and the lanes.
    pub fn shared(&self) -> &Shared {
        // SAFETY: mapped until drop. Everything that the program writes is atomic, except records,
        // races and the map, which are read through raw pointers below.
        unsafe { &*self.at }
    }

    /// Lets the command's process inherit the memory.
    pub fn pass_to(&self, command: &mut Command) {
        let fd: RawFd = self.fd.as_raw_fd();
        command.env(wire::ENV_FD, fd.to_string());
        command.env(wire::ENV_HOST, std::process::id().to_string());
        process::keep_apart(command);
        // SAFETY: between fork and exec only one async-signal-safe call is made.
        unsafe {
            command.pre_exec(move || check(libc::fcntl(fd, libc::F_SETFD, 0)).map(drop));
        }
    }

    /// Takes all new records of a lane.
    pub fn drain(&self, lane: usize, mut take: impl FnMut(Record)) -> usize {
        let Lane { head, tail, .. } = &self.shared().lanes[lane];
        let from = tail.load(Ordering::Relaxed);
        let to = head.load(Ordering::Acquire);
        let count = to.wrapping_sub(from).min(RING as u64);
        for i in from..from + count {
            // SAFETY: within the ring; by the indices the program does not write it now, and any
            // content is a valid record.
            let record = unsafe {
                let ring = (&raw const (*self.at).rings[lane]).cast::<Record>();
                ring.add(i as usize % RING).read_volatile()
            };
            take(record);
        }
        tail.store(from + count, Ordering::Release);
        count as usize
    }

    /// How many races and misuses the program has entered.
    pub(crate) fn races(&self) -> usize {
        (self.shared().header.races.load(Ordering::Acquire) as usize).min(RACES)
    }

    /// Forgets the races and misuses from this number on. No process that could enter one runs.
    pub(crate) fn forget_races(&self, from: usize) {
        for race in &self.shared().races[from.min(RACES)..self.races()] {
            race.done.store(0, Ordering::Relaxed);
        }
        self.shared().header.races.store(from as u32, Ordering::Release);
    }

    /// The race with that number, once it is complete.
    pub fn race(&self, number: usize) -> Option<RaceRecord> {
        let race = self.shared().races.get(number).filter(|_| number < RACES)?;
        if race.done.load(Ordering::Acquire) == 0 {
            return None;
        }
        // SAFETY: complete, so the program writes the sides no more; any content is valid.
        Some(unsafe {
            let count = race.count.load(Ordering::Relaxed);
            let race = &raw const (*self.at).races[number];
            RaceRecord {
                earlier: (&raw const (*race).earlier).read_volatile(),
                later: (&raw const (*race).later).read_volatile(),
                past: (&raw const (*race).past).read_volatile(),
                stamp: (&raw const (*race).stamp).read_volatile(),
                misuse: (&raw const (*race).misuse).read_volatile(),
                detail: (&raw const (*race).detail).read_volatile(),
                count,
            }
        })
    }

    /// How long the end of the program waits for threads that still do something.
    pub fn set_linger(&self, time: Duration) {
        let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        self.shared().header.linger.store(milliseconds, Ordering::Relaxed);
    }

    /// The program's default options and suppressions, each once.
    pub fn defaults(&self, told: &mut [bool; 2]) -> [Option<String>; 2] {
        let header = &self.shared().header;
        let mut words = [&header.options, &header.suppressions].into_iter().zip(told);
        std::array::from_fn(|_| {
            let (word, told) = words.next()?;
            let word = word.load(Ordering::Acquire);
            if *told || word == 0 {
                return None;
            }
            *told = true;
            self.text(word >> 32, word as u32 as usize)
        })
    }

    /// The processes that the program has started.
    pub fn children(&self) -> Children {
        let shared = self.shared();
        let all = shared.header.processes.load(Ordering::Acquire) as usize;
        let numbers = shared.processes.iter().take(all).map(|pid| pid.load(Ordering::Acquire));
        let running = numbers.filter(|&pid| is_running(pid)).count();
        let ranks = shared.header.ranks.load(Ordering::Relaxed) as usize;
        Children { all, beyond: all.saturating_sub(wire::PROCESSES), running, ranks }
    }

    /// Tells the program which functions are regions. Returns how many pieces there was no room for.
    pub fn set_functions(&self, regions: &[FunctionRegion]) -> usize {
        let mut sorted: Vec<&FunctionRegion> = regions.iter().collect();
        sorted.sort_by_key(|r| r.code.start);
        let header = &self.shared().header;
        let unused = header.functions.load(Ordering::Relaxed) >> 31 ^ 1;
        let table = &self.shared().functions[unused as usize];
        for (entry, region) in table.iter().zip(&sorted) {
            let kinds = region.kinds.iter().map(|kind| match kind {
                RegionKind::Atomic => wire::ATOMIC_REGION,
                RegionKind::Deterministic => wire::DETERMINISTIC_REGION,
                // Functions are regions by name of these two kinds only.
                RegionKind::Task
                | RegionKind::Star
                | RegionKind::Commutes
                | RegionKind::Lazy
                | RegionKind::Statement => 0,
            });
            entry.start.store(region.code.start, Ordering::Relaxed);
            entry.end.store(region.code.end, Ordering::Relaxed);
            entry.kinds.store(kinds.fold(0, |a, b| a | b), Ordering::Relaxed);
        }
        let len = sorted.len().min(wire::FUNCTIONS);
        header.functions.store(unused << 31 | len as u32, Ordering::Release);
        sorted.len() - len
    }

    /// Tells the program which locations are states of every block. Returns how many there was no room for.
    pub fn set_globals(&self, locations: &[Location]) -> usize {
        let shared = self.shared();
        let (mut len, mut names) = (0, 0);
        for location in locations {
            let name = location.name.as_bytes();
            let fits = location.path.len() <= wire::GLOBAL_PATH
                && names + name.len() < wire::GLOBAL_NAMES
                && len < wire::GLOBALS;
            if !fits {
                continue;
            }
            // SAFETY: within the names, which the program reads only after it has been told their number.
            unsafe {
                let to = (&raw mut (*self.at).global_names).cast::<u8>().add(names);
                std::ptr::copy_nonoverlapping(name.as_ptr(), to, name.len());
                to.add(name.len()).write(0);
            }
            let global = &shared.globals[len];
            let array = if location.elements.is_some() { wire::call::ARRAY } else { 0 };
            for (word, value) in [
                (&global.name, names as u32),
                (&global.kind, location.kind),
                (&global.array, array),
                (&global.path_len, location.path.len() as u32),
            ] {
                word.store(value, Ordering::Relaxed);
            }
            global.count.store(location.elements.unwrap_or(1), Ordering::Relaxed);
            for (word, &step) in global.path.iter().zip(&location.path) {
                word.store(step, Ordering::Relaxed);
            }
            names += name.len() + 1;
            len += 1;
        }
        shared.header.globals.store(len as u32, Ordering::Release);
        locations.len() - len
    }

    /// A name that the program has left, if it is one.
    pub fn text(&self, at: u64, len: usize) -> Option<String> {
        let at = usize::try_from(at).ok()?;
        if len == 0 || at.checked_add(len)? > wire::TEXTS {
            return None;
        }
        let mut text = vec![0; len];
        // SAFETY: both are valid for `len` bytes; what was named by a record is not written again,
        // and any bytes are valid.
        unsafe {
            let from = (&raw const (*self.at).texts).cast::<u8>().add(at);
            std::ptr::copy_nonoverlapping(from, text.as_mut_ptr(), len);
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// The bytes that a record names in the memory for values.
    pub fn bytes(&self, record: &Record) -> Option<Vec<u8>> {
        let (at, len) = (usize::try_from(record.a).ok()?, usize::try_from(record.b).ok()?);
        if at.checked_add(len)? > wire::VALUES {
            return None;
        }
        let mut bytes = vec![0; len];
        // SAFETY: both are valid for `len` bytes; what a record names is not written again before the record was read, and any bytes
        // are valid.
        unsafe {
            let from = (&raw const (*self.at).values).cast::<u8>().add(at);
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len);
        }
        Some(bytes)
    }

    /// The value that a record names, if there is one.
    pub fn value(&self, record: &Record) -> Option<Handed> {
        let (at, len) = (usize::try_from(record.a).ok()?, usize::try_from(record.b).ok()?);
        let end = at.checked_add(len)?;
        if !at.is_multiple_of(8) || len < size_of::<Chunk>() || end > wire::VALUES {
            return None;
        }
        // SAFETY: within the values, and aligned; what a record names is not written again before the record was read, and
        // any content is a valid chunk.
        let chunk = unsafe {
            (&raw const (*self.at).values).cast::<u8>().add(at).cast::<Chunk>().read_volatile()
        };
        let name_len = chunk.name_len as usize;
        let bytes = usize::try_from(chunk.bytes).ok()?;
        if size_of::<Chunk>().checked_add(name_len)?.checked_add(bytes)? != len {
            return None;
        }
        // Values may be large, so they are copied once, into memory that nothing has filled before.
        let copied = |from: usize, len: usize| {
            let mut copy = Vec::with_capacity(len);
            // SAFETY: within the values, see above; the new memory has room for that many bytes, and any content of
            // them is valid.
            unsafe {
                let from = (&raw const (*self.at).values).cast::<u8>().add(from);
                std::ptr::copy_nonoverlapping(from, copy.as_mut_ptr(), len);
                copy.set_len(len);
            }
            copy
        };
        let name: Vec<u8> = copied(at + size_of::<Chunk>(), name_len);
        let bytes = copied(at + size_of::<Chunk>() + name_len, bytes);
        Some(Handed { chunk, name: String::from_utf8_lossy(&name).into_owned(), bytes })
    }

    /// The values up to `end` are not needed any more: their memory is given back.
    pub fn forget_values(&self, from: u64, end: u64) {
        const PAGE: u64 = 4096;
        // SAFETY: the offset of a field of the memory, of which no part is accessed.
        let base = unsafe { (&raw const (*self.at).values).byte_offset_from(self.at) } as u64;
        let first = (base + from).next_multiple_of(PAGE);
        let last = (base + end.min(wire::VALUES as u64)) / PAGE * PAGE;
        if last > first {
            // SAFETY: whole pages of our own file, which then read as zero. That it may fail costs memory only.
            unsafe {
                libc::fallocate(
                    self.fd.as_raw_fd(),
                    libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                    first as libc::off_t,
                    (last - first) as libc::off_t,
                );
            }
        }
    }

    /// How far the program's memory maps have been written.
    pub(crate) fn maps_state(&self) -> MapsState {
        let header = &self.shared().header;
        let written = header.maps_written.load(Ordering::Acquire);
        MapsState { written, len: header.maps_len.load(Ordering::Acquire) }
    }

    /// The text of the program's memory maps so far.
    pub fn maps(&self) -> Vec<u8> {
        let len = self.shared().header.maps_len.load(Ordering::Acquire) as usize;
        let len = len.min(wire::MAPS);
        let mut text = vec![0; len];
        // SAFETY: both are valid for `len` bytes.
        unsafe {
            let from = (&raw const (*self.at).maps).cast::<u8>();
            std::ptr::copy_nonoverlapping(from, text.as_mut_ptr(), len);
        }
        text
    }
}

/// The answers to a program that asks which of its functions are regions.
#[derive(Debug, Default)]
pub(crate) struct RegionTable {
    /// The length of the memory map of the last answer.
    answered: u32,
    /// Pieces of code for which there was no room.
    pub(crate) lost: usize,
}

impl RegionTable {
    /// Answers, if the program asks about a map that is known here, up to `known`.
    pub(crate) fn answer(
        &mut self,
        shm: &Shm,
        modules: &Modules,
        known: u32,
        resolver: &mut dyn Resolve,
    ) {
        let header = &shm.shared().header;
        let wanted = header.functions_wanted.load(Ordering::Acquire);
        if wanted > self.answered && wanted <= known {
            self.answered = wanted;
            self.lost = shm.set_functions(&resolver.regions(modules));
            header.functions_ready.store(wanted, Ordering::Release);
        }
    }

    /// The map has been cut back to `known`: later libraries are gone.
    pub(crate) fn forget_after(&mut self, shm: &Shm, known: u32) {
        if self.answered > known {
            self.answered = 0;
            let header = &shm.shared().header;
            header.functions_wanted.store(known, Ordering::Release);
            header.functions_ready.store(0, Ordering::Release);
        }
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        self.shared().header.host_gone.store(1, Ordering::Release);
        // SAFETY: our own mapping of this size; `self` is going away, and so are all references into it.
        unsafe { libc::munmap(self.at.cast(), size_of::<Shared>()) };
    }
}

/// Whether a process may still execute code of the program. One that has ended may be there until its parent asks, and
/// one that was killed until a processor has time for it.
fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    may_execute(&stat)
}

/// The same by what the system says of the process in `/proc/PID/stat`: its state, its flags, its pending signals.
fn may_execute(stat: &str) -> bool {
    const EXITING: u64 = 4; // PF_EXITING of the kernel
    const KILLED: u64 = 1 << (libc::SIGKILL - 1);
    // These fields follow the name, which may contain anything.
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3).and_then(|n| n.parse::<u64>().ok());
    let has = |field: usize, bit: u64| number(field).is_some_and(|n| n & bit != 0);
    let ended = matches!(fields.first(), None | Some(&("Z" | "X")));
    !ended && !has(9, EXITING) && !has(31, KILLED)
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the system says of a process in that state, with these flags and pending signals.
    fn stat(state: char, flags: u64, pending: u64) -> String {
        let between = "1 ".repeat(21);
        format!("7 (a) Z (b) {state} 1 7 7 0 -1 {flags} {between}{pending} 0 0\n")
    }

    #[test]
    fn a_process_that_was_killed_does_not_run_on() {
        let usual = 0x40_0000;
        assert!(may_execute(&stat('R', usual, 0)));
        assert!(may_execute(&stat('S', usual, 1 << (libc::SIGTERM - 1))), "it may have a handler");
        assert!(!may_execute(&stat('Z', usual, 0)));
        assert!(!may_execute(&stat('R', usual | 4, 0)), "it is exiting");
        assert!(!may_execute(&stat('R', usual, 1 << 8)), "no handler of SIGKILL runs");
        assert!(!may_execute(""), "there is no such process");
    }

    #[test]
    fn the_system_says_it_in_these_fields() {
        let mut child =
            std::process::Command::new("sleep").arg("100").spawn().expect("there is a sleep");
        assert!(is_running(child.id()));
        child.kill().expect("it is ours");
        while is_running(child.id()) {
            std::thread::yield_now();
        }
        child.wait().expect("it was killed");
    }
}
