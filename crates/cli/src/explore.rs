//! `selvedge explore`: many schedules of a program, and which of them make it fail.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selvedge_analyses::hybrid::Hybrid;
use selvedge_explore::Plan;
use selvedge_model::{Schedule, Status};
use selvedge_report::{
    Case, Effort, NotReplayed, Note, Report, Stats, Watched, interleaving, words,
};
use selvedge_runtime::Execution;
use selvedge_runtime::control::Difference;

use crate::args::Explore;
use crate::control::halt::Halt;
use crate::control::lanes::{self, Done, Job};
use crate::control::meeting::Meeting;
use crate::control::observe::{Observation, observe};
use crate::control::stage::{Stage, Subject, Wishes};
use crate::control::tally::{Found, Tally};
use crate::control::{account, ending};
use crate::exit::{Exit, Failure, unless_interrupted};
use crate::progress::Schedules;
use crate::store::{self, Journal};
use crate::terminal;

/// So many executions are looked at for accesses that may race.
const OBSERVED: u64 = 3;
/// If so many executions in a row do not end, none will.
const HOPELESS: u64 = 3;

/// Explores and reports.
pub(crate) fn run(args: &Explore) -> Result<Exit, Failure> {
    let plan = match args.strategy {
        Plan::Pct(_) => Plan::Pct(args.pct_depth),
        other => other,
    };
    let subject = Subject::find(&args.command, args.budget.patience)?;
    let halt = Halt::new(Some(args.budget.time))?;
    let mut journal = begin(&subject);
    let outcome = explore(args, plan, &subject, &halt, &mut journal);
    let report = match outcome {
        Ok(report) => report,
        Err(failure) => {
            journal.finish("could not be controlled", &Stats::default());
            return Err(failure);
        }
    };
    let ending = halt.reason().unwrap_or_else(|| "explored".to_owned());
    journal.finish(&ending, &report.stats);
    conclude(&report, &args.output, &subject, &halt)
}

/// A run of the store for a program under control.
pub(crate) fn begin(subject: &Subject) -> Journal {
    let store = store::open(&store::directory(&subject.setup.directory));
    let mut journal = Journal::begin(store, &subject.words, &subject.setup.form, &subject.sight());
    journal.remember(&subject.setup);
    journal
}

/// Prints the report, and says how the command ends.
pub(crate) fn conclude(
    report: &Report,
    output: &crate::args::Output,
    subject: &Subject,
    halt: &Halt,
) -> Result<Exit, Failure> {
    let mut output = output.clone();
    output.source.push(subject.root.clone());
    terminal::print(report, &output)?;
    if let Some(shortcoming) = subject.shortcoming() {
        anstream::eprintln!("{shortcoming}");
    }
    let failed = report.cases.iter().any(|f| output.fail_on.fails(f.status));
    Ok(match halt.signal() {
        _ if failed => Exit::Findings,
        Some(_) => Exit::Interrupted,
        None => Exit::Clean,
    })
}

fn explore(
    args: &Explore,
    plan: Plan,
    subject: &Subject,
    halt: &Halt,
    journal: &mut Journal,
) -> Result<Report, Failure> {
    let budget = &args.budget;
    let mut progress = Schedules::new(budget.schedules);
    let observation = match subject.is_instrumented() {
        true => Some(look(subject, budget.seed, &halt.interrupt)?),
        false => None,
    };
    let known = observation.as_ref();
    let meeting = match (args.meet.as_slice(), known) {
        ([], _) => None,
        (lines, Some(known)) => Some(Meeting::find(lines, args.same_object, known)?),
        (_, None) => {
            let why = "--meet needs a program built by `selvedge cc` or `cargo selvedge`";
            return Err(Failure::Usage(why.to_owned()));
        }
    };
    let wishes = Wishes {
        seed: budget.seed,
        symbols: known.map(|o| o.symbols.clone()).unwrap_or_default(),
        watched: meeting.as_ref().map_or_else(
            || known.map(Observation::racing).unwrap_or_default(),
            |m| m.watched.clone(),
        ),
        ..Wishes::default()
    };
    let spent = known.map_or(0, |o| o.executions);
    let mut search = Search {
        subject,
        halt,
        tally: Tally::default(),
        spent,
        watched: Arc::new(wishes.watched.clone()),
        remarks: Vec::new(),
        until_failure: !args.keep_going,
        known: Vec::new(),
        by: "explore",
    };
    search.limits(wishes.watched.len());
    let job = Job {
        subject,
        plan,
        seed: budget.seed,
        schedules: budget.schedules.saturating_sub(spent + 1),
        jobs: budget.jobs(),
        wishes: &wishes,
        meeting: meeting.as_ref(),
        releases: known.is_some_and(|o| o.releases),
    };
    let complete = search.run(&job, journal, &mut progress)?;
    progress.clear();
    search.remarks.extend(meeting.as_ref().map(Meeting::remark));
    let mut report = Report::default();
    report.stats.analyses = vec!["explore".to_owned()];
    report.stats.traces = usize::try_from(search.executions()).unwrap_or(usize::MAX);
    report.stats.events = known.map_or(0, |o| o.events);
    report.stats.threads = known.map_or(0, |o| o.threads);
    for finding in search.confirm(&wishes, journal)? {
        report.add(finding);
    }
    report.stats.control = Some(Effort {
        schedules: search.executions(),
        seconds: halt.elapsed().as_secs_f64(),
        seed: budget.seed,
        complete,
        remarks: search.remarks(),
    });
    Ok(report)
}

/// The accesses that may race, and so are scheduling points.
pub(crate) fn points(
    subject: &Subject,
    seed: u64,
    interrupt: &Arc<AtomicBool>,
) -> Result<Vec<Watched>, Failure> {
    if !subject.is_instrumented() {
        return Ok(Vec::new());
    }
    Ok(look(subject, seed, interrupt)?.racing())
}

fn look(subject: &Subject, seed: u64, interrupt: &Arc<AtomicBool>) -> Result<Observation, Failure> {
    observe(subject, seed, OBSERVED, interrupt, || vec![Box::new(Hybrid::default())])
}

/// A search for failures that depend on the schedule.
pub(crate) struct Search<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) halt: &'a Halt,
    pub(crate) tally: Tally,
    /// Executions of the command before this search.
    pub(crate) spent: u64,
    /// The accesses that are scheduling points.
    pub(crate) watched: Arc<Vec<Watched>>,
    pub(crate) remarks: Vec<String>,
    pub(crate) until_failure: bool,
    /// Findings that are confirmed already, and need not be found again.
    pub(crate) known: Vec<String>,
    /// What findings are said to be found by.
    pub(crate) by: &'static str,
}

impl Search<'_> {
    /// Executions of the command so far.
    pub(crate) fn executions(&self) -> u64 {
        self.spent + self.tally.executions()
    }

    pub(crate) fn limits(&mut self, watched: usize) {
        let most = selvedge_runtime::control::wire::WATCHED;
        if watched > most {
            self.remarks.push(format!(
                "{watched} accesses may race; the first {most} of them are scheduling points"
            ));
        }
    }

    /// Runs the plan after a first execution in which threads run until they block. Each failure is
    /// stored when it is first known to depend on the schedule.
    pub(crate) fn run(
        &mut self,
        job: &Job<'_>,
        journal: &mut Journal,
        progress: &mut Schedules,
    ) -> Result<bool, Failure> {
        let stage = Stage::new(self.subject, job.wishes.clone(), &self.halt.interrupt);
        let Some(mut stage) = unless_interrupted(stage)? else { return Ok(false) };
        stage.controlled.releases = job.releases;
        let first = stage.controlled.replay(&unforced(job));
        let Some((first, _)) = unless_interrupted(first)? else { return Ok(false) };
        if let Some(remark) = repeated(&mut stage, &first)? {
            self.remarks.push(remark);
        }
        let first = Done::new(&mut stage, first);
        drop(stage);
        let mut stored: Vec<String> = Vec::new();
        let mut hopeless = false;
        let mut each = |search: &mut Self, done: Done| {
            search.take(done);
            let found = search.found();
            for new in found.iter().filter(|f| !stored.contains(&f.fault.id)) {
                journal.add(&new.finding(search.by));
            }
            stored = found.iter().map(|f| f.fault.id.clone()).collect();
            progress.advance(search.executions(), found.len(), search.halt);
            hopeless = search.tally.executions() >= HOPELESS && search.tally.never_ends();
            let enough = search.until_failure && !found.is_empty();
            if enough || hopeless { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        if each(self, first).is_break() {
            return Ok(false);
        }
        let halt = self.halt;
        let complete = lanes::explore(job, halt, |_, done| each(self, done))?;
        if hopeless {
            let setup = &self.subject.setup;
            return Err(Failure::Endless {
                path: setup.program.clone(),
                patience: format!("{} s", setup.patience as f64 / 1000.0),
                advice: "if it just takes long, give it more; a server needs a client that ends it",
            });
        }
        Ok(complete)
    }

    fn take(&mut self, done: Done) {
        let watched = Arc::clone(&self.watched);
        self.count(done, &watched);
    }

    /// One more execution; its number.
    pub(crate) fn count(&mut self, done: Done, watched: &Arc<Vec<Watched>>) -> u64 {
        for what in done.uncontrolled {
            let remark = format!("not everything was under control: {what}");
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
        let number = self.executions() + 1;
        self.tally.add(number, done.ending, &done.schedule, watched);
        number
    }

    /// The failures that depend on the schedule and are not known from elsewhere.
    fn found(&self) -> Vec<Found> {
        let mut found = self.tally.found();
        found.retain(|f| !self.known.contains(&f.fault.id));
        found
    }

    /// What is worth saying besides the findings.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = self.remarks.clone();
        if let Some(fault) = self.tally.always() {
            let summary = words::summary(fault);
            remarks.push(format!(
                "it fails in the same way under all {} schedules, so this is no concurrency bug: {summary}",
                self.tally.executions()
            ));
        }
        match self.tally.usual_exit() {
            None | Some(0) => {}
            Some(code) => remarks.push(format!("the program exits with {code} under every schedule in which nothing else goes wrong")),
        }
        remarks.extend(self.halt.reason());
        remarks
    }

    /// The failures as findings: confirmed if the schedule shows the same once more.
    pub(crate) fn confirm(
        &self,
        wishes: &Wishes,
        journal: &mut Journal,
    ) -> Result<Vec<Case>, Failure> {
        let found = self.found();
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // The end of the time does not count here, a signal does.
        let mut stage = match self.halt.signal() {
            None => {
                let stage = Stage::new(self.subject, wishes.clone(), &self.halt.interrupt);
                unless_interrupted(stage)?
            }
            Some(_) => None,
        };
        let mut findings = Vec::new();
        for one in &found {
            let mut finding = one.finding(self.by);
            match &mut stage {
                None => finding.notes.push(Note::NotReplayed(NotReplayed::Interrupted)),
                Some(stage) => match replays(stage, one, self.tally.usual_exit()) {
                    Ok(()) => {
                        finding.status = Status::Confirmed;
                        unless_interrupted(account::complete(stage, &mut finding))?;
                    }
                    Err(why) => finding.notes.push(Note::NotReplayed(why)),
                },
            }
            journal.add(&finding);
            findings.push(finding);
        }
        Ok(findings)
    }
}

/// What is to be said of a program that does not always do the same under one schedule.
fn repeated(stage: &mut Stage, first: &Execution) -> Result<Option<String>, Failure> {
    const TIMES: usize = 2;
    let found = unless_interrupted(stage.controlled.unrepeatable(first, TIMES))?;
    Ok(found.flatten().map(|n| {
        let Difference { index, expected, found } = n.difference;
        let symbols = stage.controlled.named(&[]);
        interleaving::differ(index, [expected, found], &n.cause, &symbols)
    }))
}

/// The schedule that forces nothing.
fn unforced(job: &Job<'_>) -> Schedule {
    Schedule { seed: job.wishes.seed, releases: job.releases, ..Schedule::default() }
}

/// Whether a failure happens again, or what happens instead.
fn replays(stage: &mut Stage, found: &Found, usual: Option<i32>) -> Result<(), NotReplayed> {
    let failed = |e: String| NotReplayed::Failed(e);
    stage.watch(&found.times.watched).map_err(|e| failed(e.to_string()))?;
    let (execution, divergence) =
        stage.controlled.replay(&found.times.schedule).map_err(|e| failed(e.to_string()))?;
    let done = Done::new(stage, execution);
    if same(&done.ending, found, usual) {
        return Ok(());
    }
    let diverged = divergence.map(|d| d.to_string());
    Err(NotReplayed::Otherwise { outcome: done.ending.outcome(), diverged })
}

fn same(ended: &ending::Ending, found: &Found, usual: Option<i32>) -> bool {
    match ended {
        ending::Ending::Failed(fault) => fault.id == found.fault.id,
        ending::Ending::Exit(code) => {
            usual.is_some_and(|u| ending::exit(*code, u).id == found.fault.id)
        }
    }
}
