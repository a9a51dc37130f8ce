//! Where a controlled process stops before `main`, and where the fork server makes a fresh process for
//! each execution.
//!
//! `__libc_start_main` is what the start code of every program calls. We pass it a `main` of our own,
//! which therefore runs after all constructors.

#![allow(missing_docs)] // The name is the C library's.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicUsize, Ordering, Ordering::Relaxed};

use crate::control::wire::{self, Control};
use crate::control::{control, is_on, sleep_on, wake_host};
use crate::interpose::real;
use crate::sys;

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

static MAIN: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn fflush(stream: usize) -> c_int;
}

/// `__libc_start_main`
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn __libc_start_main(
    main: Main,
    argc: c_int,
    argv: usize,
    init: usize,
    fini: usize,
    loader_fini: usize,
    stack_end: usize,
) -> c_int {
    MAIN.store(main as usize, Ordering::Release);
    real!(__libc_start_main(before_main, argc, argv, init, fini, loader_fini, stack_end)
        as fn(Main, c_int, usize, usize, usize, usize, usize) -> c_int)
}

unsafe extern "C" fn before_main(
    argc: c_int,
    argv: *mut *mut c_char,
    envp: *mut *mut c_char,
) -> c_int {
    if is_on()
        && let Some(c) = control()
    {
        wait_for_host(c);
    }
    crate::interpose::signal::crash::watch();
    let main = MAIN.load(Ordering::Acquire);
    // SAFETY: the program's own `main`, with its arguments.
    let code = unsafe { core::mem::transmute::<usize, Main>(main)(argc, argv, envp) };
    crate::init::linger();
    code
}

/// Returns in a process in which the next execution is to take place.
fn wait_for_host(c: &Control) {
    crate::init::write_maps();
    crate::interpose::pthread::main_has_end_destructor();
    let mut done = 0;
    let (alone, mut taken) = (c.threads() == 1, 0);
    c.ready.store(if alone { 1 } else { 2 }, Ordering::Release);
    wake_host(c);
    loop {
        while c.go.load(Ordering::Acquire) == done {
            sleep_on(&c.go, done);
        }
        done = c.go.load(Ordering::Acquire);
        if c.flags.load(Relaxed) & wire::FORK == 0 {
            break;
        }
        take_over(c, &mut taken);
        if serve(c) {
            break;
        }
    }
    c.slots[0].tid.store(sys::tid(), Relaxed);
    crate::control::flow::begin(c);
    c.child.store(sys::pid(), Ordering::Release);
}

/// Takes over what executions have looked up since the last call; `taken` entries are taken over already. The children
/// have the same memory map, but for libraries that they have loaded themselves.
fn take_over(c: &Control, taken: &mut usize) {
    let len = c.looked_up_len.load(Relaxed) as usize;
    let new = c.looked_up.iter().take(len).skip(*taken);
    *taken = len.min(wire::LOOKED_UP);
    for (place, address) in new {
        let (place, at) = (place.swap(0, Ordering::Acquire), address.load(Relaxed) as usize);
        if place != 0 && crate::interpose::is_code(at) {
            // SAFETY: one of our variables, which the child has at the same place.
            unsafe { &*(place as *const AtomicUsize) }.store(at, Ordering::Release);
        }
    }
}

/// Forks, and waits for the end of the child; true in the child.
fn serve(c: &Control) -> bool {
    const DIE_WITH_PARENT: usize = 1;
    const SIGKILL: usize = 9;
    // What is in the buffers would be written once by each child.
    // SAFETY: null stands for all streams.
    unsafe { fflush(0) };
    let pid = real!(fork() as fn() -> c_int);
    if pid == 0 {
        // SAFETY: no memory involved.
        unsafe {
            sys::call(sys::PRCTL, [DIE_WITH_PARENT, SIGKILL, 0, 0, 0, 0]);
            sys::call(sys::SETPGID, [0; 6]);
        }
        crate::init::after_fork();
        return true;
    }
    let mut status = 0;
    // Not by our own entry, which would take the status for memory of the program.
    let wait = |status: *mut c_int| {
        real!(waitpid(pid, status, 0) as fn(c_int, *mut c_int, c_int) -> c_int)
    };
    while pid > 0 && wait(&raw mut status) != pid {}
    c.exit.store(if pid > 0 { status as u32 } else { u32::MAX }, Relaxed);
    c.ended.fetch_add(1, Ordering::Release);
    wake_host(c);
    false
}
