//! Start-up, before any code of the program runs.
//!
//! In an executable `.preinit_array` calls us, in a shared library `.init_array`, which comes before
//! that of everything that depends on it. `getenv` does not work yet, but the environment is passed.

#![cfg_attr(not(selvedge_injected), allow(dead_code))] // Called by the loader only.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::arch::weak;
use crate::control;
use crate::interpose;
use crate::layout;
use crate::misuse;
use crate::regions;
use crate::report;
use crate::rings;
use crate::spmd;
use crate::sys;
use crate::thread;
use crate::wire::{self, Failure, Header, Shared};

static UP: AtomicBool = AtomicBool::new(false);
static OWN_PID: AtomicU32 = AtomicU32::new(0);

/// Whether everything is mapped.
#[inline]
pub fn is_up() -> bool {
    UP.load(Ordering::Relaxed)
}

#[cfg(selvedge_injected)]
mod arrays {
    use super::{c_int, fini, start};

    type Function = unsafe extern "C" fn(c_int, *const *const u8, *const *const u8);

    #[cfg(not(selvedge_shared))]
    #[used]
    #[unsafe(link_section = ".preinit_array")]
    static PREINIT: Function = start;

    #[cfg(selvedge_shared)]
    #[used]
    #[unsafe(link_section = ".init_array")]
    static INIT: Function = start;

    #[used]
    #[unsafe(link_section = ".fini_array")]
    static FINI: unsafe extern "C" fn() = fini;
}

/// # Safety
/// Called once by the loader.
unsafe extern "C" fn start(_argc: c_int, _argv: *const *const u8, envp: *const *const u8) {
    if UP.load(Ordering::Relaxed) {
        return;
    }
    // A preloaded runtime leaves the process to the one that the program was linked with.
    if sys::is_mapped(layout::PRESENCE) {
        return;
    }
    let shared = attach(envp);
    for (at, len) in layout::RESERVED {
        if !sys::reserve(at, len) {
            no_address_space(shared.map(|s| &s.header));
        }
    }
    let holds_back = shared.is_some_and(|s| s.header.flags & wire::HOLD_BACK != 0);
    let [first, second] = layout::OWNERS.map(|at| (at, layout::OWNERS_LEN));
    let tables = [first, second, (layout::OWNED, layout::OWNED_LEN)];
    for (at, len) in tables.into_iter().filter(|_| holds_back) {
        if !sys::reserve(at, len) {
            no_address_space(shared.map(|s| &s.header));
        }
    }
    // SAFETY: reserved just now.
    unsafe { (layout::PRESENCE as *mut u64).write(wire::MAGIC) };
    OWN_PID.store(sys::pid(), Ordering::Relaxed);
    let Some(main) = thread::create(&[]) else { sys::fatal(b"selvedge: no thread block\n") };
    main.begin();
    let number = main.number;
    main.ring.open(number);
    interpose::pthread::prepare();
    if let Some(fd) = number_from(envp, control::wire::ENV_FD.as_bytes()) {
        control::attach(fd, main);
        // SAFETY: the loader's array, and only this thread exists.
        unsafe { take_away(envp.cast_mut(), control::wire::TUNABLES) };
    }
    main.record_as_wanted();
    rings::record(main, wire::RecordKind::Begin, 0, 0, 0, 0);
    write_maps();
    regions::wait_for_functions();
    UP.store(true, Ordering::Release);
    if let Some(shared) = shared {
        tell_defaults(shared);
    }
}

/// Passes the program's default options and suppressions on.
fn tell_defaults(shared: &Shared) {
    const LONGEST: usize = 1 << 16;
    // What ThreadSanitizer asks the program for, if the program has it.
    let told = [
        (weak!("__tsan_default_options"), &shared.header.options),
        (weak!("__tsan_default_suppressions"), &shared.header.suppressions),
    ];
    for (function, place) in told.into_iter().filter(|(function, _)| *function != 0) {
        // SAFETY: the function of that name has this type, and returns null or a terminated string.
        let text =
            unsafe { core::mem::transmute::<usize, extern "C" fn() -> *const u8>(function)() };
        let mut len = 0;
        // SAFETY: within the string.
        while !text.is_null() && len < LONGEST && unsafe { text.add(len).read() } != 0 {
            len += 1;
        }
        if len != 0
            && let Some(at) = regions::copy_name(text as usize, len)
        {
            place.store((at as u64) << 32 | len as u64, Ordering::Release);
        }
    }
}

/// `main` has returned, or the program calls `exit`: threads that still do something get time to finish it. Threads
/// that wait do not count, because they may wait for ever.
pub fn linger() {
    const STEP: u64 = 1_000_000;
    let Some(shared) = rings::shared().filter(|_| !rings::is_stopped() && !control::is_on()) else {
        return;
    };
    let Some(t) = thread::me() else { return };
    let is_busy = |other: &thread::Thread| {
        other.index != t.index
            && other.start.0 != 0
            && other.state.load(Ordering::Acquire) == thread::state::LIVE
            && other.waits_for.load(Ordering::Acquire) == 0
    };
    for _ in 0..shared.header.linger.load(Ordering::Relaxed) {
        if !thread::all().any(is_busy) {
            return;
        }
        sys::pause(STEP);
    }
}

fn no_address_space(header: Option<&Header>) -> ! {
    if let Some(header) = header {
        header.failure.store(Failure::NoAddressSpace as u32, Ordering::Release);
    }
    sys::fatal(
        b"selvedge: cannot reserve address space for shadow memory; \
          is it limited (ulimit -v)?\n",
    )
}

/// Attaches to the host's memory, which the process has inherited. If the process that started this one has closed the
/// descriptor, the host still has it.
fn attach(envp: *const *const u8) -> Option<&'static Shared> {
    let fd = number_from(envp, wire::ENV_FD.as_bytes())?;
    if sys::is_open(fd) {
        return attach_to(fd, envp);
    }
    let host = number_from(envp, wire::ENV_HOST.as_bytes())?;
    let fd = usize::try_from(sys::open_of(host, fd)).ok()?;
    let shared = attach_to(fd, envp);
    // SAFETY: opened just now; a mapping does not need its descriptor.
    unsafe { sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]) };
    shared
}

fn attach_to(fd: usize, envp: *const *const u8) -> Option<&'static Shared> {
    let at = sys::map_shared(fd, size_of::<Shared>());
    if at == 0 {
        let at = sys::map_shared(fd, size_of::<Header>());
        // SAFETY: null, or a mapping of that size at the start of the memory that the host has passed on.
        let header = unsafe { (at as *const Header).as_ref() }?;
        if header.magic == wire::MAGIC {
            no_address_space(Some(header));
        }
        return None;
    }
    // SAFETY: a mapping of that size; if the file were shorter the host would not have passed it on.
    let shared = unsafe { &*(at as *const Shared) };
    if shared.header.magic != wire::MAGIC {
        return None;
    }
    if shared.header.version != wire::VERSION {
        shared.header.failure.store(Failure::Version as u32, Ordering::Release);
        sys::fatal(
            b"selvedge: this program was built with another version of selvedge; build it again\n",
        );
    }
    // Only the process that the host started records, and may be under control. Processes that it starts in
    // turn leave their races.
    let pid = sys::pid();
    let former =
        shared.header.program.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire);
    let follows = former.is_err_and(|p| p != pid);
    if follows && number_from(envp, control::wire::ENV_FD.as_bytes()).is_some() {
        return None;
    }
    sys::leave_out_of_dumps((&raw const shared.values) as usize, wire::VALUES);
    rings::attach(at);
    if follows {
        let first = rings::execute();
        if weak!("MPI_Init") != 0 {
            shared.header.ranks.fetch_add(1, Ordering::Relaxed);
        }
        thread::number_from(first.unwrap_or(u32::MAX << wire::THREAD_BITS));
        return None;
    }
    Some(shared)
}

fn number_from(envp: *const *const u8, name: &[u8]) -> Option<usize> {
    let mut entry = envp;
    // SAFETY: the loader passes a null-terminated array of terminated strings.
    unsafe {
        while !(*entry).is_null() {
            let text = *entry;
            if (0..name.len()).all(|i| *text.add(i) == name[i]) && *text.add(name.len()) == b'=' {
                let mut digits = text.add(name.len() + 1);
                let mut number = 0usize;
                while (*digits).is_ascii_digit() {
                    number = number * 10 + usize::from(*digits - b'0');
                    digits = digits.add(1);
                }
                return Some(number);
            }
            entry = entry.add(1);
        }
    }
    None
}

/// Takes a variable with that value out of the environment.
///
/// # Safety
/// `envp` is a null-terminated array of terminated strings that nobody else looks at.
unsafe fn take_away(envp: *mut *const u8, (name, value): (&str, &str)) {
    let wanted = || name.bytes().chain(*b"=").chain(value.bytes()).chain(*b"\0");
    // SAFETY: within the array, and a string is looked at no further than it is the same.
    unsafe {
        let (mut from, mut to) = (envp, envp);
        while !(*from).is_null() {
            if !wanted().enumerate().all(|(i, byte)| (*from).add(i).read() == byte) {
                to.write(*from);
                to = to.add(1);
            }
            from = from.add(1);
        }
        to.write(core::ptr::null());
    }
}

/// A module announces that it is instrumented. Each of its source files does.
pub fn module(pc: usize) {
    let is_new = interpose::add_module(pc);
    if let Some(shared) = rings::shared().filter(|_| is_new) {
        shared.header.instrumented.store(1, Ordering::Relaxed);
        write_maps();
        regions::wait_for_functions();
    }
}

/// A digest of the memory map that this process has written last.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Appends the current memory map to the shared memory, unless it is as it was, so that program counters can be
/// understood after the program is gone. Many processes may do so at a time, and each may be killed at any time, so
/// none waits for another.
pub fn write_maps() {
    let Some(shared) = rings::shared() else { return };
    let text = sys::map_private(wire::MAPS);
    if text == 0 {
        return;
    }
    // SAFETY: mapped just now, and only this function knows it.
    let map = unsafe { core::slice::from_raw_parts_mut(text as *mut u8, wire::MAPS) };
    let len = read_maps(map);
    append_maps(shared, &map[..len]);
    // SAFETY: mapped above, and not used any more.
    unsafe { sys::call(sys::MUNMAP, [text, wire::MAPS, 0, 0, 0, 0]) };
}

/// Reads this process's memory map behind the end of a line: what comes before it may never be written.
fn read_maps(into: &mut [u8]) -> usize {
    let path = b"/proc/self/maps\0";
    into[0] = b'\n';
    let mut len = 1;
    // SAFETY: plain system calls on a file of our own; what is read lies within the slice.
    unsafe {
        let fd = sys::call(sys::OPEN, [path.as_ptr() as usize, 0, 0, 0, 0, 0]);
        if fd < 0 {
            return 0;
        }
        loop {
            let rest = &mut into[len..];
            let read = [fd as usize, rest.as_mut_ptr() as usize, rest.len(), 0, 0, 0];
            match sys::call(sys::READ, read) {
                sys::EINTR => {}
                got if got <= 0 => break,
                got => len += got as usize,
            }
        }
        sys::call(sys::CLOSE, [fd as usize, 0, 0, 0, 0, 0]);
    }
    len
}

fn append_maps(shared: &Shared, map: &[u8]) {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    let digest = map.iter().fold(OFFSET, |d, &byte| (d ^ u64::from(byte)).wrapping_mul(PRIME));
    if WRITTEN.swap(digest, Ordering::Relaxed) == digest {
        return;
    }
    let at = shared.header.maps_len.fetch_add(map.len() as u32, Ordering::AcqRel) as usize;
    let len = map.len().min(wire::MAPS.saturating_sub(at));
    // SAFETY: this part of the shared text was given out to us alone, and it is that long. The host reads it as plain
    // bytes, and again when it is told that a piece has been written.
    unsafe {
        let to = shared.maps.as_ptr().cast_mut().add(at.min(wire::MAPS));
        core::ptr::copy_nonoverlapping(map.as_ptr(), to, len);
    }
    shared.header.maps_written.fetch_add(1, Ordering::Release);
}

/// In the child of a fork.
pub fn after_fork() {
    OWN_PID.store(sys::pid(), Ordering::Relaxed);
}

/// The program ends normally.
unsafe extern "C" fn fini() {
    control::flow::at_end();
    // Under control the host knows the map since before `main`.
    if !control::is_on() {
        misuse::at_end();
        write_maps();
    }
    let misuse = report::UNREPORTED_MISUSE.load(Ordering::Relaxed);
    if misuse != 0 {
        sys::complain(b"selvedge: misuse seen at ");
        sys::complain_number(u64::from(misuse));
        sys::complain(b" places; `selvedge run` shows them\n");
    }
    let races = report::UNREPORTED.load(Ordering::Relaxed);
    // Races across ranks, and in memory of windows, are the business of the library for MPI programs.
    if races != 0 && !spmd::is_on() {
        sys::complain(b"selvedge: data races seen at ");
        sys::complain_number(u64::from(races));
        sys::complain(b" pairs of places; `selvedge run` shows them\n");
    }
}
