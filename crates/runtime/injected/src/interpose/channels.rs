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
//! Guarantee: order is only added, never lost, as far as descriptors are used through these functions.
//! May miss: races between threads that happen to write and read unrelated files or sockets; numbers
//! above 65,535 count as one.
//!
//! Cost: two look-ups and two short locks for each call, beside the system call's own.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::primitives::{happens_after, happens_before};
use crate::sys;

/// How many descriptors are distinguished; larger numbers are not.
const TABLE: usize = 1 << 16;
/// Synchronization objects are found by address; the program has no memory at these addresses.
const NUMBERS: usize = 0x4300_0000_0000;
const CHANNELS: usize = 0x4380_0000_0000;
/// How far apart they are. Under control the host numbers memory in pieces of that size: whether two keys
/// share one must not depend on the inodes of pipes.
const KEY: usize = 16;

/// What is known of a descriptor.
struct Descriptor {
    /// Its channel, 0 until a thread uses it.
    channel: AtomicU32,
    /// The poll set that it is in, plus one.
    polled_by: AtomicU32,
}

static DESCRIPTORS: [Descriptor; TABLE] =
    [const { Descriptor { channel: AtomicU32::new(0), polled_by: AtomicU32::new(0) } }; TABLE];

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
    }
    fd
}

/// The number is about to be given up. Who reads from the other end sees that, too.
pub fn closing(fd: c_int, pc: usize) {
    if is_tracked(fd) {
        outgoing(fd, pc);
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
