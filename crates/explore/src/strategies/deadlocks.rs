//! DeadlockFuzzer: makes a predicted deadlock happen.
//!
//! Source: Joshi, Park, Sen and Naik, *A randomized dynamic program analysis technique for detecting
//! real deadlocks*, PLDI 2009; Park, *Active testing*, algorithms 4.5 and 4.6, sections 5.2 and 5.3. A
//! thread that is about to acquire a lock in a context of the predicted cycle is paused, holding what it
//! holds, until enough others are: then each wants what the next one holds.
//!
//! Threads and locks of another execution are recognised by an [`Abstraction`]; the context, which is the
//! sites where the locks held were acquired, is compared too. The coarser an abstraction, the more
//! threads are paused that do not reach the target. Acquiring a lock that the thread holds already does
//! not count.
//!
//! **Yields** (section 5.3): a thread that is about to acquire the first lock of its context lets others
//! run before, so that those that need that lock on their way into the cycle can pass.
//!
//! Deviations: that strategy has to notice the cycle before the last acquisition, because then the
//! program hangs. Here a thread that wants a lock held by another is not enabled, so the cycle is looked
//! for among all threads that wait, paused or not, whenever the executor asks and at the end. The paper
//! counts any deadlock as a success; here only one at the target's places is, and others are kept apart
//! ([`DeadlockFuzzer::elsewhere`]), because one finding must not confirm another. A thread
//! yields for as long as others can run, but for no more than [`PATIENCE`] choices.
//!
//! Guarantee: [`DeadlockFuzzer::reached`] only if threads were in a real cycle, each waiting without a
//! limit of time to acquire a lock that the next one holds in a mode that excludes it, as many as the
//! target has, each waiting at the target's site for a lock that was acquired at a site of the target.
//! May miss cycles whose threads never come to their places together, threads that the abstraction does
//! not recognise, and a thread that waits for a lock of its own.
//!
//! Cost: O(n + held locks) per choice, O(paused threads) more for each candidate.

use selvedge_model::{Event, Held, LockId, Mode, Op, SiteId, ThreadId, Waiter};

use crate::strategies::active::{Active, PATIENCE, Verdict};
use crate::{Choice, Pending, Rng, Step, Strategy};

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

impl Abstraction for Box<dyn Abstraction> {
    fn thread(&self, thread: ThreadId) -> u64 {
        (**self).thread(thread)
    }
    fn lock(&self, lock: LockId) -> u64 {
        (**self).lock(lock)
    }
}

/// One thread of the cycle in terms that outlive the execution.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Role {
    thread: u64,
    /// What it holds and then what it wants: names of locks and sites of their acquisition.
    context: Vec<(u64, SiteId)>,
}

impl Role {
    fn wants_at(&self) -> Option<SiteId> {
        self.context.last().map(|&(_, site)| site)
    }

    /// Whether it holds a lock that it acquired there.
    fn acquired_at(&self, site: SiteId) -> bool {
        self.context.iter().rev().skip(1).any(|&(_, s)| s == site)
    }
}

/// A lock, and how often its holder has acquired it.
#[derive(Clone, Copy, Debug)]
struct Hold {
    held: Held,
    depth: u32,
}

/// Steers towards a cycle of threads, each holding what the one before wants.
pub struct DeadlockFuzzer<A> {
    active: Active,
    cycle: Vec<Role>,
    abstraction: A,
    yields: bool,
    context: bool,
    /// What each thread holds, outermost first.
    held: Vec<Vec<Hold>>,
    /// For how many choices threads at the entrance of the cycle have let others run.
    yielding: usize,
    reached: Vec<ThreadId>,
    elsewhere: Vec<ThreadId>,
}

impl<A: Abstraction> DeadlockFuzzer<A> {
    /// Aims at `cycle`, a cycle of another execution whose names are `names`. `abstraction` names the
    /// threads and locks of the execution that runs.
    pub fn new(cycle: &[Waiter], names: &dyn Abstraction, abstraction: A) -> DeadlockFuzzer<A> {
        let context = |w: &Waiter| {
            w.holds.iter().chain([&w.wants]).map(|h| (names.lock(h.lock), h.site)).collect()
        };
        let cycle = cycle
            .iter()
            .map(|w| Role { thread: names.thread(w.thread), context: context(w) })
            .collect();
        DeadlockFuzzer {
            active: Active::default(),
            cycle,
            abstraction,
            yields: true,
            context: true,
            held: Vec::new(),
            yielding: 0,
            reached: Vec::new(),
            elsewhere: Vec::new(),
        }
    }

    /// Turns the yields of section 5.3 off, for comparison.
    pub fn without_yields(mut self) -> DeadlockFuzzer<A> {
        self.yields = false;
        self
    }

    /// Pauses wherever locks of the cycle are acquired, not only at its sites, for comparison.
    pub fn without_context(mut self) -> DeadlockFuzzer<A> {
        self.context = false;
        self
    }

    /// The threads of the target's cycle, if it was there in this execution; each holds what the one
    /// before it wants.
    pub fn reached(&self) -> &[ThreadId] {
        &self.reached
    }

    /// The threads of a cycle that is not the target's, if there was one and the target's was not.
    pub fn elsewhere(&self) -> &[ThreadId] {
        &self.elsewhere
    }

    /// How many threads of this execution were paused and did not reach the target.
    pub fn thrashes(&self) -> u64 {
        self.active.thrashes()
    }

    fn know(&mut self, threads: usize) {
        if self.held.len() < threads {
            self.held.resize_with(threads, Vec::new);
        }
    }

    fn roles(&self) -> Roles<'_, A> {
        let DeadlockFuzzer { held, cycle, abstraction, context, .. } = self;
        Roles { held, cycle, abstraction, context: *context }
    }

    /// Looks for threads that wait for each other.
    fn look(&mut self, pending: &[Pending]) {
        if !self.reached.is_empty() {
            return;
        }
        let find = |accept: &dyn Fn(&[ThreadId]) -> bool| {
            (0..pending.len() as u32).map(ThreadId).find_map(|thread| {
                let mut chain = vec![thread];
                close(&self.held, &mut chain, pending, accept).then_some(chain)
            })
        };
        let Some(any) = find(&|_| true) else { return };
        match find(&|chain| is_target(&self.cycle, &self.held, chain, pending)) {
            Some(chain) => {
                self.reached = chain;
                self.elsewhere.clear();
                self.active.reach();
            }
            None => self.elsewhere = any,
        }
    }
}

/// The lock that a thread waits for, and the hold of another that keeps it from it.
fn obstacle(held: &[Vec<Hold>], pending: &Pending, holder: ThreadId) -> Option<Hold> {
    let (lock, mode) = wants(pending.step)?;
    let holds = &held[holder.index()];
    holds.iter().copied().find(|h| h.held.lock == lock && h.held.mode.excludes(mode))
}

/// Adds to the chain of threads, each of which waits for the next, until it closes to one that is
/// accepted. One thread alone is not a cycle: it may be allowed to acquire its lock again.
fn close(
    held: &[Vec<Hold>],
    chain: &mut Vec<ThreadId>,
    pending: &[Pending],
    accept: &dyn Fn(&[ThreadId]) -> bool,
) -> bool {
    let last = &pending[chain.last().expect("a chain begins with a thread").index()];
    if chain.len() > 1 && obstacle(held, last, chain[0]).is_some() && accept(chain) {
        return true;
    }
    for next in (0..pending.len() as u32).map(ThreadId) {
        if !chain.contains(&next) && obstacle(held, last, next).is_some() {
            chain.push(next);
            if close(held, chain, pending, accept) {
                return true;
            }
            chain.pop();
        }
    }
    false
}

/// Whether the threads of a cycle, in some rotation, wait where the target's do for what was acquired
/// where the target's was.
fn is_target(cycle: &[Role], held: &[Vec<Hold>], chain: &[ThreadId], pending: &[Pending]) -> bool {
    let n = chain.len();
    let plays = |i: usize, role: &Role, next: &Role| {
        let waiting = &pending[chain[i].index()];
        let obstacle = obstacle(held, waiting, chain[(i + 1) % n]);
        role.wants_at() == Some(waiting.site)
            && obstacle.is_some_and(|hold| next.acquired_at(hold.held.site))
    };
    n == cycle.len()
        && (0..n).any(|r| (0..n).all(|i| plays(i, &cycle[(i + r) % n], &cycle[(i + r + 1) % n])))
}

/// Who plays which role of the cycle.
struct Roles<'a, A> {
    held: &'a [Vec<Hold>],
    cycle: &'a [Role],
    abstraction: &'a A,
    context: bool,
}

impl<A: Abstraction> Roles<'_, A> {
    /// The lock that the thread is about to acquire and does not hold yet.
    fn wanted(&self, thread: ThreadId, pending: &Pending) -> Option<LockId> {
        let (lock, _) = wants(pending.step)?;
        let again = self.held[thread.index()].iter().any(|h| h.held.lock == lock);
        (!again).then_some(lock)
    }

    fn same(&self, lock: LockId, site: SiteId, want: (u64, SiteId)) -> bool {
        self.abstraction.lock(lock) == want.0 && (!self.context || site == want.1)
    }

    /// Whether the thread, with the locks it holds, is about to acquire the last lock of a role.
    fn played_by(&self, thread: ThreadId, pending: &Pending) -> bool {
        let Some(lock) = self.wanted(thread, pending) else { return false };
        let held = &self.held[thread.index()];
        self.cycle.iter().any(|role| {
            role.thread == self.abstraction.thread(thread)
                && role.context.len() == held.len() + 1
                && held
                    .iter()
                    .map(|h| (h.held.lock, h.held.site))
                    .chain([(lock, pending.site)])
                    .zip(&role.context)
                    .all(|((lock, site), &want)| self.same(lock, site, want))
        })
    }

    /// Whether the thread is about to acquire the first of several locks of a role. Without contexts
    /// there is no such place.
    fn entered_by(&self, thread: ThreadId, pending: &Pending) -> bool {
        self.context
            && wants(pending.step).is_some()
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
    fn begin(&mut self, rng: Rng) -> bool {
        self.held.iter_mut().for_each(Vec::clear);
        self.yielding = 0;
        self.reached.clear();
        self.elsewhere.clear();
        self.active.begin(rng)
    }

    fn number(&mut self, below: u32) -> u32 {
        self.active.number(below)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.know(choice.pending.len());
        self.look(choice.pending);
        let DeadlockFuzzer { active, held, cycle, abstraction, context, yields, yielding, .. } =
            self;
        let roles = Roles { held, cycle, abstraction, context: *context };
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
        self.know(pending.len());
        let next = &pending[thread.index()];
        let (played, entered) = {
            let roles = self.roles();
            (roles.played_by(thread, next), roles.entered_by(thread, next))
        };
        self.active.stepped(thread, played);
        if entered {
            self.yielding = 0;
        }
    }

    fn observe(&mut self, event: &Event) {
        let Event { thread, site, op } = *event;
        match op {
            Op::Acquire(lock, mode) => {
                self.know(thread.index() + 1);
                let held = &mut self.held[thread.index()];
                match held.iter_mut().find(|h| h.held.lock == lock && h.held.mode == mode) {
                    Some(hold) => hold.depth += 1,
                    None => held.push(Hold { held: Held { lock, mode, site }, depth: 1 }),
                }
            }
            Op::Release(lock, mode) => {
                self.know(thread.index() + 1);
                // Some programs let another thread release what one has acquired.
                let holder = |held: &Vec<Hold>| {
                    held.iter().rposition(|h| h.held.lock == lock && h.held.mode == mode)
                };
                let mine = holder(&self.held[thread.index()]).map(|i| (thread.index(), i));
                let found = mine.or_else(|| {
                    self.held.iter().enumerate().find_map(|(t, held)| Some((t, holder(held)?)))
                });
                if let Some((t, i)) = found {
                    self.held[t][i].depth -= 1;
                    if self.held[t][i].depth == 0 {
                        self.held[t].remove(i);
                    }
                }
            }
            accesses!()
            | Op::Fence(_)
            | threads!()
            | rendezvous!()
            | conditions!()
            | regions!()
            | allocation!() => {}
        }
    }

    fn end(&mut self, pending: &[Pending]) {
        self.know(pending.len());
        self.look(pending);
    }
}
