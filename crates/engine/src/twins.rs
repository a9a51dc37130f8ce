//! Has an execution a sequential twin? Runs the sequential executions.
//!
//! Source: Burnim, *Specifying and Checking Correctness of Parallel Programs*, definition 17: an execution conforms if
//! some sequential execution, one task after the other and with any stars left out, shows the same. Which sequential
//! executions there are does not depend on the execution that is judged, so they are run once, as far as needed, and
//! what they showed is remembered.
//!
//! Guarantee: [`Twin::None`] is said only if every sequential execution was run to its end and none showed the same.
//! An order in which a task waits for another is no sequential execution. There is a bound on how often a star is left
//! out in a row at one place, because a loop around it may have no end. If that bound left something out and none showed
//! the same, a deeper search ([`Sequential::deeper`]) uses what is left of the budget.
//!
//! Cost: at most a budget of executions for all that are judged together.

use selvedge_explore::sequential::Tasks;
use selvedge_explore::{Coverage, Rng, Sequential, Strategy};
use selvedge_model::{Schedule, ThreadId};

use crate::executor::{Ask, Execution, Executor, Outcome};

/// A sequential execution.
#[derive(Clone, Debug)]
pub struct Ran<R> {
    /// What it showed.
    pub shown: R,
    /// How it went.
    pub schedule: Schedule,
    /// The threads of its tasks, in their order.
    pub order: Vec<ThreadId>,
    /// How many stars were left out.
    pub left_out: usize,
    /// Runs it again, once. Its schedule alone would not do: a task may run on for longer than others may.
    pub again: Sequential,
}

/// What sequential executions say of an execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Twin {
    /// This one shows the same, by number.
    Found(usize),
    /// All were run, and none does.
    None,
    /// The budget was used up before one did, or one was cut off.
    Unknown,
}

/// The sequential executions of a program.
#[derive(Debug)]
pub struct Twins<R> {
    strategy: Sequential,
    budget: u64,
    /// How many executions were run.
    pub executions: u64,
    /// Orders in which a task waits for another.
    pub unordered: u64,
    /// Executions that were cut off.
    pub cut_off: u64,
    /// Those that were sequential, each result once.
    pub ran: Vec<Ran<R>>,
    exhausted: bool,
}

impl<R: PartialEq> Twins<R> {
    /// Those of these tasks, at most `budget` executions.
    pub fn new(tasks: Tasks, budget: u64) -> Twins<R> {
        Twins {
            strategy: Sequential::new(tasks).patient(),
            budget,
            executions: 0,
            unordered: 0,
            cut_off: 0,
            ran: Vec::new(),
            exhausted: false,
        }
    }

    /// Whether every sequential execution within the bound was run.
    pub fn is_complete(&self) -> bool {
        (self.exhausted || self.strategy.is_deep()) && self.cut_off == 0
    }

    /// Looks for one that shows the same; stars are left out if that is asked for. `shown` says what an execution
    /// showed; nothing if it was cut off. No more are run once it is `stopped`.
    pub fn find<X: Executor>(
        &mut self,
        executor: &mut X,
        wanted: &R,
        ask: &Ask<X::Points>,
        mut shown: impl FnMut(&mut X, &Execution) -> Option<R>,
        stopped: impl Fn() -> bool,
    ) -> Result<Twin, X::Error> {
        loop {
            if let Some(found) = self.ran.iter().position(|r| r.shown == *wanted) {
                return Ok(Twin::Found(found));
            }
            if self.exhausted
                && let Some(deeper) = self.strategy.deeper()
            {
                self.strategy = deeper;
                self.exhausted = false;
            }
            if self.exhausted {
                return Ok(if self.cut_off == 0 { Twin::None } else { Twin::Unknown });
            }
            if stopped() {
                return Ok(Twin::Unknown);
            }
            if self.executions >= self.budget {
                // All within the bound were run before the search became deeper.
                let all = self.strategy.is_deep() && self.cut_off == 0;
                return Ok(if all { Twin::None } else { Twin::Unknown });
            }
            if !self.strategy.begin(Rng::new(ask.seed)) {
                self.exhausted = true;
                continue;
            }
            let execution = executor.run(&mut self.strategy, ask)?;
            self.executions += 1;
            self.exhausted = self.strategy.coverage() == Coverage::Complete;
            self.take(executor, execution, &mut shown);
        }
    }

    fn take<X: Executor>(
        &mut self,
        executor: &mut X,
        execution: Execution,
        shown: &mut impl FnMut(&mut X, &Execution) -> Option<R>,
    ) {
        // Whether a task that had to give way would have come to its end is not known.
        if self.strategy.forced() {
            self.cut_off += 1;
            return;
        }
        if self.strategy.interrupted() {
            self.unordered += 1;
            return;
        }
        let result = match execution.outcome {
            Outcome::Undecided(_) => None,
            Outcome::Exited(_) | Outcome::Failed(_) => shown(executor, &execution),
        };
        let Some(result) = result else {
            self.cut_off += 1;
            return;
        };
        if self.ran.iter().all(|r| r.shown != result) {
            let left_out = execution.schedule.numbers.iter().filter(|&&n| n != 0).count();
            self.ran.push(Ran {
                shown: result,
                schedule: execution.schedule,
                order: self.strategy.order().to_vec(),
                left_out,
                again: self.strategy.again(),
            });
        }
    }
}
