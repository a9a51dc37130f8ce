//! The race check in the program and the FastTrack of `selvedge-analyses` are two implementations of one
//! paper. Both see the same random executions and must agree.
//!
//! What both promise is the first race on a granule: the first access that is not ordered after a
//! conflicting one is reported at that access, by both or by neither. They may differ, by design:
//! - after the first race on a granule, because each forgets other accesses then;
//! - about which of several racing accesses they name as the earlier one;
//! - about freed memory: here a free is remembered and races with later accesses, there it ends the history
//!   of the memory. So these executions free nothing.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use selvedge_analyses::Analysis;
use selvedge_model::wellformed::Checker;
use selvedge_model::{
    Access, AtomicOp, Event, Findings, LoadOrder, LockId, Mode, Op, SemaphoreId, SiteId,
    StoreOrder, ThreadId,
};

use super::tests::{BASE, found_so_far, prepare};
use super::{atomic, range};
use crate::thread::Thread;
use crate::{shadow, sync, thread};

const THREADS: usize = 5;
const GRANULES: usize = 2;
const LOCKS: usize = 2;
/// Where locks and the semaphore are.
const OBJECTS: usize = BASE + 2048;
const SEMAPHORE: usize = OBJECTS + 8 * LOCKS;

/// What a thread tries to do. A step that is impossible (a lock that is taken) is left out.
#[derive(Clone, Debug)]
enum Step {
    Access { granule: usize, start: usize, len: usize, atomic: bool, write: bool },
    Lock(usize),
    Unlock(usize),
    Post,
    Wait,
    Fork,
    Join(usize),
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let access = (0..GRANULES, 0..4_u32, any::<[bool; 2]>(), 0..8_usize).prop_map(
        |(granule, size, [atomic, write], start)| {
            let len = 1 << size;
            Step::Access { granule, start: start / len * len, len, atomic, write }
        },
    );
    let step = prop_oneof![
        8 => access,
        2 => (0..LOCKS).prop_map(Step::Lock),
        2 => (0..LOCKS).prop_map(Step::Unlock),
        1 => Just(Step::Post),
        1 => Just(Step::Wait),
        1 => Just(Step::Fork),
        1 => (0..THREADS).prop_map(Step::Join),
    ];
    prop::collection::vec((0..THREADS, step), 1..60)
}

/// One execution, seen by both.
struct Execution {
    threads: Vec<&'static mut Thread>,
    joined: [bool; THREADS],
    holders: [Option<usize>; LOCKS],
    posted: usize,
    raced: [bool; GRANULES],
    analysis: selvedge_analyses::fasttrack::FastTrack,
    checker: Checker,
    events: u32,
}

impl Execution {
    fn new() -> Execution {
        shadow::forget(BASE, GRANULES * 8);
        Execution {
            threads: vec![thread::create(&[]).expect("there is a block for the thread")],
            joined: [false; THREADS],
            holders: [None; LOCKS],
            posted: 0,
            raced: [false; GRANULES],
            analysis: selvedge_analyses::fasttrack::FastTrack::new(),
            checker: Checker::default(),
            events: 0,
        }
    }

    /// Shows an event to the analysis; whether that finds a race. Every event has a site of its own, so
    /// that no race is taken for one that was reported before.
    fn emit(&mut self, thread: usize, op: Op) -> bool {
        self.events += 1;
        let event = Event { thread: ThreadId(thread as u32), site: SiteId(self.events), op };
        self.checker.check(&event).expect("the steps are an execution");
        let mut findings = Findings::default();
        self.analysis.on_event(&event, &mut findings);
        !findings.is_empty()
    }

    fn step(&mut self, thread: usize, step: &Step) -> Result<(), TestCaseError> {
        if thread >= self.threads.len() || self.joined[thread] {
            return Ok(());
        }
        match *step {
            Step::Access { granule, start, len, atomic, write } => {
                return self.access(thread, granule, (start, len), atomic, write);
            }
            Step::Lock(lock) if self.holders[lock].is_none() => {
                self.holders[lock] = Some(thread);
                sync::acquire(self.threads[thread], OBJECTS + 8 * lock);
                self.emit(thread, Op::Acquire(LockId(lock as u32), Mode::Exclusive));
            }
            Step::Unlock(lock) if self.holders[lock] == Some(thread) => {
                self.holders[lock] = None;
                self.emit(thread, Op::Release(LockId(lock as u32), Mode::Exclusive));
                sync::release(self.threads[thread], OBJECTS + 8 * lock);
            }
            Step::Post => {
                self.posted += 1;
                self.emit(thread, Op::Post(SemaphoreId(0)));
                sync::release_also(self.threads[thread], SEMAPHORE);
            }
            Step::Wait if self.posted > 0 => {
                self.posted -= 1;
                sync::acquire(self.threads[thread], SEMAPHORE);
                self.emit(thread, Op::Wait(SemaphoreId(0)));
            }
            Step::Fork if self.threads.len() < THREADS => {
                self.emit(thread, Op::Fork(ThreadId(self.threads.len() as u32)));
                let child = thread::create(self.threads[thread].clock.known());
                self.threads[thread].tick();
                self.threads.push(child.expect("there is a block for the thread"));
            }
            Step::Join(child) if self.can_join(thread, child) => {
                self.joined[child] = true;
                let known = self.threads[child].clock.known().to_vec();
                self.threads[thread].clock.join(&known);
                self.emit(thread, Op::Join(ThreadId(child as u32)));
            }
            _ => {}
        }
        Ok(())
    }

    fn can_join(&self, thread: usize, child: usize) -> bool {
        let known = child != 0 && child != thread && child < self.threads.len();
        known && !self.joined[child] && !self.holders.contains(&Some(child))
    }

    fn access(
        &mut self,
        thread: usize,
        granule: usize,
        (start, len): (usize, usize),
        is_atomic: bool,
        write: bool,
    ) -> Result<(), TestCaseError> {
        let addr = BASE + 8 * granule + start;
        let pc = 0x5500_0012_3000 + 8 * self.events as usize;
        let before = found_so_far();
        if is_atomic {
            atomic(self.threads[thread], addr, len, write, pc);
        } else {
            range(self.threads[thread], addr, len, write, pc);
        }
        let in_program = found_so_far() > before;
        let access = Access { addr: addr as u64, len: len as u32 };
        let in_analysis = self.emit(
            thread,
            match (is_atomic, write) {
                (false, false) => Op::Read(access),
                (false, true) => Op::Write(access),
                (true, false) => Op::Atomic(access, AtomicOp::Load(LoadOrder::Relaxed)),
                (true, true) => Op::Atomic(access, AtomicOp::Store(StoreOrder::Relaxed)),
            },
        );
        if !self.raced[granule] {
            prop_assert_eq!(in_program, in_analysis, "a race in the program, in the analysis");
        }
        self.raced[granule] |= in_program;
        Ok(())
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        for thread in &mut self.threads {
            sync::forget(thread, BASE, 4096);
            thread.detached.store(1, super::Ordering::Relaxed);
            thread.end();
        }
    }
}

#[test]
fn both_find_the_first_race_on_a_granule_at_the_same_access() {
    let _alone = prepare();
    let config = ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() };
    // Executions without and with a race: both kinds must be many.
    let seen = [Cell::new(0), Cell::new(0)];
    let compared = TestRunner::new(config).run(&steps(), |steps| {
        let mut execution = Execution::new();
        for (thread, step) in &steps {
            execution.step(*thread, step)?;
        }
        let count = &seen[usize::from(execution.raced.contains(&true))];
        count.set(count.get() + 1);
        Ok(())
    });
    if let Err(difference) = compared {
        panic!("{difference}");
    }
    assert!(seen.iter().all(|count| count.get() > 2_000), "{seen:?}");
}
