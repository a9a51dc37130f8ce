//! Depth-first search: every schedule once, or every one within a bound.
//!
//! Sources: stateless search as in VeriSoft (Godefroid, POPL 1997); the bound on preemptions is that of
//! CHESS (Musuvathi and Qadeer, PLDI 2007), which also has the rule that a yielding thread lets others
//! run: without it a spin loop alone has infinitely many schedules.
//!
//! Guarantee: without bounds, on a program whose executions all end, each distinct sequence of choices
//! is visited exactly once, save those in which a yielding thread goes on at once; [`Dfs::complete`]
//! then tells that all were. With `preemptions` it visits exactly those with at most so many. Choices
//! after `depth` are not varied, and the search is then not complete.
//!
//! Cost: O(n) per choice that is new, O(1) per choice that is repeated; memory for one path.

use selvedge_model::ThreadId;

use crate::{Choice, Strategy};

/// What limits the search.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most executions.
    pub executions: u64,
    /// The most preemptions in a schedule.
    pub preemptions: usize,
    /// Choices beyond so many are not varied.
    pub depth: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { executions: u64::MAX, preemptions: usize::MAX, depth: usize::MAX }
    }
}

/// Visits schedules in depth-first order.
#[derive(Clone, Debug)]
pub struct Dfs {
    bounds: Bounds,
    executions: u64,
    /// The choices of the current path that have alternatives or had.
    path: Vec<Branch>,
    cut: bool,
    exhausted: bool,
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
            executions: 0,
            path: Vec::new(),
            cut: false,
            exhausted: false,
            diverged: None,
            preemptions: 0,
        }
    }

    /// Whether every schedule within the bound on preemptions has been visited.
    pub fn complete(&self) -> bool {
        self.exhausted && !self.cut
    }

    /// How many executions there were.
    pub fn executions(&self) -> u64 {
        self.executions
    }

    /// At which choice the program did not do what it had done before the same choices, if it ever
    /// did not: it has nondeterminism that the executor does not control, and no search is complete.
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
    fn begin(&mut self) -> bool {
        if self.executions > 0 {
            while self.path.last().is_some_and(|b| b.untried.is_empty()) {
                self.path.pop();
            }
            match self.path.last_mut() {
                Some(branch) => {
                    branch.taken = branch.untried.pop().expect("kept because it is not empty");
                }
                None => self.exhausted = true,
            }
        }
        if self.exhausted || self.executions >= self.bounds.executions {
            return false;
        }
        self.executions += 1;
        self.preemptions = 0;
        true
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
}
