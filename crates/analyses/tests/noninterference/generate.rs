//! Random executions: any list of numbers is read as one, so that shrinking the list shrinks it.

use proptest::prelude::*;
use selvedge_model::{
    Access, AtomicOp, BarrierId, Event, LoadOrder, LockId, Mode, Op, Range, RegionId, RegionKind,
    SemaphoreId, SiteId, StoreOrder, ThreadId, UpdateOrder,
};

/// What a thread is asked to do: which thread, what, and on what.
pub(crate) type Wish = (u8, u8, u8);

/// Which kinds of operations appear.
#[derive(Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) kind: RegionKind,
    /// How many threads are there from the beginning; the others are forked.
    pub(crate) early: u32,
    /// Barriers, semaphores, shared locks, atomics, partly overlapping accesses, freeing.
    pub(crate) everything: bool,
}

pub(crate) fn wishes(longest: usize) -> impl Strategy<Value = Vec<Wish>> {
    proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 0..longest)
}

const THREADS: u32 = 5;
const PARTIES: usize = 2;

#[derive(Clone, Default)]
struct Thread {
    started: bool,
    ended: bool,
    locks: Vec<(LockId, Mode)>,
    regions: Vec<RegionId>,
    waits_in: Option<u32>,
}

/// Reads wishes as an execution; what is impossible is passed over. The site of every event is its
/// index, so that findings tell which events they are about.
pub(crate) fn execution(wishes: &[Wish], mix: Mix) -> Vec<Event> {
    let mut threads = vec![Thread::default(); THREADS as usize];
    threads[..mix.early as usize].iter_mut().for_each(|t| t.started = true);
    let mut semaphore = 1;
    let mut arrived: Vec<usize> = vec![0];
    let mut events = Vec::new();
    for &(who, what, which) in wishes {
        let me = u32::from(who) % THREADS;
        let thread = &threads[me as usize];
        if !thread.started || thread.ended {
            continue;
        }
        let op = match thread.waits_in {
            Some(round) if arrived[round as usize] < PARTIES => None,
            Some(round) => Some(Op::Leave(BarrierId(0), round)),
            None => wish(me, what, which, mix, &threads, semaphore, &arrived),
        };
        let Some(op) = op else { continue };
        let thread = &mut threads[me as usize];
        match op {
            Op::Acquire(l, m) => thread.locks.push((l, m)),
            Op::Release(..) => {
                thread.locks.pop();
            }
            Op::RegionEnter(r, _) => thread.regions.push(r),
            Op::RegionExit(_) => {
                thread.regions.pop();
            }
            Op::Fork(t) => threads[t.index()].started = true,
            Op::Join(t) => threads[t.index()].ended = true,
            Op::Post(_) => semaphore += 1,
            Op::Wait(_) => semaphore -= 1,
            Op::Arrive(_, round) => {
                thread.waits_in = Some(round);
                arrived[round as usize] += 1;
                if arrived[round as usize] == PARTIES {
                    arrived.push(0);
                }
            }
            Op::Leave(..) => thread.waits_in = None,
            _ => {}
        }
        let site = SiteId(events.len() as u32);
        events.push(Event { thread: ThreadId(me), site, op });
    }
    events
}

fn wish(
    me: u32,
    what: u8,
    which: u8,
    mix: Mix,
    threads: &[Thread],
    semaphore: u32,
    arrived: &[usize],
) -> Option<Op> {
    let thread = &threads[me as usize];
    let whole = [Access { addr: 16, len: 8 }, Access { addr: 24, len: 8 }];
    let parts = [whole[0], whole[1], Access { addr: 16, len: 4 }, Access { addr: 20, len: 8 }];
    let access = if mix.everything { parts[which as usize % 4] } else { whole[which as usize % 2] };
    let lock = LockId(u32::from(which) % 2);
    let acquire = |mode: Mode| {
        let holders = threads.iter().enumerate();
        let mut held = holders.flat_map(|(t, h)| h.locks.iter().map(move |l| (t, l)));
        // A thread may take a lock again that it holds exclusively, and in no other case.
        held.all(|(t, &(l, m))| {
            l != lock || (t == me as usize && m == mode && m == Mode::Exclusive) || {
                t != me as usize && !m.excludes(mode)
            }
        })
        .then_some(Op::Acquire(lock, mode))
    };
    Some(match what % if mix.everything { 24 } else { 14 } {
        0..=2 => Op::Read(access),
        3..=5 => Op::Write(access),
        6 | 7 => acquire(Mode::Exclusive)?,
        8 | 9 => {
            let &(lock, mode) = thread.locks.last()?;
            Op::Release(lock, mode)
        }
        10 | 11 if thread.regions.len() < 3 => {
            Op::RegionEnter(RegionId(u32::from(which) % 3), mix.kind)
        }
        12 => Op::RegionExit(*thread.regions.last()?),
        13 => {
            let other = mix.early + u32::from(which) % (THREADS - mix.early);
            let child = &threads[other as usize];
            if !child.started {
                Op::Fork(ThreadId(other))
            } else if other != me
                && !child.ended
                && child.locks.is_empty()
                && child.waits_in.is_none()
            {
                Op::Join(ThreadId(other))
            } else {
                return None;
            }
        }
        14 => Op::Atomic(access, AtomicOp::Load(LoadOrder::Relaxed)),
        15 => Op::Atomic(access, AtomicOp::Store(StoreOrder::SeqCst)),
        16 => Op::Atomic(access, AtomicOp::Update(UpdateOrder::AcqRel)),
        17 => acquire(Mode::Shared)?,
        18 => Op::Post(SemaphoreId(0)),
        19 if semaphore > 0 => Op::Wait(SemaphoreId(0)),
        20 | 21 => Op::Arrive(BarrierId(0), arrived.len() as u32 - 1),
        22 if which.is_multiple_of(4) => Op::Free(Range { start: 16, len: 8 }),
        _ => return None,
    })
}

/// Wishes from a seed, for more cases than a property test has patience for.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        // The xorshift64* generator.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn wishes(&mut self, longest: u64) -> Vec<Wish> {
        let n = self.next() % longest;
        (0..n)
            .map(|_| {
                let [_, a, b, c, ..] = self.next().to_be_bytes();
                (a, b, c)
            })
            .collect()
    }
}
