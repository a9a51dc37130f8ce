//! `selvedge test --ndseq`: has each execution a sequential twin?
//!
//! Executions under many schedules record how their data flows. One whose conflicts can be undone is as if sequential
//! by its data flow; the others are judged by running the sequential executions.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use selvedge_analyses::ndseq::finding;
use selvedge_engine::executor::execute;
use selvedge_engine::{Ask, Execution, Executor, Noted, Outcome, Points, Twin, Twins};
use selvedge_explore::sequential::Tasks;
use selvedge_explore::{Plan, Rng, Strategy};
use selvedge_model::{
    Event, Finding, Op, Range, RegionId, RegionKind, Schedule, Site, SiteId, Status, Symbols,
    ThreadId, Verdict,
};
use selvedge_report::{Case, Control, Effort, How, Remark, Report};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::{Global, WatchList, Watched};
use selvedge_runtime::flow::Tables;
use selvedge_specs::ndseq::{self, Circle, Recorder, execution};

use crate::args::Test;
use crate::commands::explore;
use crate::control::cases;
use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure};
use crate::program::elf;
use crate::program::suppress::Suppressions;
use crate::progress::Schedules;
use crate::store::Journal;

/// What an execution shows: its focus or, without one, what it prints and its exit code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Focus(BTreeMap<String, Vec<Vec<u8>>>),
    Output(Vec<u8>, i32),
    /// It failed, in this way.
    Failed(String),
}

/// What the execution that ran last shows; nothing if it was cut off.
pub(crate) fn shown(executor: &mut Controlled, execution: &Execution) -> Option<Shown> {
    let code = match &execution.outcome {
        Outcome::Undecided(_) => return None,
        Outcome::Failed(failed) => return Some(Shown::Failed(format!("{:?}", failed.kind))),
        Outcome::Exited(code) => *code,
    };
    let focus = executor.flowed().focus.clone();
    if focus.is_empty() {
        return Some(Shown::Output(execution.output.clone(), code));
    }
    let mut parts: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for (site, bytes) in focus {
        parts.entry(executor.symbols.site(site).to_string()).or_default().push(bytes);
    }
    Some(Shown::Focus(parts))
}

/// Tests and reports.
pub(crate) fn run(args: &Test) -> Result<Exit, Failure> {
    let mut program = ControlledProgram::find(&args.command, args.budget.patience())?;
    let tables = tables(&program)?;
    program.setup.focus.clone_from(&args.ndseq.focus);
    let focus = focus(&program)?;
    let suppressions = Suppressions::load(&args.suppressions)?;
    let deadline = Deadline::new(Some(args.budget.time))?;
    let mut journal = explore::begin(&program);
    let native = Native::new(&program, &deadline).following_flow(focus);
    let mut testing = Testing {
        executor: native.executor()?,
        tables,
        points: WatchList::default(),
        watched: BTreeSet::new(),
        twins: None,
        sequential: 0,
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
    let answer = explore::Answer { ended, undecided: testing.judged.own_error.is_some() };
    explore::conclude((&testing.report, answer), &args.output, &program, &deadline)
}

/// The tables of a program that was built for data flow.
pub(crate) fn tables(program: &ControlledProgram) -> Result<Tables, Failure> {
    let path = &program.setup.program;
    let wrong = |why: String| Failure::Undecided(format!("{}: {why}", path.display()));
    let tables = Tables::read(path, &program.root).map_err(|e| wrong(e.to_string()))?;
    tables.ok_or_else(|| {
        wrong("this program does not say how its data flows; build it with `selvedge cc --selvedge-flow`, or with `SELVEDGE_FLOW=1 make CC=\"selvedge cc\"`".to_owned())
    })
}

/// The globals that are the result.
pub(crate) fn focus(program: &ControlledProgram) -> Result<Vec<Global>, Failure> {
    let names = &program.setup.focus;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let globals = elf::globals(&program.setup.program).map_err(Failure::Program)?;
    let find = |name: &String| match globals.get(name) {
        Some(global) => Ok(global.clone()),
        None => {
            let near = nearest(name, globals.keys());
            let near = if near.is_empty() { "there is none".to_owned() } else { near.join(", ") };
            Err(Failure::Usage(format!(
                "--focus {name}: the program has no global of that name; the nearest names are: {near}"
            )))
        }
    };
    names.iter().map(find).collect()
}

/// The three names that are most like one.
fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut all: Vec<(usize, &String)> = all
        .filter(|n| !n.starts_with("__") && !n.starts_with("selvedge"))
        .map(|n| (distance(name.as_bytes(), n.as_bytes()), n))
        .collect();
    all.sort();
    all.into_iter().take(3).map(|(_, n)| n.clone()).collect()
}

/// How many bytes have to be inserted, deleted or replaced to make one text of another.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// How executions were judged.
#[derive(Default)]
struct Judged {
    executions: u64,
    tasks: usize,
    serializable: u64,
    twins: u64,
    own_error: Option<u64>,
    unknown: BTreeMap<String, u64>,
    events: u64,
    threads: usize,
}

struct Testing {
    executor: Controlled,
    tables: Tables,
    /// The accesses that are scheduling points.
    points: WatchList,
    watched: BTreeSet<String>,
    /// The sequential executions with these scheduling points.
    twins: Option<(Twins<Shown>, WatchList)>,
    /// The most sequential executions that were run.
    sequential: u64,
    judged: Judged,
    report: Report,
    /// The places of findings.
    seen: BTreeSet<(bool, Vec<SiteId>)>,
    /// How executions failed that no sequential execution fails like.
    failures: BTreeSet<String>,
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
            if !self.one(args, number, &mut *strategy, suppressions, journal)? {
                break;
            }
        }
        progress.clear();
        Ok(())
    }

    /// One execution; false if there are no more.
    fn one(
        &mut self,
        args: &Test,
        number: u64,
        strategy: &mut dyn Strategy,
        suppressions: &Suppressions,
        journal: &mut Journal,
    ) -> Result<bool, Failure> {
        let seed = args.budget.seed;
        let ask = Ask { seed, noted: Noted::Flow, points: self.points.clone(), ..Ask::default() };
        let rng = Rng::of_execution(seed, number);
        let Some(execution) = execute(&mut self.executor, strategy, rng, &ask)? else {
            return Ok(false);
        };
        if let Some(why) = &self.executor.flowed().broken {
            return Err(Failure::Undecided(format!(
                "the data flow of the program could not be followed ({why}); functions that are left by longjmp or exceptions are not supported"
            )));
        }
        let Some(result) = shown(&mut self.executor, &execution) else { return Ok(true) };
        self.judged.executions += 1;
        for (name, times) in &self.executor.flowed().unknown {
            let known = self.judged.unknown.entry(name.clone()).or_default();
            *known = (*known).max(*times);
        }
        let symbols = Executor::named(&mut self.executor, &execution);
        let points = self.points.clone();
        let sites = shared(&execution.events).into_iter().map(|s| symbols.site(s)).collect();
        self.watch(sites);
        let flow = recorded(&execution)?;
        if let Outcome::Failed(failure) = &execution.outcome {
            // It ended early, so its data flow says nothing: only a sequential execution that fails alike explains it.
            if !matches!(self.twin(args, &flow, &result)?, Twin::Found(_)) {
                self.failed(number, failure, (&execution, &symbols, points), journal)?;
            }
            return Ok(true);
        }
        self.judged.tasks = self.judged.tasks.max(flow.task_count());
        self.judged.events += flow.nodes().len() as u64;
        let check = ndseq::check(&flow);
        let twin = self.twin(args, &flow, &result)?;
        match (check.circles.first(), twin) {
            (None, Twin::None) => {
                self.judged.serializable += 1;
                self.judged.own_error.get_or_insert(number);
            }
            (None, _) => self.judged.serializable += 1,
            (Some(_), Twin::Found(_)) => self.judged.twins += 1,
            (Some(circle), Twin::None | Twin::Unknown) => {
                let all = twin == Twin::None;
                let found = Found { flow: &flow, circle, execution: &execution, symbols: &symbols };
                self.found(number, &found, (all, points), suppressions, journal)?;
            }
        }
        Ok(true)
    }

    /// What the sequential executions say. Where a thread outside of tasks shares memory, its accesses have to be
    /// scheduling points, or not every order would be tried; if such accesses turn up, the search begins again.
    fn twin(
        &mut self,
        args: &Test,
        flow: &ndseq::Execution,
        result: &Shown,
    ) -> Result<Twin, Failure> {
        let tasks = match flow.tasks() {
            execution::Tasks::Threads => Tasks::Threads,
            execution::Tasks::Marked => Tasks::Marked,
        };
        loop {
            let (seed, points) = (args.budget.seed, self.points.clone());
            if self.twins.as_ref().is_none_or(|(_, before)| *before != points) {
                self.twins = Some((Twins::new(tasks, args.ndseq.sequential), points.clone()));
            }
            let Some((twins, _)) = &mut self.twins else { return Ok(Twin::Unknown) };
            let ask = Ask { seed, noted: Noted::Flow, points, ..Ask::default() };
            let mut sites: BTreeSet<SiteId> = BTreeSet::new();
            let run = |executor: &mut Controlled, execution: &Execution| {
                sites.extend(shared(&execution.events));
                shown(executor, execution)
            };
            let found = twins.find(&mut self.executor, result, &ask, run)?;
            self.sequential = self.sequential.max(twins.executions);
            let symbols = self.executor.symbols.clone();
            let sites: Vec<Site> = sites.into_iter().map(|s| symbols.site(s)).collect();
            if !self.watch(sites) || found != Twin::None {
                return Ok(found);
            }
        }
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
        if let Some(case) = suppressions.pass(case, &[], &mut self.report.stats) {
            journal.add(&case);
            self.report.add(case);
        }
        Ok(())
    }

    /// An execution failed, and no sequential execution fails like that.
    fn failed(
        &mut self,
        number: u64,
        failure: &Finding,
        (execution, symbols, points): (&Execution, &Symbols, WatchList),
        journal: &mut Journal,
    ) -> Result<(), Failure> {
        if self.failures.insert(format!("{:?}", failure.kind)) {
            let case = Case::new(failure, symbols);
            let case = self.shown_again(number, case, &execution.schedule, &points)?;
            journal.add(&case);
            self.report.add(case);
        }
        Ok(())
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

    /// Makes the accesses at these sites scheduling points; whether some are new.
    fn watch(&mut self, sites: Vec<Site>) -> bool {
        let new: Vec<Site> =
            sites.into_iter().filter(|s| self.watched.insert(s.to_string())).collect();
        if new.is_empty() {
            return false;
        }
        let accesses = self.tables.accesses_at(&new).into_iter();
        let watched = accesses.map(|(code, site)| Watched { code, site }).collect();
        self.points.add(&WatchList::new(watched));
        true
    }

    fn conclude(&mut self, args: &Test, deadline: &Deadline) {
        let judged = &self.judged;
        let sequential = self.sequential;
        let mut remarks: Vec<Remark> = explore::limits(&self.points).into_iter().collect();
        remarks.push(Remark::AsIfSequential {
            tasks: judged.tasks,
            serializable: judged.serializable,
            twins: judged.twins,
            sequential,
            all: self.twins.as_ref().is_some_and(|(twins, _)| twins.is_complete()),
        });
        if !judged.unknown.is_empty() {
            let unknown = judged.unknown.iter().map(|(name, times)| (name.clone(), *times));
            remarks.push(Remark::NotFollowed(unknown.collect()));
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

/// The data flow of an execution. What it shows is in focus, and not all of its memory.
pub(crate) fn recorded(execution: &Execution) -> Result<ndseq::Execution, Failure> {
    let mut recorder = Recorder::default();
    let mut stars: FxHashMap<ThreadId, Vec<RegionId>> = FxHashMap::default();
    for event in &execution.events {
        let open = stars.entry(event.thread).or_default();
        if let Op::RegionEnter(region, RegionKind::Star) = event.op {
            open.push(region);
        } else if let Op::RegionExit(region) = event.op {
            open.pop_if(|star| *star == region);
        } else if matches!(event.op, Op::Fork(_)) && !open.is_empty() {
            return Err(Failure::Usage(
                "a star is around code that starts threads; put it around less".to_owned(),
            ));
        }
        recorder.on_event(event);
    }
    let shown = Op::Focus(Range { start: 0, len: 0 });
    recorder.on_event(&Event { thread: ThreadId(0), site: SiteId(0), op: shown });
    if recorder.threads() < 2 {
        return Err(Failure::Undecided(
            "nothing ran in parallel: the program started no threads".to_owned(),
        ));
    }
    Ok(recorder.finish())
}

/// The sites of plain accesses to memory that several threads use while more than one is there, one of them to write.
fn shared(events: &[Event]) -> BTreeSet<SiteId> {
    #[derive(Default)]
    struct Granule {
        threads: BTreeSet<ThreadId>,
        written: bool,
        sites: BTreeSet<SiteId>,
    }
    const GRANULE: u64 = 8;
    const LONGEST: u64 = 512;
    let mut memory: FxHashMap<u64, Granule> = FxHashMap::default();
    let mut alive: BTreeSet<ThreadId> = BTreeSet::from([ThreadId(0)]);
    for event in events {
        if let Op::Fork(child) = event.op {
            alive.insert(child);
        } else if event.op == Op::End {
            alive.remove(&event.thread);
        }
        let (Op::Read(access) | Op::Write(access)) = event.op else { continue };
        let writes = matches!(event.op, Op::Write(_));
        if alive.len() < 2 {
            continue;
        }
        let range = access.range();
        let end = range.end().min(range.start + LONGEST * GRANULE);
        for granule in range.start / GRANULE..=(end - 1) / GRANULE {
            let granule = memory.entry(granule).or_default();
            granule.threads.insert(event.thread);
            granule.written |= writes;
            granule.sites.insert(event.site);
        }
    }
    let shared = memory.into_values().filter(|g| g.written && g.threads.len() > 1);
    shared.flat_map(|g| g.sites).collect()
}
