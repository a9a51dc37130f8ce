//! `selvedge test -- mpirun …`: predicts races in one execution of an MPI program, and makes them happen in further
//! ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selvedge_engine::Left;
use selvedge_model::{Ended, FindingId};
use selvedge_report::{Case, Effort, Remark, Report, Stats, words as say};

use crate::args::Test;
use crate::deadline::{Deadline, EXPLORED};
use crate::exit::{Exit, Failure};
use crate::program::suppress::Suppressions;
use crate::progress::Schedules;
use crate::ranks::cases::{Namer, bounds, report_misuses};
use crate::ranks::directed::{Candidate, Executions, left};
use crate::ranks::{Job, builds};
use crate::store::{self, Journal, Setup};
use crate::terminal;

/// Tests the job and reports.
pub(crate) fn run(args: &Test) -> Result<Exit, Failure> {
    let suppressions = Suppressions::load(&args.suppressions)?;
    let deadline = Deadline::new(Some(args.budget.time))?;
    let here = std::env::current_dir()?;
    let directory = store::directory(&here);
    let root = directory.parent().unwrap_or(&here).to_owned();
    let job = Job::new(&args.command, here, directory.clone())?.sampled(&args.ranks);
    let words: Vec<String> =
        args.command.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let sight = "calls of MPI, and loads and stores of instrumented code";
    let mut journal = Journal::begin(store::open(&directory), &words, "ranks", sight);
    journal.remember(&setup(&job, args));
    let mut executions = Executions {
        job: &job,
        deadline: &deadline,
        patience: args.budget.patience(),
        seed: args.budget.seed,
        pause: args.pause,
        done: 0,
    };
    let tested = test(args, &mut executions, &suppressions, &root, &mut journal);
    let report = match tested {
        Ok(report) => report,
        Err(failure) => {
            journal.finish("could not be observed", &Stats::default());
            return Err(failure);
        }
    };
    let ending = deadline.stopped().map_or("tested".to_owned(), say::stopped);
    journal.finish(&ending, &report.stats);
    conclude(args, &report, root, &deadline)
}

/// What is needed to run the job again.
fn setup(job: &Job, args: &Test) -> Setup {
    Setup {
        program: job.launcher.clone(),
        arguments: job.arguments.clone(),
        directory: job.directory.clone(),
        form: "ranks".to_owned(),
        patience: u64::try_from(args.budget.patience().as_millis()).unwrap_or(u64::MAX),
        build: builds(&job.arguments, &job.directory),
        ensure: Vec::new(),
        focus: Vec::new(),
        tasks: Vec::new(),
    }
}

fn test(
    args: &Test,
    executions: &mut Executions<'_>,
    suppressions: &Suppressions,
    root: &Path,
    journal: &mut Journal,
) -> Result<Report, Failure> {
    let deadline = executions.deadline;
    let mut report = Report::default();
    let mut candidates: BTreeMap<FindingId, Candidate> = BTreeMap::new();
    let mut usual = None;
    for _ in 0..args.observe.max(1) {
        let observed = observe(executions, &mut candidates, suppressions, root, &mut report)?;
        usual.get_or_insert(observed);
        if deadline.stopped().is_some() {
            break;
        }
    }
    report.cases.iter().for_each(|case| journal.add(case));
    for candidate in candidates.values() {
        journal.add(&candidate.case);
    }
    let mut progress = Schedules::new("test", args.budget.schedules);
    let ends = |done: u64| {
        deadline.until(EXPLORED).is_zero()
            || deadline.signal().is_some()
            || done >= args.budget.schedules
    };
    for _ in 0..args.attempts {
        let mut open: Vec<&mut Candidate> =
            candidates.values_mut().filter(|c| c.is_open()).collect();
        if open.is_empty() || ends(executions.done) {
            break;
        }
        let done = executions.done;
        executions.attempt(&mut open, &|| ends(done))?;
        let found = candidates.values().filter(|c| !c.is_open()).count();
        progress.advance(executions.done, found, deadline);
    }
    for candidate in candidates.values_mut() {
        if let Some(usual) = &usual {
            executions.judge(candidate, usual)?;
        }
        let case = candidate.settled(args.budget.seed);
        journal.add(&case);
        report.add(case);
    }
    progress.clear();
    report.stats.traces = usize::try_from(executions.done).unwrap_or(usize::MAX);
    report.stats.control = Some(Effort {
        schedules: executions.done,
        seconds: deadline.elapsed().as_secs_f64(),
        seed: args.budget.seed,
        complete: false,
        remarks: deadline.stopped().map(Remark::Stopped).into_iter().collect(),
    });
    Ok(report)
}

/// One execution in which no rank waits for another one at a race. Returns what it leaves.
fn observe(
    executions: &mut Executions<'_>,
    candidates: &mut BTreeMap<FindingId, Candidate>,
    suppressions: &Suppressions,
    root: &Path,
    report: &mut Report,
) -> Result<Left, Failure> {
    let executed = executions.execute(None)?;
    let left = left(&executed, executions.patience);
    let Some(job) = &executed.told.job else {
        let ended = executed.status.map_or(Ended::Signal(15), crate::commands::run::ending::ended);
        return Err(Failure::NoRanks(say::program_ended(ended)));
    };
    report.stats.threads = job.ranks as usize;
    report.stats.analyses = vec!["ranks".to_owned()];
    report.stats.bounds = bounds(&executed.told);
    let mut namer = Namer::new(root, &executed.told);
    report_misuses(&mut namer, &executed.told, suppressions, report);
    for race in &executed.told.races {
        let case: Case = namer.case(race);
        if let Some(case) = suppressions.pass(case, &mut report.stats) {
            Candidate::add(candidates, case, race);
        }
    }
    Ok(left)
}

fn conclude(
    args: &Test,
    report: &Report,
    root: PathBuf,
    deadline: &Deadline,
) -> Result<Exit, Failure> {
    let mut output = args.output.clone();
    output.source.push(root);
    terminal::print(report, &output)?;
    let failed = report.cases.iter().any(|case| output.fail_on.fails(case.status));
    Ok(match deadline.signal() {
        _ if failed => Exit::Findings,
        Some(_) => Exit::Interrupted,
        None => Exit::Clean,
    })
}
