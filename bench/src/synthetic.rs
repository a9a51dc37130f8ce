//! A made-up program with the mix of habits that real ones have, as a stream of events.
//!
//! Four threads take turns in quanta of random length. Each works at one job at a time: sweeping
//! arrays, updating a striped hash table under locks, walking pointers through a heap of its own,
//! bumping shared atomic counters, or allocating, filling and freeing blocks. It is free of races.

use selvedge_model::{
    Access, AtomicOp, Event, LockId, Mode, Op, Range, SiteId, ThreadId, UpdateOrder,
};

const THREADS: u32 = 4;
const STRIPES: u64 = 64;
const TABLE: u64 = 0x7f00_0000_0000;
const COUNTERS: u64 = 0x7f10_0000_0000;

/// xorshift64*: the same events on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number less than `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }
}

#[derive(Clone, Copy)]
enum Job {
    Sweep { at: u64, left: u64 },
    Table { left: u64 },
    Walk { at: u64, left: u64 },
    Count { left: u64 },
    Blocks { left: u64 },
}

/// Hands `count` events to `each`.
pub(crate) fn events(count: u64, mut each: impl FnMut(Event)) {
    let mut random = Random(0x5e1f_ed9e);
    let mut jobs = [Job::Sweep { at: 0, left: 0 }; THREADS as usize];
    let mut emitted = 0;
    let mut thread = 0;
    let mut emit = |thread: u32, site: u32, op: Op| {
        if emitted < count {
            each(Event { thread: ThreadId(thread), site: SiteId(site), op });
        }
        emitted += 1;
        emitted < count
    };
    for child in 1..THREADS {
        emit(0, 0, Op::Fork(ThreadId(child)));
    }
    loop {
        for _ in 0..random.below(60) + 2 {
            let job = &mut jobs[thread as usize];
            if !step(job, thread, &mut random, &mut emit) {
                return;
            }
        }
        thread = random.below(u64::from(THREADS)) as u32;
    }
}

fn new_job(random: &mut Random) -> Job {
    let left = random.below(2000) + 200;
    match random.below(10) {
        0..4 => Job::Sweep { at: random.below(1 << 15), left },
        4..6 => Job::Table { left: left / 8 },
        6..8 => Job::Walk { at: 0, left },
        8 => Job::Count { left: left / 16 },
        _ => Job::Blocks { left: left / 64 },
    }
}

/// One iteration of a job; false when there are events enough.
fn step(
    job: &mut Job,
    thread: u32,
    random: &mut Random,
    emit: &mut impl FnMut(u32, u32, Op) -> bool,
) -> bool {
    let heap = 0x5500_0000_0000 + u64::from(thread) * 0x1_0000_0000;
    let mut read = |site, addr, len| emit(thread, site, Op::Read(Access { addr, len }));
    match *job {
        Job::Sweep { at, left } if left > 0 => {
            *job = Job::Sweep { at: at + 1, left: left - 1 };
            read(1, heap + at * 8, 8)
                && read(2, heap + 0x100_0000 + at * 8, 8)
                && emit(thread, 3, Op::Write(Access { addr: heap + 0x200_0000 + at * 8, len: 8 }))
        }
        Job::Table { left } if left > 0 => {
            *job = Job::Table { left: left - 1 };
            let slot = random.below(1 << 14);
            let lock = LockId((slot % STRIPES) as u32);
            let entry = TABLE + slot * 64;
            emit(thread, 10, Op::Acquire(lock, Mode::Exclusive))
                && emit(thread, 11, Op::Read(Access { addr: entry, len: 8 }))
                && emit(thread, 12, Op::Read(Access { addr: entry + 8, len: 4 }))
                && emit(thread, 13, Op::Write(Access { addr: entry + 16, len: 8 }))
                && emit(thread, 14, Op::Write(Access { addr: entry + 8, len: 4 }))
                && emit(thread, 15, Op::Release(lock, Mode::Exclusive))
        }
        Job::Walk { at, left } if left > 0 => {
            let next = random.below(1 << 14) * 32;
            *job = Job::Walk { at: next, left: left - 1 };
            read(20, heap + 0x400_0000 + at, 8) && read(21, heap + 0x400_0008 + at, 4)
        }
        Job::Count { left } if left > 0 => {
            *job = Job::Count { left: left - 1 };
            let access = Access { addr: COUNTERS + random.below(4) * 64, len: 8 };
            emit(thread, 30, Op::Atomic(access, AtomicOp::Update(UpdateOrder::Relaxed)))
        }
        Job::Blocks { left } if left > 0 => {
            *job = Job::Blocks { left: left - 1 };
            let block = Range { start: heap + 0x800_0000 + random.below(256) * 512, len: 256 };
            let mut more = emit(thread, 40, Op::Alloc(block));
            for i in 0..block.len / 8 {
                let access = Access { addr: block.start + i * 8, len: 8 };
                more = more && emit(thread, 41, Op::Write(access));
            }
            more && emit(thread, 42, Op::Free(block))
        }
        _ => {
            *job = new_job(random);
            true
        }
    }
}
