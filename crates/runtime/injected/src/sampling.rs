//! Which loads and stores of a rank are looked at, if not all are.
//!
//! Paper: Park's thesis, section 7.3 (definitions 7.2 to 7.4). A statement has a probability, which is 1 at first and
//! falls by a factor each time it is looked at; a function has one, too, which falls with each call that is looked at,
//! and in a call that is not, nothing is. A statement that has raced is not looked at again. With `alias_once` neither is
//! one that was seen on private memory and on no other: locality is taken to be persistent.
//!
//! Deviation: whether memory is private costs a few comparisons here, so it is asked first, and private memory takes part
//! in none of this but `alias_once`. A call is decided about at its first access that asks, not at its entry, so a function
//! without such an access costs nothing.
//!
//! Guarantee: says nothing about an access that it lets pass. What it holds back leaves no trace in the shadow, so it hides
//! no access of another statement. Cost: about 30 instructions for an access that is held back.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::arch::words;
use crate::layout;
use crate::thread::{ENTRY, STACK_LEN, Thread};

/// A probability of 1, or a factor that changes nothing.
pub const ONE: u64 = 1 << 32;

static ON: AtomicBool = AtomicBool::new(false);
static INSTRUCTION: AtomicU64 = AtomicU64::new(ONE);
static FUNCTION: AtomicU64 = AtomicU64::new(ONE);
static ALIAS_ONCE: AtomicBool = AtomicBool::new(false);
/// Threads draw from it without a lock: two may draw the same.
static RANDOM: AtomicU64 = AtomicU64::new(1);

/// What is known of a statement or a function. Places that find no room are always looked at.
struct Known {
    /// A program counter; 0 if the entry is free.
    pc: AtomicU64,
    /// What is missing to a probability of 1, in parts of [`ONE`]. The most is that of a place that is settled.
    missing: AtomicU32,
    /// Whether it has accessed memory that is not private.
    shared: AtomicBool,
}

const PLACES: usize = 1 << 14;
/// So many entries are looked at for one place.
const PROBES: usize = 8;

static KNOWN: [Known; PLACES] = [const {
    Known { pc: AtomicU64::new(0), missing: AtomicU32::new(0), shared: AtomicBool::new(false) }
}; PLACES];

/// The thread has decided about the call of this entry of its call stack. Both are bits of the entry's second word.
const DECIDED: u64 = 1 << 62;
const HELD_BACK: u64 = 1 << 61;

/// Begins to sample, with factors as parts of [`ONE`].
pub fn begin(instruction: u64, function: u64, alias_once: bool, seed: u64) {
    INSTRUCTION.store(instruction.min(ONE), Relaxed);
    FUNCTION.store(function.min(ONE), Relaxed);
    ALIAS_ONCE.store(alias_once, Relaxed);
    RANDOM.store(seed | 1, Relaxed);
    ON.store(instruction < ONE || function < ONE || alias_once, Relaxed);
}

/// Whether anything is held back.
#[inline]
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

fn known(pc: u64) -> Option<&'static Known> {
    let at = (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) as usize;
    (at..at + PROBES).map(|i| &KNOWN[i % PLACES]).find(|known| {
        let there = known.pc.load(Relaxed);
        let taken = || known.pc.compare_exchange(0, pc, Relaxed, Relaxed).unwrap_or_else(|pc| pc);
        there == pc || there == 0 && [0, pc].contains(&taken())
    })
}

/// A number below [`ONE`].
fn random() -> u64 {
    let mut x = RANDOM.load(Relaxed);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    RANDOM.store(x, Relaxed);
    x >> 32
}

impl Known {
    fn probability(&self) -> u64 {
        ONE - u64::from(self.missing.load(Relaxed))
    }

    fn is_settled(&self) -> bool {
        self.missing.load(Relaxed) == u32::MAX
    }

    /// Whether it is looked at this time; `factor` makes it less likely the next time.
    fn draw(&self, factor: u64) -> bool {
        let p = self.probability();
        if p < ONE && (self.is_settled() || random() >= p) {
            return false;
        }
        if factor < ONE {
            self.missing.store((ONE - ((p * factor) >> 32).max(1)) as u32, Relaxed);
        }
        true
    }

    /// It is not looked at again.
    fn settle(&self) {
        self.missing.store(u32::MAX, Relaxed);
    }
}

/// Whether an access of a statement to memory that is watched is looked at.
pub fn wants(t: &Thread, pc: usize) -> bool {
    let Some(statement) = known(pc as u64) else { return true };
    if statement.is_settled() {
        return false;
    }
    let function = FUNCTION.load(Relaxed);
    if function < ONE && !is_call_wanted(t, function) {
        return false;
    }
    statement.shared.store(true, Relaxed);
    statement.draw(INSTRUCTION.load(Relaxed))
}

/// A statement accesses private memory.
pub fn private(pc: usize) {
    if ALIAS_ONCE.load(Relaxed)
        && let Some(statement) = known(pc as u64)
        && !statement.shared.load(Relaxed)
    {
        statement.settle();
    }
}

/// A statement has raced.
pub fn settle(pc: usize) {
    if let Some(statement) = known(pc as u64).filter(|_| is_on()) {
        statement.settle();
    }
}

/// Whether accesses of the innermost call are looked at: that is decided once for each call.
fn is_call_wanted(t: &Thread, factor: u64) -> bool {
    let base = layout::THREADS + t.index as usize * layout::THREAD_LEN;
    let top = words::stack_top();
    if !(base..=base + STACK_LEN).contains(&top) {
        return true;
    }
    let entry = base + (top - base + STACK_LEN - ENTRY) % STACK_LEN;
    let word = (entry + 8) as *mut u64;
    // SAFETY: the second word of an entry of this thread's call stack, which is mapped for good.
    let now = unsafe { word.read_volatile() };
    if now & DECIDED != 0 {
        return now & HELD_BACK == 0;
    }
    // Outside of all functions there is nothing to decide about.
    let wanted = now == 0 || known(now).is_none_or(|function| function.draw(factor));
    let held_back = if wanted { 0 } else { HELD_BACK };
    // SAFETY: as above.
    unsafe { word.write_volatile(now | DECIDED | held_back) };
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a place is looked at in so many draws.
    fn looks(pc: u64, factor: u64, draws: usize) -> usize {
        let known = known(pc).expect("room");
        (0..draws).filter(|_| known.draw(factor)).count()
    }

    #[test]
    fn probabilities_fall_by_the_factor() {
        assert_eq!(looks(0x1001, ONE, 1000), 1000);
        assert_eq!(looks(0x1002, 0, 1000), 1, "only the first");
        // After n looks the probability is 0.9^n, so 1,000 draws give about ln(1 + 1000 / 9.5) / ln(1 / 0.9) = 44.
        let tenth = looks(0x1003, ONE / 10 * 9, 1000);
        assert!((25..70).contains(&tenth), "{tenth}");
        let half = looks(0x1004, ONE / 2, 1000);
        assert!((4..20).contains(&half), "{half}");
        let settled = known(0x1005).expect("room");
        settled.settle();
        assert_eq!(looks(0x1005, ONE, 1000), 0);
    }

    #[test]
    fn places_have_entries_of_their_own() {
        let entry = |pc| core::ptr::from_ref(known(pc).expect("room"));
        assert_eq!(entry(0x2001), entry(0x2001));
        assert_ne!(entry(0x2001), entry(0x2002));
    }
}
