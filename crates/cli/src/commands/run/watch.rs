//! Analyses the events and races of a run as they come, and stores the findings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use selvedge_analyses::Pipeline;
use selvedge_analyses::held::{HeldLocks, LockSet};
use selvedge_engine::{Anomaly, Differing, InMemory, Key, Linearity, Origin, States, Wrong};
use selvedge_model::{
    Ended, Event, Finding, FindingId, FirstRace, HeldBack, Kind, Misuse, Op, Region, RegionKind,
    Schedule, Site, SiteId, Subject, Symbols, ThreadId, accesses, conditions, regions, rendezvous,
};
use selvedge_report::{self as report, Bound, Case, Lock, Memory, Note, Remark, Report, words};
use selvedge_runtime::decode::Wait;
use selvedge_runtime::{
    BlocksSeen, Epoch, Judges, Modules, NativeRace, Object, Observe, Outcome, crash, races,
};
use selvedge_specs::BlockExecution;
use selvedge_specs::states::Checked;

use super::ending;
use super::held_before::HeldBefore;
use super::misuse::Objects;
use super::record::Recording;
use super::waiting::Waiting;
use crate::checking::NativeChecking;
use crate::commands::check;
use crate::control::determinism;
use crate::messages::named;
use crate::program::heap::{Block, Heap};
use crate::program::suppress::Suppressions;
use crate::program::symbolize::{self, SharedSymbolizer};
use crate::progress::Observing;
use crate::store::Journal;
use crate::store::states::About;

/// The results of a run.
pub(super) struct Watched {
    pub(super) report: Report,
    /// Lines to print after the report.
    pub(super) remarks: Vec<String>,
}

/// After this many events it is told how far the program is.
const TOLD: u64 = 1024;

/// Receives the events and races of a run.
pub(super) struct Watch {
    pipeline: Pipeline,
    symbolizer: SharedSymbolizer,
    suppressions: Suppressions,
    journal: Journal,
    checking: Option<NativeChecking>,
    report: Report,
    ended: Option<Ended>,
    heap: Heap,
    held: HeldLocks,
    held_before: HeldBefore,
    threads: BTreeMap<ThreadId, Thread>,
    synchronized: bool,
    waiting: Waiting,
    objects: Objects,
    /// What is wrong with the program's own suppressions.
    warnings: Vec<String>,
    record: Option<Recording>,
    /// A user watches: what keeps the program from ending is told at once, and how far it is.
    live: Option<Observing>,
    /// Set when threads wait for each other for ever.
    pub(super) stuck: Arc<AtomicBool>,
    /// The id of the finding of each native race, by the race's number.
    races: BTreeMap<usize, FindingId>,
    /// What is stored with executions of blocks.
    about: About,
    /// Executions of blocks, where there is no store.
    unstored: InMemory,
    /// Calls the predicates that are functions of the program.
    judges: Judges,
    /// Why there is no verdict over blocks.
    wrong: Option<Wrong>,
    /// Conflicts in deterministic regions, by the name of the region. What a block ensures says whether its conflicts
    /// matter, so they wait until it is known what ensures something.
    conflicts: Vec<(Box<str>, Case)>,
    /// Atomic regions that are not conflict-serializable, by name. What is observed says whether that matters.
    serial_conflicts: Vec<(Box<str>, Case)>,
    /// Executions of blocks that ensure something, by the block; how many could be compared.
    compared: BTreeMap<Box<str>, (u64, u64)>,
}

#[derive(Default)]
struct Thread {
    /// The thread that started it, and where.
    started: Option<(ThreadId, Site)>,
}

impl Watch {
    pub(super) fn new(
        pipeline: Pipeline,
        symbolizer: SharedSymbolizer,
        suppressions: Suppressions,
        journal: Journal,
    ) -> Watch {
        Watch {
            pipeline,
            symbolizer,
            suppressions,
            journal,
            checking: None,
            report: Report::default(),
            ended: None,
            heap: Heap::default(),
            held: HeldLocks::default(),
            held_before: HeldBefore::default(),
            threads: BTreeMap::from([(ThreadId(0), Thread::default())]),
            synchronized: false,
            waiting: Waiting::default(),
            objects: Objects::default(),
            warnings: Vec::new(),
            record: None,
            live: None,
            stuck: Arc::default(),
            races: BTreeMap::new(),
            about: About::default(),
            unstored: InMemory::default(),
            judges: Judges::default(),
            wrong: None,
            conflicts: Vec::new(),
            serial_conflicts: Vec::new(),
            compared: BTreeMap::new(),
        }
    }

    /// Also checks disciplines.
    pub(super) fn checking(self, checking: Option<NativeChecking>) -> Watch {
        Watch { checking, ..self }
    }

    /// Also writes a trace.
    pub(super) fn recording(self, record: Option<Recording>) -> Watch {
        Watch { record, ..self }
    }

    /// Compares deterministic blocks with the executions that are stored.
    pub(super) fn comparing(self, about: About, judges: Judges) -> Watch {
        Watch { about, judges, ..self }
    }

    /// What could not be decided about blocks, in words; an error if the program does not use them as it should.
    pub(super) fn undecided(
        &mut self,
        seen: &BlocksSeen,
        symbols: &Symbols,
    ) -> Result<Vec<String>, Box<Wrong>> {
        let mut blocks = seen.clone().placed(symbols);
        if let Some(wrong) = self.wrong.take().or(blocks.wrong.take()) {
            return Err(Box::new(wrong));
        }
        let ended = self.ended == Some(Ended::Code(0));
        let mut linearity = Linearity::<()>::default();
        let key = if ended { Key::Exited(0) } else { Key::Undecided };
        linearity.add(1, (&blocks, key), None, (&Schedule::default(), &()));
        if let Some(misuse) = linearity.misuse() {
            return Err(Box::new(Wrong::Atomic(misuse)));
        }
        let unclosed = blocks.unclosed.iter().filter(|_| ended).map(determinism::unclosed);
        let alone = self.compared.iter().filter(|(_, (_, compared))| *compared == 0);
        let alone = alone.map(|(block, (all, _))| Remark::Incomparable {
            block: block.to_string(),
            executions: *all,
        });
        Ok(unclosed.chain(alone).map(|remark| words::remark(&remark)).collect())
    }

    /// For a user who watches the run.
    pub(super) fn live(self) -> Watch {
        Watch { live: Some(Observing::new()), ..self }
    }

    /// Whether the program did anything besides starting, ending and allocating memory.
    pub(super) fn saw_synchronization(&self) -> bool {
        self.synchronized
    }

    /// Names an analysis that ran inside the program.
    pub(super) fn count_analysis(&mut self, name: &str) {
        self.report.stats.analyses.push(name.to_owned());
    }

    /// Adds a limit that was reached.
    pub(super) fn bound(&mut self, bound: Bound) {
        self.report.stats.bounds.push(bound);
    }

    /// Records how the program ended. A crash is a finding.
    pub(super) fn ended(&mut self, program: &Path, outcome: &Outcome, symbols: &mut Symbols) {
        let ended = ending::ended(outcome.status);
        self.ended = Some(ended);
        let Ended::Signal(number) = ended else { return };
        if !ending::is_crash(number) {
            return;
        }
        let crash = outcome.crash.as_ref();
        let mut finding = crash::finding(number, crash, "", ThreadId(0), symbols);
        finding.analyses = vec!["run"];
        let mut reported = case(&finding, symbols);
        if let report::Subject::Program(report::Failure::Signal { program: of, .. }) =
            &mut reported.subject
        {
            *of = program.file_name().map(|name| name.to_string_lossy().into_owned());
        }
        self.add(reported);
    }

    /// Ends the stored run of a program that could not be observed.
    pub(super) fn was_not_observed(&mut self) {
        self.journal.finish("could not be observed", &self.report.stats);
    }

    /// Ends the analyses and the stored run, and returns the results.
    pub(super) fn finish(mut self, symbols: &Symbols, outcome: &Outcome) -> Watched {
        self.pipeline.finish();
        self.report_new(symbols);
        for (block, case) in std::mem::take(&mut self.conflicts) {
            match self.compared.contains_key(&block) {
                true => self.report.stats.conflicts += 1,
                false => self.add(case),
            }
        }
        self.withhold(outcome);
        if let Some(checking) = self.checking.take() {
            let (name, cases) = checking.finish();
            self.report.stats.analyses.push(name.to_owned());
            cases.into_iter().for_each(|case| self.add(case));
        }
        self.final_counts(outcome);
        if let Some(live) = &mut self.live {
            live.advance(self.report.stats.events, self.report.cases.len());
            live.clear();
        }
        let stats = &mut self.report.stats;
        stats.traces = 1;
        stats.threads = self.threads.len();
        stats.analyses.extend(self.pipeline.names().map(ToOwned::to_owned));
        stats.bounds.extend(self.pipeline.bounds().map(|b| check::bound(b, None)));
        let ended = self.ended.unwrap_or(Ended::Code(0));
        self.journal.finish(&words::ended(ended), &self.report.stats);
        let mut remarks = std::mem::take(&mut self.warnings);
        if let Some(record) = self.record.take() {
            remarks.extend(record.finish(symbols));
        }
        if ended != Ended::Code(0) {
            remarks.push(words::program_ended(ended));
        }
        remarks.extend(words::children(outcome.children.all, outcome.children.running));
        Watched { report: self.report, remarks }
    }

    /// Where something is observed, that decides about atomic blocks, and not their conflicts.
    fn withhold(&mut self, outcome: &Outcome) {
        let found = std::mem::take(&mut self.serial_conflicts);
        if outcome.blocks.atomic.observed.is_empty() {
            found.into_iter().for_each(|(_, case)| self.add(case));
            return;
        }
        let names: BTreeSet<Box<str>> = found.into_iter().map(|(name, _)| name).collect();
        self.report.stats.conflicts += names.len() as u64;
        self.warnings.push(words::remark(&Remark::ObservedOnly));
    }

    /// Updates how often each race happened: that is known only at the end.
    fn final_counts(&mut self, outcome: &Outcome) {
        let mut counts: BTreeMap<FindingId, u64> = BTreeMap::new();
        for race in &outcome.races {
            if let Some(&id) = self.races.get(&race.number) {
                *counts.entry(id).or_default() += u64::from(race.occurrences);
            }
        }
        for finding in &mut self.report.cases {
            if let Some(&count) = counts.get(&finding.id)
                && count != finding.occurrences
            {
                finding.occurrences = count;
                self.journal.add(finding);
            }
        }
    }

    /// Reports the findings that the analyses have made since the last call.
    fn report_new(&mut self, symbols: &Symbols) {
        let new: Vec<Finding> =
            self.pipeline.news().filter(|f| !f.is_avoided(symbols)).cloned().collect();
        for finding in new {
            let case = case(&finding, symbols);
            let region = match finding.subject {
                Subject::Region(region) => symbols.region(region),
                _ => None,
            };
            match region {
                Some(region) if finding.kind == Kind::DeterminismViolation => {
                    self.conflicts.push((region.name.clone(), case));
                }
                Some(Region { name, kind: RegionKind::Atomic })
                    if finding.kind == Kind::AtomicityViolation =>
                {
                    self.serial_conflicts.push((name.clone(), case));
                }
                _ => self.add(case),
            }
        }
    }

    /// Adds a finding to the report and to the store, unless it is suppressed.
    fn add(&mut self, finding: Case) {
        let stats = &mut self.report.stats;
        let Some(finding) = self.suppressions.pass(finding, stats) else { return };
        let id = finding.id;
        self.report.add(finding);
        if let Some(stored) = self.report.cases.iter().find(|f| f.id == id) {
            self.journal.add(stored);
        }
    }

    fn locks(&self, set: LockSet, symbols: &Symbols) -> Vec<Lock> {
        Lock::all(self.held.locks(set), symbols)
    }

    /// Adds what the events know of a misuse and the program does not: another thread's part, and where a thread was
    /// started. Returns how many places are in front of those of the record.
    fn complete(&self, race: &NativeRace, finding: &mut Finding) -> usize {
        let Some(misuse) = &race.misuse else { return 0 };
        let last = self.threads.keys().next_back().copied().unwrap_or(ThreadId(0));
        let other = self.objects.other(misuse, race.later.range.start, &self.held, last);
        let others = other.iter().len();
        finding.places.splice(..0, other);
        others
    }

    /// The calls that probably led to the earlier place of a race, and the locks that were held at both.
    fn add_earlier<'a>(
        &self,
        race: &NativeRace,
        places: impl Iterator<Item = &'a mut report::Place>,
        symbols: &Symbols,
        modules: &Modules,
    ) {
        let mut symbolizer = self.symbolizer.borrow_mut();
        for (place, side) in places.zip(race.earlier.iter().chain([&race.later])) {
            if std::ptr::eq(side, &race.later) {
                place.held = Some(self.locks(self.held.set(side.thread), symbols));
                continue;
            }
            let calls = symbolizer.likely_calls(side.pc, &race.past, modules);
            place.stack = symbolizer.stack(&calls, modules);
            place.stack_likely = !place.stack.is_empty();
            let before = self.held_before.at(side.thread, side.epoch);
            place.held = before.map(|set| self.locks(set, symbols));
        }
    }

    /// The heap block that a race or a misuse is about. One that is used too late is not there any more.
    fn block(&self, race: &NativeRace) -> Option<&Block> {
        let addr = race.later.range.start;
        match race.misuse {
            Some(Misuse::UsedFreed | Misuse::FreedTwice) => self.heap.was_at(addr),
            _ => self.heap.at(addr),
        }
    }

    /// Notes about a race: the heap block, and where its threads were started.
    fn notes(&self, race: &NativeRace, symbols: &Symbols) -> Vec<Note> {
        let mut notes = Vec::new();
        if let Some(block) = self.block(race) {
            notes.push(Note::HeapBlock {
                byte: race.later.range.start - block.range.start,
                thread: thread(block.thread, symbols),
                at: Some(symbols.site(block.site)).filter(is_users),
            });
        }
        for side in race.earlier.iter().chain([&race.later]) {
            let started = self.threads.get(&side.thread).and_then(|t| t.started.as_ref());
            if let Some((by, site)) = started {
                notes.push(Note::StartedBy {
                    thread: thread(side.thread, symbols),
                    by: thread(*by, symbols),
                    at: Some(site.clone()).filter(is_users),
                });
            }
        }
        notes.dedup();
        notes
    }

    /// The name of the racing memory.
    fn subject(&self, race: &NativeRace, symbols: &Symbols, modules: &Modules) -> Memory {
        let addr = race.later.range.start;
        if let Some(name) = self.symbolizer.borrow_mut().variable(addr, modules) {
            return Memory::Named(name);
        }
        match self.block(race).map(|block| symbols.site(block.site)) {
            Some(site) => Memory::Heap { from: Some(site).filter(is_users) },
            None => Memory::Unnamed,
        }
    }
}

impl Observe for Watch {
    fn event(&mut self, event: &Event, symbols: &Symbols) {
        self.report.stats.events += 1;
        if self.report.stats.events.is_multiple_of(TOLD)
            && let Some(live) = &mut self.live
        {
            live.advance(self.report.stats.events, self.report.cases.len());
        }
        if let Some(record) = &mut self.record {
            record.event(event, symbols);
        }
        match event.op {
            Op::Begin | Op::End => {}
            Op::Alloc(range) => self.heap.allocated(range, event.thread, event.site),
            Op::Free(range) => self.heap.freed(range),
            Op::Fork(child) => {
                self.synchronized = true;
                let started = Some((event.thread, symbols.site(event.site)));
                self.threads.entry(child).or_default().started = started;
            }
            accesses!()
            | Op::Fence(_)
            | Op::Join(_)
            | Op::Acquire(..)
            | Op::Release(..)
            | rendezvous!()
            | conditions!()
            | regions!() => self.synchronized = true,
        }
        self.held.on_event(event);
        if let Some(checking) = &mut self.checking {
            checking.on_event(event, symbols);
        }
        self.waiting.on_event(event);
        self.pipeline.on_event(event);
        if self.pipeline.has_news() {
            self.report_new(symbols);
        }
    }

    fn race(&mut self, race: &NativeRace, symbols: &mut Symbols, modules: &Modules) {
        let mut finding = race.finding(symbols, modules, &mut self.symbolizer.clone());
        let others = self.complete(race, &mut finding);
        let mut reported = case(&finding, symbols);
        let memory = self.subject(race, symbols, modules);
        match &mut reported.subject {
            report::Subject::Misused { of, .. } => *of = memory,
            subject => *subject = report::Subject::Memory(memory),
        }
        if race.misuse != Some(Misuse::NeverJoined) {
            reported.notes = self.notes(race, symbols);
        }
        let places = reported.places.iter_mut().skip(others);
        self.add_earlier(race, places, symbols, modules);
        self.races.insert(race.number, reported.id);
        self.add(reported);
    }

    fn first_race(&mut self, race: &FirstRace, symbols: &Symbols) {
        self.pipeline.on_first_race(race);
        if self.pipeline.has_news() {
            self.report_new(symbols);
        }
    }

    fn locks_changed(&mut self, thread: ThreadId, from: Epoch) {
        self.held_before.change(thread, from, self.held.set(thread));
    }

    fn destroyed(&mut self, addr: u64, thread: ThreadId, site: SiteId) {
        self.objects.destroyed(addr, thread, site);
    }

    fn reached(&mut self, _: ThreadId, moment: u64) {
        if let Some(checking) = &mut self.checking {
            checking.reached(moment);
        }
    }

    fn held_back(&mut self, last: &HeldBack, symbols: &Symbols) {
        if let Some(checking) = &mut self.checking {
            checking.held_back(last, symbols);
        }
    }

    fn object(&mut self, object: Object, addr: u64, site: SiteId) {
        if let Object::Lock(lock) = object {
            self.objects.lock(lock, addr);
        }
        if let Some(checking) = &mut self.checking {
            checking.object(object, addr, site);
        }
    }

    fn mapped(&mut self, modules: &Modules) {
        if let Some(checking) = &mut self.checking {
            checking.mapped(modules);
        }
    }

    fn block(&mut self, execution: BlockExecution<SiteId>, symbols: &Symbols) {
        let execution = execution.map(|site| symbols.site(site));
        let stored = self.journal.check_block(&execution, &self.about, &mut self.judges);
        let checked = match stored {
            Some(checked) => checked.map_err(|trouble| Box::new(Wrong::Predicate(*trouble))),
            // That nothing is stored has been said.
            None => {
                let checked = self.unstored.add(&execution, &Schedule::default(), &mut self.judges);
                checked.map(|checked| (checked, None))
            }
        };
        let checked = match checked {
            Ok(checked) => checked,
            Err(wrong) => {
                self.wrong.get_or_insert(*wrong);
                return;
            }
        };
        if let Some((differing, earlier)) = self.journal.check_promise(&execution, &self.about) {
            let block = execution.block.clone();
            let anomaly = Anomaly { block, differing, earlier, schedule: None };
            self.add(determinism::anomaly(anomaly));
        }
        let (Checked { compared, violation }, build) = checked;
        if execution.ensures() {
            let counts = self.compared.entry(execution.block.clone()).or_default();
            *counts = (counts.0 + 1, counts.1 + u64::from(compared > 0));
        }
        if let Some(violation) = violation {
            let differing = Differing { first: violation.first, later: violation.later };
            let build = build.filter(|build| *build != self.about.build);
            let origin = Origin { schedule: None, build };
            self.add(determinism::observed(execution.block, differing, origin));
        }
    }

    fn waits(&mut self, wait: &Wait, symbols: &Symbols) {
        let last = self.threads.keys().next_back().copied().unwrap_or(ThreadId(0));
        if let Some(finding) = self.waiting.begin(*wait, &self.held, last) {
            let case = case(&finding, symbols);
            if self.live.is_some() {
                anstream::eprintln!("selvedge: {}: these threads will not go on", named(&case));
            }
            self.add(case);
            self.stuck.store(true, Ordering::Relaxed);
        }
    }

    fn default_options(&mut self, options: &str) {
        if let Err(wrong) = self.suppressions.follow(options) {
            self.warnings.push(wrong.to_string());
        }
    }

    fn default_suppressions(&mut self, suppressions: &str) {
        if let Err(wrong) = self.suppressions.add(suppressions, "__tsan_default_suppressions") {
            self.warnings.push(wrong.to_string());
        }
    }
}

/// A finding as a case. Symbols know the threads of the program itself, and child processes have others.
fn case(finding: &Finding, symbols: &Symbols) -> Case {
    let mut case = Case::new(finding, symbols);
    for (place, of) in case.places.iter_mut().zip(&finding.places) {
        place.thread = thread(of.thread, symbols);
    }
    case
}

/// What a thread is called, also one of a child process.
fn thread(thread: ThreadId, symbols: &Symbols) -> String {
    match races::in_child(thread) {
        Some((process, 0)) => format!("main of child process {process}"),
        Some((process, number)) => format!("T{number} of child process {process}"),
        None => symbols.thread(thread),
    }
}

/// Whether a place is outside the standard libraries.
fn is_users(site: &Site) -> bool {
    site.frame().is_some_and(|f| !symbolize::is_library(f))
}
