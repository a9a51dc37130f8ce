//! Start-up, before any code of the program runs.
//!
//! In an executable `.preinit_array` calls us, in a shared library `.init_array`, which comes before
//! that of everything that depends on it. `getenv` does not work yet, but the environment is passed.

#![cfg_attr(not(selvedge_injected), allow(dead_code))] // Called by the loader only.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

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

fn attach(envp: *const *const u8) -> Option<&'static Shared> {
    let fd = number_from(envp, wire::ENV_FD.as_bytes())?;
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
        let first = rings::follow();
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

/// A module announces that it is instrumented.
pub fn module(pc: usize) {
    interpose::add_module(pc);
    if let Some(shared) = rings::shared() {
        shared.header.instrumented.store(1, Ordering::Relaxed);
        write_maps();
        regions::wait_for_functions();
    }
}

/// Appends the current memory map to the shared memory, so that program counters can be understood
/// after the program is gone.
pub fn write_maps() {
    let Some(shared) = rings::shared() else { return };
    begin_mapping(shared);
    // SAFETY: plain system calls on a file of our own; the buffer is the shared memory's text part,
    // which only grows and is published by its length.
    unsafe {
        let path = b"/proc/self/maps\0";
        let fd = sys::call(sys::OPEN, [path.as_ptr() as usize, 0, 0, 0, 0, 0]);
        if fd < 0 {
            return shared.header.mapping.store(0, Ordering::Release);
        }
        let mut len = shared.header.maps_len.load(Ordering::Relaxed) as usize;
        loop {
            let at = shared.maps.as_ptr().add(len) as usize;
            let got = sys::call(sys::READ, [fd as usize, at, wire::MAPS - len, 0, 0, 0]);
            if got == sys::EINTR {
                continue;
            }
            if got <= 0 {
                break;
            }
            len += got as usize;
        }
        sys::call(sys::CLOSE, [fd as usize, 0, 0, 0, 0, 0]);
        shared.header.maps_len.store(len as u32, Ordering::Release);
    }
    shared.header.mapping.store(0, Ordering::Release);
}

/// Waits until no other process appends to the maps. One that was killed meanwhile does not.
fn begin_mapping(shared: &Shared) {
    let (word, pid) = (&shared.header.mapping, sys::pid());
    while let Err(other) = word.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire) {
        if other == pid || !sys::alive(other) {
            let _ = word.compare_exchange(other, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
        sys::yield_now();
    }
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
