//! What is known of the teams, tasks and task groups that are alive, each under a number that the library
//! keeps for us.
//!
//! Ground rules:
//! - A number is given out again only when nothing refers to it: a task that has made others is referred to by
//!   them until they have ended.
//! - The fields of a node are written by the thread that runs the task. Others read only what does not change
//!   after the task was made.
//! - [`NONE`] is the number of what found no number. Whatever it stands for is ordered with more than it should
//!   be, never with less.

pub mod dependences;
#[cfg(test)]
mod tests;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::primitives;
use crate::rings;
use crate::sync;
use crate::sys::SpinLock;
use crate::thread::{self, Busy, Thread};
use crate::wire::{OUT_OF_SIGHT, RecordKind};

/// How many teams, tasks and task groups that are alive at a time are distinguished.
const NUMBERS: usize = 1 << 20;

/// The number of what is not distinguished.
pub const NONE: u32 = 0;

/// Synchronization objects are found by address; the program has no memory at these addresses.
pub const KEYS: usize = 0x43c0_0000_0000;
/// Where the keys of nodes end.
pub const KEYS_END: usize = KEYS + NUMBERS * STRIDE;
const STRIDE: usize = 32;

/// The objects of a node.
#[derive(Clone, Copy)]
pub enum Part {
    /// From the maker of a team or a task to its threads; from the thread that leaves a task to the one that
    /// goes on with it; from the tasks of a group to its end.
    Start = 0,
    /// Barriers of a team, in turn: a fast thread may be at the next one when the last is still leaving this one.
    EvenBarrier = 8,
    OddBarrier = 16,
    /// From tasks that this task has made and that have ended. Of a team: from ordered sections to later ones.
    Children = 24,
}

/// The address by which an object of a node is found.
pub fn key(number: u32, part: Part) -> usize {
    KEYS + number as usize % NUMBERS * STRIDE + part as usize
}

/// The object of a team's barrier in a round.
pub fn barrier(team: u32, round: u32) -> usize {
    key(team, if round.is_multiple_of(2) { Part::EvenBarrier } else { Part::OddBarrier })
}

/// A team, a task or a task group.
pub struct Node {
    /// How many refer to it. While the number is free, the next free one.
    refs: AtomicU32,
    pub team: AtomicU32,
    /// The task that made this one. Of a group: the group around it.
    pub parent: AtomicU32,
    /// The innermost group that the task belongs to or has begun.
    pub group: AtomicU32,
    /// Barriers that the task's thread has passed in its team; of an explicit task, when it was made.
    pub round: AtomicU32,
    /// See [`state`].
    pub state: AtomicU32,
    /// Its first dependence, and the first variable that tasks depend on which it makes.
    pub dependences: AtomicU32,
    pub variables: AtomicU32,
}

/// Bits of [`Node::state`].
pub mod state {
    /// The task has begun to run.
    pub const BEGUN: u32 = 1;
    /// The event of a detached task was fulfilled while the task ran.
    pub const FULFILLED: u32 = 2;
    /// The thread combines a reduction of the group that ends.
    pub const COMBINES: u32 = 4;
}

impl Node {
    #[allow(clippy::declare_interior_mutable_const)] // What fills a table at first; each entry is a copy.
    const EMPTY: Node = Node {
        refs: AtomicU32::new(0),
        team: AtomicU32::new(NONE),
        parent: AtomicU32::new(NONE),
        group: AtomicU32::new(NONE),
        round: AtomicU32::new(0),
        state: AtomicU32::new(0),
        dependences: AtomicU32::new(0),
        variables: AtomicU32::new(0),
    };

    fn renew(&self) {
        self.refs.store(1, Ordering::Relaxed);
        for field in [&self.team, &self.parent, &self.group] {
            field.store(NONE, Ordering::Relaxed);
        }
        for field in [&self.round, &self.state, &self.dependences, &self.variables] {
            field.store(0, Ordering::Relaxed);
        }
    }

    /// Sets bits of the state; whether they were set before.
    pub fn mark(&self, bits: u32) -> bool {
        self.state.fetch_or(bits, Ordering::Relaxed) & bits != 0
    }

    /// Clears bits of the state; whether they were set.
    pub fn unmark(&self, bits: u32) -> bool {
        self.state.fetch_and(!bits, Ordering::Relaxed) & bits != 0
    }
}

static NODES: [Node; NUMBERS] = [const { Node::EMPTY }; NUMBERS];

/// The node with that number.
pub fn node(number: u32) -> &'static Node {
    &NODES[number as usize % NUMBERS]
}

/// Guards the two words below it.
static POOL: SpinLock = SpinLock::new();
/// The first free number that was used before; 0 if there is none.
static FREE: AtomicU32 = AtomicU32::new(NONE);
/// The first number that was never used.
static FRESH: AtomicU32 = AtomicU32::new(1);

/// Whether numbers, or places for dependences, have ever run out.
static OVERFLOWED: AtomicBool = AtomicBool::new(false);
/// From tasks that are not distinguished to everything that waits or begins later.
const UNDISTINGUISHED: usize = KEYS;

/// A new number, to which one thing refers.
pub fn take() -> u32 {
    let Some(t) = thread::me() else { return NONE };
    let _busy = Busy::new(t);
    let _guard = POOL.lock();
    let mut number = FREE.load(Ordering::Relaxed);
    if number != NONE {
        FREE.store(node(number).refs.load(Ordering::Relaxed), Ordering::Relaxed);
    } else {
        number = FRESH.load(Ordering::Relaxed);
        if number as usize == NUMBERS {
            overflow();
            return NONE;
        }
        FRESH.store(number + 1, Ordering::Relaxed);
    }
    node(number).renew();
    number
}

/// One thing more refers to the number.
pub fn hold(number: u32) {
    if number != NONE {
        node(number).refs.fetch_add(1, Ordering::Relaxed);
    }
}

/// One thing less refers to the number. If it was the last, the node is no more, and refers to nothing either.
pub fn let_go(mut number: u32) {
    while number != NONE && node(number).refs.fetch_sub(1, Ordering::AcqRel) == 1 {
        let parent = node(number).parent.load(Ordering::Relaxed);
        give_back(number);
        number = parent;
    }
}

/// Nothing refers to the number any more.
fn give_back(number: u32) {
    dependences::forget(number);
    let Some(t) = thread::me() else { return };
    forget(t, key(number, Part::Start), STRIDE);
    let _busy = Busy::new(t);
    let _guard = POOL.lock();
    node(number).refs.store(FREE.load(Ordering::Relaxed), Ordering::Relaxed);
    FREE.store(number, Ordering::Relaxed);
}

/// What was released at these keys is no more, for the host neither.
pub fn forget(t: &mut Thread, keys: usize, len: usize) {
    rings::record(t, RecordKind::Free, OUT_OF_SIGHT, 0, keys, len);
    sync::forget(t, keys, len);
}

/// Something could not be distinguished: from now on, [`after_undistinguished`] orders.
pub fn overflow() {
    OVERFLOWED.store(true, Ordering::Relaxed);
}

/// A task that is not distinguished has ended.
pub fn undistinguished_ended() {
    primitives::happens_before(UNDISTINGUISHED, 0);
}

/// The thread comes after the ends of all tasks that were not distinguished: any of them may be one that it has
/// waited for.
pub fn after_undistinguished(pc: usize) {
    if OVERFLOWED.load(Ordering::Relaxed) {
        primitives::happens_after(UNDISTINGUISHED, pc);
    }
}

/// In the child of a fork: the threads that held locks do not exist here.
pub fn after_fork() {
    POOL.reset();
    dependences::after_fork();
}
