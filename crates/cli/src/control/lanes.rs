//! Executions on all cores, in an order that does not depend on how fast they are.
//!
//! A strategy learns from one execution for the next, so executions cannot be dealt out at will. There
//! are [`LANES`] strategies, each with a seed of its own, whose executions are numbered in turn: lane `l`
//! has the numbers `l`, `l + LANES`, … . Cores share the lanes, and what they find is taken in the order of
//! the numbers. So the same seed gives the same answer on any number of cores, and one that is found
//! later than what was looked for is as if it had never been.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use selvedge_explore::rng::derive;
use selvedge_explore::{Budget, Coverage, Plan, Strategy};
use selvedge_model::Schedule;

use super::ending::{Ending, uncontrolled};
use super::halt::Halt;
use super::meeting::Meeting;
use super::stage::{Stage, Subject, Wishes};
use crate::exit::Failure;

/// How many strategies share the executions. More would leave each with less to learn from.
pub(crate) const LANES: u64 = 4;

/// What to explore, and how.
pub(crate) struct Job<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) plan: Plan,
    pub(crate) seed: u64,
    pub(crate) schedules: u64,
    /// How many executions may run at the same time.
    pub(crate) jobs: usize,
    pub(crate) wishes: &'a Wishes,
    /// Where threads are to meet, which then decides instead of the plan.
    pub(crate) meeting: Option<&'a Meeting>,
    /// Releasing a lock is a step from the first execution on.
    pub(crate) releases: bool,
}

impl Job<'_> {
    fn strategy(&self) -> Box<dyn Strategy> {
        match self.meeting {
            Some(meeting) => meeting.strategy(),
            None => self.plan.strategy(),
        }
    }
}

/// What became of one execution.
pub(crate) struct Done {
    pub(crate) ending: Ending,
    pub(crate) schedule: Schedule,
    pub(crate) uncontrolled: Vec<String>,
}

impl Done {
    /// Of the execution that a stage has just run.
    pub(crate) fn new(stage: &mut Stage, execution: selvedge_runtime::Execution) -> Done {
        let symbols = stage.controlled.named(&execution.events);
        Done {
            ending: Ending::new(&execution, &symbols),
            uncontrolled: uncontrolled(&execution),
            schedule: execution.schedule,
        }
    }
}

enum Message {
    Done(u64, Box<Done>),
    /// The strategy wants no more; whether it has seen everything.
    Exhausted(bool),
    Failed(Failure),
}

/// Explores, and hands each execution to `each` with its number, from 0 and without gaps, until that
/// breaks. Returns whether every schedule has been seen.
pub(crate) fn explore(
    job: &Job<'_>,
    halt: &Halt,
    mut each: impl FnMut(u64, Done) -> ControlFlow<()>,
) -> Result<bool, Failure> {
    let lanes = if job.plan.is_systematic() { 1 } else { LANES.min(job.schedules.max(1)) };
    let workers = lanes.min(job.jobs as u64);
    let interrupt = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (sender, interrupt) = (sender.clone(), Arc::clone(&interrupt));
            let mine: Vec<u64> = (worker..lanes).step_by(workers as usize).collect();
            scope.spawn(move || {
                if let Err(failure) = work(job, lanes, &mine, &interrupt, &sender) {
                    // Nobody listens any more if it is over.
                    let _ = sender.send(Message::Failed(failure));
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        let outcome = loop {
            if halt.reason().is_some() || next == job.schedules {
                break Ok(false);
            }
            match receiver.recv_timeout(Duration::from_millis(20)) {
                Ok(Message::Done(number, done)) => {
                    waiting.insert(number, done);
                }
                Ok(Message::Exhausted(complete)) => break Ok(complete),
                Ok(Message::Failed(failure)) => break Err(failure),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(false),
            }
            let mut enough = false;
            while let Some(done) = waiting.remove(&next) {
                next += 1;
                enough = each(next - 1, *done).is_break();
                if enough {
                    break;
                }
            }
            if enough {
                break Ok(false);
            }
        };
        interrupt.store(true, Ordering::Relaxed);
        outcome
    })
}

/// One of the strategies.
struct Lane {
    number: u64,
    strategy: Box<dyn Strategy>,
    budget: Budget,
    releases: bool,
}

fn work(
    job: &Job<'_>,
    lanes: u64,
    mine: &[u64],
    interrupt: &Arc<AtomicBool>,
    sender: &Sender<Message>,
) -> Result<(), Failure> {
    let lane = |&number: &u64| {
        let seed = if lanes == 1 { job.seed } else { derive(job.seed, number) };
        let budget = Budget::new(seed, job.schedules);
        Lane { number, strategy: job.strategy(), budget, releases: job.releases }
    };
    let mut all: Vec<Lane> = mine.iter().map(lane).collect();
    let mut stage = Stage::new(job.subject, job.wishes.clone(), interrupt)?;
    for round in 0.. {
        for lane in &mut all {
            let number = round * lanes + lane.number;
            if number >= job.schedules {
                return Ok(());
            }
            let message = match lane.run(&mut stage, job) {
                Ok(Some(done)) => Message::Done(number, Box::new(done)),
                Ok(None) => Message::Exhausted(lane.strategy.coverage() == Coverage::Complete),
                Err(Failure::Interrupted) => return Ok(()),
                Err(failure) => return Err(failure),
            };
            let last = matches!(message, Message::Exhausted(_));
            if sender.send(message).is_err() || last {
                return Ok(());
            }
        }
    }
    Ok(())
}

impl Lane {
    fn run(&mut self, stage: &mut Stage, job: &Job<'_>) -> Result<Option<Done>, Failure> {
        stage.controlled.releases = self.releases;
        if !self.budget.begin(&mut *self.strategy) {
            return Ok(None);
        }
        let execution = stage.controlled.run(&mut *self.strategy)?;
        if execution.releases_matter && !self.releases {
            self.releases = true;
            if job.plan.is_systematic() {
                // There are more points now than in the schedules seen so far: from the start.
                self.strategy = job.strategy();
            }
        }
        Ok(Some(Done::new(stage, execution)))
    }
}
