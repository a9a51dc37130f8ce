//! OpenMP, as far as its runtime reports what it does. LLVM's calls `ompt_start_tool` when it starts, and
//! then our callbacks (OpenMP 5.0, chapter 4, "OMPT"). gcc's runtime does not.
//!
//! Threads of a team begin after the construct that starts it, and the construct ends after they have.
//! A thread that leaves a barrier comes after all that arrived, and after the tasks that had to end there.
//! Critical sections, locks and ordered sections are locks. A task begins after it was made and after the tasks
//! that it depends on (`dependences`); a thread that waits for it (taskwait, taskgroup) goes on after it has
//! ended. A detached task ends after its event was fulfilled. An iteration that waits for another one
//! (`depend(sink)`) comes after what that one did before `depend(source)`. A flush is a fence. What the library
//! does to combine a reduction is not checked; what the program does is ([`reduction`]). Locks and conditions that
//! the library uses itself mean nothing: they would order threads that happen to sleep and wake.
//! The threads of a team are in the deterministic block of the thread that began it.
//!
//! In controlled executions the callbacks are off, and a program that starts a team is refused ([`refuse_team`]).
//!
//! Guarantee: order is only added. May miss: tasks that one thread happened to run are ordered as they ran.

#![allow(missing_docs)] // The names are the interface's own.

pub mod memory;
mod nodes;
pub mod reduction;
pub mod taskloop;

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::Ordering;

use crate::atomics;
use crate::control;
use crate::primitives::{
    acquired, destroying, happens_after, happens_after_all, happens_before, releasing,
};
use crate::sync;
use crate::sys;
use crate::thread;
use crate::values;
use crate::wire::{Failure, order};
pub use nodes::after_fork;
use nodes::dependences::{self, Dependence};
use nodes::{NONE, Part, barrier, key, node, state};

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
    let new = nodes::take();
    // SAFETY: the library's place for our number.
    unsafe { team.write(u64::from(new)) };
    happens_before(key(new, Part::Start), pc);
    // After a record, with which the host knows the functions that the thread is in.
    values::begin_team(new, pc);
}

unsafe extern "C" fn parallel_end(team: Data, _task: Data, _flags: c_int, pc: usize) {
    // SAFETY: the library's place for our number.
    let Some(team) = (unsafe { number(team) }) else { return };
    for part in [Part::EvenBarrier, Part::OddBarrier] {
        after(team, key(team, part), pc);
    }
    nodes::let_go(team);
}

/// The thread goes on after what was released at the key, which belongs to the node of that number.
fn after(number: u32, key: usize, pc: usize) {
    if number == NONE {
        happens_after_all(pc);
    } else {
        happens_after(key, pc);
        nodes::after_undistinguished(pc);
    }
}

/// The interface's `ompt_scope_endpoint_t`.
const BEGIN: c_int = 1;
const END: c_int = 2;

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
    if endpoint == END {
        let team = node(own).team.load(Ordering::Relaxed);
        // SAFETY: the library's place for our number.
        unsafe { data.write(u64::from(NONE)) };
        nodes::let_go(own);
        nodes::let_go(team);
        if joins(team) {
            values::leave_team();
        }
    }
    if endpoint != BEGIN {
        return;
    }
    let (team, new) = (team.unwrap_or(NONE), nodes::take());
    // SAFETY: the library's place for our number.
    unsafe { data.write(u64::from(new)) };
    if new != NONE {
        node(new).team.store(team, Ordering::Relaxed);
        nodes::hold(team);
    }
    after(team, key(team, Part::Start), 0);
    if joins(team) {
        values::join_team(team);
    }
}

const TASKWAIT: c_int = 5;
const TASKGROUP: c_int = 6;
const REDUCTION: c_int = 7;

unsafe extern "C" fn sync_region(kind: c_int, endpoint: c_int, team: Data, data: Data, pc: usize) {
    // SAFETY: the library's place for our number. At the very end a thread has no task any more, and
    // waits for the next team, which it begins after.
    let Some(own) = (unsafe { number(data) }) else { return };
    match (kind, endpoint) {
        (TASKWAIT, END) => after(own, key(own, Part::Children), pc),
        (TASKGROUP, BEGIN) => begin_group(own),
        (TASKGROUP, END) => end_group(own, pc),
        (TASKWAIT | TASKGROUP | REDUCTION, _) => {}
        // A thread whose team is no more only waits for the next one.
        (_, END) if team.is_null() => {}
        (_, _) => cross_barrier(own, endpoint, pc),
    }
}

fn cross_barrier(own: u32, endpoint: c_int, pc: usize) {
    let task = node(own);
    let (team, round) = (task.team.load(Ordering::Relaxed), task.round.load(Ordering::Relaxed));
    match endpoint {
        BEGIN if own == NONE => nodes::undistinguished_ended(),
        BEGIN => happens_before(barrier(team, round), pc),
        END => {
            after(own, barrier(team, round), pc);
            task.round.store(round.wrapping_add(1), Ordering::Relaxed);
        }
        _ => {}
    }
}

fn begin_group(own: u32) {
    if own != NONE {
        let new = nodes::take();
        let around = node(own).group.swap(new, Ordering::Relaxed);
        if new != NONE {
            node(new).parent.store(around, Ordering::Relaxed);
            // It ends with the group, before the one around it.
            nodes::hold(around);
        }
    }
}

fn end_group(own: u32, pc: usize) {
    let task = node(own);
    if own == NONE {
        return happens_after_all(pc);
    }
    let group = task.group.load(Ordering::Relaxed);
    after(group, key(group, Part::Start), pc);
    task.group.store(node(group).parent.load(Ordering::Relaxed), Ordering::Relaxed);
    nodes::let_go(group);
    if task.unmark(state::COMBINES)
        && let Some(t) = thread::me()
    {
        t.ignore_end();
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
    let new = nodes::take();
    // SAFETY: the library's places for our numbers.
    let maker = unsafe {
        data.write(u64::from(new));
        number(maker).unwrap_or(NONE)
    };
    if new != NONE {
        let (own, made_by) = (node(new), node(maker));
        for (field, from) in
            [(&own.team, &made_by.team), (&own.round, &made_by.round), (&own.group, &made_by.group)]
        {
            field.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        own.parent.store(maker, Ordering::Relaxed);
        nodes::hold(maker);
    }
    happens_before(key(new, Part::Start), pc);
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
        dependences::declare(own, list);
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
                if prior == NONE {
                    happens_after_all(0);
                }
                dependences::satisfied(prior, 0);
                return nodes::let_go(prior);
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
        after(next, key(next, Part::Start), 0);
        if !node(next).mark(state::BEGUN) {
            dependences::satisfied(next, 0);
        }
    }
}

/// The task has ended: before whatever waits for it.
fn end_task(number: u32) {
    if number == NONE {
        return nodes::undistinguished_ended();
    }
    let task = node(number);
    let of = |field: &core::sync::atomic::AtomicU32| field.load(Ordering::Relaxed);
    happens_before(barrier(of(&task.team), of(&task.round)), 0);
    happens_before(key(of(&task.parent), Part::Children), 0);
    if of(&task.group) != NONE {
        happens_before(key(of(&task.group), Part::Start), 0);
    }
    dependences::ended(number);
    nodes::let_go(number);
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
    super::inform(set as usize);
    // SAFETY: the type that the interface gives to the function of that name.
    let set = unsafe { core::mem::transmute::<Function, SetCallback>(set) };
    for (event, callback) in callbacks {
        // SAFETY: the functions have the types that the interface gives to these events.
        unsafe { set(event, callback) };
    }
    if let Some(function) = task_memory {
        memory::found_by(function as usize);
    }
    1
}

unsafe extern "C" fn finalize(_data: Data) {}

/// A library creates a thread. If it is one of OpenMP's, the thread is for a team, and a controlled execution
/// ends: what orders the threads of a team is not known there, nor when they wait for each other.
pub fn refuse_team(pc: usize) {
    const LIBRARIES: [&[u8]; 3] = [b"libgomp.so", b"libomp.so", b"libiomp5.so"];
    if control::is_on() && LIBRARIES.iter().any(|l| super::file_name_of(pc).starts_with(l)) {
        crate::init::refuse(Failure::Team, b"");
    }
}

/// The library asks whether a tool wants its callbacks. Controlled executions do not model teams.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub unsafe extern "C" fn ompt_start_tool(_version: u32, _name: *const c_char) -> *const StartTool {
    if crate::init::is_up() && !control::is_on() { &raw const TOOL } else { core::ptr::null() }
}
