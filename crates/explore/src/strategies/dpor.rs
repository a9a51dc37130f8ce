//! Dynamic partial-order reduction: one schedule of each class of schedules that differ only in the
//! order of independent steps.
//!
//! Sources: Abdulla, Aronis, Jonsson and Sagonas, *Optimal dynamic partial order reduction*, POPL 2014,
//! algorithm 1 (source sets); the idea from Flanagan and Godefroid, POPL 2005; sleep sets from Godefroid,
//! *Partial-order methods for the verification of concurrent systems*, 1996, chapter 5. Whenever a step
//! is taken that depends on an earlier one of another thread and is ordered after it by nothing else, the
//! two *race*: from the state before the earlier one a schedule must be tried that takes the later one
//! first. A sleep set keeps a choice from being tried where that could only repeat a class.
//!
//! Legend: `clock` of an event is the set of events ordered before it, one index per thread;
//! `backtrack`, `done` and `sleep` of a state are the threads to try, tried, and not worth trying; `v` is
//! what happened after the earlier step independently of it, and then the later step; the *initials* of
//! `v` are the threads that can begin it.
//!
//! Deviations: steps that are blocked at the end of an execution race as if they were taken. A release
//! orders what acquires the lock next but does not race with it, since the two are never enabled
//! together. Where none of the initials is enabled, all enabled threads are tried. Clocks come from the
//! dependence relation itself and not from objects, which needs no knowledge of what a step is about and
//! costs time linear in the length of the execution. An execution
//! that turns out to repeat a class is not cut off but runs to its end, and is not counted. A thread that
//! yields is not tried while another is enabled, as in [`dfs`](crate::dfs). With a limit on depth, later
//! choices are not varied.
//!
//! Guarantee: on a program whose executions all end and that makes no yields, every class (Mazurkiewicz
//! trace under [`dependent`]) is visited exactly once among the executions that [`Strategy::classes`] counts.
//!
//! Cost: O(n·k) per step of an execution of k steps, and as much per race.

use selvedge_model::{Op, ThreadId};

use crate::entry::Entry;
use crate::strategies::dfs::Bounds;
use crate::{Choice, Coverage, Pending, Rng, Step, Strategy, dependent};

/// Visits one schedule of each class.
#[derive(Debug)]
pub struct Dpor {
    bounds: Bounds,
    executions: u64,
    redundant_executions: u64,
    path: Vec<State>,
    /// How many states of `path` the current execution repeats.
    repeat: usize,
    at: usize,
    /// The state of the choice that was made, until its step is taken.
    chosen: Option<usize>,
    events: Vec<Taken>,
    /// What each thread knows.
    threads: Vec<Clock>,
    /// Threads whose next step would only repeat a class.
    sleep: Vec<(ThreadId, Step)>,
    redundant: bool,
    /// An execution has begun and not ended.
    running: bool,
    cut: bool,
    diverged: Option<usize>,
}

/// A state with a choice.
#[derive(Debug)]
struct State {
    enabled: Vec<ThreadId>,
    backtrack: Vec<ThreadId>,
    done: Vec<(ThreadId, Step)>,
    /// Asleep when the state was first reached.
    sleep: Vec<(ThreadId, Step)>,
    taken: (ThreadId, Step),
}

#[derive(Debug)]
struct Taken {
    thread: ThreadId,
    step: Step,
    clock: Clock,
    /// Index in `path` of the state it was taken from, if there was a choice.
    state: Option<usize>,
}

/// For each thread, how many events (counted over the whole execution) up to its last one known here.
type Clock = Vec<u32>;

impl Dpor {
    /// A search within bounds; `preemptions` is not among them, for bounding them would make the
    /// reduction miss schedules within the bound.
    pub fn new(bounds: Bounds) -> Dpor {
        Dpor {
            bounds,
            executions: 0,
            redundant_executions: 0,
            path: Vec::new(),
            repeat: 0,
            at: 0,
            chosen: None,
            events: Vec::new(),
            threads: Vec::new(),
            sleep: Vec::new(),
            redundant: false,
            running: false,
            cut: false,
            diverged: None,
        }
    }

    /// How many executions there were, including those that repeated a class.
    pub fn executions(&self) -> u64 {
        self.executions
    }

    /// As [`Dfs::diverged`](crate::Dfs::diverged).
    pub fn diverged(&self) -> Option<usize> {
        self.diverged
    }

    fn asleep(&self, thread: ThreadId) -> bool {
        self.sleep.iter().any(|&(t, _)| t == thread)
    }

    /// What `p` knows after taking `step` next; and the events that race with it.
    fn races(&self, p: ThreadId, step: Step) -> (Clock, Vec<usize>) {
        let mut reversible = self.threads[p.index()].clone();
        let mut clock = reversible.clone();
        let mut racing = Vec::new();
        for (i, event) in self.events.iter().enumerate().rev() {
            let (known, ordered) = (event.index_in(&clock) > i, event.index_in(&reversible) > i);
            if (known && ordered) || !dependent((event.thread, event.step), (p, step)) {
                continue;
            }
            join(&mut clock, &event.clock);
            if ordered || never_together((event.thread, event.step), (p, step)) {
                continue;
            }
            join(&mut reversible, &event.clock);
            racing.push(i);
        }
        if clock.len() <= p.index() {
            clock.resize(p.index() + 1, 0);
        }
        clock[p.index()] = self.events.len() as u32 + 1;
        (clock, racing)
    }

    /// Plans a schedule in which the step of `p`, which knows `clock` after it, comes before event `i`.
    fn reverse(&mut self, i: usize, p: ThreadId, clock: &Clock) {
        let Some(state) = self.events[i].state else { return };
        let first = &self.events[i];
        let v: Vec<(ThreadId, usize, &Clock)> = (i + 1..self.events.len())
            .map(|j| (self.events[j].thread, j, &self.events[j].clock))
            .filter(|(_, _, c)| first.index_in(c) <= i)
            .chain([(p, self.events.len(), clock)])
            .collect();
        let knows = |c: &Clock, &(q, j, _): &(ThreadId, usize, &Clock)| {
            c.get(q.index()).is_some_and(|&n| n as usize > j)
        };
        let mut initials: Vec<ThreadId> = Vec::new();
        for (at, &(q, _, c)) in v.iter().enumerate() {
            let first_of_q = v[..at].iter().all(|e| e.0 != q);
            if first_of_q && !v[..at].iter().any(|e| knows(c, e)) {
                initials.push(q);
            }
        }
        let state = &mut self.path[state];
        if initials.iter().any(|q| state.backtrack.contains(q)) {
            return;
        }
        match initials.iter().find(|q| state.enabled.contains(q)) {
            Some(&q) => state.backtrack.push(q),
            None => {
                let more = state.enabled.iter().filter(|q| !state.backtrack.contains(q));
                let more: Vec<ThreadId> = more.copied().collect();
                state.backtrack.extend(more);
            }
        }
    }

    fn know(&mut self, threads: usize) {
        while self.threads.len() < threads {
            // A thread that is new was started by the thread that took the last step.
            self.threads.push(self.events.last().map_or(Clock::new(), |e| e.clock.clone()));
        }
    }

    fn new_state(&mut self, choice: &Choice<'_>) -> Option<ThreadId> {
        let first = choice
            .willing()
            .into_iter()
            .chain((0..choice.candidates()).map(|i| choice.candidate(i)))
            .find(|&t| !self.asleep(t))?;
        self.path.push(State {
            enabled: (0..choice.candidates()).map(|i| choice.candidate(i)).collect(),
            backtrack: vec![first],
            done: Vec::new(),
            sleep: self.sleep.clone(),
            taken: (first, choice.next(first).step),
        });
        Some(first)
    }
}

impl Taken {
    /// How many events `clock` knows up to the last one of this event's thread.
    fn index_in(&self, clock: &Clock) -> usize {
        clock.get(self.thread.index()).copied().unwrap_or(0) as usize
    }
}

impl Strategy for Dpor {
    fn begin(&mut self, _: Rng) -> bool {
        while let Some(state) = self.path.last_mut() {
            if !state.done.iter().any(|d| d.0 == state.taken.0) {
                let taken = state.taken;
                state.done.push(taken);
            }
            match state.untried() {
                Some(next) => {
                    // The step is filled in when the state is reached again.
                    state.taken = (next, Step::Ended);
                    break;
                }
                None => {
                    self.path.pop();
                }
            }
        }
        self.running = self.executions == 0 || !self.path.is_empty();
        self.executions += u64::from(self.running);
        self.repeat = self.path.len();
        self.at = 0;
        self.chosen = None;
        self.events.clear();
        self.threads.clear();
        self.sleep.clear();
        self.redundant = false;
        self.running
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        let default = || choice.willing().unwrap_or_else(|| choice.candidate(0));
        if self.redundant {
            return default();
        }
        if self.at < self.repeat {
            let state = &mut self.path[self.at];
            let thread = state.taken.0;
            if !choice.is_enabled(thread) {
                self.diverged.get_or_insert(choice.step);
                self.redundant = true;
                return default();
            }
            state.taken.1 = choice.next(thread).step;
            self.chosen = Some(self.at);
            self.at += 1;
            return thread;
        }
        if self.path.len() >= self.bounds.depth {
            self.cut = true;
            self.redundant = true;
            return default();
        }
        match self.new_state(choice) {
            Some(thread) => {
                self.chosen = Some(self.at);
                self.at += 1;
                thread
            }
            None => {
                self.redundant = true;
                self.redundant_executions += 1;
                default()
            }
        }
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        if self.redundant {
            return;
        }
        self.know(pending.len());
        let step = pending[thread.index()].step;
        let state = self.chosen.take();
        if let Some(state) = state {
            let state = &self.path[state];
            self.sleep.clear();
            self.sleep.extend(state.sleep.iter().chain(&state.done));
        }
        if state.is_none() && self.asleep(thread) {
            self.redundant = true;
            self.redundant_executions += 1;
            return;
        }
        self.sleep.retain(|&(q, s)| !dependent((thread, step), (q, s)));
        let (clock, racing) = self.races(thread, step);
        for i in racing {
            self.reverse(i, thread, &clock);
        }
        self.threads[thread.index()].clone_from(&clock);
        self.events.push(Taken { thread, step, clock, state });
    }

    fn number(&mut self, below: u32) -> u32 {
        self.cut |= below > 1;
        0
    }

    fn end(&mut self, pending: &[Pending]) {
        self.running = false;
        if self.redundant {
            return;
        }
        self.know(pending.len());
        for (i, blocked) in pending.iter().enumerate().filter(|(_, p)| p.step != Step::Ended) {
            let thread = ThreadId(i as u32);
            let (clock, racing) = self.races(thread, blocked.step);
            for i in racing {
                self.reverse(i, thread, &clock);
            }
        }
    }

    fn coverage(&self) -> Coverage {
        let exhausted = self.executions > 0
            && !self.running
            && self.path.iter().all(|state| state.untried().is_none());
        Coverage::of_search(exhausted && !self.cut && self.diverged.is_none())
    }

    fn classes(&self) -> Option<u64> {
        Some(self.executions - self.redundant_executions)
    }
}

impl State {
    /// The next thread to try.
    fn untried(&self) -> Option<ThreadId> {
        let tried = |t: ThreadId| {
            t == self.taken.0 || self.done.iter().chain(&self.sleep).any(|&(q, _)| q == t)
        };
        self.backtrack.iter().copied().find(|&t| !tried(t))
    }
}

/// Whether the second step can only be taken after the first, so that it is useless to try it before.
fn never_together((p, first): (ThreadId, Step), (q, second): (ThreadId, Step)) -> bool {
    match (first, second) {
        (Step::Do(Op::Release(a, _)), Step::Do(Op::Acquire(b, _))) => a == b,
        (_, Step::Do(Op::Join(t))) => t == p,
        (Step::Do(Op::Fork(t)), _) => t == q,
        _ => false,
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (mine, &theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(theirs);
    }
}

/// The strategy of `dpor`.
pub const ENTRY: Entry = Entry {
    name: "dpor",
    about: "one schedule of each class whose schedules differ only in independent steps",
    argument: None,
    systematic: true,
    new: |_| Box::new(Dpor::new(Bounds::default())),
};
