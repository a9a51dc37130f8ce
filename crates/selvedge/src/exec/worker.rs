//! Executions one after the other on one OS thread.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use selvedge_explore::{Replay, Shared, Stop, Strategy};
use selvedge_model::{Event, Finding, Op, Schedule, Status, Symbols, ThreadId};

use super::fiber::{self, Pool, with};
use super::{Exec, Limits, Names, Taken};
use crate::analyses::Contents;
use crate::failure::{Cause, Panicked};

/// A test body.
pub(crate) type Body = Arc<dyn Fn() + Send + Sync>;

/// What to note down of an execution.
#[derive(Clone, Copy, Default)]
pub(crate) struct Observe {
    pub(crate) analyses: bool,
    pub(crate) events: bool,
    pub(crate) steps: bool,
}

/// What became of an execution.
pub(crate) struct Execution {
    pub(crate) cause: Option<Cause>,
    pub(crate) schedule: Schedule,
    pub(crate) findings: Vec<Finding>,
    pub(crate) events: Vec<Event>,
    /// Where threads were stopped, if the events are there.
    pub(crate) stops: Vec<Stop>,
    pub(crate) taken: Vec<Taken>,
    pub(crate) choices: usize,
    pub(crate) steps: usize,
    pub(crate) contents: Contents,
    /// Names of its threads.
    pub(crate) threads: Vec<String>,
}

/// Runs executions of one test body.
pub(crate) struct Worker {
    exec: Exec,
    pool: Pool,
    body: Body,
    selected: Arc<[String]>,
    here: &'static Location<'static>,
}

impl Worker {
    pub(crate) fn new(
        body: Body,
        limits: Limits,
        selected: Arc<[String]>,
        heartbeat: Arc<AtomicU64>,
        here: &'static Location<'static>,
    ) -> Worker {
        super::panics::install();
        Worker { exec: Exec::new(limits, heartbeat), pool: Pool::default(), body, selected, here }
    }

    pub(crate) fn symbols(&self) -> &Symbols {
        &self.exec.symbols
    }

    pub(crate) fn names(&self) -> super::SharedNames {
        self.exec.names.clone()
    }

    /// The names of the execution that ran last.
    pub(crate) fn names_now(&self) -> Names {
        self.exec.names.0.borrow().clone()
    }

    /// Whether this OS thread must not run anything any more.
    pub(crate) fn tainted(&self) -> bool {
        self.exec.tainted
    }

    pub(crate) fn release_points(&mut self) -> &mut bool {
        &mut self.exec.release_points
    }

    /// Runs one execution under `strategy`, which has begun. Gives the strategy back.
    pub(crate) fn run(
        &mut self,
        strategy: Box<dyn Strategy>,
        seed: u64,
        observe: Observe,
    ) -> (Box<dyn Strategy>, Execution) {
        let none: Arc<[String]> = Arc::default();
        self.exec.selected = if observe.analyses { Arc::clone(&self.selected) } else { none };
        self.exec.noting = observe.analyses || observe.events;
        self.exec.keep = observe.events;
        self.exec.taken = observe.steps.then(Vec::new);
        let body = Arc::clone(&self.body);
        let main = move || body();
        // SAFETY: `main` owns what it uses.
        let job = unsafe { fiber::job(main, |result| main_done(result.is_err())) };
        self.exec.begin(strategy, seed, job, self.here);
        fiber::run(&mut self.exec, &mut self.pool);
        let strategy = self.exec.end();
        (strategy, self.collect())
    }

    fn collect(&mut self) -> Execution {
        let exec = &mut self.exec;
        if exec.noting {
            exec.finish_analyses();
        }
        let mut findings: Vec<Finding> = std::mem::take(&mut exec.findings).into_iter().collect();
        let mut cause = exec.cause.take().or_else(|| unhandled_panic(exec));
        if cause.is_none()
            && let Some(i) = findings.iter().position(|f| f.status >= Status::Observed)
        {
            cause = Some(Cause::Finding(Box::new(findings.swap_remove(i))));
        }
        let (choices, steps) = exec.length();
        let threads =
            (0..exec.threads.len() as u32).map(|t| exec.thread_name(ThreadId(t))).collect();
        Execution {
            cause,
            schedule: exec.schedule.clone(),
            findings,
            events: if exec.keep { std::mem::take(&mut exec.log) } else { Vec::new() },
            stops: std::mem::take(&mut exec.stops),
            taken: exec.taken.take().unwrap_or_default(),
            choices,
            steps,
            contents: exec.contents,
            threads,
        }
    }

    /// Replays a schedule.
    pub(crate) fn replay(&mut self, schedule: &Schedule, observe: Observe) -> (Replay, Execution) {
        let before = std::mem::replace(&mut self.exec.release_points, schedule.releases);
        let shared = Shared::new(Replay::new(schedule));
        let mut strategy: Box<dyn Strategy> = Box::new(shared.clone());
        strategy.begin();
        let (_, execution) = self.run(strategy, schedule.seed, observe);
        self.exec.release_points |= before;
        let replay = shared.0.borrow().clone();
        (replay, execution)
    }
}

/// The test body is over.
fn main_done(panicked: bool) {
    if panicked {
        with(|e| {
            let panicked = e.threads[0].panicked.clone().unwrap_or_else(Panicked::unknown);
            let _ = e.stop(Cause::Panic { thread: e.thread_name(ThreadId(0)), panicked });
        });
        return;
    }
    thread_done(false);
}

/// The current thread has run its closure to the end or panicked.
pub(crate) fn thread_done(panicked: bool) {
    crate::thread::local::destroy_all();
    let here = Location::caller();
    with(|e| {
        let me = e.current.index();
        if !panicked {
            e.threads[me].panicked = None;
        }
        let site = e.place(here).site;
        e.emit(site, Op::End);
        e.finish_thread();
    });
}

/// A thread panicked and nobody joined it.
fn unhandled_panic(exec: &Exec) -> Option<Cause> {
    let thread = exec.threads.iter().position(|t| t.panicked.is_some() && !t.handled)?;
    let panicked = exec.threads[thread].panicked.clone()?;
    Some(Cause::Panic { thread: exec.thread_name(ThreadId(thread as u32)), panicked })
}
