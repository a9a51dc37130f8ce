//! DeadlockFuzzer: makes a predicted deadlock happen.
//!
//! Source: Joshi, Park, Sen and Naik, *A randomized dynamic program analysis technique for detecting
//! real deadlocks*, PLDI 2009; Park, *Active testing*, algorithms 4.5 and 4.6, sections 5.2 and 5.3. A
//! thread that is about to acquire a lock in a context of the predicted cycle is paused, holding what it
//! holds, until enough others are: then each wants what the next one holds.
//!
//! Threads and locks of another execution are recognised by an [`Abstraction`]; the context, which is the
//! sites where the locks held were acquired, is compared too. The less an abstraction tells apart, the
//! more threads are paused in vain.
//!
//! **Yields** (section 5.3): a thread that is about to acquire the first lock of its context lets others
//! run before, so that those that need that lock on their way into the cycle can pass.
//!
//! Deviations: that strategy has to notice the cycle before the last acquisition, because then the
//! program hangs. Here a thread that wants a lock held by another is not enabled, and who is blocked at
//! the end of the execution tells; so the whole cycle need not be found among the paused threads.
//! A thread yields for as long as others can run, but for no more than [`PATIENCE`] choices.
//!
//! Guarantee: [`DeadlockFuzzer::reached`] only if threads ended in a real cycle, each waiting to acquire a
//! lock that the next one holds in a mode that excludes it. May miss cycles whose threads never come to
//! their places together, and threads that abstraction does not recognise.
//!
//! Cost: O(n + held locks) per choice, O(paused threads) more for each candidate.

use selvedge_model::{Event, Held, LockId, Mode, Op, SiteId, ThreadId, Waiter};

use crate::active::{Active, PATIENCE, Verdict};
use crate::{Choice, Pending, Step, Strategy};

/// Names for threads and locks that are the same in every execution. Two objects may have one name.
pub trait Abstraction {
    /// The name of a thread.
    fn thread(&self, thread: ThreadId) -> u64;
    /// The name of a lock.
    fn lock(&self, lock: LockId) -> u64;
}

/// Everything has the same name: only sites are compared.
#[derive(Clone, Copy, Debug)]
pub struct Trivial;

impl Abstraction for Trivial {
    fn thread(&self, _: ThreadId) -> u64 {
        0
    }
    fn lock(&self, _: LockId) -> u64 {
        0
    }
}

/// One thread of the cycle in terms that outlive the execution.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Role {
    thread: u64,
    /// What it holds and then what it wants: names of locks and sites of their acquisition.
    context: Vec<(u64, SiteId)>,
}

/// Steers towards a cycle of threads, each holding what the one before wants.
pub struct DeadlockFuzzer<A> {
    active: Active,
    cycle: Vec<Role>,
    abstraction: A,
    yields: bool,
    /// What each thread holds, outermost first.
    held: Vec<Vec<Held>>,
    /// For how many choices threads at the entrance of the cycle have let others run.
    yielding: usize,
    reached: Vec<ThreadId>,
}

impl<A: Abstraction> DeadlockFuzzer<A> {
    /// Aims at `cycle`, a cycle of another execution whose names are `names`, in each of `limit`
    /// executions. `abstraction` names the threads and locks of the execution that runs.
    pub fn new(
        cycle: &[Waiter],
        names: &dyn Abstraction,
        abstraction: A,
        seed: u64,
        limit: u64,
    ) -> DeadlockFuzzer<A> {
        let cycle = cycle
            .iter()
            .map(|w| Role {
                thread: names.thread(w.thread),
                context: w
                    .holds
                    .iter()
                    .chain([&w.wants])
                    .map(|h| (names.lock(h.lock), h.site))
                    .collect(),
            })
            .collect();
        DeadlockFuzzer {
            active: Active::new(seed, limit),
            cycle,
            abstraction,
            yields: true,
            held: Vec::new(),
            yielding: 0,
            reached: Vec::new(),
        }
    }

    /// Turns the yields of section 5.3 off, for comparison.
    pub fn without_yields(mut self) -> DeadlockFuzzer<A> {
        self.yields = false;
        self
    }

    /// The threads of the cycle, if there was one in this execution; each holds what the one before
    /// it wants.
    pub fn reached(&self) -> &[ThreadId] {
        &self.reached
    }

    /// How many threads were paused in vain in this execution.
    pub fn thrashes(&self) -> u64 {
        self.active.thrashes()
    }

    fn know(&mut self, threads: usize) {
        if self.held.len() < threads {
            self.held.resize_with(threads, Vec::new);
        }
    }

    fn roles(&self) -> Roles<'_, A> {
        Roles { held: &self.held, cycle: &self.cycle, abstraction: &self.abstraction }
    }

    /// Adds to the chain of threads, each of which waits for the next, until it closes.
    fn close(&self, chain: &mut Vec<ThreadId>, pending: &[Pending]) -> bool {
        let last = *chain.last().expect("a chain begins with a thread");
        let Some((lock, mode)) = wants(pending[last.index()].step) else { return false };
        let holds = |t: ThreadId| {
            self.held[t.index()].iter().any(|h| h.lock == lock && h.mode.excludes(mode))
        };
        if holds(chain[0]) {
            return true;
        }
        for next in (0..pending.len() as u32).map(ThreadId) {
            if !chain.contains(&next) && holds(next) {
                chain.push(next);
                if self.close(chain, pending) {
                    return true;
                }
                chain.pop();
            }
        }
        false
    }
}

/// Who plays which role of the cycle.
struct Roles<'a, A> {
    held: &'a [Vec<Held>],
    cycle: &'a [Role],
    abstraction: &'a A,
}

impl<A: Abstraction> Roles<'_, A> {
    /// Whether the thread, with the locks it holds, is about to acquire the last lock of a role.
    fn played_by(&self, thread: ThreadId, pending: &Pending) -> bool {
        let Some((lock, _)) = wants(pending.step) else { return false };
        let held = &self.held[thread.index()];
        self.cycle.iter().any(|role| {
            role.thread == self.abstraction.thread(thread)
                && role.context.len() == held.len() + 1
                && held
                    .iter()
                    .map(|h| (h.lock, h.site))
                    .chain([(lock, pending.site)])
                    .zip(&role.context)
                    .all(|((lock, site), want)| (self.abstraction.lock(lock), site) == *want)
        })
    }

    /// Whether the thread is about to acquire the first of several locks of a role.
    fn entered_by(&self, thread: ThreadId, pending: &Pending) -> bool {
        wants(pending.step).is_some()
            && self.held[thread.index()].is_empty()
            && self.cycle.iter().any(|role| {
                role.context.len() > 1
                    && role.thread == self.abstraction.thread(thread)
                    && role.context[0].1 == pending.site
            })
    }
}

fn wants(step: Step) -> Option<(LockId, Mode)> {
    match step {
        Step::Do(Op::Acquire(lock, mode)) => Some((lock, mode)),
        _ => None,
    }
}

impl<A: Abstraction> Strategy for DeadlockFuzzer<A> {
    fn begin(&mut self) -> bool {
        self.held.iter_mut().for_each(Vec::clear);
        self.yielding = 0;
        self.reached.clear();
        self.active.begin()
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.know(choice.pending.len());
        let DeadlockFuzzer { active, held, cycle, abstraction, yields, yielding, .. } = self;
        let roles = Roles { held, cycle, abstraction };
        let patient = *yields && *yielding < PATIENCE;
        let gives_way = |t: ThreadId| patient && roles.entered_by(t, choice.next(t));
        *yielding += usize::from(choice.enabled.iter().any(|&t| gives_way(t)));
        active.choose(choice, gives_way, |thread, _, _| {
            if roles.played_by(thread, choice.next(thread)) {
                Verdict::Partial
            } else {
                Verdict::Irrelevant
            }
        })
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.active.forced(thread);
        self.know(pending.len());
        if self.roles().entered_by(thread, &pending[thread.index()]) {
            self.yielding = 0;
        }
    }

    fn observe(&mut self, event: &Event) {
        let Event { thread, site, op } = *event;
        match op {
            Op::Acquire(lock, mode) => {
                self.know(thread.index() + 1);
                self.held[thread.index()].push(Held { lock, mode, site });
            }
            Op::Release(lock, mode) => {
                self.know(thread.index() + 1);
                let held = &mut self.held[thread.index()];
                if let Some(i) = held.iter().rposition(|h| h.lock == lock && h.mode == mode) {
                    held.remove(i);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, pending: &[Pending]) {
        self.know(pending.len());
        for thread in (0..pending.len() as u32).map(ThreadId) {
            let mut chain = vec![thread];
            if self.close(&mut chain, pending) {
                self.reached = chain;
                return;
            }
        }
    }
}
