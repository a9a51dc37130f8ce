//! OpenMP: what its standard orders, fed by what the two libraries tell. LLVM's calls back ([`ompt`]); gcc's does
//! not, so the functions that gcc's code calls are put before the library's own ([`gomp`]).
//!
//! Threads of a team begin after the construct that starts it, and the construct ends after they have.
//! A thread that leaves a barrier comes after all that arrived, and after the tasks that had to end there.
//! Critical sections and locks are locks. A task begins after it was made and after the tasks
//! that it depends on (`dependences`); a thread that waits for it (taskwait, taskgroup) goes on after it has
//! ended. A detached task ends after its event was fulfilled. An iteration that waits for another one
//! (`depend(sink)`) comes after what that one did before `depend(source)`; an ordered section comes after those of
//! earlier iterations. A flush is a fence. What a library does to combine a reduction is not checked; what the program
//! does is ([`reduction`]). Locks and conditions that a library uses itself mean nothing: they would order threads that
//! happen to sleep and wake. The threads of a team are in the deterministic block of the thread that began it.
//!
//! In controlled executions nothing is followed, and a program that starts a team is refused ([`refuse_team`]).
//!
//! Guarantee: order is only added. May miss: tasks that one thread happened to run are ordered as they ran.

#![allow(missing_docs, non_snake_case)] // The names are the interfaces' own.

pub mod gomp;
pub mod memory;
mod nodes;
pub mod ompt;
pub mod reduction;
pub mod taskloop;

use core::sync::atomic::Ordering;

use crate::control;
use crate::primitives::{happens_after, happens_after_all, happens_before};
use crate::values;
use crate::wire::Failure;
pub use gomp::Within;
pub use nodes::after_fork;
use nodes::{NONE, Part, barrier, dependences, key, node, state};

/// The interface's `ompt_scope_endpoint_t`.
mod endpoint {
    use core::ffi::c_int;

    pub const BEGIN: c_int = 1;
    pub const END: c_int = 2;
}

/// A thread begins a team: its number.
fn begin_team(pc: usize) -> u32 {
    let new = nodes::take();
    happens_before(key(new, Part::Start), pc);
    // After a record, with which the host knows the functions that the thread is in.
    values::begin_team(new, pc);
    new
}

/// All threads of the team have ended their part, and all its tasks have.
fn end_team(team: u32, pc: usize) {
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

/// The thread begins its part of a team, which another thread has begun if it `joins`: the number of its implicit task.
fn begin_part(team: u32, joins: bool) -> u32 {
    let new = nodes::take();
    if new != NONE {
        node(new).team.store(team, Ordering::Relaxed);
        nodes::hold(team);
    }
    after(team, key(team, Part::Start), 0);
    if joins {
        values::join_team(team);
    }
    new
}

/// The thread has ended its part of its team.
fn end_part(own: u32, joins: bool) {
    let team = node(own).team.load(Ordering::Relaxed);
    nodes::let_go(own);
    nodes::let_go(team);
    if joins {
        values::leave_team();
    }
}

/// The thread comes to a barrier.
fn arrive(own: u32, pc: usize) {
    if own == NONE {
        return nodes::undistinguished_ended();
    }
    let task = node(own);
    let (team, round) = (task.team.load(Ordering::Relaxed), task.round.load(Ordering::Relaxed));
    happens_before(barrier(team, round), pc);
}

/// The thread leaves a barrier.
fn leave(own: u32, pc: usize) {
    let task = node(own);
    let (team, round) = (task.team.load(Ordering::Relaxed), task.round.load(Ordering::Relaxed));
    after(own, barrier(team, round), pc);
    task.round.store(round.wrapping_add(1), Ordering::Relaxed);
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
    if own == NONE {
        return happens_after_all(pc);
    }
    let task = node(own);
    let group = task.group.load(Ordering::Relaxed);
    after(group, key(group, Part::Start), pc);
    task.group.store(node(group).parent.load(Ordering::Relaxed), Ordering::Relaxed);
    nodes::let_go(group);
}

/// All tasks that the thread's task has made have ended.
fn waited_for_children(own: u32, pc: usize) {
    after(own, key(own, Part::Children), pc);
}

/// A task makes another one, which does not run yet: its number.
fn make_task(maker: u32) -> u32 {
    make(maker, maker)
}

/// A task of a loop of tasks, which has the number of a task that its maker made: its number.
fn make_part(of: u32) -> u32 {
    make(of, node(of).parent.load(Ordering::Relaxed))
}

/// A new task of that parent, in the team and the group that the other one is in.
fn make(like: u32, parent: u32) -> u32 {
    let new = nodes::take();
    if new != NONE {
        let (own, like) = (node(new), node(like));
        for (field, from) in
            [(&own.team, &like.team), (&own.round, &like.round), (&own.group, &like.group)]
        {
            field.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        own.parent.store(parent, Ordering::Relaxed);
        nodes::hold(parent);
    }
    new
}

/// What the maker of the task has done so far comes before the task.
fn publish_task(task: u32, pc: usize) {
    happens_before(key(task, Part::Start), pc);
}

/// The thread begins a task, or goes on with it.
fn run_task(task: u32) {
    after(task, key(task, Part::Start), 0);
    if !node(task).mark(state::BEGUN) {
        dependences::satisfied(task, 0);
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

/// The thread has waited for the tasks that an empty task would depend on.
fn waited_for_dependences(task: u32) {
    if task == NONE {
        happens_after_all(0);
    }
    dependences::satisfied(task, 0);
    nodes::let_go(task);
}

/// A library creates a thread. If it is one of OpenMP's, the thread is for a team, and a controlled execution
/// ends: what orders the threads of a team is not known there, nor when they wait for each other.
pub fn refuse_team(pc: usize) {
    const LIBRARIES: [&[u8]; 3] = [b"libgomp.so", b"libomp.so", b"libiomp5.so"];
    if control::is_on() && LIBRARIES.iter().any(|l| super::file_name_of(pc).starts_with(l)) {
        crate::rings::refuse(Failure::Team, b"");
    }
}
