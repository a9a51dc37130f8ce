//! What the directed strategies have in common: pausing threads that are part of the way to a target.
//!
//! Source: Park, *Active testing*, and Sen, *Race directed random testing of concurrent programs*, PLDI
//! 2008: algorithm Phase2Scheduler. A random walk in which a thread whose next step satisfies part of the
//! target is *paused*, so that others catch up, until the steps of some paused threads and of the chosen
//! one satisfy all of it.
//!
//! - **No artificial stall**: when all enabled threads are paused, one of them is released at random. That
//!   is a *thrash*: pausing the thread did not help. Thrashes are also counted where the executor does not
//!   ask because only one thread can run: if that thread is at the target, pausing it would not have
//!   helped.
//! - **Exponential backoff**: each pause makes the next one less likely by [`BACKOFF`], so that a program
//!   that comes to a target site a million times still ends. Each execution begins with certainty.
//! - **Livelock monitor**: threads that spin while waiting for a paused one would go on for ever. After
//!   [`PATIENCE`] choices during which the set of paused threads stays the same and is not empty, one of
//!   them is released at random, and counts as a thrash.
//!
//! Deviation: for data races, in every second execution, drawn at random, the thread of highest random priority runs instead
//! of any until the target is reached: it runs until it blocks or is paused, as PCT lets it. Many bugs need few switches,
//! which a random walk seldom shows.
//!
//! Once the target is reached no thread is paused any more, and any may run: what follows shows what the bug does.

use selvedge_model::ThreadId;

use crate::{Choice, Rng};

/// By how much a pause makes the next one less likely.
pub const BACKOFF: f64 = 0.9;
/// How many choices paused threads may hold up the others.
pub const PATIENCE: usize = 1_000;

/// What a directed strategy says of a thread that was chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Its next step has nothing to do with the target.
    Irrelevant,
    /// Its next step is part of the target, whose other parts are not there yet.
    Partial,
    /// The target is reached, and this thread goes first.
    Reached(ThreadId),
}

/// The state of an active random scheduler.
#[derive(Clone, Debug, Default)]
pub struct Active {
    rng: Rng,
    // invariant: ascending.
    paused: Vec<ThreadId>,
    probability: f64,
    reached: bool,
    thrashes: u64,
    held_up: usize,
    /// The priority of each thread; none if any thread runs.
    priorities: Option<Vec<u64>>,
    /// The thread that was chosen and has not taken its step yet.
    chosen: Option<ThreadId>,
}

impl Active {
    /// As [`Strategy::number`](crate::Strategy::number).
    pub fn number(&mut self, below: u32) -> u32 {
        self.rng.number(below)
    }

    /// As [`Strategy::begin`](crate::Strategy::begin).
    pub fn begin(&mut self, rng: Rng) -> bool {
        let mut paused = std::mem::take(&mut self.paused);
        paused.clear();
        *self = Active { rng, paused, probability: 1.0, ..Active::default() };
        true
    }

    /// The same, and in every second execution threads have priorities.
    pub fn begin_by_priority(&mut self, mut rng: Rng) -> bool {
        let priorities = rng.chance(0.5).then(Vec::new);
        self.begin(rng);
        self.priorities = priorities;
        true
    }

    /// Whether the execution has been in the target state.
    pub fn reached(&self) -> bool {
        self.reached
    }

    /// How many threads of this execution were paused and did not reach the target.
    pub fn thrashes(&self) -> u64 {
        self.thrashes
    }

    /// The caller has seen that the target is reached: no thread is paused any more.
    pub fn reach(&mut self) {
        self.reached = true;
        self.paused.clear();
    }

    /// What looked like the target turned out not to be it: threads are paused as before.
    pub fn resume(&mut self) {
        self.reached = false;
    }

    /// Lets a thread run without asking whether to pause it.
    pub fn let_run(&mut self, thread: ThreadId) -> ThreadId {
        self.chosen = Some(thread);
        thread
    }

    /// Chooses, asking `check` about each thread that comes up, with those paused so far. `gives_way`
    /// says of a thread that it should not run now if another can.
    pub fn choose(
        &mut self,
        choice: &Choice<'_>,
        gives_way: impl Fn(ThreadId) -> bool,
        check: impl FnMut(ThreadId, &[ThreadId], &mut Rng) -> Verdict,
    ) -> ThreadId {
        let thread = self.pick(choice, gives_way, check);
        self.let_run(thread)
    }

    fn pick(
        &mut self,
        choice: &Choice<'_>,
        gives_way: impl Fn(ThreadId) -> bool,
        mut check: impl FnMut(ThreadId, &[ThreadId], &mut Rng) -> Verdict,
    ) -> ThreadId {
        // A paused thread may have been released by having no choice; one that is blocked stays.
        if self.reached {
            return choice.candidate(self.rng.below(choice.candidates()));
        }
        if !self.paused.is_empty() {
            self.held_up += 1;
            if self.held_up > PATIENCE
                && let Some(thread) = self.release(|t| choice.is_enabled(t))
            {
                return thread;
            }
        }
        loop {
            let free = |t: ThreadId| self.paused.binary_search(&t).is_err();
            let mut open: Vec<ThreadId> = (0..choice.candidates())
                .map(|i| choice.candidate(i))
                .filter(|&t| free(t))
                .collect();
            if open.is_empty() {
                // The yielding thread, if it is the only one that is not paused.
                open.extend(choice.enabled.iter().copied().filter(|&t| free(t)));
            }
            if open.is_empty() {
                // It goes on at once: asked again, it would be paused again.
                let released = self.release(|t| choice.is_enabled(t));
                return released.expect("all enabled threads are paused");
            }
            let eager = open.iter().filter(|&&t| !gives_way(t)).count();
            if eager > 0 {
                open.retain(|&t| !gives_way(t));
            }
            let thread = self.draw(&open);
            match check(thread, &self.paused, &mut self.rng) {
                Verdict::Irrelevant => return thread,
                Verdict::Reached(first) => {
                    self.reach();
                    return first;
                }
                Verdict::Partial => {
                    if !self.rng.chance(self.probability) {
                        return thread;
                    }
                    self.probability *= BACKOFF;
                    self.held_up = 0;
                    let at = self.paused.partition_point(|&t| t < thread);
                    self.paused.insert(at, thread);
                }
            }
        }
    }

    /// One of several threads.
    fn draw(&mut self, threads: &[ThreadId]) -> ThreadId {
        let Active { priorities, rng, .. } = self;
        let Some(priorities) = priorities else { return threads[rng.below(threads.len())] };
        let last = threads.last().expect("there is a thread");
        while priorities.len() <= last.index() {
            priorities.push(rng.next_u64());
        }
        let highest = threads.iter().max_by_key(|t| priorities[t.index()]);
        *highest.expect("there is a thread")
    }

    /// A thread takes a step. If it was the only one that could, it was not chosen: it is not paused any
    /// more, and if it was, or would have been because its step is part of the target, that is a thrash.
    pub fn stepped(&mut self, thread: ThreadId, part_of_target: bool) {
        let was_chosen = self.chosen.take() == Some(thread);
        if let Ok(at) = self.paused.binary_search(&thread) {
            self.paused.remove(at);
            self.thrashes += 1;
        } else if !was_chosen && part_of_target && !self.reached {
            self.thrashes += 1;
        }
    }

    fn release(&mut self, eligible: impl Fn(ThreadId) -> bool) -> Option<ThreadId> {
        let stuck: Vec<usize> =
            (0..self.paused.len()).filter(|&i| eligible(self.paused[i])).collect();
        self.held_up = 0;
        if stuck.is_empty() {
            return None;
        }
        self.thrashes += 1;
        Some(self.paused.remove(stuck[self.rng.below(stuck.len())]))
    }
}
