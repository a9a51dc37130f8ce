//! Which threads file descriptors order: what one thread writes to a file, a pipe or a socket, another may
//! read. The functions of the C library that do so are in [`fd`](super::fd).
//!
//! Two things order threads here. The *number*: the kernel hands a number out again only after it was
//! closed, so the thread that gets it comes after the one that closed it (a server that keeps its
//! connections in an array by descriptor relies on just that). The *channel*: what is written comes before
//! what is read. Both ends of a pipe are one channel, known by the pipe's inode; so are the two ends of a
//! socket pair, and an event counter, a timer or a poll set by itself. All files together are one channel, and so are
//! all other sockets: which of them reach each other, perhaps through another process, cannot be seen.
//!
//! Misuse: closing a descriptor conflicts with every use of it that is not ordered with it, as freeing memory does with
//! accesses; a thread that knows of the closing and uses the number, without knowing that it was given out again,
//! uses another file than it believes. Both go by what orders threads; a number that is handed over by a relaxed
//! atomic does not count as ordered.
//!
//! Guarantee: order is only added, never lost, as far as descriptors are used through these functions.
//! May miss: races between threads that happen to write and read unrelated files or sockets; numbers
//! above 65,535 count as one.
//!
//! Cost: two look-ups and two short locks for each call, beside the system call's own.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::memory;
use crate::fasttrack;
use crate::layout;
use crate::primitives::{happens_after, happens_before};
use crate::report::{self, Misused, Other};
use crate::rings;
use crate::shadow::Cell;
use crate::sys;
use crate::thread::{self, Thread};
use crate::wire::{AccessKind, MisuseKind};

/// How many descriptors are distinguished; larger numbers are not.
const TABLE: usize = layout::DESCRIPTORS_LEN / KEY;
/// Synchronization objects are found by address; the program has no memory at these addresses.
const NUMBERS: usize = layout::DESCRIPTORS;
const CHANNELS: usize = 0x4380_0000_0000;
/// How far apart they are. Under control the host numbers memory in pieces of that size: whether two keys
/// share one must not depend on the inodes of pipes.
const KEY: usize = layout::KEY;

/// What is known of a descriptor.
struct Descriptor {
    /// Its channel, 0 until a thread uses it.
    channel: AtomicU32,
    /// The poll set that it is in, plus one.
    polled_by: AtomicU32,
    /// Slot and clock of the thread that closed it last, 0 if none has.
    closed: AtomicU64,
    /// Slot and clock of the thread that got the number since then, 0 if none has, and where.
    opened: AtomicU64,
    opened_at: AtomicUsize,
}

static DESCRIPTORS: [Descriptor; TABLE] = [const {
    Descriptor {
        channel: AtomicU32::new(0),
        polled_by: AtomicU32::new(0),
        closed: AtomicU64::new(0),
        opened: AtomicU64::new(0),
        opened_at: AtomicUsize::new(0),
    }
}; TABLE];

const FILES: u32 = 1;
const SOCKETS: u32 = 2;
/// Channels of single descriptors, of pairs, and of pipes begin here.
const SINGLE: u32 = 0x1000_0000;
const PAIR: u32 = 0x2000_0000;
const PIPE: u32 = 0x4000_0000;

fn index(fd: c_int) -> usize {
    (fd as usize).min(TABLE - 1)
}

fn descriptor(fd: c_int) -> &'static Descriptor {
    &DESCRIPTORS[index(fd)]
}

fn number_key(fd: c_int) -> usize {
    NUMBERS + index(fd) * KEY
}

fn channel_key(fd: c_int) -> usize {
    let known = descriptor(fd).channel.load(Ordering::Relaxed);
    let channel = if known != 0 { known } else { classify(fd) };
    CHANNELS + channel as usize * KEY
}

/// Asks the kernel what the descriptor is.
#[cold]
fn classify(fd: c_int) -> u32 {
    const INODE: usize = 1;
    const MODE: usize = 3;
    const KIND: u64 = 0xf000;
    let mut stat = [0u64; 18];
    // SAFETY: the buffer is as large as the kernel's structure.
    let failed = unsafe {
        sys::call(sys::FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) != 0
    };
    if failed {
        return FILES;
    }
    let channel = match stat[MODE] & KIND {
        0xc000 => SOCKETS,
        0x1000 => PIPE | (stat[INODE] as u32 & (PIPE - 1)),
        // Event counters, timers, poll sets: the kernel has one inode for all of them.
        0 => SINGLE | index(fd) as u32,
        _ => FILES,
    };
    descriptor(fd).channel.store(channel, Ordering::Relaxed);
    channel
}

fn is_tracked(fd: c_int) -> bool {
    fd >= 0 && crate::init::is_up()
}

/// Whether misuse of the descriptor is looked for.
fn is_checked(fd: c_int) -> bool {
    is_tracked(fd) && index(fd) < TABLE - 1 && rings::finds_misuse()
}

/// The thread is about to use a descriptor that it did not close just now: that conflicts with closing it.
pub fn used(fd: c_int, pc: usize) {
    if !is_checked(fd) {
        return;
    }
    let known = descriptor(fd);
    if known.closed.load(Ordering::Acquire) != 0 {
        if known.opened.load(Ordering::Acquire) == 0 && is_open(fd) {
            // By a function that is out of sight: what orders that is not known.
            return;
        }
        if is_stale(fd, AccessKind::Use, pc) {
            return;
        }
    }
    memory::uses(number_key(fd), pc);
}

/// Whether the thread knows that the descriptor was closed, and not that the number was given out again. That is
/// reported.
fn is_stale(fd: c_int, part: AccessKind, pc: usize) -> bool {
    let known = descriptor(fd);
    let closed = known.closed.load(Ordering::Acquire);
    let opened = known.opened.load(Ordering::Acquire);
    if closed == 0 || opened == 0 || !super::instrumented(pc) {
        return false;
    }
    let Some(t) = thread::me() else { return false };
    if !fasttrack::is_past(t, closed) || fasttrack::is_past(t, opened) {
        return false;
    }
    reused(t, fd, opened, part, pc);
    true
}

#[cold]
fn reused(t: &mut Thread, fd: c_int, opened: u64, part: AccessKind, pc: usize) {
    let cell = Cell(opened);
    let other = Other {
        thread: thread::owner(cell.slot(), cell.clock()),
        kind: AccessKind::Open,
        pc: descriptor(fd).opened_at.load(Ordering::Relaxed) as u64,
        cell,
    };
    let what =
        Misused { kind: MisuseKind::UsedReused, detail: fd as u32, addr: number_key(fd), part };
    report::misuse(t, &what, Some(&other), pc);
}

/// Whether the kernel knows the number.
#[cold]
fn is_open(fd: c_int) -> bool {
    const GET_FLAGS: usize = 1;
    // SAFETY: no memory involved.
    unsafe { sys::call(sys::FCNTL, [fd as usize, GET_FLAGS, 0, 0, 0, 0]) >= 0 }
}

/// Something is about to be written, or its end announced.
pub fn outgoing(fd: c_int, pc: usize) {
    if !is_tracked(fd) {
        return;
    }
    happens_before(channel_key(fd), pc);
    let set = descriptor(fd).polled_by.load(Ordering::Relaxed);
    if set != 0 {
        happens_before(channel_key(set as c_int - 1), pc);
    }
}

/// Something was read, or its end seen.
pub fn incoming(fd: c_int, pc: usize) {
    if is_tracked(fd) {
        happens_after(channel_key(fd), pc);
    }
}

/// The kernel has handed the number out.
pub fn created(fd: c_int, pc: usize) -> c_int {
    if is_tracked(fd) {
        descriptor(fd).channel.store(0, Ordering::Relaxed);
        descriptor(fd).polled_by.store(0, Ordering::Relaxed);
        happens_after(number_key(fd), pc);
        if let Some(t) = thread::me() {
            descriptor(fd).opened_at.store(pc, Ordering::Relaxed);
            descriptor(fd).opened.store(t.epoch, Ordering::Release);
        }
    }
    fd
}

/// The number is about to be given up. Who reads from the other end sees that, too.
pub fn closing(fd: c_int, pc: usize) {
    if is_tracked(fd) {
        outgoing(fd, pc);
        if is_checked(fd) && !is_stale(fd, AccessKind::Close, pc) {
            memory::destroys(number_key(fd), pc);
        }
        if let Some(t) = thread::me() {
            descriptor(fd).opened.store(0, Ordering::Relaxed);
            descriptor(fd).closed.store(t.epoch, Ordering::Release);
        }
        happens_before(number_key(fd), pc);
        descriptor(fd).channel.store(0, Ordering::Relaxed);
        descriptor(fd).polled_by.store(0, Ordering::Relaxed);
    }
}

/// The two are one: pairs share a channel, and so does a copy with its original.
fn share(first: c_int, second: c_int, channel: u32) {
    if is_tracked(first) && is_tracked(second) {
        for fd in [first, second] {
            descriptor(fd).channel.store(channel, Ordering::Relaxed);
        }
    }
}

/// A socket pair: what is written to one end is read from the other.
pub fn paired(first: c_int, second: c_int) {
    share(first, second, PAIR | index(first) as u32);
}

/// A copy of a descriptor, by another number.
pub fn copied(old: c_int, new: c_int, pc: usize) -> c_int {
    created(new, pc);
    if is_tracked(old) {
        channel_key(old);
        share(old, new, descriptor(old).channel.load(Ordering::Relaxed));
    }
    new
}

/// The descriptor is in a poll set from now on, or in none.
pub fn polled(fd: c_int, by: Option<c_int>) {
    if is_tracked(fd) {
        descriptor(fd).polled_by.store(by.map_or(0, |set| set as u32 + 1), Ordering::Relaxed);
    }
}
