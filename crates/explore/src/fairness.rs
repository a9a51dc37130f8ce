//! Fairness: a thread that only looks gives way, and no thread waits for its turn for ever.
//!
//! Source: Musuvathi and Qadeer, *Fair stateless model checking*, PLDI 2008: a thread that yields has less
//! priority than those that could have run meanwhile, so that an execution goes on for ever only if the
//! program does. Deviation: most programs that poll do not yield, so a thread counts as yielding once it has
//! taken [`SPINS`] steps that changed nothing that others could notice: loads, failed attempts, a lock that
//! is acquired and released with no write in between.
//!
//! - **Pollers**: such a thread *spins*. It is left out of a choice while a thread that does not spin can run.
//!   After a change by another thread it may look again, for [`LOOK`] steps. If every thread that can run
//!   spins, all of them may look again; two pollers that alternate cannot starve a third thread so.
//! - **Starvation**: a thread that could run at [`STREAK`] choices and was never chosen runs next, and for
//!   twice as many steps each time that this happens to it again. So a thread that changes something in each
//!   round of its loop does not keep others from running.
//!
//! Guarantee: in every execution that goes on for ever, a thread that can run again and again does run again
//! and again, whatever the strategy answers. A choice of a thread that neither spins nor lets others starve is
//! the strategy's.
//!
//! Cost: O(n) per choice, O(1) per step.

use selvedge_model::{AtomicOp, Mode, Op, ThreadId};

use crate::Step;

/// Steps in a row that change nothing after which a thread is taken to spin.
pub const SPINS: u32 = 128;
/// How many steps a spinning thread may take after something has changed.
pub const LOOK: u32 = 8;
/// Steps in a row that change nothing after which a thread gives way under a strategy that is patient.
pub const PATIENCE: u32 = 10_000;
/// At how many choices a thread may be passed over.
pub const STREAK: u32 = 2_000;
/// How many steps each thread must have taken since the last change before the program may count as stuck.
const ROUNDS: u64 = 1_000;

/// Who has to give way in one execution.
#[derive(Clone, Debug, Default)]
pub struct Fairness {
    threads: Vec<Turns>,
    /// Changes so far.
    changes: u64,
    /// Changes so far, and how often all threads that could run were spinning.
    rounds: u64,
    /// Steps since the last change.
    quiet: u64,
    /// A thread that has starved, and how many more steps it is owed.
    due: Option<(ThreadId, u32)>,
}

#[derive(Clone, Debug, Default)]
struct Turns {
    /// Steps in a row that changed nothing.
    idle: u32,
    /// The round of the last of them.
    looked: u64,
    /// Steps since the change with that number.
    quiet: (u64, u64),
    /// Choices at which the thread could run and another ran, since it ran last.
    passed: u32,
    /// For how many steps it runs when it has starved.
    turn: u32,
}

/// Whether a step changes something that other threads could notice, for an executor that does not see the
/// writes between steps: what a thread that holds a lock alone does may be a change. Of an atomic update it is
/// known only when it has happened.
pub fn changes(step: &Step) -> bool {
    match step {
        Step::Do(op) => match op {
            Op::Atomic(_, AtomicOp::Store(_)) => true,
            Op::Atomic(..)
            | Op::Read(_)
            | Op::Fence(_)
            | Op::Acquire(_, Mode::Shared)
            | Op::Release(..)
            | Op::RegionEnter(..)
            | Op::RegionExit(_)
            | Op::Flow(_)
            | Op::Focus(_) => false,
            Op::Write(_)
            | Op::Acquire(_, Mode::Exclusive)
            | threads!()
            | rendezvous!()
            | conditions!()
            | allocation!() => true,
        },
        Step::Enroll(..) => true,
        Step::TryAcquire(..) | Step::Yield | Step::Busy | Step::Ended => false,
    }
}

impl Fairness {
    /// Forgets the execution before.
    pub fn clear(&mut self) {
        self.threads.clear();
        (self.changes, self.rounds, self.quiet, self.due) = (0, 0, 0, None);
    }

    fn turns(&mut self, thread: ThreadId) -> &mut Turns {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Turns::default);
        }
        &mut self.threads[thread.index()]
    }

    /// A thread has taken a step, which changed something or not.
    #[inline]
    pub fn stepped(&mut self, thread: ThreadId, changed: bool) {
        if changed {
            return self.changed(thread);
        }
        self.quiet += 1;
        let (rounds, changes) = (self.rounds, self.changes);
        let turns = self.turns(thread);
        if turns.looked != rounds {
            turns.looked = rounds;
            turns.idle = turns.idle.min(SPINS - LOOK);
        }
        turns.idle += 1;
        turns.quiet = match turns.quiet {
            (since, steps) if since == changes => (since, steps + 1),
            _ => (changes, 1),
        };
    }

    /// The last step of a thread turns out to have changed something.
    #[inline]
    pub fn changed(&mut self, thread: ThreadId) {
        self.changes += 1;
        self.rounds += 1;
        self.quiet = 0;
        self.turns(thread).idle = 0;
    }

    fn spins(&self, thread: ThreadId) -> bool {
        self.threads.get(thread.index()).is_some_and(|t| t.idle >= SPINS && t.looked == self.rounds)
    }

    /// Whether all these threads, which can run, only wait for a change: then time passes for those that wait
    /// for a time.
    pub fn all_spin(&self, enabled: &[ThreadId]) -> bool {
        self.quiet > 0 && enabled.iter().all(|&t| self.spins(t))
    }

    /// Puts those of the enabled threads into `few` that may be chosen; leaves it empty if all of them may.
    pub fn select(&mut self, enabled: &[ThreadId], few: &mut Vec<ThreadId>) {
        few.clear();
        let (mut spinning, mut starved) = (0, None);
        for &thread in enabled {
            spinning += usize::from(self.spins(thread));
            let turns = self.turns(thread);
            turns.passed += 1;
            if turns.passed > STREAK {
                starved = starved.or(Some(thread));
            }
        }
        let due = self.due.take().filter(|&(t, left)| left > 0 && enabled.contains(&t));
        if let Some((thread, left)) = due {
            self.due = Some((thread, left - 1));
            return few.push(thread);
        }
        if let Some(thread) = starved {
            let turns = self.turns(thread);
            turns.turn = (turns.turn * 2).clamp(1, STREAK);
            self.due = Some((thread, turns.turn - 1));
            return few.push(thread);
        }
        if spinning == enabled.len() {
            self.rounds += 1;
        } else if spinning > 0 {
            few.extend(enabled.iter().copied().filter(|&t| !self.spins(t)));
        }
    }

    /// Whether a thread has taken so many steps in a row that changed nothing that even a patient strategy has to let
    /// others run.
    pub fn tries_patience(&self, running: Option<ThreadId>) -> bool {
        let idle = |t: ThreadId| self.threads.get(t.index()).map_or(0, |t| t.idle);
        running.is_some_and(|t| idle(t) >= PATIENCE)
    }

    /// A thread runs that was chosen, or had to be.
    #[inline]
    pub fn runs(&mut self, thread: ThreadId) {
        self.turns(thread).passed = 0;
    }

    /// Whether the program is stuck in loops: nothing has changed in the second half of its `steps`, and
    /// meanwhile each of the threads that can run has run.
    pub fn is_stuck(&self, steps: u64, runnable: &[ThreadId]) -> bool {
        let quiet = |t: &ThreadId| match self.threads.get(t.index()).map(|t| t.quiet) {
            Some((since, steps)) if since == self.changes => steps,
            _ => 0,
        };
        let enough = ROUNDS.min(steps / 4 / (runnable.len() as u64).max(1));
        self.quiet * 2 >= steps && runnable.iter().all(|t| quiet(t) >= enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ThreadId = ThreadId(0);
    const B: ThreadId = ThreadId(1);
    const C: ThreadId = ThreadId(2);

    /// Who runs if the strategy always wants the first of its candidates, and `changed` says what changes.
    fn run(
        fairness: &mut Fairness,
        enabled: &[ThreadId],
        changed: impl Fn(ThreadId) -> bool,
    ) -> ThreadId {
        let mut few = Vec::new();
        fairness.select(enabled, &mut few);
        let thread = *few.first().unwrap_or(&enabled[0]);
        fairness.runs(thread);
        fairness.stepped(thread, changed(thread));
        thread
    }

    #[test]
    fn pollers_that_alternate_do_not_starve_a_third_thread() {
        let mut fairness = Fairness::default();
        let steps = (0..10 * SPINS).filter(|_| run(&mut fairness, &[A, B, C], |t| t == C) == C);
        assert!(steps.count() > SPINS as usize / 4);
    }

    #[test]
    fn threads_whose_changes_are_not_seen_run_alike() {
        let mut fairness = Fairness::default();
        let mut counts = [0; 2];
        for _ in 0..10_000 {
            counts[run(&mut fairness, &[A, B], |_| false).index()] += 1;
        }
        assert!(counts.iter().all(|&n| n > 4_000), "{counts:?}");
        assert!(fairness.is_stuck(10_000, &[A, B]));
        assert!(!fairness.is_stuck(10_000, &[A, B, C]), "the third could run and did not");
    }

    #[test]
    fn a_thread_that_always_changes_something_does_not_starve_others() {
        let mut fairness = Fairness::default();
        let steps = (0..20 * STREAK).filter(|_| run(&mut fairness, &[A, B], |_| true) == B);
        assert!(steps.count() > 500);
        assert!(!fairness.is_stuck(u64::from(20 * STREAK), &[A, B]), "something changes");
    }

    #[test]
    fn a_thread_that_does_not_spin_is_the_strategys_to_choose() {
        let mut fairness = Fairness::default();
        for _ in 0..STREAK {
            assert_eq!(run(&mut fairness, &[A, B], |_| true), A);
        }
    }
}
