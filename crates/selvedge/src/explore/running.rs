//! How a check runs: shards on OS threads, what becomes of predictions and failures.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use selvedge_analyses::Entry;
use selvedge_analyses::registry::Contents;
use selvedge_explore::rng::derive;
use selvedge_explore::{Budget, Coverage, Directed, Strategy, minimise};
use selvedge_model::{Finding, FindingId, Schedule, Status, Target};

use super::{Explore, Summary};
use crate::exec::worker::{Body, Execution, Observe, Worker};
use crate::exec::{Limits, Names};
use crate::failure::{Cause, Failure};
use crate::report;

/// A check that runs, as its shards see it.
pub(super) struct Setting {
    pub(super) options: Explore,
    pub(super) body: Body,
    pub(super) limits: Limits,
    pub(super) selected: Arc<[&'static Entry]>,
    pub(super) here: &'static Location<'static>,
    pub(super) test: Option<String>,
    /// The least execution, counted within its shard, that has failed.
    pub(super) best: AtomicU64,
    pub(super) begun: Instant,
}

/// What a shard found.
struct Found {
    cause: Cause,
    schedule: Schedule,
    execution: u64,
    /// The cause in words, from the shard's own names of sites.
    words: String,
}

type Sharded = Result<Summary, Box<Found>>;

/// What an OS thread does for a shard; it shows by the counter that it is alive.
type Work<T> = fn(&Setting, u64, Arc<AtomicU64>) -> Result<T, Box<Found>>;

impl Setting {
    fn worker(&self, heartbeat: Arc<AtomicU64>) -> Worker {
        let body = Arc::clone(&self.body);
        let selected = Arc::clone(&self.selected);
        Worker::new(body, self.limits.clone(), selected, heartbeat, self.here)
    }

    pub(super) fn explore(self: &Arc<Setting>) -> Result<Summary, Box<Failure>> {
        let jobs = if self.options.plan.is_systematic() { 1 } else { self.options.jobs };
        let jobs = (jobs as u64).min(self.options.schedules.max(1));
        let shards: Vec<u64> = (0..jobs).collect();
        let results = self.run_all(&shards, Setting::shard);
        let mut summary = Summary { complete: true, ..Summary::default() };
        let mut first: Option<(u64, Box<Found>)> = None;
        for (shard, result) in results {
            match result {
                Ok(part) => summary.add(part),
                Err(found) => {
                    let key = (found.execution, shard);
                    if first.as_ref().is_none_or(|(s, f)| key < (f.execution, *s)) {
                        first = Some((shard, found));
                    }
                }
            }
        }
        match first {
            None => Ok(summary),
            Some((_, found)) => Err(self.explain(found.execution, *found)),
        }
    }

    /// Runs `work` on an OS thread for each shard, and gives up those that stall.
    fn run_all<T: Send + 'static>(
        self: &Arc<Setting>,
        shards: &[u64],
        work: Work<T>,
    ) -> Vec<(u64, Result<T, Box<Found>>)> {
        let (sender, receiver) = channel();
        let mut running: Vec<(u64, Arc<AtomicU64>, u64, Instant)> = Vec::new();
        for &shard in shards {
            let heartbeat = Arc::new(AtomicU64::new(0));
            running.push((shard, Arc::clone(&heartbeat), 0, Instant::now()));
            let (setting, sender) = (Arc::clone(self), sender.clone());
            let spawned =
                std::thread::Builder::new().name(format!("selvedge-{shard}")).spawn(move || {
                    let result = work(&setting, shard, heartbeat);
                    // The receiver is gone if this shard was given up.
                    let _ = sender.send((shard, result));
                });
            spawned.expect("an OS thread for a shard");
        }
        let mut results = Vec::new();
        while !running.is_empty() {
            match receiver.recv_timeout(Duration::from_millis(100)) {
                Ok((shard, result)) => {
                    running.retain(|r| r.0 != shard);
                    results.push((shard, result));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("we hold a sender"),
            }
            running.retain_mut(|(shard, heartbeat, last, since)| {
                let now = heartbeat.load(Ordering::Relaxed);
                if now != *last {
                    (*last, *since) = (now, Instant::now());
                }
                let stalled = since.elapsed() > self.options.stall;
                if stalled {
                    self.best.fetch_min(0, Ordering::Relaxed);
                    results.push((*shard, Err(Box::new(self.stalled()))));
                }
                !stalled
            });
        }
        results
    }

    fn stalled(&self) -> Found {
        let cause = Cause::Stall { seconds: self.options.stall.as_secs() };
        let words = crate::failure::cause_in_words(&cause, &Default::default());
        Found { cause, schedule: Schedule::default(), execution: 0, words }
    }

    /// One shard of the check.
    fn shard(&self, shard: u64, heartbeat: Arc<AtomicU64>) -> Sharded {
        let jobs = if self.options.plan.is_systematic() { 1 } else { self.options.jobs as u64 };
        let jobs = jobs.min(self.options.schedules.max(1));
        let limit = self.options.schedules.saturating_add(jobs - 1 - shard) / jobs;
        let seed = derive(self.options.seed, shard);
        let mut shard = Shard {
            setting: self,
            worker: self.worker(heartbeat),
            seed,
            executions: 0,
            known: FxHashSet::default(),
            summary: Summary::default(),
            contents: Contents::default(),
            check_determinism: shard == 0,
        };
        shard.run(limit)
    }

    /// Replays, minimises and renders a failure, on a fresh OS thread.
    fn explain(self: &Arc<Setting>, execution: u64, found: Found) -> Box<Failure> {
        let fallback = |cause: Cause, schedule: Schedule, words: &str| {
            let text = report::render(&report::Report {
                test: self.test.as_deref(),
                execution,
                options: &self.options_in_words(),
                words,
                schedule: &schedule,
                interleaving: None,
                note: None,
            });
            Box::new(Failure { cause, execution, schedule, text })
        };
        if !found.cause.can_be_minimised() {
            return fallback(found.cause, found.schedule, &found.words);
        }
        let work = Explain { schedule: found.schedule.clone() };
        let setting = Arc::clone(self);
        let heartbeat = Arc::new(AtomicU64::new(0));
        let result = std::thread::Builder::new()
            .name("selvedge-explain".into())
            .spawn(move || work.run(&setting, execution, heartbeat))
            .expect("an OS thread to explain on")
            .join();
        match result {
            Ok(Some(failure)) => failure,
            // It did not fail again: whatever it was, the schedule alone does not decide it.
            Ok(None) | Err(_) => {
                let words = format!(
                    "{}\nThe same schedule did not fail again: the test has uncontrolled \
                     nondeterminism, such as state kept in statics",
                    found.words
                );
                fallback(found.cause, found.schedule, &words)
            }
        }
    }

    fn options_in_words(&self) -> String {
        format!("strategy {}, seed {}", self.options.plan, self.options.seed)
    }

    pub(super) fn replay_only(
        self: &Arc<Setting>,
        schedule: Schedule,
    ) -> Result<Summary, Box<Failure>> {
        let work = Explain { schedule };
        let setting = Arc::clone(self);
        let heartbeat = Arc::new(AtomicU64::new(0));
        let joined = std::thread::spawn(move || work.replay(&setting, heartbeat)).join();
        joined.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    }
}

impl Summary {
    fn add(&mut self, part: Summary) {
        self.executions += part.executions;
        self.complete &= part.complete;
        self.classes = part.classes;
        self.longest = self.longest.max(part.longest);
        self.steps += part.steps;
        for name in part.analyses {
            if !self.analyses.contains(&name) {
                self.analyses.push(name);
            }
        }
        for prediction in part.unconfirmed {
            if !self.unconfirmed.contains(&prediction) {
                self.unconfirmed.push(prediction);
            }
        }
    }
}

/// One shard as it runs.
struct Shard<'a> {
    setting: &'a Setting,
    worker: Worker,
    seed: u64,
    executions: u64,
    /// Predictions that have been tried.
    known: FxHashSet<FindingId>,
    summary: Summary,
    /// What all executions together contain.
    contents: Contents,
    check_determinism: bool,
}

impl Shard<'_> {
    fn run(&mut self, limit: u64) -> Sharded {
        let options = &self.setting.options;
        let mut strategy = options.plan.strategy();
        let mut budget = Budget::new(self.seed, limit);
        loop {
            let expired = options.time.is_some_and(|t| self.setting.begun.elapsed() >= t);
            let beaten = self.executions >= self.setting.best.load(Ordering::Relaxed);
            if expired || beaten || !budget.begin(&mut *strategy) {
                break;
            }
            let releases = *self.worker.release_points();
            let observe = Observe {
                analyses: !self.setting.selected.is_empty(),
                steps: self.check_determinism,
                events: false,
            };
            let execution = self.execute(&mut *strategy, observe)?;
            if std::mem::take(&mut self.check_determinism) {
                self.compare_with_replay(&execution)?;
            }
            self.confirm_all(execution)?;
            if options.plan.is_systematic() && *self.worker.release_points() != releases {
                // There are more points now than in the schedules seen so far: from the start.
                strategy = options.plan.strategy();
            }
        }
        self.summary.complete = strategy.coverage() == Coverage::Complete;
        self.summary.classes = strategy.classes();
        self.summary.executions = self.executions;
        let relevant = self.contents.relevant(&self.setting.selected);
        self.summary.analyses = relevant.map(|e| e.name).collect();
        Ok(std::mem::take(&mut self.summary))
    }

    /// One execution under a strategy, which has begun.
    fn execute(
        &mut self,
        strategy: &mut dyn Strategy,
        observe: Observe,
    ) -> Result<Execution, Box<Found>> {
        let seed = derive(self.seed ^ 0xda7a, self.executions);
        self.executions += 1;
        let mut execution = self.worker.run(strategy, seed, observe);
        self.summary.longest = self.summary.longest.max(execution.choices);
        self.summary.steps += execution.steps as u64;
        self.contents = self.contents.union(execution.contents);
        match execution.cause.take() {
            Some(cause) => Err(self.found(cause, execution.schedule)),
            None => Ok(execution),
        }
    }

    fn found(&self, cause: Cause, schedule: Schedule) -> Box<Found> {
        self.setting.best.fetch_min(self.executions, Ordering::Relaxed);
        let words = crate::failure::cause_in_words(&cause, self.worker.symbols());
        Box::new(Found { cause, schedule, execution: self.executions, words })
    }

    /// The same schedule must lead to the same steps. What only the first execution does, such as
    /// filling a cache in a static, is let pass.
    fn compare_with_replay(&mut self, first: &Execution) -> Result<(), Box<Found>> {
        let observe = Observe { steps: true, ..Observe::default() };
        let (_, second) = self.worker.replay(&first.schedule, observe);
        if second.taken == first.taken {
            return Ok(());
        }
        let (_, third) = self.worker.replay(&second.schedule, observe);
        if third.taken == second.taken {
            return Ok(());
        }
        let pairs = second.taken.iter().map(Some).chain([None]);
        let step = pairs
            .zip(third.taken.iter().map(Some).chain([None]))
            .position(|(a, b)| a != b)
            .unwrap_or(0);
        let words = |taken: Option<&crate::exec::Taken>| match taken {
            Some(t) => format!("thread {} at {}", t.thread.0, self.worker.symbols().site(t.site)),
            None => "the end".into(),
        };
        let (expected, found) = (words(second.taken.get(step)), words(third.taken.get(step)));
        Err(self.found(Cause::Nondeterminism { step, expected, found }, first.schedule.clone()))
    }

    /// Tries to make what the execution's analyses predict happen.
    fn confirm_all(&mut self, execution: Execution) -> Result<(), Box<Found>> {
        let names = self.worker.names_now();
        for finding in execution.findings {
            let Some(target) = finding.target.clone() else { continue };
            if finding.status != Status::Predicted
                || !self.known.insert(finding.id(self.worker.symbols()))
            {
                continue;
            }
            if !self.confirm(&finding, &target, &names)? {
                let words = crate::failure::finding_in_words(&finding, self.worker.symbols());
                self.summary.unconfirmed.push(words);
            }
        }
        Ok(())
    }

    /// Whether a directed execution made the finding happen, without a failure of its own.
    fn confirm(
        &mut self,
        finding: &Finding,
        target: &Target,
        names: &Names,
    ) -> Result<bool, Box<Found>> {
        let seed = derive(self.seed, 0xd1ec7ed ^ self.executions);
        let attempts = self.setting.options.attempts;
        let now = self.worker.names();
        let mut directed = Directed::new(target, names, now);
        let mut budget = Budget::new(seed, attempts);
        while budget.begin(&mut directed) {
            let observe = Observe { analyses: true, ..Observe::default() };
            let execution = self.execute(&mut directed, observe)?;
            if directed.reached() {
                let finding = Finding { status: Status::Confirmed, ..finding.clone() };
                return Err(self.found(Cause::Finding(Box::new(finding)), execution.schedule));
            }
        }
        Ok(false)
    }
}

/// A schedule that fails, to be made clear.
struct Explain {
    schedule: Schedule,
}

impl Explain {
    /// Minimises and renders; nothing if the schedule does not fail.
    fn run(
        self,
        setting: &Setting,
        execution: u64,
        heartbeat: Arc<AtomicU64>,
    ) -> Option<Box<Failure>> {
        let mut worker = setting.worker(heartbeat);
        let observe = Observe { analyses: !setting.selected.is_empty(), ..Observe::default() };
        let all = Observe { events: true, ..observe };
        let (_, mut shown) = worker.replay(&self.schedule, all);
        let mut cause = shown.cause.take()?;
        let mut schedule = self.schedule;
        if setting.options.minimise > 0 && !worker.tainted() {
            let result = minimise(schedule.clone(), setting.options.minimise, |candidate| {
                if worker.tainted() {
                    return None;
                }
                let (_, execution) = worker.replay(candidate, observe);
                let same = execution.cause.is_some_and(|c| c.same(&cause));
                same.then_some(execution.schedule)
            });
            if result.schedule != schedule && !worker.tainted() {
                let (_, mut smaller) = worker.replay(&result.schedule, all);
                if let Some(same) = smaller.cause.take().filter(|c| c.same(&cause)) {
                    // The same, but perhaps of other threads.
                    cause = same;
                    schedule = result.schedule;
                    shown = smaller;
                }
            }
        }
        let words = crate::failure::cause_in_words(&cause, worker.symbols());
        let text = report::render(&report::Report {
            test: setting.test.as_deref(),
            execution,
            options: &setting.options_in_words(),
            words: &words,
            schedule: &schedule,
            interleaving: Some((&shown, &cause, worker.symbols())),
            note: None,
        });
        Some(Box::new(Failure { cause, execution, schedule, text }))
    }

    /// Replays once and shows what happens.
    fn replay(self, setting: &Setting, heartbeat: Arc<AtomicU64>) -> Result<Summary, Box<Failure>> {
        let mut worker = setting.worker(heartbeat);
        let observe =
            Observe { analyses: !setting.selected.is_empty(), events: true, steps: false };
        let (replay, mut shown) = worker.replay(&self.schedule, observe);
        let note = replay.divergence().map(|d| format!("The replay diverged {d}."));
        let Some(cause) = shown.cause.take() else {
            if let Some(note) = note {
                eprintln!("selvedge: {note}");
            }
            return Ok(Summary {
                executions: 1,
                longest: shown.choices,
                steps: shown.steps as u64,
                ..Summary::default()
            });
        };
        let words = crate::failure::cause_in_words(&cause, worker.symbols());
        let text = report::render(&report::Report {
            test: setting.test.as_deref(),
            execution: 1,
            options: "replayed",
            words: &words,
            schedule: &self.schedule,
            interleaving: Some((&shown, &cause, worker.symbols())),
            note: note.as_deref(),
        });
        Err(Box::new(Failure { cause, execution: 1, schedule: self.schedule, text }))
    }
}
