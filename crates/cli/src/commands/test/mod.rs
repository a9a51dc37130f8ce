//! `selvedge test`: observes a program, predicts bugs, confirms them and judges their harm.
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`ndseq`] | has each execution a sequential twin? |
//! | [`past`] | what earlier tests of the program leave to this one |
//! | [`predict`] | native runs and controlled executions become predictions |
//! | [`ranks`] | the same for jobs of MPI ranks |

pub(crate) mod ndseq;
mod past;
mod predict;
pub(crate) mod ranks;

use std::sync::Arc;

use selvedge_engine::{Aims, Attempted, Campaign, Confirmer, Observation, Search, SoFar};
use selvedge_explore::{Plan, learn};
use selvedge_model::{FindingId, Keep, Schedule, Status};
use selvedge_report::{Case, Remark, Report, Stats, words};
use selvedge_runtime::Controlled;
use selvedge_runtime::control::{NameTable, WatchList};
use selvedge_spmd::launcher::is_launcher;

use crate::args::Test;
use crate::commands::explore;
use crate::control::cases::{self, Predicted};
use crate::control::determinism;
use crate::control::host::{Keeper, Watcher};
use crate::control::linearity;
use crate::control::program::{ControlledProgram, Native};
use crate::deadline::Deadline;
use crate::exit::{Exit, Failure, unless_interrupted};
use crate::program::suppress::Suppressions;
use crate::progress::Schedules;
use crate::store::Journal;
use past::Known;

/// Tests the program and reports.
pub(crate) fn run(args: &Test) -> Result<Exit, Failure> {
    if is_launcher(&args.command[0], args.ranks.launcher.as_deref()) {
        return ranks::run(args);
    }
    if args.ndseq.ndseq {
        return ndseq::run(args);
    }
    let suppressions = Suppressions::load(&args.suppressions)?;
    let program = ControlledProgram::find(&args.command, args.budget.patience())?;
    let program = program.ensuring(&args.ensure)?;
    let deadline = Deadline::new(Some(args.budget.time))?;
    let mut journal = explore::begin(&program);
    let (report, answer) = match test(args, &program, &deadline, &suppressions, &mut journal) {
        Ok(tested) => tested,
        Err(failure) => {
            journal.finish("could not be controlled", &Stats::default());
            return Err(failure);
        }
    };
    let ending = deadline.stopped().map_or("tested".to_owned(), words::stopped);
    journal.finish(&ending, &report.stats);
    explore::conclude((&report, answer), &args.output, &program, &deadline)
}

fn test(
    args: &Test,
    program: &ControlledProgram,
    deadline: &Deadline,
    suppressions: &Suppressions,
    journal: &mut Journal,
) -> Result<(Report, explore::Answer), Failure> {
    let claims = args.regions.claims();
    let native =
        Native::new(program, deadline).claiming(claims.clone()).with_globals(args.globals.depth());
    let native = Arc::new(native);
    let known = Known::load(program, journal, args.fresh);
    let (observation, predicted, mut report) =
        predict::predict(program, &native, args, suppressions, deadline, &known.before())?;
    report.cases.iter().for_each(|case| journal.add(case));
    let mut budget = args.budget.engine(args.attempts);
    if program.writes_files() {
        budget.jobs = 1;
    }
    let mut campaign = Campaign::new(Arc::clone(&native), budget);
    campaign.determinism = determinism::blocks(program, args.across_builds);
    campaign.count_observed(&observation);
    campaign.learnt = known.before().flips;
    learn(&mut campaign.learnt, observation.flips_since(&known.before()));
    let conflicts = observation.conflicts + observation.serial_conflicts.len() as u64;
    let points = observation.racing();
    let mut remarks: Vec<Remark> =
        explore::limits(&points).into_iter().chain(known.remark()).collect();
    let store = |so_far: &SoFar<'_>, journal: &mut Journal| {
        known.store(program, so_far, &predicted, journal);
    };
    let mut watcher = Watcher {
        deadline,
        journal,
        progress: Schedules::new("test", args.budget.schedules),
        predicted: &predicted,
        suppressions,
        by: "schedules",
        keeper: Some(Keeper::new(&store)),
    };
    let predictions = Arc::new(predicted.iter().map(|p| p.prediction.clone()).collect());
    let confirmer = confirmer(args, &observation);
    let aims = Aims { predictions, confirmer, past: known.attempts(&predicted) };
    follow_again(&mut campaign, &known.schedules(&observation), &mut watcher)?;
    let search = Search {
        strategy: explore::knowing(Plan::default(), &campaign.learnt),
        seed: known.seed(args.budget.seed),
        witness: Some(args.serial.criterion()),
        repeat: false,
        ..explore::search(&campaign, points, observation.releases)
    };
    let attempted = hunt(&mut campaign, aims, (search, args.until_failure), &mut watcher)?;
    let (executions, learnt) = (campaign.executions(), &campaign.learnt[..]);
    store(&SoFar { executions, learnt, attempted: &attempted }, watcher.journal);
    let cases = settled(&native, &predicted, &attempted, deadline, watcher.journal)?;
    let confirmed = |(_, case): &(_, &Case)| case.status == Status::Confirmed;
    let settled = predicted.iter().zip(&cases).filter(confirmed);
    let known: Vec<FindingId> = settled.map(|(p, _)| p.prediction.id).collect();
    report.cases = cases.into_iter().filter(Case::is_finding).chain(report.cases).collect();
    watcher.progress.clear();
    let differences = differences(&mut campaign, args, deadline, journal)?;
    let differences = suppressions.pass_all(differences, &mut report.stats);
    differences.into_iter().for_each(|case| report.add(case));
    let undecided = undecided(&campaign);
    let is_undecided = !undecided.is_empty();
    remarks.extend(undecided);
    let failures = cases::failures(&campaign, &known, "schedules", deadline, journal)?;
    for failure in suppressions.pass_all(failures, &mut report.stats) {
        journal.add(report.merge(failure, Keep::Second));
    }
    report.stats.traces = usize::try_from(campaign.executions()).unwrap_or(usize::MAX);
    report.stats.bounds.extend(claims.unmatched());
    report.stats.conflicts = conflicts + campaign.determinism.conflicts;
    report.stats.interleavings = linearity::interleavings(&campaign);
    report.stats.control = Some(explore::effort(&campaign, deadline, false, remarks));
    let answer = explore::Answer { ended: campaign.has_ended(), undecided: is_undecided };
    Ok((report, answer))
}

/// How predictions are attempted.
fn confirmer(args: &Test, observation: &Observation<Controlled>) -> Confirmer {
    Confirmer {
        seed: args.budget.seed,
        input: args.budget.seed,
        releases: observation.releases,
        usual: observation.baseline.as_ref().map(|(left, _)| left.clone()),
        // The turns of a prediction come again.
        judged: 0,
    }
}

/// Confirms predictions and searches for more bugs, and then checks that executions can be repeated.
fn hunt(
    campaign: &mut Campaign<Native>,
    aims: Aims<NameTable, WatchList>,
    (search, until_failure): (Search<WatchList>, bool),
    watcher: &mut Watcher<'_>,
) -> Result<Vec<Attempted>, Failure> {
    let again = Search {
        strategy: Arc::clone(&search.strategy),
        points: search.points.clone(),
        witness: None,
        repeat: true,
        ..search
    };
    let mut attempted = Vec::new();
    if search.schedules > 0 && watcher.deadline.stopped().is_none() {
        explore::hunt(campaign, (aims, &mut attempted), (search, until_failure), watcher)?;
    }
    if watcher.deadline.stopped().is_none() {
        unless_interrupted(campaign.check_repeats(&again).map_err(Failure::from))?;
    }
    Ok(attempted)
}

/// Follows the schedules that failed in earlier tests.
fn follow_again(
    campaign: &mut Campaign<Native>,
    earlier: &[(Schedule, WatchList)],
    watcher: &mut Watcher<'_>,
) -> Result<(), Failure> {
    if watcher.deadline.stopped().is_some() {
        return Ok(());
    }
    unless_interrupted(campaign.follow_again(earlier, watcher).map_err(Failure::from))?;
    Ok(())
}

/// What cannot be said of blocks.
fn undecided(campaign: &Campaign<Native>) -> Vec<Remark> {
    let blocks = determinism::undecided(&campaign.determinism, false);
    blocks.into_iter().chain(linearity::undecided(campaign)).collect()
}

/// What blocks show that they must not, unless they are used wrongly.
fn differences(
    campaign: &mut Campaign<Native>,
    args: &Test,
    deadline: &Deadline,
    journal: &mut Journal,
) -> Result<Vec<Case>, Failure> {
    determinism::refuse(&campaign.determinism)?;
    let mut cases = determinism::violations(campaign, deadline, journal)?;
    cases.extend(determinism::anomalies(campaign, journal));
    linearity::refuse(campaign)?;
    let criterion = args.serial.criterion();
    cases.extend(linearity::violations(campaign, &criterion, deadline, journal)?);
    Ok(cases)
}

/// The cases of the predictions. Confirmed cases get a short schedule and the interleaving.
fn settled(
    native: &Native,
    predicted: &[Predicted],
    attempted: &[Attempted],
    deadline: &Deadline,
    journal: &mut Journal,
) -> Result<Vec<Case>, Failure> {
    let untried = Attempted::default();
    let attempted: Vec<Attempted> =
        (0..predicted.len()).map(|i| attempted.get(i).unwrap_or(&untried).clone()).collect();
    let mut cases: Vec<Case> = predicted.iter().zip(&attempted).map(|(p, a)| p.after(a)).collect();
    cases.iter().filter(|case| case.is_finding()).for_each(|case| journal.add(case));
    let confirmed = cases.iter().any(|case| case.status == Status::Confirmed);
    if confirmed && deadline.signal().is_none() {
        let explained = native.executor().and_then(|mut executor| {
            let to = (deadline, &mut *journal);
            cases::explain_all(&mut executor, predicted, &attempted, &mut cases, to)
        });
        unless_interrupted(explained)?;
    }
    Ok(cases)
}
