//! Virtual time, and random numbers that are the same in every execution with the same seed.
//!
//! Time passes when no thread can run but one waits for a time, when a thread sleeps, and a little
//! whenever it is read, so that loops that wait for a time end. Sleeping does not order threads: it lets
//! others run.

use core::sync::atomic::Ordering::Relaxed;

use super::wire::Control;
use super::{me, ops};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;
/// What clocks that count from the epoch show at the start.
const EPOCH: u64 = 1_800_000_000 * SECOND;
/// What the others show.
const UPTIME: u64 = 1_000 * SECOND;
/// How long reading a clock takes.
const READING: u64 = 1_000;
/// Readings in a row after which a thread is taken to wait for the time.
const PATIENCE: u64 = 64;

/// The clock that counts from the epoch.
pub const REALTIME: usize = 0;
/// The one that others mean if they say nothing.
pub const MONOTONIC: usize = 1;

fn offset(clock: usize) -> u64 {
    const REALTIME_COARSE: usize = 5;
    const TAI: usize = 11;
    if matches!(clock, REALTIME | REALTIME_COARSE | TAI) { EPOCH } else { UPTIME }
}

/// What a clock shows, in nanoseconds.
pub fn read(clock: usize, pc: usize) -> Option<u64> {
    let (c, _) = me()?;
    let now = c.now.fetch_add(READING, Relaxed) + READING;
    if (now / READING).is_multiple_of(PATIENCE) {
        ops::yield_now(pc);
    }
    Some(c.now.load(Relaxed) + offset(clock))
}

unsafe fn nanoseconds(time: usize) -> u64 {
    // SAFETY: a timespec of the program.
    let [seconds, rest] = unsafe { (time as *const [i64; 2]).read() };
    (seconds.max(0) as u64).saturating_mul(SECOND).saturating_add(rest.max(0) as u64)
}

/// The virtual time of an absolute time on a clock; 0 if `time` is null or no thread is controlled.
///
/// # Safety
/// `time` is null or a `struct timespec`.
pub unsafe fn deadline(clock: usize, time: usize) -> u64 {
    if time == 0 || !super::is_on() {
        return 0;
    }
    // SAFETY: the caller's.
    unsafe { nanoseconds(time) }.saturating_sub(offset(clock)).max(1)
}

/// The virtual time after a duration.
///
/// # Safety
/// `time` is null or a `struct timespec`.
pub unsafe fn after(time: usize) -> u64 {
    let Some((c, _)) = me().filter(|_| time != 0) else { return 0 };
    // SAFETY: the caller's.
    c.now.load(Relaxed).saturating_add(unsafe { nanoseconds(time) }).max(1)
}

/// Sleeps for a duration.
pub fn sleep(nanoseconds: u64, pc: usize) -> bool {
    let Some((c, _)) = me() else { return false };
    c.now.fetch_add(nanoseconds, Relaxed);
    ops::yield_now(pc)
}

/// Sleeps until a virtual time.
pub fn sleep_until(time: u64, pc: usize) -> bool {
    let Some((c, _)) = me() else { return false };
    c.now.fetch_max(time, Relaxed);
    ops::yield_now(pc)
}

/// The next random number (splitmix64).
fn random(c: &Control) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = c.random.fetch_add(STEP, Relaxed).wrapping_add(STEP);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Fills memory with random bytes.
///
/// # Safety
/// `at` is valid for writing `len` bytes.
pub unsafe fn fill(at: usize, len: usize) -> bool {
    let Some((c, _)) = me() else { return false };
    let mut word = [0; 8];
    for i in 0..len {
        if i % 8 == 0 {
            word = random(c).to_le_bytes();
        }
        // SAFETY: the caller's.
        unsafe { ((at + i) as *mut u8).write(word[i % 8]) };
    }
    true
}
