//! Predicates that are functions of the program (`SELVEDGE_SAME`): where they run.
//!
//! At the first call that names such a function, the process makes a copy of itself, a *judge*, which has the memory
//! of the program at the call. The host hands the bytes of two values over, the judge calls the function on them
//! and answers. So the function may use what the program has computed before the call, and neither a crash nor a
//! loop in it does anything to the program.
//!
//! Ground rules:
//! - A judge has one thread, which is busy for good: nothing that the function does is recorded or controlled.
//! - It has none of the program's descriptors, is in a process group of its own, and no `wait` of the program sees it.
//! - It ends when the host closes its end of the pipe, or does not exist any more.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::rings;
use crate::sys;
use crate::thread::{Busy, Thread};
use crate::wire::{self, RecordKind, Seat};

type Same = unsafe extern "C" fn(*const c_void, usize, *const c_void, usize) -> c_int;

const PIPE: usize = 22;
const CLONE: usize = 56;
const POLL: usize = 7;
const WAIT: usize = 61;
const SETPGID: usize = 109;
const CLOSE_RANGE: usize = 436;

/// Makes a judge that calls this function, unless there is one.
pub fn offer(t: &mut Thread, function: usize, pc: usize) {
    static NO_ROOM: AtomicBool = AtomicBool::new(false);
    let Some(shared) = rings::shared().filter(|_| function != 0) else { return };
    let claim = |seat: &&Seat| {
        let mine =
            seat.function.compare_exchange(0, function as u64, Ordering::AcqRel, Ordering::Acquire);
        mine.is_ok() || mine == Err(function as u64)
    };
    let Some(seat) = shared.judges.iter().find(claim) else {
        if !NO_ROOM.swap(true, Ordering::Relaxed) {
            sys::complain(b"selvedge: there are too many predicates (SELVEDGE_SAME)\n");
        }
        return;
    };
    if seat.taken.swap(1, Ordering::AcqRel) != 0 {
        return;
    }
    let judge = {
        let _busy = Busy::new(t);
        start(seat, function, shared.header.host)
    };
    if let Some(judge) = judge {
        rings::record(t, RecordKind::Judge, 0, pc, function, judge as usize);
    }
}

/// The number of the judge, once it listens.
fn start(seat: &Seat, function: usize, host: u32) -> Option<u32> {
    const NO_HANG: usize = 1;
    const ALL: usize = 0x4000_0000;
    seat.process.store(0, Ordering::Release);
    // Without a signal for its end, so that the program does not notice it.
    // SAFETY: a copy of this process that continues here, on a copy of this stack.
    let pid = unsafe { sys::call(CLONE, [0; 6]) };
    if pid == 0 {
        serve(seat, function, host);
    }
    while pid > 0 && seat.process.load(Ordering::Acquire) == 0 {
        // SAFETY: no memory involved.
        if unsafe { sys::call(WAIT, [pid as usize, 0, NO_HANG | ALL, 0, 0, 0]) } != 0 {
            return None;
        }
        sys::yield_now();
    }
    (pid > 0).then_some(pid as u32)
}

/// The judge.
fn serve(seat: &Seat, function: usize, host: u32) -> ! {
    detach();
    let Some((request, kept, answer)) = pipes() else { sys::exit(1) };
    seat.process.store(sys::pid(), Ordering::Release);
    // As long as the host has not opened the pipe it cannot close it either.
    while !readable(request) {
        if !sys::alive(host) {
            sys::exit(0);
        }
    }
    // SAFETY: a descriptor of our own.
    unsafe { sys::call(sys::CLOSE, [kept, 0, 0, 0, 0, 0]) };
    // SAFETY: what the program names as a predicate has this type.
    let same = unsafe { core::mem::transmute::<usize, Same>(function) };
    loop {
        let mut lens = [0u64; 2];
        read(request, lens.as_mut_ptr() as usize, size_of_val(&lens));
        let [a, b] = lens.map(|len| {
            let len = len as usize;
            let at = sys::map_private(len.max(1));
            if at == 0 {
                sys::exit(1);
            }
            read(request, at, len);
            (at, len)
        });
        // SAFETY: the program's own function, on memory that was mapped just now.
        let is_same = unsafe { same(a.0 as *const c_void, a.1, b.0 as *const c_void, b.1) };
        let byte = u8::from(is_same != 0);
        // SAFETY: one byte of ours; our own mappings, which nothing uses any more.
        unsafe {
            sys::call(sys::WRITE, [answer, (&raw const byte) as usize, 1, 0, 0, 0]);
            for (at, len) in [a, b] {
                sys::call(sys::MUNMAP, [at, len.max(1), 0, 0, 0, 0]);
            }
        }
    }
}

/// Leaves the program's group, descriptors and signal handlers.
fn detach() {
    const SIGNALS: usize = 31;
    const SET_MASK: usize = 2;
    const READ_WRITE: usize = 2;
    let default = [0u64; 4];
    let nothing = 0u64;
    let null = c"/dev/null".as_ptr() as usize;
    // SAFETY: `default` is a kernel's `sigaction` without a handler, `nothing` an empty mask; both outlive the
    // calls. No descriptor of this process is used any more.
    unsafe {
        sys::call(SETPGID, [0; 6]);
        sys::call(CLOSE_RANGE, [0, u32::MAX as usize, 0, 0, 0, 0]);
        for _ in 0..3 {
            sys::call(sys::OPEN, [null, READ_WRITE, 0, 0, 0, 0]);
        }
        for signal in 1..=SIGNALS {
            let action = default.as_ptr() as usize;
            sys::call(sys::SIGACTION, [signal, action, 0, 8, 0, 0]);
        }
        let mask = (&raw const nothing) as usize;
        sys::call(sys::SIGPROCMASK, [SET_MASK, mask, 0, 8, 0, 0]);
    }
}

/// Where requests are read, the other end of it, and where answers are written. The host knows the numbers.
fn pipes() -> Option<(usize, usize, usize)> {
    let mut ends = [[0u32; 2]; 2];
    for pair in &mut ends {
        // SAFETY: two descriptors are written there.
        if unsafe { sys::call(PIPE, [pair.as_mut_ptr() as usize, 0, 0, 0, 0, 0]) } != 0 {
            return None;
        }
    }
    let [[request, kept], [answer_read, answer]] = ends;
    let expected = (kept, answer_read) == (wire::JUDGE_ASK, wire::JUDGE_ANSWER);
    expected.then_some((request as usize, kept as usize, answer as usize))
}

/// Waits a second for something to read.
fn readable(fd: usize) -> bool {
    const IN: u64 = 1;
    let poll = IN << 32 | fd as u64;
    // SAFETY: one `pollfd`, which outlives the call.
    unsafe { sys::call(POLL, [(&raw const poll) as usize, 1, 1000, 0, 0, 0]) == 1 }
}

/// Reads that many bytes; ends the process if there are no more.
fn read(fd: usize, mut at: usize, mut len: usize) {
    while len > 0 {
        // SAFETY: the caller's memory of that length.
        let got = unsafe { sys::call(sys::READ, [fd, at, len, 0, 0, 0]) };
        if got == sys::EINTR {
            continue;
        }
        if got <= 0 {
            sys::exit(0);
        }
        at += got as usize;
        len -= got as usize;
    }
}
