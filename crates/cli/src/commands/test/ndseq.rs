//! `selvedge test --ndseq`: has each execution a sequential twin?
//!
//! Executions under many schedules record how their data flows. One whose conflicts can be undone is as if sequential
//! by its data flow; the others are judged by running the sequential executions.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_analyses::ndseq::finding;
use selvedge_engine::executor::execute;
use selvedge_engine::{Ask, Execution, Executor, Limit, Noted, Outcome, Twin};
use selvedge_explore::{Plan, Rng, Strategy};
use selvedge_model::{Finding, FindingId, RegionKind, Schedule, SiteId, Status, Symbols, Verdict};
use selvedge_report::{Case, Control, Effort, How, Parallelism, Remark, Report};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::WatchList;
use selvedge_specs::ndseq::check::{check_with, strict};
use selvedge_specs::ndseq::graph::Reason;
use selvedge_specs::ndseq::{self, Check, Circle, Specification, Stars};

use crate::args::Test;
use crate::commands::explore;
use crate::control::cases;
use crate::control::flow::{self, Shown, recorded, shown};
use crate::control::program::{ControlledProgram, Native};
use crate::control::sharing::shared;
use crate::control::twins::Sequentials;
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure, unless_interrupted};
use crate::program::suppress::Suppressions;
use crate::progress::Schedules;
use crate::store::Journal;

/// Tests and reports.
pub(crate) fn run(args: &Test) -> Result<Exit, Failure> {
    let mut program = ControlledProgram::find(&args.command, args.budget.patience())?;
    let spec = match args.ndseq.spec.as_deref() {
        Some(path) => Some(flow::specification(path, &flow::read(&program)?)?),
        None => None,
    };
    program.setup.focus.clone_from(&args.ndseq.focus);
    program.setup.focus.extend(spec.iter().flat_map(|s| s.focus.clone()));
    program.setup.tasks.clone_from(&args.ndseq.tasks);
    program.setup.tasks.extend(spec.iter().flat_map(|s| s.tasks.clone()));
    let tables = flow::tables(&program)?;
    let focus = flow::focus(&program)?;
    let suppressions = Suppressions::load(&args.suppressions)?;
    let deadline = Deadline::new(Some(args.budget.time))?;
    let mut journal = explore::begin(&program);
    let mut native = Native::new(&program, &deadline).following_flow(focus);
    if spec.is_some() {
        native = native.with_statements();
    }
    let mut testing = Testing {
        executor: native.executor()?,
        sequentials: Sequentials::new(tables, args.budget.seed, args.ndseq.sequential, true),
        spec,
        judged: Judged::default(),
        report: Report::default(),
        seen: BTreeSet::new(),
        failures: BTreeSet::new(),
    };
    let result = testing.all(args, &deadline, (&suppressions, &mut journal));
    if let Err(failure) = result {
        journal.finish("could not be followed", &testing.report.stats);
        return Err(failure);
    }
    let ended = testing.judged.executions > 0;
    testing.conclude(args, &deadline);
    journal.finish("tested", &testing.report.stats);
    if let (false, Some(Limit::Steps(steps))) = (ended, testing.judged.cut_off) {
        return Err(flow::too_long(&program, steps));
    }
    let answer = explore::Answer { ended, undecided: testing.judged.is_undecided() };
    explore::conclude((&testing.report, answer), &args.output, &program, &deadline)
}

/// How executions were judged.
#[derive(Default)]
struct Judged {
    executions: u64,
    /// Numbers for the report.
    counts: Parallelism,
    /// The places of circles if everything mattered, and of those that do.
    strict: BTreeSet<Vec<SiteId>>,
    circles: BTreeSet<Vec<SiteId>>,
    own_error: Option<u64>,
    /// Why the last execution that was cut off was.
    cut_off: Option<Limit>,
    unknown: BTreeMap<String, u64>,
    /// Code that the program says commutes.
    believed: BTreeSet<String>,
    events: u64,
    threads: usize,
}

impl Judged {
    /// Whether it is open if the program is as if sequential: no execution was shown to be, or we have contradicted
    /// ourselves.
    fn is_undecided(&self) -> bool {
        self.own_error.is_some() || self.counts.serializable + self.counts.twins == 0
    }

    fn measure(&mut self, flow: &ndseq::Execution, check: &Check) {
        let nodes = flow.nodes().len() as u64;
        if nodes > self.counts.nodes {
            let matters = (0..flow.nodes().len() as u32).filter(|&n| check.relevance.has(n));
            (self.counts.nodes, self.counts.irrelevant) = (nodes, nodes - matters.count() as u64);
            self.counts.outside = flow.outside() as u64;
        }
        self.strict.extend(strict(flow).iter().map(|c| places(flow, c)));
    }
}

/// The places of the conflicts of a circle, wherever it begins.
fn places(flow: &ndseq::Execution, circle: &Circle) -> Vec<SiteId> {
    let site = |node: u32| flow.nodes()[node as usize].site;
    let of = |reason: Reason| match reason {
        Reason::Conflict(a, b) => vec![site(a), site(b)],
        Reason::Order => Vec::new(),
    };
    let sites: BTreeSet<SiteId> = circle.edges.iter().flat_map(|e| of(e.reason)).collect();
    sites.into_iter().collect()
}

struct Testing {
    executor: Controlled,
    sequentials: Sequentials,
    /// Says where stars are, instead of the program.
    spec: Option<Specification>,
    judged: Judged,
    report: Report,
    /// The places of findings.
    seen: BTreeSet<(bool, Vec<SiteId>)>,
    /// How executions failed that no sequential execution fails like.
    failures: BTreeSet<FindingId>,
}

impl Testing {
    fn all(
        &mut self,
        args: &Test,
        deadline: &Deadline,
        (suppressions, journal): (&Suppressions, &mut Journal),
    ) -> Result<(), Failure> {
        let mut progress = Schedules::new("as if sequential", args.budget.schedules);
        let mut strategy = Plan::default().strategy();
        for number in 0..args.budget.schedules {
            if deadline.stopped().is_some() {
                break;
            }
            progress.advance(number, self.report.cases.len(), deadline);
            let one = self.one((args, deadline), number, &mut *strategy, (suppressions, journal));
            // What the time limit ends in the middle says nothing; the executions before it do.
            if !unless_interrupted(one)?.unwrap_or(false) {
                break;
            }
        }
        progress.clear();
        Ok(())
    }

    /// One execution; false if there are no more.
    fn one(
        &mut self,
        (args, deadline): (&Test, &Deadline),
        number: u64,
        strategy: &mut dyn Strategy,
        (suppressions, journal): (&Suppressions, &mut Journal),
    ) -> Result<bool, Failure> {
        let seed = args.budget.seed;
        let points = self.sequentials.sharing.list.clone();
        let ask = Ask { seed, noted: Noted::Flow, points: points.clone(), ..Ask::default() };
        let rng = Rng::of_execution(seed, number);
        let Some(execution) = execute(&mut self.executor, strategy, rng, &ask)? else {
            return Ok(false);
        };
        if let Some(why) = &self.executor.flowed().broken {
            return Err(flow::broken(why));
        }
        if let Outcome::Undecided(limit) = execution.outcome {
            self.judged.cut_off = Some(limit);
        }
        let Some(result) = shown(&mut self.executor, &execution) else { return Ok(true) };
        self.judged.executions += 1;
        for (name, times) in &self.executor.flowed().unknown {
            let known = self.judged.unknown.entry(name.clone()).or_default();
            *known = (*known).max(*times);
        }
        let symbols = Executor::named(&mut self.executor, &execution);
        let sites = shared(&execution.events).into_iter().map(|s| symbols.site(s)).collect();
        self.sequentials.watch(sites);
        let believed = symbols.regions.entries().iter();
        let believed = believed.filter(|r| r.kind == RegionKind::Commutes);
        self.judged.believed.extend(believed.map(|r| r.name.to_string()));
        let flow = recorded(&execution, &symbols, args.ndseq.commute_floats)?;
        if let Outcome::Failed(failure) = &execution.outcome {
            // It ended early, so its data flow says nothing: only a sequential execution that fails alike explains it.
            if !matches!(self.twin(deadline, &flow, &result)?, Twin::Found(_)) {
                let shown = (&execution, &*symbols, points);
                self.failed(number, failure, shown, suppressions, journal)?;
            }
            return Ok(true);
        }
        self.judged.counts.tasks = self.judged.counts.tasks.max(flow.task_count() as u64);
        self.judged.events += flow.nodes().len() as u64;
        let (flow, stars) = self.starred(flow, &symbols)?;
        let check = check_with(&flow, &stars);
        self.judged.measure(&flow, &check);
        let twin = self.twin(deadline, &flow, &result)?;
        match (check.circles.first(), twin) {
            (None, Twin::None) if self.runs_all() => {
                self.judged.counts.serializable += 1;
                self.judged.own_error.get_or_insert(number);
            }
            (None, _) => self.judged.counts.serializable += 1,
            (Some(_), Twin::Found(_)) => self.judged.counts.twins += 1,
            (Some(circle), Twin::None | Twin::Unknown) => {
                let all = twin == Twin::None && self.runs_all();
                self.judged.circles.extend(check.circles.iter().map(|c| places(&flow, c)));
                let found = Found { flow: &flow, circle, execution: &execution, symbols: &symbols };
                self.found(number, &found, (all, points), suppressions, journal)?;
            }
        }
        Ok(true)
    }

    /// Whether the sequential executions that are run are all there are: a star of a specification cannot be left out
    /// by running the program.
    fn runs_all(&self) -> bool {
        self.spec.as_ref().is_none_or(|s| s.stars.is_empty())
    }

    fn starred(
        &self,
        flow: ndseq::Execution,
        symbols: &Symbols,
    ) -> Result<(ndseq::Execution, Stars), Failure> {
        match &self.spec {
            Some(spec) => spec.place(flow, symbols).map_err(Failure::Undecided),
            None => {
                let stars = Stars::marked(&flow);
                Ok((flow, stars))
            }
        }
    }

    fn twin(
        &mut self,
        deadline: &Deadline,
        flow: &ndseq::Execution,
        result: &Shown,
    ) -> Result<Twin, Failure> {
        self.sequentials.twin(&mut self.executor, deadline, flow.tasks(), result)
    }

    fn found(
        &mut self,
        number: u64,
        found: &Found<'_>,
        (all, points): (bool, WatchList),
        suppressions: &Suppressions,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        let mut finding = finding(found.flow, found.circle);
        let sites = finding.places.iter().map(|p| p.site).collect();
        if !self.seen.insert((all, sites)) {
            return Ok(());
        }
        if all {
            (finding.status, finding.verdict) = (Status::Observed, Some(Verdict::Harmful));
        }
        let case = Case::new(&finding, found.symbols);
        let case = self.shown_again(number, case, &found.execution.schedule, &points)?;
        self.tell(case, suppressions, journal);
        Ok(())
    }

    /// An execution failed, and no sequential execution fails like that.
    fn failed(
        &mut self,
        number: u64,
        failure: &Finding,
        (execution, symbols, points): (&Execution, &Symbols, WatchList),
        suppressions: &Suppressions,
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        if !self.failures.insert(failure.id(symbols)) {
            return Ok(());
        }
        let case = Case::new(failure, symbols);
        let case = self.shown_again(number, case, &execution.schedule, &points)?;
        self.tell(case, suppressions, journal);
        Ok(())
    }

    fn tell(&mut self, case: Case, suppressions: &Suppressions, journal: &mut Journal) {
        if let Some(case) = suppressions.pass(case, &mut self.report.stats) {
            journal.add(&case);
            self.report.add(case);
        }
    }

    /// The case with its schedule and the interleaving of its replay.
    fn shown_again(
        &mut self,
        number: u64,
        mut case: Case,
        schedule: &Schedule,
        points: &WatchList,
    ) -> Result<Case, Failure> {
        let critical = case.critical();
        let ask = Ask { noted: Noted::Events, points: points.clone(), ..Ask::default() };
        let sought = selvedge_engine::Sought::default();
        let ask = ask.following(schedule);
        let replayed =
            selvedge_engine::replay::follow(&mut self.executor, schedule, &sought, &ask)?;
        case.control = Some(Control {
            schedule: Some(schedule.to_string()),
            after: Some(number + 1),
            watched: cases::accesses(points),
            how: Some(How::Rows(cases::interleaving(&replayed, &critical))),
            ..Control::default()
        });
        Ok(case)
    }

    fn conclude(&mut self, args: &Test, deadline: &Deadline) {
        let judged = &self.judged;
        let sequential = self.sequentials.executions;
        let mut remarks: Vec<Remark> =
            explore::limits(&self.sequentials.sharing.list).into_iter().collect();
        let parallelism = Parallelism {
            sequential,
            all: self.sequentials.are_all(),
            strict: judged.strict.len() as u64,
            circles: judged.circles.len() as u64,
            ..judged.counts
        };
        remarks.push(Remark::AsIfSequential(parallelism));
        if !judged.unknown.is_empty() {
            let unknown = judged.unknown.iter().map(|(name, times)| (name.clone(), *times));
            remarks.push(Remark::NotFollowed(unknown.collect()));
        }
        if !judged.believed.is_empty() {
            remarks.push(Remark::Believed(judged.believed.iter().cloned().collect()));
        }
        remarks.extend(
            judged.own_error.map(|execution| Remark::OwnError { execution: execution + 1 }),
        );
        remarks.extend(deadline.stopped().map(Remark::Stopped));
        let stats = &mut self.report.stats;
        stats.traces = usize::try_from(judged.executions).unwrap_or(usize::MAX);
        stats.events = judged.events;
        stats.analyses = vec!["ndseq".to_owned()];
        stats.threads = judged.threads;
        stats.parallelism = Some(parallelism);
        stats.control = Some(Effort {
            schedules: judged.executions + sequential,
            seconds: deadline.elapsed().as_secs_f64(),
            seed: args.budget.seed,
            complete: false,
            remarks,
        });
    }
}

/// An execution with a circle.
struct Found<'a> {
    flow: &'a ndseq::Execution,
    circle: &'a Circle,
    execution: &'a Execution,
    symbols: &'a Symbols,
}
