//! What accesses find in memory and leave there.
//!
//! In a controlled execution one thread runs at a time, so that memory before an access is what the access
//! finds. What a plain write leaves is there when its thread comes back to the runtime, at the latest at its next
//! scheduling point, before another thread can run.
//!
//! Memory is read by a system call that fails where nothing is mapped: a wild access of the program shall fail in
//! the program, and not here. If the kernel does not allow the call, no values are known.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::wire::{
    Control, FOUND, FOUND_POINTS, LEFT, LEFT_POINTS, SEEN, Seen, Slot, VALUES, Words,
};
use crate::sys;
use crate::wire::{Record, RecordKind};

/// Whether values are kept.
#[inline]
pub fn is_wanted(c: &Control) -> bool {
    c.flags.load(Relaxed) & VALUES != 0
}

/// Up to 16 bytes of the process's own memory.
fn memory(addr: u64, len: usize) -> Option<[u64; 2]> {
    let mut words = [0_u64; 2];
    let to = [core::ptr::from_mut(&mut words) as usize, len.min(size_of_val(&words))];
    let from = [addr as usize, to[1]];
    let (to_at, from_at) = (to.as_ptr() as usize, from.as_ptr() as usize);
    // SAFETY: both lists have one entry, and the first entry is `words` with at most its length; the kernel
    // checks the second.
    let read =
        unsafe { sys::call(sys::PROCESS_VM_READV, [sys::pid() as usize, to_at, 1, from_at, 1, 0]) };
    (read == to[1] as isize).then_some(words)
}

fn put(words: &Words, values: [u64; 2]) {
    words
        .iter()
        .zip(values)
        .for_each(|(word, value): (&AtomicU64, u64)| word.store(value, Relaxed));
}

fn get(words: &Words) -> [u64; 2] {
    core::array::from_fn(|i| words[i].load(Relaxed))
}

/// The bytes that an access is about, if they are few.
fn place(record: &Record) -> Option<(u64, usize)> {
    use RecordKind::{Load, Read, Store, Update, Write};
    let len = match record.kind()? {
        Read | Write | Load | Store => record.b as usize,
        Update => record.b as u32 as usize,
        _ => return None,
    };
    (1..=16).contains(&len).then_some((record.a, len))
}

/// Notes values, and what they point to if they may be pointers.
fn note(seen: &Seen, values: [u64; 2], left: bool) {
    let (words, points, flag, pointing) = if left {
        (&seen.left, &seen.left_points, LEFT, LEFT_POINTS)
    } else {
        (&seen.found, &seen.found_points, FOUND, FOUND_POINTS)
    };
    const LOWEST: u64 = 1 << 12;
    const HIGHEST: u64 = 1 << 47;
    let mut known = flag;
    put(words, values);
    if seen.len.load(Relaxed) == 8
        && (LOWEST..HIGHEST).contains(&values[0])
        && let Some(text) = memory(values[0], 16)
    {
        put(points, text);
        known |= pointing;
    }
    seen.known.fetch_or(known, Relaxed);
}

/// The write of the thread before, if there is one, has left its value.
pub fn finish(c: &Control, slot: &Slot) {
    let Some(number) = slot.unfinished.swap(0, Relaxed).checked_sub(1) else { return };
    let seen = &c.seen[number as usize % SEEN];
    if let Some(now) = memory(seen.addr.load(Relaxed), seen.len.load(Relaxed) as usize) {
        note(seen, now, true);
    }
}

/// The thread is about to do this, and no other thread runs until it has done so.
pub fn about_to(slot: &Slot, record: &Record) {
    let now = place(record).and_then(|(addr, len)| memory(addr, len));
    slot.before_known.store(u32::from(now.is_some()), Relaxed);
    put(&slot.before, now.unwrap_or_default());
}

/// The line at `at` of the history is this access: a plain one that is about to happen, or an atomic one that
/// has happened.
pub fn happened(c: &Control, slot: &Slot, at: usize, record: &Record) {
    let Some((addr, len)) = place(record) else { return };
    let Some(now) = memory(addr, len) else { return };
    let number = c.seen_len.fetch_add(1, Relaxed);
    let Some(seen) = c.seen.get(number as usize) else { return };
    seen.addr.store(addr, Relaxed);
    seen.len.store(len as u32, Relaxed);
    seen.known.store(0, Relaxed);
    match record.kind() {
        Some(RecordKind::Store | RecordKind::Update) => {
            if slot.before_known.swap(0, Relaxed) != 0 {
                note(seen, get(&slot.before), false);
            }
            note(seen, now, true);
        }
        Some(RecordKind::Write) => {
            note(seen, now, false);
            slot.unfinished.store(number + 1, Relaxed);
        }
        _ => note(seen, now, false),
    }
    c.log[at].see(number);
}
