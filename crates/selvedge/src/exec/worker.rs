//! Executions one after the other on one OS thread: the [`Executor`] of tests.

use std::collections::HashMap;
use std::convert::Infallible;
use std::panic::Location;
use std::sync::Arc;

use selvedge_analyses::Entry;
use selvedge_engine::{
    Ask, Execution, Executor, Factory, Heartbeat, Limit, Nondeterminism, Noted, Outcome,
};
use selvedge_explore::{Replay, Rng, Strategy};
use selvedge_model::{
    Cause, Failure, Finding, Op, Site, SiteId, Status, Subject, Symbols, ThreadId,
};
use selvedge_specs::Judge;

use crate::values::Callbacks;

use super::fiber::{self, Pool, with};
use super::made::Declared;
use super::ops::memory_at;
use super::panics::Panicked;
use super::{Exec, Limits, Names, SharedNames};

/// A test body.
pub(crate) type Body = Arc<dyn Fn() + Send + Sync>;

/// What the executions of one check have in common.
pub(crate) struct Bodies {
    pub(crate) body: Body,
    pub(crate) limits: Limits,
    /// The analyses to run.
    pub(crate) selected: Arc<[&'static Entry]>,
    pub(crate) here: &'static Location<'static>,
}

impl Factory for Bodies {
    type Executor = Worker;

    fn make(&self, heartbeat: Heartbeat) -> Result<Worker, Infallible> {
        super::panics::install();
        Ok(Worker {
            exec: Exec::new(self.limits.clone(), heartbeat),
            pool: Pool::default(),
            body: Arc::clone(&self.body),
            selected: Arc::clone(&self.selected),
            here: self.here,
            declared: Declared::default(),
        })
    }

    /// An execution ends by itself: it runs in this process.
    fn interrupt(&self, _on: bool) {}
}

/// Runs executions of one test body.
pub(crate) struct Worker {
    exec: Exec,
    pool: Pool,
    body: Body,
    selected: Arc<[&'static Entry]>,
    here: &'static Location<'static>,
    declared: Declared,
}

impl Executor for Worker {
    type Error = Infallible;
    type Names = Names;
    type NamesNow = SharedNames;
    type Points = ();

    fn run(&mut self, strategy: &mut dyn Strategy, ask: &Ask<()>) -> Result<Execution, Infallible> {
        self.exec.selected = Arc::clone(&self.selected);
        self.exec.keep = ask.noted >= Noted::Events;
        self.exec.noting = self.exec.keep || !self.selected.is_empty();
        self.exec.release_points = ask.releases;
        self.exec.stars = ask.stars;
        let body = Arc::clone(&self.body);
        let main = move || body();
        // SAFETY: `main` owns what it uses.
        let job = unsafe { fiber::job(main, |result| main_done(result.is_err())) };
        self.exec.begin(strategy.follows_steps(), ask.seed, job, self.here);
        fiber::run(&mut self.exec, &mut self.pool, strategy);
        self.exec.end(strategy);
        Ok(self.collect(ask.releases))
    }

    fn named(&mut self, _execution: &Execution) -> Arc<Symbols> {
        let mut symbols = self.exec.symbols.clone();
        for (number, thread) in (0..).zip(&self.exec.threads) {
            symbols.threads.push(self.exec.thread_name(ThreadId(number)).into());
            symbols.functions.push(thread.function.unwrap_or_default().into());
        }
        let range = |number: usize| memory_at(number as u32 + 1).range();
        self.exec.made.name(&mut symbols, &mut self.declared, range);
        Arc::new(symbols)
    }

    fn names(&self) -> Names {
        self.exec.names.0.borrow().clone()
    }

    fn names_now(&self) -> SharedNames {
        self.exec.names.clone()
    }

    fn site(&mut self, site: &Site) -> SiteId {
        SiteId(self.exec.symbols.sites.intern(site.clone()))
    }

    fn place(&self, site: SiteId) -> Site {
        self.exec.symbols.site(site)
    }

    fn points(&self) -> HashMap<Site, ()> {
        self.exec.symbols.sites.entries().iter().map(|site| (site.clone(), ())).collect()
    }

    /// The same schedule must lead to the same events. What only the first execution does, such as
    /// filling a cache in a static, is let pass.
    fn repeat(
        &mut self,
        execution: &Execution,
        ask: &Ask<()>,
    ) -> Result<Option<Nondeterminism>, Infallible> {
        let second = self.replay(execution, ask)?;
        if execution.difference(&second).is_none() || !self.is_usable() {
            return Ok(None);
        }
        let third = self.replay(&second, ask)?;
        let shared = [execution, &second, &third].into_iter().any(met_another);
        Ok(second.difference(&third).map(|difference| Nondeterminism {
            difference,
            cause: if shared { Cause::SharedStatic } else { Cause::Test },
            symbols: self.named(&third),
        }))
    }

    fn judge(&self) -> Box<dyn Judge> {
        Box::new(Callbacks)
    }

    fn is_usable(&self) -> bool {
        !self.exec.tainted
    }
}

/// Whether the execution ended because another one, on another core, used the same object.
fn met_another(execution: &Execution) -> bool {
    let Outcome::Failed(finding) = &execution.outcome else { return false };
    matches!(finding.subject, Subject::Program(Failure::Shared(_)))
}

impl Worker {
    fn replay(&mut self, execution: &Execution, ask: &Ask<()>) -> Result<Execution, Infallible> {
        let ask = ask.clone().following(&execution.schedule);
        let mut replay = Replay::new(&execution.schedule);
        replay.begin(Rng::default());
        self.run(&mut replay, &ask)
    }

    fn collect(&mut self, releases: bool) -> Execution {
        let unhandled = self.unhandled_panic();
        let exec = &mut self.exec;
        if exec.noting {
            exec.finish_analyses();
        }
        let mut findings: Vec<Finding> = exec.pipeline.take_findings().into_iter().collect();
        let blocks = exec.take_speech(&mut findings);
        let mut failed = exec.failed.take().or(unhandled);
        if failed.is_none()
            && let Some(i) = findings.iter().position(|f| f.status >= Status::Observed)
        {
            failed = Some(findings.swap_remove(i));
        }
        let (choices, steps) = exec.length();
        let outcome = match failed {
            Some(finding) => Outcome::Failed(Box::new(finding)),
            None if exec.cut_off => Outcome::Undecided(Limit::Steps(exec.limits.steps as u64)),
            None => Outcome::Exited(0),
        };
        Execution {
            outcome,
            schedule: exec.driver.schedule.clone(),
            findings,
            analyses: exec.contents.relevant(&exec.selected).map(|e| e.name).collect(),
            events: if exec.keep { std::mem::take(&mut exec.log) } else { Vec::new() },
            stops: std::mem::take(&mut exec.driver.stops),
            times: std::mem::take(&mut exec.driver.times),
            last: exec.current,
            output: Vec::new(),
            errors: Vec::new(),
            releases_matter: exec.release_points && !releases,
            cut_off: exec.cut_off,
            uncontrolled: Vec::new(),
            choices,
            steps,
            blocks,
        }
    }

    /// A thread panicked and no other thread joined it.
    fn unhandled_panic(&mut self) -> Option<Finding> {
        let exec = &mut self.exec;
        let thread = exec.threads.iter().position(|t| t.panicked.is_some() && !t.handled)?;
        let panicked = exec.threads[thread].panicked.clone()?;
        Some(exec.panicked(ThreadId(thread as u32), &panicked))
    }
}

/// The test body is over.
fn main_done(panicked: bool) {
    if panicked {
        with(|e| {
            let panicked = e.threads[0].panicked.clone().unwrap_or_else(Panicked::unknown);
            let why = e.panicked(ThreadId(0), &panicked);
            let _ = e.stop(why);
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
