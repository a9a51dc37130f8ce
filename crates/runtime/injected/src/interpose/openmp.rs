//! OpenMP, as far as its runtime reports what it does. LLVM's calls `ompt_start_tool` when it starts, and
//! then our callbacks (OpenMP 5.0, chapter 4, "OMPT"). gcc's runtime does not.
//!
//! Threads of a team begin after the construct that starts it, and the construct ends after they have.
//! A thread that leaves a barrier comes after all that arrived. Critical sections, locks and ordered
//! sections are locks. A task begins after it was made, and a thread that waits for it (taskwait,
//! taskgroup, a barrier) goes on after it has ended. A flush is a fence. What the library does to combine
//! a reduction is not checked.
//!
//! Guarantee: order is only added. May miss: a taskgroup is ordered after all finished tasks of its team,
//! and tasks with dependences after all finished tasks with dependences, whichever they depend on.

#![allow(missing_docs)] // The names are the interface's own.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::atomics;
use crate::control;
use crate::primitives::{acquired, destroying, happens_after, happens_before, releasing};
use crate::sync;
use crate::sys;
use crate::thread;
use crate::wire::order;

/// What the library keeps for us with every team and task: our number for it.
type Data = *mut u64;
type Lookup = unsafe extern "C" fn(*const c_char) -> Option<SetCallback>;
type SetCallback = unsafe extern "C" fn(c_int, *const c_void) -> c_int;

/// How many teams and tasks that are alive at a time are distinguished.
const NUMBERS: usize = 1 << 20;
/// Synchronization objects are found by address; the program has no memory at these addresses.
const KEYS: usize = 0x43c0_0000_0000;

/// The objects of a team or a task.
#[derive(Clone, Copy)]
enum Part {
    /// From who made it to who runs it.
    Start = 0,
    /// Barriers, in turn: who is fast may be at the next one when the last is still leaving this one.
    EvenBarrier = 8,
    OddBarrier = 16,
    /// From tasks of the team that have ended.
    Tasks = 24,
    /// From tasks that this task has made and that have ended.
    Children = 32,
}

/// From tasks with dependences to those that come later: one for all.
const DEPENDENCES: usize = KEYS + NUMBERS * 64;

fn key(number: u64, part: Part) -> usize {
    KEYS + (number as usize % NUMBERS) * 64 + part as usize
}

/// What is known of a task.
struct Task {
    team: AtomicU32,
    parent: AtomicU32,
    /// Barriers that it has passed, if it is a thread's own task in a team.
    round: AtomicU32,
    depends: AtomicU32,
}

static TASKS: [Task; NUMBERS] = [const {
    Task {
        team: AtomicU32::new(0),
        parent: AtomicU32::new(0),
        round: AtomicU32::new(0),
        depends: AtomicU32::new(0),
    }
}; NUMBERS];

static NEXT: AtomicU32 = AtomicU32::new(1);

fn new_number() -> u64 {
    u64::from(NEXT.fetch_add(1, Ordering::Relaxed)) % NUMBERS as u64
}

fn task(number: u64) -> &'static Task {
    &TASKS[number as usize % NUMBERS]
}

/// Our number for a team or task; nothing if the library gives none.
unsafe fn number(data: Data) -> Option<u64> {
    // SAFETY: null, or the library's place for our number.
    unsafe { data.as_ref().copied() }
}

fn forget(number: u64, parts: &[Part]) {
    if let Some(t) = thread::me() {
        for &part in parts {
            sync::destroy(t, key(number, part));
        }
    }
}

unsafe extern "C" fn parallel_begin(
    _task: Data,
    _frame: usize,
    team: Data,
    _wanted: u32,
    _flags: c_int,
    pc: usize,
) {
    let new = new_number();
    // SAFETY: the library's place for our number.
    unsafe { team.write(new) };
    happens_before(key(new, Part::Start), pc);
}

unsafe extern "C" fn parallel_end(team: Data, _task: Data, _flags: c_int, pc: usize) {
    // SAFETY: the library's place for our number.
    let Some(team) = (unsafe { number(team) }) else { return };
    for part in [Part::EvenBarrier, Part::OddBarrier, Part::Tasks] {
        happens_after(key(team, part), pc);
    }
    forget(team, &[Part::Start, Part::EvenBarrier, Part::OddBarrier, Part::Tasks]);
}

const BEGIN: c_int = 1;
const END: c_int = 2;

unsafe extern "C" fn implicit_task(
    endpoint: c_int,
    team: Data,
    data: Data,
    _threads: u32,
    _index: u32,
    _flags: c_int,
) {
    if endpoint != BEGIN || data.is_null() {
        return;
    }
    let new = new_number();
    // SAFETY: the library's places for our numbers.
    let team = unsafe {
        data.write(new);
        number(team).unwrap_or(0)
    };
    let task = task(new);
    task.team.store(team as u32, Ordering::Relaxed);
    task.parent.store(0, Ordering::Relaxed);
    task.round.store(0, Ordering::Relaxed);
    task.depends.store(0, Ordering::Relaxed);
    happens_after(key(team, Part::Start), 0);
}

unsafe extern "C" fn sync_region(kind: c_int, endpoint: c_int, _team: Data, data: Data, pc: usize) {
    const TASKWAIT: c_int = 5;
    const TASKGROUP: c_int = 6;
    const REDUCTION: c_int = 7;
    // SAFETY: the library's place for our number. At the very end a thread has no task any more, and
    // waits for the next team, which it begins after.
    let Some(own) = (unsafe { number(data) }) else { return };
    let own_task = task(own);
    let team = u64::from(own_task.team.load(Ordering::Relaxed));
    match (kind, endpoint) {
        (TASKWAIT, END) => happens_after(key(own, Part::Children), pc),
        (TASKGROUP, END) => happens_after(key(team, Part::Tasks), pc),
        (TASKWAIT | TASKGROUP | REDUCTION, _) => {}
        (_, _) => {
            let round = own_task.round.load(Ordering::Relaxed);
            let barrier =
                if round.is_multiple_of(2) { Part::EvenBarrier } else { Part::OddBarrier };
            if endpoint == BEGIN {
                happens_before(key(team, barrier), pc);
            } else if endpoint == END {
                happens_after(key(team, barrier), pc);
                happens_after(key(team, Part::Tasks), pc);
                own_task.round.store(round + 1, Ordering::Relaxed);
            }
        }
    }
}

unsafe extern "C" fn task_create(
    maker: Data,
    _frame: usize,
    data: Data,
    flags: c_int,
    depends: c_int,
    pc: usize,
) {
    const EXPLICIT: c_int = 4;
    if flags & EXPLICIT == 0 || data.is_null() {
        return;
    }
    let new = new_number();
    // SAFETY: the library's places for our numbers.
    let maker = unsafe {
        data.write(new);
        number(maker).unwrap_or(0)
    };
    let own = task(new);
    own.team.store(task(maker).team.load(Ordering::Relaxed), Ordering::Relaxed);
    own.parent.store(maker as u32, Ordering::Relaxed);
    own.round.store(0, Ordering::Relaxed);
    own.depends.store(depends as u32, Ordering::Relaxed);
    happens_before(key(new, Part::Start), pc);
}

unsafe extern "C" fn task_schedule(prior: Data, status: c_int, next: Data) {
    const COMPLETE: c_int = 1;
    const CANCEL: c_int = 3;
    // SAFETY: the library's places for our numbers.
    let (prior, next) = unsafe { (number(prior), number(next)) };
    if let Some(prior) = prior {
        let own = task(prior);
        if status == COMPLETE || status == CANCEL {
            happens_before(key(u64::from(own.team.load(Ordering::Relaxed)), Part::Tasks), 0);
            happens_before(key(u64::from(own.parent.load(Ordering::Relaxed)), Part::Children), 0);
            if own.depends.load(Ordering::Relaxed) != 0 {
                happens_before(DEPENDENCES, 0);
            }
            forget(prior, &[Part::Start, Part::Children]);
        } else {
            // It may go on in another thread.
            happens_before(key(prior, Part::Start), 0);
        }
    }
    if let Some(next) = next {
        happens_after(key(next, Part::Start), 0);
        if task(next).depends.load(Ordering::Relaxed) != 0 {
            happens_after(DEPENDENCES, 0);
        }
    }
}

/// The library says that a lock was given up after it was, when the next thread may have it already. So
/// that one waits here until it was said; for so long, and then goes on all the same.
unsafe extern "C" fn mutex_acquired(_kind: c_int, lock: usize, pc: usize) {
    const PATIENCE: u32 = 100_000;
    for _ in 0..PATIENCE {
        let Some(t) = thread::me() else { return };
        let is_ours = sync::with(t, lock | sync::ANNOTATED, |_, object| {
            let free = object.parties == 0;
            object.parties = 1;
            free
        });
        if is_ours {
            break;
        }
        sys::yield_now();
    }
    acquired(lock, pc);
}

unsafe extern "C" fn mutex_released(_kind: c_int, lock: usize, pc: usize) {
    releasing(lock, pc);
    if let Some(t) = thread::me() {
        sync::with(t, lock | sync::ANNOTATED, |_, object| object.parties = 0);
    }
}

unsafe extern "C" fn lock_destroy(_kind: c_int, lock: usize, pc: usize) {
    destroying(lock, pc);
    destroying(lock | sync::ANNOTATED, pc);
}

unsafe extern "C" fn reduction(
    _kind: c_int,
    endpoint: c_int,
    _team: Data,
    _task: Data,
    _pc: usize,
) {
    if let Some(t) = thread::me() {
        match endpoint {
            BEGIN => t.ignore_begin(),
            END => t.ignore_end(),
            _ => {}
        }
    }
}

unsafe extern "C" fn flush(_thread: Data, pc: usize) {
    atomics::thread_fence(order::ACQ_REL, pc);
}

/// The interface's `ompt_start_tool_result_t`.
#[repr(C)]
pub struct StartTool {
    initialize: unsafe extern "C" fn(Lookup, c_int, Data) -> c_int,
    finalize: unsafe extern "C" fn(Data),
    data: u64,
}

static TOOL: StartTool = StartTool { initialize, finalize, data: 0 };

unsafe extern "C" fn initialize(look_up: Lookup, _device: c_int, _data: Data) -> c_int {
    let callbacks: [(c_int, *const c_void); 11] = [
        (3, parallel_begin as *const c_void),
        (4, parallel_end as *const c_void),
        (5, task_create as *const c_void),
        (6, task_schedule as *const c_void),
        (7, implicit_task as *const c_void),
        (17, mutex_released as *const c_void),
        (23, sync_region as *const c_void),
        (25, lock_destroy as *const c_void),
        (27, mutex_acquired as *const c_void),
        (29, flush as *const c_void),
        (31, reduction as *const c_void),
    ];
    // SAFETY: the library's own look-up, with a name of its interface.
    let Some(set) = (unsafe { look_up(c"ompt_set_callback".as_ptr()) }) else { return 0 };
    for (event, callback) in callbacks {
        // SAFETY: the functions have the types that the interface gives to these events.
        unsafe { set(event, callback) };
    }
    1
}

unsafe extern "C" fn finalize(_data: Data) {}

/// The library asks whether a tool wants its callbacks. Controlled executions do not model teams.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn ompt_start_tool(_version: u32, _name: *const c_char) -> *const StartTool {
    if crate::init::is_up() && !control::is_on() { &raw const TOOL } else { core::ptr::null() }
}
