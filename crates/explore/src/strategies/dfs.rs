//! Depth-first search: every schedule once, or every one within a bound.
//!
//! Sources: stateless search as in VeriSoft (Godefroid, POPL 1997); the bound on preemptions is that of
//! CHESS (Musuvathi and Qadeer, PLDI 2007), which also has the rule that a yielding thread lets others
//! run: without it a spin loop alone has infinitely many schedules.
//!
//! Guarantee: without bounds, on a program whose executions all end, each distinct sequence of choices
//! is visited exactly once, except those in which a yielding thread goes on at once; then its
//! [coverage](Strategy::coverage) is complete. With `preemptions` it visits exactly those with at most so
//! many. Choices after `depth` are not varied, nor are numbers that the program asks for, and the search is then
//! not complete.
//!
//! Cost: O(n) per choice that is new, O(1) per choice that is repeated; memory for one path.

use selvedge_model::ThreadId;

use crate::entry::{Argument, Entry};
use crate::{Choice, Coverage, Pending, Rng, Strategy};

/// What limits the search.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most preemptions in a schedule.
    pub preemptions: usize,
    /// Choices beyond so many are not varied.
    pub depth: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { preemptions: usize::MAX, depth: usize::MAX }
    }
}

/// Visits schedules in depth-first order.
#[derive(Clone, Debug)]
pub struct Dfs {
    bounds: Bounds,
    begun: bool,
    /// An execution has begun and not ended.
    running: bool,
    /// The choices of the current path that have alternatives or had.
    path: Vec<Branch>,
    cut: bool,
    diverged: Option<usize>,
    preemptions: usize,
}

#[derive(Clone, Debug)]
struct Branch {
    /// Not yet tried, the next one last.
    untried: Vec<ThreadId>,
    taken: ThreadId,
    /// The thread that goes on without preemption.
    willing: Option<ThreadId>,
}

impl Dfs {
    /// A search within bounds.
    pub fn new(bounds: Bounds) -> Dfs {
        Dfs {
            bounds,
            begun: false,
            running: false,
            path: Vec::new(),
            cut: false,
            diverged: None,
            preemptions: 0,
        }
    }

    /// The choice at which the program did something else than before after the same choices, if it ever
    /// did: then it has nondeterminism that the executor does not control, and no search is complete.
    pub fn diverged(&self) -> Option<usize> {
        self.diverged
    }

    fn branch(&self, choice: &Choice<'_>) -> Branch {
        let willing = choice.willing();
        let mut untried: Vec<ThreadId> = match willing {
            Some(thread) if self.preemptions >= self.bounds.preemptions => vec![thread],
            Some(thread) => {
                let others = choice.enabled.iter().rev().copied().filter(|&t| t != thread);
                others.chain([thread]).collect()
            }
            None => (0..choice.candidates()).rev().map(|i| choice.candidate(i)).collect(),
        };
        let taken = untried.pop().expect("a choice has threads");
        Branch { untried, taken, willing }
    }
}

impl Strategy for Dfs {
    fn begin(&mut self, _: Rng) -> bool {
        if self.begun {
            while self.path.last().is_some_and(|b| b.untried.is_empty()) {
                self.path.pop();
            }
            if let Some(branch) = self.path.last_mut() {
                branch.taken = branch.untried.pop().expect("kept because it is not empty");
            }
        }
        self.running = !self.begun || !self.path.is_empty();
        self.begun = true;
        self.preemptions = 0;
        self.running
    }

    fn choose(&mut self, choice: &Choice<'_>) -> ThreadId {
        if choice.step >= self.bounds.depth {
            self.cut = true;
            return choice.willing().unwrap_or_else(|| choice.candidate(0));
        }
        if choice.step >= self.path.len() {
            self.path.push(self.branch(choice));
        }
        let branch = &self.path[choice.step];
        if branch.willing.is_some_and(|t| t != branch.taken) {
            self.preemptions += 1;
        }
        if !choice.is_enabled(branch.taken) {
            self.diverged.get_or_insert(choice.step);
            return choice.candidate(0);
        }
        branch.taken
    }

    fn number(&mut self, below: u32) -> u32 {
        self.cut |= below > 1;
        0
    }

    fn end(&mut self, _: &[Pending]) {
        self.running = false;
    }

    fn coverage(&self) -> Coverage {
        let exhausted =
            self.begun && !self.running && self.path.iter().all(|b| b.untried.is_empty());
        Coverage::of_search(exhausted && !self.cut && self.diverged.is_none())
    }
}

/// The strategy of `dfs`.
pub const ENTRY: Entry = Entry {
    name: "dfs",
    about: "every schedule",
    argument: Some(Argument {
        name: "PREEMPTIONS",
        about: "the most preemptions that a schedule may have",
        default: None,
        further: &[],
    }),
    systematic: true,
    new: |[preemptions, ..]| {
        let preemptions = preemptions.unwrap_or(usize::MAX);
        Box::new(Dfs::new(Bounds { preemptions, ..Bounds::default() }))
    },
};
