//! Who accessed memory last, where accesses are held back: those that inference of disciplines learns nothing from.
//!
//! Where the host wants accesses held back ([`wire::HOLD_BACK`](crate::wire::HOLD_BACK)), each granule has two *owners*: who accessed
//! its bytes last, one for accesses that begin in its first half, one for the second. An access of the owner, to the
//! same bytes and under the same locks, is not recorded if it reads or if the owner has written since it became the
//! owner. Only when it was made is remembered, and told ([`RecordKind::HeldBack`](crate::wire::RecordKind::HeldBack))
//! before the next access to these bytes is recorded. The argument why nothing is lost is with `HeldBack` in
//! the model. `rings::held_back` decides and records; here is what is remembered.
//!
//! From each place in the code, an access to some memory is recorded once for each set of locks in any case, so that
//! the host knows the places, as far as the thread remembers them.
//!
//! Ground rules:
//! - Owners of a granule are looked at and changed under a lock, a bit in the first of them. Accesses are recorded
//!   under it, with stamps: so the host sees them in the order in which memory changed hands.
//! - Sets of locks are numbers that are a thread's own. If a lock at the same address may be another one, they get
//!   other numbers.
//! - Which atomic variables are locks of Rust only the host knows. So each one that a thread acquires counts as a lock
//!   until it is released: if it is one, the set of locks is the same only if that is. Whatever else a thread does with an
//!   atomic variable that may be a lock gives all sets other numbers.
//! - Whatever ends what the host remembers of memory ends what is remembered here.
//! - Tables are smaller than the address space. An entry says which memory it is for, and gives way to other memory.
//!
//! Cost: about 60 instructions for an access that is held back, once in an epoch. 16 bytes for each granule that is
//! accessed, 32 where both halves are.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::layout::{OWNED, OWNERS, OWNERS_BITS};
use crate::sys;
use crate::wire::SHARED;

/// The owner of some bytes.
#[repr(C, align(16))]
struct Owner {
    /// See [`Word`].
    who: AtomicU64,
    /// The moments of the last write (upper half) and the last read that were held back, 0 if none was.
    when: AtomicU64,
}

/// Which thread, under which locks, which bytes, and whether it has written. 0 if there is none.
type Word = u64;

const BYTES: Word = 0xff;
const MEMORY_SHIFT: u32 = 8;
const WROTE: Word = 1 << 16;
const LOCKED: Word = 1 << 17;
const LOCKS_SHIFT: u32 = 18;
const LOCKS_BITS: u32 = 20;
const THREAD_SHIFT: u32 = LOCKS_SHIFT + LOCKS_BITS;
const THREAD_BITS: u32 = 20;

/// Locks of a thread that are told apart; who holds more holds no access back.
pub const HELD: usize = 16;
/// Sets of locks that a thread remembers.
pub const SETS: usize = 64;
/// Places of accesses that a thread remembers.
pub const PLACES: usize = 1 << 14;
/// Memory within which a place counts once, in bits.
const NEAR: u32 = 12;

/// Grows when a lock may give way to another one at its address.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// What a thread does with an atomic variable that may be a lock of Rust.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Changed it, and acquires.
    Acquired,
    /// Changed it, and releases.
    Released,
    /// Both, or it failed to change it.
    Other,
}

/// What a thread knows of its locks and of its places.
#[repr(C)]
pub struct Owning {
    held: [u64; HELD],
    len: usize,
    /// Locks beyond those.
    more: u32,
    /// The number of the present set, 0 if there is none.
    number: u32,
    last: u32,
    /// Grows when it is no longer known which locks of Rust the thread holds.
    unsure: u32,
    sets: [(u64, u32); SETS],
    places: [u32; PLACES],
}

impl Owning {
    /// Of a thread that begins.
    pub fn begin(&mut self) {
        (self.len, self.more, self.unsure) = (0, 0, 0);
        self.renumber();
    }

    /// The thread records that it has acquired a lock; `flags` as in the record.
    pub fn acquired(&mut self, lock: usize, flags: u8) {
        let lock = held(lock, flags);
        match self.held.get_mut(self.len) {
            Some(place) => {
                *place = lock;
                self.len += 1;
            }
            None => self.more += 1,
        }
        self.renumber();
    }

    /// The thread records that it is about to release a lock.
    pub fn releasing(&mut self, lock: usize, flags: u8) {
        let lock = held(lock, flags);
        match self.held[..self.len].iter().rposition(|held| *held == lock) {
            Some(at) => {
                self.len -= 1;
                self.held[at] = self.held[self.len];
            }
            None if self.more > 0 => self.more -= 1,
            // It was forgotten that the thread has the lock.
            None => self.unsure += 1,
        }
        self.renumber();
    }

    /// The thread records that it has used an atomic variable that may be a lock of Rust.
    pub fn used(&mut self, variable: usize, step: Step) {
        let known = self.held[..self.len].iter().rposition(|held| held >> 1 == variable as u64);
        match (step, known) {
            (Step::Acquired, None) if self.len < HELD => {
                self.held[self.len] = held(variable, 0);
                self.len += 1;
            }
            (Step::Released, Some(at)) => {
                self.len -= 1;
                self.held[at] = self.held[self.len];
            }
            (Step::Acquired | Step::Released | Step::Other, _) => {
                self.len = 0;
                self.unsure += 1;
            }
        }
        self.renumber();
    }

    fn renumber(&mut self) {
        const NO_LOCKS: u32 = 1;
        if self.more > 0 {
            self.number = 0;
            return;
        }
        if self.len == 0 && self.unsure == 0 {
            self.number = NO_LOCKS;
            return;
        }
        let generation = u64::from(GENERATION.load(Ordering::Relaxed));
        let locks = self.held[..self.len].iter();
        let first = mix(!(generation | u64::from(self.unsure) << 32));
        let key = locks.fold(first, |all, &lock| all.wrapping_add(mix(lock)));
        let entry = &mut self.sets[key as usize % SETS];
        if entry.0 != key || entry.1 == 0 {
            self.last = self.last.max(NO_LOCKS) + 1;
            let number = if self.last >> LOCKS_BITS == 0 { self.last } else { 0 };
            self.last = self.last.min(1 << LOCKS_BITS);
            *entry = (key, number);
        }
        self.number = entry.1;
    }

    /// Whether the thread has accessed memory near by from this place, under these locks; from now on it has.
    fn knows(&mut self, thread: u32, addr: usize, pc: usize) -> bool {
        let near = (addr as u64 >> NEAR).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = mix(near ^ pc as u64 ^ u64::from(self.number) << 48 ^ u64::from(thread) << 20);
        let place = &mut self.places[key as usize % PLACES];
        let check = (key >> 32) as u32 | 1;
        let known = *place == check;
        *place = check;
        known
    }
}

/// The finaliser of splitmix64.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

fn held(lock: usize, flags: u8) -> u64 {
    (lock as u64) << 1 | u64::from(flags & SHARED)
}

/// What is at the address of a lock may be another lock from now on.
pub fn lock_vanished() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The owners of the granule at `addr`.
fn owners(addr: usize) -> [&'static Owner; 2] {
    let offset = (addr & ((1 << OWNERS_BITS) - 1) & !7) * 2;
    // SAFETY: the tables are mapped before the first thread holds accesses back; all contents are valid.
    OWNERS.map(|table| unsafe { &*((table + offset) as *const Owner) })
}

/// Whether memory in the page of `addr` has had an owner.
fn owned(addr: usize) -> &'static AtomicU8 {
    let page = (addr & ((1 << OWNERS_BITS) - 1)) >> 12;
    // SAFETY: as in `owners`.
    unsafe { &*((OWNED + page) as *const AtomicU8) }
}

/// What tells the memory at `addr` from other memory with the same entry.
fn memory(addr: usize) -> Word {
    (addr as u64 >> OWNERS_BITS & 0xff) << MEMORY_SHIFT
}

/// What an owner has held back.
pub struct Held {
    /// The owner.
    pub thread: u32,
    /// The address of the granule.
    pub granule: usize,
    /// Which bytes of it.
    pub bytes: u64,
    /// The moments of the last write and of the last read, 0 if there was none.
    pub written: u64,
    /// See `written`.
    pub read: u64,
}

/// Both owners of a granule, for one thread at a time.
pub struct Locked {
    owners: [&'static Owner; 2],
    /// What their place in the tables says of the address.
    offset: usize,
    /// What they were, without the lock.
    who: [Word; 2],
}

impl Locked {
    /// Waits until no other thread has them.
    pub fn new(addr: usize) -> Locked {
        let owners = owners(addr);
        let mut spins = 0u32;
        loop {
            let first = owners[0].who.load(Ordering::Relaxed);
            if first & LOCKED == 0
                && owners[0]
                    .who
                    .compare_exchange_weak(
                        first,
                        first | LOCKED,
                        Ordering::Acquire,
                        Ordering::Relaxed,
                    )
                    .is_ok()
            {
                let who = [first, owners[1].who.load(Ordering::Relaxed)];
                let offset = addr & ((1 << OWNERS_BITS) - 1) & !7;
                return Locked { owners, offset, who };
            }
            spins += 1;
            if spins.is_multiple_of(64) {
                sys::yield_now();
            }
        }
    }

    /// Whether no access of the other half has these bytes.
    fn is_apart(&self, half: usize, bytes: u64) -> bool {
        self.who[1 - half] & bytes == 0
    }

    /// Takes an owner away, and with it what it has held back.
    pub fn end(&mut self, half: usize) -> Option<Held> {
        let who = core::mem::take(&mut self.who[half]);
        let when = self.owners[half].when.load(Ordering::Relaxed);
        if when == 0 {
            return None;
        }
        self.owners[half].when.store(0, Ordering::Relaxed);
        let memory = (who >> MEMORY_SHIFT & 0xff) as usize;
        Some(Held {
            thread: (who >> THREAD_SHIFT) as u32 & ((1 << THREAD_BITS) - 1),
            granule: self.offset | memory << OWNERS_BITS,
            bytes: who & BYTES,
            written: when >> 32,
            read: when & 0xffff_ffff,
        })
    }

    /// Gives the owners back.
    pub fn unlock(self) {
        // Looking first keeps memory of which there is nothing to say out of memory.
        if self.owners[1].who.load(Ordering::Relaxed) != self.who[1] {
            self.owners[1].who.store(self.who[1], Ordering::Relaxed);
        }
        self.owners[0].who.store(self.who[0], Ordering::Release);
    }
}

/// An access by a thread.
#[derive(Clone, Copy)]
pub struct Access {
    half: usize,
    bytes: u64,
    write: bool,
    /// The owner that it makes, if it does not write.
    who: Word,
    /// Whether it may be held back.
    counts: bool,
}

impl Access {
    /// To some bytes of the granule at `addr`, from a place in the code.
    pub fn new(
        owning: &mut Owning,
        thread: u32,
        (addr, bytes): (usize, u64),
        write: bool,
        pc: usize,
    ) -> Access {
        let known = owning.knows(thread, addr, pc);
        let who = bytes
            | memory(addr)
            | u64::from(owning.number) << LOCKS_SHIFT
            | u64::from(thread) << THREAD_SHIFT;
        let counts = known && owning.number != 0 && thread >> THREAD_BITS == 0;
        let half = usize::from(bytes.trailing_zeros() >= 4);
        Access { half, bytes, write, who, counts }
    }

    /// Holds it back at a moment, if that is possible.
    pub fn hold_back(&self, both: &mut Locked, moment: u64) -> bool {
        let owner = both.owners[self.half];
        let who = both.who[self.half];
        let possible = self.counts
            && (who ^ self.who) & !WROTE == 0
            && (who & WROTE != 0 || !self.write)
            && both.is_apart(self.half, self.bytes)
            && moment != 0
            && moment <= u64::from(u32::MAX);
        if possible {
            let when = owner.when.load(Ordering::Relaxed);
            let (written, read) = (when >> 32, when & 0xffff_ffff);
            let now = if self.write { moment << 32 | read } else { written << 32 | moment };
            owner.when.store(now, Ordering::Relaxed);
        }
        possible
    }

    /// Becomes the owner, and says what others or it itself have held back until now.
    pub fn take_over(&self, both: &mut Locked) -> [Option<Held>; 2] {
        let who = both.who[self.half];
        let goes_on = self.who >> LOCKS_SHIFT & ((1 << LOCKS_BITS) - 1) != 0
            && (who ^ self.who) & !WROTE == 0;
        let apart = both.is_apart(self.half, self.bytes);
        let own = both.end(self.half);
        let other = if apart { None } else { both.end(1 - self.half) };
        let wrote = self.write || goes_on && who & WROTE != 0;
        both.who[self.half] = self.who | if wrote { WROTE } else { 0 };
        if owned(both.offset).load(Ordering::Relaxed) == 0 {
            owned(both.offset).store(1, Ordering::Relaxed);
        }
        [own, other]
    }
}

/// The granules in a range that may have owners.
pub fn owned_in(addr: usize, len: usize) -> impl Iterator<Item = usize> {
    let end = addr.saturating_add(len);
    let pages = (addr & !4095..end).step_by(4096);
    let pages = pages.filter(|&page| owned(page).load(Ordering::Relaxed) != 0);
    let granules = pages.flat_map(move |page| {
        let from = page.max(addr & !7);
        (from..(page + 4096).min(end)).step_by(8)
    });
    granules.filter(|&at| owners(at).iter().any(|o| o.who.load(Ordering::Relaxed) != 0))
}
