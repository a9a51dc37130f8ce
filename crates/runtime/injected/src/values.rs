//! Values that the program hands over in deterministic blocks (`selvedge.h`), and the tokens by which threads
//! enter blocks that they were not started in.
//!
//! A value is copied into shared memory as it is, behind a [`Chunk`] that says what it is; its record says
//! where. The host decides which block it belongs to.
//!
//! Ground rules:
//! - A chunk is complete before its record is made, and is not written again.
//! - A state is copied when it is named, and once more when the innermost block that its thread has begun
//!   ends. Its memory must live as long as the block.
//! - Nothing here is a scheduling point, except [`selvedge_choose`].

#![allow(missing_docs)] // The names are the header's own.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::with_pc;
use crate::control;
use crate::judges;
use crate::regions;
use crate::rings;
use crate::sys::{self, SpinLock};
use crate::thread::{self, Busy, Thread};
use crate::wire::{self, Chunk, RecordKind, call};

/// What `selvedge_hand_over` is given: `struct selvedge_value` of `selvedge.h`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Handed {
    name: *const u8,
    data: *const u8,
    count: usize,
    place: usize,
    call: u32,
    kind: u32,
    predicate: u32,
    bound: f64,
    same: usize,
}

/// The predicate that is a function of the program, in `selvedge.h`.
const SAME: u32 = 6;
/// The stored form of a value of Rust, which says itself when it changes.
const ENCODED: u32 = 18;
/// Longest name, in bytes.
const NAME: usize = 4096;

/// Bytes of an element of a type, by its number in `selvedge.h`.
fn element(kind: u32) -> usize {
    match kind {
        3 | 8 => 2,
        4 | 9 | 12 => 4,
        5 | 10 | 13 => 8,
        6 | 11 | 14 => 16,
        _ => 1,
    }
}

unsafe extern "C" fn hand_over(handed: *const Handed, pc: usize) {
    // SAFETY: the structure that the header has filled in.
    let handed = unsafe { *handed };
    let Some(t) = thread::me().filter(|t| t.ring.is_open()) else { return };
    let pc = if handed.place == 0 { pc } else { handed.place };
    if handed.predicate == SAME {
        judges::offer(t, handed.same, pc);
    }
    write(t, &handed, 0, pc);
    if handed.call & (call::KIND | call::AFTER) == call::STATE && handed.kind != ENCODED {
        remember(t, &handed, pc);
    }
}

/// A token for the block that the thread is in.
unsafe extern "C" fn block_token(pc: usize) -> u64 {
    thread::me().map_or(0, |t| token(t, pc))
}

/// A token for the block that the thread is in; 0 if nothing is recorded.
pub fn token(t: &mut Thread, pc: usize) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if !t.ring.is_open() {
        return 0;
    }
    let token = NEXT.fetch_add(1, Ordering::Relaxed);
    offer(t, token, pc);
    token
}

/// The block that the thread is in has this token from now on, if anything is recorded.
fn offer(t: &mut Thread, token: u64, pc: usize) {
    rings::record(t, RecordKind::BlockToken, 0, pc, token as usize, 0);
}

/// The token of a team of OpenMP. Numbers of teams are used again, and so are these: the host keeps one for each team
/// that is alive.
fn of_team(team: u32) -> u64 {
    1 << 63 | u64::from(team)
}

/// The thread begins a team. The team's threads are in the block that it is in.
pub fn begin_team(team: u32, pc: usize) {
    if let Some(t) = thread::me().filter(|_| regions::any_block()) {
        offer(t, of_team(team), pc);
    }
}

/// The thread is now one of the team, which another thread has begun.
pub fn join_team(team: u32) {
    if let Some(t) = thread::me().filter(|_| regions::any_block()) {
        join(t, of_team(team), 0);
    }
}

/// The thread is no longer one of a team that another thread has begun.
pub fn leave_team() {
    if let Some(t) = thread::me().filter(|_| regions::any_block()) {
        leave(t, 0);
    }
}

/// The thread enters the block of a token.
unsafe extern "C" fn block_join(token: u64, pc: usize) {
    if let Some(t) = thread::me() {
        join(t, token, pc);
    }
}

/// The thread leaves the block that it has joined.
unsafe extern "C" fn block_leave(pc: usize) {
    if let Some(t) = thread::me() {
        leave(t, pc);
    }
}

fn leave(t: &mut Thread, pc: usize) {
    rings::record(t, RecordKind::BlockJoin, 0, pc, 0, 0);
}

/// The thread enters the block of a token.
pub fn join(t: &mut Thread, token: u64, pc: usize) {
    if token != 0 {
        rings::record(t, RecordKind::BlockJoin, 0, pc, token as usize, 0);
    }
}

/// A number that is part of the schedule.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
pub extern "C" fn selvedge_choose(below: u32) -> u32 {
    if below == 0 { 0 } else { control::chosen_number(below) }
}

with_pc! {
    selvedge_hand_over => hand_over, 1;
    selvedge_block_token => block_token, 0;
    selvedge_block_join => block_join, 1;
    selvedge_block_leave => block_leave, 0;
}

/// Copies a value and records it.
fn write(t: &mut Thread, handed: &Handed, flag: u32, pc: usize) {
    let (at, len) = {
        let _busy = Busy::new(t);
        copy(handed, flag, Trust::Program).unwrap_or((wire::NO_ROOM, 0))
    };
    rings::record(t, RecordKind::Value, 0, pc, at, len);
}

/// Where the copy is and how long, if there is room.
fn copy(handed: &Handed, flag: u32, trust: Trust) -> Option<(usize, usize)> {
    let shared = rings::shared()?;
    let mut name_len = 0;
    // SAFETY: a string constant of the program.
    while name_len < NAME && unsafe { handed.name.add(name_len).read() } != 0 {
        name_len += 1;
    }
    let bytes = handed.count.checked_mul(element(handed.kind))?;
    let len = size_of::<Chunk>().checked_add(name_len)?.checked_add(bytes)?;
    let room = len.checked_next_multiple_of(8)? as u64;
    let at = shared.header.values_len.fetch_add(room, Ordering::Relaxed);
    if at.checked_add(room)? > wire::VALUES as u64 {
        // So that the number does not come round.
        shared.header.values_len.store(wire::VALUES as u64, Ordering::Relaxed);
        return None;
    }
    let mut chunk = Chunk {
        call: handed.call | flag,
        kind: handed.kind,
        predicate: handed.predicate,
        name_len: name_len as u32,
        bound: handed.bound.to_bits(),
        same: handed.same as u64,
        bytes: bytes as u64,
    };
    let mut len = len;
    // SAFETY: a part of the shared memory that was given to us alone, aligned to eight bytes; the program's
    // name and its `count` elements. The host reads it after the record that names it.
    unsafe {
        let chunk_at = ((&raw const shared.values) as *mut u8).add(at as usize);
        let to = chunk_at.add(size_of::<Chunk>());
        core::ptr::copy_nonoverlapping(handed.name, to, name_len);
        let to = to.add(name_len);
        if trust == Trust::Program {
            core::ptr::copy_nonoverlapping(handed.data, to, bytes);
        } else if bytes == 0 || !read_memory(handed.data as usize, to as usize, bytes) {
            len -= bytes;
            chunk.bytes = 0;
        }
        chunk_at.cast::<Chunk>().write_volatile(chunk);
    }
    Some((at as usize, len))
}

/// Hands over the locations that are states of every block, as a block begins, or with [`call::AFTER`] as it ends.
/// It may be called while a record is made.
pub fn globals(t: &mut Thread, flag: u32, pc: usize) {
    let Some(shared) = rings::shared() else { return };
    let len = shared.header.globals.load(Ordering::Acquire) as usize;
    for global in shared.globals.iter().take(len) {
        let name = (&raw const shared.global_names) as usize;
        let at = target(global);
        let handed = Handed {
            name: (name + global.name.load(Ordering::Relaxed) as usize % wire::GLOBAL_NAMES)
                as *const u8,
            data: at.unwrap_or(0) as *const u8,
            count: if at.is_some() { global.count.load(Ordering::Relaxed) as usize } else { 0 },
            place: pc,
            call: call::STATE | global.array.load(Ordering::Relaxed),
            kind: global.kind.load(Ordering::Relaxed),
            predicate: 0,
            bound: 0.0,
            same: 0,
        };
        let (at, len) = copy(&handed, flag, Trust::Nothing).unwrap_or((wire::NO_ROOM, 0));
        rings::region(t, RecordKind::Value, 0, pc, at, len);
    }
}

/// Where a location is now, if all pointers on the way to it point to memory.
fn target(global: &wire::Global) -> Option<usize> {
    let len = global.path_len.load(Ordering::Relaxed) as usize;
    let mut path = global.path.iter().take(len).map(|step| step.load(Ordering::Relaxed) as usize);
    let mut at = path.next()?;
    for offset in path {
        let mut pointer = 0usize;
        let to = (&raw mut pointer) as usize;
        if !read_memory(at, to, size_of::<usize>()) || pointer == 0 {
            return None;
        }
        at = pointer.wrapping_add(offset);
    }
    Some(at)
}

/// Copies memory that may not be there; false if it is not.
fn read_memory(from: usize, to: usize, len: usize) -> bool {
    let (local, remote) = ([to, len], [from, len]);
    let pid = sys::pid() as usize;
    let args = [pid, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0];
    // SAFETY: our own memory of that length is written; whether the other one exists is the kernel's to check.
    unsafe { sys::call(sys::PROCESS_VM_READV, args) == len as isize }
}

/// Whether the memory of a value exists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// The program says so.
    Program,
    /// Perhaps not: then the value has no elements.
    Nothing,
}

/// A state of a block that has not ended.
#[derive(Clone, Copy)]
struct State {
    /// Index of the thread that named it, and the number of its region.
    thread: u32,
    region: u32,
    handed: Handed,
    pc: usize,
}

/// States that blocks may have at a time.
const STATES: usize = 1 << 13;

struct States {
    lock: SpinLock,
    // invariant: written under the lock; as many as `len` are valid.
    list: UnsafeCell<[Option<State>; STATES]>,
}

// SAFETY: the list is only used under the lock.
unsafe impl Sync for States {}

static OPEN: States =
    States { lock: SpinLock::new(), list: UnsafeCell::new([const { None }; STATES]) };

/// Keeps a state until its block ends.
fn remember(t: &mut Thread, handed: &Handed, pc: usize) {
    let Some(region) = regions::innermost_marked_block(t) else { return };
    let _busy = Busy::new(t);
    let state = State { thread: t.index, region, handed: *handed, pc };
    let _lock = OPEN.lock.lock();
    // SAFETY: under the lock.
    let list = unsafe { &mut *OPEN.list.get() };
    if let Some(free) = list.iter_mut().find(|s| s.is_none()) {
        *free = Some(state);
    }
}

/// The marked region that the thread has begun last is about to end. If it is a block, its states have their
/// last values.
pub fn region_ends(t: &mut Thread) {
    let Some(region) = regions::block_to_leave(t) else { return };
    let mut from = 0;
    while let Some(state) = forget(t, region, &mut from) {
        write(t, &state.handed, call::AFTER, state.pc);
    }
}

/// Takes the next state of a block off the list, from an index on.
fn forget(t: &mut Thread, region: u32, from: &mut usize) -> Option<State> {
    let index = t.index;
    let _busy = Busy::new(t);
    let _lock = OPEN.lock.lock();
    // SAFETY: under the lock.
    let list = unsafe { &mut *OPEN.list.get() };
    let is_of = |s: &Option<State>| s.is_some_and(|s| s.thread == index && s.region == region);
    let at = (*from..STATES).find(|&i| is_of(&list[i]))?;
    *from = at + 1;
    list[at].take()
}
