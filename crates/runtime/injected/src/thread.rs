//! Threads as the runtime knows them: their state, their slots, and the few words that the hot path
//! finds in thread-local storage.
//!
//! Every thread has a block at a fixed place (see [`layout`]): its call stack, this [`Thread`], and
//! its sets of shadow cells. Blocks are reused once a thread has ended and been joined (or detached).
//!
//! Ground rules:
//! - A [`Thread`] is written by its own thread only, except: by its creator before it starts, and its
//!   clock is read by its joiner after it has ended.
//! - Threads that were not created through an interposed function have no [`Thread`]; everything they
//!   do is ignored, because what orders them is unknown and a false alarm is worse than a miss.

mod fiber;
pub mod joint;
mod recent;
mod swept;

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, compiler_fence};

use crate::arch::words;
use crate::clock::{Clock, ThreadClock};
use crate::layout;
pub use crate::layout::{ENTRY, KNOWN};
use crate::owners::Owning;
use crate::regions::{self, Height, Regions};
use crate::shadow::{self, Cell, Cells, FIRST_MARK, MAX_CLOCK, SETS, SLOTS};
use crate::sys::SpinLock;
use crate::wire;
use joint::{JOINTS, Joint};
use recent::MEMOS;
pub use recent::{Change, Memo, Seen};
pub use swept::{SWEPT, Swept};

/// Where the [`Thread`] lies in its block.
pub const STATE_OFFSET: usize = 1 << 16;
/// Where the sets of cells lie in the block.
pub const SETS_OFFSET: usize = 1 << 18;
static CONTROLLED: AtomicBool = AtomicBool::new(false);

/// Whether the host decides which thread of this process runs.
#[inline(always)]
pub fn is_controlled() -> bool {
    CONTROLLED.load(Ordering::Relaxed)
}

/// The host decides from now on which thread runs, or no longer.
pub fn set_controlled(on: bool) {
    CONTROLLED.store(on, Ordering::Release);
}

/// Bytes of the call stack, a ring: deeper frames overwrite the outermost.
pub const STACK_LEN: usize = 1 << 16;

const _: () = assert!(STATE_OFFSET + size_of::<Thread>() <= SETS_OFFSET);
const _: () = assert!(SETS_OFFSET + SETS * 128 <= layout::THREAD_LEN);

/// Entries of [`Thread::seen`], by address.
const SEEN: usize = 16;

/// An entry of [`Thread::known`] that equals no word and has no bytes: a set is never without.
const NOTHING_KNOWN: u64 = !0xff;

/// Not 0 if every access is wanted, one by one: functions that were built with few hooks then run their second bodies.
#[cfg_attr(selvedge_injected, unsafe(no_mangle))]
#[allow(non_upper_case_globals)] // As the compiler's functions.
pub static selvedge_all_hooks: AtomicU32 = AtomicU32::new(0);

/// States of a thread block.
pub mod state {
    #![allow(missing_docs)]
    pub const FREE: u32 = 0;
    pub const LIVE: u32 = 1;
    pub const ENDED: u32 = 2;
}

/// One thread of the program. What every thread uses comes first and what few use last: a thread that does little touches
/// two pages, and each page that it touches first costs more than all that it does there.
#[repr(C)]
pub struct Thread {
    /// Set words in which this thread's current epoch stands, the low byte telling its bytes.
    pub known: [u64; KNOWN],
    /// Slot and clock, as in a [`Cell`].
    pub epoch: u64,
    /// The thread looks at no access while this is not 0.
    pub ignore: u32,
    /// What the thread synchronizes with orders nothing while this is not 0.
    pub ignore_sync: u32,
    /// Accesses are ignored, recorded or controlled: the fast forms leave them to the full one.
    // invariant: true if `ignore != 0 || record_accesses || is_controlled()`.
    pub unusual: bool,
    /// The thread combines a reduction by code of the program (see `openmp::reduction`).
    pub combines: bool,
    /// Where the thread is among the teams and tasks of gcc's OpenMP.
    pub openmp: crate::interpose::openmp::Within,
    /// The runtime holds locks, or is otherwise not to be re-entered, while this is not 0.
    pub busy: u32,
    /// The thread is inside a library whose synchronization says nothing while this is not 0 (see `spmd`).
    pub outside: u32,
    /// What the thread is telling a library of ranks.
    pub run: crate::run::Run,
    /// What it knows of all threads.
    pub clock: ThreadClock,
    /// Its component.
    pub slot: u32,
    tick: u32,
    shares_slot: bool,
    known_used: bool,
    /// Accesses are recorded as well.
    pub record_accesses: bool,
    /// Atomic operations are recorded, also those that cannot be part of a lock.
    pub record_atomics: bool,
    /// Accesses to memory on which a race has happened are recorded as well.
    // invariant: implied by `record_accesses`, unless accesses are held back.
    pub record_racy: bool,
    /// Accesses that are recorded may be held back, see `owners`.
    pub hold_back: bool,
    /// Number among all threads ever.
    pub number: u32,
    /// Number of its block.
    pub index: u32,
    /// Held while one of its sets is written or changed.
    sets: SpinLock,
    /// Sequence number of its next set.
    pub next_set: u32,
    /// How often the thread has got or given back memory.
    pub memory_changes: u64,
    /// See [`Seen`].
    pub seen: [Seen; SEEN],
    /// What the last release fence published.
    pub fence_released: Clock,
    /// What relaxed loads have read, for the next acquire fence.
    pub fence_acquired: Clock,
    /// See [`state`].
    pub state: AtomicU32,
    /// Not 0 if no thread will join it.
    pub detached: AtomicU32,
    /// Its `pthread_t`, 0 until known.
    pub pthread: AtomicUsize,
    /// The kernel's number of it.
    pub tid: u32,
    /// What it waits for, 0 if it does not, and where.
    pub waits_for: AtomicUsize,
    /// See `waits_for`.
    pub waits_at: AtomicUsize,
    /// The signal whose handler it runs, if that may have interrupted anything; else 0.
    pub handles: u32,
    /// It is in a call during which handlers may do what they like while this is not 0.
    pub expects_signal: u32,
    /// Of a fiber that does not run: the top of its call stack.
    pub saved_top: usize,
    /// Where it was started.
    pub started_at: usize,
    /// Function to run, with its argument and the size of its stack.
    pub start: (usize, usize, usize),
    /// One-time initialisation in progress: control, function, program counter.
    pub once: (usize, usize, usize),
    /// In how many rounds of destructors the end of the thread was put off.
    pub end_rounds: u32,
    /// The stamp of its last record that is no access.
    pub moment: u64,
    /// Its ring, if it records.
    pub ring: crate::rings::Writer,
    /// How deep the call stack was at `setjmp`s, by the address of the buffer.
    pub jumps: [(usize, Height); 32],
    /// Next entry of `jumps` to overwrite.
    pub next_jump: usize,
    /// Its number in a controlled execution, plus one; 0 if it is not controlled.
    pub controlled: u32,
    /// The same, kept for the thread that joins it.
    pub joined_as: u32,
    /// Signals that arrived while busy.
    pub pending: u64,
    /// What the thread had blocked when the first of them came, and what the kernel said about it.
    pub pending_mask: u64,
    /// See `pending_mask`: a `siginfo_t`.
    pub pending_info: [u64; 16],
    /// See [`Regions`].
    pub regions: Regions,
    /// See [`Owning`].
    pub owning: Owning,
    /// See [`sweep`](crate::fasttrack::sweep).
    pub swept: [Swept; SWEPT],
    /// See [`joined`](crate::places::joined).
    pub joints: [Joint; JOINTS],
    /// See [`Memo`].
    pub memo: [Memo; MEMOS],
}

/// Slot and clock of a cell, as records have them.
pub fn short_epoch(cell: Cell) -> u64 {
    cell.0 >> 8 & 0xffff_ffff
}

/// The block of a number.
#[inline]
pub fn block(index: usize) -> *mut Thread {
    (layout::THREADS + index * layout::THREAD_LEN + STATE_OFFSET) as *mut Thread
}

/// The lock of the sets of the thread with that block.
pub fn sets_lock(index: usize) -> &'static SpinLock {
    // SAFETY: blocks stay mapped, zero bytes are an open lock, and it is never moved.
    unsafe { &(*block(index)).sets }
}

/// Accesses are recorded, whatever the host wants: the library for MPI programs needs them.
pub static RECORD_ALL: AtomicBool = AtomicBool::new(false);

/// Blocks ever used.
pub static BLOCKS: AtomicUsize = AtomicUsize::new(0);
static NUMBERS: AtomicU32 = AtomicU32::new(0);

/// The current thread, or null if the runtime does not know it.
#[inline(always)]
pub fn current() -> *mut Thread {
    words::thread() as *mut Thread
}

/// The current thread, if the runtime knows it and is not inside itself already.
#[inline(always)]
pub fn me() -> Option<&'static mut Thread> {
    let thread = current();
    // SAFETY: the pointer is null or the thread's own block, which only this thread writes. Two
    // references may exist up the stack only across `Busy`, which this refuses.
    unsafe {
        if thread.is_null() || (*thread).busy | (*thread).outside != 0 {
            None
        } else {
            Some(&mut *thread)
        }
    }
}

/// While it lives, the thread's signals are put off and interposers pass through.
pub struct Busy(*mut Thread);

impl Busy {
    /// Enters.
    #[inline]
    pub fn new(thread: &mut Thread) -> Busy {
        thread.busy += 1;
        // A handler runs between two instructions, wherever the compiler puts them.
        compiler_fence(Ordering::SeqCst);
        Busy(thread)
    }
}

impl Drop for Busy {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the block of the current thread, which outlives the guard.
        unsafe {
            (*self.0).busy -= 1;
            compiler_fence(Ordering::SeqCst);
            if (*self.0).pending != 0 && (*self.0).busy == 0 {
                crate::interpose::signal::deliver_pending(self.0);
            }
        }
    }
}

/// The history of one slot: who had it from which clock on, latest last.
#[derive(Clone, Copy)]
struct Slot {
    last: u32,
    taken: bool,
    owners: [(u32, u32); 4],
}

struct Slots {
    lock: SpinLock,
    used: usize,
    list: [Slot; SLOTS],
}

struct Global(UnsafeCell<Slots>);
// SAFETY: everything but the lock is touched only under it.
unsafe impl Sync for Global {}

static TABLE: Global = Global(UnsafeCell::new(Slots {
    lock: SpinLock::new(),
    used: 0,
    list: [Slot { last: 0, taken: false, owners: [(0, 0); 4] }; SLOTS],
}));

fn with_slots<R>(f: impl FnOnce(&mut Slots) -> R) -> R {
    // SAFETY: the reference lives only under the lock; the lock itself is not touched through it.
    unsafe {
        let _guard = (*TABLE.0.get()).lock.lock();
        f(&mut *TABLE.0.get())
    }
}

impl Slots {
    /// A slot whose last owner's end is known to the newcomer; else a new one; else, when none is
    /// left, the longest-known free one (races with its former owner may be missed); else the last
    /// one, shared (its owners look ordered to third parties more often than they are).
    fn take(&mut self, number: u32, known: &[u32]) -> (u32, u32, bool) {
        let free = |s: &Slot| !s.taken && s.last < MAX_CLOCK / 2;
        let exact = (0..self.used).find(|&i| {
            free(&self.list[i]) && known.get(i).is_some_and(|&k| self.list[i].last <= k)
        });
        let slot = match exact {
            Some(i) => i,
            None if self.used < SLOTS => {
                self.used += 1;
                self.used - 1
            }
            None => (0..SLOTS).find(|&i| free(&self.list[i])).unwrap_or(SLOTS - 1),
        };
        let entry = &mut self.list[slot];
        let shared = entry.taken;
        entry.taken = true;
        // Of a slot that is shared more may be known than its table says.
        let last = known.get(slot).map_or(entry.last, |&known| known.max(entry.last));
        entry.last = (last + 1).min(MAX_CLOCK);
        entry.owners.rotate_left(1);
        entry.owners[3] = (entry.last, number);
        (slot as u32, entry.last, shared)
    }
}

/// The number of the thread that was at a point.
pub fn owner(slot: usize, clock: u32) -> u32 {
    with_slots(|s| {
        let owners = s.list.get(slot).map_or([(0, 0); 4], |e| e.owners);
        owners.iter().rev().find(|o| o.0 != 0 && o.0 <= clock).map_or(u32::MAX, |o| o.1)
    })
}

impl Thread {
    /// Starts a new epoch: what was published so far is told apart from what comes now.
    pub fn tick(&mut self) {
        // A handler that ran in between would come to a later epoch, from which the thread would go back.
        let _busy = Busy::new(self);
        // Others that have the same slot may have come further, and what was learnt of them is not to be
        // forgotten.
        self.tick = self.tick.max(self.clock.at[self.slot as usize % SLOTS]);
        if self.tick + 1 >= MAX_CLOCK || self.shares_slot {
            self.tick_rarely();
        } else {
            self.tick += 1;
        }
        self.clock.set(self.slot, self.tick);
        self.new_epoch();
    }

    /// A shared slot counts for all its owners; a worn-out slot is left for a fresh one, and when
    /// there is none the clock stands still: then races are missed.
    #[cold]
    fn tick_rarely(&mut self) {
        let (slot, number) = (self.slot as usize, self.number);
        if self.shares_slot {
            let known = self.tick;
            self.tick = with_slots(|s| {
                s.list[slot].last = (s.list[slot].last.max(known) + 1).min(MAX_CLOCK);
                s.list[slot].last
            });
            return;
        }
        let fresh = with_slots(|s| {
            (s.used < SLOTS).then(|| {
                s.list[slot].last = MAX_CLOCK;
                s.take(number, &[])
            })
        });
        if let Some((slot, tick, _)) = fresh {
            self.slot = slot;
            self.tick = tick;
        }
    }

    /// Its number in a controlled execution, plus one, also after its end.
    pub fn joinable(&self) -> u32 {
        self.joined_as
    }

    /// The number by which records name it.
    pub fn told_as(&self) -> usize {
        if self.joined_as == 0 { self.number as usize } else { self.joined_as as usize - 1 }
    }

    /// Begins to ignore accesses.
    pub fn ignore_begin(&mut self) {
        self.ignore += 1;
        self.unusual = true;
    }

    /// Ends what the last `ignore_begin` began.
    pub fn ignore_end(&mut self) {
        self.ignore = self.ignore.saturating_sub(1);
        self.set_unusual();
    }

    /// Whether accesses are recorded.
    pub fn set_record_accesses(&mut self, wanted: bool) {
        self.record_accesses = wanted;
        self.set_unusual();
    }

    /// Something that makes accesses unusual has changed.
    pub fn set_unusual(&mut self) {
        if self.record_accesses || is_controlled() {
            selvedge_all_hooks.store(1, Ordering::Relaxed);
        }
        self.unusual = self.ignore != 0 || self.record_accesses || is_controlled();
    }

    /// Records what the host wants to see besides synchronization, from now on.
    pub fn record_as_wanted(&mut self) {
        let flags = crate::rings::shared().map_or(0, |s| s.header.flags);
        self.set_record_accesses(
            flags & wire::RECORD_ACCESSES != 0 || RECORD_ALL.load(Ordering::Relaxed),
        );
        let holds_back = flags & wire::HOLD_BACK != 0 && self.ring.is_ring();
        if holds_back && !self.hold_back {
            self.owning.begin();
        }
        self.hold_back = holds_back;
        let racy = wire::RECORD_ACCESSES | wire::RECORD_RACY;
        self.record_racy = flags & racy != 0 && !self.hold_back;
        self.record_atomics =
            self.ring.is_log() || self.ring.is_open() && flags & wire::RECORD_ATOMICS != 0;
        self.regions.reset(self.ring.is_open() && regions::by_function());
        words::set_innermost(0);
    }

    /// Whether accesses are recorded that change what is known of their memory, and no others.
    #[inline]
    pub fn holds_back(&self) -> bool {
        self.hold_back && self.record_accesses && self.ignore == 0
    }

    /// Records nothing any more.
    pub fn record_nothing(&mut self) {
        self.ring.abandon();
        self.set_record_accesses(false);
        self.hold_back = false;
        self.record_racy = false;
        self.record_atomics = false;
        self.regions.reset(false);
        words::set_innermost(0);
    }

    /// Slot and clock, as a record has them.
    pub fn short_epoch(&self) -> usize {
        short_epoch(Cell(self.epoch)) as usize
    }

    /// A point that only this release makes known: a thread that knows it has learnt all of the release.
    /// 0 if there is no such point, because the clock stands still or counts for several threads.
    #[inline]
    pub fn release_mark(&self) -> u64 {
        if self.shares_slot || self.tick + 1 >= MAX_CLOCK { 0 } else { self.epoch }
    }

    fn new_epoch(&mut self) {
        self.epoch = Cell::epoch_of(self.slot, self.tick);
        if self.known_used {
            self.known = [NOTHING_KNOWN; KNOWN];
            self.known_used = false;
        }
        words::set_filter(self.epoch | 0xff);
    }

    /// Writes a set of cells in this thread's next place for one.
    pub fn write_set(&mut self, cells: &Cells) -> u64 {
        shadow::write_set(self.index as usize, &mut self.next_set, cells)
    }

    /// What `old` becomes when `cell` is added or taken away, if this thread did so a short while ago and
    /// there was no race.
    #[inline]
    pub fn remembered(&self, old: u64, change: Change, cell: u64) -> Option<u64> {
        let pair = Memo::pair(old, cell);
        let known = |m: &&Memo| {
            m.old == old
                && m.cell == cell
                && m.change == change
                && self.next_set.wrapping_sub(m.made) < (SETS / 2) as u32
        };
        let new = self.memo[pair..pair + 2].iter().find(known)?.new;
        if new != old {
            shadow::use_again(new);
        }
        Some(new)
    }

    /// Remembers a set construction in which no race was found, at the cost of an older one.
    pub fn memorise(&mut self, memo: Memo) {
        let pair = Memo::pair(memo.old, memo.cell);
        self.memo[pair + 1] = self.memo[pair];
        self.memo[pair] = memo;
    }

    /// The last load at an address, or what its entry has instead.
    #[inline]
    pub fn seen(&mut self, addr: usize) -> &mut Seen {
        &mut self.seen[(addr >> 3) % SEEN]
    }

    /// Remembers that the set `word` names holds a plain access of this epoch to `bytes`.
    #[inline]
    pub fn remember(&mut self, word: u64, bytes: u64) {
        self.known_used = true;
        self.known[(word >> 8) as usize % KNOWN] = (word & !0xff) | bytes;
    }

    /// Whether that is remembered.
    #[inline(always)]
    pub fn remembers(&self, word: u64, bytes: u64) -> bool {
        let entry = self.known[(word >> 8) as usize % KNOWN];
        (entry ^ word) >> 8 == 0 && entry & bytes == bytes
    }

    /// The functions that are active, innermost first, as return addresses.
    pub fn stack(&self, top: usize, into: &mut [u64; wire::FRAMES]) -> u32 {
        let base = layout::THREADS + self.index as usize * layout::THREAD_LEN;
        let depth = ((top & (STACK_LEN - 1)) / ENTRY).min(wire::FRAMES);
        for (i, frame) in into.iter_mut().enumerate().take(depth) {
            let at = base + (top - ENTRY * (i + 1)) % STACK_LEN;
            // SAFETY: within the stack part of the block.
            *frame = unsafe { (at as *const u64).read_volatile() };
        }
        depth as u32
    }

    /// The outermost entries of the call stack, in use or not, outermost first.
    pub fn outer_calls(&self, into: &mut [[u64; 2]; wire::PAST]) {
        let base = layout::THREADS + self.index as usize * layout::THREAD_LEN;
        for (i, entry) in into.iter_mut().enumerate() {
            // SAFETY: within the stack part of the block. Its thread may write it meanwhile; words are
            // read one by one, and what does not fit together is found out by who uses it.
            *entry = unsafe { ((base + i * ENTRY) as *const [u64; 2]).read_volatile() };
        }
    }

    /// The block may have been another thread's.
    fn forget_calls(&mut self) {
        let base = layout::THREADS + self.index as usize * layout::THREAD_LEN;
        // SAFETY: the stack part of the block, which the thread does not use yet.
        unsafe { (base as *mut [u64; 2]).write_bytes(0, wire::PAST) };
    }

    /// Makes this the current thread.
    pub fn begin(&mut self) {
        words::set_thread(core::ptr::from_mut(self) as usize);
        self.tid = crate::sys::tid();
        words::set_stack_top(layout::THREADS + self.index as usize * layout::THREAD_LEN);
        self.new_epoch();
    }

    /// The thread was never started.
    pub fn abandon(&mut self) {
        let slot = self.slot as usize;
        if !self.shares_slot {
            with_slots(|s| s.list[slot].taken = false);
        }
        self.state.store(state::FREE, Ordering::Release);
    }

    /// Nothing that is done from now on is this thread's.
    pub fn leave(&self) {
        words::set_thread(0);
        words::set_filter(0);
        words::set_innermost(0);
        words::set_stack_top(layout::NOBODYS_STACK);
    }

    /// The thread ends: nothing that it does from now on is seen.
    pub fn end(&mut self) {
        self.leave();
        self.retire();
        self.state.store(state::ENDED, Ordering::Release);
        if self.detached.load(Ordering::Acquire) != 0 {
            self.state.store(state::FREE, Ordering::Release);
        }
    }
}

/// The next thread has this number.
pub fn number_from(first: u32) {
    NUMBERS.store(first, Ordering::Relaxed);
}

/// A block for a new thread that starts with what `known` says. None if there are too many.
pub fn create(known: &[u32]) -> Option<&'static mut Thread> {
    if let Some(first) = crate::rings::first_thread_after_fork() {
        let t = current();
        if !t.is_null() {
            // SAFETY: the thread's own block.
            unsafe { (*t).number = first };
        }
        NUMBERS.store(first + 1, Ordering::Relaxed);
    }
    let index = free_block()?;
    // SAFETY: `free_block` claimed the block, so no other thread has it; zero bytes and the
    // leftovers of an ended thread are valid contents.
    let thread = unsafe { &mut *block(index) };
    // Written before anything on its page is read: reading first would cost a page fault of its own.
    thread.known = [NOTHING_KNOWN; KNOWN];
    thread.index = index as u32;
    thread.forget_calls();
    thread.number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    for c in thread.clock.at.iter_mut().take(thread.clock.len) {
        *c = 0;
    }
    thread.clock.len = 0;
    // Components that belong to no thread; see `fasttrack::ordered`.
    thread.clock.at[FIRST_MARK as usize..].fill(u32::MAX);
    thread.clock.join(known);
    let number = thread.number;
    let (slot, tick, shared) = with_slots(|s| s.take(number, known));
    thread.slot = slot;
    thread.tick = tick;
    thread.shares_slot = shared;
    thread.clock.set(slot, tick);
    thread.epoch = Cell::epoch_of(slot, tick);
    thread.ignore = 0;
    thread.combines = false;
    thread.openmp = Default::default();
    thread.ignore_sync = 0;
    thread.set_record_accesses(false);
    thread.record_racy = false;
    thread.hold_back = false;
    thread.moment = 0;
    thread.record_atomics = false;
    thread.seen = [Seen::default(); SEEN];
    thread.regions.reset(false);
    thread.busy = 0;
    thread.outside = 0;
    thread.run = Default::default();
    thread.controlled = 0;
    thread.joined_as = 0;
    thread.pending = 0;
    thread.end_rounds = 0;
    thread.waits_for.store(0, Ordering::Relaxed);
    thread.handles = 0;
    thread.expects_signal = 0;
    thread.pthread.store(0, Ordering::Relaxed);
    thread.detached.store(0, Ordering::Relaxed);
    Some(thread)
}

fn free_block() -> Option<usize> {
    let claim = |i: usize| {
        // SAFETY: blocks are mapped; only the atomic state is looked at.
        let state = unsafe { &(*block(i)).state };
        state
            .compare_exchange(state::FREE, state::LIVE, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    };
    let used = BLOCKS.load(Ordering::Acquire);
    if let Some(i) = (0..used).find(|&i| claim(i)) {
        return Some(i);
    }
    loop {
        let i = BLOCKS.fetch_add(1, Ordering::AcqRel);
        if i >= layout::MAX_THREADS {
            BLOCKS.store(layout::MAX_THREADS, Ordering::Release);
            return None;
        }
        if claim(i) {
            return Some(i);
        }
    }
}

/// Learns what all threads have released. Their clocks are read while they run: a component is a
/// word, and what was true of it at some time before now may be learnt.
pub fn join_all(t: &mut Thread) {
    let _busy = Busy::new(t);
    let used = BLOCKS.load(Ordering::Acquire).min(layout::MAX_THREADS);
    for index in 0..used {
        // SAFETY: blocks are mapped; words are read one by one, volatile, through raw pointers.
        unsafe {
            let other = block(index);
            if index == t.index as usize || (*other).state.load(Ordering::Acquire) != state::LIVE {
                continue;
            }
            let slot = (&raw const (*other).slot).read_volatile() as usize;
            // Its own component comes first: who knows of a release must know all that was released
            // (`Object::last`), and what the release held is there by now. What the thread has done in
            // its current epoch it has not released.
            let own =
                (&raw const (*other).clock.at[slot % SLOTS]).read_volatile().saturating_sub(1);
            let len = (&raw const (*other).clock.len).read_volatile().min(SLOTS);
            for i in 0..len {
                let clock = (&raw const (*other).clock.at[i]).read_volatile();
                t.clock.at[i] = t.clock.at[i].max(if i == slot { own } else { clock });
            }
            t.clock.len = t.clock.len.max(len);
        }
    }
}

/// The block of the thread that is, or will be until it is joined, `pthread`. Between the C library's join
/// and ours, a new thread may already have the `pthread` of the one that was joined: the newest is meant.
pub fn find(pthread: usize) -> Option<&'static Thread> {
    let used = BLOCKS.load(Ordering::Acquire).min(layout::MAX_THREADS);
    let all = (0..used).filter_map(|i| {
        let at = block(i);
        // SAFETY: blocks are mapped; only atomics are looked at.
        let thread = unsafe { &*at };
        let here = thread.state.load(Ordering::Acquire) != state::FREE
            && thread.pthread.load(Ordering::Acquire) == pthread
            && thread.detached.load(Ordering::Acquire) == 0;
        // SAFETY: the number is a word that changes only when the block changes hands.
        here.then(|| (unsafe { (&raw const (*at).number).read_volatile() }, thread))
    });
    all.max_by_key(|&(number, _)| number).map(|(_, thread)| thread)
}

/// Every thread that is alive, or has ended and was not joined. Only its atomics and what its creator wrote may be
/// looked at.
pub fn all() -> impl Iterator<Item = &'static Thread> {
    let used = BLOCKS.load(Ordering::Acquire).min(layout::MAX_THREADS);
    // SAFETY: blocks are mapped for good, and all contents are valid.
    let blocks = (0..used).map(|i| unsafe { &*block(i) });
    blocks.filter(|thread| thread.state.load(Ordering::Acquire) != state::FREE)
}

/// The thread with that number, if its block is still its own.
pub fn by_number(number: u32) -> Option<&'static Thread> {
    let used = BLOCKS.load(Ordering::Acquire).min(layout::MAX_THREADS);
    (0..used).find_map(|i| {
        let thread = block(i);
        // SAFETY: blocks are mapped; the number is a word that changes only when the block changes hands.
        unsafe { ((&raw const (*thread).number).read_volatile() == number).then(|| &*thread) }
    })
}

/// In the child of a fork: only the current thread exists. The blocks of the others are given up, because the
/// child's new threads may be known to the C library as those were. What they did to memory before is over: the child
/// has a copy, so all of it comes before everything that the child does.
pub fn after_fork(current: Option<&mut Thread>) {
    // SAFETY: the child has one thread.
    unsafe { (*TABLE.0.get()).lock.reset() };
    let own = current.as_ref().map(|t| t.index as usize);
    for index in 0..BLOCKS.load(Ordering::Relaxed).min(layout::MAX_THREADS) {
        sets_lock(index).reset();
        if own == Some(index) {
            continue;
        }
        // SAFETY: blocks are mapped, and no thread is left to use this one.
        let other = unsafe { &mut *block(index) };
        if other.state.load(Ordering::Relaxed) == state::LIVE {
            let (slot, tick) = (other.slot as usize, other.tick);
            with_slots(|s| {
                s.list[slot].last = tick.max(s.list[slot].last);
                s.list[slot].taken &= other.shares_slot;
            });
        }
        other.state.store(state::FREE, Ordering::Relaxed);
        other.pthread.store(0, Ordering::Relaxed);
    }
    if let Some(t) = current {
        with_slots(|s| {
            for (slot, known) in s.list.iter().take(s.used).zip(&mut t.clock.at) {
                *known = slot.last.max(*known);
            }
            t.clock.len = t.clock.len.max(s.used);
        });
        t.record_nothing();
        t.tid = crate::sys::tid();
        // SAFETY: no memory involved.
        t.pthread.store(unsafe { pthread_self() }, Ordering::Relaxed);
        crate::interpose::signal::after_fork(t);
    }
}

unsafe extern "C" {
    fn pthread_self() -> usize;
}
