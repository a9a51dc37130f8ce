//! Runs tasks one after the other, in every order, and leaves stars out or not.
//!
//! Source: Burnim, *Specifying and Checking Correctness of Parallel Programs*, definition 17: the executions of the
//! sequential program that a specification of parallelism stands for. A task runs without interruption from its begin
//! to its end, with the threads that it starts; where no task runs, any thread may go on. If threads are the tasks, what
//! the first thread does itself between starting and joining others is not interrupted either.
//!
//! Deviations: the search is depth first and without reduction, except that a thread outside of tasks takes steps that
//! cannot matter to others (starting and joining threads) at once. A star is left out at most [`IN_A_ROW`] times in a
//! row at one place, because a loop around it may go on for ever; [`Sequential::deeper`] leaves it out more often.
//!
//! Guarantee: if [`Sequential::interrupted`] is false after an execution, no thread took a step while a task of another
//! was open, or while the first thread could have gone on in the middle of what it does itself. [`Coverage::Complete`]
//! is said only when every order and every choice of stars within that bound was begun; [`Sequential::bounded`] tells
//! whether the bound left any out.
//!
//! A thread that takes very many steps that change nothing has to give way ([`Sequential::forced`]): then it is not known
//! whether it waits for another.
//!
//! Cost: O(n) per choice; as many executions as there are orders and choices.

use std::collections::HashMap;

use selvedge_model::{Event, Op, RegionKind, ThreadId};

use crate::entry::Entry;
use crate::{Choice, Coverage, Pending, Rng, Step, Strategy};

/// A star is left out at most so many times in a row at one place.
pub const IN_A_ROW: u32 = 3;
/// And so many times in a deeper search.
const DEEPER: u32 = 12;

/// What the tasks are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tasks {
    /// Every thread but the first, from barrier to barrier.
    #[default]
    Threads,
    /// Regions that are marked as tasks.
    Marked,
}

/// The thread that the program begins with.
const FIRST: ThreadId = ThreadId(0);

/// One choice that was made.
#[derive(Clone, Copy, Debug)]
struct Taken {
    options: u32,
    taken: u32,
    /// The other options are not taken.
    once: bool,
}

impl Taken {
    fn first(options: u32) -> Taken {
        Taken { options, taken: 0, once: false }
    }

    fn is_last(self) -> bool {
        self.once || self.taken + 1 == self.options
    }
}

/// Every sequential execution, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Sequential {
    tasks: Tasks,
    patient: bool,
    deep: bool,
    path: Vec<Taken>,
    at: usize,
    begun: bool,
    running: bool,
    /// The program did something else after the same choices.
    diverged: bool,
    interrupted: bool,
    forced: bool,
    /// A star was kept because it had been left out as often as it may be.
    bounded: bool,
    /// A choice was asked for since the last step.
    asked: bool,
    /// The tasks that have begun and not ended, outermost first.
    open: Vec<ThreadId>,
    parents: HashMap<ThreadId, ThreadId>,
    /// The regions that each thread is in.
    regions: HashMap<ThreadId, Vec<RegionKind>>,
    /// By thread and place, how often in a row a star was left out.
    left_out: HashMap<(ThreadId, u64), u32>,
    /// The threads in the order in which their tasks began.
    order: Vec<ThreadId>,
    /// The first thread is in the middle of what it does itself.
    amid: bool,
    last: Option<ThreadId>,
}

impl Sequential {
    /// Every sequential execution of these tasks.
    pub fn new(tasks: Tasks) -> Sequential {
        Sequential { tasks, ..Sequential::default() }
    }

    /// The same, in which a thread gives way only after very many steps that change nothing: tasks may be long.
    /// [`Sequential::again`] repeats such an execution; its schedule need not.
    #[must_use]
    pub fn patient(self) -> Sequential {
        Sequential { patient: true, ..self }
    }

    /// The execution that ran last, once more and no other.
    #[must_use]
    pub fn again(&self) -> Sequential {
        Sequential {
            tasks: self.tasks,
            patient: self.patient,
            deep: self.deep,
            path: self.path.iter().map(|t| Taken { once: true, ..*t }).collect(),
            ..Sequential::default()
        }
    }

    /// Whether any execution so far kept a star only because it had been left out as often as it may be.
    pub fn bounded(&self) -> bool {
        self.bounded
    }

    /// Whether it is the search that [`Sequential::deeper`] gives.
    pub fn is_deep(&self) -> bool {
        self.deep
    }

    /// The search from its beginning, with stars left out more often, if it was bounded and is not that one.
    #[must_use]
    pub fn deeper(&self) -> Option<Sequential> {
        (self.bounded && !self.deep).then(|| Sequential {
            tasks: self.tasks,
            patient: self.patient,
            deep: true,
            ..Sequential::default()
        })
    }

    /// Whether the execution was not sequential after all: a task had to wait for another.
    pub fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Whether it was not sequential because a task that could have gone on had to give way.
    pub fn forced(&self) -> bool {
        self.forced
    }

    /// The threads of the tasks, in the order in which they ran.
    pub fn order(&self) -> &[ThreadId] {
        &self.order
    }

    fn decide(&mut self, options: u32) -> u32 {
        if options < 2 {
            return 0;
        }
        match self.path.get(self.at) {
            Some(made) if made.options == options => {}
            Some(_) => {
                self.diverged = true;
                self.path.truncate(self.at);
                self.path.push(Taken::first(options));
            }
            None => self.path.push(Taken::first(options)),
        }
        self.at += 1;
        self.path[self.at - 1].taken
    }

    fn descends(&self, mut thread: ThreadId, from: ThreadId) -> bool {
        while let Some(&parent) = self.parents.get(&thread) {
            if parent == from {
                return true;
            }
            thread = parent;
        }
        false
    }

    /// Threads that may go on for a task that waits for threads of its own.
    fn own(&self, task: ThreadId, choice: &Choice<'_>) -> Vec<ThreadId> {
        choice.enabled.iter().copied().filter(|&t| self.descends(t, task)).collect()
    }

    /// Whether a task that is not offered could go on: nothing that it is about to do can block it.
    fn gives_way(&self, task: ThreadId, choice: &Choice<'_>) -> bool {
        match choice.pending.get(task.index()).map(|p| p.step) {
            Some(Step::Do(op)) => matches!(op, Op::Read(_) | Op::Write(_) | Op::Atomic(..)),
            Some(Step::Yield | Step::Busy) => true,
            Some(Step::TryAcquire(..) | Step::Enroll(..) | Step::Ended) | None => false,
        }
    }

    fn opens(&mut self, thread: ThreadId) {
        if !self.open.contains(&thread) {
            self.open.push(thread);
            self.order.push(thread);
        }
    }

    fn closes(&mut self, thread: ThreadId) {
        self.open.retain(|&t| t != thread);
    }

    fn close_ended(&mut self, pending: &[Pending]) {
        let is_ended = |t: ThreadId| pending.get(t.index()).is_some_and(|p| p.step == Step::Ended);
        self.open.retain(|&t| !is_ended(t));
    }
}

/// Whether the thread can take the step at once, because it cannot matter to tasks.
fn is_silent(pending: &Pending) -> bool {
    matches!(pending.step, Step::Do(Op::Fork(_) | Op::Join(_) | Op::Begin | Op::End) | Step::Busy)
}

impl Strategy for Sequential {
    fn begin(&mut self, _: Rng) -> bool {
        if self.begun {
            while self.path.last().is_some_and(|t| t.is_last()) {
                self.path.pop();
            }
            if let Some(last) = self.path.last_mut() {
                last.taken += 1;
            }
        }
        self.running = !self.begun || !self.path.is_empty();
        (self.begun, self.at, self.interrupted, self.last) = (true, 0, false, None);
        (self.amid, self.forced, self.asked) = (false, false, false);
        self.open.clear();
        self.order.clear();
        self.parents.clear();
        self.regions.clear();
        self.left_out.clear();
        self.running
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        self.asked = true;
        self.close_ended(choice.pending);
        if let Some(&task) = self.open.last() {
            if choice.is_enabled(task) {
                return task;
            }
            let own = self.own(task, choice);
            if own.is_empty() {
                // A patient strategy is asked about fewer threads only when one has tried its patience.
                self.forced |= !self.interrupted && self.gives_way(task, choice);
                self.interrupted = true;
                return choice.candidate(0);
            }
            let taken = self.decide(own.len() as u32);
            return own[(taken as usize).min(own.len() - 1)];
        }
        if self.amid && choice.is_enabled(FIRST) && !choice.yielding {
            return FIRST;
        }
        let current = choice.running.filter(|&t| choice.is_enabled(t) && !choice.yielding);
        let is_task = |t: ThreadId| self.tasks == Tasks::Threads && t != FIRST;
        if let Some(thread) = current.filter(|&t| is_silent(choice.next(t)) && !is_task(t)) {
            return thread;
        }
        let silent = choice.enabled.iter().find(|&&t| is_silent(choice.next(t)) && !is_task(t));
        if let Some(&thread) = silent {
            return thread;
        }
        let mut options: Vec<ThreadId> =
            (0..choice.candidates()).map(|i| choice.candidate(i)).collect();
        if let Some(at) = current.and_then(|t| options.iter().position(|&o| o == t)) {
            options[..=at].rotate_right(1);
        }
        let taken = self.decide(options.len() as u32);
        options[(taken as usize).min(options.len() - 1)]
    }

    fn number(&mut self, below: u32) -> u32 {
        self.decide(below)
    }

    fn number_at(&mut self, below: u32, place: u64) -> u32 {
        if place == 0 || below != 2 {
            return self.number(below);
        }
        let key = (self.last.unwrap_or(FIRST), place);
        let before = self.left_out.get(&key).copied().unwrap_or(0);
        let is_last = before == if self.deep { DEEPER } else { IN_A_ROW };
        self.bounded |= is_last;
        // What a deeper search adds are executions that leave more out: those come first.
        let number = match is_last {
            true => 0,
            false if self.deep => 1 - self.decide(2),
            false => self.decide(2),
        };
        self.left_out.insert(key, if number == 0 { 0 } else { before + 1 });
        number
    }

    fn is_patient(&self) -> bool {
        self.patient
    }

    fn follows_steps(&self) -> bool {
        true
    }

    fn step(&mut self, thread: ThreadId, pending: &[Pending]) {
        self.last = Some(thread);
        self.close_ended(pending);
        if let Some(&task) = self.open.last()
            && task != thread
            && !self.descends(thread, task)
        {
            self.forced |= !self.interrupted && !self.asked;
            self.interrupted = true;
        }
        if self.amid && thread != FIRST && !self.asked && self.open.is_empty() {
            self.forced |= pending.first().is_some_and(|first| !is_silent(first));
        }
        self.asked = false;
        match self.tasks {
            Tasks::Threads if thread == FIRST => self.amid = true,
            Tasks::Threads => self.opens(thread),
            Tasks::Marked => {}
        }
    }

    fn observe(&mut self, event: &Event) {
        let thread = event.thread;
        match event.op {
            Op::Fork(child) => {
                self.parents.insert(child, thread);
                self.amid &= thread != FIRST;
            }
            Op::Join(_) | Op::Arrive(..) if thread == FIRST => self.amid = false,
            Op::RegionEnter(_, kind) => {
                self.regions.entry(thread).or_default().push(kind);
                if kind == RegionKind::Task && self.tasks == Tasks::Marked {
                    self.opens(thread);
                }
            }
            Op::RegionExit(_) => {
                let open = self.regions.entry(thread).or_default();
                let left = open.pop();
                let inside = open.contains(&RegionKind::Task);
                if left == Some(RegionKind::Task) && !inside && self.tasks == Tasks::Marked {
                    self.closes(thread);
                }
            }
            Op::End => self.closes(thread),
            Op::Arrive(..) if self.tasks == Tasks::Threads => self.closes(thread),
            accesses!()
            | Op::Fence(_)
            | locks!()
            | Op::Join(_)
            | Op::Begin
            | rendezvous!()
            | conditions!()
            | Op::Focus(_)
            | Op::Flow(_)
            | allocation!() => {}
        }
    }

    fn end(&mut self, _: &[Pending]) {
        self.running = false;
    }

    fn coverage(&self) -> Coverage {
        let exhausted = self.begun && !self.running && self.path.iter().all(|t| t.is_last());
        Coverage::of_search(exhausted && !self.diverged)
    }
}

/// The strategy of `sequential`.
pub const ENTRY: Entry = Entry {
    name: "sequential",
    about: "one thread after the other, in every order",
    argument: None,
    systematic: true,
    new: |_| Box::new(Sequential::new(Tasks::Threads)),
};
