//! `selvedge test`: observe, predict, confirm, judge.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`predict`] | native runs and controlled executions become predictions |
//! | [`trial`] | one directed execution, and if it reaches its target, what each order leads to |
//! | [`waves`] | the attempts at all predictions, on all cores |
//! | [`verdict`] | whether an order did harm |

mod predict;
mod trial;
mod verdict;
mod waves;

use std::sync::Arc;

use selvedge_explore::Plan;
use selvedge_model::Status;
use selvedge_report::{Case, Effort, Report, Stats};

use crate::args::Test;
use crate::control::account;
use crate::control::halt::Halt;
use crate::control::lanes::{Done, Job};
use crate::control::observe::Observation;
use crate::control::stage::{Stage, Subject, Wishes};
use crate::control::tally::Tally;
use crate::exit::{Exit, Failure, unless_interrupted};
use crate::explore::{self, Search};
use crate::progress::Schedules;
use crate::store::Journal;
use crate::suppress::Suppressions;

/// Tests the program and reports.
pub(crate) fn run(args: &Test) -> Result<Exit, Failure> {
    let suppressions = Suppressions::load(&args.suppressions)?;
    let subject = Subject::find(&args.command, args.budget.patience)?;
    let halt = Halt::new(Some(args.budget.time))?;
    let mut journal = explore::begin(&subject);
    let report = match test(args, &subject, &halt, &suppressions, &mut journal) {
        Ok(report) => report,
        Err(failure) => {
            journal.finish("could not be controlled", &Stats::default());
            return Err(failure);
        }
    };
    journal.finish(&halt.reason().unwrap_or_else(|| "tested".to_owned()), &report.stats);
    explore::conclude(&report, &args.output, &subject, &halt)
}

fn test(
    args: &Test,
    subject: &Subject,
    halt: &Halt,
    suppressions: &Suppressions,
    journal: &mut Journal,
) -> Result<Report, Failure> {
    let budget = &args.budget;
    let mut progress = Schedules::new(budget.schedules);
    let (observation, mut report) = predict::predict(subject, args, suppressions, halt)?;
    for finding in &report.cases {
        journal.add(finding);
    }
    let watched = observation.racing();
    let mut search = Search {
        subject,
        halt,
        tally: Tally::default(),
        spent: observation.executions.saturating_sub(1),
        watched: Arc::new(watched.clone()),
        remarks: Vec::new(),
        until_failure: false,
        known: Vec::new(),
        by: "schedules",
    };
    search.limits(watched.len());
    count_baseline(&mut search, &observation);
    let mut findings = waves::confirm(args, &observation, &mut search, journal, &mut progress)?;
    if halt.signal().is_none() && findings.iter().any(|f| f.status == Status::Confirmed) {
        let symbols = observation.symbols.clone();
        let wishes = Wishes { seed: budget.seed, symbols, ..Wishes::default() };
        let completed = Stage::new(subject, wishes, &halt.interrupt)
            .and_then(|mut stage| account::complete_all(&mut stage, &mut findings, journal));
        unless_interrupted(completed)?;
    }
    let confirmed = findings.iter().filter(|f| f.status == Status::Confirmed);
    search.known = confirmed.map(|f| f.id.clone()).collect();
    report.cases = findings.into_iter().chain(report.cases).collect();
    let wishes = Wishes {
        seed: budget.seed,
        symbols: observation.symbols.clone(),
        watched,
        ..Wishes::default()
    };
    let job = Job {
        subject,
        plan: Plan::Mix,
        seed: budget.seed,
        schedules: budget.schedules.saturating_sub(search.executions() + 1),
        jobs: budget.jobs(),
        wishes: &wishes,
        meeting: None,
        releases: observation.releases,
    };
    if job.schedules > 0 && halt.reason().is_none() {
        search.run(&job, journal, &mut progress)?;
    }
    progress.clear();
    let failures = search.confirm(&wishes, journal)?;
    for failure in failures {
        if !suppressions.match_finding(&failure, &[]) {
            journal.add(add(&mut report, failure));
        }
    }
    report.stats.traces = usize::try_from(search.executions()).unwrap_or(usize::MAX);
    report.stats.control = Some(Effort {
        schedules: search.executions(),
        seconds: halt.elapsed().as_secs_f64(),
        seed: budget.seed,
        complete: false,
        remarks: search.remarks(),
    });
    Ok(report)
}

/// Adds a failure that undirected schedules have shown. One that directed executions have tried in vain
/// keeps what is known of that.
fn add(report: &mut Report, mut failure: Case) -> &Case {
    let at = match report.cases.iter().position(|f| f.id == failure.id) {
        Some(at) => {
            let known = &report.cases[at];
            if let (Some(control), Some(before)) = (&mut failure.control, &known.control) {
                control.attempts = before.attempts;
            }
            failure.analyses = known.analyses.iter().cloned().chain(failure.analyses).collect();
            report.cases[at] = failure;
            at
        }
        None => {
            report.cases.push(failure);
            report.cases.len() - 1
        }
    };
    &report.cases[at]
}

/// The observed execution in which threads run until they block is an execution like others.
fn count_baseline(search: &mut Search<'_>, observation: &Observation) {
    let Some(baseline) = &observation.baseline else { return };
    let done = Done {
        ending: baseline.ending.clone(),
        schedule: baseline.schedule.clone(),
        uncontrolled: Vec::new(),
    };
    search.count(done, &Arc::default());
}
