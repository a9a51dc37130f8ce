//! What LLVM's OpenMP library tells by callbacks (OpenMP 5.0, chapter 4, "OMPT"). It calls `ompt_start_tool` when it
//! starts. In controlled executions the callbacks are off.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use super::nodes::dependences::{self, Dependence};
use super::nodes::{NONE, Part, key, node, state};
use super::{
    after, arrive, begin_group, begin_part, begin_team, end_group, end_part, end_task, end_team,
    leave, make_task, memory, publish_task, reduction, run_task, waited_for_children,
    waited_for_dependences,
};
use crate::atomics;
use crate::control;
use crate::interpose::inform;
use crate::primitives::{acquired, destroying, happens_after, happens_before, releasing};
use crate::sync;
use crate::sys;
use crate::thread;
use crate::wire::order;

/// What the library keeps for us with every team and task: our number for it.
type Data = *mut u64;
type Lookup = unsafe extern "C" fn(*const c_char) -> Option<Function>;
/// A function of the interface; [`initialize`] knows its type.
type Function = unsafe extern "C" fn();
type SetCallback = unsafe extern "C" fn(c_int, *const c_void) -> c_int;

/// Our number for a team or task; nothing if the library gives none.
unsafe fn number(data: Data) -> Option<u32> {
    // SAFETY: null, or the library's place for our number.
    unsafe { data.as_ref().map(|&n| n as u32) }
}

unsafe extern "C" fn parallel_begin(
    _task: Data,
    _frame: usize,
    team: Data,
    _wanted: u32,
    _flags: c_int,
    pc: usize,
) {
    // SAFETY: the library's place for our number.
    unsafe { team.write(u64::from(begin_team(pc))) };
}

unsafe extern "C" fn parallel_end(team: Data, _task: Data, _flags: c_int, pc: usize) {
    // SAFETY: the library's place for our number.
    if let Some(team) = unsafe { number(team) } {
        end_team(team, pc);
    }
}

/// The interface's `ompt_scope_endpoint_t`.
pub const BEGIN: c_int = 1;
pub const END: c_int = 2;

unsafe extern "C" fn implicit_task(
    endpoint: c_int,
    team: Data,
    data: Data,
    _threads: u32,
    index: u32,
    _flags: c_int,
) {
    // The thread with number 0 has begun the team. The first task of the program is in no team.
    let joins = |team: u32| index != 0 && team != NONE;
    // SAFETY: the library's places for our numbers.
    let (team, Some(own)) = (unsafe { (number(team), number(data)) }) else { return };
    let new = match endpoint {
        BEGIN => {
            let team = team.unwrap_or(NONE);
            begin_part(team, joins(team))
        }
        END => {
            end_part(own, joins(node(own).team.load(Ordering::Relaxed)));
            NONE
        }
        _ => return,
    };
    // SAFETY: the library's place for our number.
    unsafe { data.write(u64::from(new)) };
}

const TASKWAIT: c_int = 5;
const TASKGROUP: c_int = 6;
const REDUCTION: c_int = 7;

unsafe extern "C" fn sync_region(kind: c_int, endpoint: c_int, team: Data, data: Data, pc: usize) {
    // SAFETY: the library's place for our number. At the very end a thread has no task any more, and
    // waits for the next team, which it begins after.
    let Some(own) = (unsafe { number(data) }) else { return };
    match (kind, endpoint) {
        (TASKWAIT, END) => waited_for_children(own, pc),
        (TASKGROUP, BEGIN) => begin_group(own),
        (TASKGROUP, END) => {
            end_group(own, pc);
            if own != NONE
                && node(own).unmark(state::COMBINES)
                && let Some(t) = thread::me()
            {
                t.ignore_end();
            }
        }
        (TASKWAIT | TASKGROUP | REDUCTION, _) => {}
        // A thread whose team is no more only waits for the next one.
        (_, END) if team.is_null() => {}
        (_, BEGIN) => arrive(own, pc),
        (_, END) => leave(own, pc),
        (_, _) => {}
    }
}

/// The wait for the tasks of a group is over. Before the group ends, the library may combine what they have
/// contributed to a reduction.
unsafe extern "C" fn sync_region_wait(
    kind: c_int,
    endpoint: c_int,
    _team: Data,
    data: Data,
    _pc: usize,
) {
    // SAFETY: the library's place for our number.
    let Some(own) = (unsafe { number(data) }) else { return };
    if (kind, endpoint) == (TASKGROUP, END)
        && own != NONE
        && let Some(t) = thread::me()
        && !node(own).mark(state::COMBINES)
    {
        t.ignore_begin();
    }
}

unsafe extern "C" fn task_create(
    maker: Data,
    _frame: usize,
    data: Data,
    flags: c_int,
    _depends: c_int,
    pc: usize,
) {
    const EXPLICIT: c_int = 4;
    const TARGET: c_int = 8;
    /// Not a task, but a wait for those that its dependences name.
    const WAIT: c_int = 16;
    if flags & (EXPLICIT | TARGET | WAIT) == 0 || data.is_null() {
        return;
    }
    // SAFETY: the library's places for our numbers.
    let new = unsafe {
        let new = make_task(number(maker).unwrap_or(NONE));
        data.write(u64::from(new));
        new
    };
    publish_task(new, pc);
}

unsafe extern "C" fn declares(data: Data, list: *const Dependence, count: c_int) {
    // SAFETY: the library's place for our number, and its list of so many dependences.
    let (Some(own), list) = (unsafe {
        let count = usize::try_from(count).unwrap_or(0);
        let list: &[Dependence] =
            if list.is_null() { &[] } else { core::slice::from_raw_parts(list, count) };
        (number(data), list)
    }) else {
        return;
    };
    let team = node(own).team.load(Ordering::Relaxed);
    if !dependences::orders_iterations(team, list) {
        dependences::declare(own, list.iter().copied());
    }
}

/// How a task was left.
mod status {
    use core::ffi::c_int;
    pub const COMPLETE: c_int = 1;
    pub const CANCEL: c_int = 3;
    pub const DETACH: c_int = 4;
    pub const EARLY_FULFILL: c_int = 5;
    pub const LATE_FULFILL: c_int = 6;
    pub const TASKWAIT_COMPLETE: c_int = 8;
}

unsafe extern "C" fn task_schedule(prior: Data, how: c_int, next: Data) {
    // SAFETY: the library's places for our numbers.
    let (prior, next) = unsafe { (number(prior), number(next)) };
    if let Some(prior) = prior {
        match how {
            status::COMPLETE | status::CANCEL => {
                if node(prior).mark(state::FULFILLED) {
                    happens_after(key(prior, Part::Start), 0);
                }
                memory::ended();
                end_task(prior);
            }
            // Not the thread's own task, but one whose event it has fulfilled.
            status::LATE_FULFILL => {
                after(prior, key(prior, Part::Start), 0);
                return end_task(prior);
            }
            status::EARLY_FULFILL => {
                happens_before(key(prior, Part::Start), 0);
                node(prior).mark(state::FULFILLED);
                return;
            }
            status::TASKWAIT_COMPLETE => {
                return waited_for_dependences(prior);
            }
            _ => {
                if how == status::DETACH {
                    memory::ended();
                }
                // It may go on in another thread.
                happens_before(key(prior, Part::Start), 0);
            }
        }
    }
    if let Some(next) = next {
        run_task(next);
    }
}

/// The library says that a lock was given up after it was, when the next thread may have it already. So
/// that one waits here until it was said, however slow the machine is: going on would call two critical sections
/// unordered. The holder is on its way to [`mutex_released`]; a holder that does not exist (in the child of a
/// fork) is not waited for.
unsafe extern "C" fn mutex_acquired(_kind: c_int, lock: usize, pc: usize) {
    /// After so many attempts the thread sleeps between them: the holder needs a processor.
    const ATTEMPTS: u32 = 100;
    const SLEEP_NANOSECONDS: u64 = 50_000;
    for attempt in 0u64.. {
        let Some(t) = thread::me() else { return };
        let own = holder(t);
        let other = sync::with(t, lock | sync::ANNOTATED, |_, object| {
            let other = object.parties;
            if other == 0 {
                object.parties = own;
            }
            other
        });
        if other == 0 || other == own {
            break;
        }
        if attempt < ATTEMPTS.into() {
            sys::yield_now();
        } else if thread::all().any(|t| holder(t) == other) {
            sys::pause(SLEEP_NANOSECONDS);
        } else {
            sync::with(t, lock | sync::ANNOTATED, |_, object| object.parties = 0);
        }
    }
    acquired(lock, pc);
}

/// What a lock's object says of the thread that holds it; 0 if none does.
fn holder(thread: &thread::Thread) -> u32 {
    thread.number.wrapping_add(1)
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

/// Whether a library calls back: what it tells of locks is then all that there is to know.
static SPEAKS: AtomicBool = AtomicBool::new(false);

/// See [`SPEAKS`].
pub fn speaks() -> bool {
    SPEAKS.load(Ordering::Relaxed)
}

static TOOL: StartTool = StartTool { initialize, finalize, data: 0 };

unsafe extern "C" fn initialize(look_up: Lookup, _device: c_int, _data: Data) -> c_int {
    let callbacks: [(c_int, *const c_void); 13] = [
        (3, parallel_begin as *const c_void),
        (4, parallel_end as *const c_void),
        (5, task_create as *const c_void),
        (6, task_schedule as *const c_void),
        (7, implicit_task as *const c_void),
        (16, sync_region_wait as *const c_void),
        (17, mutex_released as *const c_void),
        (18, declares as *const c_void),
        (23, sync_region as *const c_void),
        (25, lock_destroy as *const c_void),
        (27, mutex_acquired as *const c_void),
        (29, flush as *const c_void),
        (31, reduction::combines as *const c_void),
    ];
    // SAFETY: the library's own look-up, with names of its interface.
    let (set, task_memory) = unsafe {
        (look_up(c"ompt_set_callback".as_ptr()), look_up(c"ompt_get_task_memory".as_ptr()))
    };
    let Some(set) = set else { return 0 };
    inform(set as usize);
    // SAFETY: the type that the interface gives to the function of that name.
    let set = unsafe { core::mem::transmute::<Function, SetCallback>(set) };
    for (event, callback) in callbacks {
        // SAFETY: the functions have the types that the interface gives to these events.
        unsafe { set(event, callback) };
    }
    if let Some(function) = task_memory {
        memory::found_by(function as usize);
    }
    SPEAKS.store(true, Ordering::Relaxed);
    1
}

unsafe extern "C" fn finalize(_data: Data) {}

/// The library asks whether a tool wants its callbacks. Controlled executions do not model teams.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn ompt_start_tool(_version: u32, _name: *const c_char) -> *const StartTool {
    if crate::init::is_up() && !control::is_on() { &raw const TOOL } else { core::ptr::null() }
}
