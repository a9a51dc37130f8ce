//! gcc's OpenMP library, which tells nothing: the functions that gcc's code calls are put before the library's own
//! and feed the same order. What the library does inside (atomics, futexes) is not instrumented and orders nothing.
//!
//! The library has no place for our numbers. So the function that a team or a task runs is replaced by one of ours,
//! and the number travels with its argument; the task that a thread runs is in [`Within`].
//!
//! A program of gcc may run with LLVM's library, which has functions of these names. Then both tell of teams and tasks,
//! which can only add order, and LLVM's alone of locks.
//!
//! Ground rules:
//! - What releases is said before the library's function is called, what acquires after it has returned.
//! - Functions that are only found in some versions of the library are looked up when the program calls them.
//! - Functions that take fewer arguments than we pass on ignore the rest, which are words of the caller's frame.
//!
//! Followed: everything that gcc 4.9 and later emit. What earlier versions emit is refused ([`GOMP_parallel_start`]).
//! Changed: `target nowait` does not return before the code has run, when it runs on the host.
//! May miss: a task that is cancelled before it begins keeps its number.

pub mod iterations;
pub mod locks;
pub mod tasks;

use core::sync::atomic::Ordering;

use super::nodes::{NONE, Part, key, node};
use super::{arrive, begin_group, begin_part, begin_team, end_group, end_part, end_team, leave};
use crate::arch::with_pc;
use crate::control;
use crate::interpose::real;
use crate::primitives::happens_before;
use crate::thread;
use crate::wire::Failure;

/// Where a thread is among the teams and tasks of gcc's OpenMP.
#[derive(Clone, Copy, Default)]
pub struct Within {
    /// The number of the task that it runs, plus one; 0 if it has come to none yet.
    task: u32,
    /// The number of the task that it is making, or [`RAN`].
    making: u32,
    /// Of how many numbers a vector of its loop with `depend(sink)` consists.
    dimensions: u32,
}

/// Stands in [`Within::making`] when the task has run before the library returned: it was undeferred.
const RAN: u32 = u32::MAX;

/// Whether OpenMP's order is followed.
fn follows() -> bool {
    crate::init::is_up() && !control::is_on()
}

/// The task that the thread runs. A thread that is in no team has a task of its own for good.
fn current() -> u32 {
    let Some(t) = thread::me() else { return NONE };
    if t.openmp.task == 0 {
        t.openmp.task = super::nodes::take() + 1;
    }
    t.openmp.task - 1
}

/// The team that the thread is in, if it is in one.
fn team() -> Option<u32> {
    let own = current();
    let team = node(own).team.load(Ordering::Relaxed);
    (own == NONE || team != NONE).then_some(team)
}

/// The thread is now somewhere else: where it was.
fn enter(task: u32) -> Within {
    let now = Within { task: task + 1, ..Within::default() };
    thread::me().map(|t| core::mem::replace(&mut t.openmp, now)).unwrap_or_default()
}

/// The thread is where it was.
fn back(to: Within) {
    if let Some(t) = thread::me() {
        t.openmp = to;
    }
}

type Code = unsafe extern "C" fn(usize);

/// What the threads of a team get as their argument.
#[repr(C)]
struct Team {
    /// The library looks for reductions here.
    reductions: usize,
    code: usize,
    data: usize,
    team: u32,
    /// The thread that began the team.
    first: u32,
}

/// Runs a thread's part of a team, in the place of the program's function.
unsafe extern "C" fn part(team: *const Team) {
    // SAFETY: `parallel` passes one that stays until all threads have ended their parts.
    let team = unsafe { &*team };
    let joins = thread::me().is_some_and(|t| t.number != team.first);
    let own = begin_part(team.team, joins);
    let before = enter(own);
    // SAFETY: the program's function and its argument.
    unsafe { core::mem::transmute::<usize, Code>(team.code)(team.data) };
    arrive(own, 0);
    end_part(own, joins);
    back(before);
}

/// Begins a team by `real`, which gets the function and the argument for its threads. The library is asked for
/// nothing before.
fn parallel<R>(
    code: usize,
    data: usize,
    reductions: usize,
    pc: usize,
    real: impl FnOnce(usize, usize) -> R,
) -> R {
    if !follows() {
        return real(code, data);
    }
    let first = thread::me().map_or(u32::MAX, |t| t.number);
    let team = Team { reductions, code, data, team: begin_team(pc), first };
    let result = real(part as *const () as usize, &raw const team as usize);
    end_team(team.team, pc);
    result
}

unsafe extern "C" fn plain(code: usize, data: usize, threads: u32, flags: u32, pc: usize) {
    parallel(code, data, 0, pc, |code, data| {
        real!(GOMP_parallel(code, data, threads, flags) as fn(usize, usize, u32, u32) -> ())
    });
}

unsafe extern "C" fn with_sections(
    code: usize,
    data: usize,
    threads: u32,
    count: u32,
    flags: u32,
    pc: usize,
) {
    parallel(code, data, 0, pc, |code, data| {
        real!(GOMP_parallel_sections(code, data, threads, count, flags)
            as fn(usize, usize, u32, u32, u32) -> ())
    });
}

unsafe extern "C" fn with_reductions(
    code: usize,
    data: usize,
    threads: u32,
    flags: u32,
    pc: usize,
) -> u32 {
    // SAFETY: the argument of such a team begins with the place of its reductions.
    let reductions = unsafe { (data as *const usize).read() };
    parallel(code, data, reductions, pc, |code, data| {
        real!(GOMP_parallel_reductions(code, data, threads, flags)
            as fn(usize, usize, u32, u32) -> u32)
    })
}

/// Teams that share a loop. The program's function stands for the place, because all registers of arguments are taken.
macro_rules! parallel_loops {
    ($($name:ident)*) => {$(
        #[allow(clippy::too_many_arguments)] // The library's.
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            code: usize,
            data: usize,
            threads: usize,
            start: usize,
            end: usize,
            step: usize,
            chunk: usize,
            flags: usize,
        ) {
            parallel(code, data, 0, code + 1, |code, data| {
                real!($name(code, data, threads, start, end, step, chunk, flags)
                    as fn(usize, usize, usize, usize, usize, usize, usize, usize) -> ())
            });
        }
    )*};
}

parallel_loops! {
    GOMP_parallel_loop_static
    GOMP_parallel_loop_dynamic
    GOMP_parallel_loop_guided
    GOMP_parallel_loop_runtime
    GOMP_parallel_loop_nonmonotonic_dynamic
    GOMP_parallel_loop_nonmonotonic_guided
    GOMP_parallel_loop_nonmonotonic_runtime
    GOMP_parallel_loop_maybe_nonmonotonic_runtime
}

/// What gcc before 4.9 emits: the thread that begins the team calls the team's function by itself.
macro_rules! refused {
    ($($name:ident)*) => {$(
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize) {
            if follows() {
                crate::rings::refuse(Failure::OldOpenMp, b"");
            }
            real!($name(a, b, c, d, e, f, g)
                as fn(usize, usize, usize, usize, usize, usize, usize) -> ())
        }
    )*};
}

refused! {
    GOMP_parallel_start
    GOMP_parallel_sections_start
    GOMP_parallel_loop_static_start
    GOMP_parallel_loop_dynamic_start
    GOMP_parallel_loop_guided_start
    GOMP_parallel_loop_runtime_start
}

/// Waits at a barrier by `real`.
fn barrier<R>(pc: usize, real: impl FnOnce() -> R) -> R {
    if !follows() || team().is_none() {
        return real();
    }
    let own = current();
    arrive(own, pc);
    let result = real();
    leave(own, pc);
    result
}

/// Functions at which all threads of a team wait for each other. The result of some says whether the construct was
/// cancelled; the others have none.
macro_rules! barriers {
    ($($imp:ident $name:ident;)*) => {$(
        unsafe extern "C" fn $imp(pc: usize) -> u8 {
            barrier(pc, || real!($name() as fn() -> u8))
        }
        with_pc! { $name => $imp, 0; }
    )*};
}

barriers! {
    plain_barrier GOMP_barrier;
    cancelled_barrier GOMP_barrier_cancel;
    loop_end GOMP_loop_end;
    cancelled_loop_end GOMP_loop_end_cancel;
    sections_end GOMP_sections_end;
    cancelled_sections_end GOMP_sections_end_cancel;
}

/// One thread runs a section whose variables the others then copy: they wait for it at a barrier, to which it comes
/// when it has run ([`copy_end`]).
unsafe extern "C" fn copy_start(pc: usize) -> usize {
    let waits = follows() && team().is_some();
    let own = if waits { current() } else { NONE };
    if waits {
        arrive(own, pc);
    }
    let copied = real!(GOMP_single_copy_start() as fn() -> usize);
    if waits && copied != 0 {
        leave(own, pc);
    }
    copied
}

unsafe extern "C" fn copy_end(data: usize, pc: usize) {
    barrier(pc, || real!(GOMP_single_copy_end(data) as fn(usize) -> ()));
}

unsafe extern "C" fn group_start(_pc: usize) {
    if follows() {
        begin_group(current());
    }
    real!(GOMP_taskgroup_start() as fn() -> ());
}

unsafe extern "C" fn group_end(pc: usize) {
    real!(GOMP_taskgroup_end() as fn() -> ());
    if follows() {
        end_group(current(), pc);
    }
}

/// A construct to which tasks contribute in a reduction has begun, if there is one: its tasks are a group.
fn contributed_to(reductions: usize) {
    if reductions != 0 && follows() {
        begin_group(current());
    }
}

/// The group of such a construct ends, and its threads wait for each other unless it was cancelled.
unsafe extern "C" fn contributed(cancelled: usize, pc: usize) {
    let end = || {
        real!(GOMP_workshare_task_reduction_unregister(cancelled) as fn(usize) -> ());
        if follows() {
            end_group(current(), pc);
        }
    };
    if cancelled as u8 == 0 { barrier(pc, end) } else { end() }
}

/// Constructs that threads share, to which tasks may contribute in a reduction: the argument that tells so.
macro_rules! shared_constructs {
    ($($name:ident($($arg:ident)*) $reductions:ident $(, $dimensions:ident)?;)*) => {$(
        #[allow(clippy::too_many_arguments)] // The library's.
        #[cfg_attr(selvedge_injected, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: usize),*) -> usize {
            let result = real!($name($($arg),*) as fn($(shared_constructs!(@ $arg)),*) -> usize);
            contributed_to($reductions);
            $(iterations::have($dimensions);)?
            result
        }
    )*};
    (@ $arg:ident) => { usize };
}

shared_constructs! {
    GOMP_loop_start(a b c d e f g reductions memory) reductions;
    GOMP_loop_ordered_start(a b c d e f g reductions memory) reductions;
    GOMP_loop_doacross_start(count b c d e f reductions memory) reductions, count;
    GOMP_loop_ull_start(a b c d e f g h reductions memory) reductions;
    GOMP_loop_ull_ordered_start(a b c d e f g h reductions memory) reductions;
    GOMP_loop_ull_doacross_start(count b c d e f reductions memory) reductions, count;
    GOMP_sections2_start(count reductions memory) reductions;
    GOMP_scope_start(reductions) reductions;
}

/// Ordered sections come one after the other, in the order of iterations.
unsafe extern "C" fn ordered_start(pc: usize) {
    real!(GOMP_ordered_start() as fn() -> ());
    if follows()
        && let Some(team) = team()
    {
        super::after(team, key(team, Part::Children), pc);
    }
}

unsafe extern "C" fn ordered_end(pc: usize) {
    if follows()
        && let Some(team) = team()
    {
        happens_before(key(team, Part::Children), pc);
    }
    real!(GOMP_ordered_end() as fn() -> ());
}

with_pc! {
    GOMP_parallel => plain, 4;
    GOMP_parallel_sections => with_sections, 5;
    GOMP_parallel_reductions => with_reductions, 4;
    GOMP_single_copy_start => copy_start, 0;
    GOMP_single_copy_end => copy_end, 1;
    GOMP_taskgroup_start => group_start, 0;
    GOMP_taskgroup_end => group_end, 0;
    GOMP_workshare_task_reduction_unregister => contributed, 1;
    GOMP_ordered_start => ordered_start, 0;
    GOMP_ordered_end => ordered_end, 0;
}
