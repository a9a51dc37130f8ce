//! How a check runs: the engine's search over executions of the test body, until one fails.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use selvedge_engine::linearity;
use selvedge_engine::replay::{follow, shortened};
use selvedge_engine::search::{Searched, Step, Tried};
use selvedge_engine::shards::Halt;
use selvedge_engine::witness::Unserial;
use selvedge_engine::{
    Ask, Determinism, Effort, Factory, Harm, Heartbeat, Key, Linearity, Nondeterminism, Noted,
    Replayed, Run, Search, Sought, Wrong,
};
use selvedge_explore::strategies::interrupt;
use selvedge_explore::{Coverage, Plan};
use selvedge_model::{
    Failure as Failing, Finding, Kind, Schedule, Site, Status, Subject, Symbols, Target,
};
use selvedge_report::words;

use super::{Check, Explore, Summary, Survey, violation};
use crate::exec::failing;
use crate::exec::worker::Bodies;
use crate::failure::{Failure, in_words};
use crate::report::{self, Report};

/// After so many executions that were cut off a check gives up: the next ones would take as long.
const CUT_OFF: u64 = 4;

/// Something that fails the check.
struct Found {
    finding: Finding,
    symbols: Arc<Symbols>,
    schedule: Schedule,
    execution: u64,
    /// What identifies an execution in which the failure happens.
    sought: Sought,
}

/// What ends a search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// Something fails, or something is observed: the search begins anew where it is.
    Any,
    /// Something fails, where something is observed.
    Observed,
    /// As `Observed`, but executions that no serial one explains are only counted.
    Survey,
}

/// What no serial execution observes.
fn names(violation: &linearity::Violation<()>) -> Vec<String> {
    violation.names.iter().map(ToString::to_string).collect()
}

/// What the executions of a check have shown so far.
struct Seen {
    summary: Summary,
    determinism: Determinism<()>,
    linearity: Linearity<()>,
    /// What fails the check.
    found: Option<Found>,
    /// Something was observed.
    observes: bool,
    /// Executions of the search, without those that confirm something.
    executions: u64,
}

impl Seen {
    fn new(states: Option<&Path>) -> Seen {
        Seen {
            summary: Summary::default(),
            determinism: violation::determinism(states),
            linearity: Linearity::default(),
            found: None,
            observes: false,
            executions: 0,
        }
    }

    fn take(&mut self, mut step: Step) {
        self.executions += 1;
        self.summary.compare(&step, &mut self.determinism);
        let judged = step.judged.take();
        let number = self.summary.executions + 1;
        let serial = judged.as_ref().map_or(0, |j| j.executions);
        let said = (&*step.run.blocks, step.run.ending.key);
        self.linearity.add(number, said, judged, (&step.run.schedule, &()));
        self.found = self.summary.take(step);
        self.summary.executions += serial;
    }

    fn is_over(&self) -> bool {
        let Seen { determinism, linearity, found, .. } = self;
        found.is_some()
            || self.summary.cut_off >= CUT_OFF
            || determinism.wrong.is_some()
            || !determinism.violations.is_empty()
            || linearity.wrong.is_some()
            || !linearity.violations.is_empty()
    }
}

impl Check {
    /// Runs the test body under many schedules.
    pub(super) fn explore(&mut self) -> Result<Summary, Box<Failure>> {
        let begun = Instant::now();
        let mut seen = Seen::new(self.options.states.as_deref());
        let Explore { plan, schedules, chosen, .. } = self.options;
        let mut searched = self.search(&mut seen, begun, (plan, schedules), Aim::Any);
        if seen.observes {
            // From the beginning, and every time on the same input, so that serial executions can be shared.
            seen = Seen::new(self.options.states.as_deref());
            let first = if chosen { plan } else { Plan::new(&interrupt::ENTRY, None) };
            self.phase = Some(first);
            let half = if chosen { schedules } else { schedules.div_ceil(2) };
            searched = self.search(&mut seen, begun, (first, half), Aim::Observed);
            let left = schedules.saturating_sub(seen.executions);
            if !chosen && searched.is_ok() && !seen.is_over() && left > 0 {
                self.phase = Some(plan);
                searched = self.search(&mut seen, begun, (plan, left), Aim::Observed);
            }
        }
        self.conclude(seen, &searched)
    }

    /// Judges all executions, whatever is found in them, and counts.
    pub(super) fn survey(self) -> Survey {
        let mut seen = Seen::new(None);
        let Explore { plan, schedules, .. } = self.options;
        let searched = self.search(&mut seen, Instant::now(), (plan, schedules), Aim::Survey);
        let Seen { summary, linearity, found, .. } = seen;
        violation::refuse(linearity.wrong.as_ref());
        violation::refuse(linearity.misuse().map(Wrong::Atomic).as_ref());
        if let Some(found) = found {
            panic!("{}", self.explain(found));
        }
        Survey {
            interleavings: linearity.interleavings,
            violations: linearity.violations.iter().map(names).collect(),
            conflicts: linearity.conflicts.iter().map(ToString::to_string).collect(),
            executions: summary.executions,
            complete: searched.is_ok_and(|s| s.coverage == Coverage::Complete),
        }
    }

    /// Runs the test body under one strategy, until its aim is reached.
    fn search(
        &self,
        seen: &mut Seen,
        begun: Instant,
        (plan, schedules): (Plan, u64),
        aim: Aim,
    ) -> Result<Searched, Halt<Infallible>> {
        let (options, observes) = (&self.options, aim != Aim::Any);
        let search = Search {
            strategy: Arc::new(move |_, _| plan.strategy()),
            systematic: plan.is_systematic(),
            seed: options.seed,
            vary_input: !observes,
            schedules,
            jobs: options.jobs,
            points: (),
            releases: false,
            attempts: options.attempts,
            repeat: true,
            stall: Some(options.stall),
            witness: observes.then(|| options.criterion.clone()),
        };
        let expired = || options.time.is_some_and(|time| begun.elapsed() >= time);
        search.run(&self.bodies, expired, |_, step| {
            seen.observes |= step.run.blocks.observes();
            if seen.observes && !observes {
                return ControlFlow::Break(());
            }
            seen.take(step);
            let over = match aim {
                Aim::Any | Aim::Observed => seen.is_over(),
                Aim::Survey => seen.found.is_some() || seen.linearity.wrong.is_some(),
            };
            if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }

    /// What all executions together say.
    fn conclude(
        &self,
        seen: Seen,
        searched: &Result<Searched, Halt<Infallible>>,
    ) -> Result<Summary, Box<Failure>> {
        let Seen { mut summary, mut determinism, mut linearity, found, .. } = seen;
        if found.is_none() {
            determinism.finish();
        }
        violation::refuse(determinism.wrong.as_ref().or(linearity.wrong.as_ref()));
        if let Some(found) = found {
            return Err(self.explain(found));
        }
        if let Some(violation) = determinism.violations.pop() {
            return Err(self.violated(&violation));
        }
        violation::refuse(linearity.misuse().map(Wrong::Atomic).as_ref());
        if let Some(violation) = linearity.violations.pop() {
            return Err(self.unexplained(&violation));
        }
        match searched {
            Ok(Searched { coverage, classes }) => {
                summary.complete = *coverage == Coverage::Complete;
                summary.classes = *classes;
                summary.undecided(&determinism, self.options.max_steps);
                summary.unserial(&linearity);
                Ok(summary)
            }
            Err(Halt::Stalled) => Err(self.explain(self.stalled(summary.executions))),
            Err(Halt::Failed(never)) => match *never {},
        }
    }

    fn stalled(&self, executions: u64) -> Found {
        let stall = Failing::Stall(self.options.stall.as_secs());
        Found {
            finding: failing::without_place(Kind::Hang, stall),
            symbols: Arc::default(),
            schedule: Schedule::default(),
            execution: executions + 1,
            sought: Sought::default(),
        }
    }

    /// Replays, minimises and renders a failure, on an OS thread of its own.
    fn explain(&self, found: Found) -> Box<Failure> {
        let is_replayed = match &found.finding.subject {
            Subject::Program(failure) => failure.depends_on_schedule(),
            Subject::Memory(_)
            | Subject::Locks(_)
            | Subject::Region(_)
            | Subject::Value { .. }
            | Subject::Observed(_)
            | Subject::Misused(..) => true,
        };
        let plan = self.phase.unwrap_or(self.options.plan);
        let how = format!("strategy {plan}, seed {}", self.options.seed);
        if !is_replayed {
            return self.failure(&found, &how, None, None);
        }
        let (schedule, sought) = (found.schedule.clone(), found.sought.clone());
        let effort = Effort { executions: self.options.minimise, time: Duration::from_secs(60) };
        let shown = self.on_a_thread(move |worker| {
            let ask = Ask { noted: Noted::Events, ..Ask::default() };
            let shown = shortened(worker, &schedule, &sought, effort, &ask);
            let Ok(shown) = shown;
            shown
        });
        match shown {
            Some(shown) => {
                let found = found.shown(&shown);
                self.failure(&found, &how, Some(&shown), None)
            }
            None => {
                let note = "The same schedule did not fail again: the test has uncontrolled \
                            nondeterminism, such as state kept in statics";
                self.failure(&found, &how, None, Some(note))
            }
        }
    }

    /// Replays one schedule and shows what happens.
    pub(super) fn replay_only(&self, schedule: &Schedule) -> Result<Summary, Box<Failure>> {
        let theirs = schedule.clone();
        let unserial = Unserial::new(self.options.criterion.clone(), self.options.schedules);
        let (shown, judged) = self.on_a_thread(move |worker| {
            let ask = Ask { noted: Noted::Events, ..Ask::default() };
            let Ok(shown) = follow(worker, &theirs, &Sought::default(), &ask);
            let execution = &shown.execution;
            let observes = shown.ending.finding().is_none() && execution.blocks.observes();
            let of = (&execution.blocks.atomic, &execution.schedule);
            let judge = |w: &mut _| {
                let Ok(judged) = unserial.judge(w, of, &());
                judged
            };
            let judged = observes.then(|| judge(worker));
            (shown, judged)
        });
        violation::refuse(shown.execution.blocks.wrong.as_ref());
        let mut linearity = Linearity::default();
        let said = (&*shown.execution.blocks, shown.ending.key);
        linearity.add(1, said, judged, (&shown.execution.schedule, &()));
        violation::refuse(linearity.wrong.as_ref());
        if let Some(violation) = linearity.replayed() {
            return Err(self.unexplained(&violation));
        }
        let note =
            shown.divergence.map(|d| format!("The replay diverged {}.", words::divergence(&d)));
        let Some(finding) = shown.ending.finding() else {
            if let Some(note) = note {
                eprintln!("selvedge: {note}");
            }
            let mut summary = Summary {
                executions: 1,
                longest: shown.execution.choices,
                steps: shown.execution.steps as u64,
                cut_off: u64::from(shown.execution.cut_off),
                ..Summary::default()
            };
            summary.undecided(&violation::determinism(None), self.options.max_steps);
            return Ok(summary);
        };
        let found = Found {
            finding: finding.clone(),
            symbols: Arc::clone(&shown.symbols),
            schedule: schedule.clone(),
            execution: 1,
            sought: Sought::default(),
        };
        Err(self.failure(&found, "replayed", Some(&shown), note.as_deref()))
    }

    /// Executions need an OS thread that nothing else runs on.
    pub(super) fn on_a_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut <Bodies as Factory>::Executor) -> T + Send + 'static,
    ) -> T {
        let bodies = Arc::clone(&self.bodies);
        let joined = std::thread::spawn(move || {
            let Ok::<_, Infallible>(mut worker) = bodies.make(Heartbeat::default());
            work(&mut worker)
        })
        .join();
        joined.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    }

    fn failure(
        &self,
        found: &Found,
        how: &str,
        shown: Option<&Replayed>,
        note: Option<&str>,
    ) -> Box<Failure> {
        let Found { finding, symbols, schedule, execution, sought } = found;
        let case = report::case(finding, symbols);
        let critical: Vec<Site> = match &sought.target {
            Some(target) => target.accesses().into_iter().cloned().collect(),
            // A failure shows by itself.
            None if matches!(finding.subject, Subject::Program(_)) => Vec::new(),
            None => case.critical(),
        };
        let text = report::render(&Report {
            test: self.test.as_deref(),
            execution: *execution,
            how,
            words: &in_words(finding, symbols),
            schedules: std::slice::from_ref(schedule),
            shown: shown.into_iter().collect(),
            critical: &critical,
            note,
        });
        let schedules = vec![schedule.clone()];
        Box::new(Failure {
            case,
            execution: *execution,
            schedule: schedule.clone(),
            schedules,
            text,
        })
    }
}

impl Found {
    /// The same as a replay showed it, perhaps with other threads.
    fn shown(self, shown: &Replayed) -> Found {
        let schedule = shown.execution.schedule.clone();
        let symbols = Arc::clone(&shown.symbols);
        match shown.ending.finding() {
            Some(finding) if self.sought.target.is_none() => {
                Found { finding: finding.clone(), symbols, schedule, ..self }
            }
            _ => Found { schedule, ..self },
        }
    }
}

impl Summary {
    /// Compares the blocks of all executions of a step with those before.
    fn compare(&self, step: &Step, determinism: &mut Determinism<()>) {
        let tried = step.tried.iter().flat_map(|t| &t.trials).flat_map(|t| &t.runs);
        for (number, run) in (self.executions + 1..).zip(std::iter::once(&step.run).chain(tried)) {
            determinism.add(number, (&run.blocks, run.ending.key), (&run.schedule, &()));
        }
    }

    /// Counts what a shard did, and says what fails the check.
    fn take(&mut self, step: Step) -> Option<Found> {
        let Step { run, nondeterminism, tried, judged: _, learnt: _ } = step;
        self.executions += 1;
        self.longest = self.longest.max(run.choices);
        self.steps += run.steps as u64;
        self.cut_off += u64::from(run.ending.key == Key::Undecided);
        for name in &run.analyses {
            if !self.analyses.contains(name) {
                self.analyses.push(name);
            }
        }
        if let Some(Nondeterminism { difference, cause, symbols }) = nondeterminism {
            let failure = Failing::Unrepeatable {
                index: difference.index,
                expected: difference.expected,
                found: difference.found,
                cause,
            };
            return Some(Found {
                finding: failing::without_place(Kind::DeterminismViolation, failure),
                symbols,
                schedule: run.schedule,
                execution: self.executions,
                sought: Sought::default(),
            });
        }
        if let Some(finding) = run.ending.finding() {
            return Some(Found::failed(finding, &run, self.executions));
        }
        tried.into_iter().find_map(|tried| self.tried(&tried))
    }

    /// The result of directed executions for a prediction: it happened, another failure did, or nothing.
    fn tried(&mut self, tried: &Tried) -> Option<Found> {
        let runs = tried.trials.iter().flat_map(|t| &t.runs);
        for run in runs.clone() {
            self.executions += 1;
            self.longest = self.longest.max(run.choices);
            self.steps += run.steps as u64;
            self.cut_off += u64::from(run.ending.key == Key::Undecided);
        }
        self.executions += tried.trials.iter().map(|t| t.replays).sum::<u64>();
        let id = tried.finding.id(&tried.symbols);
        let target = tried.finding.target.as_ref();
        let shows_itself = matches!(target, Some(Target::Deadlock(_)));
        let suspected = matches!(target, Some(Target::Split { region: None, .. }));
        match tried.confirmed() {
            // That two regions belong together is a suspicion, and only harm confirms it.
            Some(confirmed) if suspected && confirmed.harm <= Harm::Nothing => {
                self.unconfirmed(tried);
                None
            }
            Some(confirmed) if !shows_itself => {
                let finding = Finding {
                    status: Status::Confirmed,
                    verdict: confirmed.harm.verdict(),
                    ..tried.finding.clone()
                };
                let place = |&site: &_| tried.symbols.site(site);
                let target: Option<Target<Site>> = target.map(|t| t.map(place));
                Some(Found {
                    finding,
                    symbols: Arc::clone(&tried.symbols),
                    schedule: confirmed.schedule.clone(),
                    execution: self.executions,
                    sought: Sought { target, ..Sought::default() },
                })
            }
            confirmed => {
                let fails = |run: &&Run| matches!(run.ending.key, Key::Failed(_));
                let failed = match confirmed {
                    Some(_) => runs.clone().find(|r| r.ending.key == Key::Failed(id)),
                    None => runs.clone().find(fails),
                };
                match failed.and_then(|run| Some((run, run.ending.finding()?))) {
                    Some((run, finding)) => Some(Found::failed(finding, run, self.executions)),
                    None => {
                        self.unconfirmed(tried);
                        None
                    }
                }
            }
        }
    }
}

impl Summary {
    fn unconfirmed(&mut self, tried: &Tried) {
        let words = in_words(&tried.finding, &tried.symbols);
        if !self.unconfirmed.contains(&words) {
            self.unconfirmed.push(words);
        }
    }
}

impl Found {
    fn failed(finding: &Finding, run: &Run, execution: u64) -> Found {
        let id = match run.ending.key {
            Key::Failed(id) => Some(id),
            Key::Exited(_) | Key::Undecided => None,
        };
        Found {
            finding: finding.clone(),
            symbols: Arc::clone(&run.ending.symbols),
            schedule: run.schedule.clone(),
            execution,
            sought: Sought { failure: id, ..Sought::default() },
        }
    }
}
