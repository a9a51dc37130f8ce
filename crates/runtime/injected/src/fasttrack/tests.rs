//! Random accesses of threads that are played one step at a time, against all races by definition.
//!
//! The oracle keeps every access to every byte with the vector clock of its moment, and shares nothing
//! with what it checks but the order of the steps.

use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::*;
use crate::report::Earlier;
use crate::{layout, sync, sys, thread};

/// Steps are few and memory small, so that threads meet; executions are many.
const EXECUTIONS: u64 = 20_000;
const STEPS: usize = 50;
const GRANULES: usize = 3;
const LOCKS: usize = 2;

/// Forms of words that executions came across: a cell with several places, a set, a private one, one
/// of atomic accesses.
static FORMS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

fn note(word: u64) {
    let forms = [
        shadow::is_cell(word) && word != 0 && !places::is_plain((word >> PC_SHIFT) as usize),
        shadow::is_set(word),
        is_private(word),
        is_only_atomic(word),
    ];
    for (form, is) in FORMS.iter().zip(forms) {
        form.fetch_add(usize::from(is), Ordering::Relaxed);
    }
}

/// What was found: program counters, bytes.
#[derive(Debug)]
struct Found {
    earlier_pc: u64,
    later_pc: u64,
    addr: usize,
    len: usize,
}

static FOUND: Mutex<Vec<Found>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A race was found. Called by `report` in tests.
pub(crate) fn found(_: &Thread, earlier: &Earlier, addr: usize, len: u32, pc: usize) {
    let later_pc = pc as u64 & 0x7f_ffff;
    locked(&FOUND).push(Found { earlier_pc: earlier.pc, later_pc, addr, len: len as usize });
}

/// How many races were found since the list was last cleared.
pub(super) fn found_so_far() -> usize {
    locked(&FOUND).len()
}

/// xorshift64*
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
}

impl Kind {
    fn writes(self) -> bool {
        matches!(self, Kind::Write | Kind::AtomicWrite)
    }

    fn atomic(self) -> bool {
        matches!(self, Kind::AtomicRead | Kind::AtomicWrite)
    }

    fn conflicts(self, other: Kind) -> bool {
        (self.writes() || other.writes()) && !(self.atomic() && other.atomic())
    }
}

#[derive(Clone)]
struct Access {
    thread: usize,
    clock: u32,
    kind: Kind,
    pc: u64,
}

/// Everything that happened, by definition.
struct Oracle {
    clocks: Vec<Vec<u32>>,
    locks: Vec<Vec<u32>>,
    bytes: Vec<Vec<Access>>,
    /// Granules on which there was a race.
    raced: Vec<bool>,
}

impl Oracle {
    fn new(threads: usize) -> Oracle {
        let clock = |t: usize| (0..threads).map(|i| u32::from(i == t)).collect();
        Oracle {
            clocks: (0..threads).map(clock).collect(),
            locks: vec![vec![0; threads]; LOCKS],
            bytes: vec![Vec::new(); GRANULES * 8],
            raced: vec![false; GRANULES],
        }
    }

    fn acquire(&mut self, t: usize, lock: usize) {
        for (mine, &theirs) in self.clocks[t].iter_mut().zip(&self.locks[lock]) {
            *mine = (*mine).max(theirs);
        }
    }

    fn release(&mut self, t: usize, lock: usize) {
        self.locks[lock].clone_from(&self.clocks[t]);
        self.clocks[t][t] += 1;
    }

    /// The earlier accesses to a byte that race with one by `t`.
    fn racing(&self, t: usize, byte: usize, kind: Kind) -> impl Iterator<Item = &Access> {
        self.bytes[byte]
            .iter()
            .filter(move |a| a.kind.conflicts(kind) && a.clock > self.clocks[t][a.thread])
    }
}

/// The place of accesses that come through the compiler's interface, which the tests do not know.
const COMPILED: u64 = 0;

/// Makes a plain access as a compiled program does.
fn announce(write: bool, len: usize, addr: usize) {
    use crate::abi;
    let entry = match (write, len) {
        (false, 1) => abi::__tsan_read1,
        (false, 2) => abi::__tsan_read2,
        (false, 4) => abi::__tsan_read4,
        (false, 8) => abi::__tsan_read8,
        (false, _) => abi::__tsan_read16,
        (true, 1) => abi::__tsan_write1,
        (true, 2) => abi::__tsan_write2,
        (true, 4) => abi::__tsan_write4,
        (true, 8) => abi::__tsan_write8,
        (true, _) => abi::__tsan_write16,
    };
    // SAFETY: the entries are functions of one address, which they do not touch.
    unsafe {
        let entry: unsafe extern "C" fn() = entry;
        std::mem::transmute::<unsafe extern "C" fn(), unsafe extern "C" fn(usize)>(entry)(addr);
    }
}

/// Memory that the test has as its own: nothing is ever stored there, only in its shadow.
pub(super) const BASE: usize = 0x0123_4567_8000;

pub(crate) fn prepare() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static MAPPED: Once = Once::new();
    let guard = locked(&ALONE);
    MAPPED.call_once(|| {
        for (at, len) in layout::RESERVED {
            assert!(sys::reserve(at, len), "address space for the shadow");
        }
    });
    guard
}

struct Execution {
    dice: Dice,
    threads: Vec<&'static mut Thread>,
    oracle: Oracle,
    base: usize,
    places: usize,
}

impl Execution {
    fn new(seed: u64) -> Execution {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let count = 2 + dice.below(3);
        let threads = (0..count).map(|_| thread::create(&[]).expect("a block")).collect();
        // Few places or many; the low bits of some are not a field of their own.
        let places = [2, 5, 40][dice.below(3)];
        let base = BASE + dice.below(64) * 4096;
        shadow::forget(base, GRANULES * 8);
        locked(&FOUND).clear();
        Execution { dice, threads, oracle: Oracle::new(count), base, places }
    }

    fn place(&mut self) -> usize {
        let n = self.dice.below(self.places);
        if n.is_multiple_of(4) { 0x5500_0000_1000 + n } else { 0x5500_0012_3000 + n * 8 }
    }

    fn step(&mut self) {
        let t = self.dice.below(self.threads.len());
        match self.dice.below(8) {
            0 => {
                let lock = self.dice.below(LOCKS);
                self.oracle.acquire(t, lock);
                sync::acquire(self.threads[t], self.base + 2048 + lock * 8);
            }
            1 => {
                let lock = self.dice.below(LOCKS);
                sync::release(self.threads[t], self.base + 2048 + lock * 8);
                self.oracle.release(t, lock);
            }
            2 => self.sweep(t),
            _ => self.access(t),
        }
    }

    /// Accesses at equal distances, perhaps those that were made before.
    fn sweep(&mut self, t: usize) {
        let write = self.dice.below(2) == 0;
        let (stride, len) = [(8, 8), (16, 8), (8, 4), (4, 4), (6, 2), (5, 8)][self.dice.below(6)];
        let room = GRANULES * 8 - len;
        let start = self.dice.below(room + 1);
        let start = if self.dice.below(2) == 0 { start & !7 } else { start };
        let count = 1 + self.dice.below((room - start) / stride + 1);
        let pc = self.place();
        let before = locked(&FOUND).len();
        sweep(self.threads[t], self.base + start, (stride, count, len), write, pc);
        let kind = if write { Kind::Write } else { Kind::Read };
        let starts = (0..count).map(|i| start + i * stride);
        let mut touched: Vec<usize> = starts.flat_map(|at| at..at + len).collect();
        touched.sort_unstable();
        touched.dedup();
        self.check(t, kind, &touched, pc as u64 & 0x7f_ffff, before);
    }

    fn access(&mut self, t: usize) {
        let kinds = [Kind::Read, Kind::Read, Kind::Write, Kind::AtomicRead, Kind::AtomicWrite];
        let kind = kinds[self.dice.below(kinds.len())];
        let pc = self.place();
        let (start, len) = if kind.atomic() {
            let len = [1, 2, 4, 8][self.dice.below(4)];
            (self.dice.below(GRANULES * 8 / len) * len, len)
        } else {
            let len = [1, 1, 2, 3, 4, 8, 16][self.dice.below(7)];
            (self.dice.below(GRANULES * 8 - len + 1), len)
        };
        let before = locked(&FOUND).len();
        let touched: Vec<usize> = (start..start + len).collect();
        let addr = self.base + start;
        match kind {
            Kind::Read | Kind::Write if len == 16 && addr.is_multiple_of(8) => {
                two(self.threads[t], addr, kind.writes(), pc);
            }
            Kind::Read | Kind::Write
                if addr.is_multiple_of(len) && len.is_power_of_two() && self.dice.below(2) == 0 =>
            {
                self.threads[t].begin();
                announce(kind.writes(), len, addr);
                self.threads[t].leave();
                return self.check(t, kind, &touched, COMPILED, before);
            }
            Kind::Read | Kind::Write => range(self.threads[t], addr, len, kind.writes(), pc),
            _ => atomic(self.threads[t], addr, len, kind.writes(), pc),
        }
        self.check(t, kind, &touched, pc as u64 & 0x7f_ffff, before);
    }

    fn check(&mut self, t: usize, kind: Kind, touched: &[usize], pc: u64, before: usize) {
        let found = locked(&FOUND);
        let new = &found[before..];
        for race in new {
            assert!(pc == COMPILED || race.later_pc == pc);
            for byte in race.addr - self.base..race.addr - self.base + race.len {
                let real = self
                    .oracle
                    .racing(t, byte, kind)
                    .any(|a| a.pc == COMPILED || a.pc == race.earlier_pc);
                // Between bytes of one place there may be some that the access did not touch.
                let gap = byte != race.addr - self.base;
                assert!(gap || touched.contains(&byte));
                assert!(real || gap, "no such race: {race:x?}");
            }
        }
        for granule in 0..GRANULES {
            let mut bytes = touched.iter().copied().filter(|byte| byte / 8 == granule);
            let races = bytes.any(|b| self.oracle.racing(t, b, kind).next().is_some());
            // Once there was a race on a granule, what is remembered of it is not all.
            if races && !std::mem::replace(&mut self.oracle.raced[granule], true) {
                let said = new.iter().any(|r| (r.addr - self.base) / 8 == granule);
                assert!(said, "missed a race on granule {granule}: {kind:?} of {touched:?}");
            }
        }
        for &byte in touched {
            let clock = self.oracle.clocks[t][t];
            self.oracle.bytes[byte].push(Access { thread: t, clock, kind, pc });
        }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        for thread in &mut self.threads {
            sync::forget(thread, self.base, 4096);
            thread.detached.store(1, Ordering::Relaxed);
            thread.end();
        }
    }
}

#[test]
fn races_are_those_of_the_definition() {
    let _alone = prepare();
    for seed in 0..EXECUTIONS {
        let mut execution = Execution::new(seed);
        for _ in 0..STEPS {
            execution.step();
            for i in 0..GRANULES {
                let g = granule(execution.base + 8 * i);
                note(g.write.load(Ordering::Relaxed));
                note(g.read.load(Ordering::Relaxed));
            }
        }
    }
    for form in &FORMS {
        assert!(form.load(Ordering::Relaxed) > 1000, "hardly seen: {FORMS:?}");
    }
}
