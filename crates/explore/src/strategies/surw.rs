//! Selectively uniform random walk: every interleaving of the selected events is equally likely.
//!
//! Source: Zhao, Wolff, Mathur and Roychoudhury, *Selectively uniform concurrency testing*, ASPLOS 2025.
//! A random walk favours schedules in which short threads finish early. If each thread is chosen in
//! proportion to the events that it still has before it, all interleavings are equally likely. Doing so
//! for the few events that matter, and leaving the others to chance, makes the sample space small.
//!
//! How: an *intended* thread is drawn in proportion to the selected events left in each thread and in those
//! that it has yet to start; a thread that comes to a selected event waits until it is the intended
//! one. A thread that starts another one hands over the other's share of being intended.
//!
//! Deviations: the counts are those of the execution before, whichever strategy chose in it, not of a profiling phase; what
//! is selected is the steps on one object, drawn anew for each execution from the objects that at least
//! two threads used, or everything if there is none. If every enabled thread waits for an
//! intended thread that is blocked or did less than it used to, the intended one is drawn among those
//! enabled. An execution that ends with threads blocked, as in a deadlock, has not shown what they would
//! have done: the step that each was kept from is counted, and of this execution and the one before the
//! larger number. Otherwise deadlocks would make threads look short, and then happen again and again.
//!
//! Guarantee: if every thread has as many selected events in every schedule, is started by the same
//! thread in each, and no step of them blocks, then the orders of the selected events are equally likely.
//! Otherwise it is a random walk with weights: every schedule remains possible.
//!
//! Cost: O(n) per step.

use rustc_hash::FxHashMap;
use selvedge_model::{About, Event, Op, ThreadId};

use crate::entry::Entry;
use crate::{Choice, Pending, Rng, Step, Strategy};

/// The object of a step, as far as the selection distinguishes objects.
type Subject = (u8, u64);

type Counts = FxHashMap<(Option<Subject>, ThreadId), u64>;

/// Uniform over the interleavings of selected events.
#[derive(Clone, Debug, Default)]
pub struct Surw {
    select_all: bool,
    rng: Rng,
    /// The object whose steps are selected; everything if there is none.
    selected: Option<Subject>,
    /// How many steps each thread took on each object in this execution.
    // invariant: also under `None`, all its steps together.
    counts: Counts,
    /// The same of the execution before.
    expected: Counts,
    /// Who started whom in this execution.
    forks: Vec<(ThreadId, ThreadId)>,
    /// The same of the execution before.
    // invariant: by the number of the thread started, ascending.
    expected_forks: Vec<(ThreadId, ThreadId)>,
    /// Selected events that each thread has before it, for the threads that exist.
    left: Vec<u64>,
    intended: Option<ThreadId>,
}

impl Surw {
    /// Selects every step: the uniform random walk.
    pub fn uniform() -> Surw {
        Surw { select_all: true, ..Surw::default() }
    }

    fn select(&mut self) {
        let mut users: FxHashMap<Subject, u32> = FxHashMap::default();
        for (subject, _) in self.expected.keys() {
            if let Some(subject) = subject {
                *users.entry(*subject).or_default() += 1;
            }
        }
        let mut shared: Vec<Subject> =
            users.into_iter().filter(|&(_, n)| n >= 2).map(|(s, _)| s).collect();
        shared.sort_unstable();
        self.selected = match shared.len() {
            0 => None,
            _ if self.select_all => None,
            n => Some(shared[self.rng.below(n)]),
        };
    }

    fn count(&mut self, thread: ThreadId, step: Step) {
        *self.counts.entry((None, thread)).or_default() += 1;
        if let Some(subject) = subject(step) {
            *self.counts.entry((Some(subject), thread)).or_default() += 1;
        }
    }

    fn is_selected(&self, step: Step) -> bool {
        step != Step::Ended && (self.selected.is_none() || subject(step) == self.selected)
    }

    fn know(&mut self, threads: usize) {
        while self.left.len() < threads {
            let thread = ThreadId(self.left.len() as u32);
            self.left.push(self.share(thread));
        }
    }

    /// The selected events that a thread had in the execution before.
    fn share(&self, thread: ThreadId) -> u64 {
        self.expected.get(&(self.selected, thread)).copied().unwrap_or(0)
    }

    /// The selected events that a thread has before it, and the threads that it is yet to start.
    fn weight(&self, thread: ThreadId) -> u64 {
        let unborn = self.expected_forks.partition_point(|fork| fork.1.index() < self.left.len());
        let own = self.left.get(thread.index()).copied();
        // A thread is started by one with a smaller number, so this comes to an end.
        let started =
            self.expected_forks[unborn..].iter().filter(|f| f.0 == thread && f.1 > thread);
        own.unwrap_or_else(|| self.share(thread)) + started.map(|f| self.weight(f.1)).sum::<u64>()
    }

    /// Draws one of `threads` in proportion to its weight, which counts at least `least`.
    fn draw(&mut self, threads: &[ThreadId], least: u64) -> Option<ThreadId> {
        let weights: Vec<u64> = threads.iter().map(|&t| self.weight(t).max(least)).collect();
        let total = usize::try_from(weights.iter().sum::<u64>()).ok().filter(|&n| n > 0)?;
        let mut at = self.rng.below(total) as u64;
        for (&thread, weight) in threads.iter().zip(weights) {
            if at < weight {
                return Some(thread);
            }
            at -= weight;
        }
        None
    }
}

/// The object that a step is about.
fn subject(step: Step) -> Option<Subject> {
    let about = match step {
        Step::Do(Op::Alloc(_) | Op::Free(_)) => return None,
        Step::Do(op) => op.about(),
        Step::TryAcquire(lock, mode) => About::Lock(lock, mode),
        Step::Enroll(cond, _) => About::Cond(cond),
        Step::Yield | Step::Busy | Step::Ended => return None,
    };
    match about {
        About::Memory(range, _) => Some((0, range.start)),
        About::Lock(lock, _) => Some((1, u64::from(lock.0))),
        About::Barrier(barrier) => Some((2, u64::from(barrier.0))),
        About::Semaphore(semaphore) => Some((3, u64::from(semaphore.0))),
        About::Cond(cond) => Some((4, u64::from(cond.0))),
        About::Thread(_) | About::Region(_) | About::Itself => None,
    }
}

impl Strategy for Surw {
    fn begin(&mut self, rng: Rng) -> bool {
        self.rng = rng;
        self.left.clear();
        self.forks.clear();
        self.intended = None;
        self.select();
        true
    }

    fn number(&mut self, below: u32) -> u32 {
        self.rng.number(below)
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.know(choice.pending.len());
        if self.intended.is_none() {
            let alive = (0..choice.pending.len() as u32)
                .map(ThreadId)
                .filter(|&t| choice.next(t).step != Step::Ended)
                .collect::<Vec<_>>();
            self.intended = self.draw(&alive, 0);
        }
        let free: Vec<ThreadId> = (0..choice.candidates())
            .map(|i| choice.candidate(i))
            .filter(|&t| Some(t) == self.intended || !self.is_selected(choice.next(t).step))
            .collect();
        if !free.is_empty() {
            return free[self.rng.below(free.len())];
        }
        let waiting: Vec<ThreadId> =
            (0..choice.candidates()).map(|i| choice.candidate(i)).collect();
        self.intended = self.draw(&waiting, 1);
        self.intended.expect("a choice has threads")
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn learns(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.know(pending.len());
        let step = pending[thread.index()].step;
        self.count(thread, step);
        if self.is_selected(step) {
            let left = &mut self.left[thread.index()];
            *left = left.saturating_sub(1);
            self.intended = None;
        }
    }

    fn observe(&mut self, event: &Event) {
        if let Op::Fork(child) = event.op {
            self.forks.push((event.thread, child));
            let intended = self.intended == Some(event.thread);
            self.know(child.index() + 1);
            if intended {
                self.intended = self.draw(&[event.thread, child], 0);
            }
        }
    }

    fn end(&mut self, pending: &[Pending]) {
        let mut cut_short = false;
        for (thread, pending) in (0..).map(ThreadId).zip(pending) {
            if pending.step != Step::Ended {
                cut_short = true;
                self.count(thread, pending.step);
            }
        }
        if cut_short {
            for (what, &before) in &self.expected {
                let now = self.counts.entry(*what).or_default();
                *now = before.max(*now);
            }
            let known = |t| self.forks.iter().any(|&(_, child)| child == t);
            let unborn: Vec<_> =
                self.expected_forks.iter().copied().filter(|&(_, t)| !known(t)).collect();
            self.forks.extend(unborn);
        }
        self.forks.sort_unstable_by_key(|fork| fork.1);
        self.expected.clear();
        std::mem::swap(&mut self.expected, &mut self.counts);
        self.expected_forks.clone_from(&self.forks);
    }
}

/// The strategy of `surw`.
pub const ENTRY: Entry = Entry {
    name: "surw",
    about: "uniform over the interleavings of the steps on one object",
    argument: None,
    systematic: false,
    new: |_| Box::<Surw>::default(),
};

/// The strategy of `uniform`.
pub const UNIFORM: Entry = Entry {
    name: "uniform",
    about: "uniform over all interleavings",
    argument: None,
    systematic: false,
    new: |_| Box::new(Surw::uniform()),
};
