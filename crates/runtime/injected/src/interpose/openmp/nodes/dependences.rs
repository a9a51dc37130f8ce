//! Dependences between tasks (OpenMP 5.0, 2.17.11): they order tasks that the same task has made, by the
//! variables that they name.
//!
//! A task that writes a variable (`out`, `inout`, `mutexinoutset`) comes after all earlier ones that name it,
//! one that reads it (`in`) after the earlier ones that do anything else, and members of a set (`inoutset`)
//! after all but the other members. Tasks of one `mutexinoutset` come in any order, one after the other; they are
//! ordered as they happened to run. `omp_all_memory` is a variable that every task with dependences reads, and
//! that one with this dependence writes.
//!
//! Ground rule: variables are found, made and given back under [`TABLE`]'s lock. The dependences of a task are
//! written before it can run and then used by its own thread only.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::{KEYS_END, NONE, node};
use crate::primitives::{happens_after, happens_after_all, happens_before};
use crate::sys::SpinLock;
use crate::thread::{self, Busy};

/// The interface's `ompt_dependence_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Dependence {
    pub variable: u64,
    pub kind: u32,
}

/// How a task depends on a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Reads = 0,
    Writes = 1,
    Member = 2,
}

impl Role {
    const ALL: [Role; 3] = [Role::Reads, Role::Writes, Role::Member];

    fn from_number(number: u32) -> Role {
        Role::ALL.into_iter().find(|&r| r as u32 == number).unwrap_or(Role::Writes)
    }

    /// Whether a task of this role comes after an earlier one of that role.
    fn comes_after(self, earlier: Role) -> bool {
        self == Role::Writes || self != earlier
    }
}

/// The interface's `ompt_dependence_type_t`. What a later version adds orders like `out`.
pub mod kind {
    pub const IN: u32 = 1;
    pub const INOUT: u32 = 3;
    pub const MUTEX: u32 = 4;
    pub const SOURCE: u32 = 5;
    pub const SINK: u32 = 6;
    pub const MEMBER: u32 = 7;
    pub const ALL_MEMORY: [u32; 2] = [34, 35];
}

const ALL_MEMORY: usize = usize::MAX;

const VARIABLES: usize = 1 << 20;
const LINKS: usize = 1 << 21;
const BUCKETS: usize = 1 << 16;
/// Keys of variables: one per role.
const KEYS: usize = KEYS_END;
const STRIDE: usize = 32;
/// Keys of iterations, which share them: more order than there is can only miss.
const ITERATION_KEYS: usize = KEYS + VARIABLES * STRIDE;
const ITERATIONS: usize = 1 << 16;

/// A variable that tasks of one parent depend on.
struct Variable {
    addr: AtomicUsize,
    parent: AtomicU32,
    next_in_bucket: AtomicU32,
    /// The next one of the same parent; the next free one.
    next: AtomicU32,
}

/// One dependence of a task.
struct Link {
    variable: AtomicU32,
    role: AtomicU32,
    /// The next one of the same task; the next free one.
    next: AtomicU32,
}

/// Numbers of which some are used. 0 is none. All bits are 0 at first, so that a table takes no space in the
/// library.
struct Free {
    first: AtomicU32,
    /// The greatest number that was ever used.
    last: AtomicU32,
}

impl Free {
    const fn new() -> Free {
        Free { first: AtomicU32::new(0), last: AtomicU32::new(0) }
    }

    fn take(&self, all: usize, next: impl Fn(u32) -> u32) -> Option<u32> {
        let first = self.first.load(Ordering::Relaxed);
        if first != 0 {
            self.first.store(next(first), Ordering::Relaxed);
            return Some(first);
        }
        let fresh = self.last.load(Ordering::Relaxed) + 1;
        if fresh as usize >= all {
            return None;
        }
        self.last.store(fresh, Ordering::Relaxed);
        Some(fresh)
    }
}

struct Table {
    lock: SpinLock,
    buckets: [AtomicU32; BUCKETS],
    variables: [Variable; VARIABLES],
    links: [Link; LINKS],
    free_variables: Free,
    free_links: Free,
}

static TABLE: Table = Table {
    lock: SpinLock::new(),
    buckets: [const { AtomicU32::new(0) }; BUCKETS],
    variables: [const {
        Variable {
            addr: AtomicUsize::new(0),
            parent: AtomicU32::new(0),
            next_in_bucket: AtomicU32::new(0),
            next: AtomicU32::new(0),
        }
    }; VARIABLES],
    links: [const {
        Link { variable: AtomicU32::new(0), role: AtomicU32::new(0), next: AtomicU32::new(0) }
    }; LINKS],
    free_variables: Free::new(),
    free_links: Free::new(),
};

fn key(variable: u32, role: Role) -> usize {
    KEYS + variable as usize * STRIDE + role as usize * 8
}

fn mixed(a: usize, b: usize) -> usize {
    (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

impl Table {
    fn bucket(&self, parent: u32, addr: usize) -> &AtomicU32 {
        &self.buckets[mixed(addr, parent as usize) % BUCKETS]
    }

    fn variable(&self, number: u32) -> &Variable {
        &self.variables[number as usize % VARIABLES]
    }

    fn link(&self, number: u32) -> &Link {
        &self.links[number as usize % LINKS]
    }

    /// The variable at `addr` for tasks of `parent`. The lock is held.
    fn find_or_make(&self, parent: u32, addr: usize) -> Option<u32> {
        let bucket = self.bucket(parent, addr);
        let mut number = bucket.load(Ordering::Relaxed);
        while number != 0 {
            let here = self.variable(number);
            if here.addr.load(Ordering::Relaxed) == addr
                && here.parent.load(Ordering::Relaxed) == parent
            {
                return Some(number);
            }
            number = here.next_in_bucket.load(Ordering::Relaxed);
        }
        let new = self
            .free_variables
            .take(VARIABLES, |n| self.variable(n).next.load(Ordering::Relaxed))?;
        let here = self.variable(new);
        here.addr.store(addr, Ordering::Relaxed);
        here.parent.store(parent, Ordering::Relaxed);
        here.next_in_bucket.store(bucket.swap(new, Ordering::Relaxed), Ordering::Relaxed);
        let list = &node(parent).variables;
        here.next.store(list.swap(new, Ordering::Relaxed), Ordering::Relaxed);
        Some(new)
    }

    /// The task depends on `addr`; false if there is no place to note it. The lock is held.
    fn depend(&self, task: u32, parent: u32, addr: usize, role: Role) -> bool {
        let Some(variable) = self.find_or_make(parent, addr) else { return false };
        let next = |n| self.link(n).next.load(Ordering::Relaxed);
        let Some(new) = self.free_links.take(LINKS, next) else { return false };
        let link = self.link(new);
        link.variable.store(variable, Ordering::Relaxed);
        link.role.store(role as u32, Ordering::Relaxed);
        let list = &node(task).dependences;
        link.next.store(list.swap(new, Ordering::Relaxed), Ordering::Relaxed);
        true
    }

    fn unlink(&self, number: u32) {
        let here = self.variable(number);
        let parent = here.parent.load(Ordering::Relaxed);
        let mut at = self.bucket(parent, here.addr.load(Ordering::Relaxed));
        while at.load(Ordering::Relaxed) != number {
            at = &self.variable(at.load(Ordering::Relaxed)).next_in_bucket;
        }
        at.store(here.next_in_bucket.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Stands in [`Node::dependences`](super::Node::dependences) for dependences that found no place.
const UNKNOWN: u32 = u32::MAX;

/// The task, which `parent` has made and which does not run yet, has these dependences.
pub fn declare(task: u32, list: impl Iterator<Item = Dependence> + Clone) {
    let Some(t) = thread::me().filter(|_| task != NONE) else { return };
    let parent = node(task).parent.load(Ordering::Relaxed);
    let _busy = Busy::new(t);
    let _guard = TABLE.lock.lock();
    let all_memory = list.clone().any(|d| kind::ALL_MEMORY.contains(&d.kind));
    let role = if all_memory { Role::Writes } else { Role::Reads };
    let mut noted = parent != NONE && TABLE.depend(task, parent, ALL_MEMORY, role);
    for dependence in list.filter(|d| !kind::ALL_MEMORY.contains(&d.kind)) {
        let role = match dependence.kind {
            kind::IN => Role::Reads,
            kind::MEMBER => Role::Member,
            _ => Role::Writes,
        };
        noted = noted && TABLE.depend(task, parent, dependence.variable as usize, role);
    }
    if !noted {
        super::overflow();
        node(task).dependences.store(UNKNOWN, Ordering::Relaxed);
    }
}

fn links_of(task: u32) -> impl Iterator<Item = (u32, Role)> {
    let mut number = node(task).dependences.load(Ordering::Relaxed);
    core::iter::from_fn(move || {
        let link = (number != 0 && number != UNKNOWN).then(|| TABLE.link(number))?;
        number = link.next.load(Ordering::Relaxed);
        let role = Role::from_number(link.role.load(Ordering::Relaxed));
        Some((link.variable.load(Ordering::Relaxed), role))
    })
}

/// The task begins, or a thread has waited for its dependences: after the tasks that it depends on.
pub fn satisfied(task: u32, pc: usize) {
    let dependences = node(task).dependences.load(Ordering::Relaxed);
    if dependences == UNKNOWN {
        happens_after_all(pc);
    } else if dependences != 0 {
        super::after_undistinguished(pc);
    }
    for (variable, role) in links_of(task) {
        for earlier in Role::ALL.into_iter().filter(|&r| role.comes_after(r)) {
            happens_after(key(variable, earlier), pc);
        }
    }
}

/// The task has ended: before the tasks that depend on it.
pub fn ended(task: u32) {
    if node(task).dependences.load(Ordering::Relaxed) == UNKNOWN {
        super::undistinguished_ended();
    }
    for (variable, role) in links_of(task) {
        happens_before(key(variable, role), 0);
    }
}

/// The task is no more.
pub fn forget(task: u32) {
    let first = node(task).dependences.swap(0, Ordering::Relaxed);
    let variables = node(task).variables.swap(0, Ordering::Relaxed);
    let Some(t) = thread::me().filter(|_| first | variables != 0) else { return };
    let mut number = variables;
    while number != 0 {
        super::forget(t, key(number, Role::Reads), STRIDE);
        number = TABLE.variable(number).next.load(Ordering::Relaxed);
    }
    let _busy = Busy::new(t);
    let _guard = TABLE.lock.lock();
    let mut number = variables;
    while number != 0 {
        let here = TABLE.variable(number);
        let next = here.next.load(Ordering::Relaxed);
        TABLE.unlink(number);
        let free = &TABLE.free_variables.first;
        here.next.store(free.swap(number, Ordering::Relaxed), Ordering::Relaxed);
        number = next;
    }
    let mut number = if first == UNKNOWN { 0 } else { first };
    while number != 0 {
        let here = TABLE.link(number);
        let next = here.next.load(Ordering::Relaxed);
        let free = &TABLE.free_links.first;
        here.next.store(free.swap(number, Ordering::Relaxed), Ordering::Relaxed);
        number = next;
    }
}

/// If the list is the vector of an iteration of a loop that is ordered by `depend(source)` and `depend(sink)`:
/// what the iteration that runs does is ordered accordingly, and the answer is true.
pub fn orders_iterations(team: u32, list: &[Dependence]) -> bool {
    let Some(first) = list.first() else { return false };
    let key = iteration(team, list.iter().map(|d| d.variable as usize));
    match first.kind {
        kind::SOURCE => happens_before(key, 0),
        kind::SINK => happens_after(key, 0),
        _ => return false,
    }
    true
}

/// Where an iteration of a team's loop releases what it did before `depend(source)`.
pub fn iteration(team: u32, vector: impl Iterator<Item = usize>) -> usize {
    ITERATION_KEYS + vector.fold(team as usize, |hash, n| mixed(n, hash)) % ITERATIONS * 8
}

/// In the child of a fork: the thread that held the lock does not exist here.
pub fn after_fork() {
    TABLE.lock.reset();
}
